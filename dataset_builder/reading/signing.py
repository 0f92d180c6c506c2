"""The `review:` line of a scenario: a draft, or who signed which text.

A signature includes the hash of the text that was read. After an edit, `check` requires a new signature or `draft`.
"""

from __future__ import annotations

import hashlib
import json
import re
from datetime import date
from typing import NamedTuple

from dataset_builder.reading.markdown import NOTES, Document, Errors

DRAFT = "draft"
# A name or qualification: letters of any script, and nothing that ends a YAML text, opens a bracket or starts a tag.
PERSON = (
    r"[^\W\d_]"
    r"""[^\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff()\[\]{}<>;:#"\\`|]{0,118}"""
    r"(?<! )"
)
_SIGNED = re.compile(rf"signed by ({PERSON}) \(({PERSON})\), (\d{{4}}-\d\d-\d\d), text ([0-9a-f]{{12}})")
EXPECTED = f"expected '{DRAFT}' or 'signed by NAME (QUALIFICATION), YYYY-MM-DD, text HASH', separated by '; '"


class Signature(NamedTuple):
    """A reviewer, the ISO date, and the hash of the text they read (`text_hash`)."""

    name: str
    qualification: str
    date: str
    text: str

    def __str__(self) -> str:
        return f"signed by {self.name} ({self.qualification}), {self.date}, text {self.text}"


def text_hash(document: Document) -> str:
    """12 hex digits of the hash of a scenario file, excluding its `review:` line and review notes."""
    front = sorted((key, value) for key, value in document.front.items() if key != "review")
    parts = [(p.name, sorted(p.attributes.items()), p.text) for p in document.parts if p.name != NOTES]
    return hashlib.sha256(json.dumps([front, parts], ensure_ascii=False).encode()).hexdigest()[:12]


def signatures(review: str) -> tuple[Signature, ...] | None:
    """The signatures, none for a draft; None if the line can't be read."""
    if review == DRAFT:
        return ()
    found = [_SIGNED.fullmatch(piece) for piece in review.split("; ")]
    signed = tuple(Signature(*match.groups()) for match in found if match)
    return signed if len(signed) == len(found) and all(is_date(s.date) for s in signed) else None


def check_review(document: Document, errors: Errors) -> None:
    """Adds an error if the line can't be read or the text has changed since it was signed."""
    review, line = document.text("review"), document.front_lines["review"]
    signed = signatures(review)
    if signed is None:
        errors.add(document.path, line, f"review is '{review}'; {EXPECTED}")
        return
    now = text_hash(document)
    for signature in signed:
        if signature.text != now:
            what = f"{signature.name} signed the words with hash {signature.text}, which are now {now}"
            expected = f"expected them unchanged, or 'review: {DRAFT}' until they have been read again"
            errors.add(document.path, line, f"{what}; {expected}")


def is_date(text: str) -> bool:
    """Whether a text is an ISO date."""
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
