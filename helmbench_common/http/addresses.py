"""A server's address: its printable form, its secret parts, and the proxy that the environment sets for it.

Both clients follow the same rule. Requests to an https address go through the proxy in HTTPS_PROXY (else ALL_PROXY),
which sees only the host name; NO_PROXY excludes hosts. Requests to an http address ignore HTTP_PROXY and go directly:
a proxy would read the key and every message.
"""

from __future__ import annotations

import base64
import re
import urllib.request
from collections.abc import Callable, Iterator
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from helmbench_common.formats.refused import shown as printable

KEY_NAMES = re.compile(r"key|token|secret|sig|pass|pwd|auth|credential|code|session|cookie", re.IGNORECASE)
LONGEST_HOST = 80  # characters of a host name that are shown


def shown(url: str) -> str:
    """The address without parts that may be secret: user name and password, query, fragment."""
    try:
        parts = urlsplit(url)
        host, path = parts.netloc.rpartition("@")[2], parts.path
    except ValueError:
        return "an address that can't be read"
    # A / in a password ends the host early; the rest belongs to the password.
    scheme = f"{parts.scheme}:{'//' if host else ''}" if parts.scheme else ""
    return "an address that can't be read" if "@" in path else printable(f"{scheme}{host}{path}")


def usable(url: str) -> bool:
    """Whether it is a complete http or https address."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def secrets(url: str) -> Iterator[str]:
    """The secrets in an address: user and password, as written, decoded and as sent; and the values of query parameters
    named like keys.
    """
    parts = urlsplit(url)
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    if user or password:
        plain = f"{unquote(user)}:{unquote(password)}"
        yield base64.b64encode(plain.encode()).decode()
        yield from {user, unquote(user), password, unquote(password)} - {""}
    for value in (value for name, value in parse_qsl(parts.query) if KEY_NAMES.search(name)):
        yield from {value, quote(value, safe="")}


def elsewhere(location: str | None, holds_key: Callable[[str], bool]) -> str:
    """An error message for a redirect. Names its host; neither the key nor prompts are sent there."""
    whole = (location or "").replace("\t", "")  # as urlsplit reads it
    try:
        host = urlsplit(whole).hostname or "the same host"
    except ValueError:
        host = "no address"
    # All or nothing: a key that contains a / parses as a host and a path, and no part of it may remain.
    held = holds_key(whole) or holds_key(unquote(whole))
    told = "another host" if held or len(host) > LONGEST_HOST else ascii(host)[1:-1]
    return f"sends elsewhere ({told}), which isn't followed"


def proxy(url: str) -> str | None:
    """The proxy for an address; None for a direct connection. (aiohttp's trust_env would also read ~/.netrc, and send
    keys over http.)

    Raises:
        ValueError: the environment names an unusable proxy; the message doesn't repeat its password.
    """
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    if parts.scheme != "https" or urllib.request.proxy_bypass(host):
        return None
    named = urllib.request.getproxies()
    found = (named.get("https") or named.get("all") or "").strip()
    if not found:
        return None
    found = found if "://" in found else f"http://{found}"
    if not usable(found):
        raise ValueError(
            f"HTTPS_PROXY or ALL_PROXY names {shown(found)}; expected http://HOST:PORT, or NO_PROXY={host}"
        )
    return found
