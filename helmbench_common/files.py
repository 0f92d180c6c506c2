"""Files and folders that are there whole or not at all: made beside their place, moved into it when they are done."""

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
    """Writes beside `path` and moves the finished file into place, so that an earlier one is never left half replaced.

    `text`: whole, or piece by piece where it is large. `private`: nobody but its owner may read it, from the first byte
    on. `mode`: the finished file's permissions.
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
    """An empty file, made anew. What had its name is gone: one that a killed process left, with its own mode, or a link
    to somebody else's file.
    """
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
    """A folder to fill beside `out`, moved into its place at the end, so that a killed or failing build leaves the old
    one whole. Where the system can't swap two folders in one step, the old one has another name for a moment.
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
    """Swaps two folders' places in one step; False where the system or the disk can't, and nothing is changed then."""
    call = getattr(ctypes.CDLL(None), "renameat2", None)
    return call is not None and call(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) == 0
