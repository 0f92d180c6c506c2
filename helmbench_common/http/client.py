"""The HTTP client of the runner and the judge: each attempt returns an Answer or a Trouble.

It keeps no state between answers, follows no redirects, and limits the memory that an answer takes.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Any, NamedTuple

import aiohttp

from helmbench_common.http.addresses import elsewhere, proxy, secrets
from helmbench_common.http.bodies import parsed
from helmbench_common.http.keys import Keys, in_headers
from helmbench_common.http.retry import Trouble

MOST = 16 * 2**20  # bytes of an answer, unpacked: a thousand times what the longest reply needs


class Answer(NamedTuple):
    """A server's answer. `body`: its JSON, None if it isn't JSON."""

    status: int
    body: Any
    headers: Mapping[str, str]
    reason: str = ""


class Client:
    """Connections to one address, used as an async context manager. `keys` removes secrets from the server's text.

    `timeout`: seconds for one attempt; `connect`: for its connection; `most`: bytes of an answer; `tls`: aiohttp's
    `ssl`.

    Raises:
        ValueError: the environment names an unusable proxy.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        at_once: int,
        timeout: float,
        connect: float | None = None,
        most: int = MOST,
        tls: Any = True,
    ) -> None:
        self.url, self._headers, self._at_once, self._most, self._tls = url, headers, at_once, most, tls
        self._timeout = aiohttp.ClientTimeout(total=timeout, sock_connect=connect)
        self._proxy = proxy(url)
        self.keys = Keys([*in_headers(headers), *secrets(url), *secrets(self._proxy or "")])

    async def __aenter__(self) -> Client:
        self._session = aiohttp.ClientSession(
            connector=_Connections(limit=self._at_once, ssl=self._tls),
            timeout=self._timeout,
            proxy=self._proxy,
            headers={"Content-Type": "application/json", **self._headers},
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def post(self, payload: bytes) -> Answer | Trouble:
        """One attempt, with a JSON body."""
        return await self._attempt("POST", self.url, self._timeout, payload)

    async def get(self, url: str, seconds: float) -> Answer | Trouble:
        """One attempt at another address on the same server, for at most `seconds`."""
        return await self._attempt("GET", url, aiohttp.ClientTimeout(total=seconds, sock_connect=seconds), None)

    def redirect(self, answer: Answer) -> str:
        """An error message for a redirect."""
        return self.keys.quoted(f"HTTP {answer.status} {elsewhere(answer.headers.get('Location'), self.keys.within)}")

    async def _attempt(
        self, method: str, url: str, timeout: aiohttp.ClientTimeout, payload: bytes | None
    ) -> Answer | Trouble:
        try:
            async with self._session.request(
                method, url, data=payload, timeout=timeout, allow_redirects=False
            ) as response:
                raw = await self._body(response)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as error:
            return Trouble(_connection_problem(error, timeout), connected=False)
        except aiohttp.ClientHttpProxyError as error:
            return Trouble(f"connection: the proxy answers HTTP {error.status}", connected=False)
        except TimeoutError:
            return Trouble(f"no answer within {timeout.total:g} s", paid=True)
        except (aiohttp.ClientError, OSError) as error:
            paid = isinstance(error, aiohttp.ClientPayloadError)  # the answer had begun
            return Trouble(f"connection broken ({type(error).__name__})", paid)
        if raw is None:
            return Trouble(f"an answer of more than {self._most:,} bytes", paid=True)
        return Answer(response.status, parsed(raw), response.headers, response.reason or "")

    async def _body(self, response: aiohttp.ClientResponse) -> bytes | None:
        """An answer's bytes, unpacked; None, after closing the connection, if there are too many."""
        pieces, size = [], 0
        async for piece in response.content.iter_any():
            size += len(piece)
            if size > self._most:
                response.close()
                return None
            pieces.append(piece)
        return b"".join(pieces)


def _connection_problem(error: Exception, timeout: aiohttp.ClientTimeout) -> str:
    """Why the connection failed, and what to check."""
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return "can't reach the proxy that the environment names (HTTPS_PROXY or ALL_PROXY)"
    if isinstance(error, aiohttp.InvalidURL):
        return "not a valid address"
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return f"no connection within {timeout.sock_connect or timeout.total:g} s; are host and port right?"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "host not found"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return "its certificate isn't trusted"
    if isinstance(error, aiohttp.ClientSSLError):
        return "it doesn't speak TLS; http instead of https?"
    if getattr(getattr(error, "os_error", None), "errno", None) == errno.ECONNREFUSED:
        return "connection refused; is the server up, and is the port right?"
    return f"can't connect ({type(getattr(error, 'os_error', None) or error).__name__})"


class _Connections(aiohttp.TCPConnector):
    """Reuses a connection only if it received no unsolicited data: a late second copy of an answer would be taken for
    the next request's.
    """

    async def _get(self, key: Any, traces: Any) -> Any:
        while (found := await super()._get(key, traces)) is not None:
            if found.protocol is None or not found.protocol.should_close:
                return found
            found.close()
        return None
