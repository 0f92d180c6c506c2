"""Commands about human labels, and how far a judge agrees with them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from dataset_builder.prompts import WORDINGS
from helmbench.cli.common import CAPPED, FAILED, OK, PEOPLE, app, exits, figures, note, say
from helmbench.cli.options import Asking, BaseUrl, Dataset, From, Json, JsonFile, Quiet, RunPlace, flag, grouped

annotate = typer.Typer(
    no_args_is_help=True, help="Export a blinded labeling sheet for a person, and import the labels.", epilog=exits()
)
ratings = typer.Typer(
    no_args_is_help=True, help="Export low-rated replies for coding by hand, and count the codes.", epilog=exits()
)
field = typer.Typer(
    no_args_is_help=True, help="Published sets of other people's messages, replies and labels.", epilog=exits()
)
app.add_typer(field, name="field", rich_help_panel=PEOPLE)
app.add_typer(annotate, name="annotate", rich_help_panel=PEOPLE)
app.add_typer(ratings, name="ratings", rich_help_panel=PEOPLE)

Rater = Annotated[
    str, typer.Option(metavar="NAME", help="Name of the rater. Default: what the person enters on the page.")
]
Sample = Literal["validation", "test", "all"]
Half = Literal["all", "odd", "even"]


def _known_set(name: str) -> str:
    from judge.agreement.published.sets import mapping_of

    mapping_of(name)
    return name


@app.command(rich_help_panel=PEOPLE, epilog=exits(CAPPED))
@grouped
def calibrate(
    *,
    judge: Annotated[
        list[str],
        typer.Option(
            "--judge", "--model", metavar="NAME", help="Judge to measure: offline or a model name. Repeatable."
        ),
    ],
    repeats: Annotated[
        int, typer.Option(metavar="N", min=1, help="Ask each question of the first wording N times.")
    ] = 3,
    wording: Annotated[
        str,
        typer.Option(
            metavar="A,B,…", help="Prompts to ask with; the first is measured, the others are compared with it."
        ),
    ] = ",".join(WORDINGS),
    labels: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Human labels to measure against, one or more raters, in place of the calibration set's. Repeatable.",
        ),
    ] = None,
    cases: Annotated[
        Path,
        typer.Option(
            metavar="SOURCE", help="With --labels: the labeled replies, as CASES of `helmbench annotate export`."
        ),
    ] = Path("calibration"),
    home: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the judges' answers.")] = Path("calibration"),
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File to write the figures to; one judge only. Default: a file in --home."),
    ] = None,
    base_url: BaseUrl = None,
    asking: Asking,
    dataset: Dataset = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure how far a judge agrees with the calibration set or with human labels.

    Asks the judge at --base-url, or reads answers that another engine wrote into --home. Writes the figures as JSON,
    for `helmbench score --calibration`, and prints whether the judge may judge a submission. If it stops, the same
    command continues.

    Example: helmbench calibrate --judge JUDGE-SNAPSHOT --base-url https://HOST/v1
    """
    from dataset_builder.release import open_release
    from judge.agreement import calibrate as agreement
    from judge.agreement.answers import Passes, wordings
    from judge.llm.asking import Asker

    names = list(dict.fromkeys(judge))
    if out and len(names) > 1:
        raise ValueError("--out takes a single judge; several judges are written to --home")
    passes = Passes(repeats, wordings(wording))
    asker = Asker(home, asking.endpoint(base_url) if base_url else None, asking.terms())
    release = open_release(dataset)
    if labels:
        say(agreement.against_people(release, names, labels, cases, asker, passes), quiet)
        return
    for name in names:
        text, values = agreement.calibrate_judge(release, name, asker, passes, out)
        figures(values, text, as_json=as_json, quiet=quiet)


