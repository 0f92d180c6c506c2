"""A run with its log and its scores, held against what the board takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from dataset_builder.release import Release
from judge.schema import Scorecard, Verdict
from leaderboard.submit.logged import Logged, read_logged
from replies.errors import RunError
from replies.opening import SCORED, logged
from replies.run import Run

NO_LOG = (
    "replies that were collected without a runner can be scored and not submitted: the board needs "
    "the log of lm-eval or of Inspect, which holds each request as it was sent"
)
LISTED = 20  # problems of the log that are named


class Ready(NamedTuple):
    """A run with all that `helmbench score` wrote beside it, into its home."""

    run: Run
    home: Path
    logged: Logged
    card: Scorecard
    verdicts: list[Verdict]


def read_ready(run_dir: Path, release: Release) -> Ready:
    """The run, its log and its scorecard.

    Raises:
        RunError: with every reason why this run can't be submitted.
    """
    if run_dir.suffix in (".jsonl", SCORED):
        raise RunError(f"{run_dir}: {NO_LOG}")
    # Replies to messages that stand alone, and labels for them, may stand in the same log; the board is of the
    # benchmark.
    read, home = logged(run_dir, release)
    run = replace(read, messages=[], triage={})
    if not run.replies:
        raise RunError(
            f"{run.path}: can't be submitted:\nit holds no benchmark task; run one of helmbench, "
            "helmbench_lite, helmbench_full"
        )
    problems = list(_not_taken(run, release))
    log = read_logged(run.path, release, run.replies)
    problems += log.problems[:LISTED]
    problems += [f"and {len(log.problems) - LISTED} more"] if len(log.problems) > LISTED else []
    card, verdicts = _scores(home, release, problems)
    if problems or card is None:
        raise RunError("\n".join([f"{run.path}: can't be submitted:", *problems]))
    return Ready(run, home, log, card, verdicts)


def _not_taken(run: Run, release: Release) -> Iterator[str]:
    """What the board doesn't take, whatever the replies are."""
    if run.limited:
        yield "it was made with --limit or --samples; a submission holds every sample of its tier"
    elif lacking := {r.id for r in release.rows.values() if run.tier in r.tiers} - run.ids:
        yield f"it lacks {len(lacking)} samples of tier {run.tier}, such as {min(lacking)}; run the whole group"
    if run.model.system_instruction:
        yield "it was made with --system_instruction; the board compares models under the benchmark's own prompts"
    if run.model.condition:
        yield (
            f"it was made with a system prompt of its own ({run.model.condition.file}); the board compares "
            "models under the benchmark's own prompts"
        )


def _scores(home: Path, release: Release, problems: list[str]) -> tuple[Scorecard | None, list[Verdict]]:
    if not ((home / "scorecard.json").is_file() and (home / "verdicts.jsonl").is_file()):
        problems.append("it is not scored (no scorecard.json or verdicts.jsonl); score it with `helmbench score`")
        return None, []
    try:
        card = Scorecard.model_validate_json((home / "scorecard.json").read_bytes())
        verdicts = [Verdict.model_validate_json(line) for line in (home / "verdicts.jsonl").read_bytes().splitlines()]
    except ValidationError as error:
        problems.append(
            f"its scorecard.json or verdicts.jsonl can't be read ({error.errors()[0]['msg']}); score it again"
        )
        return None, []
    if card.dataset.score_hash != release.manifest.score_hash:
        problems.append(
            f"it was scored on dataset {card.dataset.version}; score it again on {release.manifest.version}"
        )
    return card, verdicts
