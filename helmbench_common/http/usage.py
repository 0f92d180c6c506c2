"""What a server says that it used, as far as it can be true."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOST = 10_000_000  # tokens of one request: no model's window holds more


def tokens(said: object) -> int | None:
    """A count of tokens; None where it is none: no whole number, a negative one, or more than any request can use."""
    return said if isinstance(said, int) and not isinstance(said, bool) and 0 <= said <= MOST else None


def counted(usage: object, *names: str) -> int | None:
    """The first of these fields of a `usage` that is a count; None where none is."""
    known: Mapping[str, Any] = usage if isinstance(usage, dict) else {}
    return next((n for name in names if (n := tokens(known.get(name))) is not None), None)
