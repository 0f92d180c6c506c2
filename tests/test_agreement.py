"""Agreement: published worked examples and intervals; test_agreement_libraries.py compares with other libraries."""

from __future__ import annotations

import numpy as np
import pytest

from judge.statistics import coefficients as c
from judge.statistics.agreement import Readings, agreement
from judge.statistics.coefficients import Array, Codes, Coefficient

# Fleiss 1971, table 1: 30 patients, 6 psychiatrists each; depression, personality disorder, schizophrenia, neurosis,
# other.
FLEISS = """00060 03003 01401 00006 03030 20400 00402 20310 20040 00006 10050 11040 03300 10050 02031
            00501 30012 51000 02040 10203 00006 01050 02013 20040 10041 05010 40002 02040 10500 00006"""
# Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", the example with missing data: observers A to D, 12
# units.
OBSERVERS = ("123321412...", "1233224125.3", ".3332342251.", "12332441251.")
# Gwet's table of two abstractors and 100 emergency visits, in the vignette of his R package irrCAC.
ABSTRACTORS = [[13, 0, 0], [0, 20, 7], [0, 4, 56]]


def rated(codes: Codes, labels: int = 4, ordered: bool = True) -> Readings:
    return Readings(
        codes, tuple(f"l{n}" for n in range(labels)), tuple(f"r{n}" for n in range(codes.shape[1])), ordered
    )


def from_table(table: list[list[int]]) -> Codes:
    cells = [(i, k) for i, row in enumerate(table) for k, n in enumerate(row) for _ in range(n)]
    return np.array(cells, dtype=np.int64)


def drawn(seed: int, items: int = 60, raters: int = 3, labels: int = 4, missing: float = 0.2) -> Codes:
    """Raters who see the same and slip now and then, some by one step, some at random."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, labels, (items, 1))
    said = np.clip(truth + rng.choice([-1, 0, 0, 0, 1], (items, raters)), 0, labels - 1)
    said = np.where(rng.random((items, raters)) < 0.15, rng.integers(0, labels, (items, raters)), said)
    codes: Codes = np.where(rng.random((items, raters)) < missing, -1, said)
    return codes


def coefficients_of(codes: Codes, labels: int, clusters: Codes | None = None) -> dict[str, Coefficient]:
    counts, (first, second) = rated(codes, labels).counts, codes.T[:2]
    return {
        **{f"cohen {k}": c.cohen(first, second, c.weights_of(labels, k), clusters) for k in ("identity", "quadratic")},
        "fleiss": c.fleiss(counts, clusters),
        "ac1": c.gwet_ac1(counts, clusters),
        "alpha": c.krippendorff(counts, clusters),
        "ordinal alpha": c.krippendorff(counts, clusters, ordinal=True),
        "specific": c.specific(counts, 1, clusters),
    }


def error(found: Coefficient) -> float:
    return float(np.sqrt(found.used.mean() * np.sum((found.values[1:] - found.values[0]) ** 2)))


def test_published_examples() -> None:
    """Fleiss 1971 (κ 0.430), Krippendorff 2011 (α 0.743 nominal, 0.815 ordinal), Gwet's irrCAC vignette, Cohen 1968."""
    table: Array = np.array([[int(n) for n in row] for row in FLEISS.split()], dtype=np.float64)
    assert c.fleiss(table).value == pytest.approx(0.430, abs=5e-4)
    own = [c.fleiss(np.stack([6 - table[:, k], table[:, k]], axis=1)).value for k in range(5)]
    assert own == pytest.approx([0.245, 0.245, 0.520, 0.471, 0.566], abs=6e-4)

    codes = np.array([[-1 if mark == "." else int(mark) - 1 for mark in row] for row in OBSERVERS]).T
    found = agreement(rated(codes, 5)).overall
    assert found.alpha_nominal.value == pytest.approx(0.743, abs=5e-4)
    assert found.alpha_ordinal.value == pytest.approx(0.815, abs=5e-4)
    assert found.alpha_nominal.n == 11  # the twelfth unit has one rating
    assert found.raw.value == pytest.approx(0.8181818)
    assert found.fleiss.value == pytest.approx(0.76117, abs=5e-6)
    assert found.ac1.value == pytest.approx(0.77544, abs=5e-6)

    found = agreement(rated(from_table(ABSTRACTORS), 3)).overall
    assert found.cohen.value == pytest.approx(0.7964094, abs=5e-8)
    assert found.ac1.value == pytest.approx(0.8493305, abs=5e-8)

    first, second = from_table([[88, 14, 18], [10, 40, 10], [2, 6, 12]]).T
    apart = np.array([[0, 1, 3], [1, 0, 6], [3, 6, 0]])
    assert c.cohen(first, second, np.eye(3)).value == pytest.approx((0.70 - 0.41) / 0.59)
    assert c.cohen(first, second, 1 - apart / 6).value == pytest.approx(1 - 0.90 / 1.38)


