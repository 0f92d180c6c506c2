"""`judge verify`: submissions against a release; everything that is wrong with them, one line each.

Usage: python -m judge verify SUBMISSION … [--dataset DIR] [--json FILE]
Exit code 0: all are verified, or demos; 1: one is refused; 2: bad usage.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from dataset_builder.files import write_whole
from dataset_builder.release import open_release
from leaderboard.public import hidden
from leaderboard.schema import Problem, Verified
from leaderboard.verify.verify import verify

MEANING = {
    "verified": "everything that can be made again is what it says",
    "demo": "everything that can be made again is what it says; the offline judge read it, so it is shown "
    "apart and never ranked",
    "refused": "not what it says, or not such as the board takes",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `judge verify`."""
    parser.add_argument(
        "submissions", nargs="+", type=Path, metavar="SUBMISSION", help="a folder that scripts/make_submission.py wrote"
    )
    parser.add_argument("--dataset", type=Path, metavar="DIR", help="the built dataset (default: as for `judge score`)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write what was found as JSON")


def run(options: argparse.Namespace) -> int:
    """Prints what verifying came to; returns the exit code.

    Raises:
        RunError, ReleaseError: no such submission or dataset.
    """
    release = open_release(options.dataset)
    results: list[dict[str, Any]] = []
    for folder in options.submissions:
        verified = verify(folder, release)
        sys.stdout.write(text(verified) + "\n")
        results.append(record(verified))
    if options.json:
        write_whole(options.json, json.dumps(results, indent=1) + "\n")
    return int(any(r["state"] == "refused" for r in results))


def text(verified: Verified) -> str:
    """The report of one submission for a terminal, where nothing foreign can move the cursor."""
    lines = [f"{verified.path}: {verified.state}: {MEANING[verified.state]}"]
    if verified.submission and verified.scorecard:
        model, pinned, composite = verified.submission.model, verified.submission.dataset, verified.scorecard.composite
        value = "no composite" if composite.value is None else f"composite {composite.value:.1f}"
        lines.append(
            f"  {model.organization}/{model.name}, {pinned.version} {pinned.tier}, judge "
            f"{verified.submission.judge.name}, {value}"
        )
    lines += [f"  {line(p)}" for p in verified.problems]
    lines += [f"  flag: {line(p)}" for p in verified.flags]
    return "\n".join("".join("\ufffd" if hidden(c) else c for c in one) for one in lines)


def line(problem: Problem) -> str:
    """`kind: where: message`."""
    return ": ".join(part for part in (problem.kind, problem.where, problem.message) if part)


def record(verified: Verified) -> dict[str, Any]:
    """What was found as plain values, without a reply or a verdict."""
    return {
        "path": verified.path,
        "state": verified.state,
        "problems": [vars(p) for p in verified.problems],
        "flags": [vars(p) for p in verified.flags],
        "composite": verified.scorecard.composite.model_dump() if verified.scorecard else None,
    }
