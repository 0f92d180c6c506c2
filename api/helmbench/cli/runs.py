"""Commands: a run's replies judged, scored, reported and compared; the tasks that make a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dataset_builder.prompts import REASONED
from helmbench.cli.asking import (
    BaseUrl,
    Concurrency,
    MaxCost,
    MaxRetries,
    PriceIn,
    PriceOut,
    RequiredUrl,
    Timeout,
    endpoint_at,
)
from helmbench.cli.common import RUNS, Dataset, Json, JsonFile, Quiet, figures, note, say, wrong
from helmbench.cli.endings import ending
from helmbench.cli.root import CAPPED, OK, SHUT, UNANSWERED, app, exits

if TYPE_CHECKING:
    from judge.scoring.stored import Scoring

ASK_AGAIN = "no gate is open on it: ask again what got no answer, the model or the judge, and score it anew"
Wording = Literal["judge", "judge-b", "judge-reason"]
RunDir = Annotated[
    Path | None,
    typer.Argument(
        metavar="[RUN]", help="The --output_path of an lm_eval run made with --log_samples, or a LOG.eval of Inspect."
    ),
]
Replies = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help='Replies collected elsewhere: JSONL of {"id", "reply"} (conversations: {"id", "replies": …}).',
    ),
]
Messages = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER", help="The labelled corpus that the run was made on, in the place of the dataset's messages."
    ),
]
Results = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Which of several results_*.json below RUN (default: the newest)."),
]
Replace = Annotated[
    bool, typer.Option("--replace", help="Replace the scores or the report of others that stand where these go.")
]
Model = Annotated[
    str,
    typer.Option(metavar="NAME", help="The judge's model name; use a dated snapshot for figures that you publish."),
]
Repeats = Annotated[int, typer.Option(metavar="N", help="Ask every question so often; the majority counts.")]
Prompt = Annotated[Wording, typer.Option(help="The wording of the question: a prompt of the dataset.")]
ReasonFirst = Annotated[
    bool, typer.Option("--reason-first", help=f"Let the judge give a short reason first: --prompt {REASONED[0]}.")
]
ScoredRuns = Annotated[
    list[Path],
    typer.Argument(metavar="RUN…", help="Scored runs, or where several judges scored one, its folder scores/JUDGE."),
]
ShowWithheld = Annotated[
    bool,
    typer.Option(
        "--show-withheld",
        help="Show replies with a harm incident, and unscored ones, in the report; keep it to yourself.",
    ),
]
Calibrations = Annotated[
    list[Path] | None,
    typer.Option("--calibration", metavar="FILE", help="What `helmbench calibrate` measured of a judge; repeatable."),
]

Validations = Annotated[
    list[Path] | None,
    typer.Option(
        "--validation",
        metavar="PATH",
        help="What `helmbench validate` measured of a judge: a file, or its --home; repeatable.",
    ),
]


@app.command(rich_help_panel=RUNS)
def requests(
    model: Model,
    run_dir: RunDir = None,
    replies: Replies = None,
    messages: Messages = None,
    results: Results = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to write (default: judge/MODEL/requests.jsonl of the run)."),
    ] = None,
    repeats: Repeats = 1,
    prompt: Prompt = "judge",
    reason_first: ReasonFirst = False,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    dataset: Dataset = None,
    quiet: Quiet = False,
) -> None:
    """Write what a language-model judge is still to be asked, for any engine.

    The file is in the OpenAI batch format, which `vllm run-batch` and providers' batch APIs read.

    Example: helmbench requests runs/NAME --model JUDGE-SNAPSHOT --out requests.jsonl
    """
    from judge.llm.budget import terms
    from judge.pipeline import Questioning, write_requests
    from judge.replies.opening import Place, open_run

    how, costs = Questioning(_wording(prompt, reason_first), repeats), terms(price_in, price_out, None)
    opened = open_run(Place(run_dir, replies, dataset, messages, results))
    note(opened.taken, quiet)
    say(write_requests(opened, model, how, costs, out), quiet)


@app.command("run", rich_help_panel=RUNS, epilog=exits(CAPPED))
def ask(
    model: Model,
    base_url: RequiredUrl,
    run_dir: RunDir = None,
    replies: Replies = None,
    messages: Messages = None,
    results: Results = None,
    repeats: Repeats = 1,
    prompt: Prompt = "judge",
    reason_first: ReasonFirst = False,
    concurrency: Concurrency = 16,
    timeout: Timeout = 120.0,
    max_retries: MaxRetries = 6,
    max_cost: MaxCost = None,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    dataset: Dataset = None,
    quiet: Quiet = False,
) -> None:
    """Ask a language model, at an OpenAI-compatible endpoint, what it is still to be asked as a judge.

    Stopped at any moment, the same command goes on where it stopped; nothing is asked twice.

    Example: helmbench run runs/NAME --model JUDGE-SNAPSHOT --base-url https://HOST/v1 --max-cost 5 --price-in 1
    --price-out 4
    """
    from judge.llm.budget import terms
    from judge.pipeline import Questioning, ask_run
    from judge.replies.opening import Place, open_run

    how, costs = Questioning(_wording(prompt, reason_first), repeats), terms(price_in, price_out, max_cost)
    endpoint = endpoint_at(base_url, concurrency, timeout, max_retries)
    opened = open_run(Place(run_dir, replies, dataset, messages, results))
    note(opened.taken, quiet)
    say(ask_run(opened, model, how, endpoint, costs), quiet)


@app.command(rich_help_panel=RUNS, epilog=exits(CAPPED, UNANSWERED))
def score(
    run_dir: RunDir = None,
    replies: Replies = None,
    messages: Messages = None,
    judge: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="offline (default: rules and word counts, approximate); a model whose answers `helmbench run` or "
            "another engine wrote; openai: ask --model first. Given several times: a panel, which decides by majority.",
        ),
    ] = None,
    results: Results = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where to write (default: scores/JUDGE in the run's folder or FILE.scored)."),
    ] = None,
    replace: Replace = False,
    calibration: Calibrations = None,
    validation: Validations = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --judge openai: the judge's model name.")
    ] = None,
    allow_missing: Annotated[
        bool,
        typer.Option("--allow-missing", help="Score although questions have no answer yet; they are unscored."),
    ] = False,
    show_withheld: ShowWithheld = False,
    repeats: Repeats = 1,
    prompt: Prompt = "judge",
    reason_first: ReasonFirst = False,
    base_url: BaseUrl = None,
    concurrency: Concurrency = 16,
    timeout: Timeout = 120.0,
    max_retries: MaxRetries = 6,
    max_cost: MaxCost = None,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    dataset: Dataset = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Judge a run's replies and score them: verdicts.jsonl, scorecard.json, summary.md, report.html, transcripts.html.

    Each judge's scores stand in a folder of their own, and no other run's or judge's are replaced unasked.

    Example: helmbench score runs/NAME --judge JUDGE-SNAPSHOT
    """
    from judge.judges import Given
    from judge.llm.budget import terms
    from judge.pipeline import Questioning, ask_run, graded_in, judge_and_score, place_scores, unanswered, write_scored
    from judge.replies.opening import Place, open_run

    how, costs = Questioning(_wording(prompt, reason_first), repeats), terms(price_in, price_out, max_cost)
    live = model if "openai" in (judge or ()) and base_url else None
    if "openai" in (judge or ()) and live is None:
        raise ValueError("--judge openai needs --base-url and --model")
    opened = open_run(Place(run_dir, replies, dataset, messages, results))
    grader = graded_in(opened)
    names = [live if live and name == "openai" else name for name in judge or [grader or "offline"]]
    note(opened.taken, quiet)
    folder = place_scores(opened, names, how, out, replace)
    if live and base_url:
        asked = ask_run(opened, live, how, endpoint_at(base_url, concurrency, timeout, max_retries), costs)
        wrong(asked)
    given = Given(calibration or (), validation or ())
    scored = judge_and_score(opened, names, how, given, allow_missing)
    text = write_scored(scored, opened, folder, show_withheld)
    figures(scored.scorecard.model_dump(mode="json"), text, as_json=as_json, quiet=quiet)
    return _say_unanswered(unanswered(scored.scorecard, opened)) or OK