@app.command(rich_help_panel=PEOPLE, epilog=exits(CAPPED))
@grouped
def validate(
    *,
    name: Annotated[
        str,
        typer.Option(
            "--set",
            metavar="NAME",
            callback=_known_set,  # before other options are missed
            help="A published set (`helmbench field list`), or a mapping file for labels of your own.",
        ),
    ],
    source: From = None,
    judge: Annotated[str, typer.Option("--judge", "--model", metavar="NAME", help="offline, or a judge's model name.")],
    rows: Annotated[Half, typer.Option(help="Rows to use, counted from 0 in the set's own order.")] = "all",
    repeats: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Ask each question N times; the first is measured, all are compared."),
    ] = 1,
    home: Annotated[Path, typer.Option(metavar="DIR", help="Folder for answers and figures.")] = Path("validation"),
    base_url: BaseUrl = None,
    asking: Asking,
    dataset: Dataset = None,
    as_json: Json = False,
    json_file: JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """Measure how far a judge agrees with published human labels, or with your own.

    Asks the judge at --base-url, or reads answers that another engine wrote into --home. Writes the figures as JSON
    into --home, for `helmbench score --validation`. If it stops, the same command continues.

    Example: helmbench validate --set bhh-ratings --from CHECKOUT --rows odd --judge offline
    """
    from dataset_builder.release import open_release
    from judge.agreement import validation
    from judge.agreement.published.sets import read_set
    from judge.agreement.tables import validation_text
    from judge.llm.asking import Asker

    asker = Asker(home, asking.endpoint(base_url) if base_url else None, asking.terms())
    release = open_release(dataset)
    found, path = validation.validate(read_set(name, source, rows, release), release, judge, asker, repeats)
    shown = f"{validation_text(found)}\n\nWritten to {path}"
    figures(found.model_dump(mode="json"), shown, as_json=as_json, quiet=quiet, file=json_file)


