"""The crisis taxonomy as data: `content/taxonomy/<category>.md`, one file per category that a message may carry.

The names are closed (`schema.CrisisCategory`); what each of them means is authored here: a definition, the cases near
its border, and two examples that a triage prompt may show. Six categories follow the paper's (seed 003), in our own
words; `no_crisis` and `outside_taxonomy` complete them.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar, get_args

from dataset_builder.reading.content_types import Content
from dataset_builder.reading.fields import choice, filled, known_keys
from dataset_builder.reading.markdown import Document, Errors, read_document
from dataset_builder.reading.signing import NOTES
from dataset_builder.reading.strays import TEXTS, authored
from dataset_builder.schema import Category, CrisisCategory

T = TypeVar("T")
FOLDER = Path(__file__).resolve().parents[1] / "content" / "taxonomy"
NAMES: tuple[CrisisCategory, ...] = get_args(CrisisCategory)
KEYS = ("id", "title", "in_triage", "high_risk")
PARTS = ["Definition", "Borderline", "Examples"]


def read_taxonomy(folder: Path, errors: Errors) -> dict[CrisisCategory, Category]:
    """Every category by name, in the schema's order; errors name the file and line, and leave that category out.

    A content folder without `taxonomy/` uses the package's: the names are the schema's in either case.
    """
    folder = folder if folder.is_dir() else FOLDER
    return by_category(folder, NAMES, _category, "crisis category of schema.py", errors)


def by_category(
    folder: Path,
    names: Sequence[CrisisCategory],
    read: Callable[[Document, CrisisCategory, Errors], T | None],
    kind: str,
    errors: Errors,
) -> dict[CrisisCategory, T]:
    """What `read` makes of `<name>.md` for each of `names`; a missing or surplus file is an error, `kind` says of
    what.
    """
    for path in authored(folder, TEXTS):
        if path.stem not in names:
            errors.add(path, 1, f"'{path.stem}' is no {kind}; expected one of {', '.join(names)}")
    found: dict[CrisisCategory, T] = {}
    for name in names:
        path = folder / f"{name}.md"
        if not os.path.lexists(path):
            errors.add(path, 1, f"is missing; every {kind} has a file")
            continue
        own = Errors()  # a slip in one file must not hide another file
        document = read_document(path, own)
        value = read(document, name, own) if document else None
        if value is not None and not own.found:
            found[name] = value
        errors.found += own.found
    return found


def _category(document: Document, name: CrisisCategory, errors: Errors) -> Category | None:
    path = document.path
    if not known_keys(document, set(KEYS), KEYS, errors):
        return None
    for key in ("in_triage", "high_risk"):
        choice(document.text(key), ("yes", "no"), key, path, document.front_lines[key], errors)
    parts = [p for p in document.parts if p.name != NOTES]
    if [p.name for p in parts] != PARTS:
        errors.add(path, 1, f"headings are {[p.name for p in parts]}; expected {PARTS}, in this order")
        return None
    definition, borderline, examples = parts
    fields = {
        "category": name,
        "title": document.text("title"),
        "in_triage": document.text("in_triage") == "yes",
        "high_risk": document.text("high_risk") == "yes",
        "definition": filled(definition, path, errors),
        "borderline": _points(borderline.text, path, borderline.text_line, errors),
        "examples": _points(examples.text, path, examples.text_line, errors),
    }
    if errors.found:
        return None
    return Category.model_validate(
        fields | {"category_hash": hashlib.sha256(repr(sorted(fields.items())).encode()).hexdigest()[:16]}
    )


def _points(text: str, path: Path, line: int, errors: Errors) -> list[str]:
    """`- ` points, one to a line."""
    points: list[str] = []
    for number, row in enumerate(text.strip().split("\n"), start=line):
        if match := re.fullmatch(r"- (\S.*)", row):
            points.append(match[1].strip())
        else:
            errors.add(
                path, number, f"cannot read '{row[:40]}'; expected one point to a line, each beginning with '- '"
            )
    return points


def covers(content: Content, errors: Errors) -> None:
    """Adds an error for every example that is asked: shown in a prompt, it would make triage a test of copying."""
    asked = {" ".join(p.words.lower().split()): f"{s.id}-{p.code}" for s in content.scenarios for p in s.perturbations}
    for name, category in content.taxonomy.items():
        for example in category.examples:
            if message := asked.get(" ".join(example.lower().split())):
                errors.add(
                    content.root / "taxonomy" / f"{name}.md",
                    1,
                    f"an example repeats {message}; expected one that the benchmark doesn't ask",
                )
