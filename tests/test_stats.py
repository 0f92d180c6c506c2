"""The arithmetic of scoring.md section 5, by hand."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from judge.statistics.intervals import (
    Clusters,
    cluster,
    effective,
    influence,
    linear_interval,
    mean,
    pooled_correlation,
    stratified_variance,
    wilson,
)

T_975_1 = 12.706205  # quantiles of Student's t from printed tables: T_<probability>_<degrees of freedom>
T_975_2 = 4.302653
T_975_19 = 2.093024
T_950_19 = 1.729133
T_975_28 = 2.048407


def single(points: list[float], strata: str | None = None) -> Clusters:
    """One row of weight 1 per message; a letter of `strata` per message, all one stratum otherwise."""
    n = len(points)
    return cluster(np.array(points), np.ones(n), np.arange(n).astype(str), np.array(list(strata or "a" * n)))


def test_rows_of_a_message_are_summed() -> None:
    """Message x has rows of weight 1 and 3, message y one of weight 2."""
    c = cluster(
        np.array([1.0, 0.0, 0.5]), np.array([1.0, 2.0, 3.0]), np.array(["x", "y", "x"]), np.array(["s", "t", "s"])
    )
    assert c.message.tolist() == ["x", "y"]
    assert c.num.tolist() == [1 * 1.0 + 3 * 0.5, 2 * 0.0]
    assert c.den.tolist() == [1 + 3, 2]
    assert c.square.tolist() == [1 + 9, 4]
    assert c.stratum.tolist() == ["s", "t"]


def test_the_mean_is_weighted() -> None:
    """(3·1 + 1·0 + 2·0.5) / (3 + 1 + 2); None, not 0, where nothing was measured."""
    assert mean(single([])) is None
    c = cluster(np.array([1.0, 0.0, 0.5]), np.array([3.0, 1.0, 2.0]), np.array(["x", "y", "z"]), np.array(["s"] * 3))
    assert mean(c) == pytest.approx((3 + 0 + 1) / 6)
    assert effective(c) == pytest.approx(6**2 / (9 + 1 + 4))
    assert influence(c) == pytest.approx([(3 - 3 * 4 / 6) / 6, (0 - 1 * 4 / 6) / 6, (1 - 2 * 4 / 6) / 6])


@pytest.mark.parametrize(
    ("z", "strata", "variance", "df"),
    [
        ([1, -1], "aa", 2 / 1 * (1 + 1), 1),
        ([1, 2, 3], "aaa", 3 / 2 * (1 + 0 + 1), 2),
        ([1, -1, 5, 9], "aabb", 2 / 1 * (1 + 1) + 2 / 1 * (4 + 4), 2),
        ([1, 5], "ab", 2 / 1 * (4 + 4), 1),  # two strata of one share one
        ([0, 2, 7, 1], "aabc", 2 / 1 * (1 + 1) + 2 / 1 * (9 + 9), 2),  # b and c share one, a keeps its own
        ([0, 2, 7], "aab", 3 / 2 * (9 + 1 + 16), 2),  # b alone joins a: mean 3
        ([7, 0, 2], "baa", 3 / 2 * (16 + 9 + 1), 2),
        ([4], "a", 0, 0),
    ],
)
def test_the_variance_is_summed_over_strata_and_lonely_messages_share_one(
    z: list[float], strata: str, variance: float, df: int
) -> None:
    """Σ n/(n−1) Σ(z − z̄)² with df Σ(n − 1); a stratum of one message never counts as certain."""
    found = stratified_variance(np.array(z, dtype=float), np.array(list(strata)))
    assert found == (pytest.approx(variance), df)


def test_wilson_at_a_design_effect_of_one() -> None:
    """20 equal messages, half right: ½ ± t/(1 + t²/n)·√(¼/n + t²/4n²) with t(18 + 10); two pure strata leave n as it
    is.
    """
    p, low, high = wilson(single([1.0] * 10 + [0.0] * 10, "a" * 10 + "b" * 10), 1.0, 10)
    half = T_975_28 / (1 + T_975_28**2 / 20) * sqrt(0.25 / 20 + T_975_28**2 / (4 * 20**2))
    assert half == pytest.approx(0.2082, abs=5e-5)
    assert (p, low, high) == (0.5, pytest.approx(0.5 - half, abs=1e-6), pytest.approx(0.5 + half, abs=1e-6))


@pytest.mark.parametrize(
    ("points", "low", "high"), [(1.0, 10 / (10 + T_975_19**2), 1.0), (0.0, 0.0, T_975_19**2 / (10 + T_975_19**2))]
)
def test_all_right_and_all_wrong_still_have_a_width(points: float, low: float, high: float) -> None:
    """At p = 1 the lower limit is n/(n + t²) with t(9 + 10) = 2.093: ten of ten is 0.695 to 1, never certain."""
    assert wilson(single([points] * 10), 1.0, 10) == (
        points,
        pytest.approx(low, abs=1e-6),
        pytest.approx(high, abs=1e-6),
    )


def test_how_alike_samples_are_widens_what_says_nothing_of_its_own() -> None:
    """Ten messages of four rows, all passed: with rows alike by ρ they count as 40/(1 + 3ρ), with nothing known as ten
    messages.
    """
    square = T_975_19**2
    forty = cluster(np.ones(40), np.ones(40), np.repeat(np.arange(10).astype(str), 4), np.array(["a"] * 40))
    for alike, n in ((0.0, 40.0), (1 / 3, 20.0), (1.0, 10.0), (None, 10.0)):
        assert wilson(forty, alike, 10)[1] == pytest.approx(n / (n + square), abs=1e-6)


def test_one_sided_limits_are_the_ends_of_a_narrower_interval() -> None:
    """Floors read a 90 % interval: t(.95, 19) = 1.729."""
    assert wilson(single([1.0] * 10), 1.0, 10, confidence=0.9)[1] == pytest.approx(10 / (10 + T_950_19**2), abs=1e-6)


def test_rows_of_one_message_are_no_more_messages() -> None:
    """Two messages under ten conditions each, which agree, are as wide as two rows while nothing is known of other
    messages.
    """
    twenty = cluster(np.array([1.0] * 10 + [0.0] * 10), np.ones(20), np.repeat(["x", "y"], 10), np.array(["s"] * 20))
    assert wilson(twenty, None, 10) == pytest.approx(wilson(single([1.0, 0.0]), None, 10))


@pytest.mark.parametrize(("points", "value"), [([], None), ([1.0], 1.0)])
def test_under_two_messages_there_are_no_limits(points: list[float], value: float | None) -> None:
    """One message says nothing about the next."""
    assert wilson(single(points), 1.0, 10) == (value, None, None)


def test_how_alike_samples_are_is_read_off_the_variance() -> None:
    """Two messages of two rows, all right and all wrong: the variance is 2·(¼² + ¼²) = ¼, of independent rows ¼/4, and
    of rows that agree twice that: more than agreement explains, so 1. Rows that differ within messages give 0; pure
    groups, and messages of one row, say nothing.
    """

    def pairs(*points: float) -> Clusters:
        names = np.repeat(np.arange(len(points) // 2), 2)
        return cluster(np.array(points), np.ones(len(points)), names, np.zeros(len(points), dtype=np.int64))

    assert pooled_correlation([pairs(1, 1, 0, 0)]) == 1.0
    assert pooled_correlation([pairs(1, 0, 1, 0)]) == 0.0
    four = pairs(1, 1, 1, 0, 1, 0, 0, 0)  # SE² = 4/3 · 2·(½/4)², independent ¼/8, agreeing ¼/4
    assert pooled_correlation([four]) == pytest.approx((4 / 3 * 2 * (1 / 8) ** 2 - 1 / 32) / (1 / 16 - 1 / 32))
    assert pooled_correlation([pairs(1, 1, 1, 1), single([1.0, 0.0])]) is None


def test_a_linear_figure_has_a_t_interval() -> None:
    """Influences ±1: variance 4, df 1, so ± 12.706·2; 1, 2, 3: variance 3, df 2, so ± 4.303·√3."""
    assert linear_interval(10.0, np.array([1.0, -1.0]), np.array(["a", "a"])) == (
        10.0,
        pytest.approx(10 - 2 * T_975_1, abs=1e-4),
        pytest.approx(10 + 2 * T_975_1, abs=1e-4),
    )
    assert linear_interval(0.0, np.array([1.0, 2.0, 3.0]), np.array(["a"] * 3))[2] == pytest.approx(
        T_975_2 * sqrt(3), abs=1e-5
    )
    assert linear_interval(10.0, np.array([1.0]), np.array(["a"])) == (10.0, None, None)
