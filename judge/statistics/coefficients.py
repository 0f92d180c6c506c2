"""The coefficients of agreement, as functions of counts and codes; what they rest on is said at each one.

Every coefficient is a smooth function of its items, so each comes with the influence that every item has on it, and its
standard error is √Σ influence² (the delta method). For Cohen's kappa that is the formula of Fleiss, Cohen & Everitt
(1969), for Fleiss' kappa and AC1 that of Gwet (2008). Nothing is drawn at random.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit  # quantiles, without the second that scipy.stats takes to import

from judge.statistics.estimate import Estimate

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
TINY = 1e-12  # sums of shares round; below this a spread is none
NO_OVERLAP = "no item has labels of two raters"
ONE_LABEL = "only one label was used, so agreement by chance is certain"
ONE_ITEM = "a single item has no spread"


@dataclass(frozen=True)
class Statistic:
    """A value, and what each item adds to its error: SE² = Σ influence². Shape of `influence`: (items,).

    `observed` and `chance` are the agreement it was made from, where it is (observed − chance) / (1 − chance).
    """

    value: float | None
    influence: Array
    n: int
    observed: float | None = None
    chance: float = 0.0
    reason: str | None = None


def undefined(reason: str, items: int, n: int = 0) -> Statistic:
    return Statistic(None, np.zeros(items), n, reason=reason)


def estimate(s: Statistic, least: float = -1.0, most: float = 1.0) -> Estimate:
    """The figure with its interval, between `least` and `most`, the bounds of what it measures.

    Where every item agrees, or none does, the delta method gives an interval of width 0, which would claim certainty:
    the limits are then those of Wilson's interval for the agreement, with agreement by chance held fixed.
    """
    if s.value is None:
        return Estimate(value=None, n=s.n, reason=s.reason)
    value = _clean(s.value)
    error = float(np.sqrt(np.sum(s.influence**2)))
    if error > TINY and s.n > 1:
        low, high = _limits(value, float(stdtrit(s.n - 1, 0.975)) * error, least, most)
        return Estimate(value=value, low=low, high=high, n=s.n, interval="analytic", reason=s.reason)
    if s.observed is not None and (abs(s.observed - 1) < TINY or abs(s.observed) < TINY) and not s.reason:
        _, low, high = wilson(s.observed, s.n)
        ends = [(p - s.chance) / (1 - s.chance) for p in (low, high)]
        return Estimate(
            value=value,
            low=max(least, min(value, ends[0])),
            high=min(most, max(value, ends[1])),
            n=s.n,
            interval="wilson",
        )
    return Estimate(
        value=value,
        n=s.n,
        reason=s.reason or (ONE_ITEM if s.n < 2 else "the items are all alike, so they show no spread"),
    )


def _limits(value: float, half: float, least: float, most: float) -> tuple[float, float]:
    """value ± half on the scale artanh((2·value − least − most) / (most − least)), which is Fisher's z for −1..1 and
    the logit for 0..1.
    """
    reach = (most - least) / 2
    at = (value - least) / reach - 1
    if abs(at) >= 1 - TINY:
        return max(least, value - half), min(most, value + half)
    step = half / reach / (1 - at * at)
    low, high = (least + reach * (1 + float(np.tanh(np.arctanh(at) + sign * step))) for sign in (-1, 1))
    return low, high


def wilson(p: float, n: int) -> tuple[float, float, float]:
    """(p, low, high) of a share p of n items at 95 %. Source: Wilson 1927."""
    z = float(ndtri(0.975))
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * float(np.sqrt(max(0.0, p * (1 - p)) / n + z * z / (4 * n * n)))
    return p, max(0.0, min(p, centre - half)), min(1.0, max(p, centre + half))


def share(values: Array, reason: str = NO_OVERLAP) -> Estimate:
    """The mean of one value in 0..1 per item (shape (items,)). Exact for yes or no; wider than need be where items hold
    shares.
    """
    if not values.size:
        return Estimate(value=None, reason=reason)
    p, low, high = wilson(_clean(float(values.mean())), values.size)
    return Estimate(value=p, low=low, high=high, n=values.size, interval="wilson")


def average(values: Array, reason: str = NO_OVERLAP) -> Statistic:
    """The mean of one value per item (shape (items,)), any unit."""
    n = values.size
    if not n:
        return undefined(reason, 0)
    return Statistic(float(values.mean()), (values - values.mean()) / np.sqrt(max(1, n * (n - 1))), n)


def agreement_weights(q: int, kind: Literal["identity", "linear", "quadratic"]) -> Array:
    """How much two categories of q agree, 0..1, shape (q, q): 1 − (|i − j| / (q − 1))ᵏ. Source: Cohen 1968; Cicchetti &
    Allison 1971 (linear).
    """
    if kind == "identity" or q < 2:
        return np.eye(q)
    steps = np.abs(np.subtract.outer(np.arange(q), np.arange(q))) / (q - 1)
    weights: Array = 1.0 - steps ** (1 if kind == "linear" else 2)
    return weights


def cohen(first: Codes, second: Codes, weights: Array) -> Statistic:
    """Cohen's kappa of two raters. `first`, `second`: codes, shape (items,), -1 missing; `weights`: agreement, shape
    (q, q).

    Items that one of them left out don't count. A rater who used one label only has kappa 0 whatever the other said;
    the
    value is given and its interval is not. Source: Cohen 1960; Cohen 1968 (weighted); Fleiss, Cohen & Everitt 1969
    (SE).
    """
    both = (first >= 0) & (second >= 0)
    n = int(both.sum())
    if not n:
        return undefined("the two raters have no item in common", first.size)
    q = weights.shape[0]
    a, b = first[both], second[both]
    row, column = np.bincount(a, minlength=q) / n, np.bincount(b, minlength=q) / n
    observed, chance = float(weights[a, b].mean()), float(row @ weights @ column)
    if 1 - chance < TINY:
        return undefined(ONE_LABEL, first.size, n)
    value = (observed - chance) / (1 - chance)
    own = (weights[a, b] - observed) - (1 - value) * ((weights @ column)[a] + (row @ weights)[b] - 2 * chance)
    influence = np.zeros(first.size)
    influence[both] = own / (1 - chance) / n
    constant = "one of the raters used one label only" if max(row.max(), column.max()) > 1 - TINY else None
    return Statistic(value, influence, n, observed, chance, constant)


def mean_of(statistics: list[Statistic], n: int) -> Statistic:
    """The mean over the pairs of raters that have a value, `n` items in all. Source: Light 1971 (kappa of several
    raters).
    """
    known = [s for s in statistics if s.value is not None]
    if len(known) < 2:
        return (known or statistics)[0]
    value = float(np.mean([s.value for s in known if s.value is not None]))
    influence = np.mean([s.influence for s in known], axis=0)
    missing = (
        f"mean of {len(known)} of {len(statistics)} pairs of raters; the others have no value"
        if len(known) < len(statistics)
        else None
    )
    observed = 1.0 if all(s.observed is not None and s.observed > 1 - TINY for s in known) else None
    return Statistic(value, influence, n, observed, float(np.mean([s.chance for s in known])), missing)


def pairwise(counts: Array) -> Array:
    """Each item's share of agreeing pairs of raters, NaN where fewer than two rated it. `counts`: (items, q)."""
    rated = counts.sum(axis=1)
    pairs = np.where(rated > 1, rated * (rated - 1), np.nan)
    found: Array = (np.sum(counts**2, axis=1) - rated) / pairs
    return found


