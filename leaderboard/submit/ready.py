"""A run with its log and its scores, held against what the board takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from dataset_builder.release import Release
from judge.replies.opening import SCORED, home_of, log_at, run_in
from judge.replies.run import Run
from judge.replies.schema import RunError
from judge.schema import Scorecard, Verdict
from judge.scoring.stored import VERDICTS, Scoring, find, verdicts_in
from leaderboard.submit.logged import Logged, read_logged

NO_LOG = (
    "replies that were collected without a runner can be scored and not submitted: the board needs "
    "the log of lm-eval or of Inspect, which holds each request as it was sent"
)
LISTED = 20  # problems of the log that are named


class Ready(NamedTuple):
    """A run with all that `helmbench score` wrote beside it."""

    run: Run
    logged: Logged
    scoring: Scoring
    verdicts: list[Verdict]

    @property
    def card(self) -> Scorecard:
        return self.scoring.card


def read_ready(run_dir: Path, release: Release) -> Ready:
    """The run, its log and its scorecard. `run_dir`: the run's folder, or that of its scores by one judge. Of several
    results files the one that was scored is taken.

    Raises:
        RunError: with every reason why this run can't be submitted.
    """
    home = home_of(run_dir)
    if run_dir.suffix == ".jsonl" or (home.suffix == SCORED and log_at(home) is None):
        raise RunError(f"{run_dir}: {NO_LOG}")
    scoring, verdicts, unread = _scores(run_dir)
    # Replies to messages that stand alone, and labels for them, may stand in the same log; the board is of the
    # benchmark.
    run = replace(run_in(home, release, scoring.results if scoring else None), messages=[], triage={})
    if not run.replies:
        raise RunError(
            f"{run.path}: can't be submitted:\nit holds no benchmark task; run one of helmbench, "
            "helmbench_lite, helmbench_full"
        )
    problems = list(_not_taken(run, release))
    logged = read_logged(run.file, release, run.replies)
    problems += logged.problems[:LISTED]
    problems += [f"and {len(logged.problems) - LISTED} more"] if len(logged.problems) > LISTED else []
    problems += [*unread, *(_other_dataset(scoring.card, release) if scoring else ())]
    if problems or scoring is None:
        raise RunError("\n".join([f"{run.path}: can't be submitted:", *problems]))
    return Ready(run, logged, scoring, verdicts)


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


def _scores(run_dir: Path) -> tuple[Scoring | None, list[Verdict], list[str]]:
    """A run's scores, its verdicts, and why they can't be read."""
    try:
        scoring = find(run_dir)
        return scoring, verdicts_in(scoring.folder / VERDICTS), []
    except RunError as error:
        return None, [], [f"its scores can't be read: {error}"]


def _other_dataset(card: Scorecard, release: Release) -> Iterator[str]:
    if card.dataset.score_hash != release.manifest.score_hash:
        yield f"it was scored on dataset {card.dataset.version}; score it again on {release.manifest.version}"
