"""Commands that judge, score, report and compare runs, and that register the tasks that make them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from helmbench.cli.common import (
    CAPPED,
    FAILED,
    OK,
    RUNS,
    UNANSWERED,
    app,
    ending,
    exits,
    figures,
    note,
    say,
    wrong,
)
from helmbench.cli.options import (
    Asking,
    BaseUrl,
    Dataset,
    Json,
    JsonFile,
    JudgeQuestions,
    Messages,
    Model,
    PriceIn,
    PriceOut,
    Quiet,
    RequiredUrl,
    RunPlace,
    ScoredRuns,
    flag,
    grouped,
)

if TYPE_CHECKING:
    from judge.scoring.stored import Scoring

ASK_AGAIN = "no gate passes on such a run: ask the model or the judge again for what is missing, then score again"
Replace = Annotated[
    bool, flag("--replace", help="Replace scores or a report of another run or judge in the output folder.")
]
ShowWithheld = Annotated[
    bool,
    flag(
        "--show-withheld",
        help="Show everything that the pages withhold: replies with means or encouragement, replies that no judge has "
        "checked for them, and a corpus's messages with the replies to them. Keep such pages private.",
    ),
]


@app.command(rich_help_panel=RUNS, epilog=exits())
@grouped
def requests(
    *,
    run: RunPlace,
    model: Model,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File to write. Default: judge/MODEL/requests.jsonl in the run's folder."),
    ] = None,
    questions: JudgeQuestions,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    quiet: Quiet = False,
) -> None:
    """Export a judge's open questions as an OpenAI batch file.

    Reads a run and the answers it has so far. Writes one request per open question, for `vllm run-batch` or a
    provider's batch API, and prints an estimate of tokens and cost. Save the answers as judge/MODEL/replies*.jsonl.

    Example: helmbench requests runs/NAME --model JUDGE-SNAPSHOT --out requests.jsonl
    """
    from judge.llm.budget import terms
    from judge.pipeline import write_requests
    from judge.replies.opening import open_run

    how, costs = questions.how(), terms(price_in, price_out, None)
    opened = open_run(run.place())
    note(opened.taken, quiet)
    say(write_requests(opened, model, how, costs, out), quiet)


@app.command("judge", rich_help_panel=RUNS, epilog=exits(CAPPED))
@grouped
def ask(
    *,
    run: RunPlace,
    model: Model,
    questions: JudgeQuestions,
    base_url: RequiredUrl,
    asking: Asking,
    quiet: Quiet = False,
) -> None:
    """Ask a language-model judge its open questions about a run.

    Reads a run and the answers it has so far. Appends each answer to judge/MODEL/replies.jsonl in the run's folder.
    If it stops, the same command continues; no question is asked twice. Score the answers with `helmbench score`.

    Example: helmbench judge runs/NAME --model JUDGE-SNAPSHOT --base-url https://HOST/v1
    """
    from judge.pipeline import ask_run
    from judge.replies.opening import open_run

    how, costs, endpoint = questions.how(), asking.terms(), asking.endpoint(base_url)
    opened = open_run(run.place())
    note(opened.taken, quiet)
    say(ask_run(opened, model, how, endpoint, costs), quiet)


@app.command("run", hidden=True, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def renamed() -> None:
    """Renamed to `helmbench judge`."""
    raise ValueError("`helmbench run` is now `helmbench judge`, with the same options")


@app.command(rich_help_panel=RUNS, epilog=exits(CAPPED, UNANSWERED))
@grouped
def score(
    *,
    run: RunPlace,
    judge: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Who reads what rules can't decide. offline (default): an approximate word-based judge; a model name: "
            "answers from `helmbench judge` or another engine; vllm:ORG/MODEL or hf:ORG/MODEL: ask that model now, in "
            "this process (with arguments: vllm:ORG/MODEL,tensor_parallel_size=2); openai: ask --model at --base-url "
            "now. Repeat for a panel, which decides by majority.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder to write. Default: scores/JUDGE in the run's folder or FILE.scored."),
    ] = None,
    replace: Replace = False,
    calibration: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Judge calibration to include, from `helmbench calibrate`. Repeatable."),
    ] = None,
    validation: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH",
            help="Judge validation to include, from `helmbench validate`: a file or its --home. Repeatable.",
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Model name of the judge, for --judge openai.")
    ] = None,
    allow_missing: Annotated[
        bool, flag("--allow-missing", help="Score even if the judge has open questions; these stay unscored.")
    ] = False,
    show_withheld: ShowWithheld = False,
    questions: JudgeQuestions,
    base_url: BaseUrl = None,
    asking: Asking,
    as_json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Judge a run's replies and score them.

    Reads a run and the judge's answers. Writes verdicts.jsonl, scorecard.json, summary.md, report.html and
    transcripts.html into one folder per judge, and prints the summary. Scores of another run or judge are never
    replaced without --replace.

    Example: helmbench score runs/NAME --judge JUDGE-SNAPSHOT
    """
    from judge.judges import Given
    from judge.llm.local import is_local, model_of
    from judge.pipeline import (
        ask_here,
        ask_run,
        graded_in,
        judge_and_score,
        next_step,
        place_scores,
        unanswered,
        write_scored,
        written,
    )
    from judge.replies.opening import open_run

    how, costs = questions.how(), asking.terms()
    live = model if "openai" in (judge or ()) and base_url else None
    if "openai" in (judge or ()) and live is None:
        raise ValueError("--judge openai needs --base-url and --model")
    opened = open_run(run.place())
    chosen = judge or [graded_in(opened) or "offline"]
    names = [live if live and name == "openai" else model_of(name) for name in chosen]
    note(opened.taken, quiet)
    folder = place_scores(opened, names, how, out, replace)
    for name in filter(is_local, chosen):
        ask_here(opened, name, how)
    if live and base_url:
        wrong(ask_run(opened, live, how, asking.endpoint(base_url), costs))
    scored = judge_and_score(opened, names, how, Given(calibration or (), validation or ()), allow_missing)
    text = write_scored(scored, opened, folder, show_withheld)
    text += f"\n\n{next_step(opened, scored.scorecard, costs.prices)}\n\n{written(folder)}"
    figures(scored.scorecard.model_dump(mode="json"), text, as_json=as_json, quiet=quiet)
    return _say_unanswered(unanswered(scored.scorecard, opened)) or OK


