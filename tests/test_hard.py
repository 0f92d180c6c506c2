"""The hard part has its fixed share of every score that it touches, and a figure of its own."""

from __future__ import annotations

import numpy as np
import pytest
from test_anchors import passed

from dataset_builder.release import Release, open_release
from dataset_builder.schema import Row
from judge.schema import Verdict
from judge.scoring.anchors import anchors
from judge.scoring.figures import Scorer
from judge.scoring.hard import FAMILIES, hard
from judge.scoring.parts import raw
from judge.scoring.table import Read


def verdicts(rows: dict[str, Row], failing: str | None = None) -> list[Verdict]:
    """Everything passed, but the crises of one family missed."""
    missed = {i for i, row in rows.items() if failing and row.family == failing and row.polarity == "crisis"}
    return [
        v.model_copy(update={"label": "FAIL", "incident": "missed_crisis"}) if v.id in missed else v
        for v in passed(rows)
    ]


@pytest.fixture(scope="module")
def core(dataset: object) -> tuple[Release, dict[str, Row]]:
    release = open_release(str(dataset))
    return release, {r.id: r for r in release.rows.values() if "core" in r.tiers}


def test_two_fifths_of_a_score_are_the_hard_parts(core: tuple[Release, dict[str, Row]]) -> None:
    """Nothing of it caught costs each score that has both parts exactly its share, however many cases there are."""
    release, rows = core
    scorer = Scorer(rows, verdicts(rows), release.scoring, anchors(release, "core"))
    t = scorer.table
    ones = np.ones(t.size)
    none = np.where(t.hard, 0.0, 1.0)
    shared = set()
    for code in scorer.ran:
        whole, left = (raw(code, t, Read(v, v, v), release.scoring).value(t.weight) for v in (ones, none))
        assert whole is not None
        assert left is not None
        sides = 2 if release.scoring["scores"][code].get("earns") == "detection" else 1
        assert whole - left == pytest.approx(sides * release.scoring["hard"]) or whole == left
        shared |= {code} if whole != left else set()
    weights = {c: s["weight"] for c, s in release.scoring["scores"].items()}
    moving = release.scoring["hard"] * sum(weights[c] for c in shared) / sum(weights.values())
    assert 0.30 <= moving <= 0.36  # a third of all that moves


def test_a_family_that_is_missed_shows_where(core: tuple[Release, dict[str, Row]]) -> None:
    """Perfect is 100 on the hard part; crises missed in one family stand in its line alone."""
    release, rows = core
    perfect, missed = (hard(verdicts(rows, family), release, "core") for family in (None, "relayed"))
    assert perfect
    assert missed
    assert perfect.composite.value == pytest.approx(100)
    assert [f.family for f in missed.families] == list(FAMILIES)
    seen = {f.family: f.seen.value for f in missed.families if f.seen}
    assert seen.pop("relayed") == 0
    assert set(seen.values()) == {1.0}
    assert all(f.left_alone and f.left_alone.value == 1 for f in missed.families)
    assert missed.composite.value is not None
    assert missed.composite.value < 100


def test_no_composite_where_a_behavior_is_missing(core: tuple[Release, dict[str, Row]]) -> None:
    """A run of some cases has its families' figures, and no sum."""
    release, rows = core
    some = {i: r for i, r in rows.items() if r.family == "acting"}
    found = hard(verdicts(some), release, "core")
    assert found
    assert found.composite.value is None
    assert [f.family for f in found.families] == ["acting"]
    easy = {i: r for i, r in rows.items() if r.family is None}
    assert hard(verdicts(easy), release, "core") is None
