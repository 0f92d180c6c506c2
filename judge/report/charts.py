"""Geometry of the charts: bars, the axis of scores, detection curves, sensitivity against specificity. The templates
draw them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from judge.schema import Curve, Figure, Rung, Scorecard
from judge.statistics.estimate import Estimate

LOWEST = -100  # a score has no lower bound; a longer whisker is cut here and marked
MARGIN = 3  # percent of the chart kept free at either end, so that a mark at 100 is fully visible
LADDER = range(1, 11)  # severities
HEADROOM = 7  # percent of a curve's height kept free above 100 % and below 0 %
LARGEST = 9.0  # radius in pixels of the rung with the most messages
SMALLEST = 2.5
DARKEST = 45  # percent of the accent color in a cell at 100 %: its number stays readable in both color schemes


class Bar(NamedTuple):
    """A figure from 0 to 100 as a bar, in percent of its length. `cut`: its interval extends below 0. `ignoring`: what
    the best program gets that ignores the message; null if unknown.
    """

    end: float
    low: float | None
    high: float | None
    cut: bool
    ignoring: float | None


def bar(figure: Figure, ignoring: float | None, scale: float = 1) -> Bar:
    """The bar of a figure; what is outside 0 to 100 is cut. `scale`: 100 for rates; also multiplies `ignoring`."""
    ends = (figure.value, figure.low, figure.high, ignoring)
    end, low, high, line = (None if x is None else round(min(max(scale * x, 0), 100), 2) for x in ends)
    return Bar(end or 0, low, high, min(figure.value or 0, figure.low or 0) < 0, line)


class Whisker(NamedTuple):
    """A figure's position on the chart, in percent of its width; `cut` if its interval extends beyond the left edge."""

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
    """The scale for all of a run's scores."""
    return axis_of([s.composite, *s.headlines.values(), *(b.score for b in s.scores.values())])


def axis_of(figures: Iterable[Figure]) -> Axis:
    """From the lowest limit, in steps of 25, to 100; never above 0, never below the cutoff."""
    lowest = min((f.low if f.low is not None else f.value for f in figures if f.value is not None), default=0)
    return Axis(int(max(LOWEST, min(0, 25 * math.floor((lowest or 0) / 25)))))


class Point(NamedTuple):
    """One rung. x, y: percent of the plot; radius: pixels, its area in proportion to the messages."""

    x: float
    y: float
    radius: float


class Limits(NamedTuple):
    """A threshold with its interval, in percent of the plot's width. `dot`, `low`, `high`: null if outside the plot."""

    dot: float | None
    low: float | None
    high: float | None
    start: float
    end: float


class Plot(NamedTuple):
    """One detection curve. `line`: the fitted curve as an SVG path over 0..100 × 0..100, empty without a fit."""

    curve: Curve
    rungs: list[Rung | None]
    points: list[Point]
    line: str
    threshold: Limits | None


def plot(curve: Curve) -> Plot:
    """The marks of one curve; rungs by severity, with None for those without messages."""
    by_severity = {r.severity: r for r in curve.rungs}
    most = max((r.messages for r in curve.rungs), default=1)
    points = [
        Point(along(r.severity), up(r.rate), round(max(SMALLEST, LARGEST * math.sqrt(r.messages / most)), 1))
        for r in curve.rungs
    ]
    return Plot(curve, [by_severity.get(s) for s in LADDER], points, _line(curve), _limits(curve.threshold))


def along(severity: float) -> float:
    """Ten columns of equal width, so that the table below lines up with the points."""
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
    """The interval clipped to the plot; None if it is entirely outside."""
    if figure is None or figure.value is None or figure.low is None or figure.high is None:
        return None
    dot, low, high = (along(x) if 0.5 <= x <= 10.5 else None for x in (figure.value, figure.low, figure.high))
    start, end = (min(max(along(x), 0), 100) for x in (figure.low, figure.high))
    return Limits(dot, low, high, start, end) if start < end or dot is not None else None


class Share(NamedTuple):
    """A share with its interval, in percent of the plot's width and height."""

    x: float
    y: float
    low: float
    high: float


def shares(found: Sequence[Estimate]) -> list[Share]:
    """Shares side by side, in columns of equal width that line up with the table below them."""
    return [
        Share(round((n + 0.5) * 100 / len(found), 2), up(m.value or 0), up(m.low or 0), up(m.high or 0))
        for n, m in enumerate(found)
    ]


def shade(rate: float) -> float:
    """The percent of the accent color behind a number of the heat map."""
    return round(DARKEST * rate, 1)


# The plot of sensitivity against specificity, in the units of its SVG. It is square, so the line of no skill is at 45°.
WIDTH, HEIGHT = 360, 352
LEFT, RIGHT, TOP, BOTTOM = 52, 348, 12, 308
NEAR = 14  # marks closer than this share one label
NUMBERS = 4  # per label


class Spot(NamedTuple):
    """A model or a trivial policy; both figures are rates from 0 to 1."""

    name: str
    sensitivity: Figure
    specificity: Figure
    kind: Literal["model", "policy"]


class Mark(NamedTuple):
    """A spot on the plot. `cross`: its intervals, as SVG paths."""

    kind: Literal["model", "policy"]
    x: float
    y: float
    cross: list[str]


class Label(NamedTuple):
    """The numbers of one mark, or of several that overlap. It is left of a mark near the right edge."""

    numbers: list[int]
    x: float
    y: float

    @property
    def left(self) -> bool:
        return self.x > RIGHT - 40

    @property
    def text(self) -> str:
        fits = len(self.numbers) <= NUMBERS
        shown = sorted(self.numbers)[: NUMBERS if fits else NUMBERS - 1]
        more = len(self.numbers) - len(shown)
        return ", ".join(map(str, shown)) + (f" +{more}" if more else "")


class Scatter(NamedTuple):
    """`spots`: all, numbered from 1 as in the table. `marks`, `labels`: those with both figures, models on top."""

    spots: list[Spot]
    marks: list[Mark]
    labels: list[Label]

    @property
    def policies(self) -> bool:
        return any(s.kind == "policy" for s in self.spots)


def scatter(spots: Sequence[Spot]) -> Scatter:
    """The plot of these spots."""
    marks: list[Mark] = []
    labels: list[Label] = []
    for number, s in sorted(enumerate(spots, start=1), key=lambda n: n[1].kind == "model"):
        a, b = s.specificity, s.sensitivity
        if a.value is None or b.value is None:
            continue
        x, y = across(a.value), upward(b.value)
        flat = [] if a.low is None or a.high is None else [f"M{across(a.low)} {y}H{across(a.high)}"]
        upright = [] if b.low is None or b.high is None else [f"M{x} {upward(b.low)}V{upward(b.high)}"]
        marks.append(Mark(s.kind, x, y, flat + upright))
        near = next((label for label in labels if math.dist((label.x, label.y), (x, y)) < NEAR), None)
        if near:
            near.numbers.append(number)
        else:
            labels.append(Label([number], x, y))
    return Scatter([*spots], marks, labels)


def across(specificity: float) -> float:
    return round(LEFT + (RIGHT - LEFT) * specificity, 1)


def upward(sensitivity: float) -> float:
    return round(BOTTOM - (BOTTOM - TOP) * sensitivity, 1)
