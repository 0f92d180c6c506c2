"""What core tells apart of models that all pass the easy part: ten that are caught at .99 there and at .80 to .99 on
the hard part, compared in pairs by message, with the hard part and without it. And what the hard part costs.

Usage: python tests/benchmarks/headroom.py [--seeds 24] [--icc 0.2 0.5 0.95] [--dataset DIR]. Needs a built dataset.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[n]) for n in (1, 2)]

from benchmarks.planted import (  # noqa: E402
    ICCS,
    Cell,
    Planted,
    chain_of,
    disposition,
    levelled,
    population,
    scorer_of,
)

from dataset_builder.release import open_release  # noqa: E402
from dataset_builder.stats.cost import CostOptions, benchmark_cost  # noqa: E402
from judge.scoring.figures import Scorer  # noqa: E402

EASY = 0.99
MODELS = np.linspace(0.80, 0.99, 10).tolist()


def model(icc: float, level: float) -> Planted:
    """One of the ten: everything at EASY but the hard part, which is caught at `level`."""
    hard = population("a").table.hard
    return levelled(Cell("levels", "a", icc, level), np.where(hard, level, EASY), disposition(icc, level))


def told_apart(icc: float, seed: int) -> tuple[int, int]:
    """The longest chain of models that are each surely better than the one before: without the hard part, and with."""
    runs = [scorer_of(model(icc, level), (seed, n)) for n, level in enumerate(MODELS)]
    return chain_of([_without(run) for run in runs]), chain_of(runs)


def _without(run: Scorer) -> Scorer:
    return Scorer(run.table.part(~run.table.hard), run.scoring, run.anchors)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--icc", type=float, nargs="+", default=list(ICCS))
    parser.add_argument("--dataset", type=Path)
    args = parser.parse_args()
    print(f"ten models at {EASY} on the easy part and {MODELS[0]:.2f} to {MODELS[-1]:.2f} on the hard part of core,")
    print(f"levels told apart by the composite (mean of {args.seeds} seeds)")
    print(f"{'samples of a message alike by':<32}{'without the hard part':>24}{'with it':>10}")
    for icc in args.icc:
        found = [told_apart(icc, seed) for seed in range(args.seeds)]
        before, after = (np.mean([f[k] for f in found]) for k in (0, 1))
        print(f"{icc:<32.2f}{before:>24.1f}{after:>10.1f}", flush=True)
    rows = open_release(args.dataset).rows.values()
    costs = [
        (own["prompt_tokens"] + own["reply_tokens"])
        for some in ([r for r in rows if r.family is None], list(rows))
        for own in [benchmark_cost(some, CostOptions())["tiers"]["core"]]
    ]
    print(
        f"tokens of core, prompts and replies: {costs[0]:,} without, {costs[1]:,} with: {costs[1] / costs[0]:.2f} times"
    )


if __name__ == "__main__":
    main()
