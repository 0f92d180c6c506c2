"""Commands: people's labels, and how far a judge may be trusted."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from dataset_builder.prompts import WORDINGS
from helmbench.cli.asking import (
    BaseUrl,
    Concurrency,
    MaxCost,
    MaxRetries,
    PriceIn,
    PriceOut,
    Timeout,
    endpoint_at,
)
from helmbench.cli.common import PEOPLE, Dataset, Json, JsonFile, Quiet, figures, note, say
from helmbench.cli.root import CAPPED, OK, SHUT, app, exits
from helmbench.cli.runs import Messages, Replies, RunDir

annotate = typer.Typer(
    no_args_is_help=True, help="A blinded sheet for people who label: export it, import their labels."
)
ratings = typer.Typer(no_args_is_help=True, help="Replies rated low as a sheet for hand coding: export, import, count.")
app.add_typer(annotate, name="annotate", rich_help_panel=PEOPLE)
app.add_typer(ratings, name="ratings", rich_help_panel=PEOPLE)

Rater = Annotated[str, typer.Option(metavar="NAME", help="Who labels (default: what the page asks, or recorded).")]


Sample = Literal["validation", "test", "all"]


Half = Literal["all", "odd", "even"]


class Part(StrEnum):
    """A part of the report of `agreement`. (typer takes no list of literals.)"""

    criterion = "criterion"
    by_class = "class"
    pair = "pair"


@app.command(rich_help_panel=PEOPLE, epilog=exits(CAPPED))
def calibrate(
    judge: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="offline, or a model as with --model; repeatable.")
    ] = None,
    model: Annotated[list[str] | None, typer.Option(metavar="NAME", help="A judge's model name; repeatable.")] = None,
    repeats: Annotated[int, typer.Option(metavar="N", help="Ask every question of the first wording so often.")] = 3,
    wording: Annotated[
        str,
        typer.Option(
            metavar="A,B,…", help="Wordings of the question; the first is calibrated, the others compared with it."
        ),
    ] = ",".join(WORDINGS),
    labels: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="People's labels, one rater or more: measure against these, and choose; repeatable."
        ),
    ] = None,
    cases: Annotated[
        Path, typer.Option(metavar="SOURCE", help="With --labels: the replies that they label, as for `annotate`.")
    ] = Path("calibration"),
    home: Annotated[Path, typer.Option(metavar="DIR", help="Where answers are kept.")] = Path("calibration"),
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to write the figures (default: below --home; one judge only)."),
    ] = None,
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
) -> None:
    """How far a judge agrees with the calibration set or with people's labels, and whether it may judge a submission.

    Asking is resumed where it stopped; without --base-url it reads what any engine has answered.

    Example: helmbench calibrate --model JUDGE-SNAPSHOT --base-url https://HOST/v1
    """
    from dataset_builder.release import open_release
    from judge.agreement import calibrate as agreement
    from judge.agreement.answers import Passes, wordings
    from judge.llm.asking import Asker
    from judge.llm.budget import terms

    names = list(dict.fromkeys([*(judge or ()), *(model or ())]))
    if not names:
        raise ValueError("name a judge with --judge offline or --model NAME")
    if out and len(names) > 1:
        raise ValueError("--out is for a single judge; several write below --home")
    passes = Passes(repeats, wordings(wording))
    endpoint = endpoint_at(base_url, concurrency, timeout, max_retries) if base_url else None
    asker = Asker(home, endpoint, terms(price_in, price_out, max_cost))
    release = open_release(dataset)
    if labels:
        say(agreement.against_people(release, names, labels, cases, asker, passes), quiet)
        return
    for name in names:
        found = agreement.calibrate_judge(release, name, asker, passes, out)
        figures(found.values(), found.text(release), as_json=as_json, quiet=quiet)


@app.command(rich_help_panel=PEOPLE, epilog=exits(CAPPED))
def validate(
    name: Annotated[
        str,
        typer.Option(
            "--set",
            metavar="NAME",
            help="bhh-ratings, bhh-messages, xstest, psychosis, vera-mh, counselbench, or your own set's mapping file.",
        ),
    ],
    source: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="DIR_OR_ID",
            help="A checkout of the set's public repository, or your folder; where there is none of this name, a "
            "dataset of the Hub (OWNER/NAME), which is fetched.",
        ),
    ],
    judge: Annotated[str, typer.Option("--judge", "--model", metavar="NAME", help="offline, or a judge's model name.")],
    rows: Annotated[Half, typer.Option(help="Which rows, counted from 0 in the set's own order.")] = "all",
    repeats: Annotated[
        int, typer.Option(metavar="N", min=1, help="Ask every question so often; the first is measured, all compared.")
    ] = 1,
    home: Annotated[Path, typer.Option(metavar="DIR", help="Where answers and figures are kept.")] = Path("validation"),
    base_url: BaseUrl = None,
    concurrency: Concurrency = 16,
    timeout: Timeout = 120.0,
    max_retries: MaxRetries = 6,
    max_cost: MaxCost = None,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    dataset: Dataset = None,
    as_json: Json = False,
    json_file: JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """How far a judge agrees with labels that people published, or with your own people's.

    Asking is resumed where it stopped; without --base-url it reads what any engine has answered.

    Example: helmbench validate --set bhh-ratings --from CHECKOUT --rows odd --judge offline
    """
    from dataset_builder.release import open_release
    from judge.agreement import validation
    from judge.agreement.published.files import located
    from judge.agreement.published.sets import read_set
    from judge.agreement.tables import validation_text
    from judge.llm.asking import Asker
    from judge.llm.budget import terms

    endpoint = endpoint_at(base_url, concurrency, timeout, max_retries) if base_url else None
    asker = Asker(home, endpoint, terms(price_in, price_out, max_cost))
    release = open_release(dataset)
    found = validation.validate(read_set(name, located(source), rows, release), release, judge, asker, repeats)
    shown = validation_text(found.figures) + f"\nWritten to {found.path}"
    figures(found.figures.model_dump(mode="json"), shown, as_json=as_json, quiet=quiet, file=json_file)


@app.command(rich_help_panel=PEOPLE)
def agreement(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE…",
            help="Labels: JSONL or CSV with `id` and `label`, or a run's verdicts.jsonl; `calibration` for those of "
            "the dataset's authors.",
        ),
    ],
    by: Annotated[
        list[Part] | None,
        typer.Option(help="Which parts to print beside the overall figures, repeatable (default: all)."),
    ] = None,
    ordinal: Annotated[
        bool, typer.Option("--ordinal", help="Insist that the labels have an order; known scales have theirs.")
    ] = False,
    order: Annotated[
        str | None,
        typer.Option(metavar="LOW,…,HIGH", help="The labels from lowest to highest, where they are no known scale."),
    ] = None,
    ways: Annotated[
        bool, typer.Option("--ways", help="Keep the ways to fail apart (FAIL-misses); by default each is FAIL.")
    ] = False,
    dataset: Dataset = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """How far raters agree: any two or more label files.

    Example: helmbench agreement ana.jsonl ben.csv runs/NAME/scores/JUDGE/verdicts.jsonl
    """
    from dataset_builder.release import open_release
    from judge.agreement import raters
    from judge.agreement.labels import are_authors, read_labels

    scale = tuple(name.strip() for name in order.split(",")) if order else None
    authors = open_release(dataset).calibration if any(map(are_authors, files)) else ()
    report = raters.agreement_report(read_labels(files, ways, authors=authors), scale, ordinal)
    parts = tuple(part.value for part in by) if by else raters.PARTS
    figures(report.model_dump(mode="json"), raters.text(report, parts), as_json=as_json, quiet=quiet)


@app.command(rich_help_panel=PEOPLE, epilog=exits(CAPPED))
def label(
    corpus: Annotated[Path, typer.Argument(metavar="CORPUS", help="A folder that `helmbench corpus` made.")],
    model: Annotated[list[str], typer.Option(metavar="NAME", help="A judge's model name; several decide by majority.")],
    repeats: Annotated[int, typer.Option(metavar="N", help="Ask every question so often; an odd number.")] = 3,
    sample: Annotated[
        Sample | None,
        typer.Option(help="Which messages (default: test; all where the corpus was made without samples)."),
    ] = None,
    requests: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Only write what is to be asked, in the OpenAI batch format; one model."),
    ] = None,
    base_url: BaseUrl = None,
    concurrency: Concurrency = 16,
    timeout: Timeout = 120.0,
    max_retries: MaxRetries = 6,
    max_cost: MaxCost = None,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    dataset: Dataset = None,
    quiet: Quiet = False,
) -> None:
    """The category of every message of a corpus, by the majority of a judge's repeats.

    Example: helmbench label corpora/forum --model JUDGE-SNAPSHOT --base-url https://HOST/v1
    """
    from dataset_builder.release import open_release
    from judge.agreement import corpus_labels
    from judge.llm.budget import terms

    costs = terms(price_in, price_out, max_cost)
    if requests and (len(set(model)) > 1 or base_url):
        raise ValueError(
            "--requests writes one model's questions for another engine; expected one --model and no --base-url"
        )
    endpoint = endpoint_at(base_url, concurrency, timeout, max_retries) if base_url else None
    what = corpus_labels.labeling(corpus, open_release(dataset), model, repeats, sample)
    done = corpus_labels.write_requests(what, requests) if requests else corpus_labels.label(what, endpoint, costs)
    say(done, quiet)


@annotate.command("export")
def annotate_export(
    cases: Annotated[
        Path,
        typer.Argument(
            metavar="CASES",
            help="`calibration`, calibration files, a run's folder, or JSONL of id, criterion, said, reply.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page to write.")] = Path("sheet.html"),
    rater: Rater = "",
    seed: Annotated[int, typer.Option(help="Of the order and the codes.")] = 0,
    criterion: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this criterion; repeatable (default: all).")
    ] = None,
    sample: Annotated[
        int | None, typer.Option(metavar="N", help="Only N replies of each criterion, drawn by the seed.")
    ] = None,
    dataset: Dataset = None,
    quiet: Quiet = False,
) -> None:
    """Write a page on which a person labels replies, without seeing anybody's labels.

    Example: helmbench annotate export calibration --rater Ana --criterion acts-at-once --sample 12
    """
    from dataset_builder.release import open_release
    from judge.agreement.annotate import next_step, sampled, write_sheet
    from judge.agreement.cases import read_cases

    release = open_release(dataset)
    read = read_cases(cases, release, criterion or [])
    note(read.run.taken if read.run else "", quiet)
    found = sampled(read, sample, seed)
    say(write_sheet(found, release, out, rater, seed), quiet)
    say(next_step(cases, rater), quiet)


@annotate.command("import", epilog=exits(SHUT))
def annotate_import(
    labels: Annotated[
        Path, typer.Argument(metavar="SHEET_LABELS", help="The file that the page's Download button gave.")
    ],
    cases: Annotated[Path, typer.Option(metavar="CASES", help="What the sheet was exported from.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The label file to write, for `helmbench agreement`.")],
    rater: Rater = "",
    dataset: Dataset = None,
    quiet: Quiet = False,
) -> int:
    """Read the labels that the page saved, and restore the ids. Exit code 1 where labels belong to no case.

    Example: helmbench annotate import labels.jsonl --cases calibration --out ana.jsonl
    """
    from dataset_builder.release import open_release
    from judge.agreement.annotate import restore, write_labels
    from judge.agreement.cases import read_cases

    release = open_release(dataset)
    found = restore(labels, read_cases(cases, release).cases, release, rater)
    say(write_labels(found, cases, out), quiet)
    return SHUT if found.unknown else OK


@ratings.command("export")
def ratings_export(
    out: Annotated[Path, typer.Option(metavar="FILE", help="The sheet to write, such as sheet.csv.")],
    run_dir: RunDir = None,
    replies: Replies = None,
    at_most: Annotated[int, typer.Option(metavar="N", min=1, max=5, help="Rated so or lower.")] = 2,
    messages: Messages = None,
    dataset: Dataset = None,
    quiet: Quiet = False,
) -> None:
    """Write the replies that were rated low as a sheet (CSV) with empty columns for codes.

    Example: helmbench ratings export runs/NAME --out sheet.csv
    """
    from judge.agreement.coding import write_low
    from judge.pipeline import open_scored
    from judge.replies.opening import Place

    opened, scoring = open_scored(Place(run_dir, replies, dataset, messages))
    note(scoring.taken(opened.place.path), quiet)
    say(write_low(opened, scoring.folder, out, at_most), quiet)


@ratings.command("import")
def ratings_import(
    sheets: Annotated[list[Path], typer.Argument(metavar="SHEET…", help="Coded sheets, one coder or more in each.")],
    as_json: Json = False,
    json_file: JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """Count the codes of one sheet or more, and how far coders agree. What it writes as JSON holds no reply.

    Example: helmbench ratings import ana.csv ben.csv
    """
    from judge.agreement import coding

    found = coding.coding(sheets)
    figures(found.model_dump(mode="json"), coding.text(found), as_json=as_json, quiet=quiet, file=json_file)
