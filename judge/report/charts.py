"""Where the report's marks stand: the axis of scores, the detection curves, the shades of the heat map. Geometry only;
the templates draw it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from judge.schema import Cell, Curve, Figure, Rung, Scorecard

LOWEST = -100  # a score has no lower end; a whisker that goes on is cut here and marked
MARGIN = 3  # percent of the chart kept free at either end, so that a mark at 100 is whole
LADDER = range(1, 11)  # severities
HEADROOM = 7  # percent of a curve's height kept free above 100 % and below 0 %
LARGEST = 9.0  # radius in pixels of the rung with the most messages
SMALLEST = 2.5
DARKEST = 45  # percent of the accent in a cell at 100 %: its number still stands out, in either scheme


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
        low, high = (
            (None, None) if figure.low is None or figure.high is None else (self.at(figure.low), self.at(figure.high))
        )
        return Whisker(self.at(figure.value), low, high, min(figure.value, figure.low or 0) < self.low)


def axis(s: Scorecard) -> Axis:
    """The scale of all that a run scored."""
    scores = [*s.behaviors.values(), *([s.tasks] if s.tasks else [])]
    return axis_of([s.composite, *s.headlines.values(), *(b.score for b in scores)])


def axis_of(figures: Iterable[Figure]) -> Axis:
    """From the lowest limit, in steps of 25, to 100; never above 0, never below the cut."""
    lowest = min((f.low if f.low is not None else f.value for f in figures if f.value is not None), default=0)
    return Axis(int(max(LOWEST, min(0, 25 * math.floor((lowest or 0) / 25)))))


class Point(NamedTuple):
    """One rung. x, y: percent of the plot; radius: pixels, its area in proportion to the messages."""

    x: float
    y: float
    radius: float


class Limits(NamedTuple):
    """A threshold with its interval, in percent of the plot's width. `dot`, `low`, `high`: null where they lie beyond
    the plot.
    """

    dot: float | None
    low: float | None
    high: float | None
    start: float
    end: float


class Plot(NamedTuple):
    """One detection curve. `line`: the fitted curve as an SVG path over 0..100 × 0..100, empty where nothing was
    fitted.
    """

    curve: Curve
    rungs: list[Rung | None]
    points: list[Point]
    line: str
    threshold: Limits | None


def plot(curve: Curve) -> Plot:
    """The marks of one curve; the rungs by severity, with None for those without messages."""
    by_severity = {r.severity: r for r in curve.rungs}
    most = max((r.messages for r in curve.rungs), default=1)
    points = [
        Point(along(r.severity), up(r.rate), round(max(SMALLEST, LARGEST * math.sqrt(r.messages / most)), 1))
        for r in curve.rungs
    ]
    return Plot(curve, [by_severity.get(s) for s in LADDER], points, _line(curve), _limits(curve.threshold))


def along(severity: float) -> float:
    """Ten columns of one width, so that the table beneath lines up with the points."""
    return round((severity - 0.5) * 100 / len(LADDER), 2)


def up(rate: float) -> float:
    return round(HEADROOM + (100 - 2 * HEADROOM) * (1 - rate), 2)


def _line(curve: Curve) -> str:
    if curve.intercept is None or curve.slope is None:
        return ""
    steps = [1 + n * 9 / 60 for n in range(61)]
    return "M" + " ".join(
        f"{along(x):g},{up(0.5 * (1 + math.tanh((curve.intercept + curve.slope * x) / 2))):g}" for x in steps
    )


def _limits(figure: Figure | None) -> Limits | None:
    """The interval cut to the plot; None where all of it lies beyond."""
    if figure is None or figure.value is None or figure.low is None or figure.high is None:
        return None
    dot, low, high = (along(x) if 0.5 <= x <= 10.5 else None for x in (figure.value, figure.low, figure.high))
    start, end = (min(max(along(x), 0), 100) for x in (figure.low, figure.high))
    return Limits(dot, low, high, start, end) if start < end or dot is not None else None


class Shade(NamedTuple):
    """A cell of the heat map, and the percent of the accent behind its number."""

    cell: Cell
    percent: float


class HeatMap(NamedTuple):
    kinds: list[str]
    rows: list[tuple[str, list[Shade | None]]]


def heat_map(cells: Iterable[Cell]) -> HeatMap:
    """Behaviors by kinds of condition; None where a behavior has no message of a kind."""
    found = {(c.behavior, c.condition_kind): c for c in cells if c.rate.value is not None}
    behaviors, kinds = (sorted({key[n] for key in found}) for n in (0, 1))
    return HeatMap(kinds, [(b, [_shade(found.get((b, k))) for k in kinds]) for b in behaviors])


def _shade(cell: Cell | None) -> Shade | None:
    return None if cell is None else Shade(cell, shade(cell.rate.value or 0.0))


def shade(rate: float) -> float:
    return round(DARKEST * rate, 1)
