"""JSON lines, the format between all stages: one reader and one writer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TypeVar

from pydantic import BaseModel, ValidationError

from helmbench_common.errors import HelmbenchError
from helmbench_common.formats import json_file
from helmbench_common.formats.plain_file import opened

LINE = "line"  # replaces a field name if the whole line is wrong
LONGEST = 64 * 2**20  # bytes of a line
SURROGATES = re.compile("[\ud800-\udfff]")  # halves of surrogate pairs: valid in JSON, not in UTF-8

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
Bad = Callable[[int, ValueError], None]  # receives a bad line's number and what is wrong


class LineError(HelmbenchError, ValueError):
    """A bad line: `path:line: what is wrong; what was expected`."""


def objects(path: Path, bad: Bad | None = None, *, strict: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, object) for each line that isn't blank. A line that isn't an object goes to `bad` and is skipped.

    `strict`, for hand-written files: duplicate keys and NaN are errors too.

    Raises:
        LineError: a bad line, without `bad`. OSError: the file can't be read.
    """
    with opened(path) as file:
        yield from _read(_split(file), path, _strict if strict else loads, bad)


def objects_in(
    lines: Iterable[str | bytes], where: str | Path, bad: Bad | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """`objects` for lines from elsewhere; errors name them `where`."""
    return _read(lines, where, loads, bad)


def models(path: Path, model: type[M], bad: Bad | None = None, *, strict: bool = False) -> Iterator[tuple[int, M]]:
    """`objects` as models; a line that doesn't validate goes to `bad` as a ValidationError."""
    read = model.model_validate_json
    with opened(path) as file:
        yield from _read(_split(file), path, (lambda line: (_strict(line), read(line))[1]) if strict else read, bad)


def loads(line: str | bytes) -> dict[str, Any]:
    """One line's object.

    Raises:
        ValueError: it isn't one; the message begins with `is`.
    """
    return _object(_text(line), json_file.lenient)


def _strict(line: str) -> dict[str, Any]:
    return _object(line, json_file.strict)


def _object(line: str, decode: Callable[[str], Any]) -> dict[str, Any]:
    try:
        value = decode(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error}") from None
    except ValueError as error:  # over a limit
        raise ValueError(f"{error}; expected a JSON object") from None
    if not isinstance(value, dict):
        raise ValueError(f"is a {type(value).__name__}; expected an object")
    return value


def _text(line: str | bytes) -> str:
    try:
        return line if isinstance(line, str) else line.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 ({error.reason} at byte {error.start} of the line)") from None


def line(record: BaseModel | Mapping[str, Any]) -> str:
    """A record as a line with its line end; half a surrogate pair becomes U+FFFD."""
    # pydantic raises on half a surrogate pair.
    text = record.model_dump_json() if isinstance(record, BaseModel) else plain(json.dumps(record, ensure_ascii=False))
    return f"{text}\n"


def lines(records: Iterable[BaseModel | Mapping[str, Any]]) -> str:
    """Records as the text of a file."""
    return "".join(map(line, records))


def first_problem(why: ValueError) -> tuple[str, str]:
    """The first problem in a line: the field, or LINE, and what is wrong."""
    if not isinstance(why, ValidationError):
        return LINE, str(why)
    first = why.errors()[0]
    return ".".join(map(str, first["loc"])) or LINE, first["msg"]


def plain(text: str) -> str:
    """Text that can be encoded as UTF-8: halves of surrogate pairs become U+FFFD."""
    return SURROGATES.sub("\ufffd", text)


def _split(file: IO[bytes]) -> Iterator[bytes]:
    return iter(lambda: file.readline(LONGEST + 1), b"")


def _read(
    lines: Iterable[str | bytes], where: str | Path, read: Callable[[str], T], bad: Bad | None
) -> Iterator[tuple[int, T]]:
    for number, raw in enumerate(lines, start=1):
        try:
            if len(raw) > LONGEST:
                raise ValueError(f"is longer than {LONGEST:,} bytes; expected one record per line")
            text = _text(raw)
            text = text.removeprefix("\ufeff") if number == 1 else text
            if not text.strip():
                continue
            value = read(text)
        except ValueError as why:
            if not bad:
                field, what = first_problem(why)
                at = f"{where}:{number}: {field}: " if field != LINE else f"{where}:{number}: "
                raise LineError(at + what) from None
            bad(number, why)
            if len(raw) > LONGEST:
                return  # the rest of the line follows
        else:
            yield number, value
