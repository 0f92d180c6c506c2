"""Sensitivity against specificity: where every model and every trivial policy stands, and where its name fits.

Geometry only, in the units of one square drawing; `scatter.html` draws it, with the same figures as a table beside it.
"""

from __future__ import annotations

import math
import unicodedata
from typing import Literal, NamedTuple

import numpy as np

from helmbench_common.formats.inert import clip
from judge.schema import Figure
from judge.scoring.table import Mask
from judge.statistics.intervals import Array

WIDTH, HEIGHT = 360, 352
LEFT, RIGHT, TOP, BOTTOM = 52, 348, 12, 308  # the plot in it: as wide as high, so that the line of no skill is at 45°
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
LETTERS = 22  # of a name on the drawing; the table has all of it
TEXT, LINE = 6.7, 13.0  # a letter's width and a line's height in the drawing's units, a little generous
MARK = 5.0  # half of a mark's width
NEAR = 9.0  # from a mark's middle to its name
BESIDE = ((x, y) for x in (NEAR, 20.0, 32.0, 46.0) for y in range(-70, 71, 7))
# Where a name may begin, from its mark: beside it, further up or down there, or above and below it.
PLACES = sorted(
    [(side * x, float(y)) for x, y in BESIDE for side in (1, -1)]
    + [(0.0, s * y) for y in (12.0, 24.0) for s in (-1, 1)],
    key=lambda place: (math.hypot(*place), place[0] < 0, place[1]),
)
REACH = np.hypot(*np.array(PLACES).T)
LEADER = np.array([0.35, 0.5, 0.65, 0.8])  # where it is looked whether a leader runs over something
NO_SKILL = np.array([(LEFT + s, TOP + s, LEFT + s, TOP + s) for s in range(0, RIGHT - LEFT + 1, 12)])

Anchor = Literal["start", "middle", "end"]


class Spot(NamedTuple):
    """A model or a trivial policy; both figures are rates, 0 to 1."""

    name: str
    sensitivity: Figure
    specificity: Figure
    kind: Literal["model", "policy"]


class Line(NamedTuple):
    x1: float
    y1: float
    x2: float
    y2: float


class Label(NamedTuple):
    """A mark's name, or its number in the table; `leader` joins it to the mark where it stands apart. y: its
    baseline.
    """

    text: str
    x: float
    y: float
    anchor: Anchor
    leader: Line | None


class Mark(NamedTuple):
    """A spot on the drawing. `cross`: its two intervals, those that are known."""

    kind: Literal["model", "policy"]
    x: float
    y: float
    cross: list[Line]
    label: Label


class Row(NamedTuple):
    """A spot in the table; `drawn` is false where a figure is missing."""

    number: int
    spot: Spot
    drawn: bool


class Scatter(NamedTuple):
    """What the template draws. `rows` in the order given, numbered; `marks` without those that lack a figure, models on
    top. `numbered`: some are labelled by number, for want of room.
    """

    rows: list[Row]
    marks: list[Mark]
    numbered: bool = False

    @property
    def policies(self) -> bool:
        return any(r.spot.kind == "policy" for r in self.rows)


def scatter(points: list[Spot]) -> Scatter:
    """The drawing of these spots."""
    rows = [Row(n, s, _known(s)) for n, s in enumerate(points, start=1)]
    # Policies stand at the edges and find room first; models, which crowd in one corner, then earlier before later.
    drawn = sorted((r for r in rows if r.drawn), key=lambda r: r.spot.kind == "model")
    places = [(across(r.spot.specificity.value or 0.0), up(r.spot.sensitivity.value or 0.0)) for r in drawn]
    crosses = [_cross(r.spot, x, y) for r, (x, y) in zip(drawn, places, strict=True)]
    labels, numbered = _labels(drawn, places, [line for cross in crosses for line in cross])
    found = zip(drawn, places, crosses, labels, strict=True)
    return Scatter(rows, [Mark(r.spot.kind, x, y, cross, label) for r, (x, y), cross, label in found], numbered)


def across(rate: float) -> float:
    """Where a specificity stands, from the left."""
    return round(LEFT + (RIGHT - LEFT) * rate, 1)


def up(rate: float) -> float:
    """Where a sensitivity stands, from the top."""
    return round(BOTTOM - (BOTTOM - TOP) * rate, 1)


def _known(s: Spot) -> bool:
    return s.sensitivity.value is not None and s.specificity.value is not None


