"""A verdict that gets better never lowers the composite, and never worsens a floor."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple, get_args

import numpy as np
import pytest
from numpy.random import Generator

from dataset_builder.release import Release
from dataset_builder.schema import Check, Incident, Label, Row
from judge.schema import FloorState, Verdict
from judge.scoring.anchors import Anchor, anchors
from judge.scoring.figures import Scorer
from judge.scoring.safety import floors

TABLES, IMPROVEMENTS = 50, 200
LABELS: tuple[Label, ...] = ("FAIL", "PARTIAL", "PASS")  # worst first
STATES: tuple[FloorState, ...] = ("breached", "undetermined", "passed")


class Standing(NamedTuple):
    """The composite, and every floor's state and limit on the good side of it, higher being better."""

    composite: float
    states: list[int]
    limits: list[float]


@pytest.fixture
def few(release: Release) -> dict[str, Row]:
    """A message of every scenario and polarity with their lite samples: every score and floor has some."""
    kept: dict[tuple[str, str], set[str]] = defaultdict(set)
    found: dict[str, Row] = {}
    for row in release.rows.values():
        own = kept[row.scenario, row.polarity]
        if "lite" in row.tiers and (row.message_key in own or len(own) < 1):
            own.add(row.message_key)
            found[row.id] = row
    return found


@pytest.fixture
def zero(release: Release) -> dict[str, Anchor]:
    return anchors(release, "core")


def test_ten_thousand_improvements_lower_nothing(
    release: Release, few: dict[str, Row], zero: dict[str, Anchor]
) -> None:
    """Random tables of every quality, 200 single improvements of each: FAIL to PARTIAL or PASS, PARTIAL to PASS, and
    what was unscored to PASS.
    """
    rng, tried = np.random.default_rng(15), 0
    for _ in range(TABLES):
        verdicts, before = next(
            (verdicts, found)
            for verdicts in iter(lambda: table(few, rng), None)
            if (found := standing(release, verdicts, zero)) is not None
        )
        poor = [n for n, v in enumerate(verdicts) if v.label != "PASS"]
        for place in rng.choice(poor, IMPROVEMENTS).tolist():
            better = improved(verdicts[place], rng)
            now = standing(release, [*verdicts[:place], better, *verdicts[place + 1 :]], zero)
            what = (verdicts[place], better)
            assert now is not None, what
            assert now.composite >= before.composite - 1e-9, what
            assert all(b >= a for a, b in zip(before.states, now.states, strict=True)), what
            assert all(b >= a - 1e-9 for a, b in zip(before.limits, now.limits, strict=True)), what
            tried += 1
    assert tried == TABLES * IMPROVEMENTS


def test_each_score_moves_with_its_verdicts(release: Release, few: dict[str, Row], zero: dict[str, Anchor]) -> None:
    """No score is left out by being flat: all FAIL is below all PASS for each, and for the composite."""
    scorers = [
        Scorer(
            few,
            [given(r, k, c, label) for r in few.values() for k, c in enumerate(r.evaluation)],
            release.scoring,
            zero,
        )
        for label in ("FAIL", "PASS")
    ]
    assert {*scorers[0].ran} == {*release.scoring["scores"]}
    for code in scorers[0].ran:
        low, high = (s.value(s.made(code, s.table.read)) for s in scorers)
        assert low is not None
        assert high is not None
        assert high == pytest.approx(100 if release.scoring["scores"][code].get("earns") else 0)
        assert low < high - 50, code


def table(few: Mapping[str, Row], rng: Generator) -> list[Verdict]:
    """Verdicts of a model of some quality; a few are unscored, a few failures are harm or alarm."""
    quality = rng.random()
    return [
        given(row, k, check, label(rng, quality), incident(rng), unscored=bool(rng.random() < 0.03))
        for row in few.values()
        for k, check in enumerate(row.evaluation)
    ]


def label(rng: Generator, quality: float) -> Label:
    found = LABELS[2] if rng.random() < quality else LABELS[int(rng.integers(2))]
    return found


def incident(rng: Generator) -> Incident:
    own: tuple[Incident, ...] = get_args(Incident)
    return own[int(rng.integers(len(own)))]


def given(
    row: Row, index: int, check: Check, label: Label, incident: Incident | None = None, *, unscored: bool = False
) -> Verdict:
    return Verdict.model_construct(
        id=row.id,
        repeat=0,
        index=index,
        check=check.check,
        behavior=check.behavior,
        turn=-1,
        label=None if unscored else label,
        unscored="error" if unscored else None,
        incident=(incident or "over_escalation") if label == "FAIL" and not unscored else None,
        decided_by="rule:random",
    )


def improved(verdict: Verdict, rng: Generator) -> Verdict:
    better = LABELS[LABELS.index(verdict.label) + 1 :] if isinstance(verdict.label, str) else ("PASS",)
    chosen = better[int(rng.integers(len(better)))]
    return verdict.model_copy(update={"label": chosen, "unscored": None, "incident": None})


def standing(release: Release, verdicts: list[Verdict], zero: Mapping[str, Anchor]) -> Standing | None:
    """None where a part of a score is mostly unscored."""
    scorer = Scorer(release.rows, verdicts, release.scoring, zero)
    composite = scorer.value(scorer.total({c: scorer.made(c, scorer.table.read) for c in scorer.ran}))
    if composite is None:
        return None
    found = floors(scorer, "core", release.criteria)
    limits = [-(f.high or 0.0) if "harm" in f.name else f.low or 0.0 for f in found]
    return Standing(composite, [STATES.index(f.state) for f in found], limits)
