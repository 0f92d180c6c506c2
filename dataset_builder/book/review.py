"""A reader's review (downloaded from the book), checked against the content → a patch.

A review is untrusted input: the whole file is validated before any of it is used, and every problem is reported at
once. Forbidden words in a comment, such as a medicine's name, aren't a problem: a placeholder replaces them and the
summary lists them. A patch changes `review:` lines and notes, never a severity.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field, ValidationError

from dataset_builder.checking.safe_messaging import replaced
from dataset_builder.reading.categories import PROTOCOLS, TAXONOMY
from dataset_builder.reading.content_types import Content
from dataset_builder.reading.markdown import NOTES, Document, Errors, read_document
from dataset_builder.reading.refused import Refused
from dataset_builder.reading.signing import DRAFT, PERSON, Signature, is_date, signatures, text_hash
from dataset_builder.schema import Strict
from helmbench_common.errors import RefusedError
from helmbench_common.files import write_whole
from helmbench_common.formats import json_file
from helmbench_common.formats.plain_file import decoded, opened
from helmbench_common.formats.refused import FormatError, shown

FORMAT = "helmbench-review-1"
MOST_BYTES = 2_000_000  # more than comments of full length on every message
MOST_WORDS = 4_000  # characters of one comment
WHOLE = "scenario"  # `about` of a note on the whole scenario
# Reviews appear in files and on pages, so they contain no markup and no characters that reorder nearby text.
MARKUP = re.compile(r"<[a-zA-Z/!?]|&#|javascript:", re.IGNORECASE)
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")


class Readable(NamedTuple):
    """An authored file that readers comment on. `severities`: message code → severity; `signs`: has a review line.

    `whole`: how a note names the whole file.
    """

    id: str
    document: Document
    severities: dict[str, int]
    whole: str
    signs: bool


def readable(content: Content) -> dict[str, Readable]:
    """By id: a scenario's or part's id, `protocol-<category>` or `category-<category>`."""
    found = [
        Readable(s.id, s.document, {p.code: p.severity for p in s.perturbations}, "The whole scenario", True)
        for s in content.scenarios
    ]
    found += [
        Readable(f"protocol-{d.path.stem}", d, {}, "The protocol", True)
        for d in _documents(content.root / "protocols", PROTOCOLS, content.protocols)
    ]
    found += [
        Readable(f"category-{d.path.stem}", d, {}, "The category", False)
        for d in _documents(content.root / "taxonomy", TAXONOMY, content.taxonomy)
    ]
    found += [Readable(part.row.id, part.document, {}, "The part", True) for part in content.parts]
    return {r.id: r for r in found}


def _documents(folder: Path, package: Path, names: Iterable[str]) -> list[Document]:
    """The files that were loaded; like the loader, falls back to the package's when the folder has none."""
    paths = [(folder if folder.is_dir() else package) / f"{name}.md" for name in names]
    return [document for path in paths if (document := read_document(path, Errors()))]


class ReviewError(RefusedError):
    """Problems in a review file, one per line; none of the file is used."""

    def __init__(self, path: Path, problems: list[str], line: int | None = None) -> None:
        where = shown(path) + (f":{line}" if line else "")
        super().__init__(*(f"{where}: {problem}" for problem in problems))


class Note(Strict):
    """A reviewer's note on a message (`about` its code) or on the whole scenario, protocol or category."""

    about: str = Field(pattern=rf"^({WHOLE}|PT\d+)$")
    comment: str = Field(default="", max_length=MOST_WORDS)
    verdict: Literal["agree", "disagree"] | None = None
    severity: int | None = Field(default=None, ge=-10, le=10)


class Item(Strict):
    """Notes on a scenario, protocol or category, by its id in `readable`. `text`: the hash of the words read."""

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
    """The review in `path`, checked against `content`.

    Raises:
        ReviewError: it can't be read, is too large, doesn't validate, or reviews a different text than `content` has.
        OSError: the file doesn't exist.
    """
    with opened(path) as file:
        raw = file.read(MOST_BYTES + 1)
        size = os.fstat(file.fileno()).st_size
    if size > MOST_BYTES:
        limit = f"expected a review of at most {MOST_BYTES / 1e6:.0f} MB, as the book downloads it"
        raise ReviewError(path, [f"has {size / 1e6:.1f} MB; {limit}"])
    try:
        json_file.loads(decoded(raw, path), path, "the file that the book's Download button saved")
        review = Review.model_validate_json(raw)
    except FormatError as error:
        raise ReviewError(path, [error.message], error.line) from None
    except ValidationError as error:
        found = error.errors()
        if any(p["loc"] == ("format",) for p in found):
            raise ReviewError(path, [f"not a review file; expected the book's download, format {FORMAT}"]) from None
        raise ReviewError(path, [_problem(p["loc"], p["msg"]) for p in found[:20]]) from None
    if problems := [*_person(review), *_items(review, content)]:
        raise ReviewError(path, problems)
    return review


