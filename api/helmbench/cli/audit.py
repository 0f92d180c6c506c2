"""The command about a product's own conversations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from helmbench.cli.common import CAPPED, FAILED, OK, RUNS, app, exits, figures
from helmbench.cli.options import Asking, BaseUrl, Dataset, Json, Quiet, flag, grouped


@app.command(rich_help_panel=RUNS, epilog=exits(CAPPED, failed="some lines are broken and were left out"))
@grouped
def audit(
    *,
    logs: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOGS",
            help='Conversations: .jsonl, .jsonl.gz or .parquet, each line {"messages": [{"role", "content"}, …]} with '
            "any other fields.",
        ),
    ],
    judge: Annotated[
        str,
        typer.Option(
            "--judge",
            "--model",
            metavar="NAME",
            help="A judge's model name; offline: a word list and the offline judge.",
        ),
    ] = "offline",
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder to write. Default: the first file's name and .audit.")
    ] = None,
    sample: Annotated[
        int, typer.Option(metavar="N", min=0, help="Conversations not in danger to judge for needless alarm.")
    ] = 200,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of that sample.")] = 0,
    country: Annotated[
        str | None,
        typer.Option(
            metavar="CC", help="Country of the users, such as AU, if they share one: for helplines and phones."
        ),
    ] = None,
    time: Annotated[
        str | None, typer.Option(metavar="FIELD", help="Field with a date or a timestamp, to count by week.")
    ] = None,
    by: Annotated[
        list[str] | None, typer.Option(metavar="FIELD", help="Field to count by, such as a version. Repeatable.")
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD", help="Field with the user's name, to mask in the conversation's texts. Repeatable."
        ),
    ] = None,
    strict: Annotated[
        bool, flag("--strict", help="Refuse files with broken lines, before anything is judged.")
    ] = False,
    keep_ids: Annotated[bool, flag("--keep-ids", help="Write ids as they are. By default they are hashed.")] = False,
    show_text: Annotated[
        bool,
        flag("--show-text", help="Put the masked texts of the listed conversations on the page, in closed sections."),
    ] = False,
    forget: Annotated[
        bool, flag("--forget", help="Delete what the judge was sent and answered once the figures are written.")
    ] = False,
    base_url: BaseUrl = None,
    asking: Asking,
    dataset: Dataset = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Audit your product's own conversations: who is in danger, and how they are answered.

    Reads conversations, masks and judges them; also finds out how many people are alarmed without reason. Writes
    audit.json, conversations.jsonl without text, and page.html. If it stops, the same command continues.

    Example: helmbench audit logs.jsonl --judge JUDGE-SNAPSHOT --base-url https://HOST/v1 --time created --by version
    """
    from phonenumbers import SUPPORTED_REGIONS

    from dataset_builder.release import open_release
    from judge.agreement.answers import is_offline
    from judge.audit.audit import Plan, default_out
    from judge.audit.audit import audit as run
    from judge.audit.logs import Reading
    from judge.audit.passes import Judging
    from judge.llm.asking import Asker

    if base_url and is_offline(judge):
        raise ValueError("--base-url needs --judge NAME, the model to ask there")
    if country and country not in SUPPORTED_REGIONS:
        raise ValueError(f"--country {country}: expected an ISO 3166-1 code such as AU")
    place = out or default_out(logs[0])
    asker = Asker(place, asking.endpoint(base_url) if base_url else None, asking.terms(), keep=False)
    how = Reading(tuple(by or ()), time, country, keep_ids, tuple(names or ()))
    plan = Plan(tuple(logs), place, how, sample, seed, strict, show_text, forget)
    found, text = run(plan, Judging(open_release(dataset), judge, asker, country))
    figures(found.model_dump(mode="json"), text, as_json=as_json, quiet=quiet)
    return FAILED if found.counts.broken else OK
