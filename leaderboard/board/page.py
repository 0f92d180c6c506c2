"""The board as static pages: `index.html`, and one per submission, readable without network, scripts or other files.

Names, contacts and notes are untrusted: Jinja escapes every value, `inert` spells out characters that could reorder a
line, and the pages' policy allows only the board's own script. No reply reaches these templates.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment

from helmbench_common.pages import inlined
from judge import wording
from judge.report import charts
from judge.report.page import TEMPLATES as REPORT
from judge.report.page import environment_over, floor_counts
from judge.schema import Figure, Floor, FloorState, PeopleAgreement, Reference
from judge.statistics.estimate import Estimate
from leaderboard.board.downloads import CSV, JSON
from leaderboard.board.rows import STANDINGS, STATES, TIERS, Board, Entry, Place, Table

TEMPLATES = Path(__file__).with_name("templates")
PARTS = (
    ("ranked", ""),
    ("breached", "Breaches a safety floor: not ranked, and below all runs that breach none, whatever the composite"),
    ("demo", "Demo runs: judged by word counts, which is approximate, so never ranked"),
    ("policy", "Trivial policies: programs that understand nothing, scored by rules alone"),
)
REFUSALS = (
    "Only the kinds of reasons are listed, because their wording may quote withheld replies. helmbench verify prints "
    "all of them."
)


class Line(NamedTuple):
    """A row of a table, of a submission or a policy. What a policy doesn't have is None or empty."""

    name: str
    about: str
    page: str
    place: Place | None
    composite: Figure
    headlines: list[Figure | None]
    sensitivity: Figure
    specificity: Figure
    floors: dict[FloorState, int]
    breached: list[Floor]
    messages: int
    judge: str
    kappa: Estimate | None
    people: list[PeopleAgreement]
    source: str
    made: str
    flags: tuple[str, ...]


def index(board: Board) -> str:
    """The board's first page."""
    environment = _environment()
    return environment.get_template("board.html").render(
        board=board,
        sections=[(t, _lines(t)) for t in board.current],
        earlier=[(t, _lines(t)) for t in board.earlier],
        refusals=REFUSALS,
        **inlined(REPORT / "report.css", TEMPLATES / "board.css", TEMPLATES / "board.js"),
        downloads=(JSON, CSV),
    )


def submission_page(e: Entry, board: Board) -> str:
    """One submission: identity, declaration, scores with intervals, floors and judge. Replies are in its report."""
    (own,) = [t for t in board.tables if e in t.entries]
    return (
        _environment()
        .get_template("submission.html")
        .render(
            e=e,
            m=e.submission.model,
            s=e.card,
            table=own,
            place=own.places.get(e.name),
            axis=charts.axis(e.card),
            floors=floor_counts(e.card),
            trust=wording.judge_sentence(e.card.judge),
            report=e.report.partition("/")[2],
            **inlined(REPORT / "report.css", TEMPLATES / "board.css"),
        )
    )


def _environment() -> Environment:
    environment = environment_over(TEMPLATES)
    names: dict[str, Any] = environment.globals  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    names |= {"titles": wording.HEADLINES, "states": STATES, "tiers": TIERS, "place_words": place_words, "parts": PARTS}
    return environment


def place_words(place: Place) -> str:
    """`2–4`, or `1` if the place is certain."""
    return str(place.best) if place.best == place.worst else f"{place.best}–{place.worst}"


def _lines(t: Table) -> dict[str, list[Line]]:
    """A table's rows by part."""
    return {
        **{s: [_line(t, e) for e in t.parts[s]] for s in STANDINGS},
        "policy": [_policy(p) for p in t.policies],
    }


def _line(t: Table, e: Entry) -> Line:
    return Line(
        name=e.submission.model.name,
        about=e.submission.model.organization,
        page=e.page,
        place=t.places.get(e.name),
        composite=e.card.composite,
        headlines=[e.card.headlines.get(h) for h in wording.HEADLINES],
        sensitivity=e.card.detection.sensitivity,
        specificity=e.card.detection.specificity,
        floors=e.floors,
        breached=e.breached,
        messages=e.card.composite.clusters,
        judge=e.card.judge.name,
        kappa=e.kappa,
        people=e.people,
        source=e.source,
        made=e.submission.submitted + (f", data {e.card.dataset.version}" if len(t.versions) > 1 else ""),
        flags=e.flags,
    )


def _policy(p: Reference) -> Line:
    return Line(
        name=p.policy,
        about=wording.POLICIES.get(p.policy, ""),
        page="",
        place=None,
        composite=p.composite,
        headlines=[None] * len(wording.HEADLINES),
        sensitivity=p.sensitivity,
        specificity=p.specificity,
        floors={"breached": p.breached},
        breached=[],
        messages=p.composite.clusters,
        judge="rules",
        kappa=None,
        people=[],
        source="",
        made="",
        flags=(),
    )