@app.command(rich_help_panel=RUNS)
def report(
    run_dir: RunDir = None,
    replies: Replies = None,
    messages: Messages = None,
    results: Results = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where to write (default: the folder of the scores).")
    ] = None,
    replace: Replace = False,
    show_withheld: ShowWithheld = False,
    dataset: Dataset = None,
    quiet: Quiet = False,
) -> None:
    """Write a scored run's summary.md, report.html and transcripts.html anew, from its verdicts; nothing is judged.

    Where several judges have scored it, name the folder of one of them as RUN.

    Example: helmbench report runs/NAME --show-withheld --out private
    """
    from judge.pipeline import open_scored, report_again
    from judge.replies.opening import Place

    opened, scoring = open_scored(Place(run_dir, replies, dataset, messages, results))
    note(scoring.taken(opened.place.path), quiet)
    say(report_again(opened, scoring, out, show_withheld, replace), quiet)


@app.command(rich_help_panel=RUNS, epilog=exits(SHUT, UNANSWERED))
def compare(
    runs: ScoredRuns,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GATE",
            help="Exit 1 where a run surely loses points against the baseline (regression), breaches a floor (floor), "
            "leaves one undetermined (undetermined), or has too many verdicts unscored (unscored); repeatable, or a,b. "
            "A single run may be named with any but regression.",
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="[RUN=]NAME", help="What to call a run; or a NAME for each, in their order. Repeatable."),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Also write a page (HTML): figures, prompts, and both replies where runs differ most."
        ),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Also write the gates as JUnit XML, which CI shows: a case per gate and run."
        ),
    ] = None,
    samples: Annotated[int, typer.Option(metavar="N", help="How many samples to list where runs differ most.")] = 10,
    held_out: Annotated[
        bool,
        typer.Option(
            "--held-out",
            help="The second is a run on a private split: figures only (docs/publishing.md). Two SCORECARDs.",
        ),
    ] = False,
    dataset: Dataset = None,
    as_json: Json = False,
    json_file: JsonFile = None,
    quiet: Quiet = False,
) -> int:
    """Compare scored runs, paired by message; the first is the baseline (docs/comparing.md).

    Example: helmbench compare runs/BEFORE runs/AFTER --fail-on regression,floor --page comparison.html
    """
    from dataset_builder.release import open_release
    from helmbench_common.files import write_whole
    from judge.comparing import write_page
    from judge.report import comparison
    from judge.report.junit import as_junit
    from judge.scoring import compare as comparing
    from judge.scoring import held_out as splits
    from judge.scoring.gates import gates_of

    gates = gates_of(fail_on or ())
    if held_out:
        if len(runs) != 2 or gates or name or page or junit:
            raise ValueError(
                "--held-out takes two scorecards, the public one first, and no --fail-on, --name, --page or --junit"
            )
        with ending(SHUT, splits.UnlikeError, OSError):
            both = splits.beside(*map(splits.read_scorecard, runs))
            figures(both, splits.table(both), as_json=as_json, quiet=quiet, file=json_file)
        return OK
    if len(runs) < 2 and (not gates or "regression" in gates):
        raise ValueError(
            "name two runs or more; the first is the baseline (a single one only with --fail-on, and no regression)"
        )
    names = comparing.given_names(name or (), [*map(str, runs)])
    release = open_release(dataset)
    scorings = [_scores_of(run, quiet) for run in runs]
    read = comparing.named([comparing.read(own.folder, release) for own in scorings], names)
    found = comparing.compare(read, gates, samples)
    if page:
        write_page(page, found, read, scorings, release)
    if junit:
        write_whole(junit, as_junit(found))
    shown = comparison.text(found) + (f"\n\npage: {page}" if page else "")
    figures(found.model_dump(mode="json"), shown, as_json=as_json, quiet=quiet, file=json_file)
    if found.unanswered:
        return _say_unanswered(found.unanswered)
    if quiet:  # of a shut gate nobody else says why
        wrong("\n".join(f"failed: {reason}" for reason in found.failed))
    return SHUT if found.failed else OK


