"""Which replies stand on the page, and which in the file beside it: a page that travels by e-mail can't hold all."""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple

from jinja2 import Environment
from markupsafe import Markup

from dataset_builder.schema import CriterionRow
from judge import wording
from judge.report.entries import Entries, Entry, in_reading_order
from judge.schema import Scorecard


class Listing(NamedTuple):
    """The entries on the page, ready to be read, the system texts that they refer to, and what is left for the file
    beside it.
    """

    entries: list[Entry]
    rendered: list[Markup]
    systems: list[Markup]
    left: list[Entry]

    def options(self, name: str) -> list[str]:
        """The values that a filter offers, those that occur."""
        return sorted({getattr(f, name) for entry in self.entries for f in entry.findings} - {""})

    @property
    def anchors(self) -> dict[str, str]:
        """Sample id → the entry to link to, of several repeats the first that failed."""
        return _by_id(self.entries)

    @property
    def elsewhere(self) -> dict[str, str]:
        return _by_id(self.left)


def _by_id(found: list[Entry]) -> dict[str, str]:
    """The first of each sample, and failures stand first."""
    return {e.id: e.anchor for e in reversed(found)}


def fit(environment: Environment, found: Entries, room: int, criteria: dict[str, CriterionRow]) -> Listing:
    """As many of the gravest entries as there is room for, each with its system text; once one doesn't fit, the rest is
    left.
    """
    macros: Any = environment.get_template("entry.html").make_module({"criteria": criteria})
    rendered: dict[str, Markup] = {}
    systems: dict[int, Markup] = {}
    kept: list[Entry] = []
    for entry in found.entries:
        html = macros.entry(entry)
        text = (
            macros.system(entry.system, found.systems[entry.system - 1])
            if entry.system and entry.system not in systems
            else Markup("")
        )
        room -= len(html.encode()) + len(text.encode())
        if room < 0:
            break
        kept.append(entry)
        rendered[entry.anchor] = html
        if text and entry.system:
            systems[entry.system] = text
    entries = in_reading_order(kept)
    return Listing(
        entries,
        [rendered[e.anchor] for e in entries],
        [systems[n] for n in sorted(systems)],
        found.entries[len(kept) :],
    )


def samples(listing: Listing, found: Entries, s: Scorecard) -> tuple[str, str | None]:
    """What is left, as JSON with one entry a line, and its hash, by which the page knows its own file."""
    if not listing.left:
        return "", None
    entries = [_plain(entry) for entry in in_reading_order(listing.left)]
    systems = {str(n): found.systems[n - 1] for n in sorted({e.system for e in listing.left if e.system})}
    lines = ",\n".join(json.dumps(e, ensure_ascii=False) for e in entries)
    digest = hashlib.sha256(f"{s.dataset.score_hash}\n{json.dumps(systems)}\n{lines}".encode()).hexdigest()
    head = {
        "format": "helmbench-report-samples-1",
        "hash": digest,
        "model": wording.clip(s.model.name),
        "score_hash": s.dataset.score_hash,
        "systems": systems,
    }
    return digest, json.dumps(head, ensure_ascii=False, indent=1)[:-2] + f',\n "entries": [\n{lines}\n]\n}}\n'


def _plain(entry: Entry) -> dict[str, Any]:
    return entry._asdict() | {
        "turns": [t._asdict() for t in entry.turns],
        "findings": [f._asdict() for f in entry.findings],
    }
