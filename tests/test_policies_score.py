"""Trivial policies on the real dataset: whoever doesn't read the message can't score, and a constant scores nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from reference_policies import POLICIES, reply

from dataset_builder.release import Release, open_release
from dataset_builder.schema import Row, Tier
from judge import schema
from judge.offline import judge as offline
from judge.offline.reader import OfflineReader
from judge.replies.run import Run
from judge.replies.schema import Model, Reply
from judge.schema import Scorecard, Verdict
from judge.scoring.anchors import anchors
from judge.scoring.figures import Scorer
from judge.scoring.score import About, judge_card, scorecard
from judge.verdicts import JudgeIdentity, judge_run

OFFLINE = JudgeIdentity(offline.NAME, None)
CONSTANTS = ("always-escalate", "never-escalate", "always-kind")
SEEDS = range(200)


@pytest.fixture(scope="module")
def built(dataset: Path) -> Release:
    """The real dataset; this module only reads it."""
    return open_release(dataset)


def played(policy: str, row: Row, seed: int = 0) -> tuple[str, ...]:
    """A policy's reply to each live turn, under its own earlier replies, and to the end."""
    messages: list[dict[str, str]] = []
    said: list[str] = []
    for message in row.messages:
        if message.content is None:
            said.append(reply(policy, messages, seed))
        messages.append({"role": message.role, "content": said[-1] if message.content is None else message.content})
    return (*said, reply(policy, messages, seed))


def verdicts_of(replies: list[Reply], release: Release, tier: Tier) -> list[Verdict]:
    return judge_run(
        Run(Path("policy"), Model(name="policy", backend="reference"), tier, replies, False), release, OfflineReader()
    )


def strict(row: Row) -> bool:
    """Whether nothing but its reading of the message decides a sample: tags and graded outcomes, no criterion that also
    asks for help.
    """
    return row.pillar == "P1" and all(c.check in ("tags", "graded") for c in row.evaluation)


@pytest.fixture(scope="module")
def given(built: Release) -> dict[str, list[Verdict]]:
    """The verdicts on each policy's replies, core tier."""
    rows = [r for r in built.rows.values() if "core" in r.tiers]
    return {
        p: verdicts_of([Reply(id=r.id, turns=played(p, r)) for r in rows], built, "core")
        for p in (*CONSTANTS, "random", "context-only")
    }


@pytest.fixture(scope="module")
def scorers(built: Release, given: dict[str, list[Verdict]]) -> dict[str, Scorer]:
    """Each policy's figures on the strict samples of P1."""
    return {
        p: Scorer(built.rows, [v for v in verdicts if strict(built.rows[v.id])], built.scoring, anchors(built, "core"))
        for p, verdicts in given.items()
    }


@pytest.fixture(scope="module")
def cards(built: Release, given: dict[str, list[Verdict]]) -> dict[str, Scorecard]:
    """The scorecard of each policy on the core tier."""
    rows = [r for r in built.rows.values() if "core" in r.tiers]
    manifest = built.manifest
    found = {}
    for policy, verdicts in given.items():
        dataset = schema.Dataset(
            version=manifest.version,
            score_hash=manifest.score_hash,
            tier="core",
            samples=len(rows),
            expected=len(rows),
            complete=True,
        )
        model = Model(name=policy, backend="reference")
        judged = judge_card(verdicts, OFFLINE.name, None)
        found[policy] = scorecard(verdicts, built, About(dataset, model), judged)
    return found


def detection_behaviors(release: Release, kind: str) -> set[str]:
    """P1 behaviors that have strict samples of this kind."""
    return {c.behavior for r in release.rows.values() if strict(r) for c in r.evaluation if c.check == kind}


@pytest.mark.parametrize("policy", CONSTANTS)
def test_no_constant_scores_above_nothing_anywhere(cards: dict[str, Scorecard], policy: str) -> None:
    """Zero is the best that can be had without reading, so each behavior, headline and the composite are at it or
    below, and so is the interval of what earns, nearly.
    """
    card = cards[policy]
    scores = [*(own.score for own in card.behaviors.values()), *card.headlines.values(), card.composite]
    assert len(scores) == 17 + 3 + 1
    assert all(f.value is not None and f.value <= 1e-9 for f in scores), scores
    assert card.composite.high is not None
    assert card.composite.high < 0


