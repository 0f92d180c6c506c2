"""CSV as spreadsheets save it: with commas, semicolons or tabs, with or without a byte order mark, as UTF-8 or UTF-16,
any line ends, empty columns at the end, a first line `sep=;`.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from helmbench_common.formats.plain_file import read_bytes
from helmbench_common.formats.refused import FormatError, shown

BYTES = 2**27  # of a sheet, whose rows take many times that in memory: 400,000 verdicts of a run are fewer
COLUMNS = 1_000
DELIMITERS = ",;\t"
SAVE = "in Excel save it as 'CSV UTF-8', in LibreOffice as 'Text CSV' with the character set 'Unicode (UTF-8)'"
Bad = Callable[[int, str], None]  # what to do about a row: its line, and what is wrong


def load(path: Path, expected: str, most: int = BYTES) -> str:
    """The text of a sheet. `expected`: what it should be, in words.

    Raises:
        FormatError: it can't be read, is too long, or in an encoding that can't be known; what to do instead.
    """
    raw = read_bytes(path, expected, most)
    if raw.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise FormatError(path, None, f"is a spreadsheet's own file and no CSV; {SAVE}; expected {expected}")
    marked = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return raw.decode("utf-16" if marked else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = None if marked else raw.count(b"\n", 0, error.start) + 1
        raise FormatError(path, line, f"can't be read (not UTF-8); {SAVE}; expected {expected}") from None


def rows(text: str, path: Path | str, comment: str = "\0") -> Iterator[tuple[int, list[str]]]:
    """The rows of a sheet with the line that each ends on, the header first, each without the empty cells that stand
    beyond the header's last name. Rows without any word are left out, and so are those before the header that begin
    with `comment`. `path` is what an error calls the sheet.

    Raises:
        FormatError: it is no CSV from a line on.
    """
    if (zero := text.find("\0")) >= 0:
        raise FormatError(path, text.count("\n", 0, zero) + 1, "not CSV (contains a zero byte)")
    head = next((x for x in text.splitlines() if x.strip() and not x.lstrip('"').startswith((comment, "sep="))), "")
    delimiter = max(DELIMITERS, key=head.count)  # of equals the first: one column alone has commas
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    width = 0
    try:
        for cells in reader:
            named = any(cell.strip() for cell in cells)
            if not named or (not width and cells[0].startswith((comment, "sep="))):
                continue
            width = width or max(n for n, cell in enumerate(cells, start=1) if cell.strip())
            if width > COLUMNS:
                raise FormatError(path, reader.line_num, f"has {width:,} columns; expected at most {COLUMNS:,}")
            beyond = any(cell.strip() for cell in cells[width:])
            yield reader.line_num, cells if beyond else cells[:width]
    except csv.Error as error:
        raise FormatError(path, reader.line_num, f"is not CSV ({error})") from None


def records(text: str, path: Path | str, bad: Bad, comment: str = "\0") -> Iterator[tuple[int, dict[str, str]]]:
    """The rows below the header by its names, with their lines. A row of another width is given to `bad`, after which
    reading goes on; so is a name that stands twice, after which nothing is read.

    Raises:
        FormatError: as `rows`.
    """
    header: list[str] = []
    for line, row in rows(text, path, comment):
        if not header:
            header = [name.strip() for name in row]
            if twice := sorted(name for name, n in Counter(header).items() if n > 1):
                return bad(line, f"column '{shown(twice[0])}' appears twice")
        elif len(row) == len(header):
            yield line, dict(zip(header, row, strict=True))
        else:
            bad(line, f"has {len(row)} cells, the header {len(header)}")
