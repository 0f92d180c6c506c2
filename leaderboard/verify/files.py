"""The files of a submission's folder: which there may be, how large, and SHA256SUMS over them."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from leaderboard.archive import LINE_BYTES, ArchiveError
from leaderboard.schema import ARCHIVE, SUBMISSION, SUMS, VERDICTS, Problem

LIMITS = {SUBMISSION: 4 * 2**20, ARCHIVE: 512 * 2**20, VERDICTS: 256 * 2**20, SUMS: 4096}  # bytes
LINE = re.compile(r"([0-9a-f]{64})  (\S+)")
MANY = 16  # entries of a folder that are still looked at


def check(folder: Path) -> tuple[list[Problem], set[str]]:
    """What is wrong with the folder's files, and the names of those that may be opened."""
    found: list[Problem] = []
    usable: set[str] = set()
    if folder.is_symlink():
        return [Problem("link", str(folder), "is a symbolic link; expected the submission's own folder")], usable
    names = sorted(entry.name for entry in os.scandir(folder))
    if len(names) > MANY:
        found.append(Problem("extra_file", str(folder), f"holds {len(names)} entries; expected {', '.join(LIMITS)}"))
    for name in names[:MANY]:
        problem = _entry(folder / name)
        if problem:
            found.append(problem)
        else:
            usable.add(name)
    found += [Problem("missing_file", name, "is missing") for name in LIMITS if name not in names]
    return found + _sums(folder, usable), usable


def _entry(path: Path) -> Problem | None:
    name = path.name.encode("unicode_escape").decode()[:80]
    if path.name not in LIMITS:
        return Problem("extra_file", name, f"is no part of a submission; expected {', '.join(LIMITS)}")
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return Problem("link", name, "is a symbolic link; expected a plain file")
    if not stat.S_ISREG(status.st_mode):
        return Problem("not_a_file", name, "is no plain file (a folder, pipe, socket or device)")
    if status.st_size > LIMITS[path.name]:
        return Problem("too_large", name, f"has {status.st_size:,} bytes; at most {LIMITS[path.name]:,} are read")
    if status.st_size == 0:
        return Problem("empty_file", name, "is empty")
    return None


def _sums(folder: Path, usable: set[str]) -> list[Problem]:
    if SUMS not in usable:
        return []
    found: list[Problem] = []
    listed: dict[str, str] = {}
    for number, line in enumerate((folder / SUMS).read_bytes().decode("utf-8", "replace").splitlines(), start=1):
        match = LINE.fullmatch(line)
        if not match:
            found.append(Problem("sums", f"{SUMS}:{number}", "is not a sha256, two spaces and a name"))
        elif match[2] in listed:
            found.append(Problem("sums", f"{SUMS}:{number}", f"lists {match[2]} again"))
        else:
            listed[match[2]] = match[1]
    covered = set(LIMITS) - {SUMS}
    found += [
        Problem("sums", SUMS, f"lists {name}, which is no file of a submission")
        for name in sorted(listed.keys() - covered)
    ]
    found += [Problem("sums", SUMS, f"does not list {name}") for name in sorted(covered - listed.keys())]
    for name in sorted(covered & listed.keys() & usable):
        if (actual := sha256(folder / name)) != listed[name]:
            found.append(
                Problem(
                    "sums",
                    name,
                    f"has sha256 {actual[:12]}…, {SUMS} says {listed[name][:12]}…: it was edited or damaged",
                )
            )
    return found


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sign(folder: Path) -> None:
    """Writes SHA256SUMS over the folder's other files."""
    names = sorted(set(LIMITS) - {SUMS})
    (folder / SUMS).write_text("".join(f"{sha256(folder / name)}  {name}\n" for name in names), encoding="utf-8")


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers; no more than LINE_BYTES of one is held.

    Raises:
        ArchiveError: a line is longer.
    """
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LINE_BYTES + 1):
            number += 1
            if len(line) > LINE_BYTES:
                raise ArchiveError(
                    Problem("long_line", f"{path.name}:{number}", f"is longer than {LINE_BYTES:,} bytes")
                )
            yield number, line.removesuffix(b"\n")
