"""Agreement where items are no independent observations: rows that differ in one word, verdicts on one message.

The coefficients are those of `judge.statistics.coefficients`; only the influences of items that belong together are
added up before the error is taken, so that twelve variants of one reply widen no claim.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from judge.statistics import coefficients as c
from judge.statistics.coefficients import Array, Codes, Statistic
from judge.statistics.estimate import Estimate


def clustered(s: Statistic, groups: Codes) -> Statistic:
    """The statistic with one influence per group; `n` is then the number of groups. `groups`: code of each item, shape
    of `s.influence`.
    """
    if s.value is None or not groups.size:
        return s
    _, codes = np.unique(groups, return_inverse=True)
    summed = np.bincount(codes, s.influence).astype(np.float64)
    return replace(s, influence=summed, n=len(summed))


def measure(s: Statistic, groups: Codes, n: int, least: float = -1.0, most: float = 1.0) -> Estimate:
    """The figure with a clustered interval; `n`: the items that it is of, which the figure then shows."""
    return c.estimate(clustered(s, groups), least, most).model_copy(update={"n": n})


def kappa(first: Codes, second: Codes, groups: Codes, labels: int) -> Estimate:
    """Cohen's kappa, unweighted, of items (shape (items,), -1 missing) that share a group's chance."""
    both = (first >= 0) & (second >= 0)
    return measure(c.cohen(first[both], second[both], np.eye(labels)), groups[both], int(both.sum()))


def share(values: Array, groups: Codes, reason: str) -> Estimate:
    """The mean of one value in 0..1 per item, Wilson's interval at the number of groups."""
    if not values.size:
        return Estimate(value=None, reason=reason)
    p, low, high = c.wilson(float(values.mean()), len(np.unique(groups)))
    return Estimate(value=p, low=low, high=high, n=values.size)


def mean(values: Array, groups: Codes, least: float, most: float) -> Estimate:
    """The mean of one value per item, in any unit."""
    return measure(c.average(values), groups, values.size, least, most)


def alpha(counts: Array, groups: Codes, ordinal: bool) -> Estimate:
    """Krippendorff's alpha. `counts`: raters per label, shape (items, labels); items with fewer than two ratings don't
    count.
    """
    several = counts.sum(axis=1) > 1
    return measure(c.krippendorff(counts[several], ordinal), groups[several], int(several.sum()))
