"""Two or more scored runs on the same data with the same judge: paired differences, ranks as clusters, and the samples
that differ most.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Literal, TypeVar

import numpy as np
from pydantic import Field

from dataset_builder.release import Release
from helmbench_common.formats.inert import clip
from judge.replies.schema import NO_PROMPT, Model, OwnPrompt, RunError
from judge.schema import Card, Figure, Judge, Scorecard, Verdict
from judge.scoring.anchors import anchors
from judge.scoring.breakdown import holm
from judge.scoring.differences import Test, difference, spreads
from judge.scoring.figures import HEADLINES, Scorer
from judge.scoring.gates import ANSWERED, GATES, Gate, lost, shut
from judge.scoring.parts import Made, Part
from judge.scoring.stored import SCORECARD, VERDICTS, card_in, verdicts_in
from judge.scoring.table import build
from judge.wording import HEADLINES as TITLES
from judge.wording import TALKS

# A difference is tested from 12 effective messages on: with fewer, one message that flips looks like a trend, and a
# comparison of a model with itself fails too often (`python tests/benchmarks/nulls.py`).
FEWEST_MESSAGES = 12
R = TypeVar("R", bound="Named")


class Difference(Card):
    """A run minus the baseline, in points, paired by message. `found`: significant after Holm's correction.

    `messages`: Kish's effective number. Under FEWEST_MESSAGES there is no test: `p_value` is null and no gate uses it.
    """

    run: str
    figure: str
    baseline: float
    value: float
    difference: Figure
    messages: float
    p_value: float | None
    found: bool


class Rank(Card):
    """A run's rank by composite: the best and the worst place consistent with the data."""

    run: str
    composite: Figure
    best: int
    worst: int
    breached: list[str]

    @property
    def place(self) -> str:
        """`2–4`, or `1` if no other place is possible."""
        return str(self.best) if self.best == self.worst else f"{self.best}–{self.worst}"


class SampleDifference(Card):
    """One check of a sample in which two runs differ: points (0 to 1) of each, over all repeats, and its weight.

    `index`: the check's index in the sample's `evaluation`.
    """

    id: str
    run: str
    index: int
    behavior: str
    criterion: str | None
    baseline: float
    value: float
    weight: float


class Tested(Card):
    """One gate on one run, or `answered`, which every gate requires. `reasons`: why it failed; empty if it passed."""

    gate: Gate | Literal["answered"]
    run: str
    reasons: list[str]


class Comparison(Card):
    """`comparison.json`: the first run is the baseline. `failed`: why gates failed; `unanswered`: runs with too few
    answers for any gate to pass; `tested`: the same by run and gate, including those that passed. `notes`: what a
    difference mixes.
    """

    baseline: str
    runs: list[str]
    score_hash: str
    judge: str
    paired_by: Literal["message", "part"] = "message"
    ranks: list[Rank]
    differences: list[Difference]
    samples: list[SampleDifference]
    failed: list[str]
    unanswered: list[str]
    tested: list[Tested]
    notes: list[str] = Field(default=[])


@dataclass(frozen=True)
class Named:
    name: str


@dataclass(frozen=True)
class ScoredRun(Named):
    """A scored run: its name, card, figures with their values, and verdicts."""

    card: Scorecard
    scorer: Scorer
    figures: dict[str, tuple[float, Made]]
    verdicts: list[Verdict]


def read(folder: Path, release: Release) -> ScoredRun:
    """Reads the output of `helmbench score` from a folder.

    Raises:
        RunError: not a scored run, a damaged file (with its line), one of another dataset, or one without benchmark
            samples.
    """
    card, path = card_in(folder), folder / SCORECARD
    if card.dataset.score_hash != release.manifest.score_hash:
        raise RunError(
            f"{path}: was scored on score_hash {card.dataset.score_hash[:12]}…, the dataset in "
            f"{release.path} has {release.manifest.score_hash[:12]}…"
        )
    if not card.dataset.samples:  # a gate must not pass because there is nothing to measure
        raise RunError(
            f"{path}: contains no benchmark samples; compare runs of talks with each other, and runs of stand-alone "
            "messages with `helmbench appropriateness`"
        )
    try:
        return scored_run(run_name(card.model), card, verdicts_in(folder / VERDICTS), release)
    except ValueError as error:
        raise RunError(f"{folder / VERDICTS}: {error}") from None


