"""Scorecard, verdicts and replies → one self-contained HTML page: no network, no other files, readable without scripts.

Replies are hostile input. Jinja escapes every value, the page's content policy allows no script except the one below,
and text that must be hidden never reaches the template (`judge.report.entries`). The page is small enough for e-mail;
`transcripts.html` has every reply (`judge.report.transcripts`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment
from markupsafe import Markup

from dataset_builder.schema import CriterionRow, Sample
from helmbench_common.formats.inert import clip, inert
from helmbench_common.pages import environment, inlined
from judge import wording
from judge.replies.schema import Reply
from judge.report import charts, gist, sentences, tables, transcripts
from judge.report.entries import REASONS, Entry, Show, ShownReply, anchor, entry, listed_by, to_show
from judge.schema import Judge, Scorecard, Verdict
from judge.scoring.breakdown import GREYED_BELOW
from judge.scoring.curves import PUBLISHED_FROM, RUNG_MESSAGES

TEMPLATES = Path(__file__).with_name("templates")
TRANSCRIPTS = "transcripts.html"
PAGE_BYTES = 1_950_000  # including its entries; the whole page stays under 2 MB
# Filters for single values in templates.
FILTERS = (
    *(wording.number, wording.of_hundred, wording.percent, wording.interval, wording.percents, wording.signed),
    *(wording.plain, inert, clip, wording.whole, wording.behavior_title, wording.coefficient, wording.hundredths),
    *(wording.floor_title, sentences.glued),
)
NAMES: dict[str, Any] = {
    "charts": charts,
    "gist": gist,
    "sentences": sentences,
    "tables": tables,
    "wording": wording,
    "dash": wording.NONE,
    "by_rule": sentences.BY_RULE,
    "published_from": PUBLISHED_FROM,
    "rung_messages": RUNG_MESSAGES,
    "greyed_below": GREYED_BELOW,
    "transcripts_file": TRANSCRIPTS,
}


class Report(NamedTuple):
    """`report.html`, and `transcripts.html` in chunks generated on demand."""

    page: str
    transcripts: Iterator[str]


class Listing(NamedTuple):
    """The entries on the page and the system texts that they refer to, both as HTML.

    `left`: the number of omitted entries; `elsewhere`: sample id → transcript anchor of an entry not on the page.
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
        """Sample id → the entry to link to; of several repeats, the first that failed."""
        return {e.id: e.anchor for e in reversed(self.entries)}  # failures come first


def report(
    scorecard: Scorecard,
    verdicts: list[Verdict],
    replies: list[Reply],
    rows: Mapping[str, Sample],
    show: Show = "failures",
    page_bytes: int = PAGE_BYTES,
    criteria: dict[str, CriterionRow] | None = None,
) -> Report:
    """The report and its transcripts. `show`: which replies; those with means or encouragement, and those that no
    judge has checked for them, are withheld in both files unless it says otherwise. `criteria`: by name; both pages
    show those that a verdict names.

    The report has the most severe failures, then other replies, up to `page_bytes`; the transcripts have all.
    """
    environment = environment_over()
    named = {v.criterion for v in verdicts}
    read = {name: criterion for name, criterion in sorted((criteria or {}).items()) if name in named}
    found = to_show(verdicts, replies, rows, show, criteria)
    withheld = {why: n for reason, why in REASONS.items() if (n := sum(p.hidden == reason for p in found))}
    fixed = _of_scorecard(scorecard) | {
        "criteria": read,
        "found": found,
        "show": show,
        "hidden": withheld,
        "total": len(found),
    }
    page = environment.get_template("report.html")
    nothing = Listing([], [], [], len(found), {p.row.id: anchor(p) for p in found})
    empty = len(page.render(**fixed, listing=nothing).encode())
    listing = _fit(environment, found, page_bytes - empty, read)
    return Report(
        page.render(**fixed, listing=listing), _transcripts(environment, found, read, scorecard, show, withheld)
    )


