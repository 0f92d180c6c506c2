"""A regular file's bytes and text. What a name stands for is looked at before anything is read: a pipe would wait for
its writer, and a device has no end.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from pathlib import Path
from typing import BinaryIO

from helmbench_common.formats.refused import FormatError

MOST = 64 * 2**20  # bytes of a file that is read whole: no text by people comes near
DIGITS = 20  # of a whole number in any format: those of 64 bits have no more
KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def opened(path: Path) -> BinaryIO:
    """A regular file, opened for reading bytes; a link to one counts as one.

    Raises:
        OSError: it is missing, shut, or no regular file; the error's `strerror` says what it is.
    """
    # Without O_NONBLOCK opening a pipe waits for somebody to write into it.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        kind = next((name for is_kind, name in KINDS if is_kind(mode)), "no regular file")
        raise OSError(errno.EINVAL, f"is {kind}", str(path))
    return os.fdopen(handle, "rb")


def open_plain(path: Path, expected: str) -> BinaryIO:
    """`opened`, for files that somebody wrote. `expected`: what it should be, in words, such as `a mapping file`.

    Raises:
        FormatError: it is missing, shut, or no regular file.
    """
    try:
        return opened(path)
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        said = reason if reason.startswith("is ") and isinstance(error, OSError) else f"can't be read ({reason})"
        raise FormatError(path, None, f"{said}; expected {expected}") from None


def read_bytes(path: Path, expected: str, most: int = MOST) -> bytes:
    """All bytes of a regular file.

    Raises:
        FormatError: as `open_plain`, or it is longer than `most` bytes, or the disk fails.
    """
    with open_plain(path, expected) as file:
        try:
            raw = file.read(most + 1)
        except OSError as error:
            raise FormatError(path, None, f"can't be read ({error.strerror}); expected {expected}") from None
    if len(raw) > most:
        raise FormatError(path, None, f"is longer than {most:,} bytes; expected {expected}")
    return raw


def sha256(path: Path, expected: str) -> str:
    """The hash of a regular file of any size.

    Raises:
        FormatError: as `open_plain`, or the disk fails.
    """
    found = hashlib.sha256()
    with open_plain(path, expected) as file:
        try:
            while piece := file.read(2**20):
                found.update(piece)
        except OSError as error:
            raise FormatError(path, None, f"can't be read ({error.strerror}); expected {expected}") from None
    return found.hexdigest()


def read_text(path: Path, expected: str, most: int = MOST) -> str:
    """A regular file's text; a byte order mark at its beginning is left out, and line ends stay as they are.

    Raises:
        FormatError: as `read_bytes`, or it is no UTF-8, at the line of the first byte that is none.
    """
    return decoded(read_bytes(path, expected, most), path)


def decoded(raw: bytes, path: Path | str) -> str:
    """UTF-8 bytes as text, without a byte order mark.

    Raises:
        FormatError: they are none, at the line of the first that is none.
    """
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        said = f"is not UTF-8 ({error.reason} at byte {error.start}); save the file as UTF-8"
        raise FormatError(path, line, said) from None
