"""Rates, differences and their intervals, clustered by message (scoring.md section 5).

The unit is the perturbation: one message under several conditions and contexts is one cluster, a scenario × polarity
one stratum. Everything here is pure numpy; scipy supplies the t quantiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, stdtrit  # quantiles, without scipy.stats, which takes a second to import

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Clusters:
    """One entry per message: Σ weight·points, Σ weight, Σ weight² over its samples, and the stratum it belongs to."""

    num: Array
    den: Array
    square: Array
    stratum: NDArray[Any]
    message: NDArray[Any]

    @property
    def size(self) -> int:
        return len(self.num)


def distinct(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The sorted distinct values of shape (k,), the index of each one's first occurrence, and every entry's index into
    them.

    Like numpy's `unique`, but without its sort if the values are dense codes: whole numbers from 0.
    """
    if values.dtype.kind != "i" or not len(values) or values.max() > 8 * len(values):
        keys, first, inverse = np.unique(values, return_index=True, return_inverse=True)
        return keys, first, inverse
    place = np.full(int(values.max()) + 1, -1)
    place[values[::-1]] = np.arange(len(values))[::-1]  # the last assignment wins
    keys = np.flatnonzero(place >= 0)
    first = place[keys]
    place[keys] = np.arange(len(keys))
    return keys, first, place[values]


def cluster(points: Array, weights: Array, messages: NDArray[Any], strata: NDArray[Any]) -> Clusters:
    """Sums points and weights (all of shape (n,)) over the rows of each message."""
    keys, first, inverse = distinct(messages)
    num = np.bincount(inverse, weights * points, len(keys)).astype(np.float64)
    den = np.bincount(inverse, weights, len(keys)).astype(np.float64)
    square = np.bincount(inverse, weights**2, len(keys)).astype(np.float64)
    return Clusters(num, den, square, strata[first], keys)


def stratified_variance(z: Array, stratum: NDArray[Any]) -> tuple[float, int]:
    """Σ_h n_h/(n_h−1) Σ(z − z̄_h)² and its degrees of freedom Σ(n_h − 1). z: influence of each message, shape (n,).

    Strata of one message say nothing about their own spread, so they share a stratum (with the first larger one if
    alone).
    """
    ids, _, inverse = distinct(stratum)
    counts = np.bincount(inverse, minlength=len(ids))
    single = np.flatnonzero(counts < 2)
    if single.size:
        larger = np.flatnonzero(counts >= 2)
        target = single[0] if single.size > 1 or not larger.size else larger[0]
        inverse = np.where(np.isin(inverse, single), target, inverse)
    n = np.bincount(inverse, minlength=len(ids)).astype(float)
    mean = np.bincount(inverse, z, len(ids)) / np.maximum(n, 1)
    spread = np.bincount(inverse, (z - mean[inverse]) ** 2, len(ids))
    usable = n > 1
    variance = float(np.sum(n[usable] / (n[usable] - 1) * spread[usable]))
    return variance, int(np.sum(n[usable] - 1))


def mean(c: Clusters) -> float | None:
    """The weighted mean; None without weight."""
    return ratio(float(c.num.sum()), float(c.den.sum()))


def ratio(num: float, den: float) -> float | None:
    """A weighted mean from its two sums; None without weight."""
    if den <= 0:
        return None
    value = num / den
    # Sums of weights round; a rate of all passes must be 1, not 1 + 2⁻⁵², whose variance would be negative.
    return round(value) if abs(value - round(value)) < 1e-12 else value


def influence(c: Clusters) -> Array:
    """Each message's linearised contribution to the weighted mean: (num − p·den)/Σden."""
    p = mean(c)
    z: Array = (c.num - (p or 0.0) * c.den) / c.den.sum()
    return z


def effective(c: Clusters) -> float:
    """Kish's effective number of samples, (Σw)²/Σw²."""
    return float(c.den.sum() ** 2 / c.square.sum())


