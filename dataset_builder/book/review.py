"""What a reader of the book sent back, checked against the content: a review file is the book's download.

It is somebody else's file: everything in it is checked before any of it is used, and all that is wrong is said at once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from dataset_builder.book.readable import Readable, readable
from dataset_builder.checking.safe_messaging import unsafe
from dataset_builder.reading.content_types import Content
from dataset_builder.reading.refused import Refused
from dataset_builder.reading.signing import PERSON, text_hash
from dataset_builder.schema import Strict
from helmbench_common.errors import RefusedError
from helmbench_common.formats import json_file
from helmbench_common.formats.plain_file import decoded, opened
from helmbench_common.formats.refused import FormatError, shown

FORMAT = "helmbench-review-1"
MOST_BYTES = 2_000_000  # a comment on every message at its full length is less
MOST_WORDS = 4_000  # characters of one comment
WHOLE = "scenario"  # what a note is about when it isn't about one message
# Reviews are shown in files and on pages: nothing that a page could take for markup, or that reorders the text around
# it.
MARKUP = re.compile(r"<[a-zA-Z/!?]|&#|javascript:", re.IGNORECASE)
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")


class ReviewError(RefusedError):
    """What is wrong with a review file, one line each; nothing of it is used."""

    def __init__(self, path: Path, problems: list[str], line: int | None = None) -> None:
        where = shown(path) + (f":{line}" if line else "")
        super().__init__(*(f"{where}: {problem}" for problem in problems))
        self.problems = problems


class Note(Strict):
    """What a reviewer says of a message (`about` its code) or of the whole scenario, protocol or category."""

    about: str = Field(pattern=rf"^({WHOLE}|PT\d+)$")
    comment: str = Field(default="", max_length=MOST_WORDS)
    verdict: Literal["agree", "disagree"] | None = None
    severity: int | None = Field(default=None, ge=-10, le=10)


class Item(Strict):
    """A scenario, protocol or category, by its id in `readable`: the hash of the words that were read, the notes on
    them, and whether it is signed.
    """

    scenario: str = Field(max_length=40)
    text: str = Field(pattern=r"^[0-9a-f]{12}$")
    signed: bool = False
    notes: list[Note] = Field(default=[], max_length=500)


class Reviewer(Strict):
    name: str = Field(max_length=120)
    qualification: str = Field(default="", max_length=120)


class Review(Strict):
    """The book's download."""

    format: Literal["helmbench-review-1"]
    version: str = Field(pattern=r"^[\w.+\-]{1,60}$")
    content: str = Field(pattern=r"^[0-9a-f]{12}$")
    date: str
    reviewer: Reviewer
    items: list[Item] = Field(min_length=1, max_length=2_000)


def read(path: Path, content: Content) -> Review:
    """The review in `path`, held against `content`.

    Raises:
        ReviewError: it can't be read, is too large, of another form, or of other words than `content` holds.
        OSError: there is no such file.
    """
    with opened(path) as file:
        raw = file.read(MOST_BYTES + 1)
        size = os.fstat(file.fileno()).st_size
    if size > MOST_BYTES:
        what = (
            f"has {size / 1e6:.1f} MB; expected a review of at most {MOST_BYTES / 1e6:.0f} MB, as the book downloads it"
        )
        raise ReviewError(path, [what])
    try:
        json_file.loads(decoded(raw, path), path, "the book's download as it was saved")
        review = Review.model_validate_json(raw)
    except FormatError as error:
        raise ReviewError(path, [error.message], error.line) from None
    except ValidationError as error:
        raise ReviewError(path, [_problem(p["loc"], p["msg"]) for p in error.errors()[:20]]) from None
    if problems := [*_person(review), *_items(review, content)]:
        raise ReviewError(path, problems)
    return review


def _problem(where: tuple[int | str, ...], what: str) -> str:
    if where == ("format",):
        return f"is no review file of this version ({what}); expected the book's download, format {FORMAT}"
    named = "".join(c if c.isprintable() else "?" for c in ".".join(map(str, where)))[
        :200
    ]  # a field's name is the sender's too
    return f"{named or 'the file'}: {what}; expected the book's download as it was saved"


# Values of the file are shown as Python writes them: a terminal would act on control characters.
def _person(review: Review) -> Iterator[str]:
    name, qualification = review.reviewer.name, review.reviewer.qualification
    signs = any(item.signed for item in review.items)
    if not re.fullmatch(PERSON, name):
        yield (
            f"the reviewer's name is {name!r}; expected one that begins with a letter and has no brackets, "
            "colons or quotation marks"
        )
    if (signs or qualification) and not re.fullmatch(PERSON, qualification):
        yield (
            f"the reviewer's qualification is {qualification!r}; expected one in letters, such as "
            "'clinical psychologist', to sign with"
        )
    try:
        date.fromisoformat(review.date)
    except ValueError:
        yield f"date is {review.date!r}; expected one such as 2026-11-22"


def _items(review: Review, content: Content) -> Iterator[str]:
    known = readable(content)
    seen: set[str] = set()
    for item in review.items:
        if item.scenario not in known:
            yield (
                f"there is no scenario {item.scenario!r} in content {content.version}; the review is of "
                f"{review.version}"
            )
        elif item.scenario in seen:
            yield f"{item.scenario} stands twice; expected each scenario once"
        else:
            yield from _item(item, known[item.scenario], review.version, content.refused)
        seen.add(item.scenario)


def _item(item: Item, read: Readable, version: str, refused: Refused) -> Iterator[str]:
    if item.text != (now := text_hash(read.document)):
        yield (
            f"{item.scenario} has been changed since it was read (its words were {item.text}, in {version}, "
            f"and are {now}); "
            "apply the review to the content that it was read in, or ask for a new one"
        )
        return
    messages = read.severities
    seen: set[str] = set()
    for note in item.notes:
        where = f"{item.scenario}, note on {note.about}"
        if note.about != WHOLE and note.about not in messages:
            yield f"{where}: there is no such message"
        elif note.about in seen:
            yield f"{where}: stands twice; expected one note each"
        elif (
            (note.severity is not None and note.verdict != "disagree")
            or note.severity == 0
            or (note.about == WHOLE and note.verdict)
        ):
            yield (
                f"{where}: verdict is {note.verdict} with severity {note.severity}; expected 'disagree' "
                "with a number from -10 to 10 and not 0, on a message"
            )
        elif note.severity is not None and note.severity == messages[note.about]:
            yield f"{where}: disagrees with severity {note.severity} and suggests the same"
        seen.add(note.about)
        yield from (f"{where}: {problem}" for problem in _words(note.comment, refused))
    if item.signed and not read.signs:
        yield f"{item.scenario} is signed, and has no review line; expected notes on it only"
    disputed = [note.about for note in item.notes if note.verdict == "disagree"]
    if item.signed and disputed:
        yield (
            f"{item.scenario} is signed while the severity of {', '.join(disputed)} is disputed; settle "
            "that first, then sign"
        )


def _words(comment: str, refused: Refused) -> Iterator[str]:
    """The content's own rules, which hold for what is said about it too: a comment is written into the content."""
    if match := MARKUP.search(comment):
        yield f"{comment[match.start() : match.start() + 20]!r} reads as markup; expected plain words"
    if match := CONTROLS.search(comment.replace("\r\n", "\n")):
        yield f"holds the control character U+{ord(match[0]):04X}; expected plain words"
    for line in comment.splitlines():
        yield from unsafe(line, refused)
