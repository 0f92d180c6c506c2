"""Untrusted JSON: a whole file in strict mode, or one of very many lines within limits."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from helmbench_common.formats.plain_file import DIGITS, MOST, read_text
from helmbench_common.formats.refused import FormatError, shown

DEPTH = 100  # levels of brackets; code that walks a value may recurse this deep
NUMBER = 400  # characters of a number with a decimal point
KINDS: dict[type, str] = {dict: "an object", list: "a list", str: "a text", bool: "yes or no", type(None): "null"}


def load(path: Path, expected: str, kind: type = dict, most: int = MOST) -> Any:
    """The file at `path`, whose outermost value is a `kind`. `expected`: a description of the file.

    Raises:
        FormatError: it can't be read, isn't JSON, is another kind of value, or is rejected by `strict`.
    """
    return loads(read_text(path, expected, most), path, expected, kind)


def loads(text: str, path: Path | str, expected: str, kind: type = dict) -> Any:
    """`load` for text; errors name it `path`."""
    try:
        value = strict(text)
    except json.JSONDecodeError as error:
        what = f"is not JSON ({error.msg} at character {error.colno}); expected {expected}"
        raise FormatError(path, error.lineno, what) from None
    except ValueError as error:
        raise FormatError(path, None, f"{error}; expected {expected}") from None
    if not isinstance(value, kind):
        raise FormatError(path, 1, f"is {KINDS.get(type(value), 'a number')}; expected {KINDS[kind]}: {expected}")
    return value


def strict(text: str) -> Any:
    """One value.

    Raises:
        ValueError: not JSON, too deeply nested, a duplicate key, NaN, or a number that is too long or too large.
    """
    return _decoded(_STRICT, text)


def lenient(text: str) -> Any:
    """One value; the last of duplicate keys wins, and NaN is allowed.

    Raises:
        ValueError: not JSON, too deeply nested, or an integer that is too long.
    """
    return _decoded(_LENIENT, text)


def _decoded(decoder: json.JSONDecoder, text: str) -> Any:
    deep = f"is nested more than {DEPTH} deep"
    try:
        value = decoder.decode(text)
    except RecursionError:
        raise ValueError(deep) from None
    if text.count("{") + text.count("[") > DEPTH:  # a fast check, true for few lines
        level = [value]
        for _ in range(DEPTH):
            level = [part for v in level for part in (v.values() if type(v) is dict else v if type(v) is list else ())]
        if any(type(v) in (dict, list) for v in level):
            raise ValueError(deep)
    return value


def _whole(written: str) -> int:
    if (digits := len(written.lstrip("-"))) > DIGITS:
        raise ValueError(f"contains a whole number of {digits:,} digits, and {DIGITS} are the most")
    return int(written)


def _finite(written: str) -> float:
    if len(written) > NUMBER:
        raise ValueError(f"contains a number of {len(written):,} characters, and {NUMBER} are the most")
    if not math.isfinite(value := float(written)):
        raise ValueError(f"'{written[:20]}' is too large for a number")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"'{shown(key[:60])}' appears twice in one object")
        found[key] = value
    return found


_LENIENT = json.JSONDecoder(parse_int=_whole)
_STRICT = json.JSONDecoder(parse_int=_whole, parse_float=_finite, parse_constant=_no_constant, object_pairs_hook=_once)
