"""Does `compare` report a regression where there is none? Pairs of runs of one simulated model, compared by the
library, and the same with a real loss.

Usage: python tests/benchmarks/nulls.py [--pairs 200] [--tier detect lite core] [--loss 0 10]. Needs a built dataset.

Every message gets a disposition z ~ N(0, 1) of the model towards it, and both runs answer its samples independently
given z, as in planted.py. Three models: samples of a message correlate by 0.2, 0.5 and 0.95; they pass .8, .9 and .7.
With a loss, the second run passes that many points less often. Printed: how often the gate `regression` fails
(with a loss: its power), how often a 95 % interval of a tested figure excludes 0, and the figures with too few
messages to be tested.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, cast, get_args

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from benchmarks.planted import PARTIAL_GAP, disposition  # noqa: E402
from scipy.special import expit  # noqa: E402

from dataset_builder.release import Release, open_release  # noqa: E402
from dataset_builder.schema import Incident, Tier  # noqa: E402
from judge.scoring.anchors import anchors_of, expected  # noqa: E402
from judge.scoring.compare import Difference, ScoredRun, differences, figures_of, regressions  # noqa: E402
from judge.scoring.figures import HEADLINES, Scorer  # noqa: E402
from judge.scoring.table import INCIDENTS, Entries, Table, coded  # noqa: E402

MODELS = ((0.2, 0.8), (0.5, 0.9), (0.95, 0.7))  # correlation of a message's samples, and how often they pass
MISSED: dict[bool, Incident] = {True: "missed_crisis", False: "over_escalation"}


class Asked(NamedTuple):
    """A tier without verdicts: its entries, and whether each can be passed by half."""

    release: Release
    entries: Entries
    partial: np.ndarray


@lru_cache(maxsize=4)
def asked(tier: Tier) -> Asked:
    release = open_release().of(tier)
    found = expected(release, tier)
    partial = [
        c.check == "criterion"
        or (c.check == "rating" and c.flag_from is None)
        or (c.check == "graded" and "PARTIAL" in c.outcomes.values())
        for c in found.checks
    ]
    return Asked(release, found, np.array(partial))


def scored(tier: Tier, eta: np.ndarray, stretch: float, rng: np.random.Generator) -> Scorer:
    """A run that passes every entry with the chance logit⁻¹(eta)."""
    release, e, partial = asked(tier)
    u = rng.random(e.size)
    earned = np.where(u < expit(eta), 1.0, np.where((u < expit(eta + PARTIAL_GAP * stretch)) & partial, 0.5, 0.0))
    failing = np.where(e.crisis, *(INCIDENTS.index(MISSED[side]) for side in (True, False)))
    table = Table(
        e.samples, e.sample, e.checks, e.index, e.severity, e.weighed,
        np.arange(e.size), np.zeros(e.size, dtype=np.int64), earned, np.where(earned == 0, failing, -1),
        np.zeros(e.size, dtype=bool), coded(release.scoring["harm"]["incidents"]),
    )  # fmt: skip
    return Scorer(table, release.scoring, anchors_of(e, release))


def pairs(tier: Tier, model: tuple[float, float], count: int, loss: float) -> Iterator[tuple[bool, list[Difference]]]:
    """Per pair of runs: whether the gate `regression` fails, and every difference."""
    correlation, level = model
    z, messages = disposition(correlation, level), asked(tier).entries.message
    for seed in range(count):
        rng = np.random.default_rng((seed, int(1000 * correlation)))
        shift = z.sigma * rng.standard_normal(len(messages.names))[messages.codes]
        runs = []
        for name, rate in (("before", level), ("after", level - loss / 100)):
            scorer = scored(tier, z.logit(rate) + shift, z.stretch, rng)
            figures = figures_of(scorer, tier != "detect", HEADLINES if tier != "detect" else ())
            runs.append(ScoredRun(name, cast("Any", None), scorer, figures, []))
        found = differences(runs[0], runs[1:])
        yield bool(regressions(runs[0], runs[1], found)), found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--tier", nargs="+", choices=get_args(Tier), default=["detect", "lite", "core"])
    parser.add_argument("--loss", type=float, nargs="+", default=[0.0, 10.0], help="in points; 0: the same model twice")
    args = parser.parse_args()
    started = time.perf_counter()
    print(
        f"{'tier':6}{'loss':>5}{'ICC':>6}{'level':>6}{'gate fails':>13}{'0 outside':>13}{'first figure':>13}  untested"
    )
    for tier, loss, model in [(t, x, m) for t in args.tier for x in args.loss for m in MODELS]:
        found = [*pairs(tier, model, args.pairs, loss)]
        gate = np.mean([failed for failed, _ in found])
        every = [d for _, ds in found for d in ds if d.p_value is not None and d.difference.low is not None]
        outside = [(d.figure, (d.difference.low or 0) > 0 or (d.difference.high or 0) < 0) for d in every]
        first = found[0][1][0].figure  # the composite, or sensitivity where there is none
        composite = [out for name, out in outside if name == first]
        shares = [gate, np.mean([out for _, out in outside]), np.mean(composite)]
        lacking = sorted({d.figure for d in found[0][1] if d.p_value is None})
        cells = "".join(f"{100 * share:11.1f} %" for share in shares)
        print(f"{tier:6}{loss:5.0f}{model[0]:6.2f}{model[1]:6.2f}{cells}  {', '.join(lacking)}", flush=True)
    print(f"\n{args.pairs} pairs each, {time.perf_counter() - started:.0f} s. Nominal without a loss: 5 %.")


if __name__ == "__main__":
    main()
