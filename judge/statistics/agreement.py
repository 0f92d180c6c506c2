"""How far raters agree: every coefficient of scoring.md section 7, overall, per class and per pair of raters.

Pure functions of arrays. `judge.people.labels` reads label files into `Ratings`; `helmbench calibrate` and the panel
build them
themselves. A pooled figure hides the class, the criterion or the rater where agreement fails, so these always stand
beside it. Formulas and their sources are in `judge.statistics.coefficients`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb, isqrt

import numpy as np

from dataset_builder.schema import Strict
from judge.statistics import coefficients as c
from judge.statistics.coefficients import Array, Codes, Statistic
from judge.statistics.estimate import Estimate

UNORDERED = "the labels have no order"
TWO_RATERS = "a bias has a sign between two raters only; see the pairs"
RATERS = 100  # every pair of them has a table of its own
LABELS, CELLS = 1_000, 2**24  # different labels, and numbers in the tables of all pairs


@dataclass(frozen=True)
class Ratings:
    """Labels that raters gave to items.

    codes: shape (items, raters), the label's place in `labels`, -1 where a rater gave none. labels: the whole scale,
    lowest first if `ordered`, also those that nobody used. Distances between labels are counted in steps of this scale.

    Raises:
        ValueError: no raters, fewer labels than a code says, repeated labels, or a shape that doesn't fit.
    """

    codes: Codes
    labels: tuple[str, ...]
    raters: tuple[str, ...]
    ordered: bool = False

    def __post_init__(self) -> None:
        if self.codes.ndim != 2 or self.codes.shape[1] != len(self.raters):
            raise ValueError(
                f"codes have shape {self.codes.shape}; expected (items, {len(self.raters)}), one column per rater"
            )
        if len(self.raters) < 2 or len(set(self.raters)) < len(self.raters):
            raise ValueError(f"raters are {list(self.raters)}; expected two or more, each named once")
        if len(set(self.labels)) < len(self.labels):
            raise ValueError(f"labels are {list(self.labels)}; expected each once")
        if self.codes.size and not (self.codes.min() >= -1 and self.codes.max() < len(self.labels)):
            raise ValueError(
                f"codes run from {self.codes.min()} to {self.codes.max()}; expected -1 (missing) to "
                f"{len(self.labels) - 1}"
            )

    @property
    def counts(self) -> Array:
        """How many raters gave each label, shape (items, labels)."""
        return (
            np.stack([(self.codes == k).sum(axis=1) for k in range(len(self.labels))], axis=1, dtype=np.float64)
            if self.labels
            else np.zeros((len(self.codes), 0))
        )

    def one_against_rest(self, label: int) -> Ratings:
        """The same ratings as this label or another."""
        codes = np.where(self.codes < 0, -1, (self.codes == label).astype(np.int64))
        return Ratings(codes, ("another", self.labels[label]), self.raters)

    def pair(self, first: int, second: int) -> Ratings:
        return Ratings(
            self.codes[:, [first, second]], self.labels, (self.raters[first], self.raters[second]), self.ordered
        )


def too_many(raters: int, labels: int = 0) -> str | None:
    """What there is too much of for tables of every pair of raters, and how much can be measured."""
    if raters > RATERS:
        return f"{raters:,} raters; expected at most {RATERS}"
    most = min(LABELS, isqrt(CELLS // max(comb(raters, 2), 1)))
    return f"{labels:,} different labels; expected at most {most:,} of {raters} raters" if labels > most else None


class Coefficients(Strict):
    """Agreement in every way it is measured.

    `raw`, `within_one`: shares of pairs of raters, 0 to 1. `cohen…`: with more than two raters the mean over their
    pairs (Light 1971). `mae`, `bias`: steps of the scale; bias is the second rater's label less the first's. What needs
    an order is null where the labels have none.
    """

    raw: Estimate
    cohen: Estimate
    cohen_linear: Estimate
    cohen_quadratic: Estimate
    fleiss: Estimate
    alpha_nominal: Estimate
    alpha_ordinal: Estimate
    ac1: Estimate
    within_one: Estimate
    mae: Estimate
    bias: Estimate


class ClassAgreement(Strict):
    """One label against all others. `given`: how often each rater gave it, on items that two or more rated.

    `specific`: of all that was given this label, the share of the other raters who gave it too (0 to 1).
    """

    label: str
    given: dict[str, int]
    specific: Estimate
    cohen: Estimate
    fleiss: Estimate
    alpha_nominal: Estimate
    ac1: Estimate


class PairAgreement(Strict):
    """Two raters. `confusion`: items, rows the first's label, columns the second's, in the order of `labels`.

    `recall`: of the items that the first gave a label, the share that the second gave it too; `precision`: the reverse.
    """

    first: str
    second: str
    coefficients: Coefficients
    confusion: list[list[int]]
    recall: dict[str, Estimate]
    precision: dict[str, Estimate]


class Agreement(Strict):
    """The agreement of two or more raters on one set of items. `shared`: items that two or more of them labelled."""

    raters: list[str]
    labels: list[str]
    ordered: bool
    items: int
    shared: int
    overall: Coefficients
    classes: list[ClassAgreement]
    pairs: list[PairAgreement]


def agreement(ratings: Ratings) -> Agreement:
    """All that can be said of how these raters agree.

    Every figure is defined for every table: a single class, a constant rater, no item in common or a single item give a
    null (or an interval of nulls) with its reason, never NaN.
    """
    pairs = [ratings.pair(i, k) for i, k in combinations(range(len(ratings.raters)), 2)]
    return Agreement(
        raters=list(ratings.raters),
        labels=list(ratings.labels),
        ordered=ratings.ordered,
        items=len(ratings.codes),
        shared=_shared(ratings),
        overall=coefficients(ratings),
        classes=[_class(ratings, k) for k in range(len(ratings.labels))],
        pairs=[_pair(p) for p in pairs],
    )


def coefficients(ratings: Ratings) -> Coefficients:
    """The coefficients over all raters at once."""
    counts, q = ratings.counts, len(ratings.labels)
    agreed = c.pairwise(counts)
    ordered = ratings.ordered
    apart = _steps(ratings) if ordered else np.zeros(0)
    none = Estimate(value=None, reason=UNORDERED)
    two = len(ratings.raters) == 2
    return Coefficients(
        raw=c.share(agreed[~np.isnan(agreed)]),
        cohen=c.estimate(_cohen(ratings, c.agreement_weights(q, "identity"))),
        cohen_linear=c.estimate(_cohen(ratings, c.agreement_weights(q, "linear"))) if ordered else none,
        cohen_quadratic=c.estimate(_cohen(ratings, c.agreement_weights(q, "quadratic"))) if ordered else none,
        fleiss=c.estimate(c.fleiss(counts)),
        alpha_nominal=c.estimate(c.krippendorff(counts)),
        alpha_ordinal=c.estimate(c.krippendorff(counts, ordinal=True)) if ordered else none,
        ac1=c.estimate(c.gwet_ac1(counts)),
        within_one=c.share(_mean(np.where(apart <= 1, 1.0, 0.0), apart)) if ordered else none,
        mae=c.estimate(c.average(_mean(apart, apart)), 0.0, q - 1.0) if ordered else none,
        bias=none
        if not ordered
        else c.estimate(c.average(_bias(ratings)), 1.0 - q, q - 1.0)
        if two
        else Estimate(value=None, reason=TWO_RATERS),
    )


def _cohen(ratings: Ratings, weights: Array) -> Statistic:
    pairs = [
        c.cohen(ratings.codes[:, i], ratings.codes[:, k], weights)
        for i, k in combinations(range(len(ratings.raters)), 2)
    ]
    return c.mean_of(pairs, _shared(ratings))


def _shared(ratings: Ratings) -> int:
    return int(np.sum((ratings.codes >= 0).sum(axis=1) > 1))


def _steps(ratings: Ratings) -> Array:
    """How many steps apart each pair of raters is on each item, shape (items, pairs); NaN where one gave no label."""
    codes = np.where(ratings.codes < 0, np.nan, ratings.codes)
    return np.stack([np.abs(codes[:, i] - codes[:, k]) for i, k in combinations(range(codes.shape[1]), 2)], axis=1)


def _mean(values: Array, known: Array) -> Array:
    """Each item's mean over the pairs of raters that labelled it, for items that have one."""
    rated = ~np.isnan(known)
    sums, numbers = np.where(rated, values, 0.0).sum(axis=1), rated.sum(axis=1)
    means: Array = sums[numbers > 0] / numbers[numbers > 0]
    return means


