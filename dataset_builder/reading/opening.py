"""Opens a content folder for a command, merging in private additions, or refuses it with every error.

A folder with a `benchmark.yaml` is complete content. A folder without one that has scenarios, conversations,
conditions, personas, criteria, calibration or helplines holds a team's private additions: these and the published
content are copied into one temporary folder, so that all checks run. Errors name the author's file and line.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from dataset_builder.prompts import CONTENT
from dataset_builder.reading.content_types import Content
from dataset_builder.reading.load import load
from dataset_builder.reading.markdown import BYTES, ContentRefusedError, Errors
from dataset_builder.reading.strays import links, unasked
from helmbench_common.formats import csv_file
from helmbench_common.formats.plain_file import read_text
from helmbench_common.formats.refused import FormatError

FIRST_OWN = 900  # first private scenario number, so that no later release can clash
PREFIX = "own-"  # prefix of private conditions, personas and criteria
SCENARIOS, SHARED = ("scenarios", "conversations"), ("conditions", "personas", "criteria")
CALIBRATION, HELPLINES = "calibration", "helplines.csv"
OWN_SCENARIO = re.compile(rf"P\d-B\d-S({FIRST_OWN // 100}\d\d|[1-9]\d{{3,}})")
OWN_TEXT = re.compile(f"{PREFIX}.*")
FOLDERS = (*SCENARIOS, *SHARED, CALIBRATION)


@dataclass(frozen=True)
class Source:
    """A content folder to read, and the origin of its files. `own`: the folder of additions, if there are any."""

    root: Path
    own: Path | None = None
    base: Path = CONTENT
    suffix: str = ""
    base_helplines: int = 0

    def place(self, path: Path | str, line: int = 1) -> tuple[Path, int]:
        """The authored file and line behind a file and line of `root`."""
        path = Path(path)
        if self.own is None or not path.is_relative_to(self.root):
            return path, line
        name = path.relative_to(self.root)
        if name == Path(HELPLINES) and line > self.base_helplines:
            return self.own / name, line - self.base_helplines + 1
        mine = name != Path(HELPLINES) and (self.own / name).exists()
        return (self.own if mine else self.base) / name, line

    def authored(self, path: Path) -> Path:
        """The authored file behind a file of `root`."""
        return self.place(path)[0]

    def placed(self, errors: Errors) -> Errors:
        """The same errors at the authored files."""
        moved = Errors()
        for path, line, message in errors.found:
            moved.add(*self.place(path, line), message)
        return moved

    def marked(self, content: Content) -> Content:
        """The content with the local version and the sentence about its private additions."""
        if self.own is None:
            return content
        own = [s for s in content.scenarios if OWN_SCENARIO.fullmatch(s.id)]
        name = re.sub(r"[^\w .-]", "_", self.own.resolve().name)
        number = f"{len(own)} scenario{'s' if len(own) != 1 else ''}"
        sentence = f"private additions: {number} from {name}, not the published benchmark"
        return replace(content, version=f"{content.version}+local.{self.suffix}", additions=sentence)


def is_overlay(folder: Path) -> bool:
    """Whether a folder holds private additions rather than complete content."""
    parts = any((folder / name).exists() for name in (*FOLDERS, HELPLINES))
    return parts and not (folder / "benchmark.yaml").exists()


@contextmanager
def opened(folder: Path, errors: Errors, base: Path = CONTENT) -> Iterator[Source]:
    """`folder` itself; for private additions, a temporary folder that merges them into `base`.

    Adds errors for additions with reserved names or that can't be merged.
    """
    if not is_overlay(folder):
        yield Source(folder)
        return
    with tempfile.TemporaryDirectory(prefix="helmbench-") as temporary:
        root = Path(shutil.copytree(base, Path(temporary) / "content"))
        files = _own_files(folder, base, errors)
        for file in files:
            target = root / file.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            if file.name != HELPLINES and not target.exists():
                shutil.copyfile(file, target)
        lines = _join_helplines(folder / HELPLINES, root / HELPLINES, errors)
        yield Source(root, folder, base, _suffix(folder, files), lines)


def _own_files(folder: Path, base: Path, errors: Errors) -> list[Path]:
    """Every file of the additions, in order; adds an error for each that doesn't belong there."""
    links(folder, errors)
    if errors.found:
        return []  # read nothing outside the folder
    allowed = {*FOLDERS, HELPLINES, "README.md"}
    for entry in sorted(folder.iterdir()):
        if entry.name not in allowed and not unasked(entry):
            expected = f"expected only {', '.join(sorted(allowed))} (weights and tiers stay the benchmark's)"
            errors.add(entry, 1, f"has no place in private additions; {expected}")
    files = [folder / HELPLINES] if (folder / HELPLINES).is_file() else []
    for name in FOLDERS:
        own_name = OWN_SCENARIO if name in SCENARIOS else OWN_TEXT
        for file in sorted(p for p in (folder / name).rglob("*") if not _is_plain_folder(p) and not unasked(p)):
            relative = file.relative_to(folder)
            deep = relative.parts[:2] == (CALIBRATION, "readings")
            if not file.is_file():
                errors.add(file, 1, "not a file; expected text or rows of this name")
            elif file.suffix != (".jsonl" if name == CALIBRATION else ".md") or len(relative.parts) != 2 + deep:
                expected = "NAME.jsonl or readings/READER.jsonl" if name == CALIBRATION else "NAME.md"
                errors.add(file, 1, f"isn't read; expected {expected} in {name}/")
            elif (base / relative).exists():
                errors.add(file, 1, f"the published content already has this file; {_reserved(name)}")
            elif not (own_name.fullmatch(file.stem) or relative.parent.name == "readings"):
                errors.add(file, 1, f"'{file.stem}' is not a name for private additions; {_reserved(name)}")
            else:
                files.append(file)
    return files


