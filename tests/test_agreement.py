"""Agreement: published worked examples, errors and intervals, tables that leave little to say; other libraries stand in
test_agreement_libraries.py.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from judge.statistics import coefficients as c
from judge.statistics.agreement import Agreement, Ratings, agreement
from judge.statistics.coefficients import Array, Codes, Statistic
from judge.statistics.estimate import Estimate

# Fleiss 1971, table 1: 30 patients, 6 psychiatrists each; depression, personality disorder, schizophrenia, neurosis,
# other.
FLEISS = """00060 03003 01401 00006 03030 20400 00402 20310 20040 00006 10050 11040 03300 10050 02031
            00501 30012 51000 02040 10203 00006 01050 02013 20040 10041 05010 40002 02040 10500 00006"""
# Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", the example with missing data: observers A to D, 12
# units.
OBSERVERS = ("123321412...", "1233224125.3", ".3332342251.", "12332441251.")
# Gwet's table of two abstractors and 100 emergency visits, in the vignette of his R package irrCAC, with the figures
# asserted below.
ABSTRACTORS = [[13, 0, 0], [0, 20, 7], [0, 4, 56]]


def error(s: Statistic) -> float:
    return float(np.sqrt(np.sum(s.influence**2)))


def counted(rows: str) -> Array:
    return np.array([[int(n) for n in row] for row in rows.split()], dtype=np.float64)


def observed() -> Ratings:
    codes = np.array([[-1 if mark == "." else int(mark) - 1 for mark in row] for row in OBSERVERS]).T
    return Ratings(codes, ("1", "2", "3", "4", "5"), ("A", "B", "C", "D"), ordered=True)


def from_table(table: list[list[int]]) -> tuple[Codes, Codes]:
    cells = [(i, k) for i, row in enumerate(table) for k, n in enumerate(row) for _ in range(n)]
    first, second = np.array(cells, dtype=np.int64).T
    return first, second


def drawn(seed: int, items: int = 60, raters: int = 3, labels: int = 4, missing: float = 0.2) -> Codes:
    """Raters who see the same and slip now and then, some by one step, some at random."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, labels, (items, 1))
    said = np.clip(truth + rng.choice([-1, 0, 0, 0, 1], (items, raters)), 0, labels - 1)
    said = np.where(rng.random((items, raters)) < 0.15, rng.integers(0, labels, (items, raters)), said)
    codes: Codes = np.where(rng.random((items, raters)) < missing, -1, said)
    return codes


def rated(codes: Codes, labels: int = 4, ordered: bool = True) -> Ratings:
    return Ratings(codes, tuple(f"l{n}" for n in range(labels)), tuple(f"r{n}" for n in range(codes.shape[1])), ordered)


def test_fleiss_1971() -> None:
    """κ 0.430 over all and 0.245, 0.245, 0.520, 0.471, 0.566 by category (tables 1 and 2)."""
    table = counted(FLEISS)
    assert table.sum(axis=0).tolist() == [26, 26, 30, 55, 43]
    assert c.fleiss(table).value == pytest.approx(0.430, abs=5e-4)
    own = [c.fleiss(np.stack([6 - table[:, k], table[:, k]], axis=1)).value for k in range(5)]
    assert own == pytest.approx([0.245, 0.245, 0.520, 0.471, 0.566], abs=6e-4)


def test_krippendorff_2011() -> None:
    """α 0.743 nominal and 0.815 ordinal for four observers with missing data."""
    found = agreement(observed()).overall
    assert found.alpha_nominal.value == pytest.approx(0.743, abs=5e-4)
    assert found.alpha_ordinal.value == pytest.approx(0.815, abs=5e-4)
    assert found.alpha_nominal.n == 11  # the twelfth unit has one rating


def test_gwet_on_the_same_observers() -> None:
    """Agreement 0.8181818, Fleiss' κ 0.76117, AC1 0.77544 (Gwet's irrCAC vignette, cac.raw4raters)."""
    found = agreement(observed()).overall
    assert found.raw.value == pytest.approx(0.8181818)
    assert found.fleiss.value == pytest.approx(0.76117, abs=5e-6)
    assert found.ac1.value == pytest.approx(0.77544, abs=5e-6)


def test_gwet_on_two_abstractors() -> None:
    """κ 0.7964094 with SE 0.05891072; AC1 0.8493305 with SE 0.0432175, there with n where Gwet 2008 has n − 1 (irrCAC,
    cont3x3abstractors).
    """
    first, second = from_table(ABSTRACTORS)
    kappa = c.cohen(first, second, np.eye(3))
    assert kappa.value == pytest.approx(0.7964094, abs=5e-8)
    assert error(kappa) == pytest.approx(0.05891072, abs=5e-8)
    ac1 = c.gwet_ac1(Ratings(np.stack([first, second], axis=1), ("a", "b", "c"), ("x", "y")).counts)
    assert ac1.value == pytest.approx(0.8493305, abs=5e-8)
    assert error(ac1) * math.sqrt(99 / 100) == pytest.approx(0.0432175, abs=5e-8)


