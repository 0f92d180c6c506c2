"""A new scenario: TEMPLATE.md under the next free id. What stands there already is never written over."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from dataset_builder.prompts import CONTENT
from dataset_builder.reading.markdown import closest
from dataset_builder.reading.overlay import FIRST_OWN, SCENARIOS, is_overlay
from dataset_builder.reading.strays import authored, unasked
from dataset_builder.reading.template import TEMPLATE
from dataset_builder.schema import BEHAVIORS
from helmbench_common.errors import RefusedError

ID = re.compile(r"(P[0-9]{1,9}-B[0-9]{1,9})(?:-S([0-9]{1,9}))?")


class Home(NamedTuple):
    """A folder that takes scenarios. `own`: private additions, whose numbers are above those of any release."""

    folder: Path
    own: bool

    def next(self, behavior: str) -> str:
        """The lowest id that nobody can ever have had: one above the last that was given."""
        first = FIRST_OWN if self.own else 1
        return f"{behavior}-S{max([first - 1, *(n for n in self.numbers(behavior) if self.own or n < FIRST_OWN)]) + 1}"

    def numbers(self, behavior: str) -> list[int]:
        """Those that were given here, to scenarios and conversations."""
        names = [p.stem for folder in SCENARIOS for p in authored(self.folder / folder, f"{behavior}-S*.md")]
        return [int(match[2]) for name in names if (match := ID.fullmatch(name)) and match[2]]


def home(folder: Path) -> Home:
    """`folder` as a place for scenarios: a whole content, private additions, or a folder that becomes one of those.

    Raises:
        RefusedError: it is something else, or the content of an installed package.
    """
    if (folder / "benchmark.yaml").is_file():
        if folder.resolve() == CONTENT.resolve() and not (CONTENT.parents[1] / "pyproject.toml").is_file():
            raise RefusedError(f"{folder}: is the installed package's own; name a folder of yours, --content ours")
        return Home(folder, own=False)
    empty = not folder.exists() or (folder.is_dir() and all(map(unasked, folder.iterdir())))
    if not (empty or is_overlay(folder)):
        raise RefusedError(f"{folder}: not a content folder; expected a new or empty one, or one with scenarios/")
    return Home(folder, own=True)


def named(asked: str, place: Home) -> str:
    """The whole id that was asked for: of `P1-B1` the next that is free, of `P1-B1-S8` that one.

    Raises:
        RefusedError: no id, no such behavior, or a number that isn't free here.
    """
    match = ID.fullmatch(asked.strip().upper())
    if not match:
        raise RefusedError(f"'{asked}' is not an id; expected a behavior such as P1-B1, or an id such as P1-B1-S8")
    behavior, number = match[1], match[2]
    if behavior not in BEHAVIORS:
        raise RefusedError(f"unknown behavior '{behavior}'; {closest(behavior, BEHAVIORS)}")
    free = place.next(behavior)
    if number and int(number) < int(free.rpartition("S")[2]):
        why = f"private additions begin at S{FIRST_OWN} and " if place.own else ""
        raise RefusedError(f"{asked}: {why}ids are never reused; expected {free} or higher")
    if number and not place.own and int(number) >= FIRST_OWN:
        raise RefusedError(f"{asked}: numbers from {FIRST_OWN} on are private; expected {free}")
    return f"{behavior}-S{int(number)}" if number else free


def create(asked: str, folder: Path) -> Path:
    """Copies the template into `folder` under the id that was asked for; returns the new file.

    Raises:
        RefusedError: what `home` and `named` raise.
        OSError: it can't be written, or is there already.
    """
    identity = named(asked, place := home(folder))
    text = re.sub(r"(?m)^id: .*$", f"id: {identity}", TEMPLATE.read_text(encoding="utf-8"), count=1)
    path = place.folder / SCENARIOS[0] / f"{identity}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="utf-8", newline="") as file:
        file.write(text)
    return path


def said(path: Path, folder: Path) -> str:
    """What to tell who asked for it."""
    option = "" if folder.resolve() == CONTENT.resolve() else f" --content {folder}"
    return "\n".join(
        (
            f"{path}",
            f"is the template under the id {path.stem}. What each heading holds: {CONTENT / 'README.md'}",
            f"Write in it, in any editor that saves plain text, and run: helmbench check{option}",
            "The check names every sentence of the template that is still there, with its line, and changes nothing.",
        )
    )