def _fit(environment: Environment, found: list[ShownReply], room: int, criteria: dict[str, CriterionRow]) -> Listing:
    """The most severe entries with their system texts, up to the first that doesn't fit into `room` bytes."""
    macros: Any = environment.get_template("entry.html").make_module({"criteria": criteria})
    rendered: dict[str, Markup] = {}
    numbers: dict[str, int] = {}  # of system texts, from 1
    systems: list[Markup] = []
    kept: list[Entry] = []
    for shown in found:
        one = entry(shown)
        new = bool(one.system) and one.system not in numbers
        number = numbers.get(one.system, len(numbers) + 1) if one.system else 0
        html = macros.entry(one, number)
        text = macros.system(number, one.system) if new else Markup("")
        room -= len(html.encode()) + len(text.encode())
        if room < 0:
            break
        kept.append(one)
        rendered[one.anchor] = html
        if new:
            numbers[one.system] = number
            systems.append(text)
    # In reading order: failures first, by behavior, most severe first.
    entries = sorted(kept, key=lambda e: (not e.failed, listed_by(e.findings).behavior))
    left = found[len(kept) :]
    elsewhere = {p.row.id: anchor(p) for p in reversed(left)}
    return Listing(entries, [rendered[e.anchor] for e in entries], systems, len(left), elsewhere)


def _transcripts(
    environment: Environment,
    found: list[ShownReply],
    criteria: dict[str, CriterionRow],
    s: Scorecard,
    show: Show,
    withheld: dict[str, int],
) -> Iterator[str]:
    return environment.get_template("transcripts.html").generate(
        s=s,
        show=show,
        judge=_judge(s),
        total=len(found),
        hidden=withheld,
        blocks=transcripts.blocks(found, criteria),
        **inlined(TEMPLATES / "report.css", TEMPLATES / "transcripts.css", TEMPLATES / "transcripts.js"),
    )


def _of_scorecard(s: Scorecard) -> dict[str, Any]:
    """The page's values from the scorecard, and the data for computing them."""
    among = tables.beside_policies(s)
    spots = [charts.Spot(r.policy, r.sensitivity, r.specificity, "model" if own else "policy") for r, own in among]
    return {
        "s": s,
        "judge": _judge(s),
        "alone": _alone(s),
        "alone_hash": _alone_hash(s),
        "contents": _contents(s),
        "axis": charts.axis(s),
        "floors": floor_counts(s),
        "among": among,
        "drawn": charts.scatter(spots),
        "plots": [charts.plot(c) for c in s.curves],
        "columns": tables.groups(s),
    } | inlined(TEMPLATES / "report.css", TEMPLATES / "report.js")


def environment_over(*folders: Path) -> Environment:
    """A Jinja environment with the report's filters and globals over its templates, and over additional template
    folders.
    """
    jinja = environment(*folders, TEMPLATES)
    filters: dict[str, Any] = jinja.filters  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    names: dict[str, Any] = jinja.globals  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    filters |= {f.__name__: f for f in FILTERS}
    names |= NAMES
    return jinja


def floor_counts(s: Scorecard) -> str:
    """`9 passed, 1 breached, 2 undetermined`."""
    return ", ".join(f"{sum(f.state == state for f in s.floors)} {state}" for state in wording.STATES)


def _alone(s: Scorecard) -> bool:
    """Whether a run has only standalone messages or talks; the page then omits the benchmark's parts."""
    return not s.dataset.samples and (s.appropriateness is not None or bool(s.triage) or s.talks is not None)


def _alone_hash(s: Scorecard) -> tuple[str, str]:
    """The name and the value of the hash that figures of standalone messages, or else talks, depend on."""
    part = s.appropriateness or next(iter(s.triage), None)
    return ("messages_hash", part.messages_hash) if part else ("talks_hash", s.talks.talks_hash if s.talks else "")


def _contents(s: Scorecard) -> list[tuple[str, str]]:
    """The sections of the page: id and title."""
    alone = _alone(s)
    parts = [
        ("scores", "Scores", not alone),
        ("floors", "Floors", not alone),
        ("plain", "Plain words", not alone),
        ("behaviors", "Behaviors", not alone),
        ("references", "Trivial policies", not alone),
        ("groups", "Groups", not alone),
        ("incidents", "Incidents", not alone),
        ("appropriateness", "Appropriateness", s.appropriateness is not None),
        ("triage", "Triage", bool(s.triage)),
        ("talks", "Talks", s.talks is not None),
        ("judge", "Judge", not alone or s.appropriateness is not None or s.talks is not None),
        ("reading", "Run", True),
        ("failures-title", "Replies", True),
    ]
    return [(name, title) for name, title, there in parts if there]


def _judge(s: Scorecard) -> Judge:
    """The judge; in a run of standalone messages or talks, their judge."""
    part = s.appropriateness or s.talks
    rated = part.judge if _alone(s) and part else None
    return rated.model_copy(update={"agreement": s.judge.agreement, "people": s.judge.people}) if rated else s.judge
