"""Chapters of the book beside the scenarios: how replies to messages that stand alone are rated, and the taxonomy that
names a crisis.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from dataset_builder.book.readable import Readable, readable
from dataset_builder.composing.messages import NAMES
from dataset_builder.reading.content_types import Content
from dataset_builder.reading.signing import Signature, signatures, text_hash
from dataset_builder.schema import UserMessage

SIGNALS = {"direct": "the danger is said", "indirect": "the danger has to be inferred"}


class Chapter(NamedTuple):
    """A protocol or a category as the page shows it. `said`: headings with their prose; `quotes`: examples, shown as
    messages are.
    """

    id: str
    what: str
    title: str
    tally: str
    hash: str
    signs: bool
    signed: tuple[Signature, ...]
    facts: list[str]
    said: list[tuple[str, str]]
    quotes: list[str]
    other: str


class ByItself(NamedTuple):
    """What is said at a message of its standing alone; `probe`: the id of the other half, where it has one."""

    notes: list[str]
    probe: str


def protocol_chapters(content: Content, alone: dict[str, UserMessage]) -> list[Chapter]:
    """One per protocol, in the order of the taxonomy: what each rating means, and what is not judged."""
    rated, known = Counter(m.crisis_category for m in alone.values()), readable(content)
    chapters: list[Chapter] = []
    for name, row in content.protocols.items():
        if not (read := known.get(f"protocol-{name}")):
            continue
        said = [(f"Level {n}", text) for n, text in enumerate(row.levels, start=1)]
        facts = [f"Replies to {rated[name]} messages that stand alone are rated by it."]
        said.append(("Not judged", row.not_judged))
        chapters.append(
            _chapter(
                read, "protocol", row.title, f"{name}, {rated[name]} messages", facts, said, [], f"category-{name}"
            )
        )
    return chapters


def category_chapters(content: Content, alone: dict[str, UserMessage]) -> list[Chapter]:
    """One per category: its definition, what is near its border, and examples."""
    rated, known = Counter(m.crisis_category for m in alone.values()), readable(content)
    chapters: list[Chapter] = []
    for name, row in content.taxonomy.items():
        if not (read := known.get(f"category-{name}")):
            continue
        facts = [
            "Triage offers it as a label."
            if row.in_triage
            else "Left out of triage and of ratings: the other categories have no right answer for it.",
            "High risk: to take such a message for no crisis may cost a life, and such misses are listed first."
            if row.high_risk
            else "",
        ]
        said = [
            ("Definition", row.definition),
            ("Near its border", "\n".join(f"- {point}" for point in row.borderline)),
        ]
        tally = (
            f"{name}, {rated[name]} messages" if row.in_triage else name
        )  # points name other categories by this name
        other = f"protocol-{name}" if name in content.protocols else ""
        chapters.append(
            _chapter(read, "category", row.title, tally, [f for f in facts if f], said, row.examples, other)
        )
    return chapters


def _chapter(
    read: Readable,
    what: str,
    title: str,
    tally: str,
    facts: list[str],
    said: list[tuple[str, str]],
    quotes: list[str],
    other: str,
) -> Chapter:
    signed = (signatures(read.document.text("review")) or ()) if read.signs else ()
    return Chapter(
        read.id, what, title, tally, text_hash(read.document), read.signs, signed, facts, said, quotes, other
    )


def by_itself(identity: str, alone: dict[str, UserMessage], halves: dict[str, list[str]]) -> ByItself:
    """Whether a message is also asked alone, where its writer is then said to be, how its danger shows, and the other
    half of its probe.
    """
    if not (message := alone.get(identity)):
        return ByItself(["Only within its job"], "")
    place = f", by somebody in {NAMES.get(message.country, message.country)}" if message.country else ""
    notes = [
        f"Also asked alone{place}",
        *([f"Signal: {message.signal}, {SIGNALS[message.signal]}"] if message.signal else []),
    ]
    return ByItself(notes, next((i for i in halves.get(message.probe or "", []) if i != identity), ""))


def probes(alone: dict[str, UserMessage]) -> dict[str, list[str]]:
    """Probe → the ids of its messages."""
    halves: dict[str, list[str]] = {}
    for message in alone.values():
        if message.probe:
            halves.setdefault(message.probe, []).append(message.id)
    return halves
