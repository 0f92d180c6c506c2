"""CSV: a row per figure, for a spreadsheet or a data frame."""

from __future__ import annotations

import csv
import io

from helmbench_common.formats.inert import inert
from judge.schema import Figure, Scorecard
from judge.wording import no_formula
from leaderboard.exports.headline import Named, figures
from leaderboard.schema import Submission

COLUMNS = ["figure", "title", "unit", "value", "low", "high", "n", "clusters", "unscored", "note"]


def table(state: str, submission: Submission, card: Scorecard) -> str:
    """CSV, a row per figure and floor, with what identifies the run on each; empty where there is no value."""
    identity = _identity(state, submission, card)
    out = io.StringIO()
    writer = csv.DictWriter(out, [*COLUMNS, *identity], lineterminator="\n")
    writer.writeheader()
    for named in [*figures(card), *_floors(card)]:
        row = {**_row(named), **identity}
        # A model's revision is whatever its submitter wrote; a number below 0 stays a number.
        writer.writerow({k: no_formula(inert(v)) if isinstance(v, str) else v for k, v in row.items()})
    return out.getvalue()


def _identity(state: str, submission: Submission, card: Scorecard) -> dict[str, str | int | None]:
    model, data = submission.model, submission.dataset
    return {
        "state": state,
        "organization": model.organization,
        "model": model.name,
        "revision": model.revision,
        "access": model.access,
        "relation": model.relation,
        "version": data.version,
        "score_hash": data.score_hash,
        "tier": data.tier,
        "samples": data.samples,
        "repeats": submission.generation.repeats,
        "judge": card.judge.name,
        "judge_prompt_hash": card.judge.prompt_hash,
        "submitted": submission.submitted,
    }


def _floors(card: Scorecard) -> list[Named]:
    return [
        Named(
            f"floor: {f.name}",
            "",
            "rate",
            Figure(value=f.value, low=f.low, high=f.high, clusters=f.messages),
            f"{f.state}; threshold {f.threshold:g}; one-sided limits",
        )
        for f in card.floors
    ]


def _row(named: Named) -> dict[str, str | float | int | None]:
    f, counted = named.figure, bool(named.title)  # a floor has no title, and counts messages only
    return {
        "figure": named.name,
        "title": named.title,
        "unit": named.unit,
        "value": f.value,
        "low": f.low,
        "high": f.high,
        "n": f.n if counted else None,
        "clusters": f.clusters,
        "unscored": f.unscored if counted else None,
        "note": named.note,
    }