def _is_plain_folder(path: Path) -> bool:
    return path.is_dir() and path.suffix not in (".md", ".jsonl")


def _reserved(folder: str) -> str:
    number, prefix = f"a number from S{FIRST_OWN} on, such as P1-B1-S{FIRST_OWN}", f"a name that begins with '{PREFIX}'"
    free = "those stay free in every release (a whole content folder also has a benchmark.yaml)"
    return f"expected {number if folder in SCENARIOS else prefix}: {free}"


def _join_helplines(own: Path, joined: Path, errors: Errors) -> int:
    """Appends the rows of `own` to `joined`; returns the previous number of lines."""
    text = joined.read_bytes().decode("utf-8")
    text += "" if text.endswith("\n") else "\n"
    before = text.count("\n")
    if not own.is_file():
        return before
    try:
        more = read_text(own, "helplines as CSV", BYTES).replace("\r\n", "\n")
    except FormatError as error:
        errors.refused(error)
        return before
    head, _, rows = more.partition("\n")
    if head.strip() != (published := text.partition("\n")[0].strip()):
        what = f"expected those of the published helplines.csv: '{published}'"
        errors.add(own, 1, f"columns are '{head[:200]}'; {what}")
        return before
    try:
        known = {(row["country"], row["service"]) for _, row in csv_file.records(text, joined, _skip)}
        for line, row in csv_file.records(more, own, _skip):
            country, service = row["country"], row["service"]
            if (country, service) in known:
                what = f"'{service}' in {country} already has a row; expected services that are not listed yet"
                errors.add(own, line, what)
    except FormatError as error:
        errors.refused(error)
        return before
    joined.write_text(text + rows, encoding="utf-8", newline="")
    return before


def _skip(line: int, problem: str) -> None:
    """Leaves a row of the wrong width to `load`, which reports it."""


def _suffix(folder: Path, files: list[Path]) -> str:
    """8 hex digits of a hash of the additions' names and bytes."""
    digest = hashlib.sha256()
    for file in files:
        content = file.read_bytes()
        digest.update(f"{file.relative_to(folder).as_posix()}\n{len(content)}\n".encode() + content)
    return digest.hexdigest()[:8]


class Opened(NamedTuple):
    """Content without reading errors, and the origin of its files. `left_out`: the errors of omitted scenarios."""

    content: Content
    source: Source
    left_out: Errors


@contextmanager
def open_content(folder: Path = CONTENT, leave_out: bool = False) -> Iterator[Opened]:
    """The content of a folder; its files exist until the block ends. It may still fail a check in `checking`.

    `leave_out`: scenarios with errors are left out; otherwise any error refuses the folder.

    Raises:
        ContentRefusedError: it isn't a content folder, or a file in it can't be read.
    """
    with opened(folder, errors := Errors()) as source:
        content, left_out = None, Errors()
        if os.path.lexists(settings := source.root / "benchmark.yaml"):
            content, found = load(source.root)
            broken = {Path(e.path) for e in found.found}
            if leave_out and broken and all(p.parent.name in SCENARIOS for p in broken):
                left_out = source.placed(found)
                content, found = load(source.root, broken)
            errors.found += found.found
        else:
            errors.add(settings, 1, "missing, so this is not a content folder; pass one with --content")
        refuse(source, errors)
        assert content  # set if there are no errors
        yield Opened(source.marked(content), source, left_out)


def refuse(source: Source, errors: Errors) -> None:
    """Raises all errors as one ContentRefusedError, at the authored files and lines; returns if there are none."""
    if errors.found:
        raise ContentRefusedError(*source.placed(errors).lines(), count=len(errors.found))
