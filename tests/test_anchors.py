"""Zero is authored: what baselines earn, and how far any one criterion can move the composite."""

from __future__ import annotations

from collections.abc import Iterator
from math import comb

import numpy as np
import pytest

from dataset_builder.release import Release, open_release
from dataset_builder.schema import Row, Tier
from judge.schema import Verdict
from judge.scoring.anchors import anchors
from judge.scoring.figures import Scorer
from judge.scoring.parts import earns
from judge.scoring.safety import floors
from judge.scoring.table import Read
from judge.statistics.intervals import exact

MOST = 20  # points of the composite that one criterion may move
TIERS: tuple[Tier, ...] = ("lite", "core", "full")


@pytest.fixture(scope="module", params=TIERS)
def whole(request: pytest.FixtureRequest, dataset: object) -> tuple[Release, Scorer]:
    """A tier on which everything passed, anchored."""
    release = open_release(str(dataset))
    rows = {r.id: r for r in release.rows.values() if request.param in r.tiers}
    return release, Scorer(rows, list(passed(rows)), release.scoring, anchors(release, request.param))


def passed(rows: dict[str, Row]) -> Iterator[Verdict]:
    for row in rows.values():
        for k, check in enumerate(row.evaluation):
            yield Verdict.model_construct(
                id=row.id, repeat=0, index=k, check=check.check, behavior=check.behavior, turn=-1, label="PASS",
                unscored=None, incident=None, decided_by="rule:test",
            )  # fmt: skip


def composite(scorer: Scorer, read: Read) -> float:
    value = scorer.value(scorer.total({c: scorer.made(c, read) for c in scorer.ran}))
    assert value is not None
    return value


def test_perfect_is_a_hundred_on_every_tier(whole: tuple[Release, Scorer]) -> None:
    _, scorer = whole
    assert composite(scorer, scorer.table.read) == pytest.approx(100)


def test_no_criterion_moves_the_composite_by_more_than_twenty(whole: tuple[Release, Scorer]) -> None:
    """From all PASS to all FAIL, in the worst way: on controls as an alarm."""
    release, scorer = whole
    ones = scorer.table.read.points
    moved = {}
    for name in scorer.table.criterion.names:
        left = np.where(scorer.table.criterion.mask(name), 0.0, ones)
        moved[name] = 100 - composite(scorer, Read(left, left, left))
    assert {*moved} == {*release.criteria} - {"speaks-to-this-person"}  # which only messages that stand alone are asked
    assert max(moved.values()) <= MOST, moved
    assert min(moved.values()) > 1, moved


def test_a_perfect_model_passes_every_floor_but_on_lite(whole: tuple[Release, Scorer]) -> None:
    """The messages can carry the thresholds; on lite nothing is passed."""
    release, scorer = whole
    tier = next(t for t in TIERS if all(t in r.tiers for r in scorer.table.rows))
    states = {f.name: f.state for f in floors(scorer, tier, release.criteria)}
    assert {*states.values()} == {"undetermined" if tier == "lite" else "passed"}, states
    assert len(states) == 6


@pytest.mark.parametrize("rate", [0.02, 0.03])
def test_harm_at_the_threshold_or_above_it_hardly_ever_passes(whole: tuple[Release, Scorer], rate: float) -> None:
    """On the chances that the floor has on core and full, at most 5 % of models that do harm in 2 or 3 of 100 pass."""
    release, scorer = whole
    (harm,) = [f for f in floors(scorer, "core", release.criteria) if "harm" in f.name]
    limits = (exact(k, harm.messages, 0.95)[2] for k in range(harm.messages))
    # So few incidents that the upper limit is under the threshold; on lite, which passes nothing, not even none are.
    few = sum(limit is not None and limit < harm.threshold for limit in limits)
    passes = sum(comb(harm.messages, k) * rate**k * (1 - rate) ** (harm.messages - k) for k in range(few))
    assert passes <= 0.05, (harm.messages, few, passes)
    assert (few > 0) == (harm.messages > 100)


def test_what_earns_adds_up_to_a_hundred(release: Release) -> None:
    scores = release.scoring["scores"]
    assert sum(s["weight"] for s in scores.values() if earns(s)) == 100


def test_what_costs_can_be_had_without_reading(whole: tuple[Release, Scorer]) -> None:
    """A baseline does it nearly perfectly; of what earns no baseline gets half."""
    release, scorer = whole
    for code, anchor in scorer.anchors.items():
        if earns(release.scoring["scores"][code]):
            assert anchor.value < 0.5, (code, anchor)
        else:
            assert anchor.value > 0.95, (code, anchor)


def test_anchors_are_the_releases(release: Release) -> None:
    """The same rows, tables and numbers give the same zero; another label of a baseline gives another one."""
    first, again = anchors(release, "core"), anchors(release, "core")
    assert first == again
    job = release.baselines["job"]
    seeing = job.model_copy(update={"labels": job.labels | {"says-it-plainly": "PASS"}})
    other = type(release)(release.path, release.manifest)
    other.__dict__["baselines"] = release.baselines | {"job": seeing}
    assert anchors(other, "core")["P2-B2"] == (1.0, "job")
    assert first["P2-B2"].value == 0
