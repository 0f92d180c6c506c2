"""CSV of any length, a row at a time: a cell whose end quote is missing ends at a limit, and not with the file."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

from helmbench_common.formats.refused import FormatError, shown
from helmbench_common.formats.text_lines import LONGEST, text_lines

COLUMNS = 10_000
QUOTE = "a cell that begins in this row may lack its end quote"


def rows(path: Path, expected: str, *, strict: bool = True) -> Iterator[tuple[int, list[str]]]:
    """The rows with the line that each begins on, the header first; empty lines below it are left out. `strict`: a
    quote that stands where none may is an error, not a character.

    Raises:
        FormatError: it can't be read, is no CSV from a line on, or a row is longer than `LONGEST` characters.
    """
    # A cell may hold a whole conversation; the module's own limit is 128 kB, and is the process's.
    csv.field_size_limit(LONGEST)
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
            at, said = (began, f"{error}: {QUOTE}") if ended else (reader.line_num, str(error))
            raise FormatError(path, at, f"is not CSV: {said}; expected {expected}") from None
        if cells is None:
            return
        if len(cells) > COLUMNS:
            raise FormatError(path, began, f"has {len(cells):,} cells; expected at most {COLUMNS:,}")
        if cells or began == 1:
            yield began, cells
        began, size = reader.line_num + 1, 0


def twice(header: list[str], named: Collection[str]) -> str | None:
    """Of the columns that somebody named one that stands twice, said as an error; another's copy harms nobody."""
    name = next((name for name, n in Counter(header).items() if n > 1 and name in named), None)
    return None if name is None else f"column '{shown(name)}' appears twice; expected once"
