"""Readings, and how well raters agree on them: every coefficient of scoring.md section 7, overall, per label and per
pair of raters.

A pooled figure hides a label or rater with poor agreement, so these are always reported with it. Formulas and sources
are in `judge.statistics.coefficients`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb, isqrt

import numpy as np

from dataset_builder.schema import Strict
from judge.statistics import coefficients as c
from judge.statistics.coefficients import NO_OVERLAP, Array, Codes, Mask, Weighting
from judge.statistics.estimate import Estimate

UNORDERED = "the labels have no order"
TWO_RATERS = "a bias has a sign between two raters only; see the pairs"
RATERS = 100  # every pair of them has a table
LABELS, CELLS = 1_000, 2**24  # distinct labels, and numbers in the tables of all pairs


@dataclass(frozen=True)
class Readings:
    """Labels of cases by raters: people, judges, or one judge's repeats.

    codes: shape (cases, raters), the label's index in `labels`, -1 if a rater gave none. labels: the whole scale,
    lowest first if `ordered`, including unused labels. Distances are counted in steps of this scale. clusters: shape
    (cases,); cases that share a code are one observation in every interval; None: each is its own.
    """

    codes: Codes
    labels: tuple[str, ...]
    raters: tuple[str, ...]
    ordered: bool = False
    clusters: Codes | None = None

    @classmethod
    def of(
        cls,
        given: Mapping[str, Iterable[str | None]],
        labels: Sequence[str],
        ordered: bool = False,
        clusters: Sequence[str] | None = None,
    ) -> Readings:
        """From every rater's labels of the same cases; None: no label. `clusters`: a name per case."""
        place: dict[str | None, int] = {None: -1} | {label: n for n, label in enumerate(labels)}
        codes = np.array([[place[label] for label in own] for own in given.values()], dtype=np.int64)
        kin = None if clusters is None else np.unique(np.array(clusters, dtype=str), return_inverse=True)[1]
        return cls(codes.reshape(len(given), -1).T, tuple(labels), tuple(given), ordered, kin)

    @property
    def counts(self) -> Array:
        """How many raters gave each label, shape (cases, labels)."""
        counts = np.zeros((len(self.codes), len(self.labels)))
        case, rater = np.nonzero(self.codes >= 0)
        np.add.at(counts, (case, self.codes[case, rater]), 1)
        return counts

    @property
    def several(self) -> Mask:
        """Which cases two or more raters labeled."""
        found: Mask = (self.codes >= 0).sum(axis=1) > 1
        return found

    @property
    def shared(self) -> int:
        return int(self.several.sum())

    @property
    def pairs(self) -> list[Readings]:
        return [self.between(*pair) for pair in combinations(self.raters, 2)]

    def between(self, *raters: str) -> Readings:
        """Those of some raters, in this order."""
        return replace(self, codes=self.codes[:, [self.raters.index(name) for name in raters]], raters=raters)

    def take(self, kept: Codes | Mask) -> Readings:
        return replace(self, codes=self.codes[kept], clusters=None if self.clusters is None else self.clusters[kept])

    def without(self, rater: str) -> Readings:
        return self.between(*(name for name in self.raters if name != rater))

    def one_against_rest(self, label: int) -> Readings:
        """The same readings reduced to this label or another."""
        codes = np.where(self.codes < 0, -1, (self.codes == label).astype(np.int64))
        return replace(self, codes=codes, labels=("another", self.labels[label]), ordered=False)

    def cohen(self, weights: Weighting = "identity", rater: str | None = None) -> c.Coefficient:
        """Cohen's kappa; for more than two raters, the mean over their pairs, or over those with `rater`."""
        table = c.weights_of(len(self.labels), weights)
        pairs = [pair for pair in self.pairs if rater is None or rater in pair.raters]
        found = [c.cohen(pair.codes[:, 0], pair.codes[:, 1], table, self.clusters) for pair in pairs]
        several = self.several if rater is None else self.several & (self.between(rater).codes[:, 0] >= 0)
        return c.mean_of(found, int(several.sum()))

    def kappa(self, weights: Weighting = "identity", rater: str | None = None) -> Estimate:
        return c.estimate(self.cohen(weights, rater))

    def fleiss(self) -> Estimate:
        return c.estimate(c.fleiss(self.counts, self.clusters))

    def alpha(self, ordinal: bool = False) -> Estimate:
        return c.estimate(c.krippendorff(self.counts, self.clusters, ordinal))

    def raw(self, reason: str = NO_OVERLAP) -> Estimate:
        """The share of pairs of raters with the same label."""
        return c.raw(self.counts, self.clusters, reason)

    def repeated(self, reason: str) -> tuple[Estimate, Estimate]:
        """How well repeats of one rater agree, on the cases with two or more labels: raw agreement, Fleiss' kappa."""
        own = self.take(self.several)
        return own.raw(reason), own.fleiss()

    def within_one(self, reason: str = NO_OVERLAP) -> Estimate:
        """The share of pairs of raters whose labels are at most one step apart."""
        own = self.take(self.several)
        return c.share(c.over_pairs(own.counts, (own._steps <= 1).astype(np.float64)), own.clusters, reason)

    def mae(self) -> Estimate:
        """The mean absolute difference of two raters, in steps."""
        own = self.take(self.several)
        return c.mean(c.over_pairs(own.counts, own._steps), own.clusters, 0.0, len(self.labels) - 1.0)

    def bias(self, values: Array | None = None, reason: str = NO_OVERLAP) -> Estimate:
        """The second of two raters less the first. `values`: of each label, shape (labels,); default: its step."""
        values = np.arange(len(self.labels), dtype=np.float64) if values is None else values
        own, reach = self.take(self.several), float(np.ptp(values))
        return c.mean(values[own.codes[:, 1]] - values[own.codes[:, 0]], own.clusters, -reach, reach, reason)

    def recall(self, label: int, reason: str) -> Estimate:
        """Of the cases with this label from the first of two raters, the share that the second gave it too."""
        return self.take((self.codes[:, 0] == label) & (self.codes[:, 1] >= 0)).raw(reason)

    def recalls(self, reason: str) -> dict[str, Estimate]:
        return {name: self.recall(k, reason) for k, name in enumerate(self.labels)}

    def confusion(self) -> Codes:
        """Cases by the codes of two raters, shape (labels, labels + 1); last column: those that only the first
        labeled.
        """
        table = np.zeros((len(self.labels), len(self.labels) + 1), dtype=np.int64)
        np.add.at(table, tuple(self.codes[self.codes[:, 0] >= 0].T), 1)
        return table

    @property
    def _steps(self) -> Array:
        """The distances of the labels, shape (labels, labels)."""
        place = np.arange(len(self.labels), dtype=np.float64)
        return np.abs(np.subtract.outer(place, place))


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


