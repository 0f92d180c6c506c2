"""Commands about the dataset: its content, its pages, corpora of your own messages, and publishing a release."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from dataset_builder.prompts import CONTENT
from helmbench.cli import common
from helmbench.cli.common import FAILED, app, ending, exits, figures, refusing, say
from helmbench.cli.options import Dataset, From, Json, Quiet, flag

Content = Annotated[
    Path,
    typer.Option(
        metavar="DIR",
        show_default="this package's",
        help="Content folder. One without benchmark.yaml adds private scenarios to the published content.",
    ),
]
HeldOut = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Private split: its scenarios replace the published ones; everything else stays."),
]


def _price(value: float | None) -> float | None:
    if value is not None and not 0 <= value < math.inf:
        raise typer.BadParameter(f"{value:g}; expected 0 or more")
    return value


def _count(value: int | None) -> int | None:
    if value is not None and value < 1:
        raise typer.BadParameter(f"{value}; expected 1 or more")
    return value


REFUSED = exits(failed="the content has errors (nothing was written)")


@app.command(rich_help_panel=common.CONTENT, epilog=exits(failed="the content has errors"))
def check(content: Content = CONTENT, held_out: HeldOut = None, quiet: Quiet = False) -> None:
    """Check the content and print every error with file and line.

    Reads a content folder. Writes nothing.

    Example: helmbench check --content ours
    """
    from dataset_builder.checking.checked import checked

    with refusing(), checked(content, held_out) as found:
        say(str(found), quiet)


new = typer.Typer(no_args_is_help=True, help="Start a new scenario from the template.", epilog=exits())
app.add_typer(new, name="new", rich_help_panel=common.CONTENT)


@new.command(epilog=exits(failed="no such behavior, or the file exists (nothing was written)"))
def scenario(
    code: Annotated[
        str | None,
        typer.Argument(
            metavar="BEHAVIOR_OR_ID",
            help="A behavior, such as P1-B1, for its next free id; or an id, such as P1-B1-S8. Asked for if missing.",
        ),
    ] = None,
    content: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            show_default="this checkout's",
            help="Content folder, or a new folder for private scenarios.",
        ),
    ] = CONTENT,
    quiet: Quiet = False,
) -> None:
    """Create a scenario file from the template, and print the next steps.

    Writes one Markdown file under the next free id. Never overwrites a file.

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


@app.command(rich_help_panel=common.CONTENT, epilog=REFUSED)
def build(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder to write. An earlier build there is replaced.")
    ] = Path("helmbench"),
    content: Content = CONTENT,
    held_out: HeldOut = None,
    quiet: Quiet = False,
) -> None:
    """Check the content and build the dataset.

    Reads a content folder. Writes parquet files, the dataset card, the judges' prompts and MANIFEST.json with a hash of
    every file.

    Example: helmbench build --out helmbench
    """
    started = time.perf_counter()
    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    import helmbench
    from dataset_builder.release import HASHES

    with refusing():
        manifest = helmbench.build(content, out, held_out=held_out).manifest
        size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file()) / 1e6
        lines = [
            f"{out}: version {manifest.version}, {manifest.rows['all']} samples in {size:.1f} MB, "
            f"{time.perf_counter() - started:.1f} s",
            *([manifest.additions] if manifest.additions else []),
            *(f"{name} {getattr(manifest, name)}" for name in HASHES),
        ]
        say("\n".join(lines), quiet)


