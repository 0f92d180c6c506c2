"""Text lines of a file, plain or gzipped, one at a time: a line has an end, and a `.gz` expands only so far."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from helmbench_common.formats.plain_file import open_plain
from helmbench_common.formats.refused import FormatError

LONGEST = 16 * 2**20  # bytes of a line: a book has a tenth of that
# What a `.gz` may expand to: so much, and so many times its own size. Text becomes three to thirty times shorter, and
# what was made to fill a disk a thousand times.
ROOM, TIMES = 64 * 2**20, 100


def text_lines(path: Path, expected: str, longest: int = LONGEST) -> Iterator[tuple[int, str]]:
    """(line number, text with its end) for every line of a regular file; one that is called `.gz` is expanded.

    A byte order mark at the beginning is left out. `expected`: what the file should be, in words.

    Raises:
        FormatError: at once, the file is none that can be read; at its line, one that is longer than `longest` bytes
            or no UTF-8, and the end of what a `.gz` holds, where it is cut off, damaged or expands too far.
    """
    with open_plain(path, expected) as file:
        lines = _expanded(file, path, expected, longest) if path.suffix == ".gz" else _plain(file, path, longest)
        for number, raw in enumerate(lines, start=1):
            if len(raw) > longest:
                raise FormatError(path, number, f"is longer than {longest:,} bytes; expected {expected}, line by line")
            try:
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                said = f"is not UTF-8 ({error.reason} at byte {error.start} of the line); save the file as UTF-8"
                raise FormatError(path, number, said) from None
            yield number, text


def _plain(file: BinaryIO, path: Path, longest: int) -> Iterator[bytes]:
    number = 0
    try:
        while line := file.readline(longest + 1):
            number += 1
            yield line
    except OSError as error:
        raise FormatError(path, number + 1, f"can't be read on: {error.strerror}") from None


def _expanded(file: BinaryIO, path: Path, expected: str, longest: int) -> Iterator[bytes]:
    most, number, size = ROOM + TIMES * path.stat().st_size, 0, 0
    try:
        with gzip.GzipFile(fileobj=file, mode="rb") as expanded:
            while line := expanded.readline(longest + 1):
                number, size = number + 1, size + len(line)
                if size > most:
                    said = f"expands to more than {most:,} bytes, {TIMES} times its size; expected {expected}"
                    raise FormatError(path, number, said)
                yield line
    except (OSError, EOFError, zlib.error) as error:
        said = f"can't be read on: {error}; expected {expected}, gzipped and whole"
        raise FormatError(path, number + 1, said) from None
