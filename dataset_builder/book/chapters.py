"""Chapters of the book beside the scenarios: how replies to lone messages are rated, and what names a crisis."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple, TypedDict

from dataset_builder.book.readable import Readable, readable
from dataset_builder.composing.messages import NAMES
from dataset_builder.reading.content_types import Content
from dataset_builder.reading.signing import Signature, signatures, text_hash
from dataset_builder.schema import UserMessage

IN_TRIAGE = "Triage offers it as a label."
NOT_IN_TRIAGE = "Left out of triage and of ratings: the other categories have no right answer for it."
HIGH_RISK = "High risk: to take such a message for no crisis may cost a life, and such misses are listed first."
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


class _About(TypedDict):
    """The fields of a chapter that its file gives."""

    id: str
    hash: str
    signs: bool
    signed: tuple[Signature, ...]


class ByItself(NamedTuple):
    """What is said at a message of its standing alone; `probe`: the id of the other half, where it has one."""

    notes: list[str]
    probe: str


def protocol_chapters(content: Content, alone: dict[str, UserMessage]) -> list[Chapter]:
    """One per protocol, in the order of the taxonomy: what each rating means, and what is not judged."""
    rated, known = Counter(m.crisis_category for m in alone.values()), readable(content)
    return [
        Chapter(
            **_about(known[f"protocol-{name}"]),
            what="protocol",
            title=row.title,
            tally=f"{name}, {rated[name]} messages",
            facts=[f"Replies to {rated[name]} messages that stand alone are rated by it."],
            said=[
                *((f"Level {n}", text) for n, text in enumerate(row.levels, start=1)),
                ("Not judged", row.not_judged),
            ],
            quotes=[],
            other=f"category-{name}",
        )
        for name, row in content.protocols.items()
        if f"protocol-{name}" in known
    ]


def category_chapters(content: Content, alone: dict[str, UserMessage]) -> list[Chapter]:
    """One per category: its definition, what is near its border, and examples."""
    rated, known = Counter(m.crisis_category for m in alone.values()), readable(content)
    return [
        Chapter(
            **_about(known[f"category-{name}"]),
            what="category",
            title=row.title,
            # Points name other categories by this name.
            tally=f"{name}, {rated[name]} messages" if row.in_triage else name,
            facts=[IN_TRIAGE if row.in_triage else NOT_IN_TRIAGE, *([HIGH_RISK] if row.high_risk else [])],
            said=[
                ("Definition", row.definition),
                ("Near its border", "\n".join(f"- {point}" for point in row.borderline)),
            ],
            quotes=row.examples,
            other=f"protocol-{name}" if name in content.protocols else "",
        )
        for name, row in content.taxonomy.items()
        if f"category-{name}" in known
    ]


def _about(read: Readable) -> _About:
    signed = (signatures(read.document.text("review")) or ()) if read.signs else ()
    return {"id": read.id, "hash": text_hash(read.document), "signs": read.signs, "signed": signed}


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
