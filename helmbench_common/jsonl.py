"""JSON lines, the format of everything that passes between the stages: the one reader and the one writer.

Built on `jsonlines`, which decodes and frames lines. What it lacks is added: the numbers of good lines too, a limit on
a line's length, models, and a caller's own words for a bad line. Its choice of a JSON library by what happens to be
installed is not used.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TypeVar

import jsonlines
from pydantic import BaseModel, ValidationError

from helmbench_common.errors import HelmbenchError
from helmbench_common.formats import json_file
from helmbench_common.formats.plain_file import opened

LINE = "line"  # stands in the place of a field's name where the whole line is wrong
LONGEST = 64 * 2**20  # bytes of a line; a longer one is no record of anybody's
SURROGATES = re.compile("[\ud800-\udfff]")  # halves of surrogate pairs: JSON can hold one, no file can

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
Bad = Callable[[int, ValueError], None]  # what to do about a line: its number, and why it is none. May raise


class LineError(HelmbenchError, ValueError):
    """A line that is not what was expected: `path:line: what is wrong; what was expected`."""


def objects(path: Path, bad: Bad | None = None, *, strict: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, object) for every line that isn't blank.

    A line that is no JSON object is given to `bad`, after which reading goes on. `strict`: for what people wrote; so is
    one in which a name stands twice, or a number is none.

    Raises:
        LineError: such a line, where there is no `bad`. OSError: the file can't be read.
    """
    with opened(path) as file:
        yield from _read(_split(file), path, _strict if strict else loads, bad)


def objects_in(
    lines: Iterable[str | bytes], where: str | Path, bad: Bad | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """`objects` of lines that come from elsewhere than a plain file; `where` is what an error calls it."""
    return _read(lines, where, loads, bad)


def models(path: Path, model: type[M], bad: Bad | None = None, *, strict: bool = False) -> Iterator[tuple[int, M]]:
    """(line number, model) for every line that isn't blank; what doesn't validate is given to `bad` as ValidationError.
    `strict`: as of `objects`.

    Raises:
        LineError: such a line, where there is no `bad`. OSError: the file can't be read.
    """
    with opened(path) as file:
        read = model.model_validate_json
        yield from _read(_split(file), path, (lambda line: (_strict(line), read(line))[1]) if strict else read, bad)


def loads(line: str | bytes) -> dict[str, Any]:
    """One line's object.

    Raises:
        ValueError: it is none; the message says what it is.
    """
    return _object(line, json_file.lenient)


def _strict(line: str | bytes) -> dict[str, Any]:
    return _object(line, json_file.strict)


def _object(line: str | bytes, decode: Callable[[str], Any]) -> dict[str, Any]:
    try:
        value = decode(line if isinstance(line, str) else line.decode())
    except UnicodeDecodeError as error:
        raise ValueError(_not_utf8(error)) from None
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error}") from None
    except ValueError as error:  # over a limit
        raise ValueError(f"{error}; expected a JSON object") from None
    if not isinstance(value, dict):
        raise ValueError(f"is a {type(value).__name__}; expected an object")
    return value


def line(record: BaseModel | Mapping[str, Any]) -> str:
    """A record as a line with its end, which any file can hold: half a surrogate pair is written as U+FFFD."""
    buffer = io.StringIO()
    jsonlines.Writer(buffer, dumps=_dumps).write(record)
    return buffer.getvalue()


def lines(records: Iterable[BaseModel | Mapping[str, Any]]) -> str:
    """Records as the text of a file."""
    buffer = io.StringIO()
    jsonlines.Writer(buffer, dumps=_dumps).write_all(records)
    return buffer.getvalue()


def first_problem(why: ValueError) -> tuple[str, str]:
    """Of what is wrong with a line the first: the field, or LINE, and what it is."""
    if not isinstance(why, ValidationError):
        return LINE, str(why)
    first = why.errors()[0]
    return ".".join(map(str, first["loc"])) or LINE, first["msg"]


def plain(text: str) -> str:
    """Text that can be encoded: halves of surrogate pairs, which are no characters, replaced."""
    return SURROGATES.sub("\ufffd", text)


def _dumps(record: BaseModel | Mapping[str, Any]) -> str:
    # pydantic refuses half a surrogate pair instead of writing it.
    return record.model_dump_json() if isinstance(record, BaseModel) else plain(json.dumps(record, ensure_ascii=False))


class _LongError(ValueError):
    """A line over the limit; nothing behind it is read."""


def _split(file: IO[bytes]) -> Iterator[bytes]:
    while line := file.readline(LONGEST + 1):
        if len(line) > LONGEST:
            raise _LongError(f"is longer than {LONGEST:,} bytes; expected one record per line")
        yield line


def _read(
    lines: Iterable[str | bytes], where: str | Path, loads: Callable[[str | bytes], T], bad: Bad | None
) -> Iterator[tuple[int, T]]:
    number = 0

    def counted() -> Iterator[str | bytes]:
        nonlocal number
        for line in lines:
            number += 1
            yield line

    reader = jsonlines.Reader(counted(), loads=loads)
    while True:
        try:
            value: Any = reader.read(skip_empty=True)
        except EOFError:
            return
        except jsonlines.InvalidLineError as invalid:
            _tell(bad, where, number, _reason(invalid))
        except _LongError as long:
            return _tell(bad, where, number + 1, long)
        else:
            yield number, value


def _reason(invalid: jsonlines.InvalidLineError) -> ValueError:
    cause = invalid.__cause__
    if isinstance(cause, UnicodeDecodeError):
        return ValueError(_not_utf8(cause))
    return cause if isinstance(cause, ValueError) else invalid


def _not_utf8(error: UnicodeDecodeError) -> str:
    return f"is not UTF-8 ({error.reason} at byte {error.start} of the line)"


def _tell(bad: Bad | None, where: str | Path, number: int, why: ValueError) -> None:
    if bad:
        return bad(number, why)
    field, what = first_problem(why)
    raise LineError(f"{where}:{number}: {field}: {what}" if field != LINE else f"{where}:{number}: {what}") from None
