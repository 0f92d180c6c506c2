"""Untrusted regular files: bytes, text and lines, with size limits."""

from __future__ import annotations

import errno
import gzip
import hashlib
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from helmbench_common.formats.refused import FormatError

MOST = 64 * 2**20  # bytes of a file that is read whole
LONGEST = 16 * 2**20  # bytes of a line; a book is a tenth of that
DIGITS = 20  # digits of an integer in any format; enough for 64 bits
# A `.gz` may expand to ROOM bytes and TIMES its size. Text compresses 3 to 30 times, a zip bomb a thousand times.
ROOM, TIMES = 64 * 2**20, 100


def opened(path: Path) -> BufferedReader:
    """Opens a regular file, or a link to one, for reading bytes.

    Raises:
        OSError: it can't be opened, or is a folder, pipe or device.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # O_NONBLOCK: don't wait for a pipe's writer
    if stat.S_ISREG(mode := os.fstat(handle).st_mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    raise OSError(errno.EINVAL, "is a folder" if stat.S_ISDIR(mode) else "is not a regular file", str(path))


def open_plain(path: Path, expected: str) -> BufferedReader:
    """`opened`, but raises FormatError instead of OSError. `expected`: a description of the file."""
    with _read_errors(path, expected):
        return opened(path)


def read_bytes(path: Path, expected: str, most: int = MOST) -> bytes:
    """All bytes of a regular file.

    Raises:
        FormatError: it can't be read, or is longer than `most` bytes.
    """
    with _read_errors(path, expected), opened(path) as file:
        raw = file.read(most + 1)
    if len(raw) > most:
        raise FormatError(path, None, f"is longer than {most:,} bytes; expected {expected}")
    return raw


def sha256(path: Path, expected: str) -> str:
    """The hash of a regular file of any size; raises FormatError if it can't be read."""
    with _read_errors(path, expected), opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_text(path: Path, expected: str, most: int = MOST) -> str:
    """A regular file's text, without a byte order mark; line ends are unchanged.

    Raises:
        FormatError: as in `read_bytes`, or it isn't UTF-8, with the line of the first bad byte.
    """
    return decoded(read_bytes(path, expected, most), path)


def decoded(raw: bytes, path: Path | str) -> str:
    """UTF-8 bytes as text, without a byte order mark; raises FormatError with the line of the first bad byte."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        what = f"is not UTF-8 ({error.reason} at byte {error.start}); save the file as UTF-8"
        raise FormatError(path, line, what) from None


def text_lines(path: Path, expected: str, longest: int = LONGEST) -> Iterator[tuple[int, str]]:
    """(line number, text with its line end) for each line of a regular file; a `.gz` file is expanded.

    Raises:
        FormatError: as in `byte_lines`; at the line that is not UTF-8.
    """
    for number, raw in byte_lines(path, expected, longest):
        try:
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            what = f"is not UTF-8 ({error.reason} at byte {error.start} of the line); save the file as UTF-8"
            raise FormatError(path, number, what) from None
        yield number, text


def byte_lines(path: Path, expected: str, longest: int = LONGEST) -> Iterator[tuple[int, bytes]]:
    """`text_lines`, not decoded.

    Raises:
        FormatError: immediately if it can't be opened; at the line that is longer than `longest` bytes, or where a
            `.gz` is truncated, damaged or expands too far.
    """
    with open_plain(path, expected) as file:
        packed = path.suffix == ".gz"
        lines = gzip.GzipFile(fileobj=file, mode="rb") if packed else file
        most, size, number = ROOM + TIMES * path.stat().st_size, 0, 0
        while True:
            number += 1
            try:
                raw = lines.readline(longest + 1)
            except (OSError, EOFError, zlib.error) as error:
                what = f"can't be read on: {error}; expected {expected}" + ", gzipped and whole" * packed
                raise FormatError(path, number, what) from None
            if not raw:
                return
            size += len(raw)
            if packed and size > most:
                what = f"expands to more than {most:,} bytes, {TIMES} times its size; expected {expected}"
                raise FormatError(path, number, what)
            if len(raw) > longest:
                raise FormatError(path, number, f"is longer than {longest:,} bytes; expected {expected}, line by line")
            yield number, raw


@contextmanager
def _read_errors(path: Path, expected: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        what = reason if reason.startswith("is ") else f"can't be read ({reason})"
        raise FormatError(path, None, f"{what}; expected {expected}") from None
