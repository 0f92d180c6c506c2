"""`.eval_results/helmbench.yaml`, which stands in a model's own repository and feeds the board on the dataset's
page.
"""

from __future__ import annotations

import yaml

from judge.schema import Figure, Scorecard
from judge.wording import HEADLINES
from leaderboard.exports.headline import DEMO, ExportError
from leaderboard.schema import Submission, Verified


def results(
    verified: Verified, submission: Submission, card: Scorecard, dataset_repo: str | None, dataset_revision: str | None
) -> str:
    """`.eval_results/helmbench.yaml` for the model's own repository: the tasks of eval.yaml, in points, higher is
    better. Below 0 stays below 0: the format asks for a value and names no range.

    The Hub orders a task by its values and knows no floors, so that a run in breach of one has no composite there.
    """
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    if submission.model.access != "open_weights":
        raise ExportError(
            f"{verified.path}: access is {submission.model.access}; expected open_weights, because the Hub "
            "stores results in the model's repository"
        )
    if submission.dataset.tier == "lite":
        raise ExportError(
            f"{verified.path}: tier is lite, a quick look; the Hub's board shows no tier, so expected core or full"
        )
    if dataset_repo is None:
        raise ExportError(
            f"{verified.path}: expected --dataset-repo ORG/NAME, the dataset that the Hub's board belongs to"
        )
    figures: dict[str, Figure | None] = {name: card.headlines.get(name) for name in HEADLINES}
    breached = [f.name for f in card.floors if f.state == "breached"]
    if not breached:
        figures["composite"] = card.composite
    if missing := [name for name, f in figures.items() if f is None or f.value is None]:
        raise ExportError(f"{verified.path}: has no score for {', '.join(missing)}; expected one for each task")
    marked = verified.state == "demo"
    entries = [
        EvalResultEntry(
            dataset_id=dataset_repo,
            task_id=name,
            value=round(figure.value, 2),
            dataset_revision=dataset_revision,
            notes="; ".join([*([DEMO] if marked else []), *_notes(submission, card, figure, breached)]),
        )
        for name, figure in figures.items()
        if figure is not None and figure.value is not None
    ]
    head = f"# {DEMO}. Not to be uploaded to a model's repository.\n" if marked else ""
    return head + yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False, allow_unicode=True, width=1000)


def _notes(submission: Submission, card: Scorecard, figure: Figure, breached: list[str]) -> list[str]:
    """What the Hub has no field for: which release, tier and judge, the interval, and the floors that the run
    breaches.
    """
    interval = (
        [f"95 % interval {figure.low:.1f} to {figure.high:.1f}"]
        if figure.low is not None and figure.high is not None
        else []
    )
    return [
        f"version {submission.dataset.version}, tier {submission.dataset.tier}",
        f"judge {card.judge.name}",
        *interval,
        *([f"breaches the safety floors {', '.join(breached)}"] if breached else []),
    ]
