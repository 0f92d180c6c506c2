"""Every agreement figure against an independent library, on random tables and on degenerate ones (docs list them).

scikit-learn, statsmodels and krippendorff run here; irrCAC's values are recorded in irrcac_tables.json
(scripts/irrcac_tables.py says why).
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterator
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

from judge.statistics.agreement import Agreement, Readings, agreement
from judge.statistics.coefficients import NO_COMMON_ITEM, NO_OVERLAP, ONE_LABEL, Codes
from judge.statistics.estimate import Estimate

TABLES = json.loads(Path(__file__).with_name("irrcac_tables.json").read_text(encoding="utf-8"))["tables"]
KINDS = {"cohen": None, "cohen_linear": "linear", "cohen_quadratic": "quadratic"}
NO_VALUE = (ONE_LABEL, NO_OVERLAP, NO_COMMON_ITEM)
NEVER_GIVEN = "nobody gave this label to an item that two raters saw"


Tables = list[tuple[dict[str, Any], Readings, Agreement]]
pytestmark = pytest.mark.soak(short=15, full=120)


@cache
def read(random: int) -> Tables:
    """So many of the random tables and all degenerate ones, as ratings, with our figures."""
    found = []
    for n, table in enumerate(TABLES):
        if table["name"].startswith("random") and n % (120 // random):
            continue
        codes = np.array([[-1 if m == "." else int(m) for m in row] for row in table["rows"]], dtype=np.int64)
        labels, raters = (tuple(map(str, range(n))) for n in (table["labels"], codes.shape[1]))
        ratings = Readings(codes, labels, tuple(f"r{n}" for n in raters), ordered=True)
        found.append((table, ratings, agreement(ratings)))
    return found


@pytest.fixture
def tables(rounds: int) -> Tables:
    return read(rounds)


class Offenders(list[str]):
    """Figures that differ from a library's, to be reported all at once."""

    def same(self, where: str, ours: Estimate, theirs: float, *reasons: str) -> None:
        """Equal to 1e-9; where the library says NaN, ours is null with one of these reasons."""
        if math.isnan(theirs):
            right = ours.value is None and ours.reason in reasons
        else:
            right = ours.value is not None and abs(ours.value - theirs) < 1e-9
        if not right:
            self.append(f"{where}: {ours.value} ({ours.reason}), the library {theirs}")


def quiet(ask: Callable[..., Any], *arguments: Any, **named: Any) -> float:
    """What a library says; these warn where they divide by zero and say NaN."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(ask(*arguments, **named))


def number(recorded: float | None) -> float:
    return math.nan if recorded is None else recorded


def shared(codes: Codes) -> Iterator[Codes]:
    """For each pair of raters, their labels of the items that both labeled, shape (items, 2)."""
    for i, k in combinations(range(codes.shape[1]), 2):
        pair = codes[:, [i, k]]
        yield pair[(pair >= 0).all(axis=1)]


def mean(values: list[float]) -> float:
    known = [x for x in values if not math.isnan(x)]
    return float(np.mean(known)) if known else math.nan


def test_cohen(tables: Tables) -> None:
    """κ unweighted, linear and quadratic: each pair of raters as scikit-learn and statsmodels have it, several raters
    as the mean over pairs (Light), by label too.
    """
    offenders = Offenders()
    for table, ratings, found in tables:
        labels, own = range(table["labels"]), list(shared(ratings.codes))
        for name, weights in KINDS.items():
            pairs = [
                quiet(cohen_kappa_score, *p.T, labels=labels, weights=weights) if len(p) else math.nan for p in own
            ]
            for pair, ours, theirs in zip(own, found.pairs, pairs, strict=True):
                figure, where = getattr(ours.coefficients, name), f"{table['name']} {name}"
                offenders.same(where, figure, theirs, *NO_VALUE)
                if len(pair):
                    counted = confusion_matrix(*pair.T, labels=labels)
                    stats = quiet(inter_rater.cohens_kappa, counted, wt=weights, return_results=False)
                    offenders.same(where, figure, stats, ONE_LABEL)
            offenders.same(table["name"], getattr(found.overall, name), mean(pairs), *NO_VALUE)
        for k, of_class in enumerate(found.classes):
            binary = [p for p in shared(ratings.one_against_rest(k).codes) if len(p)]
            pairs = [quiet(cohen_kappa_score, *p.T, labels=[0, 1]) for p in binary]
            offenders.same(f"{table['name']} class {k}", of_class.cohen, mean(pairs), *NO_VALUE)
    assert not offenders


def test_fleiss(tables: Tables) -> None:
    """Fleiss' κ as irrCAC has it with missing ratings, and as statsmodels has it without; by label too."""
    offenders = Offenders()
    for table, ratings, found in tables:
        parts = [(found.overall.fleiss, ratings, table["irrCAC"]["fleiss"])]
        parts += [
            (own.fleiss, ratings.one_against_rest(k), table["irrCAC"]["classes"][k]["fleiss"])
            for k, own in enumerate(found.classes)
        ]
        for figure, counted, recorded in parts:
            # 0/0, of which irrCAC makes 1 or an error, depending on rounding
            theirs = math.nan if figure.reason == ONE_LABEL and recorded == 1.0 else number(recorded)
            offenders.same(table["name"], figure, theirs, NO_OVERLAP, ONE_LABEL)
            if counted.codes.size and (counted.codes >= 0).all():
                offenders.same(table["name"], figure, quiet(inter_rater.fleiss_kappa, counted.counts), ONE_LABEL)
    assert not offenders


