"""Scorecard, verdicts and replies → one HTML page that needs nothing else: no network, no files beside it, no script to
be read.

Replies are hostile input. Jinja escapes every value, the page's own policy allows no script but the one below, and what
must not be seen never reaches the template (`judge.report.entries`). The page stays small enough to be sent by e-mail;
`transcripts.html` holds every reply (`judge.report.transcripts`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment
from markupsafe import Markup

from dataset_builder.schema import CriterionRow, Sample
from helmbench_common.formats.inert import clip, inert
from helmbench_common.pages import environment, inlined
from judge import wording
from judge.replies.schema import Reply
from judge.report import charts, first, plain, transcripts
from judge.report.entries import Entries, Entry, Show, anchor, entries, in_reading_order
from judge.schema import Group, Judge, Reference, Scorecard, Verdict
from judge.scoring.breakdown import GREYED_BELOW
from judge.scoring.curves import PUBLISHED_FROM, RUNG_MESSAGES

TEMPLATES = Path(__file__).with_name("templates")
TRANSCRIPTS = "transcripts.html"
PAGE_BYTES = (
    1_950_000  # what a page may grow to by its entries; the little that is written around them stays under 2 MB
)
COLUMNS = {
    "condition": "System instructions",
    "user_context": "What the product remembers",
    "condition_kind": "Kind of product",
    "persona": "Who the model was told it talks to",
    "age_band": "Age",
    "gender": "Gender",
    "culture": "Culture",
    "population": "Population",
    "country": "Country",
    "register": "How the message is worded",
    "clarity": "How clear the message is",
    "disclosure": "What is disclosed",
    "persuasion": "Pressure on the model",
    "wording": "Wording of the job",
    "arm": "Safety prompt",
}

# The tables of what scores are made of: title, what it says, crisis and control messages, whether detection.
SIDES = (
    ("Of danger, what is seen", "Shares with 95 % intervals.", "In danger: seen", "In none: left alone", True),
    ("Of what is asked, what is done", "Shares of points with 95 % intervals.", "In danger", "In none", False),
)

# What templates call by its own name: on one value (filters), and on whole things.
FILTERS = (
    *(wording.number, wording.percent, wording.interval, wording.percents, wording.limits, wording.points),
    *(wording.points_interval, wording.signed, wording.plain, inert, wording.whole, clip),
    *(wording.behavior_title, wording.coefficient, wording.hundredths, wording.people_title, wording.lost),
    *(wording.lost_interval, wording.floor_title, first.glued),
)
SAID = (
    *(wording.bound, wording.mode_title, wording.rating_sentence, wording.curve_sentence, wording.inversion_sentences),
    *(wording.pairing_title, wording.smallest_sentence, wording.given_labels, wording.people_notes),
    *(wording.without_reading, charts.up, charts.along, charts.shade),
    *(first.sentence, first.headlines, first.floors_said, first.judged, first.policies_said, first.why_no_policies),
    first.score_parts,
)
NAMES: dict[str, Any] = {
    "meanings": wording.MEANINGS,
    "signs": wording.SIGNS,
    "policies": wording.POLICIES,
    "families": wording.FAMILIES,
    "headline_names": wording.HEADLINES,
    "dash": wording.NONE,
    "ladder": charts.LADDER,
    "published_from": PUBLISHED_FROM,
    "rung_messages": RUNG_MESSAGES,
    "greyed_below": GREYED_BELOW,
    "by_rule": first.BY_RULE,
    "sides": SIDES,
    "geometry": charts,
    "transcripts_file": TRANSCRIPTS,
}


class Report(NamedTuple):
    """`report.html`, and `transcripts.html` in pieces, which are made as they are asked for."""

    page: str
    transcripts: Iterator[str]


class Listing(NamedTuple):
    """The entries on the page and the system texts that they refer to, both as HTML.

    `left`: how many more there are; `elsewhere`: sample id → the anchor in the transcripts of an entry not on the page.
    """

    entries: list[Entry]
    rendered: list[Markup]
    systems: list[Markup]
    left: int
    elsewhere: dict[str, str]

    def options(self, name: str) -> list[str]:
        """The values that occur, for a filter."""
        return sorted({getattr(f, name) for entry in self.entries for f in entry.findings} - {""})

    @property
    def anchors(self) -> dict[str, str]:
        """Sample id → the entry to link to; of several repeats the first that failed."""
        return {e.id: e.anchor for e in reversed(self.entries)}  # failures come first


class Column(NamedTuple):
    """The groups of one column: ranked ones first, from the lowest gap up, then those too small to rank."""

    title: str
    groups: list[Group]

    @property
    def worst(self) -> Group | None:
        return next((g for g in self.groups if g.worst), None)

    @property
    def found(self) -> list[Group]:
        return [g for g in self.groups if g.found]


def report(
    scorecard: Scorecard,
    verdicts: list[Verdict],
    replies: list[Reply],
    rows: Mapping[str, Sample],
    show: Show = "failures",
    page_bytes: int = PAGE_BYTES,
    criteria: dict[str, CriterionRow] | None = None,
) -> Report:
    """The report and its transcripts. `show`: which replies; those with a harm incident, and unscored ones, are
    withheld in both files unless it says otherwise.

    `criteria`: by name; those that a verdict names can be read on both pages, from each failure.

    The gravest failures go on the report for as long as it stays within `page_bytes`, then what else is shown. All of
    it stands in the transcripts.
    """
    environment = environment_over()
    named = {v.criterion for v in verdicts}
    read = {name: criterion for name, criterion in sorted((criteria or {}).items()) if name in named}
    found = entries(verdicts, replies, rows, show)
    fixed = _of_scorecard(scorecard) | {"criteria": read, "found": found, "show": show}
    page = environment.get_template("report.html")
    nothing = Listing([], [], [], len(found.played), {p.row.id: anchor(p) for p in found.played})
    empty = len(page.render(**fixed, listing=nothing).encode())
    listing = _fit(environment, found, page_bytes - empty, read)
    return Report(page.render(**fixed, listing=listing), _transcripts(environment, found, read, scorecard, show))


def _fit(environment: Environment, found: Entries, room: int, criteria: dict[str, CriterionRow]) -> Listing:
    """The gravest entries with their system texts, up to the first that doesn't fit into `room` bytes."""
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