def fleiss(counts: Array) -> Statistic:
    """Fleiss' kappa of any number of raters, who may differ from item to item. `counts`: raters per category, (items,
    q).

    Items rated once inform the shares of the labels and not the agreement. Source: Fleiss 1971; Gwet 2008 (SE), with
    missing ratings as in Gwet 2014, but that items rated once don't widen the interval: whether an item was rated twice
    is no chance result here. The SE of Fleiss 1971 holds only where there is no agreement beyond chance.
    """
    counts = counts[counts.sum(axis=1) > 0]
    use = counts / counts.sum(axis=1, keepdims=True)
    shares = use.mean(axis=0) if len(use) else np.zeros(counts.shape[1])
    return _corrected(counts, float(shares @ shares), use @ shares)


def gwet_ac1(counts: Array) -> Statistic:
    """Gwet's AC1. `counts`: (items, q); every one of the q categories that could be chosen counts, used or not. Source:
    Gwet 2008.
    """
    counts = counts[counts.sum(axis=1) > 0]
    q = counts.shape[1]
    if q < 2:
        return undefined("the scale has one label only", len(counts))
    use = counts / counts.sum(axis=1, keepdims=True)
    shares = use.mean(axis=0) if len(use) else np.zeros(q)
    return _corrected(counts, float(shares @ (1 - shares)) / (q - 1), use @ (1 - shares) / (q - 1))


