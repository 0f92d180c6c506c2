"""The hard part has a fixed share of every score it affects, and figures of its own."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from support.scores import scorer, verdict, verdicts

from dataset_builder.release import Release
from dataset_builder.schema import Row
from judge import schema
from judge.scoring.anchors import anchors
from judge.scoring.parts import raw
from judge.scoring.scorecard import FAMILIES, hard
from judge.scoring.table import Read


@pytest.fixture
def core(release: Release) -> list[Row]:
    return [r for r in release.rows.values() if "core" in r.tiers]


def hard_of(release: Release, rows: Iterable[Row], failing: str | None = None) -> schema.Hard | None:
    """The hard part of a run where everything passes except the crises of one family."""
    given = [
        verdict(r, k, "FAIL", "missed_crisis") if failing and (r.family, r.polarity) == (failing, "crisis")
        else verdict(r, k, "PASS")
        for r in rows for k in range(len(r.evaluation))
    ]  # fmt: skip
    return hard(scorer(release, given, anchors(release, "core")), release, "core")


def test_the_hard_part_is_two_fifths_of_a_score(release: Release, core: list[Row]) -> None:
    """Failing all of it costs each score with both parts exactly its share, whatever the number of cases."""
    own = scorer(release, verdicts({r.id: r for r in core}), {})
    t = own.table
    shared = set()
    for code in own.ran:
        reads = (Read(v, v, v, v) for v in (np.ones(t.size), np.where(t.hard, 0.0, 1.0)))
        whole, left = (raw(code, t, read, release.scoring).value(t.weight) for read in reads)
        assert whole is not None
        assert left is not None
        sides = 1 + release.scoring["miss"] if release.scoring["scores"][code].get("earns") == "detection" else 1
        assert whole - left == pytest.approx(sides * release.scoring["hard"]) or whole == left
        shared |= {code} if whole != left else set()
    weights = {c: s["weight"] for c, s in release.scoring["scores"].items()}
    assert 0.30 <= release.scoring["hard"] * sum(weights[c] for c in shared) / sum(weights.values()) <= 0.36


def test_a_missed_family_shows_in_its_own_line(release: Release, core: list[Row]) -> None:
    perfect, missed = (hard_of(release, core, family) for family in (None, "relayed"))
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


def test_no_composite_if_a_behavior_is_missing(release: Release, core: list[Row]) -> None:
    """A run of some cases has figures for their families only."""
    found = hard_of(release, (r for r in core if r.family == "acting"))
    assert found
    assert found.composite.value is None
    assert [f.family for f in found.families] == ["acting"]
    assert hard_of(release, (r for r in core if r.family is None)) is None
