"""Commands about what is asked: the content, the book, corpora of the user's own, and publishing a release."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dataset_builder.prompts import CONTENT
from helmbench.cli import common
from helmbench.cli.common import Dataset, Json, Quiet, figures, say
from helmbench.cli.endings import ending, refusing
from helmbench.cli.root import SHUT, app, exits

if TYPE_CHECKING:
    from dataset_builder.corpora.schema import CorpusManifest

Content = Annotated[
    Path,
    typer.Option(
        metavar="DIR",
        show_default="this package's",
        help="Content folder; one without benchmark.yaml holds private additions, laid over the published content.",
    ),
]
HeldOut = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="A private split: its scenarios with everything else of the content (docs/publishing.md)."
    ),
]


def _price(value: float | None) -> float | None:
    if value is not None and not 0 <= value < math.inf:
        raise typer.BadParameter(f"{value:g}; expected 0 or more")
    return value


def _count(value: int | None) -> int | None:
    if value is not None and value < 1:
        raise typer.BadParameter(f"{value}; expected 1 or more")
    return value


@app.command(rich_help_panel=common.CONTENT, epilog=exits(SHUT))
def check(content: Content = CONTENT, held_out: HeldOut = None, quiet: Quiet = False) -> None:
    """Read all content and print every error with its file and line; write nothing.

    Example: helmbench check --content ours
    """
    from dataset_builder.checking.checked import checked

    with refusing(), checked(content, held_out) as found:
        say(str(found), quiet)


new = typer.Typer(no_args_is_help=True, help="Begin something to write: a scenario from the template.")
app.add_typer(new, name="new", rich_help_panel=common.CONTENT)


@new.command(epilog=exits(SHUT))
def scenario(
    code: Annotated[
        str | None,
        typer.Argument(
            metavar="BEHAVIOR_OR_ID",
            help="P1-B1 for the next free number of that behavior, or P1-B1-S8. Asked for where it isn't given.",
        ),
    ] = None,
    content: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            show_default="this checkout's",
            help="Content folder, or a new one for scenarios of your own.",
        ),
    ] = CONTENT,
    quiet: Quiet = False,
) -> None:
    """Copy the template under the next free id, and say what to do with it; write over nothing.

    Example: helmbench new scenario P1-B1 --content ours
    """
    from dataset_builder.schema import BEHAVIORS
    from dataset_builder.writing import new_scenario

    with refusing():
        place = new_scenario.home(content)
        if code is None:
            if not sys.stdin.isatty():
                raise typer.BadParameter("name a behavior, such as: helmbench new scenario P1-B1")
            say("\n".join(f"{behavior}  {title}" for behavior, title in BEHAVIORS.items()))
            behavior = typer.prompt("Which behavior does it test?")
            code = typer.prompt("Its id", default=new_scenario.named(behavior, place))
        say(new_scenario.said(new_scenario.create(code, content), content), quiet)


@app.command(rich_help_panel=common.CONTENT, epilog=exits(SHUT))
def build(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder to write; an earlier build there is replaced whole.")
    ] = Path("helmbench"),
    content: Content = CONTENT,
    held_out: HeldOut = None,
    quiet: Quiet = False,
) -> None:
    """Check the content, then write the dataset: parquet, card, prompts and MANIFEST.json.

    Example: helmbench build --out helmbench
    """
    started = time.perf_counter()
    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    from dataset_builder.writing.write import build as build_into

    with refusing():
        say(build_into(content, out, held_out).said(time.perf_counter() - started), quiet)


PriceIn = Annotated[float | None, typer.Option(metavar="X", callback=_price, help="Price of a million prompt tokens.")]
PriceOut = Annotated[float | None, typer.Option(metavar="X", callback=_price, help="Price of a million reply tokens.")]
Tokenizer = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Tiktoken encoding (o200k_base), tokenizer.json or Hub id to count by; without it tokens are bytes ÷ 4.",
    ),
]
ReplyTokens = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        callback=_count,
        help="Expected length of a reply (default 350, or 40 for JSON); reasoning counts, too.",
    ),
]
JudgeRuns = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        callback=_count,
        help="How often a judge rates each reply to a message that stands alone (default 3).",
    ),
]


@app.command(rich_help_panel=common.CONTENT, epilog=exits(SHUT))
def stats(
    content: Content = CONTENT,
    cost: Annotated[
        bool, typer.Option("--cost", help="What one run costs instead: samples, requests, tokens and money per tier.")
    ] = False,
    giveaway: Annotated[
        bool, typer.Option("--giveaway", help="What gives polarity away to who understands nothing instead.")
    ] = False,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    tokenizer: Tokenizer = None,
    reply_tokens: ReplyTokens = None,
    judge_runs: JudgeRuns = None,
    as_json: Json = False,
) -> None:
    """Count what the content covers, beside the coverage plan; or what a run of it costs; or what gives it away.

    Example: helmbench stats --cost --price-in 0.40 --price-out 1.60
    """
    from dataset_builder.reading.opening import open_content
    from dataset_builder.stats import cost_of_all, coverage, real_messages
    from dataset_builder.stats.cost import Asked

    wanted = Asked(tokenizer, price_in, price_out, reply_tokens, judge_runs)
    if not cost and wanted != Asked():
        raise typer.BadParameter("--price-in, --price-out, --tokenizer, --reply-tokens and --judge-runs need --cost")
    if cost and giveaway:
        raise typer.BadParameter("--cost and --giveaway are two different tables; ask for one")
    with refusing(), open_content(content) as opened:
        if cost:
            found = cost_of_all.estimate(opened.content, wanted)
            figures(found, cost_of_all.table(found), as_json=as_json)
        elif giveaway:
            from dataset_builder.stats import giveaway as given_away  # scikit-learn's import alone takes a second

            found = given_away.giveaway(opened.content)
            figures(found, given_away.table(found), as_json=as_json)
        else:
            found, read = coverage.coverage(opened.content), real_messages.beside_real(opened.content)
            said = f"{coverage.table(found)}\n\n{real_messages.table(read)}"
            figures(found | {"beside real messages": read}, said, as_json=as_json)


@app.command(rich_help_panel=common.CONTENT, epilog=exits(SHUT))
def book(
    out: Annotated[Path, typer.Option(metavar="FILE", help="Page to write; an earlier book there is replaced.")] = Path(
        "book.html"
    ),
    content: Content = CONTENT,
    quiet: Quiet = False,
) -> None:
    """Write everything that is asked on one page, to read, search, comment and sign.

    Example: helmbench book --out book.html
    """
    from dataset_builder.book.page import written
    from dataset_builder.reading.opening import open_content

    with refusing(), open_content(content) as opened:
        say(written(opened.content, out), quiet)


@app.command(rich_help_panel=common.CONTENT, epilog=exits(SHUT))
def review(
    file: Annotated[Path, typer.Argument(help="The review file that a reader sent.")],
    apply: Annotated[bool, typer.Option("--apply", help="Write the changes as well.")] = False,
    content: Content = CONTENT,
) -> None:
    """Turn a reader's download of the book into a patch of review lines and notes, and print it.

    Example: helmbench review helmbench-review-ANNA-2026-11-22.json --apply
    """
    from dataset_builder.book import review_patch
    from dataset_builder.book.review import read
    from dataset_builder.reading.opening import open_content

    with refusing(), open_content(content) as (known, source):
        sent = read(file, known)
        changes = review_patch.changes(sent, known, source.authored)
        # What isn't part of a diff is skipped by `git apply` and `patch`, so the patch can open with what it is.
        common.say(review_patch.summary(sent, changes, known))
        sys.stdout.write(f"\n{review_patch.patch(changes)}")
        own = "" if source.own is None else f" --content {source.own}"
        if apply:
            review_patch.apply(changes)
            common.wrong(f"written; now run: helmbench check{own}")
        elif changes:
            common.wrong(f"nothing was written; to write it: helmbench review {file} --apply{own}")


@app.command(rich_help_panel=common.CONTENT, epilog=exits(SHUT))
def corpus(
    mapping: Annotated[
        Path, typer.Argument(help="YAML file that names the sources, their fields, the limits and the samples.")
    ],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder to write; an earlier corpus there is replaced whole.")
    ],
    jobs: Annotated[
        int, typer.Option(metavar="N", show_default="one per core, at most 8", help="Processes that clean.")
    ] = min(8, os.cpu_count() or 1),
    shards: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="For millions: work in parts, kept here until the end, so that a killed run goes on. They hold what "
            "people wrote, some of it unmasked. Needs the extra datatrove; the corpus is the same.",
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Clean messages of your own into a dated, hashed corpus folder (docs/own-data.md).

    Example: helmbench corpus mapping.yaml --out corpus
    """
    from dataset_builder.corpora import build

    started = time.perf_counter()
    with refusing():
        with _bar(quiet) as tell:
            if shards:
                manifest = _sharded()(mapping, out, shards, max(1, jobs), tell)
            else:
                manifest = build.build(mapping, out, max(1, jobs), tell)
        say(build.summary(out, manifest, time.perf_counter() - started), quiet)


