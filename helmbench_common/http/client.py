"""The connections of both clients, the runner's and the judge's: nothing is remembered from one answer to the next, and
no answer takes more memory than an answer may.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aiohttp

MOST = 16 * 2**20  # bytes of an answer, unpacked: a thousand times what the longest reply needs


def session(
    at_once: int,
    timeout: aiohttp.ClientTimeout,
    proxy: str | None,
    headers: Mapping[str, str] | None = None,
    tls: Any = True,
) -> aiohttp.ClientSession:
    """A client without cookies, for `at_once` requests side by side. `tls`: aiohttp's `ssl`."""
    return aiohttp.ClientSession(
        connector=_Connections(limit=at_once, ssl=tls),
        timeout=timeout,
        proxy=proxy,
        headers=headers,
        cookie_jar=aiohttp.DummyCookieJar(),
    )


async def body(response: aiohttp.ClientResponse, most: int = MOST) -> bytes | None:
    """An answer's bytes, unpacked; None where they are more than `most`, and the rest is not taken from the wire.

    Raises:
        aiohttp.ClientError: it breaks off, or isn't packed as its header says. TimeoutError: it takes too long.
    """
    pieces, size = [], 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > most:
            response.close()
            return None
        pieces.append(piece)
    return b"".join(pieces)


class _Connections(aiohttp.TCPConnector):
    """Uses a connection again only where nothing came over it unasked: a late second copy of an answer would be the
    next question's.
    """

    async def _get(self, key: Any, traces: Any) -> Any:
        while (found := await super()._get(key, traces)) is not None:
            if found.protocol is None or not found.protocol.should_close:
                return found
            found.close()
        return None
