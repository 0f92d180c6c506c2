"""Two or more scored runs of talks: differences from the first, paired by part."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import permutation_test

from dataset_builder.release import Release
from judge import wording
from judge.replies.schema import RunError
from judge.schema import Figure, Scorecard, Talks, Verdict
from judge.scoring.breakdown import holm
from judge.scoring.compare import FEWEST_MESSAGES, Comparison, Difference, Named, Tested, judged_alike, named
from judge.scoring.gates import ANSWERED, lost
from judge.scoring.talks import figures, mean, read_talks


@dataclass(frozen=True)
class ScoredTalks(Named):
    """A scored run of talks: its name, card, and each figure's mean by part (`judge.scoring.talks.figures`)."""

    card: Scorecard
    talks: Talks
    figures: dict[str, dict[str, float]]


def scored_talks(name: str, card: Scorecard, verdicts: Iterable[Verdict], release: Release) -> ScoredTalks:
    """A run of talks ready for comparison.

    Raises:
        RunError: the card has no talks, or talks of another dataset.
    """
    if card.talks is None or card.talks.talks_hash != release.manifest.talks_hash:
        found = f"talks of talks_hash {card.talks.talks_hash[:12]}…" if card.talks else "no talks"
        raise RunError(f"{name}: has {found}; expected talks of this dataset ({release.manifest.talks_hash[:12]}…)")
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for read in read_talks(verdicts, release)[0]:
        for figure, value in figures(read).items():
            values[figure][read.part.id].append(value)
    means = {figure: {part: float(np.mean(own)) for part, own in by.items()} for figure, by in values.items()}
    return ScoredTalks(name, card, card.talks, means)


def compare_talks(runs: Sequence[ScoredTalks], release: Release) -> Comparison:
    """Compares every run with the first, in points, over the parts that both have.

    Raises:
        RunError: runs of different judges.
    """
    base, *others = runs = named(runs)
    for run in others:
        judged_alike(base, run, base.talks.judge, run.talks.judge)
    limit = release.scoring["unscored_limit"]
    answered = [Tested(gate=ANSWERED, run=r.name, reasons=[*filter(None, [lost(r.talks.judge, limit)])]) for r in runs]
    return Comparison(
        baseline=base.name,
        runs=[r.name for r in runs],
        score_hash=base.card.dataset.score_hash,
        judge=base.talks.judge.name,
        paired_by="part",
        ranks=[],
        differences=_differences(base, others, 1 - float(release.scoring["confidence"])),
        samples=[],
        failed=[],
        unanswered=[f"{t.run}: {why}" for t in answered for why in t.reasons],
        tested=answered,
        notes=_notes(runs),
    )


def _differences(base: ScoredTalks, others: Sequence[ScoredTalks], alpha: float) -> list[Difference]:
    rows = list[tuple[str, str, np.ndarray, np.ndarray]]()
    for run in others:
        for name in wording.TALKS:
            one, other = base.figures.get(name, {}), run.figures.get(name, {})
            parts = sorted(one.keys() & other.keys())
            row = run.name, name, np.array([one[p] for p in parts]), np.array([other[p] for p in parts])
            before = rows[-1] if rows and {name, rows[-1][1]} <= wording.MET_BY.keys() else None
            if parts and not (before and np.array_equal(before[2:], row[2:])):  # later replies met no more
                rows.append(row)
    enough = [n for n, row in enumerate(rows) if len(row[2]) >= FEWEST_MESSAGES]
    p_values = [_chance(rows[n][3] - rows[n][2]) for n in enough]
    stands = dict(zip(enough, zip(p_values, holm(p_values, alpha), strict=True), strict=True))
    return [
        Difference(
            run=run,
            figure=name,
            baseline=100 * float(first.mean()),
            value=100 * float(second.mean()),
            difference=_points(second - first),
            messages=len(first),
            p_value=stands[n][0] if n in stands else None,
            found=n in stands and stands[n][1],
        )
        for n, (run, name, first, second) in enumerate(rows)
    ]


def _points(moved: np.ndarray) -> Figure:
    """The mean difference in points."""
    found = mean(moved, np.arange(len(moved)), -1.0)
    value, low, high = (100 * (x or 0.0) for x in (found.value, found.low, found.high))
    return Figure(value=value, low=low, high=high, n=len(moved), clusters=len(moved))


def _chance(moved: np.ndarray) -> float:
    """The p-value of no difference, by random signs of the parts' differences (Fisher's randomization test)."""
    found = permutation_test(
        (moved,), lambda x, axis: x.mean(axis=axis), permutation_type="samples", rng=np.random.default_rng(0)
    )
    return float(found.pvalue)


def _notes(runs: Sequence[ScoredTalks]) -> list[str]:
    notes = ["No person has rated these talks or the whole-talk criteria."]
    if len(users := {r.talks.user for r in runs}) > 1:
        notes.append(f"{len(users)} models played the user, so a difference is theirs as well.")
    for r in runs:
        if left := r.talks.not_played + r.talks.errors + r.talks.out_of_part:
            notes.append(f"{r.name}: {left} talks don't count: not played, an error, or out of the part.")
    return notes
