"""Every agreement figure against a library that is not ours, on 120 random tables and on degenerate ones;
docs/judge-quality.md has the list.

scikit-learn, statsmodels and krippendorff are asked here; what irrCAC said stands in irrcac_tables.json
(irrcac_tables.py says why).
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable
from functools import cache
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import krippendorff as reference
import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    cohen_kappa_score,
    confusion_matrix,
    f1_score,
    mean_absolute_error,
    precision_score,
    recall_score,
)
from statsmodels.stats import inter_rater

from judge.statistics import coefficients as c
from judge.statistics.agreement import Agreement, ClassAgreement, Coefficients, Ratings, agreement
from judge.statistics.coefficients import NO_OVERLAP, ONE_LABEL, Codes, Statistic
from judge.statistics.estimate import Estimate

KEPT = json.loads(Path(__file__).with_name("irrcac_tables.json").read_text(encoding="utf-8"))["tables"]
TABLES = pytest.mark.parametrize("table", KEPT, ids=[t["name"] for t in KEPT])
KINDS = {"cohen": None, "cohen_linear": "linear", "cohen_quadratic": "quadratic"}
TOO_FEW = "no item has labels of two raters", "the two raters have no item in common"
Table = dict[str, Any]


def rated(table: Table, ordered: bool = True) -> Ratings:
    codes = np.array([[-1 if mark == "." else int(mark) for mark in row] for row in table["rows"]], dtype=np.int64)
    return Ratings(
        codes, tuple(map(str, range(table["labels"]))), tuple(f"r{n}" for n in range(codes.shape[1])), ordered
    )


@cache
def found_of(name: str) -> Agreement:
    """All that we say of a table, worked out once."""
    return agreement(rated(next(t for t in KEPT if t["name"] == name)))


def both(codes: Codes, i: int, k: int) -> Codes:
    """The items that two raters share, shape (items, 2)."""
    pair = codes[:, [i, k]]
    return pair[(pair >= 0).all(axis=1)]


def quiet(ask: Callable[..., Any], *arguments: Any, **named: Any) -> float:
    """What a library says; those of ours warn where they divide by nought and say nan."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(ask(*arguments, **named))


def same(ours: Estimate | Statistic, theirs: float, *reasons: str) -> None:
    """Equal; where the library says nan ours is null, with one of the reasons that are given."""
    if math.isnan(theirs):
        assert ours.value is None
        assert ours.reason in reasons
    else:
        assert ours.value == pytest.approx(theirs, abs=1e-9)


def alpha(codes: Codes, labels: int, level: str) -> float:
    """Krippendorff's α by the krippendorff package, which wants two labels in the domain and one item that two raters
    rated.
    """
    if not ((codes >= 0).sum(axis=1) > 1).any():
        return math.nan
    data = np.where(codes < 0, np.nan, codes.astype(float)).T
    return quiet(
        reference.alpha,
        reliability_data=data,
        value_domain=[float(k) for k in range(labels)],
        level_of_measurement=level,
    )


def complete(codes: Codes) -> bool:
    return bool(codes.size) and bool((codes >= 0).all())


@TABLES
def test_cohen(table: Table) -> None:
    """κ unweighted, linear, quadratic: each pair of raters as scikit-learn and statsmodels have it, several raters as
    the mean over pairs (Light).
    """
    ratings, labels = rated(table), range(table["labels"])
    found = found_of(table["name"])
    for name, weights in KINDS.items():
        pairs = []
        for (i, k), pair in zip(combinations(range(len(ratings.raters)), 2), found.pairs, strict=True):
            own = both(ratings.codes, i, k)
            theirs = quiet(cohen_kappa_score, *own.T, labels=labels, weights=weights) if len(own) else math.nan
            same(getattr(pair.coefficients, name), theirs, ONE_LABEL, *TOO_FEW)
            if len(own):
                same(
                    getattr(pair.coefficients, name), quiet(statsmodels_cohen, own, table["labels"], weights), ONE_LABEL
                )
            pairs.append(theirs)
        known = [p for p in pairs if not math.isnan(p)]
        same(getattr(found.overall, name), float(np.mean(known)) if known else math.nan, ONE_LABEL, *TOO_FEW)


