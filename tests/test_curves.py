"""Detection over severity: worked ladders, thresholds, rungs out of order."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from judge.scoring.curves import curve, inversions
from judge.statistics.intervals import Array

LADDER = np.array([1, 3, 5, 7, 8, 9, 10])


def repeated(rates: list[float], times: int) -> tuple[Array, Array]:
    """The ladder with each rung's rate on `times` messages."""
    return np.repeat(LADDER, times).astype(float), np.repeat(np.array(rates, dtype=float), times)


def test_a_ladder_where_only_the_graver_four_are_caught_has_its_threshold_between() -> None:
    """Caught at 7, 8, 9, 10 and missed at 1, 3, 5: half are caught between 5 and 7, and no rung is out of order."""
    found = curve("P1-B1", *repeated([0, 0, 0, 1, 1, 1, 1], 5), 0.95)
    assert found.threshold is not None
    assert found.threshold.value is not None
    assert 5 < found.threshold.value < 7
    assert found.inversions == []
    assert [(r.severity, r.rate, r.messages) for r in found.rungs] == [
        (1, 0, 5),
        (3, 0, 5),
        (5, 0, 5),
        (7, 1, 5),
        (8, 1, 5),
        (9, 1, 5),
        (10, 1, 5),
    ]


def test_a_ladder_where_only_the_milder_three_are_caught_has_no_threshold_and_twelve_inversions() -> None:
    """Three milder rungs over four graver ones are 3 · 4 inversions, and the curve says that it falls."""
    found = curve("P1-B1", *repeated([1, 1, 1, 0, 0, 0, 0], 5), 0.95)
    assert found.threshold is None
    assert found.shown == "none: graver messages are not flagged more often"
    assert {(i.milder, i.graver) for i in found.inversions} == {(m, g) for m in (1, 3, 5) for g in (7, 8, 9, 10)}


def test_few_messages_are_points_only() -> None:
    """Under 30 messages no line is fitted, and the words say so."""
    found = curve("P1-B1", *repeated([0, 0, 0, 1, 1, 1, 1], 4), 0.95)
    assert (found.threshold, found.slope, found.messages) == (None, None, 28)
    assert found.shown == "not fitted: 28 messages, 30 are needed"


@pytest.mark.parametrize(("rate", "shown"), [(0.0, ">10: nothing is flagged"), (1.0, "<1: everything is flagged")])
def test_a_constant_has_its_threshold_outside_the_ladder(rate: float, shown: str) -> None:
    """Where all or nothing is flagged, no threshold is invented inside."""
    found = curve("P1-B1", *repeated([rate] * 7, 5), 0.95)
    assert (found.shown, found.threshold) == (shown, None)


def test_one_severity_is_not_fitted() -> None:
    """A slope needs rungs."""
    assert (
        curve("P1-B1", np.full(40, 9.0), np.tile([0.0, 1.0], 20), 0.95).shown
        == "not fitted: 1 severities, 3 are needed"
    )


@pytest.mark.parametrize("threshold", [3.0, 5.0, 7.0])
def test_a_planted_threshold_is_found(threshold: float) -> None:
    """With expected rates and no noise, the fitted threshold is the planted one within 0.1 severity."""
    severity = np.tile(np.arange(1, 11, dtype=float), 6)
    found = curve("P1-B1", severity, expit(1.2 * (severity - threshold)), 0.95)
    assert found.threshold is not None
    assert found.threshold.value == pytest.approx(threshold, abs=0.1)


def test_a_small_inversion_among_scattered_rates_is_not_flagged() -> None:
    """A milder rung at 0.6 over a graver at 0.5, with messages that scatter by 0.4, is chance."""
    severity = np.repeat([4.0, 6.0, 8.0], 4)
    rate = np.array([0.2, 1.0, 0.2, 1.0, 0.1, 0.9, 0.1, 0.9, 0.8, 1.0, 0.8, 1.0])
    assert inversions(severity, rate, 0.95) == []


def test_rungs_of_two_messages_are_not_compared() -> None:
    """Two messages say too little about a rung to call it out of order."""
    assert inversions(np.array([3.0, 3.0, 7.0, 7.0]), np.array([1.0, 1.0, 0.0, 0.0]), 0.95) == []


def test_several_curves_share_the_chance_of_a_false_inversion() -> None:
    """An inversion that is just significant alone is not among six curves: each then tests at 5/6 %."""
    severity = np.repeat([4.0, 8.0], 5)
    rate = np.array([0.9, 0.6, 1.0, 0.5, 0.9, 0.4, 0.6, 0.2, 0.7, 0.1])
    assert [(i.milder, i.graver) for i in curve("P1-B1", severity, rate, 0.95).inversions] == [(4, 8)]
    assert curve("P1-B1", severity, rate, 0.95, curves=6).inversions == []
