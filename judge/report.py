"""Scorecard, verdicts and replies → one HTML page that needs nothing else: no network, no files beside it, no script to be read.

Replies are hostile input. Jinja escapes every value, the page's own policy allows no script but the one below, and what
must not be seen never reaches the template (`judge.failures`).
"""

from __future__ import annotations

import base64
import hashlib
import math
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from dataset_builder.schema import BEHAVIORS, PILLARS, Row
from judge import wording
from judge.failures import behavior_title, failures
from judge.schema import Behavior, Figure, Group, Reply, Scorecard, Verdict

TEMPLATES = Path(__file__).with_name("templates")
LOWEST = -100  # a score has no lower end; a whisker that goes on is cut here and marked
MARGIN = 3  # percent of the chart kept free at either end, so that a mark at 100 is whole
COLUMNS = {
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
    "arm": "Safety prompt",
}


class Whisker(NamedTuple):
    """Where a figure stands on the chart, in percent of its width; `cut` where its interval runs off to the left."""

    dot: float
    low: float | None
    high: float | None
    cut: bool


class Axis(NamedTuple):
    """The chart's scale: scores from `low` to 100."""

    low: int

    @property
    def ticks(self) -> list[int]:
        return [t for t in (-100, -50, 0, 50, 100) if t >= self.low]

    def at(self, score: float) -> float:
        return round(MARGIN + (100 - 2 * MARGIN) * (min(max(score, self.low), 100) - self.low) / (100 - self.low), 2)

    def whisker(self, figure: Figure) -> Whisker | None:
        if figure.value is None:
            return None
        low, high = (None, None) if figure.low is None or figure.high is None else (self.at(figure.low), self.at(figure.high))
        return Whisker(self.at(figure.value), low, high, min(figure.value, figure.low or 0) < self.low)


class PillarPart(NamedTuple):
    """A pillar's rows of the score table."""

    code: str
    title: str
    score: Figure
    behaviors: list[tuple[str, Behavior]]


def report(scorecard: Scorecard, verdicts: list[Verdict], replies: list[Reply], rows: dict[str, Row], show_withheld: bool = False) -> str:
    """The report as one page of HTML. Replies with a harm incident, and unscored ones, are withheld unless `show_withheld`."""
    script = _text("report.js")
    page = _environment().get_template("report.html")
    return page.render(
        s=scorecard,
        axis=_axis(scorecard),
        pillars=_pillars(scorecard),
        floors=_floor_counts(scorecard),
        columns=_columns(scorecard.groups),
        failures=failures(verdicts, replies, rows, show_withheld),
        show_withheld=show_withheld,
        style=Markup(_text("report.css")),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    w = wording
    shown = (w.number, w.percent, w.interval, w.percents, w.limits, w.points, w.signed, w.plain, w.inert, behavior_title)
    filters: dict[str, Any] = environment.filters  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    names: dict[str, Any] = environment.globals  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    filters |= {f.__name__: f for f in shown}
    names |= {"bound": wording.bound, "meanings": wording.MEANINGS, "behaviors": BEHAVIORS, "dash": wording.NONE}
    return environment


def _text(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8").strip()


def _axis(s: Scorecard) -> Axis:
    """From the lowest limit, in steps of 25, to 100; never above 0, never below the cut."""
    figures = [s.composite, *s.pillars.values(), *(b.score for b in s.behaviors.values())]
    lowest = min((f.low if f.low is not None else f.value for f in figures if f.value is not None), default=0)
    return Axis(int(max(LOWEST, min(0, 25 * math.floor((lowest or 0) / 25)))))


def _pillars(s: Scorecard) -> list[PillarPart]:
    return [
        PillarPart(p, PILLARS.get(p, p), figure, [(c, b) for c, b in sorted(s.behaviors.items()) if c.startswith(p)]) for p, figure in sorted(s.pillars.items())
    ]


def _floor_counts(s: Scorecard) -> str:
    return ", ".join(f"{sum(f.state == state for f in s.floors)} {state}" for state in ("passed", "breached", "undetermined"))


def _columns(groups: list[Group]) -> list[tuple[str, list[Group]]]:
    return [(COLUMNS.get(column, wording.plain(column)), list(found)) for column, found in groupby(groups, key=lambda g: g.column)]