@app.command(rich_help_panel=PEOPLE, epilog=exits(CAPPED))
@grouped
def read(
    *,
    cases: Annotated[
        str,
        typer.Argument(
            metavar="CASES",
            help="What to read: a published set (`helmbench field list`), a mapping file (.yaml), or CASES of "
            "`helmbench annotate export`.",
        ),
    ],
    judge: Annotated[
        list[str],
        typer.Option(
            "--judge", "--model", metavar="NAME", help="offline, or a judge's model name. Repeat for a panel."
        ),
    ],
    source: From = None,
    rows: Annotated[Half, typer.Option(help="Rows to use, counted from 0 in the set's own order.")] = "all",
    sample: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Only N cases of each system and question, drawn with --seed."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the sample.")] = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for readings, table and page. Default: readings/NAME.")
    ] = None,
    show_withheld: Annotated[bool, flag("--show-withheld", help="Show harmful replies on the page too.")] = False,
    base_url: BaseUrl = None,
    asking: Asking,
    dataset: Dataset = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Judge any replies by a criterion, a protocol or a question, and compare the systems that gave them.

    Asks the judge at --base-url, or reads answers that another engine wrote into the folder. Writes readings.jsonl (a
    label by id), table.json and page.html. If it stops, the same command continues.

    Example: helmbench read therapists --judge JUDGE-SNAPSHOT --base-url https://HOST/v1
    """
    from dataset_builder.release import open_release
    from judge.agreement import reading
    from judge.llm.asking import Asker

    release = open_release(dataset)
    what = reading.sampled(reading.read_source(cases, source, rows, release), sample, seed)
    folder = out or Path("readings") / what.name
    asker = Asker(folder, asking.endpoint(base_url) if base_url else None, asking.terms())
    readings = reading.read(what, release, judge, asker)
    found = reading.tabulated(what, release, readings)
    reading.write(found, what, readings, folder, release.criteria, show_withheld)
    text = f"{reading.table(found)}\n\nWritten to {folder}: readings.jsonl, table.json, page.html"
    figures(found.model_dump(mode="json"), text, as_json=as_json, quiet=quiet)


@field.command("list", epilog=exits())
def field_list() -> None:
    """List the published sets that `read` and `validate` know.

    Example: helmbench field list
    """
    from helmbench_common.tables import Table, TableRow
    from judge.agreement.published.sets import SETS, cache, load_set

    rows = []
    for name in SETS:
        recipe = load_set(name).recipe
        asks = recipe.asks
        what = (asks.by or ("own question" if asks.question else asks.kind)) if asks else ""
        rows.append(TableRow(name, [what, "yes" if (cache() / name).is_dir() else "no", recipe.about]))
    say(Table(["set", "asks", "fetched", "about"], rows).text())


@field.command("show", epilog=exits())
def field_show(name: Annotated[str, typer.Argument(metavar="NAME", help="A set of `helmbench field list`.")]) -> None:
    """Show where a set comes from, its terms and what is asked about it, but none of its texts.

    Example: helmbench field show therapists
    """
    from judge.agreement.published.sets import cache, load_set, pinned

    loaded = load_set(name)
    recipe, asks = loaded.recipe, loaded.recipe.asks
    lines = {
        "about": recipe.about,
        "date": recipe.date,
        "repository": recipe.repository,
        "commit": recipe.commit,
        "license": recipe.license,
        "texts": {"ask": "may be put to a judge, not shown", "show": "may be shown on your own pages"}.get(recipe.may),
        "files": f"{sum(1 for _ in pinned(loaded))}, checked by sha256",
        "fetched": cache() / name if (cache() / name).is_dir() else "no",
        "asks": asks and f"{asks.kind} {asks.by or ''}".strip(),
        "question": asks and asks.question and asks.question.title,
        "mapping": loaded.path,
        "notes": asks and "; ".join(asks.notes),
    }
    say("\n".join(f"{key:12}{value}" for key, value in lines.items() if value))


@field.command("fetch", epilog=exits())
def field_fetch(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Sets of `helmbench field list`.")],
) -> None:
    """Fetch published sets at the commit their figures belong to, into a cache outside any checkout.

    Their texts are people's words under their own terms: don't commit, publish or quote them.

    Example: helmbench field fetch therapists schizobench
    """
    from judge.agreement.published.sets import fetch, load_set

    for name in names:
        say(f"{name}: {fetch(load_set(name))}")


@app.command(rich_help_panel=PEOPLE, epilog=exits())
def agreement(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="Label files: JSONL or CSV with `id` and `label`, or verdicts.jsonl of a run; `calibration` is the "
            "dataset's own labels.",
        ),
    ],
    order: Annotated[
        str | None,
        typer.Option(metavar="LOW,…,HIGH", help="The labels from lowest to highest, for a scale of your own."),
    ] = None,
    ways: Annotated[
        bool, flag("--ways", help="Keep kinds of failure apart, such as FAIL-misses. By default all count as FAIL.")
    ] = False,
    dataset: Dataset = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure how far raters agree.

    Reads two or more label files, of people or judges. Prints kappa, alpha and raw agreement with intervals.

    Example: helmbench agreement ana.jsonl ben.csv runs/NAME/scores/JUDGE/verdicts.jsonl
    """
    from dataset_builder.release import open_release
    from judge.agreement.labels import agreement_report, are_authors, read_labels
    from judge.agreement.tables import agreement_text

    scale = tuple(name.strip() for name in order.split(",")) if order else None
    authors = open_release(dataset).calibration if any(map(are_authors, files)) else ()
    report = agreement_report(read_labels(files, ways, authors=authors), scale)
    figures(report.model_dump(mode="json"), agreement_text(report), as_json=as_json, quiet=quiet)


@app.command(rich_help_panel=PEOPLE, epilog=exits(CAPPED))
@grouped
def label(
    *,
    corpus: Annotated[Path, typer.Argument(metavar="CORPUS", help="A folder that `helmbench corpus` wrote.")],
    model: Annotated[
        list[str], typer.Option(metavar="NAME", help="Model name of a judge. Repeat to decide by majority of several.")
    ],
    repeats: Annotated[int, typer.Option(metavar="N", help="Ask each question N times; an odd number.")] = 3,
    sample: Annotated[
        Sample | None,
        typer.Option(help="Messages to label. Default: test, or all if the corpus has no samples."),
    ] = None,
    requests: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Only write the open questions, as an OpenAI batch file. One --model only."),
    ] = None,
    base_url: BaseUrl = None,
    asking: Asking,
    dataset: Dataset = None,
    quiet: Quiet = False,
) -> None:
    """Label the messages of a corpus with a crisis category, by majority of a judge's answers.

    Reads a corpus and the answers it has so far, and asks for the rest at --base-url. Writes answers and labels.jsonl
    into the corpus folder. If it stops, the same command continues.

    Example: helmbench label corpora/forum --model JUDGE-SNAPSHOT --base-url https://HOST/v1
    """
    from dataset_builder.release import open_release
    from judge.agreement import corpus_labels

    costs = asking.terms()
    if requests and (len(set(model)) > 1 or base_url):
        raise ValueError("--requests writes the questions of one model; expected one --model and no --base-url")
    endpoint = asking.endpoint(base_url) if base_url else None
    what = corpus_labels.labeling(corpus, open_release(dataset), model, repeats, sample)
    done = corpus_labels.write_requests(what, requests) if requests else corpus_labels.label(what, endpoint, costs)
    say(done, quiet)


