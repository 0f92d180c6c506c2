"""Agreement coefficients, each with a leave-one-cluster-out jackknife.

Every coefficient is a function of sums over items. The functions here evaluate it on the sums over all items and on the
sums without each cluster of items; `estimate` turns these values into a figure with a 95 % interval. `clusters` has one
code per item: items that share a code count as one observation in the interval (variants of one reply, verdicts on one
message). Without `clusters`, each item is a separate observation. Nothing is random.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit  # quantiles, without scipy.stats, which takes a second to import

from judge.statistics.estimate import Estimate

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
Mask = NDArray[np.bool_]
Weighting = Literal["identity", "linear", "quadratic"]
TINY = 1e-12  # differences below this are rounding
NO_OVERLAP = "no item has labels of two raters"
NO_COMMON_ITEM = "the two raters have no item in common"
ONE_LABEL = "only one label was used, so agreement by chance is certain"
ONE_ITEM = "a single item has no spread"
ALL_ALIKE = "the items are all alike, so they show no spread"
ONE_DECIDES = "without one of the items the figure is undefined, so it has no interval"


@dataclass(frozen=True)
class Coefficient:
    """A coefficient before it becomes an estimate.

    values: shape (1 + clusters,): over all items, then without each cluster in turn; NaN where undefined.
    used: shape (clusters,): which clusters hold an item that the coefficient rests on. items: how many such items.
    observed, chance: of a coefficient (observed − chance) / (1 − chance); `observed` is None for any other.
    reason: why there is no value, or no interval.
    """

    values: Array
    used: Mask
    items: int
    observed: float | None = None
    chance: float = 0.0
    reason: str | None = None

    @property
    def value(self) -> float | None:
        return None if np.isnan(self.values[0]) else float(self.values[0])

    def less(self, other: Coefficient) -> Coefficient:
        """The paired difference to a coefficient of the same clusters."""
        return Coefficient(self.values - other.values, self.used & other.used, min(self.items, other.items))


def undefined(reason: str, items: int = 0) -> Coefficient:
    return Coefficient(np.array([np.nan]), np.zeros(0, dtype=bool), items, reason=reason)


def estimate(c: Coefficient, least: float = -1.0, most: float = 1.0) -> Estimate:
    """The figure with its 95 % interval, within its bounds `least` and `most`.

    The error is the leave-one-cluster-out jackknife's around the value over all items. If no cluster changes the value
    and all items agree (or none does), a jackknife interval would have width 0; the limits are then those of Wilson's
    interval for the observed agreement, with chance agreement held fixed.
    """
    if c.value is None:
        return Estimate(value=None, n=c.items, reason=c.reason)
    value, clusters = _clean(c.value), int(c.used.sum())
    changes = c.values[1:] - c.values[0]
    fragile = bool(np.isnan(changes).any())
    error = float(np.sqrt((clusters - 1) / clusters * np.sum(changes**2))) if clusters > 1 and not fragile else 0.0
    if error > TINY:
        low, high = _limits(value, float(stdtrit(clusters - 1, 0.975)) * error, least, most)
        return Estimate(value=value, low=low, high=high, n=c.items, interval="jackknife", reason=c.reason)
    if c.observed is not None and min(abs(c.observed - 1), abs(c.observed)) < TINY and not c.reason:
        low, high = ((p - c.chance) / (1 - c.chance) for p in wilson(c.observed, clusters))
        return Estimate(
            value=value, low=max(least, min(value, low)), high=min(most, max(value, high)), n=c.items, interval="wilson"
        )
    reason = c.reason or (ONE_ITEM if clusters < 2 else ONE_DECIDES if fragile else ALL_ALIKE)
    return Estimate(value=value, n=c.items, reason=reason)


def _limits(value: float, half: float, least: float, most: float) -> tuple[float, float]:
    """value ± half on the scale artanh((2·value − least − most) / (most − least)): Fisher's z for −1..1, the logit for
    0..1.
    """
    reach = (most - least) / 2
    at = (value - least) / reach - 1
    if abs(at) >= 1 - TINY:
        return max(least, value - half), min(most, value + half)
    step = half / reach / (1 - at * at)
    low, high = (least + reach * (1 + float(np.tanh(np.arctanh(at) + sign * step))) for sign in (-1, 1))
    return low, high


def _clean(value: float) -> float:
    """The value without rounding errors: 1, not 1 + 2⁻⁵²."""
    return float(round(value)) if abs(value - round(value)) < TINY else value


def wilson(p: float, n: int) -> tuple[float, float]:
    """The 95 % limits of a share p of n items. Source: Wilson 1927."""
    z = float(ndtri(0.975))
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * float(np.sqrt(max(0.0, p * (1 - p)) / n + z * z / (4 * n * n)))
    return max(0.0, min(p, centre - half)), min(1.0, max(p, centre + half))


def share(values: Array, clusters: Codes | None = None, reason: str = NO_OVERLAP) -> Estimate:
    """The mean of one value in 0..1 per item, with Wilson's interval at the number of clusters; `reason` if there are
    no items. Exact for yes or no; wider than necessary where items hold shares.
    """
    if not values.size:
        return Estimate(value=None, reason=reason)
    p = _clean(float(values.mean()))
    low, high = wilson(p, values.size if clusters is None else len(np.unique(clusters)))
    return Estimate(value=p, low=low, high=high, n=values.size, interval="wilson")


def mean(values: Array, clusters: Codes | None, least: float, most: float, reason: str = NO_OVERLAP) -> Estimate:
    """The mean of one value per item, in any unit."""
    if not values.size:
        return Estimate(value=None, reason=reason)
    sums = _sums(np.column_stack([values, np.ones(values.size)]), clusters)
    with np.errstate(invalid="ignore"):
        means = sums[:, 0] / sums[:, 1]
    return estimate(Coefficient(means, np.ones(len(means) - 1, dtype=bool), values.size), least, most)


def weights_of(q: int, kind: Weighting) -> Array:
    """How much two of q labels agree, 0..1, shape (q, q): 1 − (|i − j| / (q − 1))ᵏ. Source: Cohen 1968; Cicchetti &
    Allison 1971 (linear).
    """
    if kind == "identity" or q < 2:
        return np.eye(q)
    steps = np.abs(np.subtract.outer(np.arange(q), np.arange(q))) / (q - 1)
    weights: Array = 1.0 - steps ** (1 if kind == "linear" else 2)
    return weights


def cohen(first: Codes, second: Codes, weights: Array, clusters: Codes | None = None) -> Coefficient:
    """Cohen's kappa of two raters. `first`, `second`: codes, shape (items,), -1 missing; `weights`: agreement of two
    labels, shape (q, q).

    Items that one of them skipped don't count. A rater who used a single label has kappa 0; the value has no interval.
    Source: Cohen 1960; Cohen 1968 (weighted).
    """
    both = (first >= 0) & (second >= 0)
    n, q = int(both.sum()), len(weights)
    if not n:
        return undefined(NO_COMMON_ITEM)
    a, b, one_hot = first[both], second[both], np.eye(q)
    parts = np.zeros((first.size, 1 + 2 * q))
    parts[both] = np.column_stack([weights[a, b], one_hot[a], one_hot[b]])
    sums = _sums(parts, clusters)
    with np.errstate(invalid="ignore"):
        observed, row, column = np.split(sums / sums[:, 1 : 1 + q].sum(axis=1, keepdims=True), [1, 1 + q], axis=1)
    chance = ((row @ weights) * column).sum(axis=1)
    constant = "one of the raters used one label only" if max(row[0].max(), column[0].max()) > 1 - TINY else None
    return _beyond_chance(observed[:, 0], chance, _used(both, clusters), n, constant)


def mean_of(found: Sequence[Coefficient], items: int) -> Coefficient:
    """The mean over the pairs of raters with a value, on the same clusters, `items` items in all. Source: Light 1971
    (kappa of several raters).
    """
    known = [c for c in found if c.value is not None]
    if len(known) < 2:
        return (known or found)[0]
    missing = f"mean of {len(known)} of {len(found)} pairs of raters; the others have no value"
    return Coefficient(
        np.mean([c.values for c in known], axis=0),
        np.any([c.used for c in known], axis=0),
        items,
        1.0 if all(c.observed is not None and c.observed > 1 - TINY for c in known) else None,
        float(np.mean([c.chance for c in known])),
        missing if len(known) < len(found) else None,
    )


def over_pairs(counts: Array, weights: Array) -> Array:
    """Each item's mean of `weights` (symmetric, shape (q, q)) over its pairs of raters, shape (items,); NaN where fewer
    than two rated it. With the identity: the share of agreeing pairs. `counts`: (items, q).
    """
    rated = counts.sum(axis=1)
    pairs = np.where(rated > 1, rated * (rated - 1), np.nan)
    found: Array = (np.sum(counts @ weights * counts, axis=1) - counts @ np.diag(weights)) / pairs
    return found


def raw(counts: Array, clusters: Codes | None = None, reason: str = NO_OVERLAP) -> Estimate:
    """Raw agreement: the mean share of agreeing pairs over the items that two or more raters labeled."""
    agreed = over_pairs(counts, np.eye(counts.shape[1]))
    known = ~np.isnan(agreed)
    return share(agreed[known], None if clusters is None else clusters[known], reason)


def fleiss(counts: Array, clusters: Codes | None = None) -> Coefficient:
    """Fleiss' kappa of any number of raters, who may differ from item to item. `counts`: raters per label, (items, q).

    Items rated once inform the shares of the labels, not the observed agreement. Source: Fleiss 1971; Gwet 2014
    (missing ratings).
    """
    return _of_counts(counts, clusters, lambda shares: (shares**2).sum(axis=1))


def gwet_ac1(counts: Array, clusters: Codes | None = None) -> Coefficient:
    """Gwet's AC1. `counts`: raters per label, (items, q); all q labels that could be given count, used or not. Source:
    Gwet 2008.
    """
    q = counts.shape[1]
    if q < 2:
        return undefined("the scale has one label only")
    return _of_counts(counts, clusters, lambda shares: (shares * (1 - shares)).sum(axis=1) / (q - 1))


def krippendorff(counts: Array, clusters: Codes | None = None, ordinal: bool = False) -> Coefficient:
    """Krippendorff's alpha. `counts`: raters per label, (items, q), labels in order if `ordinal`; missing ratings
    aren't counted.

    Source: Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability". The ordinal distance of two labels is the
    difference of their mid-ranks among all ratings, squared.
    """
    several = counts.sum(axis=1) > 1
    if not several.any():
        return undefined(NO_OVERLAP)
    counts, codes = counts[several], _dense(_dense(clusters, len(counts))[several], int(several.sum()))
    n, q = counts.shape
    rated = counts.sum(axis=1)
    scale = 1 / (rated - 1)[:, None]
    sums = _sums(
        np.column_stack([counts, counts * rated[:, None] * scale, (counts**2).sum(axis=1) * scale[:, 0]]), codes
    )
    margin, weighted, same = sums[:, :q], sums[:, q : 2 * q], sums[:, -1]
    total = margin.sum(axis=1)
    if ordinal:
        ranks = np.cumsum(margin, axis=1) - margin / 2
        together = counts.T @ (counts * scale)
        # Each item's Σ n·rank under the ranks that hold without its cluster, to be left out of `together`.
        own = np.bincount(codes, ((counts * ranks[1 + codes]).sum(axis=1) ** 2) * scale[:, 0], len(ranks) - 1)
        product = ((ranks @ together) * ranks).sum(axis=1) - np.concatenate([[0.0], own])
        found = 2 * (weighted * ranks**2).sum(axis=1) - 2 * product
        expected = 2 * total * (margin * ranks**2).sum(axis=1) - 2 * (margin * ranks).sum(axis=1) ** 2
    else:
        found = weighted.sum(axis=1) - same
        expected = total**2 - (margin**2).sum(axis=1)
    none = expected < TINY * total ** (4 if ordinal else 2)
    if none[0]:
        return undefined(ONE_LABEL, n)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.where(none, np.nan, 1 - (total - 1) * found / expected)
    shares, agreed = margin[0] / total[0], over_pairs(counts, np.eye(q)).mean()
    # `observed` and `chance` only serve where all raters agree, or none do.
    return Coefficient(values, _used(np.ones(n, dtype=bool), codes), n, float(agreed), float(shares @ shares))


def specific(counts: Array, label: int, clusters: Codes | None = None) -> Coefficient:
    """Of all ratings with this label, the share of the item's other raters who gave it too. For two raters:
    2·both / (first's + second's). `counts`: (items, q). Source: Cicchetti & Feinstein 1990; Fleiss 1981.
    """
    kept = (counts.sum(axis=1) > 1) & (counts[:, label] > 0)
    if not kept.any():
        return undefined("nobody gave this label to an item that two raters saw")
    given, rated = counts[kept, label], counts[kept].sum(axis=1)
    own = _dense(clusters, len(counts))[kept]
    sums = _sums(np.column_stack([given * (given - 1) / (rated - 1), given]), _dense(own, len(own)))
    with np.errstate(invalid="ignore"):
        values = sums[:, 0] / sums[:, 1]
    return Coefficient(values, np.ones(len(values) - 1, dtype=bool), len(given), float(values[0]))


def _dense(clusters: Codes | None, items: int) -> Codes:
    return np.arange(items) if clusters is None else np.unique(clusters, return_inverse=True)[1].astype(np.int64)


def _sums(parts: Array, clusters: Codes | None) -> Array:
    """Sums of `parts` (items, k): over all items, then without each cluster; shape (1 + clusters, k)."""
    total, own = parts.sum(axis=0), parts
    if clusters is not None:
        codes = _dense(clusters, len(parts))
        own = np.zeros((codes.max(initial=-1) + 1, parts.shape[1]))
        np.add.at(own, codes, parts)
    return np.concatenate([total[None], total - own])


def _used(items: Mask, clusters: Codes | None) -> Mask:
    """Which clusters contain one of these items."""
    codes = _dense(clusters, len(items))
    used: Mask = np.bincount(codes[items], minlength=codes.max(initial=-1) + 1) > 0
    return used


def _of_counts(counts: Array, clusters: Codes | None, chance: Callable[[Array], Array]) -> Coefficient:
    """A coefficient of raters who may differ from item to item. `chance`: the labels' shares, shape (…, q) → agreement
    by chance.
    """
    rated = counts.sum(axis=1)
    several = rated > 1
    if not several.any():
        return undefined(NO_OVERLAP)
    agreed = np.nan_to_num(over_pairs(counts, np.eye(counts.shape[1])))
    sums = _sums(np.column_stack([agreed, several, rated > 0, counts / np.maximum(rated, 1)[:, None]]), clusters)
    with np.errstate(invalid="ignore"):
        observed, by_chance = sums[:, 0] / sums[:, 1], chance(sums[:, 3:] / sums[:, 2:3])
    return _beyond_chance(observed, by_chance, _used(several, clusters), int(several.sum()))


def _beyond_chance(observed: Array, chance: Array, used: Mask, items: int, reason: str | None = None) -> Coefficient:
    """(observed − chance) / (1 − chance), undefined if agreement by chance is certain."""
    if 1 - chance[0] < TINY:
        return undefined(ONE_LABEL, items)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.where(1 - chance < TINY, np.nan, (observed - chance) / (1 - chance))
    return Coefficient(values, used, items, float(observed[0]), float(chance[0]), reason)
