"""Untrusted JSON → our models, or what is wrong with it in one line. Refuses what a lenient reader would let pass
unseen.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from helmbench_common.errors import HelmbenchError

M = TypeVar("M", bound=BaseModel)
DIGITS = 18  # of a whole number: what fits 64 bits
VALUES = 50_000  # fields and entries in one JSON text: a panel of sixteen with all that was measured has about half
WRONG = 200  # wrong fields in one text up to which they are looked at one by one: each takes as much as a page


class UnreadableError(HelmbenchError):
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
        value = json.loads(
            text, object_pairs_hook=once, parse_constant=_no_constant, parse_float=_finite, parse_int=_short
        )
    except UnreadableError:
        raise
    except RecursionError:
        raise UnreadableError("nesting", "is nested too deeply to be read") from None
    except ValueError as error:
        raise UnreadableError("json", f"is not JSON ({error})"[:200]) from None
    if _more_than(VALUES, value):
        raise UnreadableError("too_many_values", f"has more than {VALUES:,} fields and entries; expected fewer")
    del value
    try:
        return model.model_validate_json(text, strict=True)
    except ValidationError as error:
        raise _refusal(error) from None


def _refusal(error: ValidationError) -> UnreadableError:
    if error.error_count() > WRONG:
        return UnreadableError(
            "schema", f"has {error.error_count():,} fields or entries that are none of {error.title}"
        )
    errors = error.errors(include_url=False, include_context=False)
    if errors[0]["type"] != "json_invalid":
        return UnreadableError("schema", "; ".join(_said(e) for e in errors[:8]))
    if "recursion" in errors[0]["msg"]:
        return UnreadableError("nesting", "is nested too deeply to be read")
    said = f"holds an escape that is no character, such as half of a surrogate pair ({errors[0]['msg']})"
    return UnreadableError("encoding", said)


def _more_than(most: int, value: Any) -> bool:
    """Whether a JSON value has more than `most` fields and entries, however they are nested."""
    held: list[Any] = [value]
    seen = 0
    while held:
        part = held.pop()
        inner: Any = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        seen += len(inner)
        if seen > most:
            return True
        held += [x for x in inner if isinstance(x, dict | list)]
    return False


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