@annotate.command("export", epilog=exits())
def annotate_export(
    cases: Annotated[
        Path,
        typer.Argument(
            metavar="CASES",
            help="What to label: `calibration`, calibration files, a run's folder, or JSONL of id, criterion, said and "
            "reply.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page to write.")] = Path("sheet.html"),
    rater: Rater = "",
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the order and of the blinded ids.")] = 0,
    criterion: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this criterion. Repeatable. Default: all.")
    ] = None,
    sample: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Only N replies per criterion, drawn at random with --seed.")
    ] = None,
    dataset: Dataset = None,
    quiet: Quiet = False,
) -> None:
    """Write an HTML page on which a person labels replies without seeing other labels.

    Reads replies. Writes one self-contained page; its Download button saves the labels for `helmbench annotate import`.

    Example: helmbench annotate export calibration --rater Ana --criterion acts-at-once --sample 12
    """
    from dataset_builder.release import open_release
    from judge.agreement.annotate import sampled, write_sheet
    from judge.agreement.cases import read_cases

    release = open_release(dataset)
    read = read_cases(cases, release, criterion or [])
    note(read.run.taken if read.run else "", quiet)
    say(write_sheet(sampled(read, sample, seed), release, cases, out, rater, seed), quiet)


@annotate.command("import", epilog=exits(failed="some labels belong to none of the cases"))
def annotate_import(
    labels: Annotated[
        Path, typer.Argument(metavar="SHEET_LABELS", help="The file that the page's Download button saved.")
    ],
    cases: Annotated[Path, typer.Option(metavar="CASES", help="The CASES that the page was exported from.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Label file to write, for `helmbench agreement`.")],
    rater: Rater = "",
    dataset: Dataset = None,
    quiet: Quiet = False,
) -> int:
    """Read the labels that a person saved from the page, and restore the original ids.

    Writes a label file that `helmbench agreement` and `helmbench calibrate --labels` read.

    Example: helmbench annotate import labels.jsonl --cases calibration --out ana.jsonl
    """
    from dataset_builder.release import open_release
    from judge.agreement.annotate import restore, write_labels
    from judge.agreement.cases import read_cases

    release = open_release(dataset)
    found = restore(labels, read_cases(cases, release).cases, release, rater)
    say(write_labels(found, cases, out), quiet)
    return FAILED if found.unknown else OK


@ratings.command("export", epilog=exits())
@grouped
def ratings_export(
    *,
    run: RunPlace,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Sheet to write, such as sheet.csv.")],
    at_most: Annotated[int, typer.Option(metavar="N", min=1, max=5, help="Highest rating to include.")] = 2,
    quiet: Quiet = False,
) -> None:
    """Write low-rated replies as a CSV sheet with empty columns for codes.

    Reads a scored run with ratings. Fill in the columns, then run `helmbench ratings import`.

    Example: helmbench ratings export runs/NAME --out sheet.csv
    """
    from judge.agreement.coding import write_low
    from judge.pipeline import open_scored

    opened, scoring = open_scored(run.place())
    note(scoring.taken(opened.place.path), quiet)
    say(write_low(opened, scoring.folder, out, at_most), quiet)


@ratings.command("import", epilog=exits())
def ratings_import(
    sheets: Annotated[list[Path], typer.Argument(metavar="SHEET", help="Coded sheets, of one or more coders.")],
    as_json: Json = False,
    json_file: JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """Count the codes in filled-in sheets, and how far coders agree.

    Reads sheets of `helmbench ratings export`. Prints counts and agreement; the JSON contains no reply text.

    Example: helmbench ratings import ana.csv ben.csv
    """
    from judge.agreement import coding

    found = coding.coding(sheets)
    figures(found.model_dump(mode="json"), coding.text(found), as_json=as_json, quiet=quiet, file=json_file)
