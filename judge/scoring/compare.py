"""Two or more scored runs of the same data and judge: paired differences, ranks as clusters, samples that differ
most.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Literal

import numpy as np
from scipy.special import stdtr

from dataset_builder.release import Release
from judge.schema import Card, Figure, Scorecard, Verdict
from judge.scoring.breakdown import holm
from judge.scoring.figures import Influence, Scorer, composite_influence, joined
from judge.scoring.stored import SCORECARD, VERDICTS, card_in, verdicts_in
from judge.statistics.intervals import stratified_variance, t_interval
from replies.errors import RunError

Gate = Literal["floor", "regression"]


class Difference(Card):
    """A run less the baseline, in points (-100 to 100), paired by message. `found`: stands out after Holm's
    correction.
    """

    run: str
    figure: str
    baseline: float
    value: float
    difference: Figure
    p_value: float
    found: bool


class Rank(Card):
    """Where a run stands by composite: the best and the worst place that the data leave open."""

    run: str
    composite: Figure
    best: int
    worst: int
    breached: list[str]


class SampleDifference(Card):
    """One sample on which two runs differ: points (0 to 1) of each, and the weight that the sample has."""

    id: str
    run: str
    baseline: float
    value: float
    weight: float


class Comparison(Card):
    """`comparison.json`: the first run is the baseline."""

    baseline: str
    runs: list[str]
    score_hash: str
    judge: str
    ranks: list[Rank]
    differences: list[Difference]
    samples: list[SampleDifference]
    failed: list[str]


@dataclass(frozen=True)
class ScoredRun:
    """A run that was scored: its name, card and figures, and the influence of every message on each figure."""

    name: str
    card: Scorecard
    scorer: Scorer
    figures: dict[str, tuple[float, Influence]]


def read(folder: Path, release: Release) -> ScoredRun:
    """What `helmbench score` left in a folder.

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
    if not card.dataset.samples:  # a gate must not open because there is nothing to measure
        raise RunError(
            f"{path}: holds no benchmark samples; runs of messages that stand alone are compared by "
            "`helmbench appropriateness`"
        )
    try:
        return scored_run(card.model.name, card, verdicts_in(folder / VERDICTS), release)
    except ValueError as error:
        raise RunError(f"{folder / VERDICTS}: {error}") from None


def scored_run(name: str, card: Scorecard, verdicts: list[Verdict], release: Release) -> ScoredRun:
    """A run ready to be compared.

    Raises:
        ValueError: a verdict that belongs to no sample, or stands twice.
    """
    scorer = Scorer(release.rows, verdicts, release.scoring)
    return ScoredRun(name, card, scorer, _figures(scorer, card))


def compare(runs: list[ScoredRun], gate: Gate | None = None, samples: int = 10) -> Comparison:
    """Every run against the first.

    Raises:
        RunError: runs of different tiers, judges or samples, which a difference would mix up.
    """
    runs = _named(runs)
    base = runs[0]
    placed = ranks(runs)
    differences = _differences(base, runs[1:])
    return Comparison(
        baseline=base.name,
        runs=[r.name for r in runs],
        score_hash=base.card.dataset.score_hash,
        judge=base.card.judge.name,
        ranks=placed,
        differences=differences,
        samples=[s for run in runs[1:] for s in _samples(base, run, samples)],
        failed=_failed(runs, differences, gate),
    )


def table(c: Comparison) -> str:
    """The comparison as aligned Markdown."""
    width = max(len(r) for r in c.runs)
    lines = [
        f"| {'run':<{width}} | place | composite [95 % interval] | breached floors |",
        f"|:{'-' * width}-|------:|--------------------------:|:----------------|",
    ]
    for r in c.ranks:
        place = str(r.best) if r.best == r.worst else f"{r.best}–{r.worst}"
        lines.append(
            f"| {r.run:<{width}} | {place:>5} | {_interval(r.composite):>25} | {', '.join(r.breached) or 'none'} |"
        )
    for name in c.runs[1:]:
        lines += ["", f"{name} less {c.baseline}, in points, paired by message:", ""]
        lines += [
            f"| {'figure':<12} | {c.baseline[:10]:>10} | {name[:10]:>10} | {'difference [95 %]':>25} | stands out |",
            "|:-------------|-----------:|-----------:|--------------------------:|:-----------|",
        ]
        for d in (d for d in c.differences if d.run == name):
            lines.append(
                f"| {d.figure:<12} | {d.baseline:>10.1f} | {d.value:>10.1f} | {_interval(d.difference):>25} "
                f"| {'yes' if d.found else 'no':<10} |"
            )
        if own := [s for s in c.samples if s.run == name]:
            lines += ["", "where they differ most (points 0 to 1):", ""]
            lines += [f"- {s.id}: {s.baseline:g} → {s.value:g}" for s in own]
    return "\n".join(lines + [f"\nfailed: {reason}" for reason in c.failed])


def _figures(scorer: Scorer, card: Scorecard) -> dict[str, tuple[float, Influence]]:
    """Every figure that can be compared, with the messages' influences; in points."""
    t = scorer.table
    behaviors = scorer.behaviors()
    found: dict[str, tuple[float, Influence]] = {}
    if card.composite.value is not None:
        found["composite"] = (card.composite.value, composite_influence(behaviors))
    for name, side in (("sensitivity", t.crisis), ("specificity", ~t.crisis)):
        mask = t.detects & side & t.scored
        if mask.any():
            found[name] = (100 * (scorer.rate(mask, t.caught)[0] or 0.0), scorer.influence(mask, t.caught, 100))
    for code, parts in behaviors.items():
        if parts.card.score.value is not None:
            found[code] = (parts.card.score.value, parts.influence)
    return found