def agreement(readings: Readings) -> Agreement:
    """Every figure on these raters' agreement.

    Each is defined for every table: a single label, a constant rater, no common item or a single item give null, or a
    value without an interval, with its reason, never NaN.
    """
    return Agreement(
        raters=list(readings.raters),
        labels=list(readings.labels),
        ordered=readings.ordered,
        items=len(readings.codes),
        shared=readings.shared,
        overall=coefficients(readings),
        classes=[_class(readings, k) for k in range(len(readings.labels))],
        pairs=[_pair(pair) for pair in readings.pairs],
    )


def coefficients(readings: Readings) -> Coefficients:
    """The coefficients over all raters at once."""
    found = {"raw": readings.raw(), **_nominal(readings)}
    if not readings.ordered:
        none = Estimate(value=None, reason=UNORDERED)
        return Coefficients(**{**dict.fromkeys(Coefficients.model_fields, none), **found})
    return Coefficients(
        **found,
        cohen_linear=readings.kappa("linear"),
        cohen_quadratic=readings.kappa("quadratic"),
        alpha_ordinal=readings.alpha(ordinal=True),
        within_one=readings.within_one(),
        mae=readings.mae(),
        bias=readings.bias() if len(readings.raters) == 2 else Estimate(value=None, reason=TWO_RATERS),
    )


def _nominal(readings: Readings) -> dict[str, Estimate]:
    """The coefficients that need no order."""
    return {
        "cohen": readings.kappa(),
        "fleiss": readings.fleiss(),
        "alpha_nominal": readings.alpha(),
        "ac1": c.estimate(c.gwet_ac1(readings.counts, readings.clusters)),
    }


def _class(readings: Readings, label: int) -> ClassAgreement:
    own = readings.one_against_rest(label)
    given = (own.codes[own.several] == 1).sum(axis=0)
    return ClassAgreement(
        label=readings.labels[label],
        given=dict(zip(own.raters, given.tolist(), strict=True)),
        specific=c.estimate(c.specific(own.counts, 1, own.clusters), least=0.0),
        **_nominal(own),
    )


def _pair(readings: Readings) -> PairAgreement:
    first, second = readings.raters
    return PairAgreement(
        first=first,
        second=second,
        coefficients=coefficients(readings),
        confusion=readings.confusion()[:, :-1].tolist(),
        recall=readings.recalls(f"{first} never gave this label"),
        precision=readings.between(second, first).recalls(f"{second} never gave this label"),
    )
