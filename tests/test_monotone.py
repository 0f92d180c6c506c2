"""A better verdict never lowers the composite and never worsens a floor; a missing one improves neither."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, get_args

import numpy as np
import pytest
from numpy.random import Generator
from support.scores import scorer, verdict, verdicts

from dataset_builder.release import Release
from dataset_builder.schema import Incident, Label, Row
from judge.schema import FloorState, Unscored, Verdict
from judge.scoring.anchors import Anchor, anchors
from judge.scoring.figures import HEADLINES
from judge.scoring.parts import Made
from judge.scoring.scorecard import floors

IMPROVEMENTS = 200  # of each random table
LABELS: tuple[Label, ...] = ("FAIL", "PARTIAL", "PASS")  # worst first
INCIDENTS: tuple[Incident, ...] = get_args(Incident)
STATES: tuple[FloorState, ...] = ("breached", "undetermined", "passed")


class Result(NamedTuple):
    """The composite, and every floor's state and limit; higher is better."""

    composite: float
    states: list[int]
    limits: list[float]


@pytest.fixture
def few(release: Release) -> dict[str, Row]:
    """The lite samples of one message per scenario and polarity: every score and floor has some."""
    lite = {r.id: r for r in release.rows.values() if "lite" in r.tiers}
    kept = {(r.scenario, r.polarity): r.message_key for r in reversed(lite.values())}
    return {i: r for i, r in lite.items() if kept[r.scenario, r.polarity] == r.message_key}


@pytest.mark.soak(short=3, full=50)
def test_improvements_never_lower_anything(release: Release, few: dict[str, Row], rounds: int) -> None:
    """Random tables of every quality, with 200 single improvements each: FAIL to PARTIAL or PASS, PARTIAL to PASS,
    unscored to PASS.
    """
    rng, zero = np.random.default_rng(15), anchors(release, "core")
    for _ in range(rounds):
        before = None
        while before is None:
            given = table(few, rng)
            before = result(release, given, zero)
        poor = [n for n, v in enumerate(given) if v.label != "PASS"]
        for place in rng.choice(poor, IMPROVEMENTS).tolist():
            better = improved(given[place], rng)
            after = result(release, [*given[:place], better, *given[place + 1 :]], zero)
            what = (given[place], better)
            assert after is not None, what
            assert after.composite >= before.composite - 1e-9, what
            assert all(b >= a for a, b in zip(before.states, after.states, strict=True)), what
            assert all(b >= a - 1e-9 for a, b in zip(before.limits, after.limits, strict=True)), what
        for place in rng.choice(len(given), IMPROVEMENTS // 4).tolist():
            unread = given[place].model_copy(update={"label": None, "unscored": "judge_refused", "incident": None})
            hidden = result(release, [*given[:place], unread, *given[place + 1 :]], zero)
            assert hidden is None or all(a >= b for a, b in zip(before.states, hidden.states, strict=True)), unread
            assert hidden is None or hidden.composite <= before.composite + 1e-9, unread


@pytest.mark.parametrize("why", ["error", "judge_refused", "unparsable"])
def test_losing_the_worst_verdicts_gains_nothing(release: Release, why: Unscored) -> None:
    """Timeouts aimed at the worst 60 replies of core, or a judge that refuses 102, 20, 3 or 1 of them: no headline, no
    composite and no floor is better than if they had been read.
    """
    core = {i: r for i, r in release.rows.items() if "core" in r.tiers}
    rng, zero = np.random.default_rng(7), anchors(release, "core")
    given = [
        v if rng.random() < 0.8 else v.model_copy(update={"label": "FAIL", "incident": "harm"}) for v in verdicts(core)
    ]
    worst = sorted((n for n, v in enumerate(given) if v.label == "FAIL"), key=lambda n: -core[given[n].id].severity)
    before = figures(release, given, zero)
    for many in (102, 60, 20, 3, 1):
        hidden: dict[str, str | None] = {"label": None, "incident": None, "unscored": why}
        lost = {*worst[:many]}
        after = figures(release, [v.model_copy(update=hidden) if n in lost else v for n, v in enumerate(given)], zero)
        assert after.keys() == before.keys()
        assert {name: value for name, value in after.items() if value > before[name] + 1e-9} == {}, many


def figures(release: Release, given: list[Verdict], zero: Mapping[str, Anchor]) -> dict[str, float]:
    """The composite, every headline and every floor's state; higher is better."""
    own = scorer(release, given, zero)
    made = {code: own.made(code, own.table.read) for code in own.ran}
    parts: dict[str, dict[str, Made]] = {"composite": made}
    parts |= {name: own.of_headline(name, made) for name in HEADLINES}
    found: dict[str, float] = {f.name: STATES.index(f.state) for f in floors(own, "core")}
    return found | {name: value for name, some in parts.items() if (value := own.value(own.total(some))) is not None}


def test_every_score_moves_with_its_verdicts(release: Release, few: dict[str, Row]) -> None:
    failed = [
        v.model_copy(update={"incident": "harm" if few[v.id].severity > 0 else v.incident})
        for v in verdicts(few, "FAIL")
    ]
    worst, best = (scorer(release, given, anchors(release, "core")) for given in (failed, verdicts(few)))
    assert {*worst.ran} == {*release.scoring["scores"]}
    for code in worst.ran:
        low, high = (s.value(s.made(code, s.table.read)) for s in (worst, best))
        assert low is not None
        assert high is not None
        assert high == pytest.approx(100 if release.scoring["scores"][code].get("earns") else 0)
        assert low < high - 50, code


def table(few: Mapping[str, Row], rng: Generator) -> list[Verdict]:
    """Verdicts on a model of random quality; a few are unscored, a few failures are harm or false alarms."""
    quality = rng.random()
    found = []
    for row in few.values():
        for k in range(len(row.evaluation)):
            label = LABELS[2] if rng.random() < quality else LABELS[int(rng.integers(2))]
            incident = INCIDENTS[int(rng.integers(len(INCIDENTS)))] if label == "FAIL" else None
            lost = rng.random() < 0.03
            found.append(verdict(row, k, None if lost else label, None if lost else incident))
    return found


def improved(given: Verdict, rng: Generator) -> Verdict:
    better = LABELS[LABELS.index(given.label) + 1 :] if isinstance(given.label, str) else ("PASS",)
    chosen = better[int(rng.integers(len(better)))]
    return given.model_copy(update={"label": chosen, "unscored": None, "incident": None})


def result(release: Release, given: list[Verdict], zero: Mapping[str, Anchor]) -> Result | None:
    """None if a part of a score is mostly unscored."""
    own = scorer(release, given, zero)
    composite = own.value(own.total({c: own.made(c, own.table.read) for c in own.ran}))
    if composite is None:
        return None
    found = floors(own, "core")
    limits = [-(f.high or 0.0) if "harm" in f.name else f.low or 0.0 for f in found]
    return Result(composite, [STATES.index(f.state) for f in found], limits)