def effective_messages(c: Clusters) -> float:
    """Kish's effective number of messages, (Σw)²/Σw² with the weight of each message whole."""
    return float(c.den.sum() ** 2 / np.sum(c.den**2))


def largest_design_effect(c: Clusters) -> float:
    """The design effect if all samples of a message agreed."""
    return effective(c) / effective_messages(c)


def pooled_correlation(groups: list[Clusters]) -> float | None:
    """The correlation between a message's samples, 0 to 1, over scenario × polarity groups: the position of their
    summed variances between independence and full agreement. None if every group is all right or all wrong, or no
    message has two samples.
    """
    above = room = 0.0
    for c in groups:
        p = mean(c)
        if p is None or c.size < 2 or not 0 < p < 1:
            continue
        independent = p * (1 - p) / effective(c)
        above += stratified_variance(influence(c), c.stratum)[0] - independent
        room += independent * (largest_design_effect(c) - 1)
    return float(np.clip(above / room, 0.0, 1.0)) if room > 0 else None


def wilson(
    c: Clusters, pooled: float | None, prior_messages: float, confidence: float = 0.95, z: Array | None = None
) -> tuple[float | None, float | None, float | None]:
    """(p, low, high): a Wilson interval at the effective number of messages, p in 0..1.

    `z`: the influence of each message on p, if p is not a plain weighted mean but a sum of several.

    The design effect D shrinks from the group's own towards the one that its messages would have if their samples were
    as alike as those of all (`pooled`, 0 to 1), which counts as `prior_messages` more messages; at p = 0 or 1 the group
    has no information on its own, so the pooled one is used. Null limits under two messages.
    """
    p = mean(c)
    if p is None or c.size < 2:
        return p, None, None
    variance, free = stratified_variance(influence(c) if z is None else z, c.stratum)
    # If a few messages carry most of the weight, only these show how messages differ.
    df = min(free, effective_messages(c) - 1)
    # Near 0 and 1 a few messages determine the whole variance, so a group's own design effect is less reliable there.
    known = df * 4 * p * (1 - p)
    n = effective(c)
    worst = largest_design_effect(c)
    prior = worst if pooled is None else 1 + pooled * (worst - 1)
    own = variance * n / (p * (1 - p)) if 0 < p < 1 else None
    design = prior if own is None else (known * own + prior_messages * prior) / (known + prior_messages)
    n_effective = float(np.clip(n / max(design, 1e-12), 1.0, n))
    t = float(stdtrit(df + prior_messages, (1 + confidence) / 2))
    centre = (p + t * t / (2 * n_effective)) / (1 + t * t / n_effective)
    half = t / (1 + t * t / n_effective) * np.sqrt(p * (1 - p) / n_effective + t * t / (4 * n_effective**2))
    return p, float(max(0.0, centre - half)), float(min(1.0, centre + half))


Interval = tuple[float | None, float | None, float | None]


def exact(passed: float, messages: int, confidence: float) -> Interval:
    """(p, low, high) with exact one-sided limits (Clopper and Pearson 1934) where each message is one trial.

    `passed`: the sum of the messages' rates, which need not be whole. The interval is never too short, however
    strongly a message's samples agree. Without messages, all values are None.
    """
    if not messages:
        return None, None, None
    failed = max(0.0, messages - passed)
    low = float(betaincinv(passed, failed + 1, 1 - confidence)) if passed > 0 else 0.0
    high = float(betaincinv(passed + 1, failed, confidence)) if failed > 0 else 1.0
    return passed / messages, low, high


def linear_interval(value: float, z: Array, stratum: NDArray[Any], confidence: float = 0.95) -> Interval:
    """value ± t·SE for a linear figure with influences z, clustered by message and stratified; without limits if there
    are no degrees of freedom.
    """
    variance, df = stratified_variance(z, stratum)
    if df < 1:
        return value, None, None
    half = float(stdtrit(df, (1 + confidence) / 2)) * float(np.sqrt(variance))
    return value, value - half, value + half
