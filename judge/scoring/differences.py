"""Differences between two runs, or between two conditions of one run, paired by message (scoring.md section 5).

The variance of every part is protected: with few messages, most of it comes from how much the same messages differ
elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from judge.schema import Figure
from judge.scoring.figures import Influence, Scorer, joined, scaled
from judge.scoring.parts import Made, Part
from judge.scoring.table import Entries, Mask, Read
from judge.statistics.intervals import (
    Array,
    Clusters,
    Interval,
    distinct,
    effective,
    effective_messages,
    largest_design_effect,
    stratified_variance,
)


class Spread(NamedTuple):
    """How far two values of an entry are apart: the mean square of their difference (0 to 1), and its correlation among
    the entries of one message (0 to 1).
    """

    square: float
    correlation: float

    def variance(self, c: Clusters) -> float:
        """The variance that the difference of two weighted means over these messages is expected to have."""
        return self.square / effective(c) * (1 + self.correlation * (largest_design_effect(c) - 1))


class Change(NamedTuple):
    """The difference of one rate: how far each message moves it, the weight of each message, its own information (the
    effective number of messages minus one), and the variance that `Spread` expects of it.
    """

    moved: Influence
    weight: Influence
    known: float
    expected: float


class Test(NamedTuple):
    """A difference with its interval, the p-value of no difference, and Kish's effective number of messages."""

    interval: Interval
    p_value: float
    messages: float


def spread_of(t: Entries, first: Array, second: Array, inside: Mask) -> Spread:
    """The spread between two values, (n,), of the entries of `inside`; entries where either is nan don't count."""
    own = np.flatnonzero(inside & ~np.isnan(first) & ~np.isnan(second))
    gap, weight = (first - second)[own], t.weight[own]
    if not len(own):
        return Spread(0.0, 0.0)
    keys, _, place = distinct(t.cell[own] * len(t.message.names) + t.message.codes[own])
    count = np.bincount(place, minlength=len(keys))
    total, squares = (np.bincount(place, v, len(keys)) for v in (gap, gap**2))
    several = count > 1
    shared = np.bincount(place, weight, len(keys))[several] / count[several]
    alike = float(shared @ ((total**2 - squares)[several] / (count - 1)[several]))
    whole = float(shared @ squares[several])
    return Spread(float(np.average(gap**2, weights=weight)), float(np.clip(alike / whole, 0, 1)) if whole > 0 else 0.0)


def spreads(a: Scorer, b: Scorer, figures: Iterable[Made]) -> dict[str, Spread]:
    """The spread between two runs for each way of reading an entry (a field of `Read`), over all entries of `figures`,
    which are those of `a`.
    """
    used = {name: np.zeros(a.table.size, dtype=bool) for name in Read._fields}
    for part in (p for made in figures for p in made.parts):
        used[_read(a, part.values)] |= part.mask
    return {
        name: spread_of(a.table, getattr(a.table.read, name), getattr(b.table.read, name), mask)
        for name, mask in used.items()
    }


def _read(scorer: Scorer, values: Array) -> str:
    return next(name for name in Read._fields if getattr(scorer.table.read, name) is values)


def difference(a: Scorer, b: Scorer, of_a: Made, of_b: Made, apart: dict[str, Spread]) -> Test:
    """Figure b minus figure a, of two runs on the same samples. `apart`: from `spreads`."""
    changes = []
    for first, second in zip(of_a.parts, of_b.parts, strict=True):
        (c, z), (other, moved) = a.moves(first), b.moves(second)
        gap = joined([b.keyed(other, moved), a.keyed(c, -z)])
        changes.append(change(a, c, gap, first.share, apart[_read(a, first.values)]))
    return tested((b.value(of_b) or 0.0) - (a.value(of_a) or 0.0), changes, of_a.span, a.scoring)


def change(scorer: Scorer, c: Clusters, moved: Influence, share: float, apart: Spread) -> Change:
    """The change of one rate with this share of a figure. `moved`: already multiplied by the share."""
    weight = scorer.keyed(c, share * c.den / c.den.sum())
    return Change(moved, weight, max(0.0, effective_messages(c) - 1), share**2 * apart.variance(c))


def tested(value: float, changes: list[Change], span: float, scoring: Mapping[str, Any]) -> Test:
    """A sum of differences with its interval, which stays within ±`span`, the largest difference possible.

    A part's own variance counts as its effective messages, the expected one as `pooled_messages` more. The covariance
    of parts that share messages is added as observed. Degrees of freedom are Satterthwaite's over the parts.
    """
    prior, confidence = scoring["pooled_messages"], scoring["confidence"]
    found = [stratified_variance(c.moved.z, c.moved.stratum) for c in changes]
    own = np.array([variance for variance, _ in found])
    known = np.array([min(c.known, free) for c, (_, free) in zip(changes, found, strict=True)])
    guarded = (known * own + prior * np.array([c.expected for c in changes])) / (known + prior)
    total = float(guarded.sum())
    whole = joined([c.moved for c in changes]).z
    shared = float(whole @ whole) - float(sum(c.moved.z @ c.moved.z for c in changes))
    variance = max(total + shared, total / 2)
    weight = joined([c.weight for c in changes]).z
    messages = float(weight.sum() ** 2 / (weight @ weight))
    if variance <= 0:  # the two agree everywhere
        return Test((value, value, value), 1.0, messages)
    df = min(total**2 / float((guarded**2 / (known + prior)).sum()), messages - 1 + prior)
    half = float(stdtrit(df, (1 + confidence) / 2)) * float(np.sqrt(variance))
    interval = value, max(value - half, -span), min(value + half, span)
    return Test(interval, 2 * float(stdtr(df, -abs(value) / np.sqrt(variance))), messages)


def paired(scorer: Scorer, mask: Mask, first: Array, second: Array, apart: Spread) -> Figure:
    """100 × the weighted mean of first − second, paired by entry; without limits under two messages.

    `apart`: from all pairs of this kind.
    """
    (c, z), (other, moved) = (scorer.moves(Part(mask, values, 1.0)) for values in (first, second))
    value = float((c.num - other.num).sum() / c.den.sum())
    changes = [change(scorer, c, scorer.keyed(c, z - moved), 1.0, apart)]
    low, high = tested(value, changes, 1.0, scorer.scoring).interval[1:] if c.size > 1 else (None, None)
    return scorer.figure((100 * value, scaled(low, 100), scaled(high, 100)), mask)
