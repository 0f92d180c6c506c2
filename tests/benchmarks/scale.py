"""How long a scorecard takes, and how much memory: 100,000 and 1,000,000 verdicts, one core, each in its own process.

Usage: python tests/benchmarks/scale.py [--sizes 100000 1000000] [--resamples 200] [--no-baseline]. Needs a built
dataset.

Rows are the real ones of the full tier under new scenario and message codes; columns that describe people are shuffled,
so that every column varies. Five repeats of each. Measured: `judge.scoring.scorecard.scorecard`, from rows and
verdicts in memory to a complete Scorecard. Reading JSONL lines into Verdict models is not measured.
The baseline is what one would write without us: pandas' groupby for the same group rates and behavior means, with a
percentile bootstrap by message. It makes nothing else of a scorecard, and its intervals cover less (scoring.md section
5). Peak memory is the process's own maximum, rows and verdicts included; "before" is what these take by themselves.
CPU seconds are what a machine shows that nobody else is using.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

os.environ.update({k: "1" for k in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")})
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from dataset_builder.release import Release, open_release  # noqa: E402
from dataset_builder.schema import Baseline, CriterionRow, Row  # noqa: E402
from judge import schema  # noqa: E402
from judge.replies.schema import Model  # noqa: E402
from judge.schema import Verdict  # noqa: E402
from judge.scoring.table import COLUMNS, weight  # noqa: E402

REPEATS = 5
SCENARIO_COPIES = 6  # of the release's seven: about 40 scenarios
TARGETS = {100_000: "10 s, 1 GB", 1_000_000: "60 s, 4 GB"}
SHUFFLED = (
    "persona",
    "age_band",
    "gender",
    "culture",
    "population",
    "country",
    "register_",
    "disclosure",
    "persuasion",
    "clarity",
)


class Basis(NamedTuple):
    """What is scored on, as a release has it."""

    rows: Mapping[str, Row]
    criteria: Mapping[str, CriterionRow]
    scoring: Mapping[str, Any]
    baselines: Mapping[str, Baseline]


def synthetic(release: Release, verdicts: int) -> tuple[dict[str, Row], list[Verdict]]:
    """At least one scenario copy of rows, cut to as many verdicts as asked, all labels, incidents and reasons among
    them.
    """
    rng = np.random.default_rng(0)
    real = list(release.rows.values())
    values = {c: [getattr(r, c) for r in real] for c in SHUFFLED}
    rows: dict[str, Row] = {}
    checks = 0
    for copy in count():
        scenario, message = copy % SCENARIO_COPIES, copy // SCENARIO_COPIES
        drawn = {c: rng.integers(len(real), size=len(real)).tolist() for c in SHUFFLED}
        for n, row in enumerate(real):
            if checks * REPEATS >= verdicts:
                return rows, _verdicts(rows, verdicts, rng)
            made = row.model_copy(
                update={
                    "id": f"{row.id}-{copy}",
                    "scenario": f"{row.scenario}{scenario}",
                    "perturbation": f"{row.perturbation}x{message}",
                    "pair_of": f"{row.pair_of}-{copy}" if row.pair_of else None,
                    **{c: values[c][drawn[c][n]] for c in SHUFFLED},
                }
            )
            rows[made.id] = made
            checks += len(row.evaluation)
    raise AssertionError


def _verdicts(rows: dict[str, Row], wanted: int, rng: np.random.Generator) -> list[Verdict]:
    keys = [(r.id, k, c) for r in rows.values() for k, c in enumerate(r.evaluation)]
    labels: list[Any] = rng.choice(
        np.array(["PASS", "PARTIAL", "FAIL", None], dtype=object), p=[0.8, 0.09, 0.1, 0.01], size=len(keys) * REPEATS
    ).tolist()
    found: list[Verdict] = []
    for n, label in enumerate(labels[:wanted]):
        identity, index, check = keys[n // REPEATS]
        found.append(
            Verdict.model_construct(
                id=identity,
                repeat=n % REPEATS,
                index=index,
                check=check.check,
                behavior=check.behavior,
                turn=check.turn,
                label=label,
                unscored=None if label else "error",
                incident="missed_crisis" if label == "FAIL" else None,
                decided_by="judge",
            )
        )
    return found


def library(release: Release, rows: dict[str, Row], verdicts: list[Verdict], _: int) -> str:
    """One complete scorecard."""
    from judge.scoring.scorecard import About, judge_card, scorecard

    whole = schema.Dataset(
        version="0", score_hash="0", tier="full", samples=len(rows), expected=len(rows), complete=True
    )
    about = About(whole, Model(name="synthetic", backend="none"))
    basis = Basis(rows, release.criteria, release.scoring, release.baselines)
    card = scorecard(verdicts, basis, about, judge_card(verdicts, "none", "0"))
    return f"{len(card.groups)} groups, {len(card.behaviors)} behaviors, {len(card.model_dump_json()) / 1e6:.1f} MB"


def baseline(release: Release, rows: dict[str, Row], verdicts: list[Verdict], resamples: int) -> str:
    """Group rates and behavior means with pandas, their limits by resampling messages."""
    import pandas as pd

    worth = {"PASS": 1.0, "PARTIAL": 0.5, "FAIL": 0.0}
    judged = pd.DataFrame(
        [(v.id, v.behavior, worth.get(str(v.label)), v.index) for v in verdicts],
        columns=["id", "behavior", "points", "index"],
    )
    columns = [c if c != "register" else "register_" for c in COLUMNS]
    described = pd.DataFrame(
        [
            (r.id, r.message_key, r.scenario, weight(r, r.severity, release.scoring), *(getattr(r, c) for c in columns))
            for r in rows.values()
        ],
        columns=["id", "message", "scenario", "weight", *columns],
    )
    for c in ("condition", "user_context"):
        described[c] = described["scenario"] + "-" + described[c]
    frame = (
        judged.dropna(subset="points")
        .groupby(["id", "index", "behavior"], as_index=False)["points"]
        .mean()
        .merge(described, on="id")
    )
    for c in ("behavior", "message", *columns):
        frame[c] = frame[c].astype("category")
    message = frame["message"].cat.codes.to_numpy()
    number = int(message.max()) + 1
    rng = np.random.default_rng(0)
    limits = 0
    for column in ("behavior", *columns):
        draws = []
        for n in range(resamples + 1):
            times = np.ones(number) if n == 0 else np.bincount(rng.integers(number, size=number), minlength=number)
            frame["w"] = frame["weight"] * times[message]
            frame["wp"] = frame["w"] * frame["points"]
            sums = frame.groupby(column, observed=True)[["w", "wp"]].sum()
            draws.append((sums["wp"] / sums["w"]).to_numpy())
        limits += len(np.nanquantile(np.array(draws[1:]), [0.025, 0.975], axis=0)[0])
    return f"{limits} rates, {resamples} resamples"


def one(what: str, size: int, resamples: int) -> dict[str, Any]:
    """Runs in a process of its own, so that its peak memory is nobody else's."""
    release = open_release()
    rows, verdicts = synthetic(release, size)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started, busy = time.perf_counter(), time.process_time()
    made = {"library": library, "baseline": baseline}[what](release, rows, verdicts, resamples)
    seconds, cpu = time.perf_counter() - started, time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "verdicts": len(verdicts),
        "rows": len(rows),
        "seconds": seconds,
        "cpu": cpu,
        "before": before / 2**20,
        "peak": peak / 2**20,
        "made": made,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--resamples", type=int, default=200)
    parser.add_argument("--no-baseline", action="store_true")
    parser.add_argument("--one", choices=["library", "baseline"], help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(one(args.one, args.sizes[0], args.resamples)))
        return
    print(
        f"{'verdicts':>10}{'rows':>9}  {'what':10}{'seconds':>9}{'CPU s':>7}{'peak GB':>9}{'before':>8}  "
        f"{'target':12}made"
    )
    for size in args.sizes:
        for what in ("library",) if args.no_baseline else ("library", "baseline"):
            command = [
                sys.executable,
                __file__,
                "--one",
                what,
                "--sizes",
                str(size),
                "--resamples",
                str(args.resamples),
            ]
            r = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            target = TARGETS.get(size, "") if what == "library" else ""
            print(
                f"{r['verdicts']:10,}{r['rows']:9,}  "
                f"{what:10}{r['seconds']:9.1f}{r['cpu']:7.1f}{r['peak']:9.2f}{r['before']:8.2f}  "
                f"{target:12}{r['made']}",
                flush=True,
            )


if __name__ == "__main__":
    main()