def test_cohen_1968() -> None:
    """κ 0.492 and weighted κ 0.348, 200 patients, disagreements weighing 0 to 6."""
    first, second = from_table([[88, 14, 18], [10, 40, 10], [2, 6, 12]])
    assert c.cohen(first, second, np.eye(3)).value == pytest.approx((0.70 - 0.41) / 0.59)
    assert c.cohen(first, second, np.eye(3)).value == pytest.approx(0.492, abs=5e-4)
    apart = np.array([[0, 1, 3], [1, 0, 6], [3, 6, 0]])
    assert c.cohen(first, second, 1 - apart / 6).value == pytest.approx(1 - 0.90 / 1.38)
    assert c.cohen(first, second, 1 - apart / 6).value == pytest.approx(0.348, abs=5e-4)


def test_high_agreement_with_low_kappa() -> None:
    """The paradox that AC1 answers: 118, 5, 2 and 0 of 125: agreement 0.944, κ below 0, AC1 (0.944 − 2·0.972·0.028) /
    (1 − 2·0.972·0.028).
    """
    first, second = from_table([[118, 5], [2, 0]])
    found = agreement(rated(np.stack([first, second], axis=1), 2)).overall
    assert found.raw.value == pytest.approx(0.944)
    assert found.cohen.value == pytest.approx(-0.0234, abs=5e-5)
    assert found.ac1.value == pytest.approx((0.944 - 2 * 0.972 * 0.028) / (1 - 2 * 0.972 * 0.028))


@pytest.mark.parametrize(
    "coefficient",
    [
        c.fleiss,
        c.gwet_ac1,
        c.krippendorff,
        lambda counts: c.krippendorff(counts, ordinal=True),
        lambda counts: c.specific(counts, 1),
    ],
    ids=["fleiss", "ac1", "alpha", "ordinal alpha", "specific"],
)
def test_errors_equal_the_jackknife(coefficient: Callable[[Array], Statistic]) -> None:
    """The delta method's error is that of leaving out one item after the other, within 3 % at 400 items."""
    counts = rated(drawn(5, items=400)).counts
    counts = counts[counts.sum(axis=1) > 1]
    values = np.array([coefficient(np.delete(counts, n, axis=0)).value for n in range(len(counts))])
    jackknife = np.sqrt((len(values) - 1) / len(values) * np.sum((values - values.mean()) ** 2))
    assert error(coefficient(counts)) == pytest.approx(jackknife, rel=0.03)


def test_error_of_the_mean_over_pairs_equals_the_jackknife() -> None:
    """Cohen's κ of three raters is the mean of three pairs that share raters and items."""
    ratings = rated(drawn(8, items=300, missing=0.1))
    half = _half_width(agreement(ratings).overall.cohen)
    values = np.array(
        [agreement(rated(np.delete(ratings.codes, n, axis=0))).overall.cohen.value for n in range(0, 300, 3)],
        dtype=float,
    )
    jackknife = np.sqrt(3 * np.sum((values - values.mean()) ** 2))
    assert half == pytest.approx(1.97 * jackknife, rel=0.2)


def _half_width(figure: Estimate) -> float:
    assert figure.low is not None
    assert figure.high is not None
    return (figure.high - figure.low) / 2


def test_intervals_hold_at_the_size_of_a_criterion() -> None:
    """At 26 items two raters' true coefficients lie in 90 % or more of the intervals; the truth is that of a very large
    table.
    """
    truth = _all(drawn(0, items=100_000, raters=2, labels=3, missing=0))
    tables = [_all(drawn(seed, items=26, raters=2, labels=3, missing=0)) for seed in range(1, 401)]
    for name, s in truth.items():
        assert s.value is not None
        held = [
            e.low <= s.value <= e.high
            for e in (c.estimate(t[name]) for t in tables)
            if e.low is not None and e.high is not None
        ]
        assert len(held) > 390
        assert 0.90 < np.mean(held) < 0.995, name


def _all(codes: Codes) -> dict[str, Statistic]:
    counts = rated(codes, 3).counts
    kappas = {
        kind: c.cohen(codes[:, 0], codes[:, 1], c.agreement_weights(3, kind))
        for kind in ("identity", "linear", "quadratic")
    }
    return {
        **kappas,
        "fleiss": c.fleiss(counts),
        "ac1": c.gwet_ac1(counts),
        "alpha": c.krippendorff(counts),
        "ordinal": c.krippendorff(counts, ordinal=True),
    }


def test_wilson_equals_a_worked_one() -> None:
    """0 of 10: upper limit z²/(n + z²) = 3.8415/13.8415."""
    assert c.wilson(0.0, 10) == pytest.approx((0.0, 0.0, 3.841459 / 13.841459), abs=1e-6)


def test_steps_and_signs() -> None:
    """Within one, mean absolute error and bias count steps of the scale; the bias is the second's less the first's."""
    found = agreement(rated(np.array([[0, 0], [0, 1], [2, 0], [3, 2], [1, -1]])))
    assert found.overall.within_one.value == 3 / 4
    assert found.overall.mae.value == (0 + 1 + 2 + 1) / 4
    assert found.overall.bias.value == (0 + 1 - 2 - 1) / 4
    assert (found.items, found.shared) == (5, 4)
    assert found.pairs[0].confusion == [[1, 1, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0]]