def _problem(where: tuple[int | str, ...], what: str) -> str:
    name = shown(".".join(map(str, where)))[:200]  # the sender chooses field names too
    return f"{name or 'the file'}: {what}; expected the file that the book's Download button saved"


def _person(review: Review) -> Iterator[str]:
    name, qualification = review.reviewer.name, review.reviewer.qualification
    signs = any(item.signed for item in review.items)
    if not re.fullmatch(PERSON, name):
        yield (
            f"the reviewer's name is {name!r}; expected one that starts with a letter, without brackets, colons or "
            "quotation marks"
        )
    if (signs or qualification) and not re.fullmatch(PERSON, qualification):
        yield (
            f"the reviewer's qualification is {qualification!r}; expected one in letters, such as 'clinical "
            "psychologist'"
        )
    if not is_date(review.date):
        yield f"date is {review.date!r}; expected one such as 2026-11-22"


def _items(review: Review, content: Content) -> Iterator[str]:
    known = readable(content)
    seen: set[str] = set()
    for item in review.items:
        if item.scenario not in known:
            yield f"unknown scenario {item.scenario!r} in content {content.version} (the review is of {review.version})"
        elif item.scenario in seen:
            yield f"{item.scenario} appears twice; expected each scenario once"
        else:
            yield from _item(item, known[item.scenario], review.version)
        seen.add(item.scenario)


def _item(item: Item, read: Readable, version: str) -> Iterator[str]:
    if item.text != (now := text_hash(read.document)):
        yield (
            f"{item.scenario} has changed since it was read (its words were {item.text}, in {version}, and are {now}); "
            "apply the review to the content that was read, or ask for a new one"
        )
        return
    messages = read.severities
    seen: set[str] = set()
    for note in item.notes:
        where = f"{item.scenario}, note on {note.about}"
        if note.about != WHOLE and note.about not in messages:
            yield f"{where}: unknown message"
        elif note.about in seen:
            yield f"{where}: appears twice; expected one note each"
        elif (
            note.severity == 0
            or (note.severity is not None and note.verdict != "disagree")
            or (note.about == WHOLE and note.verdict)
        ):
            yield (
                f"{where}: verdict is {note.verdict} with severity {note.severity}; expected 'disagree' with a number "
                "from -10 to 10 and not 0, on a message"
            )
        elif note.severity is not None and note.severity == messages[note.about]:
            yield f"{where}: disagrees with severity {note.severity} and suggests the same"
        seen.add(note.about)
        yield from (f"{where}: {problem}" for problem in _words(note.comment))
    if item.signed and not read.signs:
        yield f"{item.scenario} is signed but has no review line; expected notes only"
    disputed = [note.about for note in item.notes if note.verdict == "disagree"]
    if item.signed and disputed:
        yield f"{item.scenario} is signed, but the severity of {', '.join(disputed)} is disputed; settle that first"


def _words(comment: str) -> Iterator[str]:
    if match := MARKUP.search(comment):
        yield f"{comment[match.start() : match.start() + 20]!r} reads as markup; expected plain words"
    if match := CONTROLS.search(comment.replace("\r\n", "\n")):
        yield f"contains the control character U+{ord(match[0]):04X}; expected plain words"


def _lines(comment: str) -> list[str]:
    return [line.rstrip() for line in comment.replace("\r\n", "\n").strip().split("\n")]


class Change(NamedTuple):
    """A file before and after."""

    path: Path
    old: str
    new: str


def changes(review: Review, content: Content, place: Callable[[Path], Path] = Path) -> list[Change]:
    """The review's changes, by file; empty if the content already has them all. `place` finds the authored file."""
    known = readable(content)
    found: list[Change] = []
    for item in review.items:
        read = known[item.scenario]
        path = place(read.document.path)
        old = path.read_bytes().decode("utf-8")
        new = _changed(old, read, item, review, content.refused)
        if new != old:
            found.append(Change(path, old, new))
    return found


def _changed(old: str, read: Readable, item: Item, review: Review, refused: Refused) -> str:
    end = "\r\n" if "\r\n" in old else "\n"  # the file's line end, so that a patch touches no other line
    lines = old.replace("\r\n", "\n").removesuffix("\n").split("\n")
    if item.signed:
        line = read.document.front_lines["review"] - 1
        lines[line] = f"review: {_signed(read.document.text('review'), item, review)}"
    made = [_note(note, read, review, refused) for note in item.notes]
    notes = [text for text in made if text and not _has(lines, text)]
    if notes:
        own = next((p for p in read.document.parts if p.name == NOTES), None)
        later = [p.line - 1 for p in read.document.parts if own and p.line > own.line]
        at = min(later, default=len(lines))
        lines[at:at] = ([] if own else [f"# {NOTES}"]) + [line for note in notes for line in note]
    return end.join(lines) + (end if old.endswith("\n") or notes else "")