def _transcripts(
    environment: Environment, found: Entries, criteria: dict[str, CriterionRow], s: Scorecard, show: Show
) -> Iterator[str]:
    return environment.get_template("transcripts.html").generate(
        s=s,
        show=show,
        judge=_judge(s),
        replies=len(found.played),
        blocks=transcripts.blocks(found, criteria),
        **inlined(TEMPLATES / "report.css", TEMPLATES / "transcripts.css", TEMPLATES / "transcripts.js"),
    )


def _of_scorecard(s: Scorecard) -> dict[str, Any]:
    """What the page shows of the scorecard, and what it is made with."""
    judge = _judge(s)
    return {
        "s": s,
        "judge": judge,
        "alone": _alone(s),
        "axis": charts.axis(s),
        "plain_words": None if _alone(s) else plain.in_plain_words(s),
        "floors": floor_counts(s),
        "beside": (among := _beside(s)),
        "drawn": charts.scatter([_spot(r, own) for r, own in among]),
        "heat": charts.heat_map(s.heat),
        "plots": [charts.plot(c) for c in s.curves],
        "columns": _columns(s.groups),
        "measured": wording.measured_criteria(judge),
        "share_read": wording.share_read(judge),
        "titles": COLUMNS,
    } | inlined(TEMPLATES / "report.css", TEMPLATES / "report.js")


def environment_over(*folders: Path) -> Environment:
    """The report's filters and names over its templates, and over more folders of them."""
    jinja = environment(*folders, TEMPLATES)
    filters: dict[str, Any] = jinja.filters  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    names: dict[str, Any] = jinja.globals  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    filters |= {f.__name__: f for f in FILTERS}
    names |= {f.__name__: f for f in SAID} | NAMES
    return jinja


def floor_counts(s: Scorecard) -> str:
    """`9 passed, 1 breached, 2 undetermined`."""
    return ", ".join(
        f"{sum(f.state == state for f in s.floors)} {state}" for state in ("passed", "breached", "undetermined")
    )


def _alone(s: Scorecard) -> bool:
    """Whether a run holds only messages that stand alone: then the benchmark's own parts are left out, not shown
    empty.
    """
    return not s.dataset.samples and (s.appropriateness is not None or bool(s.triage))


def _judge(s: Scorecard) -> Judge:
    """Who decided: of a run that holds only messages, who rated them. What is known of that judge is the same in
    both.
    """
    rated = s.appropriateness.judge if _alone(s) and s.appropriateness else None
    return rated.model_copy(update={"agreement": s.judge.agreement, "people": s.judge.people}) if rated else s.judge


def _beside(s: Scorecard) -> list[tuple[Reference, bool]]:
    """The trivial policies and this run, best composite first; the flag marks this run."""
    d = s.detection
    own = Reference(
        policy=s.model.name,
        composite=s.composite,
        sensitivity=d.sensitivity,
        specificity=d.specificity,
        breached=sum(f.state == "breached" for f in s.floors),
    )
    both = [(own, True), *((r, False) for r in s.references)]
    return sorted(both, key=lambda b: (b[0].composite.value is None, -(b[0].composite.value or 0), not b[1]))


def _spot(r: Reference, own: bool) -> charts.Spot:
    return charts.Spot(r.policy, r.sensitivity, r.specificity, "model" if own else "policy")


def _columns(groups: list[Group]) -> list[Column]:
    def rank(g: Group) -> tuple[bool, bool, bool, float]:
        return g.greyed, not g.worst, g.gap.value is None, 0.0 if g.greyed else g.gap.value or 0.0

    return [
        Column(COLUMNS.get(column, wording.plain(column)), sorted(found, key=rank))
        for column, found in groupby(groups, key=lambda g: g.column)
    ]
