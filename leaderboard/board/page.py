"""The board as static pages: `index.html`, and one per submission, readable without network, scripts or other files.

Names, contacts and notes are untrusted: Jinja escapes every value, `inert` spells out characters that could reorder a
line, and the pages' policy allows only the board's own script. No reply reaches these templates.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment

from helmbench_common.pages import inlined
from judge import wording
from judge.report import charts
from judge.report.page import TEMPLATES as REPORT
from judge.report.page import environment_over, floor_counts
from leaderboard.board.downloads import CSV, JSON
from leaderboard.board.rows import FLAGS, Board, Entry, Place
from leaderboard.schema import UNPROVEN

TEMPLATES = Path(__file__).with_name("templates")
PARTS = (
    ("ranked", ""),
    ("breached", "Breaches a safety floor: not ranked, and below all runs that breach none, whatever the composite"),
    ("demo", "Demo runs: never ranked, because the offline judge counts words and is approximate"),
    ("policy", "Trivial policies: not ranked; programs that understand nothing, scored by rules"),
)
REFUSALS = (
    "Only the kinds of reasons are listed, because their wording may quote withheld replies. helmbench verify prints "
    "all of them."
)


def index(board: Board) -> str:
    """The board's first page."""
    environment = _environment()
    return environment.get_template("board.html").render(
        board=board,
        refusals=REFUSALS,
        **inlined(REPORT / "report.css", TEMPLATES / "board.css", TEMPLATES / "board.js"),
        downloads=(JSON, CSV),
        flags=[f for f in FLAGS.values() if any(f.words in e.flags for e in board.entries)],
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
    names |= {"titles": wording.HEADLINES, "states": wording.STATES, "place_words": place_words}
    names |= {"unproven": UNPROVEN, "parts": PARTS, "policies": wording.POLICIES}
    return environment


def place_words(place: Place) -> str:
    """`2–4`, or `1` if the place is certain."""
    return str(place.best) if place.best == place.worst else f"{place.best}–{place.worst}"