def _sharded() -> Callable[[Path, Path, Path, int, Callable[[str, int], None]], CorpusManifest]:
    try:
        from dataset_builder.corpora.sharded.local import build
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "datatrove":
            raise
        raise typer.BadParameter("needs datatrove; pip install '.[datatrove]'", param_hint="--shards") from None
    return build


@contextmanager
def _bar(quiet: bool) -> Iterator[Callable[[str, int], None]]:
    """A function that shows (step, messages done) on a terminal's last line."""
    from tqdm import tqdm

    with tqdm(unit=" messages", disable=quiet or None, mininterval=0.5) as bar:

        def tell(step: str, done: int) -> None:
            bar.set_description(step, refresh=False)
            bar.update(done - bar.n)

        yield tell


@app.command(rich_help_panel=common.CONTENT, epilog=exits(SHUT))
def push(
    repo: Annotated[
        str, typer.Argument(metavar="ORG/NAME", help="The dataset's id on the Hub, such as org/helmbench.")
    ],
    dataset: Dataset = None,
    content: Annotated[
        Path,
        typer.Option(metavar="DIR", show_default="this package's", help="The content that the release was built from."),
    ] = CONTENT,
    changelog: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The changelog that records the release (default: the repository's)."),
    ] = None,
    private: Annotated[
        bool, typer.Option("--private", help="Create the repository as a private one, if there is none yet.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without this nothing is sent.")] = False,
) -> None:
    """Publish a built dataset on the Hub: one commit, tagged with its version.

    Without --yes it only says what it would do: every file with size and hash, and how it differs from what is there.
    The token is read from HF_TOKEN and nowhere else; HF_ENDPOINT names another Hub. Exit code 1: refused, with every
    reason.

    Example: helmbench push org/helmbench --dataset helmbench
    """
    from dataset_builder.publishing import push_to_hub
    from dataset_builder.publishing.changelog import CHANGELOG, ChangelogError
    from dataset_builder.release import ReleaseError

    with ending(SHUT, push_to_hub.PublishError, ReleaseError, ChangelogError, last="nothing was published"):
        plan = push_to_hub.planned(repo, dataset, sending=yes)
        say(str(plan))
        push_to_hub.refuse(plan, content, changelog or CHANGELOG)
        say(push_to_hub.publish(plan, private) if yes else "dry run: nothing was sent; add --yes to publish")
