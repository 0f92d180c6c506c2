"""What `helmbench compare` does beside the figures: scored runs under their names, and the page with their replies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dataset_builder.release import Release
from helmbench_common.files import write_whole
from judge.replies.opening import own_prompt, run_at
from judge.replies.schema import RunError
from judge.report.comparison import Said, page
from judge.scoring.compare import Comparison, ScoredRun
from judge.scoring.stored import Scoring


def write_page(
    out: Path, found: Comparison, runs: Sequence[ScoredRun], scorings: Sequence[Scoring], release: Release
) -> None:
    """Writes the comparison as a page. `runs`, `scorings`: in the order of `found.runs`."""
    said = [said_in(scoring, run, release) for scoring, run in zip(scorings, runs, strict=True)]
    write_whole(out, page(found, runs, said, release.rows, release.criteria))


def said_in(scoring: Scoring, run: ScoredRun, release: Release) -> Said:
    """A scored run's replies and prompt, as far as its folder has them; why not, where they can't be shown."""
    home, condition = scoring.home, run.card.model.condition
    prompt = own_prompt(home, condition, release) if condition else None
    try:
        replies = run_at(home, release, scoring.results).replies
    except RunError as error:
        return Said(prompt=prompt, lacking=str(error))
    there = {(r.id, r.repeat) for r in replies}
    if unknown := {(v.id, v.repeat) for v in run.verdicts} - there:
        return Said(prompt=prompt, lacking=f"{home}: was scored on other replies, such as to {min(unknown)[0]}")
    return Said(replies, prompt)