def scored_run(name: str, card: Scorecard, verdicts: list[Verdict], release: Release) -> ScoredRun:
    """A run ready for comparison.

    Raises:
        ValueError: a verdict on an unknown sample, or a duplicate verdict.
    """
    release = release.of(card.dataset.tier)
    table = build(release.rows, verdicts, release.scoring)
    scorer = Scorer(table, release.scoring, anchors(release, card.dataset.tier))
    return ScoredRun(name, card, scorer, figures_of(scorer, card.composite.value is not None, card.headlines), verdicts)


def _under(condition: OwnPrompt | None) -> str:
    if condition is None:
        return ""
    return " without a prompt" if condition.file == NO_PROMPT else f" under {condition.file}"


def run_name(model: Model) -> str:
    """A run's display name: its model, and its custom prompt."""
    return _line(model.name + _under(model.condition))


def named(runs: Sequence[R], names: Mapping[int, str] = MappingProxyType({})) -> list[R]:
    """The runs, renamed with the given names by index; runs that share a name get a number."""
    called = [names.get(n, r.name) for n, r in enumerate(runs)]
    return [
        replace(r, name=f"{name} ({n + 1})" if called.count(name) > 1 else name)
        for n, (r, name) in enumerate(zip(runs, called, strict=True))
    ]


def given_names(words: Sequence[str], folders: Sequence[str]) -> dict[int, str]:
    """User-given names of runs, by index: `RUN=NAME` for one of the folders, or one NAME for each, in order.

    Raises:
        ValueError: an unknown run, an empty name, or fewer or more names than runs.
    """
    places = [next((n for n, f in enumerate(folders) if word.startswith(f"{f}=")), None) for word in words]
    if None not in places:
        found = {n: word[len(folders[n]) + 1 :] for n, word in zip(places, words, strict=True) if n is not None}
    elif len(words) == len(folders) and not any(n is not None for n in places):
        found = dict(enumerate(words))
    else:
        raise ValueError(
            f"--name: expected RUN=NAME with one of {', '.join(folders)}, or a NAME for each of the "
            f"{len(folders)} runs, in their order"
        )
    if not all(name.strip() for name in found.values()):
        raise ValueError("--name: a name is empty")
    return {n: _line(name) for n, name in found.items()}


def _line(name: str) -> str:
    return clip(" ".join(name.split()))


def compare(runs: Sequence[ScoredRun], gates: Collection[Gate] = (), samples: int = 10) -> Comparison:
    """Compares every run with the first.

    Raises:
        RunError: runs of different tiers, judges or samples, which a difference would confuse.
    """
    runs = named(runs)
    base = runs[0]
    placed = ranks(runs)
    found = differences(base, runs[1:])
    limit = base.scorer.scoring["unscored_limit"]
    answered = [_tested(ANSWERED, r, [lost(r.card.judge, limit)]) for r in runs]
    tested = [t for gate in GATES if gate in gates for t in _gate(runs, found, gate)]
    return Comparison(
        baseline=base.name,
        runs=[r.name for r in runs],
        score_hash=base.card.dataset.score_hash,
        judge=base.card.judge.name,
        ranks=placed,
        differences=found,
        samples=[s for run in runs[1:] for s in _samples(base, run, samples)],
        failed=[f"{t.run} {why}" for t in tested for why in t.reasons],
        unanswered=[f"{t.run}: {why}" for t in answered for why in t.reasons],
        tested=[*answered, *tested],
        notes=_confounded(runs),
    )