def statsmodels_cohen(own: Codes, labels: int, weights: str | None) -> float:
    return float(
        inter_rater.cohens_kappa(confusion_matrix(*own.T, labels=range(labels)), wt=weights, return_results=False)
    )


@TABLES
def test_errors_of_cohen(table: Table) -> None:
    """The large-sample standard error as statsmodels has it, where both raters used more than one label."""
    ratings = rated(table)
    for i, k in combinations(range(len(ratings.raters)), 2):
        own = both(ratings.codes, i, k)
        if len(own) > 1 and min(len(np.unique(own[:, 0])), len(np.unique(own[:, 1]))) > 1:
            counted = confusion_matrix(*own.T, labels=range(table["labels"]))
            for kind in ("identity", "linear", "quadratic"):
                theirs = quiet(
                    lambda table, wt: inter_rater.cohens_kappa(table, wt=wt).var_kappa,
                    counted,
                    None if kind == "identity" else kind,
                )
                ours = c.cohen(own[:, 0], own[:, 1], c.agreement_weights(table["labels"], kind))
                assert np.sum(ours.influence**2) == pytest.approx(theirs, abs=1e-12)


@TABLES
def test_fleiss(table: Table) -> None:
    """Fleiss' κ as irrCAC has it with missing ratings, and as statsmodels has it without; by class too."""
    ratings = rated(table)
    found = found_of(table["name"])
    parts: list[tuple[Coefficients | ClassAgreement, Ratings, Any]] = [
        (found.overall, ratings, table["irrCAC"]["fleiss"])
    ]
    parts += [
        (own, ratings.one_against_rest(k), table["irrCAC"]["classes"][k]["fleiss"])
        for k, own in enumerate(found.classes)
    ]
    for figures, counted, kept in parts:
        if (
            figures.fleiss.reason == ONE_LABEL
        ):  # nought by nought, of which irrCAC makes 1 or an error as sums happen to round
            assert figures.fleiss.value is None
            assert kept in (None, 1.0)
        else:
            same(figures.fleiss, math.nan if kept is None else kept, NO_OVERLAP)
        if complete(counted.codes):
            same(figures.fleiss, quiet(inter_rater.fleiss_kappa, counted.counts), ONE_LABEL)


@TABLES
def test_krippendorff(table: Table) -> None:
    """α nominal and ordinal, and of each class, as the krippendorff package has it, missing ratings and unused labels
    among them.
    """
    ratings = rated(table)
    found = found_of(table["name"])
    same(found.overall.alpha_nominal, alpha(ratings.codes, table["labels"], "nominal"), ONE_LABEL, *TOO_FEW)
    same(found.overall.alpha_ordinal, alpha(ratings.codes, table["labels"], "ordinal"), ONE_LABEL, *TOO_FEW)
    for k, own in enumerate(found.classes):
        same(own.alpha_nominal, alpha(ratings.one_against_rest(k).codes, 2, "nominal"), ONE_LABEL, *TOO_FEW)


@TABLES
def test_gwet_and_raw_agreement(table: Table) -> None:
    """AC1, over all and by class, and raw agreement as irrCAC has them; where all agree AC1 is 1, though κ has no
    value.
    """
    found, kept = found_of(table["name"]), table["irrCAC"]
    same(found.overall.ac1, math.nan if kept["ac1"] is None else kept["ac1"], NO_OVERLAP)
    same(found.overall.raw, math.nan if kept["raw"] is None else kept["raw"], NO_OVERLAP)
    for own, theirs in zip(found.classes, kept["classes"], strict=True):
        same(own.ac1, math.nan if theirs["ac1"] is None else theirs["ac1"], NO_OVERLAP)


@TABLES
def test_errors_of_fleiss_and_gwet(table: Table) -> None:
    """As irrCAC has them where every item was rated twice or more; items rated once widen its interval and not ours
    (docstring of `fleiss`).
    """
    ratings, kept = rated(table), table["irrCAC"]
    seen = (ratings.codes >= 0).sum(axis=1)
    if (seen[seen > 0] > 1).all() and kept["fleiss_se"] is not None:
        for name, statistic in (("fleiss", c.fleiss(ratings.counts)), ("ac1", c.gwet_ac1(ratings.counts))):
            if statistic.value is not None:
                assert math.sqrt(np.sum(statistic.influence**2)) == pytest.approx(kept[f"{name}_se"], abs=1e-9)