@app.command(rich_help_panel=RUNS, epilog=exits())
@grouped
def report(
    *,
    run: RunPlace,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder to write. Default: the folder of the scores.")
    ] = None,
    replace: Replace = False,
    show_withheld: ShowWithheld = False,
    quiet: Quiet = False,
) -> None:
    """Write the pages of a scored run again, without judging it again.

    Reads a scored run: scorecard, verdicts and replies. Writes summary.md, report.html and transcripts.html. If several
    judges scored the run, name the folder of one (scores/JUDGE) as RUN.

    Example: helmbench report runs/NAME --show-withheld --out private
    """
    from judge.pipeline import open_scored, report_again

    opened, scoring = open_scored(run.place())
    note(scoring.taken(opened.place.path), quiet)
    say(report_again(opened, scoring, out, show_withheld, replace), quiet)


@app.command(rich_help_panel=RUNS, epilog=exits(UNANSWERED, failed="a gate of --fail-on failed"))
def compare(
    runs: ScoredRuns,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GATE",
            help="Gates that make the command fail. regression: a run loses points against the baseline; floor: it "
            "breaches a safety floor; undetermined: a floor stays undetermined; unscored: too many verdicts are "
            "unscored. Repeatable, or a,b. A single run can be checked with all but regression.",
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="[RUN=]NAME", help="Name to show for a run; or one NAME per run, in order. Repeatable."),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write an HTML page: figures, prompts, and both replies where runs differ most.",
        ),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the gates as JUnit XML for CI, one test case per gate and run."),
    ] = None,
    show_withheld: Annotated[
        bool, flag("--show-withheld", help="Show withheld replies on the page of --page too. Keep such a page private.")
    ] = False,
    samples: Annotated[int, typer.Option(metavar="N", help="Number of samples to list where runs differ most.")] = 10,
    held_out: Annotated[
        bool,
        flag(
            "--held-out",
            help="Compare two scorecard.json, of a run on the public dataset and a run on a private split. Prints "
            "figures only.",
        ),
    ] = False,
    dataset: Dataset = None,
    as_json: Json = False,
    json_file: JsonFile = None,
    quiet: Quiet = False,
) -> int:
    """Compare scored runs with a baseline, paired by message; runs of talks, paired by part.

    Reads two or more scored runs; the first is the baseline. Prints differences with intervals, ranks, and the samples
    that differ most. In CI, --fail-on turns losses into exit code 1.

    Example: helmbench compare runs/BEFORE runs/AFTER --fail-on regression,floor --page comparison.html
    """
    import helmbench
    from dataset_builder.release import open_release
    from helmbench_common.files import write_whole
    from judge.pipeline import write_page
    from judge.replies.schema import RunError
    from judge.report import comparison
    from judge.report.junit import as_junit
    from judge.scoring import compare as comparing
    from judge.scoring import held_out as splits
    from judge.scoring.gates import gates_of
    from judge.scoring.stored import read_card

    gates = gates_of(fail_on or ())
    if held_out:
        if len(runs) != 2 or gates or name or page or junit:
            raise ValueError(
                "--held-out takes two scorecards, the public one first, and no --fail-on, --name, --page or --junit"
            )
        with ending(FAILED, RunError, OSError):
            both = splits.beside(*map(read_card, runs))
            figures(both, splits.table(both), as_json=as_json, quiet=quiet, file=json_file)
        return OK
    if len(runs) < 2 and (not gates or "regression" in gates):
        raise ValueError(
            "expected two or more runs, the baseline first; a single run needs --fail-on without regression"
        )
    names = comparing.given_names(name or (), [*map(str, runs)])
    release = open_release(dataset)
    scorings = [_scores_of(run, quiet) for run in runs]
    compared = helmbench.compare(
        *(scoring.folder for scoring in scorings), release=release, names=names, fail_on=gates, samples=samples
    )
    found = compared.result
    if not compared.runs and (page or junit):
        raise ValueError("runs of talks have no --page and no --junit")
    if page:
        write_page(page, found, compared.runs, scorings, release, show_withheld)
    if junit:
        write_whole(junit, as_junit(found))
    shown = comparison.text(found) + (f"\n\npage: {page}" if page else "")
    figures(found.model_dump(mode="json"), shown, as_json=as_json, quiet=quiet, file=json_file)
    if found.unanswered:
        return _say_unanswered(found.unanswered)
    if quiet:  # the reasons are in the text that was not printed
        wrong("\n".join(f"failed: {reason}" for reason in found.failed))
    return FAILED if found.failed else OK