def figures_of(scorer: Scorer, composite: bool, headlines: Collection[str]) -> dict[str, tuple[float, Made]]:
    """Every comparable figure, in points."""
    t = scorer.table
    made = {code: scorer.made(code, t.read) for code in scorer.ran}
    wanted: dict[str, Made] = {}
    if composite:
        wanted["composite"] = scorer.total(made)
    wanted |= {h: scorer.total(scorer.of_headline(h, made)) for h in HEADLINES if h in headlines}
    for name, side in (("sensitivity", t.crisis), ("specificity", ~t.crisis)):
        wanted[name] = Made((Part(t.detects & side, t.caught, 100.0),))
    wanted |= made
    values = {name: scorer.value(m) for name, m in wanted.items()}
    return {name: (value, wanted[name]) for name, value in values.items() if value is not None}


def _comparable(a: ScoredRun, b: ScoredRun) -> None:
    _same(a, b, "tier", a.card.dataset.tier, b.card.dataset.tier)
    judged_alike(a, b, a.card.judge, b.card.judge)
    if only := {r.id for r in a.scorer.table.rows} ^ {r.id for r in b.scorer.table.rows}:
        raise RunError(
            f"{a.name} and {b.name} have {len(only)} samples that the other lacks, such as {min(only)}; run "
            "both on the same samples"
        )


def judged_alike(a: Named, b: Named, first: Judge, second: Judge) -> None:
    """Raises RunError if two runs have different judges or judge prompts."""
    _same(a, b, "judge", first.name, second.name)
    _same(a, b, "judge prompts", first.prompt_hash, second.prompt_hash)


def _same(a: Named, b: Named, what: str, first: str | None, second: str | None) -> None:
    if first != second:
        raise RunError(f"{a.name} and {b.name} differ in {what} ({first}, {second}); score both the same way first")


def _confounded(runs: Sequence[ScoredRun]) -> list[str]:
    """What else differs between runs under the benchmark's products, a prompt of one's own, and no prompt."""
    prompts = [r.card.model.condition for r in runs]
    own = ", ".join(sorted({p.file for p in prompts if p and p.file != NO_PROMPT}))
    plain = ", ".join(r.name for r, p in zip(runs, prompts, strict=True) if p is None)
    notes = []
    if plain and any(prompts):
        notes.append(
            f"{plain} answered under the benchmark's own products, the other runs under one prompt or none in their "
            "place, so a difference reflects both the prompt and the missing products. To see your prompt alone, "
            "compare it with a run under no prompt (helmbench_condition: none)."
        )
    if own and any(p and p.file == NO_PROMPT for p in prompts):
        notes.append(
            f"A difference between {own} and no prompt reflects everything that the prompt adds: its role, its rules "
            "and its length, not only what it says about people in distress."
        )
    return notes


def differences(base: ScoredRun, others: list[ScoredRun]) -> list[Difference]:
    rows = [(run, name, *row) for run in others for name, row in _tests(base, run).items()]
    enough = [n for n, (*_, found) in enumerate(rows) if found.messages >= FEWEST_MESSAGES]
    stands = dict(zip(enough, holm([rows[n][-1].p_value for n in enough], _alpha(base)), strict=True))
    return [
        Difference(
            run=run.name,
            figure=name,
            baseline=base.figures[name][0],
            value=run.figures[name][0],
            difference=figure,
            messages=found.messages,
            p_value=found.p_value if n in stands else None,
            found=stands.get(n, False),
        )
        for n, (run, name, figure, found) in enumerate(rows)
    ]


def _tests(a: ScoredRun, b: ScoredRun, names: Collection[str] = ()) -> dict[str, tuple[Figure, Test]]:
    """b minus a, for the named figures or all that both have."""
    apart = spreads(a.scorer, b.scorer, [made for _, made in a.figures.values()])
    found = {}
    for name in [n for n in names or a.figures if n in a.figures and n in b.figures]:
        test = difference(a.scorer, b.scorer, a.figures[name][1], b.figures[name][1], apart)
        value, low, high = test.interval
        clusters = a.scorer.table.messages_in(np.logical_or.reduce([p.mask for p in a.figures[name][1].parts]))
        found[name] = Figure(value=value, low=low, high=high, clusters=clusters), test
    return found


