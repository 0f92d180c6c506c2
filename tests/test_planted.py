"""Intervals cover planted truths: a small version of tests/benchmarks/planted.py, on P1 of the planned library."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import nulls, planted
from benchmarks.planted import Cell, Line, Seen

RATES = Cell("rates", "b-p1", icc=0.2, level=0.9)
GROUPS = Cell("groups", "b-p1", icc=0.5, level=0.8)
CURVES = Cell("curves", "b-p1", icc=0.2, threshold=5.0)


@pytest.fixture(autouse=True)
def _built(dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated messages are modeled on the dataset that the tests build."""
    monkeypatch.setenv("HELMBENCH_DATASET", str(dataset))


def by_figure(cell: Cell, seen: list[Seen]) -> dict[str, Line]:
    return {line.figure: line for line in planted.lines(cell, seen)}


@pytest.mark.soak(short=25, full=160)
def test_intervals_of_rates_cover_the_planted_truth(rounds: int) -> None:
    """Nominally 95 %; an interval that ignores messages covers under 80 %, one that counts only messages almost always.
    The bounds allow for chance in few rounds.
    """
    found = by_figure(RATES, planted.run(RATES, rounds))
    slack = 2 * (0.95 * 0.05 / rounds) ** 0.5
    for figure in ("sensitivity", "specificity", "informedness", "P1-B1", "P1-B3", "composite"):
        assert found[figure].coverage >= 0.915 - slack, (figure, found[figure])
        assert found[figure].coverage <= 0.993 or rounds < 100, (figure, found[figure])
    assert abs(found["sensitivity"].mean - 0.9) < 0.01 + slack / 4


@pytest.mark.soak(short=12, full=40)
def test_groups_are_not_found_where_nothing_is_planted(rounds: int) -> None:
    """Holm's correction holds over all columns together: few seeds name any group."""
    seen = planted.run(GROUPS, rounds)
    assert planted.shares(seen)["any group found"] <= max(0.10, 2 / rounds)
    assert by_figure(GROUPS, seen)["persona"].coverage >= 0.85 - 1 / rounds


@pytest.mark.soak(short=40, full=150)
def test_curves_find_the_planted_threshold(rounds: int) -> None:
    """The fitted threshold is unbiased and its interval covers; a monotone curve has no rung out of order."""
    seen = planted.run(CURVES, rounds)
    line = by_figure(CURVES, seen)["P1-B1 threshold"]
    assert abs(line.mean - line.truth) < 0.3
    assert line.coverage >= 0.88 - 1 / rounds
    assert planted.shares(seen)["P1-B1 inversion"] <= 0.10


@pytest.mark.soak(short=8, full=200)
def test_a_model_compared_with_itself_seldom_loses(rounds: int) -> None:
    """On lite, where many parts have one to three messages; a real loss of 30 points is always found."""
    for model in nulls.MODELS:
        failed = [gate for gate, _ in nulls.pairs("lite", model, rounds, loss=0)]
        assert sum(failed) <= 2 + 0.05 * rounds
    assert all(gate for gate, _ in nulls.pairs("lite", nulls.MODELS[0], 3, loss=30))
