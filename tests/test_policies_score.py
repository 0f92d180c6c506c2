"""Trivial policies on the real dataset: a policy that doesn't read the message can't score."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import make_references
import numpy as np
import pytest
from reference_policies import POLICIES
from reference_policies import reply as reply_of
from support.scores import scorer

from dataset_builder.release import Release
from dataset_builder.schema import Row, Tier
from judge.offline.reader import OfflineReader
from judge.replies import script
from judge.replies.run import Run
from judge.replies.schema import Model, Reply
from judge.schema import Verdict
from judge.score import Scored, score
from judge.scoring.anchors import anchors
from judge.verdicts import judge_run

CONSTANTS = ("always-escalate", "always-kind")
WEIGHS_NOTHING = ("random", "context-only")


def run_of(policy: str, rows: list[Row], tier: Tier) -> Run:
    replies = [Reply(id=r.id, turns=tuple(make_references.play(policy, r))) for r in rows]
    return Run(Path(policy), Model(name=policy, backend="reference"), tier, replies, False)


def in_tier(release: Release, tier: Tier) -> list[Row]:
    return [r for r in release.rows.values() if tier in r.tiers]


def strict(row: Row) -> bool:
    """Whether reading the message alone decides a sample: tags and graded outcomes, no criterion that also asks for
    help.
    """
    return row.pillar == "P1" and all(c.check in ("tags", "graded") for c in row.evaluation)


@pytest.fixture(scope="module")
def scored(release: Release) -> dict[str, Scored]:
    """Each policy on the core tier."""
    rows = in_tier(release, "core")
    return {p: score(run_of(p, rows, "core"), release, [[OfflineReader()]]) for p in (*CONSTANTS, *WEIGHS_NOTHING)}


def test_no_constant_scores_above_zero(release: Release, scored: dict[str, Scored]) -> None:
    """Every behavior, every headline and the composite is 0 or below. Detection is 1 and 0, or 0 and 1."""
    zero = anchors(release, "core")
    for policy in CONSTANTS:
        card = scored[policy].scorecard
        scores = [*(own.score for own in card.behaviors.values()), *card.headlines.values(), card.composite]
        assert len(scores) == 18 + 3 + 1
        assert all(f.value is not None and f.value <= 1e-9 for f in scores), (policy, scores)
        assert card.composite.high is not None
        assert card.composite.high < 0
        given = [v for v in scored[policy].verdicts if strict(release.rows[v.id])]
        found = scorer(release, given, zero).detection()
        seen = 1.0 if policy == "always-escalate" else 0.0
        assert found.informedness.value == pytest.approx(0, abs=1e-12)
        assert (found.sensitivity.value, found.specificity.value) == (pytest.approx(seen), pytest.approx(1 - seen))


def test_the_interval_of_a_policy_that_ignores_the_message_contains_zero(scored: dict[str, Scored]) -> None:
    """And it is narrow enough to mean something."""
    for policy in WEIGHS_NOTHING:
        figure = scored[policy].scorecard.detection.informedness
        assert figure.low is not None
        assert figure.high is not None
        assert figure.low <= 0 <= figure.high
        assert figure.high - figure.low < 1


def test_a_policy_that_tells_crises_from_controls_scores_a_hundred(release: Release) -> None:
    """The two constant replies, each to the right people, are perfect detection, so the judge isn't blind."""
    rows = [r for r in in_tier(release, "core") if strict(r)]
    given: list[Verdict] = []
    for policy, polarity in (("always-escalate", "crisis"), ("always-kind", "control")):
        run = run_of(policy, [r for r in rows if r.polarity == polarity], "core")
        given += judge_run(run, release, OfflineReader())
    own = scorer(release, given, anchors(release, "core"))
    assert own.detection().informedness.value == pytest.approx(1)
    for behavior in {c.behavior for r in rows for c in r.evaluation} - {"P1-B4"}:  # its score reads no tags
        assert own.score(behavior).card.score.value == pytest.approx(100)


@pytest.mark.soak(short=16, full=200)
def test_chance_is_worth_nothing(release: Release, rounds: int) -> None:
    """The mean informedness of `random` over many seeds is near 0. Each different reply to a row is judged once."""
    rows = [r for r in in_tier(release, "core") if strict(r)]

    def play(row: Row, seed: int) -> tuple[str, ...]:
        return tuple(script.play(row, lambda history: reply_of("random", history, seed)))

    said = {(seed, r.id): play(r, seed) for seed in range(rounds) for r in rows}
    different: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
    for (_, identity), turns in said.items():
        if turns not in different[identity]:
            different[identity].append(turns)
    replies = [Reply(id=i, repeat=n, turns=turns) for i, texts in different.items() for n, turns in enumerate(texts)]
    run = Run(Path("policy"), Model(name="random", backend="reference"), "full", replies, False)
    known: defaultdict[tuple[str, tuple[str, ...]], list[Verdict]] = defaultdict(list)
    for v in judge_run(run, release, OfflineReader()):
        known[v.id, different[v.id][v.repeat]].append(v.model_copy(update={"repeat": 0}))
    zero = anchors(release, "core")
    drawn = ([v for r in rows for v in known[r.id, said[seed, r.id]]] for seed in range(rounds))
    values = np.array([scorer(release, given, zero).detection().informedness.value for given in drawn], dtype=float)
    assert len({*values.tolist()}) > rounds / 2, "the seeds differ"
    assert abs(values.mean()) < (0.01 if rounds > 100 else 0.03)


def test_rules_decide_every_verdict_on_a_trivial_policy(release: Release) -> None:
    """So its scores can be shown next to a run that any judge read."""
    rows = in_tier(release, "lite")
    read = {
        policy: {v.decided_by for v in judge_run(run_of(policy, rows, "lite"), release, OfflineReader())}
        for policy in POLICIES
    }
    assert all(by.startswith("rule:") for given in read.values() for by in given), read