@app.command(rich_help_panel=common.CONTENT, epilog=REFUSED)
def stats(
    content: Content = CONTENT,
    cost: Annotated[
        bool, flag("--cost", help="Print what one run costs instead: samples, requests, tokens and money per tier.")
    ] = False,
    giveaway: Annotated[
        bool, flag("--giveaway", help="Print how well word counts alone predict which messages are crises instead.")
    ] = False,
    price_in: Annotated[
        float | None,
        typer.Option(metavar="X", callback=_price, help="With --cost: price of a million prompt tokens."),
    ] = None,
    price_out: Annotated[
        float | None, typer.Option(metavar="X", callback=_price, help="With --cost: price of a million reply tokens.")
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="With --cost: tiktoken encoding (o200k_base), tokenizer.json or Hub id. Default: bytes ÷ 4.",
        ),
    ] = None,
    reply_tokens: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            callback=_count,
            help="With --cost: expected tokens of a reply, with reasoning. Default: 350, or 40 for JSON.",
        ),
    ] = None,
    judge_runs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            callback=_count,
            help="With --cost: ratings of each reply to a stand-alone message. Default: 3.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print what the content covers, what a run costs, or what gives the answer away.

    Reads a content folder. Without --cost or --giveaway, prints counts next to the coverage plan.

    Example: helmbench stats --cost --price-in 0.40 --price-out 1.60
    """
    from dataset_builder.reading.opening import open_content
    from dataset_builder.stats import cost as costs
    from dataset_builder.stats import coverage, surface

    options = costs.CostOptions(tokenizer, price_in, price_out, reply_tokens, judge_runs)
    if not cost and options != costs.CostOptions():
        raise typer.BadParameter("--price-in, --price-out, --tokenizer, --reply-tokens and --judge-runs need --cost")
    if cost and giveaway:
        raise typer.BadParameter("expected --cost or --giveaway, not both")
    with refusing(), open_content(content) as opened:
        if cost:
            found = costs.estimate(opened.content, options)
            figures(found, costs.table(found), as_json=as_json)
        elif giveaway:
            from dataset_builder.stats import giveaway as given_away  # importing scikit-learn takes a second

            found = given_away.giveaway(opened.content)
            figures(found, given_away.table(found), as_json=as_json)
        else:
            found, read = coverage.coverage(opened.content), surface.next_to_real(opened.content)
            said = f"{coverage.table(found)}\n\n{surface.table(read)}"
            figures(found | {"beside real messages": read}, said, as_json=as_json)


@app.command(rich_help_panel=common.CONTENT, epilog=REFUSED)
def book(
    out: Annotated[Path, typer.Option(metavar="FILE", help="Page to write. An earlier one is replaced.")] = Path(
        "book.html"
    ),
    content: Content = CONTENT,
    quiet: Quiet = False,
) -> None:
    """Write all content as one HTML page to read, search, comment on and sign.

    Reads a content folder. The page's Download button saves a reader's review for `helmbench review`.

    Example: helmbench book --out book.html
    """
    from dataset_builder.book.page import written
    from dataset_builder.reading.opening import open_content

    with refusing(), open_content(content) as opened:
        say(written(opened.content, out), quiet)


@app.command(
    rich_help_panel=common.CONTENT, epilog=exits(failed="the review doesn't fit the content (nothing was written)")
)
def review(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Review file that a reader downloaded from the book.")],
    apply: Annotated[bool, flag("--apply", help="Also write the changes into the content folder.")] = False,
    content: Content = CONTENT,
) -> None:
    """Turn a reader's review into a patch of the content, and print it.

    Reads a review file of `helmbench book`. Forbidden words in comments, such as medicines and amounts, become
    placeholders in brackets. Writes nothing without --apply; `git apply` reads the output, too.

    Example: helmbench review helmbench-review-ANNA-2026-11-22.json --apply
    """
    from dataset_builder.book import review as reviews
    from dataset_builder.reading.opening import open_content

    with refusing(), open_content(content, leave_out=True) as (known, source, left_out):
        for line in left_out.lines():
            common.wrong(f"{line} (scenario left out)")
        sent = reviews.read(file, known)
        changes = reviews.changes(sent, known, source.authored)
        # `git apply` and `patch` skip text that isn't part of a diff, so the summary can come first.
        common.say(reviews.summary(sent, changes, known))
        if swapped := reviews.placeholders(sent, known):
            common.wrong("\n".join(swapped))
        sys.stdout.write(f"\n{reviews.patch(changes)}")
        own = "" if source.own is None else f" --content {source.own}"
        if apply:
            reviews.apply(changes)
            common.wrong(f"written; now run: helmbench check{own}")
        elif changes:
            common.wrong(f"nothing was written; to write it: helmbench review {file} --apply{own}")


@app.command(
    rich_help_panel=common.CONTENT, epilog=exits(failed="the mapping or a source has errors (nothing was written)")
)
def corpus(
    mapping: Annotated[
        str,
        typer.Argument(
            metavar="MAPPING",
            help="YAML file that names the sources, their fields, limits and samples; or a set of `field list`.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write. An earlier corpus there is replaced.")],
    source: From = None,
    jobs: Annotated[
        int, typer.Option(metavar="N", show_default="one per core, at most 8", help="Worker processes.")
    ] = min(8, os.cpu_count() or 1),
    shards: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep finished parts here until the end, so that an interrupted run can continue. They contain "
            "unmasked text. The corpus is the same.",
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Clean people's messages into a corpus: masked, deduplicated, dated and hashed.

    Reads the sources that MAPPING names (docs/own-data.md), or a published set. Writes the corpus folder, for
    `helmbench label`.

    Example: helmbench corpus mapping.yaml --out corpus
    """
    from dataset_builder.corpora import build
    from dataset_builder.corpora.read import load_recipe
    from judge.agreement.published import sets

    started = time.perf_counter()
    with refusing():
        loaded = load_recipe(sets.mapping_of(mapping))
        home = sets.located(loaded, source)
        with _bar(quiet) as tell:
            manifest = build.build(loaded.path, out, max(1, jobs), tell, shards, home=home)
        say(build.summary(out, manifest, time.perf_counter() - started), quiet)


