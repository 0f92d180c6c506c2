"""Scorecard, verdicts and replies → one HTML page that needs nothing else: no network, no files beside it, no script to
be read.

Replies are hostile input. Jinja escapes every value, the page's own policy allows no script but the one below, and what
must not be seen never reaches the template (`judge.report.failures`). What a page that travels by e-mail can't hold
goes to a
file beside it, which the page can open.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from dataset_builder.schema import BEHAVIORS, PILLARS, CriterionRow, Sample
from judge import wording
from judge.report import charts
from judge.report.failures import Failure, Failures, failures, in_reading_order
from judge.schema import Behavior, Figure, Group, Judge, Reference, Scorecard, Verdict
from judge.scoring.breakdown import GREYED_BELOW
from judge.scoring.curves import PUBLISHED_FROM, RUNG_MESSAGES
from replies.schema import Reply

TEMPLATES = Path(__file__).with_name("templates")
SAMPLES = "report.samples.json"
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


# What templates call by its own name: on one value (filters), and on whole things.
FILTERS = (
    *(wording.number, wording.percent, wording.interval, wording.percents, wording.limits, wording.points),
    *(wording.points_interval, wording.signed, wording.plain, wording.inert, wording.whole, wording.clip),
    *(wording.behavior_title, wording.coefficient, wording.hundredths, wording.people_title),
)
SAID = (
    *(wording.bound, wording.mode_title, wording.rating_sentence, wording.curve_sentence, wording.inversion_sentences),
    *(wording.pairing_title, wording.smallest_sentence, wording.given_labels, wording.people_notes),
    *(charts.up, charts.along, charts.shade),
)
NAMES: dict[str, Any] = {
    "meanings": wording.MEANINGS,
    "signs": wording.SIGNS,
    "policies": wording.POLICIES,
    "behaviors": BEHAVIORS,
    "dash": wording.NONE,
    "ladder": charts.LADDER,
    "published_from": PUBLISHED_FROM,
    "rung_messages": RUNG_MESSAGES,
    "greyed_below": GREYED_BELOW,
}


class Report(NamedTuple):
    """`report.html`, and `report.samples.json` where the page doesn't hold every failed reply."""

    page: str
    samples: str | None


class PillarPart(NamedTuple):
    """A pillar's rows of the score table."""

    code: str
    title: str
    score: Figure
    behaviors: list[tuple[str, Behavior]]


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


class Listing(NamedTuple):
    """The entries on the page, ready to be read, the system texts that they refer to, and what is left for the file
    beside it.
    """

    entries: list[Failure]
    rendered: list[Markup]
    systems: list[Markup]
    left: list[Failure]

    def options(self, name: str) -> list[str]:
        """The values that a filter offers, those that occur."""
        return sorted({getattr(f, name) for entry in self.entries for f in entry.findings if f.failed} - {""})

    @property
    def anchors(self) -> dict[str, str]:
        """Sample id → the entry to link to."""
        return {f.id: f.anchor for f in reversed(self.entries)}

    @property
    def elsewhere(self) -> dict[str, str]:
        return {f.id: f.anchor for f in reversed(self.left)}


def report(
    scorecard: Scorecard,
    verdicts: list[Verdict],
    replies: list[Reply],
    rows: Mapping[str, Sample],
    show_withheld: bool = False,
    page_bytes: int = PAGE_BYTES,
    criteria: dict[str, CriterionRow] | None = None,
) -> Report:
    """The report. Replies with a harm incident, and unscored ones, are withheld in both files unless `show_withheld`.

    `criteria`: by name; those that a verdict names can be read on the page, from each failure.

    The gravest failures go on the page for as long as it stays within `page_bytes`, the rest beside it.
    """
    environment = environment_over()
    named = {v.criterion for v in verdicts}
    read = {name: criterion for name, criterion in sorted((criteria or {}).items()) if name in named}
    found = failures(verdicts, replies, rows, show_withheld)
    fixed = _of_scorecard(scorecard) | {"criteria": read, "failures": found, "show_withheld": show_withheld}
    page = environment.get_template("report.html")
    empty = len(page.render(**fixed, listing=Listing([], [], [], found.entries), samples_hash="").encode())
    listing = _fit(environment, found, page_bytes - empty, read)
    samples_hash, samples = _samples(listing, found, scorecard)
    return Report(page.render(**fixed, listing=listing, samples_hash=samples_hash), samples)


def _of_scorecard(s: Scorecard) -> dict[str, Any]:
    """What the page shows of the scorecard, and what it is made with."""
    judge, script = _judge(s), read_template("report.js")
    return {
        "s": s,
        "judge": judge,
        "alone": _alone(s),
        "axis": charts.axis(s),
        "pillars": pillars(s),
        "floors": floor_counts(s),
        "beside": _beside(s),
        "heat": charts.heat_map(s.heat),
        "plots": [charts.plot(c) for c in s.curves],
        "columns": _columns(s.groups),
        "measured": wording.measured_criteria(judge),
        "share_read": wording.share_read(judge),
        "titles": COLUMNS,
        "samples_file": SAMPLES,
        "style": Markup(read_template("report.css")),
        "script": Markup(script),
        "script_hash": script_hash(script),
    }


def environment_over(*folders: Path) -> Environment:
    """The report's filters and names over its templates, and over more folders of them."""
    environment = Environment(
        loader=FileSystemLoader([*folders, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters: dict[str, Any] = environment.filters  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    names: dict[str, Any] = environment.globals  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    filters |= {f.__name__: f for f in FILTERS}
    names |= {f.__name__: f for f in SAID} | NAMES
    return environment


def read_template(name: str, folder: Path = TEMPLATES) -> str:
    """A style or script that a page holds as it stands."""
    return (folder / name).read_text(encoding="utf-8").strip()


def script_hash(script: str) -> str:
    """What a page's policy says of its own script, so that it runs no other."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def pillars(s: Scorecard) -> list[PillarPart]:
    """A row of the score table per pillar, with its behaviors'."""
    return [
        PillarPart(p, PILLARS.get(p, p), figure, [(c, b) for c, b in sorted(s.behaviors.items()) if c.startswith(p)])
        for p, figure in sorted(s.pillars.items())
    ]


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
    return (
        sorted(both, key=lambda b: (b[0].composite.value is None, -(b[0].composite.value or 0), not b[1]))
        if s.references
        else []
    )


def _columns(groups: list[Group]) -> list[Column]:
    def rank(g: Group) -> tuple[bool, bool, bool, float]:
        return g.greyed, not g.worst, g.gap.value is None, 0.0 if g.greyed else g.gap.value or 0.0

    return [
        Column(COLUMNS.get(column, wording.plain(column)), sorted(found, key=rank))
        for column, found in groupby(groups, key=lambda g: g.column)
    ]


def _fit(environment: Environment, found: Failures, room: int, criteria: dict[str, CriterionRow]) -> Listing:
    """As many of the gravest entries as there is room for, each with its system text; once one doesn't fit, the rest is
    left.
    """
    macros: Any = environment.get_template("failure.html").make_module({"criteria": criteria})
    rendered: dict[str, Markup] = {}
    systems: dict[int, Markup] = {}
    kept: list[Failure] = []
    for entry in found.entries:
        html = macros.failure(entry)
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


def _samples(listing: Listing, found: Failures, s: Scorecard) -> tuple[str, str | None]:
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


def _plain(entry: Failure) -> dict[str, Any]:
    return entry._asdict() | {
        "turns": [t._asdict() for t in entry.turns],
        "findings": [f._asdict() for f in entry.findings],
    }
