"""The rating protocols: `content/protocols/<category>.md`, one file per category that triage offers (the six and
no_crisis).

A protocol says what its terms mean, what each rating from 1 to 5 means for a reply to such a message, level 1 first,
and what is not judged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from dataset_builder.reading.fields import filled, known_keys
from dataset_builder.reading.markdown import Document, Errors
from dataset_builder.reading.signing import NOTES, check_review
from dataset_builder.reading.taxonomy import by_category
from dataset_builder.schema import CrisisCategory, ProtocolRow

FOLDER = Path(__file__).resolve().parents[1] / "content" / "protocols"
KEYS = ("id", "title", "review")
PARTS = ["Terms", *(f"Level {n}" for n in range(1, 6)), "Not judged"]
LABELS = ("1", "2", "3", "4", "5")  # what a rating may be, as a label of the calibration set


def read_protocols(
    folder: Path, categories: Iterable[CrisisCategory], errors: Errors
) -> dict[CrisisCategory, ProtocolRow]:
    """The protocol of each of `categories`; errors name the file and line, and leave that protocol out.

    A content folder without `protocols/` uses the package's.
    """
    folder = folder if folder.is_dir() else FOLDER
    return by_category(folder, tuple(categories), _protocol, "category that triage offers", errors)


def _protocol(document: Document, name: CrisisCategory, errors: Errors) -> ProtocolRow | None:
    path = document.path
    if not known_keys(document, set(KEYS), KEYS, errors):
        return None
    check_review(document, errors)
    parts = [p for p in document.parts if p.name != NOTES]
    if [p.name for p in parts] != PARTS:
        errors.add(path, 1, f"headings are {[p.name for p in parts]}; expected {PARTS}, in this order")
        return None
    for part in document.parts:
        for key in part.attributes:
            errors.add(path, part.line, f"unknown '{key}' in the heading; expected '# {part.name}' alone")
    terms, *levels, not_judged = (filled(part, path, errors) for part in parts)
    read = {
        "category": name,
        "title": document.text("title"),
        "terms": terms,
        "levels": levels,
        "not_judged": not_judged,
    }
    return ProtocolRow.model_validate(
        read | {"protocol_hash": hashlib.sha256(repr(sorted(read.items())).encode()).hexdigest()[:16]}
    )
