"""CSV as spreadsheets save it: with commas, semicolons or tabs, with or without a byte order mark, as UTF-8 or UTF-16,
any line ends, empty columns at the end, a first line `sep=;`.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator
from pathlib import Path

DELIMITERS = ",;\t"
SAVE = "in Excel save it as 'CSV UTF-8', in LibreOffice as 'Text CSV' with the character set 'Unicode (UTF-8)'"


class NotCsvError(ValueError):
    """A sheet that isn't CSV from this line on."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"is not CSV ({why})")
        self.line = line


def written(path: Path) -> str:
    """The text of a file.

    Raises:
        ValueError: it can't be read, or is in an encoding that can't be known; what to do instead.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ValueError(f"can't be read ({error.strerror})") from None
    if raw.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise ValueError(f"is a spreadsheet's own file and no CSV; {SAVE}")
    marked = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return raw.decode("utf-16" if marked else "utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"can't be read (not UTF-8); {SAVE}") from None


def rows(text: str, comment: str = "\0") -> Iterator[tuple[int, list[str]]]:
    """The rows of a sheet with their line numbers, the header first, each without the empty cells that stand beyond the
    header's last name. Rows without any word are left out, and so are those before the header that begin with
    `comment`.

    Raises:
        NotCsvError: it is no CSV.
    """
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
            beyond = any(cell.strip() for cell in cells[width:])
            yield reader.line_num, cells if beyond else cells[:width]
    except csv.Error as error:
        raise NotCsvError(reader.line_num, str(error)) from None