def _signed(before: str, item: Item, review: Review) -> str:
    earlier = signatures(before) or ()
    own = Signature(review.reviewer.name, review.reviewer.qualification, review.date, item.text)
    if any(s[:2] == own[:2] for s in earlier):
        return before
    return "; ".join(map(str, [*earlier, own])) if before != DRAFT else str(own)


def _note(note: Note, read: Readable, review: Review, refused: Refused) -> list[str]:
    """A note as lines: reviewer, message and the comment as a quotation, so no line can be a heading. Placeholders
    replace what content must not contain.
    """
    severity = read.severities.get(note.about)
    verdict = {
        "agree": f", agrees with severity {severity}",
        "disagree": f", disagrees with severity {severity}"
        + (f" and would say {note.severity}" if note.severity is not None else ""),
        None: "",
    }[note.verdict]
    words = [replaced(line, refused)[0] for line in _lines(note.comment)]
    if not (verdict or any(words)):
        return []
    person = ", ".join(filter(None, (review.reviewer.name, review.reviewer.qualification)))
    about = read.whole if note.about == WHOLE else note.about
    return [
        f"- {about}{verdict} ({person}, {review.date})",
        *([f"  > {line}".rstrip() for line in words] if any(words) else []),
    ]


def _has(lines: list[str], note: list[str]) -> bool:
    return any(lines[n : n + len(note)] == note for n in range(len(lines)))


def summary(review: Review, found: list[Change], content: Content) -> str:
    """A few lines: the reviewer, what they sign, and disputed severities, which only an author can change."""
    severity = {(s.id, p.code): p.severity for s in content.scenarios for p in s.perturbations}
    notes = [(item.scenario, note) for item in review.items for note in item.notes]
    disputed = [(scenario, note) for scenario, note in notes if note.verdict == "disagree"]
    agreed = sum(note.verdict == "agree" for _, note in notes)
    comments = sum(bool(note.comment.strip()) for _, note in notes)
    qualification = f" ({review.reviewer.qualification})" if review.reviewer.qualification else ""
    lines = [
        f"Review by {review.reviewer.name}{qualification}, {review.date}, of content {review.version}. Comments: "
        f"{comments}; severities agreed with: {agreed}, disputed: {len(disputed)}.",
        "Signs: " + (", ".join(item.scenario for item in review.items if item.signed) or "nothing") + ".",
    ]
    if disputed:
        lines.append("Disputed severities; they are in the notes, and this patch changes none of them:")
    for scenario, note in disputed:
        other = f", would say {note.severity}" if note.severity is not None else ""
        lines.append(f"  {scenario}-{note.about}: {severity[scenario, note.about]}{other}")
    if review.version != content.version:
        lines.append(
            f"Read in content {review.version}; this is {content.version}. The texts below are the same in both."
        )
    files = f"{len(found)} file{'s' * (len(found) != 1)} to change."
    return "\n".join([*lines, files if found else "The content has all of it already: nothing to change."])


def placeholders(review: Review, content: Content) -> list[str]:
    """The words of comments that placeholders replace: for whoever imports the review; no patch contains them."""
    swapped = [
        f"  {item.scenario}, note on {note.about}: '{words}' → {other}"
        for item in review.items
        for note in item.notes
        for line in _lines(note.comment)
        for words, other in replaced(line, content.refused)[1]
    ]
    return ["replaced in comments, because content must not contain it:", *swapped] if swapped else []


def patch(found: list[Change]) -> str:
    """A unified diff for `git apply`: run it anywhere in the files' repository or, without one, above their folder."""
    pieces: list[str] = []
    for path, *texts in found:
        parents = path.resolve().parents
        top = next((folder for folder in parents if (folder / ".git").exists()), parents[1])
        name = path.resolve().relative_to(top).as_posix()
        # Only a newline ends a line, as in the content reader: a pasted U+2028 in a message is data.
        old, new = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in texts)
        for line in difflib.unified_diff(old, new, f"a/{name}", f"b/{name}"):
            pieces.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(pieces)


def apply(found: list[Change]) -> None:
    """Writes every change; each file is replaced as a whole."""
    for change in found:
        write_whole(change.path, change.new, mode=change.path.stat().st_mode & 0o777)