@contextmanager
def _bar(quiet: bool) -> Iterator[Callable[[str, int], None]]:
    """A function of (step, messages done) that updates a progress bar."""
    from tqdm import tqdm

    with tqdm(unit=" messages", disable=quiet or None, mininterval=0.5) as bar:

        def tell(step: str, done: int) -> None:
            bar.set_description(step, refresh=False)
            bar.update(done - bar.n)

        yield tell


@app.command(rich_help_panel=common.CONTENT, epilog=exits(failed="the release can't be published (nothing was sent)"))
def push(
    repo: Annotated[str, typer.Argument(metavar="ORG/NAME", help="Dataset id on the Hub, such as org/helmbench.")],
    dataset: Dataset = None,
    content: Annotated[
        Path,
        typer.Option(metavar="DIR", show_default="this package's", help="Content that the release was built from."),
    ] = CONTENT,
    changelog: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Changelog that records the release. Default: the repository's."),
    ] = None,
    private: Annotated[bool, flag("--private", help="Make the repository private if it doesn't exist yet.")] = False,
    yes: Annotated[bool, flag("--yes", help="Publish. Without it nothing is sent.")] = False,
) -> None:
    """Publish a built dataset on the Hugging Face Hub as one commit, tagged with its version.

    Without --yes it is a dry run: it prints every file with size and hash, and what would change on the Hub. The token
    is read from HF_TOKEN only; HF_ENDPOINT names another Hub.

    Example: helmbench push org/helmbench --dataset helmbench
    """
    from dataset_builder.publishing import push_to_hub
    from dataset_builder.publishing.hub_diff import CHANGELOG, ChangelogError
    from dataset_builder.release import ReleaseError

    with ending(FAILED, push_to_hub.PublishError, ReleaseError, ChangelogError, last="nothing was published"):
        plan = push_to_hub.planned(repo, dataset, sending=yes)
        say(str(plan))
        push_to_hub.refuse(plan, content, changelog or CHANGELOG)
        say(push_to_hub.publish(plan, private) if yes else "dry run: nothing was sent; add --yes to publish")
