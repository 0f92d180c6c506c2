"""Atomic writes: creates files and folders under a temporary name and moves them into place when complete."""

from __future__ import annotations

import ctypes
import fcntl
import glob
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from helmbench_common.formats import json_file
from helmbench_common.formats.plain_file import opened
from helmbench_common.formats.refused import FormatError

AT_FDCWD, RENAME_EXCHANGE = -100, 2  # for Linux's renameat2
STAGING = ".partial"  # ends the names of folders that are being filled


def write_whole(path: Path, text: str | Iterable[str], private: bool = False, mode: int | None = None) -> None:
    """Writes a file atomically: an earlier one is replaced completely or not at all.

    `text`: whole or in chunks. `private`: readable only by its owner. `mode`: the finished file's permissions.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = fresh(path.with_name(f".{path.name}-{os.getpid()}"), 0o600 if private else 0o666)
    try:
        # Keep line ends on every system.
        with naming(path), staged.open("w", encoding="utf-8", newline="") as file:
            file.writelines([text] if isinstance(text, str) else text)
        if mode is not None:
            staged.chmod(mode)
        staged.replace(path)
    except BaseException:
        staged.unlink(missing_ok=True)  # a full disk, a folder in the file's place, Ctrl-C
        raise


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Adds the path to a system error that names none, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise


def fresh(path: Path, mode: int = 0o666) -> Path:
    """A new empty file. First deletes a file or link of that name, such as one left by a killed process."""
    path.unlink(missing_ok=True)
    path.touch(mode, exist_ok=False)
    return path


def holds(path: Path, text: str) -> bool:
    """Whether `path` is a regular file with exactly this text."""
    written = text.encode()
    try:
        with opened(path) as file:
            return file.read(len(written) + 1) == written
    except OSError:
        return False


@contextmanager
def replacing(out: Path) -> Iterator[Path]:
    """A folder to fill, moved to `out` at the end; a killed or failed build leaves the old folder intact.

    Removes what killed builds of `out` left beside it. If the system can't swap two folders in one step, the old one is
    briefly renamed.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    for left in out.parent.glob(f".{glob.escape(out.name)}-{'?' * 8}{STAGING}"):  # mkdtemp draws 8 characters
        _remove_unlocked(left)
    drawn = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    lock = os.open(drawn, os.O_RDONLY)  # ends with the process, however that ends
    with suppress(OSError):  # without locks on this file system, other builds remove nothing
        fcntl.flock(lock, fcntl.LOCK_EX)
    staging = drawn.rename(f"{drawn}{STAGING}")  # only now other builds may look at it
    try:
        with naming(out):
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
        os.close(lock)


def _remove_unlocked(folder: Path) -> None:
    """Deletes a folder unless a running process has locked it, or it is a link."""
    with suppress(OSError):
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)
        finally:
            os.close(lock)


def replaceable(folder: Path, name: str, file: str = "MANIFEST.json", key: str = "name") -> bool:
    """Whether a folder is empty, or an earlier build: one whose `file` has this `name` under `key`."""
    try:
        return folder.is_dir() and (
            not any(folder.iterdir()) or json_file.load(folder / file, "an earlier build").get(key) == name
        )
    except (OSError, FormatError):
        return False


def _swapped(one: Path, other: Path) -> bool:
    """Swaps two folders in one step; False, with nothing changed, if the system can't."""
    call = getattr(ctypes.CDLL(None), "renameat2", None)
    return call is not None and call(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) == 0
