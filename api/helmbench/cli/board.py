"""Commands for submissions and the board: `submit`, `verify`, `board`, `export`."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from helmbench.cli.common import BOARD, Dataset, Json, JsonFile, Quiet, figures, say, wrong
from helmbench.cli.endings import ending
from helmbench.cli.root import BAD_INPUT, OK, SHUT, app, exits
from leaderboard.exports.formats import Format
from leaderboard.submit.fields import FIELDS

if TYPE_CHECKING:
    from leaderboard.board.build import Step


def _said(field: str) -> Any:
    """An option for a field of `--about`."""
    return typer.Option(metavar="TEXT", help=FIELDS[field], rich_help_panel="What a run can't say of itself")


@app.command(rich_help_panel=BOARD, epilog=exits(SHUT))
def submit(
    run_dir: Annotated[
        Path,
        typer.Argument(
            metavar="RUN", help="The --output_path of an lm_eval run, or a LOG.eval of Inspect, that is scored."
        ),
    ],
    about: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="YAML with contact, model and declaration; flags go before it."),
    ] = None,
    contact_name: Annotated[str | None, _said("contact.name")] = None,
    contact_address: Annotated[str | None, _said("contact.address")] = None,
    organization: Annotated[str | None, _said("model.organization")] = None,
    model: Annotated[str | None, _said("model.name")] = None,
    revision: Annotated[str | None, _said("model.revision")] = None,
    access: Annotated[str | None, _said("model.access")] = None,
    relation: Annotated[str | None, _said("model.relation")] = None,
    family: Annotated[str | None, _said("model.family?")] = None,
    trained_on_benchmark: Annotated[str | None, _said("declaration.trained_on_benchmark")] = None,
    declaration_note: Annotated[str | None, _said("declaration.note?")] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where submissions stand.")] = Path("submissions"),
    run: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The run's folder (default: the first twelve digits of its replies' sha256)."
        ),
    ] = None,
    calibration: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="What `helmbench calibrate` measured of a judge; repeatable."),
    ] = None,
    date: Annotated[
        str | None, typer.Option(metavar="YYYY-MM-DD", help="The day of submission (default: today).")
    ] = None,
    commit: Annotated[
        str | None,
        typer.Option(metavar="COMMIT", help="Of the code that made the run (default: this checkout's)."),
    ] = None,
    dataset: Dataset = None,
    quiet: Quiet = False,
) -> int:
    """Pack a scored run as a submission, and verify it.

    Asks for nothing; what is missing is listed at once. Exit code 0: made and verified; 1: it can't be submitted, with
    every reason.

    Example: helmbench submit runs/NAME --about about.yaml
    """
    from dataset_builder.release import REPOSITORY, ReleaseError, open_release
    from judge.replies.errors import RunError
    from leaderboard.submit.about import commit_of, gather
    from leaderboard.submit.pack import make
    from leaderboard.submit.said import summary

    given = {
        "contact.name": contact_name,
        "contact.address": contact_address,
        "model.organization": organization,
        "model.name": model,
        "model.revision": revision,
        "model.access": access,
        "model.relation": relation,
        "model.family": family,
        "declaration.trained_on_benchmark": trained_on_benchmark,
        "declaration.note": declaration_note,
    }
    known, problems = gather(
        about, given, date or datetime.now(UTC).date().isoformat(), commit or commit_of(REPOSITORY)
    )
    if known is None:
        wrong("\n".join(problems))
        return SHUT
    with ending(SHUT, RunError, ReleaseError, OSError, ValueError):
        made = make(run_dir, open_release(dataset), known, out, run, calibration or [])
        say(summary(made), quiet)
    return OK


@app.command(rich_help_panel=BOARD, epilog=exits(SHUT))
def verify(
    submissions: Annotated[
        list[Path], typer.Argument(metavar="SUBMISSION", help="Folders that `helmbench submit` wrote.")
    ],
    dataset: Dataset = None,
    as_json: Json = False,
    json_file: JsonFile = None,
    quiet: Quiet = False,
) -> int:
    """Check that submissions are what they say: files, prompts, verdicts and scores, made again.

    Says everything that is wrong with them, one line each. Exit code 0: all are verified, or demos; 1: one is refused;
    2: bad input.

    Example: helmbench verify submissions/*/*/* --dataset helmbench
    """
    from dataset_builder.release import open_release
    from leaderboard.verify.said import record, text
    from leaderboard.verify.verify import verify as verified_against

    release = open_release(dataset)
    records: list[dict[str, Any]] = []
    for folder in submissions:
        verified = verified_against(folder, release)
        say(text(verified), as_json or (quiet and verified.state != "refused"))
        records.append(record(verified))
    figures(records, "", as_json=as_json, quiet=True, file=json_file)  # the text is out already
    return SHUT if any(r["state"] == "refused" for r in records) else OK


@app.command(rich_help_panel=BOARD, epilog=exits(SHUT))
def board(
    submissions: Annotated[
        Path, typer.Argument(metavar="SUBMISSIONS_DIR", help="The folder with submissions below it.")
    ],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder of the board; an earlier board there is replaced.")
    ],
    dataset: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            help="A built dataset (default: as for `helmbench score`); once for each version whose runs are to be "
            "shown.",
        ),
    ] = None,
    rejudged: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="YAML list of the runs that a maintainer judged again (docs/publishing.md)."),
    ] = None,
    quiet: Quiet = False,
) -> int:
    """Verify submissions again, and build the static board from those that hold.

    Exit code 1: some are refused (the board is built, and lists them); 2: no board could be built.

    Example: helmbench board submissions --out board --dataset helmbench
    """
    from dataset_builder.release import ReleaseError, open_release
    from judge.replies.errors import RunError
    from leaderboard.board.build import build

    started = time.monotonic()

    def told(step: Step) -> None:
        since = time.monotonic() - started
        say(f"{step.number} of {step.total}, {since:.0f} s: {step.name}: {step.outcome}", quiet)
        sys.stdout.flush()

    with ending(BAD_INPUT, ReleaseError, RunError, OSError):
        releases = [open_release(folder) for folder in dataset] if dataset else [open_release(None)]
        built = build(submissions, out, releases, rejudged, told=told)
    demos = sum(e.demo for e in built.entries)
    say(
        f"{out / 'index.html'}: {len(built.entries) - demos} verified, {demos} demos, {len(built.refused)} refused",
        quiet and not built.refused,
    )
    return SHUT if built.refused else OK


@app.command(rich_help_panel=BOARD, epilog=exits(SHUT))
def export(
    submission: Annotated[
        Path, typer.Argument(metavar="SUBMISSION", help="Its folder, as `helmbench submit` wrote it.")
    ],
    form: Annotated[Format, typer.Option("--format", help="The form that is written (docs/publishing.md).")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write into.")],
    dataset: Dataset = None,
    dataset_repo: Annotated[
        str | None, typer.Option(metavar="ORG/NAME", help="The dataset's id on the Hub; needed for hub.")
    ] = None,
    dataset_revision: Annotated[
        str | None, typer.Option(metavar="COMMIT", help="Its commit there, as `helmbench push` printed it.")
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Export a run that the offline judge judged, every file marked as a demo.")
    ] = False,
    quiet: Quiet = False,
) -> int:
    """Write a verified submission in a form that others collect: the Hub, Every Eval Ever, or CSV.

    The submission is verified first, whole. Nothing is uploaded. Exit code 1: nothing was written, with the reason.

    Example: helmbench export SUBMISSION --format csv --out results
    """
    from dataset_builder.release import ReleaseError, open_release
    from judge.replies.errors import RunError
    from leaderboard.exports.export import export_to
    from leaderboard.exports.headline import ExportError

    with ending(SHUT, ExportError, ReleaseError, RunError, OSError):
        release = open_release(dataset)
        for path in export_to(out, submission, form, release, dataset_repo, dataset_revision, demo):
            say(str(path), quiet)
    return OK
