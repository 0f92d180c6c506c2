"""CSV: a sheet saved by a spreadsheet, or a table of any length.

A sheet may have commas, semicolons or tabs, UTF-8 or UTF-16, any line ends, empty last columns, a first line `sep=;`.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from helmbench_common.formats.plain_file import LONGEST, read_bytes, text_lines
from helmbench_common.formats.refused import FormatError, shown

BYTES = 2**27  # largest sheet; its rows take many times that in memory
COLUMNS, STREAM_COLUMNS = 1_000, 10_000
DELIMITERS = ",;\t"
SAVE = "in Excel save it as 'CSV UTF-8', in LibreOffice as 'Text CSV' with the character set 'Unicode (UTF-8)'"
QUOTE = "a cell that begins in this row may lack its end quote"
csv.field_size_limit(LONGEST)  # process-wide; a cell may hold a conversation, and the default is 128 kB
Bad = Callable[[int, str], None]  # receives a bad row's line and what is wrong


def load(path: Path, expected: str, most: int = BYTES) -> str:
    """The text of a sheet. `expected`: a description of the file.

    Raises:
        FormatError: it can't be read, is too long, or has an unknown encoding.
    """
    raw = read_bytes(path, expected, most)
    if raw.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise FormatError(path, None, f"is a spreadsheet's own file, not CSV; {SAVE}; expected {expected}")
    marked = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return raw.decode("utf-16" if marked else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = None if marked else raw.count(b"\n", 0, error.start) + 1
        raise FormatError(path, line, f"can't be read (not UTF-8); {SAVE}; expected {expected}") from None


def rows(text: str, path: Path | str, comment: str = "\0") -> Iterator[tuple[int, list[str]]]:
    """(line on which the row ends, cells) of a sheet, header first, without empty cells after the header's last.

    Skips empty rows, and rows above the header that start with `comment`.

    Raises:
        FormatError: the text stops being CSV at some line.
    """
    if (zero := text.find("\0")) >= 0:
        raise FormatError(path, text.count("\n", 0, zero) + 1, "not CSV (contains a zero byte)")
    head = next((x for x in text.splitlines() if x.strip() and not x.lstrip('"').startswith((comment, "sep="))), "")
    delimiter = max(DELIMITERS, key=head.count)  # the first if tied: a single column has commas
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    width = 0
    try:
        for cells in reader:
            if not any(map(str.strip, cells)) or (not width and cells[0].startswith((comment, "sep="))):
                continue
            width = width or max(n for n, cell in enumerate(cells, start=1) if cell.strip())
            if width > COLUMNS:
                raise FormatError(path, reader.line_num, f"has {width:,} columns; expected at most {COLUMNS:,}")
            yield reader.line_num, cells if any(map(str.strip, cells[width:])) else cells[:width]
    except csv.Error as error:
        raise FormatError(path, reader.line_num, f"is not CSV ({error})") from None


def records(text: str, path: Path | str, bad: Bad, comment: str = "\0") -> Iterator[tuple[int, dict[str, str]]]:
    """(line, row by column name) of a sheet. A row of the wrong width goes to `bad` and is skipped; a duplicate column
    goes to `bad` and stops reading.

    Raises:
        FormatError: as in `rows`.
    """
    header: list[str] = []
    for line, row in rows(text, path, comment):
        if not header:
            header = [name.strip() for name in row]
            if repeated := duplicate(header, header):
                return bad(line, repeated)
        elif len(row) == len(header):
            yield line, dict(zip(header, row, strict=True))
        else:
            bad(line, f"has {len(row)} cells, the header {len(header)}")


def stream(path: Path, expected: str, *, strict: bool = True) -> Iterator[tuple[int, list[str]]]:
    """(line on which the row starts, cells) of a comma-separated table of any length, header first.

    `strict`: a misplaced quote is an error, not a character.

    Raises:
        FormatError: it can't be read, stops being CSV at some line, or has a row longer than `LONGEST` characters.
    """
    began, size = 1, 0

    def lines() -> Iterator[str]:
        nonlocal size
        for _, text in text_lines(path, expected):
            size += len(text)
            if size > LONGEST:
                raise FormatError(path, began, f"a row is longer than {LONGEST:,} characters; {QUOTE}")
            yield text

    reader = csv.reader(lines(), strict=strict)
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            ended = str(error) == "unexpected end of data"
            at, what = (began, f"{error}: {QUOTE}") if ended else (reader.line_num, str(error))
            raise FormatError(path, at, f"is not CSV: {what}; expected {expected}") from None
        if cells is None:
            return
        if len(cells) > STREAM_COLUMNS:
            raise FormatError(path, began, f"has {len(cells):,} cells; expected at most {STREAM_COLUMNS:,}")
        if cells or began == 1:
            yield began, cells
        began, size = reader.line_num + 1, 0


def duplicate(header: list[str], used: Collection[str]) -> str | None:
    """An error message for the first of the `used` columns that appears twice in the header, or None."""
    name = next((name for name, n in Counter(header).items() if n > 1 and name in used), None)
    return None if name is None else f"column '{shown(name)}' appears twice; expected once"
