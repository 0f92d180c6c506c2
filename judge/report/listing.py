"""Which replies stand on the report's page: one that travels by e-mail can't hold all."""

from __future__ import annotations

from typing import Any, NamedTuple

from jinja2 import Environment
from markupsafe import Markup

from dataset_builder.schema import CriterionRow
from judge.report.entries import Entries, Entry, anchor, in_reading_order


class Listing(NamedTuple):
    """The entries on the page, ready to be read, and the system texts that they refer to.

    `left`: how many have no room; `elsewhere`: sample id → the entry of the transcripts, of a sample not on the page.
    """

    entries: list[Entry]
    rendered: list[Markup]
    systems: list[Markup]
    left: int
    elsewhere: dict[str, str]

    def options(self, name: str) -> list[str]:
        """The values that a filter offers, those that occur."""
        return sorted({getattr(f, name) for entry in self.entries for f in entry.findings} - {""})

    @property
    def anchors(self) -> dict[str, str]:
        """Sample id → the entry to link to, of several repeats the first that failed."""
        return {e.id: e.anchor for e in reversed(self.entries)}  # failures stand first


def fit(environment: Environment, found: Entries, room: int, criteria: dict[str, CriterionRow]) -> Listing:
    """As many of the gravest entries as there is room for, each with its system text; once one doesn't fit, the rest is
    left.
    """
    macros: Any = environment.get_template("entry.html").make_module({"criteria": criteria})
    rendered: dict[str, Markup] = {}
    numbers: dict[str, int] = {}  # of system texts, from 1
    systems: list[Markup] = []
    kept: list[Entry] = []
    for entry in found:
        new = bool(entry.system) and entry.system not in numbers
        number = numbers.get(entry.system, len(numbers) + 1) if entry.system else 0
        html = macros.entry(entry, number)
        text = macros.system(number, entry.system) if new else Markup("")
        room -= len(html.encode()) + len(text.encode())
        if room < 0:
            break
        kept.append(entry)
        rendered[entry.anchor] = html
        if new:
            numbers[entry.system] = number
            systems.append(text)
    entries, left = in_reading_order(kept), found.played[len(kept) :]
    elsewhere = {p.row.id: anchor(p) for p in reversed(left)}
    return Listing(entries, [rendered[e.anchor] for e in entries], systems, len(left), elsewhere)
