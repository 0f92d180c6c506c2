"""Reads what servers put into their bodies: JSON, errors, token counts. Nothing in them is trusted."""

from __future__ import annotations

import json
import re
from typing import Any

CODE = re.compile(r"[\w.\-]{1,60}")
MOST_TOKENS = 10_000_000  # of one request: no model's window holds more


def parsed(raw: bytes) -> Any:
    """The JSON of a body; None where it is none."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def error_text(body: Any) -> str:
    """An error's code and message on one line, as OpenAI, Anthropic and FastAPI put them."""
    if not isinstance(body, dict):
        return ""
    error = body.get("error", body)
    parts = [error.get("code"), error.get("message") or error.get("detail")] if isinstance(error, dict) else [error]
    return " ".join(" ".join(str(p) for p in parts if p is not None).split())


def error_code(body: Any) -> str | None:
    """The code or type of an OpenAI-style error, where it is a plain word."""
    error = body.get("error") if isinstance(body, dict) else None
    named = [error.get(k) for k in ("code", "type")] if isinstance(error, dict) else []
    return next((str(n) for n in named if n is not None and CODE.fullmatch(str(n))), None)


def tokens(usage: Any, *names: str) -> int | None:
    """The first of these fields of a `usage` that is a whole number that a request can use; None where none is."""
    known = [usage.get(name) for name in names] if isinstance(usage, dict) else []
    return next((n for n in known if type(n) is int and 0 <= n <= MOST_TOKENS), None)
