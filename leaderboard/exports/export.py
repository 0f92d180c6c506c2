"""Whether a submission may be exported, and its files: the Hub's YAML, the CSV, or Every Eval Ever's JSON."""

from __future__ import annotations

import csv
import io
import re

import yaml

from dataset_builder.release import Release
from helmbench_common.formats.inert import inert
from judge.schema import Scorecard
from judge.wording import HEADLINES, no_formula
from leaderboard.exports import Format, every_eval_ever
from leaderboard.exports.figures import DEMO, ExportError, figures
from leaderboard.schema import Submission, Verified

COLUMNS = ["figure", "title", "unit", "value", "low", "high", "n", "clusters", "unscored", "note"]


def export(
    verified: Verified,
    form: Format,
    release: Release,
    dataset_repo: str | None = None,
    dataset_revision: str | None = None,
    demo: bool = False,
) -> dict[str, str]:
    """File name (a relative path) → text. The same submission gives the same bytes.

    `dataset_repo`: the dataset's id on the Hub, such as org/helmbench; `dataset_revision`: the commit there. `demo`:
    accept a demo; its files are marked in name and text.

    Raises:
        ExportError: a refused submission, a demo without `demo`, or one that this format can't express.
    """
    submission, card = _may_leave(verified, demo)
    if "+" in submission.dataset.version and form != "csv":
        raise ExportError(
            f"{verified.path}: version {submission.dataset.version} isn't the published benchmark; only its "
            "CSV can be written"
        )
    if dataset_repo is not None and not re.fullmatch(r"[\w.\-]+/[\w.\-]+", dataset_repo):
        raise ExportError(f"'{dataset_repo}' is not a dataset id; expected ORG/NAME, such as org/helmbench")
    if dataset_revision is not None and not re.fullmatch(r"[0-9a-f]{40}", dataset_revision):
        raise ExportError(
            f"'{dataset_revision}' is not a commit; expected the 40 hexadecimal digits that `helmbench push` printed"
        )
    marked = "helmbench-demo" if verified.state == "demo" else "helmbench"
    if form == "csv":
        return {f"{marked}.csv": figures_csv(verified.state, submission, card)}
    if form == "hub":
        return {f".eval_results/{marked}.yaml": hub_results(verified, submission, card, dataset_repo, dataset_revision)}
    return every_eval_ever.files(verified, submission, card, release, marked, dataset_repo, dataset_revision)


def _may_leave(verified: Verified, demo: bool) -> tuple[Submission, Scorecard]:
    if verified.state == "refused" or verified.submission is None or verified.scorecard is None:
        kinds = ", ".join(dict.fromkeys(p.kind for p in verified.problems))
        raise ExportError(f"{verified.path}: refused ({kinds}); run `helmbench verify` for details")
    if verified.state == "demo" and not demo:
        raise ExportError(
            f"{verified.path}: is a demo, judged by the offline judge; --demo exports it, marked as a demo"
        )
    return verified.submission, verified.scorecard


def hub_results(
    verified: Verified, submission: Submission, card: Scorecard, dataset_repo: str | None, dataset_revision: str | None
) -> str:
    """`.eval_results/helmbench.yaml` for the model's repository: the tasks of eval.yaml, in points; higher is better.

    The Hub sorts by value and knows no floors, so a run that breaches one gets no composite there.
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
    demo = verified.state == "demo"
    breached = [f.name for f in card.floors if f.state == "breached"]
    figures = {name: card.headlines.get(name) for name in HEADLINES}
    entries: list[EvalResultEntry] = []
    for name, figure in (figures if breached else figures | {"composite": card.composite}).items():
        if figure is None or figure.value is None:
            raise ExportError(f"{verified.path}: has no score for {name}; expected one for each task")
        notes = [  # what the Hub has no field for
            *([DEMO] if demo else []),
            f"version {submission.dataset.version}, tier {submission.dataset.tier}",
            f"judge {card.judge.name}",
            *([] if figure.low is None else [f"95 % interval {figure.low:.1f} to {figure.high:.1f}"]),
            *([f"breaches the safety floors {', '.join(breached)}"] if breached else []),
        ]
        value, note = round(figure.value, 2), "; ".join(notes)
        entries.append(EvalResultEntry(dataset_repo, name, value, dataset_revision=dataset_revision, notes=note))
    head = f"# {DEMO}. Not to be uploaded to a model's repository.\n" if demo else ""
    return head + yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False, allow_unicode=True, width=1000)


def figures_csv(state: str, submission: Submission, card: Scorecard) -> str:
    """CSV with a row per figure and floor, and what identifies the run on each."""
    model, data = submission.model, submission.dataset
    identity = {
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
    out = io.StringIO()
    writer = csv.DictWriter(out, [*COLUMNS, *identity], lineterminator="\n")
    writer.writeheader()
    rows: list[tuple[object, ...]] = []
    for name, title, unit, f, note, _ in figures(card):
        rows.append((name, title, unit, f.value, f.low, f.high, f.n, f.clusters, f.unscored, note))
    for floor in card.floors:
        limits = (floor.value, floor.low, floor.high)
        note = f"{floor.state}; threshold {floor.threshold:g}; one-sided limits"
        rows.append((f"floor: {floor.name}", "", "rate", *limits, None, floor.messages, None, note))
    for row in rows:
        values = {**dict(zip(COLUMNS, row, strict=True)), **identity}
        # The submitter chose the model's revision; it may look like a formula.
        writer.writerow({k: no_formula(inert(v)) if isinstance(v, str) else v for k, v in values.items()})
    return out.getvalue()
