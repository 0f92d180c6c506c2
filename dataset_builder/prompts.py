"""The prompts for judges and for labeling models: authored templates, hashed and stored in the release.

Prompts always come from the release being judged, so that a release and its verdicts can't drift apart.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template

from helmbench_common.formats.plain_file import read_text
from helmbench_common.formats.refused import FormatError

# Template → the fields that the code fills in; other names and fields are errors.
FIELDS: dict[str, frozenset[str]] = {
    "case": frozenset({"facts", "conversation", "reply"}),
    "about": frozenset({"about"}),
    "judge": frozenset({"title", "criterion", "labels", "case"}),
    "judge-b": frozenset({"title", "criterion", "labels", "case"}),
    "judge-reason": frozenset({"title", "criterion", "labels", "case"}),
    "rate": frozenset({"title", "terms", "levels", "not_judged", "case"}),
    "triage-bare": frozenset({"categories", "message"}),
    "triage-guided": frozenset({"categories", "names", "message"}),
    "talk-user": frozenset(
        {"person", "situation", "wants", "tells", "reactions", "end", "voice", "age", "country", "turns", "shows"}
    ),
    "talk-reminder": frozenset({"said", "turns", "reply"}),
    "talk-judge": frozenset({"title", "criterion", "labels", "facts", "conversation"}),
    "talk-check": frozenset({"part", "labels", "conversation"}),
}
BYTES = 2**20  # of a template
PLAIN = "judge"
# The judge's prompts; `calibrate` measures the effect of another wording, or of a reason before the label.
WORDINGS = (PLAIN, "judge-b", "judge-reason")
REASONED = ("judge-reason",)
RATE = "rate"  # the rating prompt
CONTENT = Path(__file__).with_name("content")
FOLDER = CONTENT / "prompts"  # in this installation's content


@dataclass(frozen=True)
class Prompts:
    """The templates by name."""

    texts: Mapping[str, str]

    def fill(self, name: str, **fields: str) -> str:
        """Fills all fields of a template in one pass, so that a text can't inject another. Ignores extra fields."""
        return Template(self.texts[name]).substitute(fields)

    def hash(self, *names: str) -> str:
        """16 digits of the sha256 of these templates and their names, as recorded in verdicts."""
        return hashlib.sha256("".join(name + self.texts[name] for name in names).encode()).hexdigest()[:16]


def read(folder: Path) -> tuple[Prompts, list[tuple[Path, int, str]]]:
    """The templates in a folder, and their problems as (file, line, what is wrong)."""
    problems: list[tuple[Path, int, str]] = []
    texts: dict[str, str] = {}
    for path in sorted(folder.glob("*.md")):
        if path.stem not in FIELDS and not path.name.startswith("."):
            problems.append((path, 1, f"unknown prompt; expected one of {', '.join(FIELDS)}"))
    for name, fields in FIELDS.items():
        path = folder / f"{name}.md"
        if not os.path.lexists(path):
            problems.append((path, 1, "is missing; every content folder has this prompt"))
            continue
        try:
            text = read_text(path, "a prompt", BYTES)
        except FormatError as error:
            problems.append((path, error.line or 1, error.message))
            continue
        texts[name] = text.replace("\r\n", "\n").replace("\r", "\n")
        problems += [(path, line, problem) for line, problem in _misfits(texts[name], fields)]
    return Prompts(texts), problems


@cache
def installed() -> Prompts:
    """The templates in this installation's content."""
    return read(FOLDER)[0]


def differing(prompts: Prompts, others: Prompts) -> str | None:
    """The name of the first template that differs between two sets, or None."""
    return next((name for name in FIELDS if prompts.texts.get(name) != others.texts.get(name)), None)


def _misfits(text: str, fields: frozenset[str]) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    used: set[str] = set()
    for match in Template.pattern.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        name = match["named"] or match["braced"]
        if match["invalid"] is not None:
            found.append((line, "'$' stands for a field; write '$$' for a dollar sign"))
        elif name and name not in fields:
            found.append((line, f"'${name}' is not a field of this prompt; expected {', '.join(sorted(fields))}"))
        elif name:
            used.add(name)
    return found + [(1, f"'${name}' is missing; the prompt would leave it out") for name in sorted(fields - used)]
