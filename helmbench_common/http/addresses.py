"""A server's address: how it is shown, what of it is secret, and which proxy the environment names for it.

Both clients follow the same rule. An https address is reached through the proxy of HTTPS_PROXY (else ALL_PROXY), which
sees the host's name and no word more; NO_PROXY leaves hosts out. An http address is reached directly whatever
HTTP_PROXY says: a proxy would read the key and every message.
"""

from __future__ import annotations

import base64
import re
import urllib.request
from collections.abc import Callable, Iterator
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from helmbench_common.formats.refused import shown as printable

KEY_NAMES = re.compile(r"key|token|secret|sig|pass|pwd|auth|credential|code|session|cookie", re.IGNORECASE)
LONGEST_HOST = 80  # characters that are told of one


def shown(url: str) -> str:
    """The address without what may be a secret in it: a user's name and password, a query, a fragment."""
    try:
        parts = urlsplit(url)
        host, path = parts.netloc.rpartition("@")[2], parts.path
    except ValueError:
        return "an address that can't be read"
    # A / in a password ends the host early, and what follows is the password's.
    scheme = f"{parts.scheme}:{'//' if host else ''}" if parts.scheme else ""
    return "an address that can't be read" if "@" in path else printable(f"{scheme}{host}{path}")


def usable(url: str) -> bool:
    """Whether it is a whole http or https address."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def secrets(url: str) -> Iterator[str]:
    """What of an address nobody else may read: user and password, as they stand, decoded, and as they are sent; and
    the query's values whose names are those of keys.
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
    """What is said of a redirect. Its host is named, and nothing is sent there: neither key nor prompts are for it."""
    whole = (location or "").replace("\t", "")  # as urlsplit reads it
    try:
        host = urlsplit(whole).hostname or "the same host"
    except ValueError:
        host = "no address"
    # Whole or not at all: a key with a / in it is a host and a path, and no part of it must be left.
    held = holds_key(whole) or holds_key(unquote(whole))
    told = "another host" if held or len(host) > LONGEST_HOST else ascii(host)[1:-1]
    return f"sends elsewhere ({told}), which isn't followed"


def proxy(url: str) -> str | None:
    """The proxy by which an address is reached; None where it is reached directly. (aiohttp's own trust_env would also
    read ~/.netrc, and send keys over http.)

    Raises:
        ValueError: the environment names one that can't be used; the message doesn't repeat its password.
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
