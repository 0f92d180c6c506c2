"""How well raters agree: every coefficient of scoring.md section 7, overall, per label and per pair of raters.

A pooled figure hides a label or rater with poor agreement, so these are always reported with it. Formulas and sources
are in `judge.statistics.coefficients`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from math import comb, isqrt
from typing import Literal

import numpy as np

from dataset_builder.schema import Strict
from judge.statistics import coefficients as c
from judge.statistics.coefficients import Array, Codes, Mask
from judge.statistics.estimate import Estimate

UNORDERED = "the labels have no order"
TWO_RATERS = "a bias has a sign between two raters only; see the pairs"
RATERS = 100  # every pair of them has a table
LABELS, CELLS = 1_000, 2**24  # distinct labels, and numbers in the tables of all pairs


@dataclass(frozen=True)
class Ratings:
    """Labels of items by raters.

    codes: shape (items, raters), the label's index in `labels`, -1 if a rater gave none. labels: the whole scale,
    lowest first if `ordered`, including unused labels. Distances are counted in steps of this scale.
    """

    codes: Codes
    labels: tuple[str, ...]
    raters: tuple[str, ...]
    ordered: bool = False

    @property
    def counts(self) -> Array:
        """How many raters gave each label, shape (items, labels)."""
        return c.label_counts(self.codes, len(self.labels))

    @property
    def shared(self) -> int:
        """How many items two or more raters labeled."""
        return int(np.sum((self.codes >= 0).sum(axis=1) > 1))

    @property
    def pairs(self) -> list[Ratings]:
        return [
            Ratings(self.codes[:, [i, k]], self.labels, (self.raters[i], self.raters[k]), self.ordered)
            for i, k in combinations(range(len(self.raters)), 2)
        ]

    def one_against_rest(self, label: int) -> Ratings:
        """The same ratings reduced to this label or another."""
        codes = np.where(self.codes < 0, -1, (self.codes == label).astype(np.int64))
        return Ratings(codes, ("another", self.labels[label]), self.raters)

    def cohen(self, weights: Array) -> c.Coefficient:
        """Cohen's kappa; for more than two raters, the mean over their pairs."""
        columns = combinations(self.codes.T, 2)
        return c.mean_of([c.cohen(first, second, weights) for first, second in columns], self.shared)


@dataclass(frozen=True)
class Pair:
    """Two raters' labels of the same items: codes, shape (items,), -1 if missing, out of `scale` labels. Items that
    share a code in `clusters` are one observation in every interval.
    """

    first: Codes
    second: Codes
    scale: int
    clusters: Codes | None = None

    @property
    def turned(self) -> Pair:
        return replace(self, first=self.second, second=self.first)

    @property
    def both(self) -> Mask:
        return (self.first >= 0) & (self.second >= 0)

    def take(self, kept: Codes | Mask) -> Pair:
        """Some of the items."""
        own = None if self.clusters is None else self.clusters[kept]
        return Pair(self.first[kept], self.second[kept], self.scale, own)

    def cohen(self, weights: Literal["identity", "quadratic"] = "identity") -> c.Coefficient:
        return c.cohen(self.first, self.second, c.weights_of(self.scale, weights), self.clusters)

    def kappa(self, weights: Literal["identity", "quadratic"] = "identity") -> Estimate:
        return c.estimate(self.cohen(weights))

    def raw(self, reason: str) -> Estimate:
        """The share of items with the same label."""
        own = self.take(self.both)
        return c.share((own.first == own.second).astype(np.float64), own.clusters, reason)

    def recall(self, label: int, reason: str) -> Estimate:
        """Of the items with this label from the first rater, the share that the second gave it too."""
        return self.take((self.first == label) & (self.second >= 0)).raw(reason)

    def confusion(self) -> Codes:
        """Items by their two codes, shape (scale, scale + 1); last column: those that only the first labeled."""
        own = self.take(self.first >= 0)
        table = np.zeros((self.scale, self.scale + 1), dtype=np.int64)
        np.add.at(table, (own.first, own.second), 1)
        return table


