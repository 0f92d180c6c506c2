"""JSON that somebody wrote → plain values.

The reader of a whole file is strict: a key that stands twice, NaN, and a number that no computer holds are errors with
their line. `lenient` is for lines, of which there are very many: it bounds depth and digits, and costs next to nothing.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from helmbench_common.formats.plain_file import DIGITS, MOST, read_text
from helmbench_common.formats.refused import FormatError, shown

DEPTH = 100  # no record of anybody's comes near; whatever walks through a value later may call itself as often
NUMBER = 400  # characters of a number with a point: of a double, all digits but zeros
KINDS: dict[type, str] = {dict: "an object", list: "a list", str: "a text", bool: "yes or no", type(None): "null"}
BOXES = (dict, list)
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)


def load(path: Path, expected: str, kind: type = dict, most: int = MOST) -> Any:
    """The file at `path`, whose outermost value is of `kind`. `expected`: what it should be, in words.

    Raises:
        FormatError: it can't be read, is no JSON, is over a limit, or something else; the first such line.
    """
    return loads(read_text(path, expected, most), path, expected, kind)


def loads(text: str, path: Path | str, expected: str, kind: type = dict) -> Any:
    """`load` of a text that was read already; `path` is what an error calls it.

    Raises:
        FormatError: as `load`.
    """
    try:
        value = strict(text)
    except json.JSONDecodeError as error:
        said = f"is not JSON ({error.msg} at character {error.colno}); expected {expected}"
        raise FormatError(path, error.lineno, said) from None
    except ValueError as error:
        line = text.count("\n", 0, next(_wrong(text), (0, ""))[0]) + 1
        raise FormatError(path, line, f"{error}; expected {expected}") from None
    if not isinstance(value, kind):
        raise FormatError(path, 1, f"is {KINDS.get(type(value), 'a number')}; expected {KINDS[kind]}: {expected}")
    return value


def strict(text: str) -> Any:
    """One value.

    Raises:
        ValueError: it is none, or what no file should hold; the message says which.
    """
    try:
        value = _STRICT.decode(text)
        if not is_deep(value):
            return value
    except json.JSONDecodeError:
        raise
    except (ValueError, RecursionError):
        pass  # which of its numbers, names or brackets it was, the decoder doesn't say
    raise ValueError(next(_wrong(text), (0, "can't be read"))[1])


def lenient(text: str) -> Any:
    """One value; of a name that stands twice the last one, and NaN as Python reads it.

    Raises:
        ValueError: it is none, nested too deeply, or has a whole number of too many digits; the message says which.
    """
    try:
        value = _LENIENT.decode(text)
    except RecursionError:
        raise ValueError(_DEEP) from None
    # Few lines have as many brackets, and counting them is fast.
    if text.count("{") + text.count("[") > DEPTH and is_deep(value):
        raise ValueError(_DEEP)
    return value


def is_deep(value: Any) -> bool:
    """Whether a value is nested more than DEPTH deep."""
    level = [value] if type(value) in BOXES else []
    for _ in range(DEPTH):
        parts = (part for one in level for part in (one.values() if type(one) is dict else one))
        if not (level := [part for part in parts if type(part) in BOXES]):
            return False
    return True


_DEEP = f"is nested more than {DEPTH} deep"


def _whole(written: str) -> int:
    if len(written) > DIGITS and len(written.lstrip("-")) > DIGITS:
        raise ValueError(f"contains a whole number of {len(written.lstrip('-')):,} digits, and {DIGITS} are the most")
    return int(written)


def _finite(written: str) -> float:
    if len(written) > NUMBER:
        raise ValueError(f"contains a number of {len(written):,} characters, and {NUMBER} are the most")
    if not math.isfinite(value := float(written)):
        raise ValueError(f"'{written[:20]}' is too large for a number")
    return value


def _no_constant(_: str) -> Any:
    raise ValueError


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


_LENIENT = json.JSONDecoder(parse_int=_whole)
_STRICT = json.JSONDecoder(parse_int=_whole, parse_float=_finite, parse_constant=_no_constant, object_pairs_hook=_once)


def _wrong(text: str) -> Iterator[tuple[int, str]]:
    """Where a text that is JSON says what no file should, in order."""
    names: list[set[str] | None] = []  # of every open bracket: the names of its object so far, None of a list
    tokens = list(_TOKEN.finditer(text))
    for match, after in zip(tokens, [*(m[0] for m in tokens[1:]), ""], strict=True):
        token, at = match[0], match.start()
        if token in "{[":
            names.append(set() if token == "{" else None)
            if len(names) > DEPTH:
                yield at, _DEEP
        elif token in "}]":
            del names[-1:]
        elif token[0] == '"' and after == ":" and names and (own := names[-1]) is not None:
            name = str(json.loads(token))
            if name in own:
                yield at, f"'{shown(name[:60])}' appears twice in one object"
            own.add(name)
        elif token in ("NaN", "Infinity", "-Infinity"):
            yield at, f"{token} is not a number"
        elif token[0] in "-0123456789" and (why := _no_number(token)):
            yield at, why


def _no_number(token: str) -> str | None:
    try:
        _whole(token) if token.lstrip("-").isdecimal() else _finite(token)
    except ValueError as error:
        return str(error)
    return None