def test_a_pooled_figure_hides_a_class() -> None:
    """Raters who agree on everything but one rare class: the class's own figures show it."""
    codes = np.array([[0, 0]] * 50 + [[1, 1]] * 40 + [[2, 0]] * 3 + [[0, 2]] * 3)
    found = agreement(rated(codes, 3))
    assert (found.overall.cohen.value or 0) > 0.8
    rare = found.classes[2]
    assert rare.specific.value == 0
    assert (rare.cohen.value or 0) < 0
    assert rare.given == {"r0": 3, "r1": 3}
    assert found.pairs[0].recall["l0"].value == 50 / 53
    assert found.pairs[0].recall["l2"].value == 0


def test_perfect_agreement_is_no_certainty() -> None:
    """Where all agree the delta method would give [1, 1]; the lower limit is Wilson's, with agreement by chance held
    fixed.
    """
    figure = agreement(rated(np.array([[0, 0], [1, 1]] * 12), 2)).overall.cohen
    low = c.wilson(1.0, 24)[1]
    assert (figure.value, figure.high, figure.interval) == (1.0, 1.0, "wilson")
    assert figure.low == pytest.approx((low - 0.5) / 0.5)


EMPTY = np.zeros((0, 2), dtype=np.int64)
DEGENERATE = {
    "no items": EMPTY,
    "no overlap": np.array([[0, -1], [-1, 1]]),
    "one item": np.array([[0, 1]]),
    "one item, the same": np.array([[1, 1]]),
    "one class only": np.array([[1, 1]] * 6),
    "constant rater": np.array([[0, 1], [0, 0], [0, 2], [0, 1]]),
    "two constants": np.array([[0, 2]] * 5),
    "nobody at all": np.full((4, 3), -1),
    "one of three": np.array([[0, 0, -1], [1, 1, -1], [0, 1, -1]]),
}


@pytest.mark.parametrize("labels", [3, 5])
@pytest.mark.parametrize("codes", DEGENERATE.values(), ids=DEGENERATE)
def test_every_table_has_an_answer(codes: Codes, labels: int) -> None:
    """Null with a reason, never NaN: the JSON is strict, and limits stand around their value."""
    found = agreement(rated(codes, labels))
    assert Agreement.model_validate_json(found.model_dump_json()) == found
    json.dumps(found.model_dump(), allow_nan=False)
    for figure in figures(found):
        if figure.value is None:
            assert figure.reason
            assert (figure.low, figure.high) == (None, None)
        elif figure.low is None or figure.high is None:
            assert figure.reason
        else:
            assert figure.low <= figure.value <= figure.high


def figures(found: Agreement) -> list[Estimate]:
    parts = [found.overall, *(p.coefficients for p in found.pairs), *found.classes]
    plain = [value for part in parts for _, value in part if isinstance(value, Estimate)]
    return plain + [e for p in found.pairs for e in (*p.recall.values(), *p.precision.values())]


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("no overlap", None, "no item in common"),
        ("one class only", None, "by chance is certain"),
        ("constant rater", 0.0, "one label only"),
        ("one item", 0.0, "one label only"),
    ],
)
def test_degenerate_kappa(name: str, value: float | None, reason: str) -> None:
    """What the documentation promises for Cohen's κ, as scikit-learn has it where that has a value."""
    figure = agreement(rated(DEGENERATE[name], 3)).overall.cohen
    assert figure.value == value
    assert reason in (figure.reason or "")
    if value is not None:
        assert cohen_kappa_score(*DEGENERATE[name].T) == value


def test_labels_without_order_have_no_steps() -> None:
    """Free categories: weighted and ordinal figures are null and say why."""
    found = agreement(rated(drawn(1, raters=2), ordered=False)).overall
    for figure in (
        found.cohen_linear,
        found.cohen_quadratic,
        found.alpha_ordinal,
        found.within_one,
        found.mae,
        found.bias,
    ):
        assert (figure.value, figure.reason) == (None, "the labels have no order")
    assert found.cohen.value is not None


@pytest.mark.parametrize(
    ("codes", "labels", "raters", "what"),
    [
        (np.zeros((3, 2), dtype=np.int64), ("a",), ("x",), "shape"),
        (np.zeros((3, 1), dtype=np.int64), ("a",), ("x",), "two or more"),
        (np.zeros((3, 2), dtype=np.int64), ("a",), ("x", "x"), "each named once"),
        (np.zeros((3, 2), dtype=np.int64), ("a", "a"), ("x", "y"), "each once"),
        (np.full((3, 2), 2), ("a", "b"), ("x", "y"), "codes run from 2 to 2"),
        (np.full((3, 2), -2), ("a", "b"), ("x", "y"), "codes run from -2"),
    ],
)
def test_ratings_that_contradict_themselves(
    codes: Codes, labels: tuple[str, ...], raters: tuple[str, ...], what: str
) -> None:
    """Codes, labels and raters must fit."""
    with pytest.raises(ValueError, match=what):
        Ratings(codes, labels, raters)