@TABLES
def test_cohen_of_each_class(table: Table) -> None:
    """One label against the rest: the mean over the pairs of what scikit-learn has of each."""
    ratings = rated(table)
    for k, own in enumerate(found_of(table["name"]).classes):
        codes = ratings.one_against_rest(k).codes
        pairs = [both(codes, i, j) for i, j in combinations(range(codes.shape[1]), 2)]
        theirs = [quiet(cohen_kappa_score, *p.T, labels=[0, 1]) for p in pairs if len(p)]
        known = [x for x in theirs if not math.isnan(x)]
        same(own.cohen, float(np.mean(known)) if known else math.nan, ONE_LABEL, *TOO_FEW)


@TABLES
def test_specific_agreement_of_each_class(table: Table) -> None:
    """Between two raters it is scikit-learn's F1 of the label; among several without missing ratings, the F1 over all
    ordered pairs of them.
    """
    ratings = rated(table)
    codes, found = ratings.codes, found_of(table["name"])
    nobody = "nobody gave this label to an item that two raters saw"
    for i, k in combinations(range(codes.shape[1]), 2):
        for label, theirs in enumerate(f1(both(codes, i, k), table["labels"])):
            same(c.specific(ratings.pair(i, k).counts, label), theirs, nobody)
    if complete(codes):
        stacked = np.concatenate([codes[:, [i, k]] for i, k in permutations(range(codes.shape[1]), 2)])
        for ours, theirs in zip(found.classes, f1(stacked, table["labels"]), strict=True):
            same(ours.specific, theirs, nobody)


def f1(own: Codes, labels: int) -> list[float]:
    return (
        list(f1_score(*own.T, labels=range(labels), average=None, zero_division=np.nan))
        if len(own)
        else [math.nan] * labels
    )


@TABLES
def test_pairs_of_raters(table: Table) -> None:
    """Raw agreement, error, confusion, recall and precision as scikit-learn has them; bias as the difference of the
    means; within one step counted by numpy.
    """
    ratings = rated(table)
    for (i, k), pair in zip(combinations(range(len(ratings.raters)), 2), found_of(table["name"]).pairs, strict=True):
        own, figures = both(ratings.codes, i, k), pair.coefficients
        if not len(own):
            assert {f.value for f in (figures.raw, figures.within_one, figures.mae, figures.bias)} == {None}
            continue
        first, second = own.T
        same(figures.raw, accuracy_score(first, second))
        same(figures.mae, mean_absolute_error(first, second))
        same(figures.bias, float(np.mean(second) - np.mean(first)))
        same(figures.within_one, float(np.mean(np.isin(second - first, (-1, 0, 1)))))
        assert pair.confusion == confusion_matrix(first, second, labels=range(table["labels"])).tolist()
        for ours, theirs, rater in ((pair.recall, recall_score, i), (pair.precision, precision_score, k)):
            said = theirs(first, second, labels=range(table["labels"]), average=None, zero_division=np.nan)
            for label, value in enumerate(said):
                same(ours[str(label)], value, f"r{rater} never gave this label")


def test_the_tables_are_what_they_are_called() -> None:
    """Random ones of every kind, and each sort of degenerate table: what is compared above is compared on all of
    them.
    """
    assert sum(t["name"].startswith("random") for t in KEPT) == 120
    tables = [rated(t) for t in KEPT]
    assert {len(r.raters) for r in tables} == {2, 3, 4, 5}
    assert {len(r.labels) for r in tables} >= {2, 3, 4, 5, 6}
    assert sum(complete(r.codes) for r in tables) > 40
    assert sum(not complete(r.codes) for r in tables) > 40
    reasons = {f.reason for r in tables for _, f in agreement(r).overall if isinstance(f, Estimate)}
    assert {ONE_LABEL, NO_OVERLAP, "one of the raters used one label only", "a single item has no spread"} <= reasons
