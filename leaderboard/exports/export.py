"""Which submission may leave in which form, and the files that it gives."""

from __future__ import annotations

import re
from pathlib import Path

from dataset_builder.release import Release
from helmbench_common.files import write_whole
from judge.schema import Scorecard
from leaderboard.exports import every_eval_ever, figures_csv, hub
from leaderboard.exports.formats import Format
from leaderboard.exports.headline import ExportError
from leaderboard.schema import Submission, Verified
from leaderboard.verify.verify import verify


def export_to(
    out: Path,
    submission: Path,
    form: Format,
    release: Release,
    dataset_repo: str | None = None,
    dataset_revision: str | None = None,
    demo: bool = False,
) -> list[Path]:
    """Verifies a submission, and writes its export below `out`; returns the files. Nothing is uploaded.

    Raises:
        RunError: no such submission. ExportError: as `export`. OSError: the disk.
    """
    files = export(verify(submission, release), form, release, dataset_repo, dataset_revision, demo)
    for name, text in files.items():
        write_whole(out / name, text)
    return [out / name for name in files]


def export(
    verified: Verified,
    form: Format,
    release: Release,
    dataset_repo: str | None = None,
    dataset_revision: str | None = None,
    demo: bool = False,
) -> dict[str, str]:
    """File name (a relative path) → text. The same submission gives the same bytes.

    `dataset_repo`: the dataset's id on the Hub, such as org/helmbench; `dataset_revision`: the commit there.
    `demo`: whether a demo may leave, every file of it marked in its name and its text.

    Raises:
        ExportError: refused, a demo without `demo`, or a submission that has no place in this form.
    """
    submission, card = _may_leave(verified, demo)
    if "+" in submission.dataset.version and form != "csv":
        raise ExportError(
            f"{verified.path}: version {submission.dataset.version} is not the published benchmark; only its "
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
        return {f"{marked}.csv": figures_csv.table(verified.state, submission, card)}
    if form == "hub":
        return {f".eval_results/{marked}.yaml": hub.results(verified, submission, card, dataset_repo, dataset_revision)}
    return every_eval_ever.files(verified, submission, card, release, marked, dataset_repo, dataset_revision)


def _may_leave(verified: Verified, demo: bool) -> tuple[Submission, Scorecard]:
    if verified.state == "refused" or verified.submission is None or verified.scorecard is None:
        first = f", first {verified.problems[0].kind}" if verified.problems else ""
        raise ExportError(
            f"{verified.path}: was refused ({len(verified.problems)} problems{first}); `helmbench verify` says why"
        )
    if verified.state == "demo" and not demo:
        raise ExportError(
            f"{verified.path}: is a demo, judged by the offline judge, and no result; --demo exports it with "
            "every file marked"
        )
    return verified.submission, verified.scorecard
