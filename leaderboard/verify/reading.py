"""Untrusted JSON → our models, or what is wrong with it in one line. Refuses what a lenient reader would let pass
unseen.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

M = TypeVar("M", bound=BaseModel)
DIGITS = 18  # of a whole number: what fits 64 bits


class UnreadableError(Exception):
    """A text that is not the JSON that was expected. `kind`: a stable word; the message says where and what was
    expected.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def decode(raw: bytes) -> str:
    """Raises:
    UnreadableError: no UTF-8, or with a byte order mark.
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableError("encoding", f"is not UTF-8 ({error.reason} at byte {error.start})") from None
    if text.startswith("\ufeff"):
        raise UnreadableError("encoding", "begins with a byte order mark; expected plain UTF-8")
    return text


def read(raw: bytes, model: type[M]) -> M:
    """One JSON object as a model, in strict types: no text for a number, no field twice, no number that is none.

    Raises:
        UnreadableError: anything else; all wrong fields are named.
    """
    text = decode(raw)
    try:
        json.loads(text, object_pairs_hook=once, parse_constant=_no_constant, parse_float=_finite, parse_int=_short)
    except UnreadableError:
        raise
    except RecursionError:
        raise UnreadableError("nesting", "is nested too deeply to be read") from None
    except ValueError as error:
        raise UnreadableError("json", f"is not JSON ({error})"[:200]) from None
    try:
        return model.model_validate_json(text, strict=True)
    except ValidationError as error:
        if error.errors()[0]["type"] == "json_invalid":
            raise UnreadableError(
                "encoding",
                f"holds an escape that is no character, such as half of a surrogate pair ({error.errors()[0]['msg']})",
            ) from None
        raise UnreadableError("schema", "; ".join(_said(e) for e in error.errors()[:8])) from None


def _said(error: Any) -> str:
    where = ".".join(str(part)[:60] for part in error["loc"]) or "the object"
    given = repr(error["input"])
    return f"{where}: {error['msg']}" + (
        f" (is {given[:60]})" if error["type"] not in ("missing", "json_invalid") and len(given) <= 60 else ""
    )


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose fields stand once each, for `object_pairs_hook`.

    Raises:
        UnreadableError: one stands twice, so that two readers could read two things.
    """
    seen = dict(pairs)
    if len(seen) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise UnreadableError("duplicate_key", f"field {twice[:60]!r} stands twice in one object")
    return seen


def _no_constant(name: str) -> Any:
    raise UnreadableError("not_finite", f"holds {name}; expected finite numbers")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise UnreadableError("not_finite", f"holds {text[:20]}, which is infinite; expected finite numbers")
    return value


def _short(text: str) -> int:
    if len(text.lstrip("-")) > DIGITS:
        raise UnreadableError(
            "huge_number", f"holds a whole number of {len(text.lstrip('-'))} digits; expected at most {DIGITS}"
        )
    return int(text)