def alpha(codes: Codes, labels: int, level: str) -> float:
    """Krippendorff's α by the krippendorff package, which needs an item that two raters labeled."""
    if not ((codes >= 0).sum(axis=1) > 1).any():
        return math.nan
    data, domain = np.where(codes < 0, np.nan, codes.astype(float)).T, [float(k) for k in range(labels)]
    return quiet(reference.alpha, reliability_data=data, value_domain=domain, level_of_measurement=level)


def test_krippendorff(tables: Tables) -> None:
    """α nominal and ordinal, and of each label, as the krippendorff package has it."""
    offenders = Offenders()
    for table, ratings, found in tables:
        for level, figure in (("nominal", found.overall.alpha_nominal), ("ordinal", found.overall.alpha_ordinal)):
            offenders.same(table["name"], figure, alpha(ratings.codes, table["labels"], level), *NO_VALUE)
        for k, own in enumerate(found.classes):
            theirs = alpha(ratings.one_against_rest(k).codes, 2, "nominal")
            offenders.same(f"{table['name']} class {k}", own.alpha_nominal, theirs, *NO_VALUE)
    assert not offenders


def test_gwet_and_raw_agreement(tables: Tables) -> None:
    """AC1, over all and by label, and raw agreement as irrCAC has them; where all agree AC1 is 1, though κ has no
    value.
    """
    offenders = Offenders()
    for table, _, found in tables:
        recorded = table["irrCAC"]
        offenders.same(table["name"], found.overall.ac1, number(recorded["ac1"]), NO_OVERLAP)
        offenders.same(table["name"], found.overall.raw, number(recorded["raw"]), NO_OVERLAP)
        for own, theirs in zip(found.classes, recorded["classes"], strict=True):
            offenders.same(f"{table['name']} class {own.label}", own.ac1, number(theirs["ac1"]), NO_OVERLAP)
    assert not offenders


def test_specific_agreement_of_each_label(tables: Tables) -> None:
    """Between raters without missing ratings it is scikit-learn's F1 of the label over all ordered pairs of them."""
    offenders = Offenders()
    for table, ratings, found in tables:
        codes = ratings.codes
        if not codes.size or (codes < 0).any():
            continue
        stacked = np.concatenate([codes[:, list(pair)] for pair in permutations(range(codes.shape[1]), 2)])
        theirs = f1_score(*stacked.T, labels=range(table["labels"]), average=None, zero_division=np.nan)
        for own, value in zip(found.classes, theirs, strict=True):
            offenders.same(f"{table['name']} class {own.label}", own.specific, float(value), NEVER_GIVEN)
    assert not offenders


def test_pairs_of_raters(tables: Tables) -> None:
    """Raw agreement, error, confusion, recall and precision as scikit-learn has them; bias as the difference of the
    means; within one step counted by numpy.
    """
    offenders = Offenders()
    for table, ratings, found in tables:
        name, labels = table["name"], range(table["labels"])
        for own, pair in zip(shared(ratings.codes), found.pairs, strict=True):
            figures = pair.coefficients
            if not len(own):
                assert {f.value for f in (figures.raw, figures.within_one, figures.mae, figures.bias)} == {None}
                continue
            first, second = own.T
            offenders.same(name, figures.raw, accuracy_score(first, second))
            offenders.same(name, figures.mae, mean_absolute_error(first, second))
            offenders.same(name, figures.bias, float(np.mean(second) - np.mean(first)))
            offenders.same(name, figures.within_one, float(np.mean(np.isin(second - first, (-1, 0, 1)))))
            assert pair.confusion == confusion_matrix(first, second, labels=labels).tolist()
            sides = ((pair.recall, recall_score, pair.first), (pair.precision, precision_score, pair.second))
            for ours, theirs, rater in sides:
                values = theirs(first, second, labels=labels, average=None, zero_division=np.nan)
                for label, value in enumerate(values):
                    offenders.same(name, ours[str(label)], float(value), f"{rater} never gave this label")
    assert not offenders


def figures(found: Agreement) -> list[Estimate]:
    parts = [found.overall, *(p.coefficients for p in found.pairs), *found.classes]
    plain = [value for part in parts for _, value in part if isinstance(value, Estimate)]
    return plain + [e for p in found.pairs for e in (*p.recall.values(), *p.precision.values())]


def test_every_table_has_an_answer(tables: Tables) -> None:
    """Of tables with 2 to 5 raters and 2 to 6 labels, complete, with missing ratings and degenerate: null with a
    reason, never NaN; limits enclose their value.
    """
    assert {len(r.raters) for _, r, _ in tables} == {2, 3, 4, 5}
    assert {len(r.labels) for _, r, _ in tables} >= {2, 3, 4, 5, 6}
    assert 4 < sum(bool((r.codes >= 0).all()) for _, r, _ in tables) < len(tables) - 4
    reasons = {figure.reason for _, _, own in tables for figure in figures(own)}
    assert {ONE_LABEL, NO_OVERLAP, "one of the raters used one label only", "a single item has no spread"} <= reasons
    for table, _, found in tables:
        json.dumps(found.model_dump(), allow_nan=False)
        for figure in figures(found):
            if figure.value is None or figure.low is None or figure.high is None:
                assert figure.reason, table["name"]
                assert (figure.low, figure.high) == (None, None), table["name"]
            else:
                assert figure.low <= figure.value <= figure.high, table["name"]