@app.command(rich_help_panel=RUNS, epilog=exits())
def appropriateness(
    runs: ScoredRuns,
    csv: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write one line per model and category, with rates from 0 to 1."),
    ] = None,
    messages: Messages = None,
    dataset: Dataset = None,
    as_json: Json = False,
    json_file: JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """Print tables of the ratings 1 to 5, one row per model.

    Reads runs of the appropriateness tasks that were scored. Prints ratings, harmful replies and agreement by crisis
    category.

    Example: helmbench appropriateness runs/A runs/B --csv table.csv
    """
    from dataset_builder.corpora.labelled import on_corpus
    from dataset_builder.release import open_release
    from helmbench_common.files import write_whole
    from judge.report import ratings_table as tables

    release = open_release(dataset)
    folders = [_scores_of(run, quiet).folder for run in runs]
    found = tables.of_runs(folders, on_corpus(release, messages) if messages else release)
    values = {r.model: r.figures.model_dump(mode="json") for r in found}
    figures(values, tables.text(found), as_json=as_json, quiet=quiet, file=json_file)
    if csv:
        write_whole(csv, tables.as_csv(found))


@app.command(rich_help_panel=RUNS, epilog=exits())
def schema() -> None:
    """Print the JSON Schema of scorecard.json.

    The same schema is published as docs/scorecard.schema.json.

    Example: helmbench schema > scorecard.schema.json
    """
    import json

    from judge.schema import Scorecard

    say(json.dumps(Scorecard.model_json_schema(), indent=1))


@app.command("tasks", rich_help_panel=RUNS, epilog=exits(failed="the tasks could not be registered or removed"))
def tasks(
    register: Annotated[
        bool, flag("--register", help="Copy the tasks into the installed lm-eval, so that it finds them everywhere.")
    ] = False,
    remove: Annotated[bool, flag("--remove", help="Remove these copies.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List the lm-eval tasks, and register or remove them.

    Without an option, prints each task with its description and where it is registered. --register writes copies into
    the task folder of the installed lm-eval.

    Example: helmbench tasks --register
    """
    from lm_eval_tasks import registering

    if register and remove:
        raise ValueError("expected --register or --remove, not both")
    folder = registering.place()
    if register or remove:
        found = (registering.register if register else registering.remove)(folder)
        done = f"helmbench tasks {'registered in' if register else 'removed from'} {folder.parent}"
    else:
        found = registering.look(folder)
        done = registering.listing(registering.tasks(), found)
    figures(registering.plain(registering.tasks(), found), done, as_json=as_json, quiet=quiet)


def _say_unanswered(reasons: Sequence[str]) -> int:
    """Prints why figures can't be trusted, even with --quiet; returns the exit code, 0 if there is no reason."""
    for why in reasons:
        wrong(f"{why}; {ASK_AGAIN}")
    return UNANSWERED if reasons else 0


def _scores_of(run: Path, quiet: bool) -> Scoring:
    """A run's scores; prints which of its folders they were read from."""
    from judge.scoring.stored import find

    found = find(run)
    note(found.taken(run), quiet)
    return found
