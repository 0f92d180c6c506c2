"""Atomic writes: files and folders are made under a temporary name and moved into place when complete."""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from helmbench_common.formats.plain_file import opened

AT_FDCWD, RENAME_EXCHANGE = -100, 2  # of Linux's renameat2


def write_whole(path: Path, text: str | Iterable[str], private: bool = False, mode: int | None = None) -> None:
    """Writes a file so that an earlier one is replaced whole or not at all.

    `text`: whole, or in pieces. `private`: readable only by its owner. `mode`: the finished file's permissions.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = fresh(path.with_name(f".{path.name}-{os.getpid()}"), 0o600 if private else 0o666)
    try:
        with staged.open("w", encoding="utf-8", newline="") as file:  # the lines' own ends, on every system
            file.writelines([text] if isinstance(text, str) else text)
        if mode is not None:
            staged.chmod(mode)
        staged.replace(path)
    except BaseException:
        staged.unlink(missing_ok=True)  # a full disk, a folder in the file's place, Ctrl-C
        raise


def fresh(path: Path, mode: int = 0o666) -> Path:
    """A new empty file. A file or link of that name, such as a killed process leaves, is deleted first."""
    path.unlink(missing_ok=True)
    path.touch(mode, exist_ok=False)
    return path


def holds(path: Path, text: str) -> bool:
    """Whether a regular file holds exactly this text."""
    written = text.encode()
    try:
        with opened(path) as file:
            return file.read(len(written) + 1) == written
    except OSError:
        return False


@contextmanager
def replacing(out: Path) -> Iterator[Path]:
    """A folder to fill, moved to `out` at the end; a killed or failing build leaves the old folder whole.

    If the system can't swap two folders in one step, the old one has another name for a moment.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        yield staging
        staging.chmod(0o755)
        old = out.with_name(f".{out.name}-old-{os.getpid()}")
        if out.exists() and not _swapped(staging, out):
            out.rename(old)
        if not out.exists():
            staging.rename(out)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _swapped(one: Path, other: Path) -> bool:
    """Swaps two folders in one step; False, with nothing changed, if the system can't."""
    call = getattr(ctypes.CDLL(None), "renameat2", None)
    return call is not None and call(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) == 0