@app.command(rich_help_panel=RUNS)
def appropriateness(
    runs: ScoredRuns,
    csv: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write one line per model × category to FILE, rates 0 to 1."),
    ] = None,
    messages: Messages = None,
    dataset: Dataset = None,
    as_json: Json = False,
    json_file: JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """The tables of ratings 1 to 5 over scored runs, one row per model, harm first.

    Example: helmbench appropriateness runs/A runs/B --csv table.csv
    """
    from dataset_builder.corpora.labelled import on_corpus
    from dataset_builder.release import open_release
    from helmbench_common.files import write_whole
    from judge.report import ratings_table as tables

    release = open_release(dataset)
    folders = [_scores_of(run, quiet).folder for run in runs]
    found = tables.of_runs(folders, on_corpus(release, messages) if messages else release)
    figures(tables.plain_values(found), tables.text(found), as_json=as_json, quiet=quiet, file=json_file)
    if csv:
        write_whole(csv, tables.as_csv(found))


@app.command(rich_help_panel=RUNS)
def schema() -> None:
    """Print the JSON Schema of scorecard.json (published as docs/scorecard.schema.json).

    Example: helmbench schema > scorecard.schema.json
    """
    import json

    from judge.schema import Scorecard

    say(json.dumps(Scorecard.model_json_schema(), indent=1))


@app.command("tasks", rich_help_panel=RUNS, epilog=exits(SHUT))
def tasks(
    register: Annotated[
        bool, typer.Option("--register", help="Copy the tasks into the installed lm-eval, for every directory.")
    ] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Take the copies away again.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List the tasks that lm_eval runs and say where they are registered, or register them.

    Example: helmbench tasks --register
    """
    from lm_eval_tasks import registering

    if register and remove:
        raise ValueError("helmbench tasks: --register and --remove exclude each other")
    folder = registering.place()
    if register or remove:
        found = (registering.register if register else registering.remove)(folder)
        done = f"helmbench tasks {'registered in' if register else 'removed from'} {folder.parent}"
    else:
        found = registering.look(folder)
        done = registering.listing(registering.tasks(), found)
    figures(registering.plain(registering.tasks(), found), done, as_json=as_json, quiet=quiet)


def _say_unanswered(reasons: Sequence[str]) -> int:
    """Says of what too little was answered, however quiet the command is; its exit code, 0 where there is none."""
    for why in reasons:
        wrong(f"{why}; {ASK_AGAIN}")
    return UNANSWERED if reasons else 0


def _scores_of(run: Path, quiet: bool) -> Scoring:
    """A run's scores; which of its folders they are taken from is said."""
    from judge.scoring.stored import find

    found = find(run)
    note(found.taken(run), quiet)
    return found


def _wording(prompt: Wording, reason_first: bool) -> str:
    return REASONED[0] if reason_first else prompt