@pytest.mark.parametrize("policy", CONSTANTS)
def test_a_constant_has_no_informedness(scorers: dict[str, Scorer], policy: str) -> None:
    """Sensitivity and specificity are 1 and 0, or 0 and 1; a kind reply to everybody is the second."""
    detection = scorers[policy].detection()
    assert detection.informedness.value == pytest.approx(0, abs=1e-12)
    expected = (1, 0) if policy == "always-escalate" else (0, 1)
    assert (detection.sensitivity.value, detection.specificity.value) == (
        pytest.approx(expected[0]),
        pytest.approx(expected[1]),
    )


@pytest.mark.parametrize("policy", ["random", "context-only"])
def test_a_policy_that_does_not_read_the_message_may_be_worth_nothing(cards: dict[str, Scorecard], policy: str) -> None:
    """The interval of a coin, and of who reads only the user's history, contains 0."""
    figure = cards[policy].detection.informedness
    assert figure.low is not None
    assert figure.high is not None
    assert figure.low <= 0 <= figure.high
    assert figure.high - figure.low < 1, "an interval that contains everything would contain 0 too"


def test_whoever_tells_crises_from_controls_scores_a_hundred(built: Release) -> None:
    """The same two sentences, each to the right people, are perfect detection: the zeros above are not the judge's
    blindness.
    """
    rows = [r for r in built.rows.values() if strict(r) and "core" in r.tiers]
    replies = [
        Reply(id=r.id, turns=played("always-escalate" if r.polarity == "crisis" else "always-kind", r)) for r in rows
    ]
    scorer = Scorer(built.rows, verdicts_of(replies, built, "core"), built.scoring, anchors(built, "core"))
    assert scorer.detection().informedness.value == pytest.approx(1)
    for behavior in detection_behaviors(built, "tags") | detection_behaviors(built, "graded"):
        assert scorer.score(behavior).card.score.value == pytest.approx(100)


def test_chance_is_worth_nothing_over_two_hundred_seeds(built: Release) -> None:
    """The mean informedness of `random` on every detection message is within a hundredth of 0.

    Its replies repeat, so each row's different ones are judged once (as repeats) and looked up for every seed.
    """
    rows = [r for r in built.rows.values() if strict(r) and "core" in r.tiers]
    said = {(seed, r.id): played("random", r, seed) for seed in SEEDS for r in rows}
    different = {r.id: sorted({said[seed, r.id] for seed in SEEDS}) for r in rows}
    judged = verdicts_of(
        [Reply(id=i, repeat=n, turns=turns) for i, texts in different.items() for n, turns in enumerate(texts)],
        built,
        "full",
    )
    known: dict[tuple[str, tuple[str, ...]], list[Verdict]] = {}
    for v in judged:
        known.setdefault((v.id, different[v.id][v.repeat]), []).append(v.model_copy(update={"repeat": 0}))
    values: list[float | None] = []
    zero = anchors(built, "core")
    for seed in SEEDS:
        scorer = Scorer(built.rows, [v for r in rows for v in known[r.id, said[seed, r.id]]], built.scoring, zero)
        values.append(scorer.detection().informedness.value)
    numbers = np.array(values, dtype=float)
    mean, error = float(numbers.mean()), float(numbers.std(ddof=1)) / len(SEEDS) ** 0.5
    print(f"random over {len(SEEDS)} seeds: mean informedness {mean:.4f}, standard error {error:.4f}")  # noqa: T201 - the figure is worth seeing
    assert len(set(values)) > 100, "the seeds differ"
    assert abs(mean) < 0.01


@pytest.mark.parametrize("policy", POLICIES)
def test_no_judge_reads_a_trivial_policy(policy: str, built: Release) -> None:
    """So it may stand beside a run that any judge read, as reports say: rules decide all that it sends."""
    rows = [r for r in built.rows.values() if "lite" in r.tiers]
    verdicts = verdicts_of([Reply(id=r.id, turns=played(policy, r)) for r in rows], built, "lite")
    assert {v.decided_by.partition(":")[0] for v in verdicts} == {"rule"}
