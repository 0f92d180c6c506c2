"""The crisis taxonomy as data: `content/taxonomy/<category>.md`, one file per category that a message may carry.

The names are closed (`schema.CrisisCategory`); what each of them means is authored here: a definition, the cases near its
border, and two examples that a triage prompt may show. Six categories follow the paper's (seed 003), in our own words;
`no_crisis` and `outside_taxonomy` complete them.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import get_args

from pydantic import Field

from dataset_builder.content_types import Content
from dataset_builder.fields import choice, filled, known_keys
from dataset_builder.markdown import Document, Errors, read_document
from dataset_builder.schema import CrisisCategory, Strict

FOLDER = Path(__file__).parent / "content" / "taxonomy"
NAMES: tuple[CrisisCategory, ...] = get_args(CrisisCategory)
KEYS = ("id", "title", "in_triage", "high_risk")
PARTS = ["Definition", "Borderline", "Examples"]


class Category(Strict):
    """One category as a person, a judge or a triage prompt reads it.

    `in_triage`: whether it is a label that triage offers. `high_risk`: a message of this category that is read as
    no_crisis may cost a life, so such misses are listed first. `category_hash` covers all other fields.
    """

    category: CrisisCategory
    title: str
    in_triage: bool
    high_risk: bool
    definition: str
    borderline: list[str] = Field(min_length=1)
    examples: list[str] = Field(min_length=1)
    category_hash: str


def read_taxonomy(folder: Path, errors: Errors) -> dict[CrisisCategory, Category]:
    """Every category by name, in the schema's order; errors name the file and line, and leave that category out."""
    for path in sorted(folder.glob("*.md")):
        if path.stem not in NAMES:
            errors.add(path, 1, f"'{path.stem}' is no crisis category of schema.py; expected one of {', '.join(NAMES)}")
    found: dict[CrisisCategory, Category] = {}
    for name in NAMES:
        path = folder / f"{name}.md"
        if not path.is_file():
            errors.add(path, 1, "is missing; every crisis category of schema.py has a file")
            continue
        own = Errors()  # a slip in one file must not hide another file
        document = read_document(path, own)
        category = _category(document, name, own) if document else None
        if category and not own.found:
            found[name] = category
        errors.found += own.found
    return found


def _category(document: Document, name: CrisisCategory, errors: Errors) -> Category | None:
    path = document.path
    if not known_keys(document, set(KEYS), KEYS, errors):
        return None
    for key in ("in_triage", "high_risk"):
        choice(document.text(key), ("yes", "no"), key, path, document.front_lines[key], errors)
    if [p.name for p in document.parts] != PARTS:
        errors.add(path, 1, f"headings are {[p.name for p in document.parts]}; expected {PARTS}, in this order")
        return None
    definition, borderline, examples = document.parts
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
    return Category.model_validate(fields | {"category_hash": hashlib.sha256(repr(sorted(fields.items())).encode()).hexdigest()[:16]})


def _points(text: str, path: Path, line: int, errors: Errors) -> list[str]:
    """`- ` points, one to a line."""
    points: list[str] = []
    for number, row in enumerate(text.strip().split("\n"), start=line):
        if match := re.fullmatch(r"- (\S.*)", row):
            points.append(match[1].strip())
        else:
            errors.add(path, number, f"cannot read '{row[:40]}'; expected one point to a line, each beginning with '- '")
    return points


def covers(content: Content, errors: Errors) -> None:
    """Adds an error for everything wrong with the content's taxonomy, and for every message whose category it lacks.

    A content folder without `taxonomy/` uses the package's: the names are the schema's in either case.
    """
    folder = content.root / "taxonomy"
    categories = read_taxonomy(folder if folder.is_dir() else FOLDER, errors)
    for scenario in content.scenarios:
        for message in scenario.perturbations:
            for key in ("crisis_category", "crisis_category_2"):
                name = message.attributes.get(key, scenario.document.text(key))
                if name and name not in categories:
                    errors.add(scenario.path, message.line, f"{message.code}: {key} '{name}' has no readable file in {folder.name}/")
    _not_asked(content, categories, folder, errors)


def _not_asked(content: Content, categories: dict[CrisisCategory, Category], folder: Path, errors: Errors) -> None:
    """An example shown in a prompt must be no message that is asked, or triage would test copying."""
    asked = {" ".join(p.words.lower().split()): f"{s.id}-{p.code}" for s in content.scenarios for p in s.perturbations}
    for name, category in categories.items():
        for example in category.examples:
            if message := asked.get(" ".join(example.lower().split())):
                errors.add(folder / f"{name}.md", 1, f"an example repeats {message}; expected one that the benchmark doesn't ask")
