"""`helmbench new scenario`: copies TEMPLATE.md to the next free id. Never overwrites files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from dataset_builder.prompts import CONTENT
from dataset_builder.reading.load_scenario import TEMPLATE
from dataset_builder.reading.markdown import closest
from dataset_builder.reading.opening import FIRST_OWN, SCENARIOS, is_overlay
from dataset_builder.reading.strays import authored, unasked
from dataset_builder.schema import BEHAVIORS
from helmbench_common.errors import RefusedError
from helmbench_common.files import naming

ID = re.compile(r"(P[0-9]{1,9}-B[0-9]{1,9})(?:-S([0-9]{1,9}))?")


class Home(NamedTuple):
    """A folder for scenarios. `own`: private additions, numbered above any release."""

    folder: Path
    own: bool

    def next(self, behavior: str) -> str:
        """The id after the last one assigned to a scenario or conversation."""
        names = [p.stem for folder in SCENARIOS for p in authored(self.folder / folder, f"{behavior}-S*.md")]
        numbers = [int(match[2]) for name in names if (match := ID.fullmatch(name)) and match[2]]
        last = max([FIRST_OWN - 1 if self.own else 0, *(n for n in numbers if self.own or n < FIRST_OWN)])
        return f"{behavior}-S{last + 1}"


def home(folder: Path) -> Home:
    """`folder` as a place for scenarios: content, private additions, or an empty folder.

    Raises:
        RefusedError: it is something else, or an installed package's content.
    """
    if (folder / "benchmark.yaml").is_file():
        if folder.resolve() == CONTENT.resolve() and not (CONTENT.parents[1] / "pyproject.toml").is_file():
            raise RefusedError(f"{folder}: is the installed package's content; name your own folder with --content")
        return Home(folder, own=False)
    empty = not folder.exists() or (folder.is_dir() and all(map(unasked, folder.iterdir())))
    if not (empty or is_overlay(folder)):
        raise RefusedError(f"{folder}: not a content folder; expected a new or empty one, or one with scenarios/")
    return Home(folder, own=True)


def named(asked: str, place: Home) -> str:
    """The full id: the next free one for `P1-B1`, that one for `P1-B1-S8`.

    Raises:
        RefusedError: not an id, an unknown behavior, or a number that isn't free.
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
    """Copies the template into `folder` under the id; returns the new file.

    Raises:
        RefusedError: as `home` and `named`. OSError: it can't be written, or exists.
    """
    identity = named(asked, place := home(folder))
    text = re.sub(r"(?m)^id: .*$", f"id: {identity}", TEMPLATE.read_text(encoding="utf-8"), count=1)
    path = place.folder / SCENARIOS[0] / f"{identity}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    with naming(path), path.open("x", encoding="utf-8", newline="") as file:
        file.write(text)
    return path


def said(path: Path, folder: Path) -> str:
    """The command's output."""
    option = "" if folder.resolve() == CONTENT.resolve() else f" --content {folder}"
    return (
        f"{path}\nis a copy of the template with the id {path.stem}. What each heading means: {CONTENT / 'README.md'}\n"
        f"Edit it in any plain-text editor, then run: helmbench check{option}\n"
        "The check reports every sentence of the template that is left, with its line, and changes nothing."
    )