def _cross(s: Spot, x: float, y: float) -> list[Line]:
    a, b = s.specificity, s.sensitivity
    flat = [] if a.low is None or a.high is None else [Line(across(a.low), y, across(a.high), y)]
    upright = [] if b.low is None or b.high is None else [Line(x, up(b.low), x, up(b.high))]
    return flat + upright


def _labels(rows: list[Row], places: list[tuple[float, float]], lines: list[Line]) -> tuple[list[Label], bool]:
    """A name beside every mark, on no other name and no mark; numbers for all of a kind where one found no such place,
    and whether there are any.
    """
    names = [_short(r.spot.name) for r in rows]
    named = _placed(names, places, lines)
    # A name that was cut to another's says nothing, either.
    full = {r.spot.kind for r, n, (_, fits) in zip(rows, names, named, strict=True) if not fits or names.count(n) > 1}
    texts = [str(r.number) if r.spot.kind in full else n for r, n in zip(rows, names, strict=True)]
    return [label for label, _ in (_placed(texts, places, lines) if full else named)], bool(full)


def _short(name: str) -> str:
    name = clip(name)
    return name if len(name) <= LETTERS else f"{name[: LETTERS - 1]}…"


def _placed(texts: list[str], places: list[tuple[float, float]], lines: list[Line]) -> list[tuple[Label, bool]]:
    """Where each text stands, and whether it covers nothing there. Boxes are (left, top, right, bottom)."""
    full = [(x - MARK, y - MARK, x + MARK, y + MARK) for x, y in places]
    crosses = np.array([(*sorted((n.x1, n.x2)), *sorted((n.y1, n.y2))) for n in lines]).reshape(-1, 4)[:, [0, 2, 1, 3]]
    found: list[tuple[Label, bool]] = []
    for text, (x, y) in zip(texts, places, strict=True):
        at = np.array(PLACES) + np.array((x, y))
        boxes = _boxes(text, at)
        covered = _outside(boxes) + _meet(boxes, np.array(full)).sum(axis=1)
        best = int(np.argmin(1000 * covered + _unhandsome(boxes, (x, y), at, np.array(full), crosses)))
        found.append((_label(text, (x, y), best), not covered[best]))
        full.append(tuple(boxes[best]))
    return found


def _boxes(text: str, at: Array) -> Array:
    """What a text covers at each of PLACES, (k, 4). Letters of some scripts are twice as wide."""
    width = TEXT * sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
    left = at[:, 0] - width * (1 - np.sign(np.array(PLACES)[:, 0])) / 2
    return np.stack([left, at[:, 1] - LINE / 2, left + width, at[:, 1] + LINE / 2], axis=1)


def _meet(boxes: Array, others: Array) -> Mask:
    """Whether each of `boxes`, (k, 4), lies on each of `others`, (m, 4); a line is a box without width or height."""
    low, high = np.maximum(boxes[:, None, :2], others[:, :2]), np.minimum(boxes[:, None, 2:], others[:, 2:])
    met: Mask = ((low < high) | ((low == high) & (others[:, :2] == others[:, 2:]))).all(axis=2)
    return met


def _outside(boxes: Array) -> Array:
    low, high = boxes[:, :2] < (LEFT + 1, 0), boxes[:, 2:] > (WIDTH, BOTTOM - 1)
    beyond: Array = (low | high).sum(axis=1)
    return beyond


def _unhandsome(boxes: Array, mark: tuple[float, float], at: Array, full: Array, crosses: Array) -> Array:
    """Near is better, on no line, and with a leader that runs over nothing; though a name across an interval can still
    be read.
    """
    leaders = mark + LEADER[None, :, None] * (at - mark)[:, None, :]
    points = np.concatenate([leaders, leaders], axis=2).reshape(-1, 4)
    run_over = _meet(points, full).reshape(len(at), len(LEADER), -1).any(axis=1).sum(axis=1)
    lines = _meet(boxes, np.concatenate([crosses, NO_SKILL])).sum(axis=1)
    cost: Array = REACH / NEAR + lines + 2 * np.where(REACH > NEAR, run_over, 0)
    return cost


def _label(text: str, mark: tuple[float, float], place: int) -> Label:
    right, down = PLACES[place]
    x, y = round(mark[0] + right, 1), mark[1] + down
    anchor: Anchor = "start" if right > 0 else "end" if right < 0 else "middle"
    leader = Line(*mark, x, round(y, 1)) if REACH[place] > 1.5 * NEAR else None
    return Label(text, x, round(y + 0.32 * LINE, 1), anchor, leader)
