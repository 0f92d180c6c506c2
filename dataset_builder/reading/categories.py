"""The crisis categories: `content/taxonomy/<category>.md` defines each, and `content/protocols/<category>.md` says how
to rate a reply to one of its messages from 1 to 5.

The set of names is fixed (`schema.CrisisCategory`). Six follow the paper (seed 003), reworded; `no_crisis` and
`outside_taxonomy` complete them. A content folder without one of these folders uses the package's.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

from dataset_builder.prompts import CONTENT
from dataset_builder.reading.content_types import Content
from dataset_builder.reading.markdown import (
    NOTES,
    Document,
    Errors,
    Wrong,
    choice,
    filled,
    headings,
    known_keys,
    read_document,
)
from dataset_builder.reading.signing import check_review
from dataset_builder.reading.strays import TEXTS, authored
from dataset_builder.schema import Category, CrisisCategory, ProtocolRow

T = TypeVar("T")
TAXONOMY, PROTOCOLS = CONTENT / "taxonomy", CONTENT / "protocols"
NAMES: tuple[CrisisCategory, ...] = get_args(CrisisCategory)
LABELS = ("1", "2", "3", "4", "5")  # ratings, as labels of the calibration set


def read_taxonomy(folder: Path, errors: Errors) -> dict[CrisisCategory, Category]:
    """Every category by name, in schema order; omits those with errors."""
    folder = folder if folder.is_dir() else TAXONOMY
    return _by_category(folder, NAMES, _category, "crisis category of schema.py", errors)


def read_protocols(
    folder: Path, categories: Iterable[CrisisCategory], errors: Errors
) -> dict[CrisisCategory, ProtocolRow]:
    """The protocol of each of `categories`; omits those with errors."""
    folder = folder if folder.is_dir() else PROTOCOLS
    return _by_category(folder, tuple(categories), _protocol, "category that triage offers", errors)


def _by_category(
    folder: Path,
    names: Sequence[CrisisCategory],
    read: Callable[[Document, CrisisCategory, Errors], T | None],
    kind: str,
    errors: Errors,
) -> dict[CrisisCategory, T]:
    """The result of `read` on `<name>.md` for each of `names`. A missing or extra file is an error; `kind` names it."""
    for path in authored(folder, TEXTS):
        if path.stem not in names:
            errors.add(path, 1, f"'{path.stem}' is not a {kind}; expected one of {', '.join(names)}")
    found: dict[CrisisCategory, T] = {}
    for name in names:
        path = folder / f"{name}.md"
        if not os.path.lexists(path):
            errors.add(path, 1, f"is missing; every {kind} has a file")
            continue
        own = Errors()  # one file's errors must not hide another file
        document = read_document(path, own)
        value = read(document, name, own) if document else None
        if value is not None and not own.found:
            found[name] = value
        errors.found += own.found
    return found


def _category(document: Document, name: CrisisCategory, errors: Errors) -> Category | None:
    wrong = errors.at(document.path)
    keys = ("id", "title", "in_triage", "high_risk")
    if not known_keys(document, keys, keys, errors):
        return None
    for key in ("in_triage", "high_risk"):
        choice(document.text(key), ("yes", "no"), key, document.front_lines[key], wrong)
    if not headings(document, ["Definition", "Borderline", "Examples"], errors):
        return None
    definition, borderline, examples = (p for p in document.parts if p.name != NOTES)
    fields = {
        "category": name,
        "title": document.text("title"),
        "in_triage": document.text("in_triage") == "yes",
        "high_risk": document.text("high_risk") == "yes",
        "definition": filled(definition, wrong),
        "borderline": _points(borderline.text, borderline.text_line, wrong),
        "examples": _points(examples.text, examples.text_line, wrong),
    }
    return None if errors.found else Category.model_validate(fields | {"category_hash": _hash(fields)})


def _points(text: str, line: int, wrong: Wrong) -> list[str]:
    """`- ` bullet points, one per line."""
    points: list[str] = []
    for number, row in enumerate(text.strip().split("\n"), start=line):
        if match := re.fullmatch(r"- (\S.*)", row):
            points.append(match[1].strip())
        else:
            wrong(number, f"cannot read '{row[:40]}'; expected one point to a line, each beginning with '- '")
    return points


def _protocol(document: Document, name: CrisisCategory, errors: Errors) -> ProtocolRow | None:
    wrong = errors.at(document.path)
    keys = ("id", "title", "review")
    if not known_keys(document, keys, keys, errors):
        return None
    check_review(document, errors)
    if not headings(document, ["Terms", *(f"Level {n}" for n in LABELS), "Not judged"], errors):
        return None
    for part in document.parts:
        for key in part.attributes:
            wrong(part.line, f"unknown '{key}' in the heading; expected '# {part.name}' alone")
    terms, *levels, not_judged = (filled(part, wrong) for part in document.parts if part.name != NOTES)
    fields = {
        "category": name,
        "title": document.text("title"),
        "terms": terms,
        "levels": levels,
        "not_judged": not_judged,
    }
    return ProtocolRow.model_validate(fields | {"protocol_hash": _hash(fields)})


def _hash(fields: dict[str, Any]) -> str:
    return hashlib.sha256(repr(sorted(fields.items())).encode()).hexdigest()[:16]


def covers(content: Content, errors: Errors) -> None:
    """Adds an error for each example that is also a message: in a prompt, it would make triage a test of copying."""
    asked = {" ".join(p.words.lower().split()): f"{s.id}-{p.code}" for s in content.scenarios for p in s.perturbations}
    for name, category in content.taxonomy.items():
        path = content.root / "taxonomy" / f"{name}.md"
        for example in category.examples:
            if message := asked.get(" ".join(example.lower().split())):
                errors.add(path, 1, f"an example repeats {message}; expected one that the benchmark doesn't ask")
