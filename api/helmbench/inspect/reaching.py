"""A server that is down is said at once: Inspect waits and asks again for as long as nobody answers."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from inspect_ai._util.error import PrerequisiteError
from inspect_ai.model import Model, get_model

SECONDS = 5.0


def reach(model: Model | None = None) -> None:
    """Opens a connection to the model's server and closes it again; nothing is sent. Models that name no address, and
    those behind a proxy, are left to Inspect.

    Raises:
        PrerequisiteError: nobody listens there.
    """
    address = getattr((model or get_model()).api, "base_url", None)
    parts = urlsplit(address if isinstance(address, str) else "")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return
    if parts.scheme in getproxies() and not proxy_bypass(parts.hostname):
        return
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    try:
        socket.create_connection((parts.hostname, port), timeout=SECONDS).close()
    except OSError as error:
        raise PrerequisiteError(
            f"helmbench: no answer at {parts.hostname}:{port} ({error}); start the server, or give its address "
            "with --model-base-url"
        ) from None