def _bias(ratings: Ratings) -> Array:
    first, second = ratings.codes.T
    both = (first >= 0) & (second >= 0)
    differences: Array = (second - first)[both].astype(np.float64)
    return differences


def _class(ratings: Ratings, label: int) -> ClassAgreement:
    own = ratings.one_against_rest(label)
    counts = own.counts
    shared = counts.sum(axis=1) > 1
    return ClassAgreement(
        label=ratings.labels[label],
        given={rater: int(np.sum(own.codes[shared, k] == 1)) for k, rater in enumerate(ratings.raters)},
        specific=c.estimate(c.specific(counts, 1), least=0.0),
        cohen=c.estimate(_cohen(own, np.eye(2))),
        fleiss=c.estimate(c.fleiss(counts)),
        alpha_nominal=c.estimate(c.krippendorff(counts)),
        ac1=c.estimate(c.gwet_ac1(counts)),
    )


def _pair(ratings: Ratings) -> PairAgreement:
    first, second = ratings.codes.T
    both = (first >= 0) & (second >= 0)
    table = np.zeros((len(ratings.labels),) * 2, dtype=np.int64)
    np.add.at(table, (first[both], second[both]), 1)
    same = first[both] == second[both]
    return PairAgreement(
        first=ratings.raters[0],
        second=ratings.raters[1],
        coefficients=coefficients(ratings),
        confusion=table.tolist(),
        recall={name: _of(same, first[both] == k, ratings.raters[0]) for k, name in enumerate(ratings.labels)},
        precision={name: _of(same, second[both] == k, ratings.raters[1]) for k, name in enumerate(ratings.labels)},
    )


def _of(
    same: np.ndarray[tuple[int], np.dtype[np.bool_]], given: np.ndarray[tuple[int], np.dtype[np.bool_]], rater: str
) -> Estimate:
    return c.share(same[given].astype(np.float64), f"{rater} never gave this label")
