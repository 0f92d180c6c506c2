"""A review → changes to the files that were read, as a patch: `review:` lines and notes, never a severity."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from dataset_builder.book.readable import Readable, readable
from dataset_builder.book.review import WHOLE, Item, Note, Review
from dataset_builder.reading.content_types import Content
from dataset_builder.reading.signing import DRAFT, NOTES, Signature, signatures
from helmbench_common.files import write_whole


class Change(NamedTuple):
    """A file before and after."""

    path: Path
    old: str
    new: str


def changes(review: Review, content: Content, place: Callable[[Path], Path] = Path) -> list[Change]:
    """What the review changes, by file; empty where all of it stands there already. `place` finds the authored file."""
    known = readable(content)
    found: list[Change] = []
    for item in review.items:
        read = known[item.scenario]
        path = place(read.document.path)
        old = path.read_bytes().decode("utf-8")
        new = _changed(old, read, item, review)
        if new != old:
            found.append(Change(path, old, new))
    return found


def _changed(old: str, read: Readable, item: Item, review: Review) -> str:
    end = "\r\n" if "\r\n" in old else "\n"  # the file's own, so that a patch touches no other line
    lines = old.replace("\r\n", "\n").removesuffix("\n").split("\n")
    if item.signed:
        line = read.document.front_lines["review"] - 1
        lines[line] = f"review: {_signed(read.document.text('review'), item, review)}"
    notes = [text for note in item.notes if (text := _note(note, read, review)) and not _stands(text, lines)]
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


def _note(note: Note, read: Readable, review: Review) -> list[str]:
    """A note as lines: who says what of which message, then their words as a quotation, so that none can be read as a
    heading.
    """
    severity = read.severities.get(note.about)
    verdict = {
        "agree": f", agrees with severity {severity}",
        "disagree": f", disagrees with severity {severity}"
        + (f" and would say {note.severity}" if note.severity is not None else ""),
        None: "",
    }[note.verdict]
    words = [line.rstrip() for line in note.comment.replace("\r\n", "\n").strip().split("\n")]
    if not (verdict or any(words)):
        return []
    person = ", ".join(filter(None, (review.reviewer.name, review.reviewer.qualification)))
    about = read.whole if note.about == WHOLE else note.about
    return [
        f"- {about}{verdict} ({person}, {review.date})",
        *([f"  > {line}".rstrip() for line in words] if any(words) else []),
    ]


def _stands(note: list[str], lines: list[str]) -> bool:
    return any(lines[n : n + len(note)] == note for n in range(len(lines)))


def summary(review: Review, found: list[Change], content: Content) -> str:
    """In a few lines: by whom, what is signed, and which severities are disputed, which nobody but an author
    changes.
    """
    severity = {(s.id, p.code): p.severity for s in content.scenarios for p in s.perturbations}
    disputed = [(item.scenario, note) for item in review.items for note in item.notes if note.verdict == "disagree"]
    agreed = sum(note.verdict == "agree" for item in review.items for note in item.notes)
    comments = sum(bool(note.comment.strip()) for item in review.items for note in item.notes)
    person = f"{review.reviewer.name}{f' ({review.reviewer.qualification})' if review.reviewer.qualification else ''}"
    lines = [
        f"Review by {person}, {review.date}, of content {review.version}. Comments: {comments}; severities "
        f"agreed with: {agreed}, disputed: {len(disputed)}.",
        "Signs: " + (", ".join(item.scenario for item in review.items if item.signed) or "nothing") + ".",
    ]
    if disputed:
        lines.append("Severities disputed; they stand in the notes, and this patch changes none of them:")
        lines += [
            f"  {scenario}-{note.about}: "
            f"{severity[scenario, note.about]}{f', would say {note.severity}' if note.severity is not None else ''}"
            for scenario, note in disputed
        ]
    if review.version != content.version:
        lines.append(
            f"Read in content {review.version}; here is {content.version}. What is below hasn't changed "
            "between the two."
        )
    return "\n".join(
        [
            *lines,
            f"{len(found)} file{'s' if len(found) != 1 else ''} to change."
            if found
            else "All of it stands there already: nothing to change.",
        ]
    )


def patch(found: list[Change]) -> str:
    """A unified diff that `git apply` reads, run anywhere in the repository that holds the files (or, without one,
    beside them).
    """
    pieces: list[str] = []
    for change in found:
        name = change.path.resolve().relative_to(_top(change.path.resolve())).as_posix()
        for line in difflib.unified_diff(_lines(change.old), _lines(change.new), f"a/{name}", f"b/{name}"):
            pieces.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(pieces)


def _top(path: Path) -> Path:
    return next((folder for folder in path.parents if (folder / ".git").exists()), path.parents[1])


def _lines(text: str) -> list[str]:
    # Only a newline ends a line, as for the reader of content: a pasted U+2028 in a message is data.
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def apply(found: list[Change]) -> None:
    """Writes every change, each file whole or not at all."""
    for change in found:
        write_whole(change.path, change.new, mode=change.path.stat().st_mode & 0o777)
