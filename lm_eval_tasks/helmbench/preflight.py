"""Asked of a server before the first request that may cost: is it there, and does it know the model?

`GET …/models` beside the address of completions costs nothing. It tells a wrong host or port, or a server that is down,
from one that is there. Many servers have no such route, guard it otherwise or list fewer names than they answer to:
whatever else it says is a doubt and no proof, which `wire` settles by one short completion. Redirects are not followed.
"""

from __future__ import annotations

import difflib
import errno
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import aiohttp

from helmbench_common import jsonl
from helmbench_common.errors import HelmbenchError
from helmbench_common.formats.refused import shown as printable
from helmbench_common.http import client
from helmbench_common.http.addresses import secrets, shown

SECONDS = 5.0  # for a connection, and for the list
ENDS = ("/chat/completions", "/completions", "/messages")  # of the addresses whose sibling is the list
GUARDED = frozenset({401, 402, 403, 407})
NO_ROUTE = 501  # the one status of the 500s that says so
SHOWN, LONGEST = 5, 200  # names of a list that are told; characters of one, cut where no key is in the whole


class UnusableError(HelmbenchError):
    """The server has answered nothing at all, and will not."""


class Seen(NamedTuple):
    """What the server said of itself. `doubt`: why it may not answer, empty where nothing speaks against it; `names`:
    the models that it lists.
    """

    doubt: str = ""
    names: tuple[str, ...] = ()


def refuse_keys(model: Any) -> tuple[str, Mapping[str, str]]:
    """The address and headers of one of lm-eval's API models.

    Raises:
        UnusableError: no address, no key where the model's kind insists on one, one that no header can hold, or one in
            the address, which lm-eval writes into the results and every user of the machine sees among its processes.
    """
    if not model.base_url:
        raise UnusableError(
            "base_url is missing in --model_args; expected such as http://HOST:8000/v1/chat/completions"
        )
    try:
        held = any(secrets(model.base_url))
    except ValueError:
        raise UnusableError("base_url in --model_args is no address") from None
    if held:
        raise UnusableError(
            f"base_url {shown(model.base_url)} holds a password or a key, which would stand in the results and in the "
            "list of processes; give it by the environment: OPENAI_API_KEY"
        )
    try:
        header = model.header
    except ValueError as problem:  # lm-eval's word for a key that isn't set
        raise UnusableError(" ".join(str(problem).split())) from None
    if not all(str(value).isascii() and str(value).isprintable() for value in header.values()):
        raise UnusableError("the key in the environment holds characters that no key has; does a line end stand in it?")
    return model.base_url, header


async def look(session: aiohttp.ClientSession, model: Any) -> Seen:
    """One GET, of `SECONDS` at most; `model` is one of lm-eval's API models.

    Raises:
        UnusableError: nothing that takes a connection.
    """
    limits = aiohttp.ClientTimeout(total=SECONDS, sock_connect=SECONDS)
    try:
        async with session.get(
            list_address(model.base_url), headers=model.header, allow_redirects=False, timeout=limits
        ) as response:
            return _read(response.status, await client.body(response) or b"", str(model.model))
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as error:
        raise UnusableError(f"nothing answers at {shown(model.base_url)}: {_why(error)}") from None
    except TimeoutError:
        return Seen()  # it is there, and slow
    except aiohttp.ClientHttpProxyError as error:
        raise UnusableError(
            f"nothing answers at {shown(model.base_url)}: the proxy of the environment says HTTP {error.status}"
        ) from None
    except aiohttp.ClientError as error:
        return Seen(f"it breaks off ({type(error).__name__})")


def _read(status: int, raw: bytes, name: str) -> Seen:
    if status in GUARDED or (status >= 500 and status != NO_ROUTE):
        return Seen(f"HTTP {status}")
    names = _names(raw) if status == 200 else ()
    return Seen(f"it doesn't list {name!r}" if names and name not in names else "", names)


def _names(raw: bytes) -> tuple[str, ...]:
    """The ids of a list in OpenAI's or Anthropic's form; none where it is no such list."""
    try:
        listed = json.loads(raw)["data"]
        return tuple(printable(jsonl.plain(str(entry["id"]))) for entry in listed)
    except (ValueError, RecursionError, KeyError, TypeError):
        return ()


def _why(error: Exception) -> str:
    """In words for whoever typed the address."""
    found = getattr(error, "os_error", None)
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return "the proxy of the environment (HTTPS_PROXY or ALL_PROXY) can't be reached"
    if isinstance(error, aiohttp.InvalidURL):
        return "this is no address"
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return f"no connection within {SECONDS:.0f} s; are host and port right?"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "there is no such host"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return "its certificate isn't trusted; see ca_cert_path and verify_certificate of --model_args"
    if isinstance(error, aiohttp.ClientSSLError):
        return "it speaks no TLS; is it http, and not https?"
    if isinstance(found, OSError) and found.errno == errno.ECONNREFUSED:
        return "connection refused; is the server up, and is the port right?"
    return f"connection: {type(error).__name__}"


def list_address(base_url: str) -> str:
    """Where the server may list its models; the address itself where its form is none that is known."""
    parts = urlsplit(base_url)
    path = parts.path.rstrip("/")
    end = next((e for e in ENDS if path.endswith(e)), None)
    return urlunsplit((*parts[:2], path.removesuffix(end) + "/models", *parts[3:])) if end else base_url


def hint(reason: str, model: Any, names: Sequence[str]) -> str:
    """What may be wrong where a server answers with this, in words that follow it; empty where nothing is known."""
    status = reason.removeprefix("HTTP ")[:3]
    if status in ("401", "403", "407"):
        sent = str(model.header.get("Authorization", "")).strip() != "Bearer"
        return "; is the key right? May it ask this model?" if sent else "; no key was sent: is OPENAI_API_KEY set?"
    if status in ("400", "404", "405") and names and model.model not in names:
        near = difflib.get_close_matches(str(model.model), names, n=1)
        known = ", ".join(names[:SHOWN]) + (" …" if len(names) > SHOWN else "")
        return f"; it lists {known}" + (f"; did you mean {near[0]}?" if near else "")
    if status in ("404", "405"):
        whole = urlsplit(model.base_url).path.rstrip("/").endswith(ENDS)
        example = "" if whole else " It is the whole address, such as http://HOST:8000/v1/chat/completions"
        return f"; is the path of base_url right?{example}"
    return "; it is there, and not ready" if status.startswith("5") else ""
