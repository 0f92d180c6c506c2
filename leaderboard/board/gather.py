"""A folder of submissions → each of them, verified against the release it names; and which were re-judged."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from dataset_builder.release import Release
from dataset_builder.schema import Strict
from helmbench_common.formats import json_file, yaml_file
from helmbench_common.formats.refused import FormatError, shown
from helmbench_common.hashing import file_digest
from judge.replies.schema import RunError
from leaderboard.schema import SUBMISSION, SUMS, Verified
from leaderboard.verify.files import LIMITS

Verify = Callable[[Path, Release], Verified]


class Rejudged(Strict):
    """A submission that a maintainer judged again, with the same scores.

    `run`: its folder, relative to the submissions folder. `sha256`: of its SHA256SUMS, so an edit removes the mark.
    """

    run: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    date: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")
    by: str = Field(min_length=1, max_length=200)


class Checked(NamedTuple):
    """A verified folder. `name`: its path in the submissions folder; `release`: the one it was checked against."""

    name: str
    verified: Verified
    release: Release


def submissions(folder: Path) -> list[Path]:
    """Every folder below with a submission's file, sorted by name; links are listed, not followed.

    Raises:
        RunError: no such folder.
    """
    if not folder.is_dir():
        raise RunError(f"{folder}: no such folder; expected a folder that contains submissions of `helmbench submit`")
    found: list[Path] = []
    for where, folders, files in os.walk(folder):
        here = Path(where)
        if here != folder and LIMITS.keys() & {*files, *folders}:
            found.append(here)
            folders.clear()
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [here / name for name in folders if (here / name).is_symlink()]
    return sorted(found, key=lambda p: p.relative_to(folder).as_posix())


def check(folder: Path, releases: Sequence[Release], verify: Verify) -> Iterator[Checked]:
    """Verifies one submission after the other. `releases`: newest first, which is the default if none is named.

    Raises:
        RunError: no such folder.
    """
    for path in submissions(folder):
        version, score_hash = _named(path)
        alike = [r for r in releases if r.manifest.score_hash == score_hash]
        release = next((r for r in alike if r.manifest.version == version), alike[0] if alike else releases[0])
        yield Checked(path.relative_to(folder).as_posix(), verify(path, release), release)


def _named(folder: Path) -> tuple[str, str]:
    """The version and score_hash that a submission names, to choose the release; empty if they can't be read, which
    verifying reports.
    """
    try:
        pinned = json_file.load(folder / SUBMISSION, "a submission", most=LIMITS[SUBMISSION])["dataset"]
        return str(pinned["version"]), str(pinned["score_hash"])
    except (FormatError, LookupError, TypeError):
        return "", ""


def version_key(version: str) -> tuple[int, ...]:
    """`0.10.2` → (0, 10, 2), so that versions sort as numbers."""
    return tuple(int(part) for part in version.partition("+")[0].split(".") if part.isdecimal())


def read_rejudged(path: Path, folder: Path) -> dict[str, Rejudged]:
    """The re-judged runs: a YAML list of `{run: …, sha256: …, date: YYYY-MM-DD, by: …}`.

    Raises:
        RunError: it can't be read, or has runs that are listed twice, missing or edited since; all are named.
    """
    try:
        listed = yaml_file.load(path, "a list of re-judged runs", list, texts=True)
    except FormatError as error:
        raise RunError(str(error)) from None
    try:
        marks = TypeAdapter(list[Rejudged]).validate_python(listed.value)
    except ValidationError as error:
        said = [(listed.line(e["loc"]), ".".join(map(str, e["loc"])), e["msg"]) for e in error.errors()]
        raise RunError("\n".join(f"{shown(path)}:{line}: entry {at}: {what}" for line, at, what in said)) from None
    counts = Counter(m.run for m in marks)
    problems = [f"{path}: {run}: listed {n} times; expected once" for run, n in sorted(counts.items()) if n > 1]
    known = {p.relative_to(folder).as_posix() for p in submissions(folder)}
    for mark in marks:
        sums = folder / mark.run / SUMS
        if mark.run not in known or not sums.is_file():
            problems.append(f"{path}: {mark.run}: no such submission below {folder}")
        elif (found := file_digest(sums)) != mark.sha256:
            problems.append(
                f"{path}: {mark.run}: its {SUMS} has sha256 {found}, not {mark.sha256}; it changed since it "
                "was judged again"
            )
    if problems:
        raise RunError("\n".join(problems))
    return {m.run: m for m in marks}