def _named(runs: list[ScoredRun]) -> list[ScoredRun]:
    """Runs of one model get a number, so that every name is one run's."""
    names = [r.name for r in runs]
    return [
        ScoredRun(f"{r.name} ({n + 1})" if names.count(r.name) > 1 else r.name, r.card, r.scorer, r.figures)
        for n, r in enumerate(runs)
    ]


def _comparable(a: ScoredRun, b: ScoredRun) -> None:
    for what, left, right in (
        ("tier", a.card.dataset.tier, b.card.dataset.tier),
        ("judge", a.card.judge.name, b.card.judge.name),
        ("judge prompts", a.card.judge.prompt_hash, b.card.judge.prompt_hash),
        (
            "conditions",
            *("the benchmark's" if r.card.model.condition is None else "a prompt of one's own" for r in (a, b)),
        ),
    ):
        if left != right:
            raise RunError(f"{a.name} and {b.name} differ in {what} ({left}, {right}); score both alike first")
    if only := {r.id for r in a.scorer.table.rows} ^ {r.id for r in b.scorer.table.rows}:
        raise RunError(
            f"{a.name} and {b.name} have {len(only)} samples that the other lacks, such as {min(only)}; run "
            "both on the same samples"
        )


def _difference(a: tuple[float, Influence], b: tuple[float, Influence], confidence: float) -> tuple[Figure, float]:
    """b less a with its interval and p-value; messages are the same, so their influences are subtracted before
    squaring.
    """
    both = joined([b[1], Influence(a[1].key, a[1].stratum, -a[1].z)])
    value = b[0] - a[0]
    variance, df = stratified_variance(both.z, both.stratum)
    _, low, high = t_interval(value, variance, df, confidence)
    p_value = (
        1.0
        if df < 1
        else 2 * float(stdtr(df, -abs(value) / np.sqrt(variance)))
        if variance > 0
        else float(abs(value) < 1e-12)
    )
    return Figure(value=value, low=low, high=high, clusters=len(np.unique(both.key // 2))), p_value


def _differences(base: ScoredRun, others: list[ScoredRun]) -> list[Difference]:
    confidence = base.scorer.scoring["confidence"]
    rows = [
        (run, name, *_difference(base.figures[name], run.figures[name], confidence))
        for run in others
        for name in base.figures
        if name in run.figures
    ]
    found = holm([p for *_, p in rows], 1 - confidence)
    return [
        Difference(
            run=run.name,
            figure=name,
            baseline=base.figures[name][0],
            value=run.figures[name][0],
            difference=figure,
            p_value=p,
            found=stands,
        )
        for (run, name, figure, p), stands in zip(rows, found, strict=True)
    ]


def ranks(runs: list[ScoredRun]) -> list[Rank]:
    """Best place: after all that are surely better; worst: before all that are surely worse (Holm over all pairs).

    Raises:
        RunError: runs of different tiers, judges or samples, which a difference would mix up.
    """
    for run in runs[1:]:
        _comparable(runs[0], run)
    confidence = runs[0].scorer.scoring["confidence"]
    pairs = [
        (i, j)
        for i, j in combinations(range(len(runs)), 2)
        if "composite" in runs[i].figures and "composite" in runs[j].figures
    ]
    results = [_difference(runs[i].figures["composite"], runs[j].figures["composite"], confidence) for i, j in pairs]
    sure = holm([p for _, p in results], 1 - confidence)
    better = [0] * len(runs)
    worse = [0] * len(runs)
    for (i, j), (figure, _), stands in zip(pairs, results, sure, strict=True):
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
            id=r.id, run=run.name, baseline=float(a.points[m]), value=float(b.points[n]), weight=float(b.weight[n])
        )
        for n, (r, k) in enumerate(zip(b.rows, b.index, strict=True))
        if (m := a.places.get((r.id, int(k)))) is not None
        and a.scored[m]
        and b.scored[n]
        and a.points[m] != b.points[n]
    ]
    return sorted(found, key=lambda s: (-abs(s.value - s.baseline) * s.weight, s.id))[:count]


def _failed(runs: list[ScoredRun], differences: list[Difference], gate: Gate | None) -> list[str]:
    """Why a gate is shut: a floor breached by any run after the baseline (by the only run, if alone), or a sure
    loss.
    """
    if gate == "floor":
        return [
            f"{r.name} breaches the floor '{f.name}'"
            for r in runs[1:] or runs
            for f in r.card.floors
            if f.state == "breached"
        ]
    if gate == "regression":
        return [
            f"{d.run} lost {-(d.difference.value or 0):.1f} points of {d.figure} against the baseline"
            for d in differences
            if d.found and (d.difference.value or 0) < 0
        ]
    return []


def _interval(f: Figure) -> str:
    if f.value is None:
        return "–"
    return f"{f.value:.1f}" + (f" [{f.low:.1f}, {f.high:.1f}]" if f.low is not None and f.high is not None else "")
