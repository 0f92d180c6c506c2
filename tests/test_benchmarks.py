"""Every script of tests/benchmarks runs: at its smallest size, in a process of its own, as it is typed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = sorted((ROOT / "tests" / "benchmarks").glob("*.py"))


class Smallest(NamedTuple):
    """The arguments that make a script quick, and a line with a figure for each part that it measures."""

    arguments: str
    figures: tuple[str, ...]


SMALLEST = {
    "audit": Smallest(
        "--conversations 60",
        (
            r"^60 conversations$",
            r"dangers found (\d+) of \1, false 0",
            r"peak memory \d+ MB",
            r"link 0 \(\d+ planted\), phone 0 \(\d+ planted\), e-mail 0 \(\d+ planted\)",
        ),
    ),
    "corpus": Smallest(
        "--sizes 200 400 --jobs 1",
        (r"corpus +200 .* near [\d.]+% of 20 ", r"corpus +400 .* s CPU ", r"grew [\d.]+-fold from 200"),
    ),
    "gap": Smallest("--draws 1", (r"^crisis +7 of 663 +-\d", r"^control +171 of 855 +-\d")),
    "headroom": Smallest(
        "--seeds 1 --icc 0.2",
        (
            r"^0\.20 +[\d.]+ +[\d.]+$",
            r"tokens of core, prompts and replies: [\d,]+ without, [\d,]+ with: 1\.\d\d times",
        ),
    ),
    "inspect_overhead": Smallest(
        "--samples 12 --rounds 1", (r"plain +[\d.]+ ms +[\d.]+ s +\d+ MB +12$", r"ours +[\d.]+ ms ", r"ratio +[\d.]+$")
    ),
    "judge_engine": Smallest(
        "--requests 40 --latency 0.05 --tries 1 --memory 40",
        (r"ours +\d+ requests/s", r"plain +\d+ requests/s", r"memory, +40 requests: peak [\d.]+ MB"),
    ),
    "linear": Smallest(
        "--size 4000 --only corpora.mask rules.conduct --units x 7",
        (r"corpora\.mask, a number +'[x7]' +4,000 +[\d.]+ s ", r"^8 pairs .*, superlinear: 0$"),
    ),
    "nulls": Smallest(
        "--pairs 2 --tier lite --loss 0",
        (r"^lite +0 +0\.20 +0\.80 +[\d.]+ % +[\d.]+ % +[\d.]+ %  P1-B1, ", r"2 pairs each, \d+ s"),
    ),
    "offline_judge": Smallest(
        "--replies 100", (r"offline-\d+\) +\d+ replies/s", r"scikit-learn's table +\d+ replies/s +\(100 of 100 ")
    ),
    "planted": Smallest(
        "--seeds 2 --jobs 1 --icc 0.2 --design a --kind rates floors levels",
        (
            r"composite +[\d.]+ +[+-][\d.]+ ",
            r"smallest difference of the composite +printed [\d.]+, needed [\d.]+: ratio [\d.]+",
            r"replies with a harm incident +passed +[\d.]+ ",
            r"levels told apart: mean [\d.]+",
            r"2 seeds per cell, \d+ s",
        ),
    ),
    "policies": Smallest(
        "--tier lite",
        (r"handoff +nothing +table +-[\d.]+ ", r"who reads nothing: composite at most -[\d.]+ .* asked: 5, 12, 2"),
    ),
    "ratings": Smallest("--models 1 --messages 20", (r"ours +[\d.]+", r"pandas +[\d.]+", r"the tables are equal")),
    "scale": Smallest(
        "--sizes 1000 --resamples 2", (r"1,000 +200 +library +[\d.]+ ", r"1,000 +200 +baseline +[\d.]+ .* 2 resamples")
    ),
    "task_overhead": Smallest(
        "--samples 50 --rounds 1 --tier lite", (r"our task.* [\d.]+ +\d+ +\d+", r"plainest .* 50$", r"ratio +[\d.]+")
    ),
    "weights": Smallest("--tier lite", (r"is perfect +100\.0", r"harm at twice +0\.[\d]+ +\d+")),
    "tiers": Smallest("--samples 2", (r"core 2: \d+, full: \d+", r"P1-B1 .* 2: [\d.]+")),
}


# These take three seconds or more; mypy and the soak tests hold them.
SLOW = {
    "gap",
    "audit",
    "headroom",
    "inspect_overhead",
    "judge_engine",
    "nulls",
    "planted",
    "policies",
    "scale",
    "task_overhead",
}
SLOW |= {"weights"}


@pytest.mark.parametrize(
    "script",
    [pytest.param(s, marks=pytest.mark.soak(short=0, full=1) if s.stem in SLOW else []) for s in SCRIPTS],
    ids=lambda p: p.stem,
)
def test_a_benchmark_runs_at_its_smallest_size_and_prints_its_figures(
    script: Path, dataset: Path, tmp_path: Path
) -> None:
    """From any directory, on a built dataset, without a network or a key: exit code 0, and each figure."""
    assert script.stem in SMALLEST, f"{script.name} is new: name its smallest size and its figures here"
    smallest = SMALLEST[script.stem]
    done = subprocess.run(
        [sys.executable, str(script), *smallest.arguments.split()],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"HELMBENCH_DATASET": str(dataset)},
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    missing = [f for f in smallest.figures if not re.search(f, done.stdout, re.MULTILINE)]
    assert missing == [], done.stdout


def test_no_size_is_named_for_a_script_that_is_gone() -> None:
    """What is listed here exists."""
    assert set(SMALLEST) == {p.stem for p in SCRIPTS}
