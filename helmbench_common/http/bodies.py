"""Reads response bodies: JSON, errors, token counts. Nothing in them is trusted."""

from __future__ import annotations

import json
import re
from typing import Any

CODE = re.compile(r"[\w.\-]{1,60}")
MOST_TOKENS = 10_000_000  # per request: more than any model's context window


def parsed(raw: bytes) -> Any:
    """A body's JSON; None if it isn't JSON."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def error_text(body: Any) -> str:
    """An error's code and message on one line, in the formats of OpenAI, Anthropic and FastAPI."""
    if not isinstance(body, dict):
        return ""
    error = body.get("error", body)
    parts = [error.get("code"), error.get("message") or error.get("detail")] if isinstance(error, dict) else [error]
    return " ".join(" ".join(str(p) for p in parts if p is not None).split())


def error_code(body: Any) -> str | None:
    """The code or type of an OpenAI-style error, if it is a plain word."""
    error = body.get("error") if isinstance(body, dict) else None
    named = [error.get(k) for k in ("code", "type")] if isinstance(error, dict) else []
    return next((str(n) for n in named if n is not None and CODE.fullmatch(str(n))), None)


def tokens(usage: Any, *names: str) -> int | None:
    """The first of these `usage` fields that is a plausible token count for one request, or None."""
    known = [usage.get(name) for name in names] if isinstance(usage, dict) else []
    return next((n for n in known if type(n) is int and 0 <= n <= MOST_TOKENS), None)