def test_errors_agree_with_published_formulas() -> None:
    """Gwet's abstractors: the SE of κ (Fleiss, Cohen & Everitt) and of AC1, within 4 % at 100 items."""
    codes = from_table(ABSTRACTORS)
    found = coefficients_of(codes, 3)
    assert error(found["cohen identity"]) == pytest.approx(0.05891072, rel=0.04)
    assert error(found["ac1"]) == pytest.approx(0.0432175, rel=0.04)


def test_values_without_each_cluster_are_recomputed_values() -> None:
    """Leaving a cluster out of the sums equals computing the coefficient without its items."""
    codes, clusters = drawn(5, items=40), np.repeat(np.arange(10), 4)
    for name, found in coefficients_of(codes, 4, clusters).items():
        if name == "specific":
            continue  # only of the clusters with the label
        own = [coefficients_of(codes[clusters != k], 4)[name].value for k in range(10)]
        assert found.values[1:] == pytest.approx(own, abs=1e-12), name
        assert found.value == pytest.approx(coefficients_of(codes, 4)[name].value), name
        assert found.used.sum() == 10


def test_intervals_hold_at_the_size_of_a_criterion() -> None:
    """At 26 items two raters' true coefficients lie in 90 % or more of the intervals; the truth is that of a very large
    table.
    """
    truth = coefficients_of(drawn(0, items=20_000, raters=2, labels=3, missing=0), 3)
    samples = [coefficients_of(drawn(seed, items=26, raters=2, labels=3, missing=0), 3) for seed in range(1, 201)]
    for name, true in truth.items():
        value = true.value or 0.0
        limits = [c.estimate(sample[name], 0.0 if name == "specific" else -1.0) for sample in samples]
        held = [e.low <= value <= e.high for e in limits if e.low is not None and e.high is not None]
        assert len(held) > 190, name
        assert 0.90 < np.mean(held) <= 1, name


def test_perfect_agreement_is_not_certainty() -> None:
    """Where all agree a jackknife would give [1, 1]; the lower limit is Wilson's, with chance agreement held fixed."""
    figure = agreement(rated(np.array([[0, 0], [1, 1]] * 12), 2)).overall.cohen
    assert (figure.value, figure.high, figure.interval) == (1.0, 1.0, "wilson")
    assert figure.low == pytest.approx((c.wilson(1.0, 24)[0] - 0.5) / 0.5)


def test_labels_without_order_have_no_steps() -> None:
    """Free categories: weighted and ordinal figures are null and say why."""
    found = agreement(rated(drawn(1, raters=2), ordered=False)).overall
    for name in ("cohen_linear", "cohen_quadratic", "alpha_ordinal", "within_one", "mae", "bias"):
        assert (getattr(found, name).value, getattr(found, name).reason) == (None, "the labels have no order")
    assert found.cohen.value is not None