def too_many(raters: int, labels: int = 0) -> str | None:
    """Why there are too many raters or labels for a table of every pair of raters, or None."""
    if raters > RATERS:
        return f"{raters:,} raters; expected at most {RATERS}"
    most = min(LABELS, isqrt(CELLS // max(comb(raters, 2), 1)))
    return f"{labels:,} different labels; expected at most {most:,} of {raters} raters" if labels > most else None


class Coefficients(Strict):
    """Every coefficient of agreement.

    `raw`, `within_one`: shares of pairs of raters, 0 to 1. `cohen…`: with more than two raters, the mean over their
    pairs (Light 1971). `mae`, `bias`: steps of the scale; bias is the second rater's label minus the first's. Figures
    that need an order are null if the labels have none.
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
    """One label against all others. `given`: how often each rater gave it, on items that two or more labeled.

    `specific`: of all ratings with this label, the share of the other raters who gave it too (0 to 1).
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

    `recall`: of the items with this label from the first, the share that the second gave it too; `precision`: the
    reverse.
    """

    first: str
    second: str
    coefficients: Coefficients
    confusion: list[list[int]]
    recall: dict[str, Estimate]
    precision: dict[str, Estimate]


class Agreement(Strict):
    """The agreement of two or more raters on one set of items. `shared`: items that two or more of them labeled."""

    raters: list[str]
    labels: list[str]
    ordered: bool
    items: int
    shared: int
    overall: Coefficients
    classes: list[ClassAgreement]
    pairs: list[PairAgreement]


def agreement(ratings: Ratings) -> Agreement:
    """Every figure on these raters' agreement.

    Each is defined for every table: a single label, a constant rater, no common item or a single item give null, or a
    value without an interval, with its reason, never NaN.
    """
    return Agreement(
        raters=list(ratings.raters),
        labels=list(ratings.labels),
        ordered=ratings.ordered,
        items=len(ratings.codes),
        shared=ratings.shared,
        overall=coefficients(ratings),
        classes=[_class(ratings, k) for k in range(len(ratings.labels))],
        pairs=[_pair(p) for p in ratings.pairs],
    )


def coefficients(ratings: Ratings) -> Coefficients:
    """The coefficients over all raters at once."""
    counts, q = ratings.counts, len(ratings.labels)
    found = {
        "raw": c.raw(counts),
        "cohen": c.estimate(ratings.cohen(np.eye(q))),
        "fleiss": c.estimate(c.fleiss(counts)),
        "alpha_nominal": c.estimate(c.krippendorff(counts)),
        "ac1": c.estimate(c.gwet_ac1(counts)),
    }
    if not ratings.ordered:
        none = Estimate(value=None, reason=UNORDERED)
        return Coefficients(**{**dict.fromkeys(Coefficients.model_fields, none), **found})
    # Steps between each pair of raters, shape (items, pairs), NaN if one gave no label; only items with a pair.
    codes = np.where(ratings.codes < 0, np.nan, ratings.codes)
    steps = np.stack([second - first for first, second in combinations(codes.T, 2)], axis=1)
    steps = steps[~np.isnan(steps).all(axis=1)]
    within = np.where(np.isnan(steps), np.nan, np.abs(steps) <= 1)
    return Coefficients(
        **found,
        cohen_linear=c.estimate(ratings.cohen(c.weights_of(q, "linear"))),
        cohen_quadratic=c.estimate(ratings.cohen(c.weights_of(q, "quadratic"))),
        alpha_ordinal=c.estimate(c.krippendorff(counts, ordinal=True)),
        within_one=c.share(np.nanmean(within, axis=1)),
        mae=c.mean(np.nanmean(np.abs(steps), axis=1), None, 0.0, q - 1.0),
        bias=c.mean(steps[:, 0], None, 1.0 - q, q - 1.0)
        if len(ratings.raters) == 2
        else Estimate(value=None, reason=TWO_RATERS),
    )


def _class(ratings: Ratings, label: int) -> ClassAgreement:
    own = ratings.one_against_rest(label)
    counts = own.counts
    shared = counts.sum(axis=1) > 1
    return ClassAgreement(
        label=ratings.labels[label],
        given={rater: int(np.sum(own.codes[shared, k] == 1)) for k, rater in enumerate(ratings.raters)},
        specific=c.estimate(c.specific(counts, 1), least=0.0),
        cohen=c.estimate(own.cohen(np.eye(2))),
        fleiss=c.estimate(c.fleiss(counts)),
        alpha_nominal=c.estimate(c.krippendorff(counts)),
        ac1=c.estimate(c.gwet_ac1(counts)),
    )


def _pair(ratings: Ratings) -> PairAgreement:
    first, second = ratings.raters
    pair = Pair(ratings.codes[:, 0], ratings.codes[:, 1], len(ratings.labels))

    def shares(own: Pair, rater: str) -> dict[str, Estimate]:
        return {name: own.recall(k, f"{rater} never gave this label") for k, name in enumerate(ratings.labels)}

    return PairAgreement(
        first=first,
        second=second,
        coefficients=coefficients(ratings),
        confusion=pair.confusion()[:, :-1].tolist(),
        recall=shares(pair, first),
        precision=shares(pair.turned, second),
    )
