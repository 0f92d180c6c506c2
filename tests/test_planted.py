"""Intervals hold where the truth is planted: a small version of tests/benchmarks/planted.py, on P1 of the planned
library.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import planted
from benchmarks.planted import Cell, Line, Seen

RATES = Cell("rates", "b-p1", icc=0.2, level=0.9)
GROUPS = Cell("groups", "b-p1", icc=0.5, level=0.8)
CURVES = Cell("curves", "b-p1", icc=0.2, threshold=5.0)


@pytest.fixture(autouse=True)
def _built(dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulated messages are patterned on the dataset that the tests build."""
    monkeypatch.setenv("HELMBENCH_DATASET", str(dataset))


def by_figure(cell: Cell, seen: list[Seen]) -> dict[str, Line]:
    return {line.figure: line for line in planted.lines(cell, seen)}


def test_intervals_of_rates_cover_the_planted_truth() -> None:
    """Nominally 95 %; an interval that ignores messages covers under 80 %, one that counts only messages nearly
    always.
    """
    found = by_figure(RATES, planted.run(RATES, 160))
    for figure in ("sensitivity", "specificity", "informedness", "P1-B1", "P1-B3", "composite"):
        assert 0.88 <= found[figure].coverage <= 0.993, (figure, found[figure])
    assert 0.90 <= found["sensitivity"].coverage <= 0.99
    assert abs(found["sensitivity"].mean - 0.9) < 0.01


def test_groups_are_not_found_where_nothing_is_planted() -> None:
    """Holm's correction holds over all columns together: at most a few seeds in a hundred name any group."""
    seen = planted.run(GROUPS, 40)
    assert planted.shares(seen)["any group found"] <= 0.10
    assert by_figure(GROUPS, seen)["persona"].coverage >= 0.85


def test_curves_find_the_planted_threshold() -> None:
    """The fitted threshold is unbiased and its interval covers; a monotone curve has no rung out of order."""
    seen = planted.run(CURVES, 150)
    line = by_figure(CURVES, seen)["P1-B1 threshold"]
    assert abs(line.mean - line.truth) < 0.3
    assert 0.88 <= line.coverage <= 0.993
    assert planted.shares(seen)["P1-B1 inversion"] <= 0.10