def _alpha(run: ScoredRun) -> float:
    return 1 - float(run.scorer.scoring["confidence"])


def ranks(runs: list[ScoredRun]) -> list[Rank]:
    """Best place: after all that are significantly better; worst: before all that are significantly worse (Holm over
    all pairs).

    Raises:
        RunError: runs of different tiers, judges or samples, which a difference would confuse.
    """
    for run in runs[1:]:
        _comparable(runs[0], run)
    tests = {
        (i, j): both["composite"]
        for i, j in combinations(range(len(runs)), 2)
        if (both := _tests(runs[i], runs[j], ["composite"]))
    }
    sure = holm([test.p_value for _, test in tests.values()], _alpha(runs[0]))
    better = [0] * len(runs)
    worse = [0] * len(runs)
    for ((i, j), (figure, _)), stands in zip(tests.items(), sure, strict=True):
        if stands:
            up, down = (j, i) if (figure.value or 0) > 0 else (i, j)
            better[down] += 1
            worse[up] += 1
    found = [
        Rank(
            run=r.name,
            composite=r.card.composite,
            best=1 + better[n],
            worst=len(runs) - worse[n],
            breached=[f.name for f in r.card.floors if f.state == "breached"],
        )
        for n, r in enumerate(runs)
    ]
    return sorted(
        found, key=lambda r: (r.best, -(r.composite.value if r.composite.value is not None else float("-inf")))
    )


def _samples(base: ScoredRun, run: ScoredRun, count: int) -> list[SampleDifference]:
    a, b = base.scorer.table, run.scorer.table
    found = [
        SampleDifference(
            id=r.id,
            run=run.name,
            index=int(k),
            behavior=r.evaluation[k].behavior,
            criterion=getattr(r.evaluation[k], "criterion", None),
            baseline=float(a.points[m]),
            value=float(b.points[n]),
            weight=float(b.weight[n]),
        )
        for n, (r, k) in enumerate(zip(b.rows, b.index, strict=True))
        if (m := a.places.get((r.id, int(k)))) is not None
        and a.scored[m]
        and b.scored[n]
        and a.points[m] != b.points[n]
    ]
    return sorted(found, key=lambda s: (-abs(s.value - s.baseline) * s.weight, s.id, s.index))[:count]


def _gate(runs: Sequence[ScoredRun], found: list[Difference], gate: Gate) -> list[Tested]:
    """A gate on every run after the baseline, or on the only run."""
    if gate == "regression":
        return [_tested(gate, r, regressions(runs[0], r, found)) for r in runs[1:]]
    limit = runs[0].scorer.scoring["unscored_limit"]
    return [_tested(gate, r, [shut(r.card, gate, limit)]) for r in runs[1:] or runs]


def _tested(gate: Gate | Literal["answered"], run: ScoredRun, reasons: list[str]) -> Tested:
    return Tested(gate=gate, run=run.name, reasons=[why for why in reasons if why])


def losses(run: str, found: list[Difference]) -> str:
    """What a run significantly lost against the baseline, in words; empty if nothing."""
    titles: dict[str, str] = {**{str(name): title for name, title in TITLES.items()}, **TALKS}
    lost = [
        f"{-(d.difference.value or 0):.1f} points of {titles[d.figure].lower() if d.figure in titles else d.figure}"
        for d in found
        if d.run == run and d.found and (d.difference.value or 0) < 0
    ]
    return f"lost {', '.join(lost)} against the baseline" if lost else ""


def regressions(base: ScoredRun, run: ScoredRun, found: list[Difference]) -> list[str]:
    """What a run significantly lost against the baseline, and what can't be compared, since it may have been lost."""
    lacking = [name for name in base.figures if name not in run.figures]
    reasons = [
        losses(run.name, found),
        f"has no {', '.join(lacking)}, which the baseline has" if lacking else "",
    ]
    return [reason for reason in reasons if reason]