def _corrected(counts: Array, chance: float, own_chance: Array) -> Statistic:
    """(observed − chance) / (1 − chance) and its linearised error. `own_chance`: each item's part of chance, whose mean
    is `chance`.
    """
    n, agreed = len(counts), pairwise(counts)
    known = ~np.isnan(agreed)
    several = int(known.sum())
    if not several:
        return undefined(NO_OVERLAP, n)
    if 1 - chance < TINY:
        return undefined(ONE_LABEL, n, several)
    observed = float(agreed[known].mean())
    value = (observed - chance) / (1 - chance)
    own = n / several * np.where(known, np.nan_to_num(agreed) - observed, 0.0) - 2 * (1 - value) * (own_chance - chance)
    return Statistic(value, own / (1 - chance) / np.sqrt(max(1, n * (n - 1))), several, observed, chance)


def krippendorff(counts: Array, ordinal: bool = False) -> Statistic:
    """Krippendorff's alpha. `counts`: raters per category, (items, q), categories in order if `ordinal`; missing
    ratings are simply not counted.

    Source: Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability" (coincidences, nominal and ordinal metric).
    The error is the delta method's; the ordinal metric depends on the labels' shares, so those are differentiated too.
    """
    counts = counts[counts.sum(axis=1) > 1]
    n, q = counts.shape
    if not n:
        return undefined(NO_OVERLAP, 0)
    rated, margin = counts.sum(axis=1), counts.sum(axis=0)
    total = float(margin.sum())
    # Ordinal distance: all labels between the two, and half of each of them (`spread`: category × category × label
    # counted).
    spread = _between(q) if ordinal else np.zeros((q, q, q))
    steps = spread @ margin
    squared = steps**2 if ordinal else 1 - np.eye(q)
    expected = float(margin @ squared @ margin)
    if expected < TINY:
        return undefined(ONE_LABEL, n, n)
    apart = np.einsum("uc,ck,uk->u", counts, squared, counts) / (rated - 1)
    found = float(apart.sum())
    value = 1 - (total - 1) * found / expected
    together = counts.T @ (counts / (rated - 1)[:, None])  # coincidences; a value paired with itself is at distance 0
    by_shares = np.einsum("ck,ckg->g", 2 * steps * together, spread)
    expected_by_shares = 2 * squared @ margin + np.einsum("ck,ckg->g", 2 * steps * np.outer(margin, margin), spread)
    slope = (apart + counts @ by_shares) / expected - found * (counts @ expected_by_shares) / expected**2
    own = -(rated * found / expected + (total - 1) * slope)
    # So much is agreed where one item's raters differ wholly; it serves only where nobody differs, or everybody does.
    agreed = pairwise(counts)
    shares = margin / total
    return Statistic(
        value, (own - own.mean()) * np.sqrt(n / max(1, n - 1)), n, float(agreed.mean()), float(shares @ shares)
    )


def _between(q: int) -> Array:
    c, k, g = np.ogrid[:q, :q, :q]
    low, high = np.minimum(c, k), np.maximum(c, k)
    spread: Array = np.where((g > low) & (g < high), 1.0, np.where((g == low) | (g == high), 0.5, 0.0)) * (c != k)
    return spread


def specific(counts: Array, category: int) -> Statistic:
    """Of all that was given this category, the share of the other raters who gave it too. Source: Cicchetti & Feinstein
    1990; Fleiss 1981.

    `counts`: (items, q). For two raters it is 2·both / (first's + second's).
    """
    counts = counts[(counts.sum(axis=1) > 1) & (counts[:, category] > 0)]
    n = len(counts)
    if not n:
        return undefined("nobody gave this label to an item that two raters saw", 0)
    given = counts[:, category]
    too = given * (given - 1) / (counts.sum(axis=1) - 1)
    value = float(too.sum() / given.sum())
    return Statistic(value, (too - value * given) / given.sum() * np.sqrt(n / max(1, n - 1)), n, value)


def _clean(value: float) -> float:
    """Without the rounding of sums: 1 and not 1 + 2⁻⁵²."""
    return float(round(value)) if abs(value - round(value)) < TINY else value
