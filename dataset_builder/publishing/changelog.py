"""Reads CHANGELOG.md: what each version says of itself. A dated entry is a release, and carries its hashes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from dataset_builder.release import HASHES, REPOSITORY
from helmbench_common.errors import HelmbenchError

CHANGELOG = REPOSITORY / "CHANGELOG.md"
HEADING = re.compile(r"## (\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d|unreleased)\)")
LINE = re.compile(rf"- ({'|'.join(HASHES)}|Scores): (.+)")


class ChangelogError(HelmbenchError):
    """A changelog that can't be read; the message names file and line."""


@dataclass(frozen=True)
class Entry:
    """One version. `released` is an ISO date, or None while the content still moves; the hashes are those of the
    release.
    """

    version: str
    released: str | None
    line: int
    scores: str
    score_hash: str | None
    prose_hash: str | None
    messages_hash: str | None


def entries(path: Path = CHANGELOG) -> list[Entry]:
    """Every version, newest first, as the file has them.

    Raises:
        ChangelogError: no such file, a heading of another form, a version without a line `- Scores: …`, or a dated
            one without its hashes.
    """
    if not path.is_file():
        raise ChangelogError(f"{path}: is missing; an installed package has none, so publish from a checkout")
    lines = path.read_text(encoding="utf-8").splitlines()
    starts = [n for n, text in enumerate(lines) if text.startswith("## ")]
    return [
        _entry(path, start + 1, lines[start:end])
        for start, end in zip(starts, [*starts[1:], len(lines)][: len(starts)], strict=True)
    ]


def _entry(path: Path, line: int, block: list[str]) -> Entry:
    heading = HEADING.fullmatch(block[0])
    if not heading:
        raise ChangelogError(
            f"{path}:{line}: '{block[0]}'; expected '## 1.2.3 (2026-11-21)' or '## 1.2.3 (unreleased)'"
        )
    said = {m[1]: m[2].strip("`") for text in block if (m := LINE.fullmatch(text))}
    released = None if heading[2] == "unreleased" else heading[2]
    needed = {"Scores", *(HASHES if released else ())}
    if missing := sorted(needed - said.keys()):
        raise ChangelogError(
            f"{path}:{line}: version {heading[1]} has no line '- {missing[0]}: …'; every entry says whether "
            "scores stay comparable, a dated one its hashes"
        )
    return Entry(heading[1], released, line, said["Scores"], *(said.get(name) for name in HASHES))
