"""Commands for submissions and the leaderboard: `submit`, `verify`, `board`, `export`."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from helmbench.cli.common import BAD_INPUT, BOARD, FAILED, OK, app, ending, exits, figures, say, wrong
from helmbench.cli.options import Dataset, Json, JsonFile, Quiet, flag
from leaderboard.exports import Format
from leaderboard.submit import FIELDS


def _about(field: str) -> Any:
    """An option for a field of `--about`."""
    return typer.Option(
        metavar="TEXT", help=f"{FIELDS[field][0].upper()}{FIELDS[field][1:]}.", rich_help_panel="About the submission"
    )


@app.command(rich_help_panel=BOARD, epilog=exits(failed="the run can't be submitted (every reason is printed)"))
def submit(
    run_dir: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="A scored run: the --output_path of lm_eval, or a LOG.eval of Inspect."),
    ],
    about: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="YAML file with contact, model and declaration. Options override it."),
    ] = None,
    contact_name: Annotated[str | None, _about("contact.name")] = None,
    contact_address: Annotated[str | None, _about("contact.address")] = None,
    organization: Annotated[str | None, _about("model.organization")] = None,
    model: Annotated[str | None, _about("model.name")] = None,
    revision: Annotated[str | None, _about("model.revision")] = None,
    access: Annotated[str | None, _about("model.access")] = None,
    relation: Annotated[str | None, _about("model.relation")] = None,
    family: Annotated[str | None, _about("model.family?")] = None,
    trained_on_benchmark: Annotated[str | None, _about("declaration.trained_on_benchmark")] = None,
    declaration_note: Annotated[str | None, _about("declaration.note?")] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for submissions.")] = Path("submissions"),
    run: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Folder name of the run. Default: the first 12 digits of its replies' sha256."
        ),
    ] = None,
    calibration: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Calibration of the judge, from `helmbench calibrate`. Repeatable."),
    ] = None,
    date: Annotated[
        str | None, typer.Option(metavar="YYYY-MM-DD", help="Date of the submission. Default: today.")
    ] = None,
    commit: Annotated[
        str | None,
        typer.Option(metavar="COMMIT", help="Commit of the code that made the run. Default: this checkout's."),
    ] = None,
    dataset: Dataset = None,
    quiet: Quiet = False,
) -> int:
    """Pack a scored run as a submission, and verify it.

    Reads a scored run and what you declare about the model. Writes DIR/ORGANIZATION/MODEL/RUN. Never prompts: it lists
    everything that is missing at once.

    Example: helmbench submit runs/NAME --about about.yaml
    """
    from dataset_builder.release import REPOSITORY, ReleaseError, open_release
    from judge.replies.schema import RunError
    from leaderboard.submit.about import commit_of, gather
    from leaderboard.submit.pack import make, summary

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
        return FAILED
    with ending(FAILED, RunError, ReleaseError, OSError, ValueError):
        made = make(run_dir, open_release(dataset), known, out, run, calibration or [])
        say(summary(made), quiet)
    return OK


@app.command(rich_help_panel=BOARD, epilog=exits(failed="a submission was refused"))
def verify(
    submissions: Annotated[
        list[Path], typer.Argument(metavar="SUBMISSION", help="Folders that `helmbench submit` wrote.")
    ],
    dataset: Dataset = None,
    as_json: Json = False,
    json_file: JsonFile = None,
    quiet: Quiet = False,
) -> int:
    """Verify submissions by recomputing files, prompts, verdicts and scores.

    Reads submission folders. Prints the state of each (verified, demo or refused) and everything that is wrong with it,
    one line per problem. Writes nothing.

    Example: helmbench verify submissions/*/*/* --dataset helmbench
    """
    import helmbench
    from dataset_builder.release import open_release
    from leaderboard.verify.findings import record, text

    release = open_release(dataset)
    records: list[dict[str, Any]] = []
    for folder in submissions:
        verified = helmbench.verify(folder, release)
        say(text(verified), as_json or (quiet and verified.state != "refused"))
        records.append(record(verified))
    figures(records, "", as_json=as_json, quiet=True, file=json_file)  # the text was printed as each was verified
    return FAILED if any(r["state"] == "refused" for r in records) else OK


@app.command(
    rich_help_panel=BOARD, epilog=exits(failed="some submissions were refused (the board is built and lists them)")
)
def board(
    submissions: Annotated[
        Path, typer.Argument(metavar="SUBMISSIONS_DIR", help="Folder that contains submissions, at any depth.")
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write. An earlier board there is replaced.")],
    dataset: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            help="Built dataset; repeat to show runs of several versions. Default: as for `helmbench score`.",
        ),
    ] = None,
    rejudged: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="YAML list of runs that a maintainer judged again (docs/publishing.md)."),
    ] = None,
    quiet: Quiet = False,
) -> int:
    """Verify submissions and build the leaderboard as static pages.

    Reads a folder of submissions. Writes index.html with rankings, a page per run, and downloads. Only verified
    submissions are ranked.

    Example: helmbench board submissions --out board --dataset helmbench
    """
    from dataset_builder.release import ReleaseError, open_release
    from judge.replies.schema import RunError
    from leaderboard.board.build import build

    started = time.monotonic()

    def progress(count: str, outcome: str) -> None:
        say(f"{count}, {time.monotonic() - started:.0f} s: {outcome}", quiet)
        sys.stdout.flush()

    with ending(BAD_INPUT, ReleaseError, RunError, OSError):
        releases = [open_release(folder) for folder in dataset] if dataset else [open_release(None)]
        built = build(submissions, out, releases, rejudged, progress=progress)
    demos = sum(e.demo for e in built.entries)
    say(
        f"{out / 'index.html'}: {len(built.entries) - demos} verified, {demos} demos, {len(built.refused)} refused",
        quiet and not built.refused,
    )
    return FAILED if built.refused else OK


@app.command(rich_help_panel=BOARD, epilog=exits(failed="the submission was refused (nothing was written)"))
def export(
    submission: Annotated[Path, typer.Argument(metavar="SUBMISSION", help="A folder that `helmbench submit` wrote.")],
    form: Annotated[Format, typer.Option("--format", help="Format to write (docs/publishing.md).")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write into.")],
    dataset: Dataset = None,
    dataset_repo: Annotated[
        str | None, typer.Option(metavar="ORG/NAME", help="Dataset id on the Hub. Required for --format hub.")
    ] = None,
    dataset_revision: Annotated[
        str | None,
        typer.Option(metavar="COMMIT", help="Commit of the dataset on the Hub, printed by `helmbench push`."),
    ] = None,
    demo: Annotated[
        bool, flag("--demo", help="Allow a run that the offline judge read; every file is marked as a demo.")
    ] = False,
    quiet: Quiet = False,
) -> int:
    """Export a submission for the Hub, Every Eval Ever, or as CSV.

    Reads a submission and verifies it first. Writes files into --out and prints their paths. Uploads nothing.

    Example: helmbench export SUBMISSION --format csv --out results
    """
    import helmbench
    from dataset_builder.release import ReleaseError, open_release
    from helmbench_common.files import write_whole
    from judge.replies.schema import RunError
    from leaderboard.exports.export import export as exported
    from leaderboard.exports.figures import ExportError

    with ending(FAILED, ExportError, ReleaseError, RunError, OSError):
        release = open_release(dataset)
        files = exported(helmbench.verify(submission, release), form, release, dataset_repo, dataset_revision, demo)
        for name, text in files.items():
            write_whole(out / name, text)
            say(str(out / name), quiet)
    return OK
