"""Usage: python -m dataset_builder check | build [--out DIR] [--held-out DIR] | stats [--json | --cost] | book | review
FILE | corpus MAPPING …
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

from dataset_builder.figures import cost
from dataset_builder.prompts import CONTENT
from dataset_builder.reading.content_types import Content
from dataset_builder.reading.markdown import Errors
from dataset_builder.reading.overlay import Source, opened
from dataset_builder.schema import Row


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; returns the exit code (0 fine, 1 content errors, 2 can't write)."""
    parser = argparse.ArgumentParser(
        prog="python -m dataset_builder",
        description="Check the authored content and compile it into the HELMbench dataset.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    checking = commands.add_parser("check", help="read all content and print every error as path:line; writes nothing")
    build = commands.add_parser("build", help="check, then write parquet, card and MANIFEST.json")
    build.add_argument(
        "--out",
        type=Path,
        default=Path("helmbench"),
        help="folder to write (default: ./helmbench); an earlier build there is replaced whole",
    )
    for command in (checking, build):
        command.add_argument(
            "--held-out",
            type=Path,
            help="a private split's folder: its scenarios with everything else of the content (docs/held-out.md)",
        )
    stats = commands.add_parser("stats", help="what the content covers, beside the coverage plan")
    stats.add_argument("--json", action="store_true", help="print the figures as JSON")
    cost.add_arguments(stats)
    book = commands.add_parser("book", help="everything that is asked, on one page to read, search, comment and sign")
    book.add_argument(
        "--out",
        type=Path,
        default=Path("book.html"),
        help="page to write (default: ./book.html); an earlier book there is replaced",
    )
    review = commands.add_parser(
        "review", help="turn the book's download into a patch of review lines and notes; prints it"
    )
    review.add_argument("file", type=Path, help="the review file that a reader sent")
    review.add_argument("--apply", action="store_true", help="write the changes as well")
    for command in (*commands.choices.values(),):
        command.add_argument(
            "--content",
            type=Path,
            default=CONTENT,
            help="content folder (default: the one of this package); a folder without benchmark.yaml holds "
            "private additions, laid over that one",
        )
    commands.add_parser(
        "corpus", help="clean messages of your own into a dated, hashed corpus folder (docs/corpora.md)", add_help=False
    )
    options, rest = parser.parse_known_args(arguments)
    if options.command == "corpus":
        from corpora.__main__ import main as corpus

        return corpus(rest)
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if options.command == "stats":
        options.asked = cost.asked(stats, options)

    started = time.perf_counter()
    with opened(options.content, errors := Errors()) as source:
        content = _read(source, errors)
        if content is None:
            return _refused(source, errors)
        return _run(options, source, content, errors, started)


def _run(options: argparse.Namespace, source: Source, content: Content, errors: Errors, started: float) -> int:
    if options.command == "stats":
        return _stats(content, options.json, options.asked)
    if options.command == "book":
        return _book(content, options.out)
    if options.command == "review":
        return _review(content, source, options.file, options.apply)
    rows = _checked(content, errors)
    if options.held_out and not errors.found:
        from dataset_builder.composing.compose import compose
        from dataset_builder.checking.held_out import held_out

        private = held_out(content, options.held_out, options.out if options.command == "build" else None, errors)
        if private:
            content, rows = private, compose(private)
    if errors.found:
        return _refused(source, errors)
    if options.command == "build":
        return _build(content, rows, options.out, started)
    print(
        f"{len(content.scenarios)} scenarios, {sum(len(s.perturbations) for s in content.scenarios)} "
        f"messages, {len(rows)} samples: no errors"
    )
    if content.additions:
        print(content.additions)
    return 0


def _read(source: Source, errors: Errors) -> Content | None:
    """What can be read; None with errors added where something can't be."""
    from dataset_builder.reading.load import load

    if not (source.root / "benchmark.yaml").is_file():
        errors.add(
            source.root / "benchmark.yaml", 1, "is missing, so this is no content folder; name one with --content"
        )
        return None
    content, found = load(source.root)
    errors.found += found.found
    return source.marked(content) if content and not errors.found else None


def _stats(content: Content, as_json: bool, asked: cost.Asked | None) -> int:
    """Counts only: what can be read is counted, `check` says what is wrong with it."""
    from dataset_builder.figures.coverage import coverage, table

    if asked:
        return _cost(content, as_json, asked)
    figures = coverage(content)
    print(json.dumps(figures, indent=2) if as_json else table(figures))
    return 0


def _cost(content: Content, as_json: bool, asked: cost.Asked) -> int:
    from dataset_builder.composing.compose import compose
    from dataset_builder.composing.messages import messages
    from dataset_builder.figures import cost_messages

    try:
        figures = cost.estimate(compose(content), asked)
        alone = cost_messages.estimate(content, messages(content), asked)
    except cost.CostError as error:
        print(f"{error}", file=sys.stderr)
        return 2
    if as_json:
        print(json.dumps(figures | {"messages": alone}, indent=2))
    else:
        print(f"{cost.table(figures)}\n\n{cost_messages.table(alone, asked.price_in is not None)}")
    return 0


def _checked(content: Content, errors: Errors) -> list[Row]:
    """The content's rows; errors are added for what doesn't hold across it."""
    from dataset_builder.composing.compose import compose
    from dataset_builder.checking.checks import check

    rows = compose(content)
    check(content, rows, errors)
    return rows


def _refused(source: Source, errors: Errors) -> int:
    for line in source.placed(errors).lines():
        print(line, file=sys.stderr)
    print(f"{len(errors.found)} error{'s' if len(errors.found) != 1 else ''}; nothing was written", file=sys.stderr)
    return 1


def _book(content: Content, out: Path) -> int:
    """Like `stats`, the book shows what can be read: a draft with a gap is there to be read too."""
    from dataset_builder.book.page import write_book

    try:
        size = write_book(content, out)
    except OSError as error:
        print(f"{error}", file=sys.stderr)
        return 2
    print(
        f"{out}: {len(content.scenarios)} scenarios, {sum(len(s.perturbations) for s in content.scenarios)} "
        f"messages, {size / 1e6:.1f} MB"
    )
    return 0


def _review(content: Content, source: Source, file: Path, write: bool) -> int:
    from dataset_builder.book.review import ReviewError, read
    from dataset_builder.book.review_patch import apply, changes, patch, summary

    try:
        review = read(file, content)
        found = changes(review, content, lambda path: source.place(path)[0])
        # What isn't part of a diff is skipped by `git apply` and `patch`, so the patch can open with what it is.
        print(f"{summary(review, found, content)}\n\n{patch(found)}", end="")
        if write:
            apply(found)
            print(
                "written; now run: python -m dataset_builder "
                f"check{'' if source.own is None else f' --content {source.own}'}",
                file=sys.stderr,
            )
    except ReviewError as error:
        print(
            f"{error}\n{len(error.problems)} error{'s' if len(error.problems) != 1 else ''}; nothing was written",
            file=sys.stderr,
        )
        return 1
    except OSError as error:
        print(f"{error}", file=sys.stderr)
        return 2
    return 0


def _build(content: Content, rows: list[Row], out: Path, started: float) -> int:
    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    from dataset_builder.writing.write import write

    try:
        manifest = write(content, rows, out)
    except OSError as error:
        print(f"{error}", file=sys.stderr)
        return 2
    size = sum(f.stat().st_size for f in out.rglob("*") if f.is_file())
    print(
        f"{out}: version {manifest.version}, {len(rows)} samples in {size / 1e6:.1f} MB, "
        f"{time.perf_counter() - started:.1f} s"
    )
    if manifest.additions:
        print(manifest.additions)
    print(f"score_hash {manifest.score_hash}")
    print(f"prose_hash {manifest.prose_hash}")
    print(f"messages_hash {manifest.messages_hash}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
