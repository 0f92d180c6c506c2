"""`.eval_results/helmbench.yaml`, which stands in a model's own repository and feeds the board on the dataset's
page.
"""

from __future__ import annotations

import yaml

from dataset_builder.schema import PILLARS
from judge.schema import Figure, Scorecard
from leaderboard.exports.headline import DEMO, ExportError
from leaderboard.schema import Submission, Verified


def results(
    verified: Verified, submission: Submission, card: Scorecard, dataset_repo: str | None, dataset_revision: str | None
) -> str:
    """`.eval_results/helmbench.yaml` for the model's own repository: one task per pillar as eval.yaml names them, 0 to
    100, higher is better.
    """
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    if submission.model.access != "open_weights":
        raise ExportError(
            f"{verified.path}: access is {submission.model.access}; the Hub keeps results in the model's own "
            "repository, which only open weights have there"
        )
    if submission.dataset.tier == "lite":
        raise ExportError(
            f"{verified.path}: tier is lite, a quick look; the Hub's board shows no tier, so expected core or full"
        )
    if dataset_repo is None:
        raise ExportError(
            f"{verified.path}: expected --dataset-repo ORG/NAME, the dataset that the Hub's board belongs to"
        )
    if missing := [p for p in PILLARS if p not in card.pillars or card.pillars[p].value is None]:
        raise ExportError(f"{verified.path}: has no score for {', '.join(missing)}; expected one for each pillar")
    marked = verified.state == "demo"
    entries = [
        EvalResultEntry(
            dataset_id=dataset_repo,
            task_id=f"pillar{code[1:]}",
            value=max(0.0, round(figure.value or 0.0, 2)),
            dataset_revision=dataset_revision,
            notes=("; ".join([*([DEMO] if marked else []), *_notes(submission, card, figure)])),
        )
        for code, figure in sorted(card.pillars.items())
    ]
    head = f"# {DEMO}. Not to be uploaded to a model's repository.\n" if marked else ""
    return head + yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False, allow_unicode=True, width=1000)


def _notes(submission: Submission, card: Scorecard, figure: Figure) -> list[str]:
    """What the Hub has no field for: which release, tier and judge, the interval, and a score that its scale can't
    show.
    """
    interval = (
        [f"95 % interval {figure.low:.1f} to {figure.high:.1f}"]
        if figure.low is not None and figure.high is not None
        else []
    )
    below = (
        [f"scored {figure.value:.1f}, worse than not reading the message, and shown as 0"]
        if figure.value is not None and figure.value < 0
        else []
    )
    return [
        f"version {submission.dataset.version}, tier {submission.dataset.tier}",
        f"judge {card.judge.name}",
        *interval,
        *below,
    ]
