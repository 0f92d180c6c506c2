"""The files of a submission: allowed names and sizes, SHA256SUMS, and their records, read with limits."""

from __future__ import annotations

import gzip
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from helmbench_common.errors import HelmbenchError
from helmbench_common.files import naming, write_whole
from helmbench_common.formats import json_file
from helmbench_common.formats.plain_file import text_lines
from helmbench_common.formats.refused import FormatError, shown
from helmbench_common.hashing import file_digest
from leaderboard.schema import ANSWERS, CALIBRATIONS, RESPONSES, SUBMISSION, SUMS, VERDICTS, Problem
from leaderboard.verify.findings import Problems

M = TypeVar("M", bound=BaseModel)
OPTIONAL = {ANSWERS, CALIBRATIONS}
LIMITS = {  # bytes
    SUBMISSION: 4 * 2**20,
    VERDICTS: 256 * 2**20,
    SUMS: 4096,
    RESPONSES: 512 * 2**20,
    ANSWERS: 512 * 2**20,
    CALIBRATIONS: 64 * 2**20,
}
ENTRIES = 16  # entries of a folder that are checked one by one
SUM = re.compile(r"([0-9a-f]{64})  (\S+)")
LINE_BYTES = 4 * 2**20  # a conversation of a reasoning model takes about 1 MiB
ERRORS = 200  # most wrong fields for which pydantic is asked for details; each takes a kilobyte


class UnreadableError(HelmbenchError):
    """A text that isn't the JSON that was expected; `kind`: `json` or `schema`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Bounds(NamedTuple):
    """The most lines and characters that are read from a file."""

    lines: int
    characters: int


def check(folder: Path) -> tuple[list[Problem], set[str]]:
    """What is wrong with the folder's files, and the names of those that can be opened."""
    found: list[Problem] = []
    usable: set[str] = set()
    if folder.is_symlink():
        return [Problem("link", str(folder), "is a symbolic link; expected the submission's folder")], usable
    names = sorted(entry.name for entry in os.scandir(folder))
    if len(names) > ENTRIES:
        found.append(Problem("extra_file", str(folder), f"has {len(names)} entries; expected {', '.join(LIMITS)}"))
    for name in names[:ENTRIES]:
        if problem := _entry(folder / name):
            found.append(problem)
        else:
            usable.add(name)
    missing = LIMITS.keys() - OPTIONAL - set(names)
    found += [Problem("missing_file", name, "is missing") for name in LIMITS if name in missing]
    return found + list(_sums(folder, usable)), usable


def _entry(path: Path) -> Problem | None:
    name = shown(path.name)[:80]
    if path.name not in LIMITS:
        return Problem("extra_file", name, f"isn't part of a submission; expected {', '.join(LIMITS)}")
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return Problem("link", name, "is a symbolic link; expected a regular file")
    if not stat.S_ISREG(status.st_mode):
        return Problem("not_a_file", name, "isn't a regular file (a folder, pipe, socket or device)")
    if status.st_size > LIMITS[path.name]:
        return Problem("too_large", name, f"has {status.st_size:,} bytes; expected at most {LIMITS[path.name]:,}")
    if status.st_size == 0:
        return Problem("empty_file", name, "is empty")
    return None


def _sums(folder: Path, usable: set[str]) -> Iterator[Problem]:
    if SUMS not in usable:
        return
    listed: dict[str, str] = {}
    for number, line in enumerate((folder / SUMS).read_text("utf-8", "replace").splitlines(), start=1):
        match = SUM.fullmatch(line)
        if not match:
            yield Problem("sums", f"{SUMS}:{number}", "expected a sha256, two spaces and a name")
        elif match[2] in listed:
            yield Problem("sums", f"{SUMS}:{number}", f"lists {shown(match[2])} twice")
        else:
            listed[match[2]] = match[1]
    covered = LIMITS.keys() - {SUMS} - (OPTIONAL - usable)
    for name in sorted(listed.keys() - covered):
        yield Problem("sums", SUMS, f"lists {shown(name)}, which isn't a file of this submission")
    for name in sorted(covered - listed.keys()):
        yield Problem("sums", SUMS, f"doesn't list {name}")
    for name in sorted(covered & listed.keys() & usable):
        if (actual := file_digest(folder / name)) != listed[name]:
            said = f"has sha256 {actual[:12]}…, {SUMS} has {listed[name][:12]}…: the file was edited or damaged"
            yield Problem("sums", name, said)


def sign(folder: Path) -> None:
    """Writes SHA256SUMS over the folder's other files."""
    names = [name for name in sorted(LIMITS) if name != SUMS and (name not in OPTIONAL or (folder / name).exists())]
    write_whole(folder / SUMS, (f"{file_digest(folder / name)}  {name}\n" for name in names))


def pack(path: Path, lines: Iterable[bytes]) -> None:
    """Writes gzipped lines; the same lines give the same bytes."""
    with naming(path), path.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
        file.writelines(lines)


def records(folder: Path, name: str, model: type[M], most: Bounds, problems: Problems) -> Iterator[tuple[str, M]]:
    """(file:line, record) of each line that can be read; what is wrong with the others goes to `problems`."""
    characters = 0
    try:
        for number, line in text_lines(folder / name, "JSON lines", LINE_BYTES):
            where = f"{name}:{number}"
            characters += len(line)
            if number > most.lines:
                said = f"expected at most {most.lines:,} lines for a run of this size; the rest wasn't read"
                problems.append(Problem("too_many_lines", where, said))
                return
            if characters > most.characters:
                said = f"expected at most {most.characters:,} characters for a run of this size; the rest wasn't read"
                problems.append(Problem("too_much_text", where, said))
                return
            try:
                yield where, read(line, model)
            except UnreadableError as error:
                problems.append(Problem(error.kind, where, str(error)))
    except FormatError as error:
        problems.append(Problem("unreadable", f"{name}:{error.line}" if error.line else name, error.message))


def read(text: str, model: type[M]) -> M:
    """One JSON object as a model, with strict types.

    Raises:
        UnreadableError: anything else, including duplicate keys, NaN and deep nesting.
    """
    try:
        json_file.strict(text)
    except ValueError as error:
        raise UnreadableError("json", f"not valid JSON: {error}"[:200]) from None
    try:
        return model.model_validate_json(text, strict=True)
    except ValidationError as error:
        if error.error_count() > ERRORS:
            raise UnreadableError("schema", f"has {error.error_count():,} wrong fields or entries") from None
        errors = error.errors(include_url=False, include_context=False)
        if errors[0]["type"] == "json_invalid":  # such as half of a surrogate pair, which Python's reader accepts
            raise UnreadableError("json", f"not valid JSON: {errors[0]['msg']}") from None
        raise UnreadableError("schema", "; ".join(_wrong_field(e) for e in errors[:8])) from None


def _wrong_field(error: Any) -> str:
    where = ".".join(str(part)[:60] for part in error["loc"]) or "the object"
    given = repr(error["input"])
    return f"{where}: {error['msg']}" + (f" (is {given})" if error["type"] != "missing" and len(given) <= 60 else "")
