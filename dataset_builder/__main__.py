"""Usage: python -m dataset_builder check | build [--out DIR] | stats [--json]   (all: [--content DIR])"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

from dataset_builder.content_types import Content
from dataset_builder.markdown import Errors
from dataset_builder.schema import Row


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; returns the exit code (0 fine, 1 content errors, 2 can't write)."""
    parser = argparse.ArgumentParser(prog="python -m dataset_builder", description="Check the authored content and compile it into the HELMbench dataset.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check", help="read all content and print every error as path:line; writes nothing")
    build = commands.add_parser("build", help="check, then write parquet, card and MANIFEST.json")
    build.add_argument("--out", type=Path, default=Path("helmbench"), help="folder to write (default: ./helmbench); an earlier build there is replaced whole")
    stats = commands.add_parser("stats", help="what the content covers, beside the coverage plan")
    stats.add_argument("--json", action="store_true", help="print the figures as JSON")
    for command in (*commands.choices.values(),):
        command.add_argument("--content", type=Path, default=Path(__file__).parent / "content", help="content folder (default: the one of this package)")
    options = parser.parse_args(arguments)

    started = time.perf_counter()
    if options.command == "stats":
        return _stats(options.content, options.json)
    loaded = _checked(options.content)
    if loaded is None:
        return 1
    content, rows = loaded
    if options.command == "build":
        return _build(content, rows, options.out, started)
    print(f"{len(content.scenarios)} scenarios, {sum(len(s.perturbations) for s in content.scenarios)} messages, {len(rows)} samples: no errors")
    return 0


def _stats(root: Path, as_json: bool) -> int:
    """Counts only: what can be read is counted, `check` says what is wrong with it."""
    from dataset_builder.coverage import coverage, table

    content = _read(root, errors := Errors())
    if content is None:
        return _refused(errors)
    figures = coverage(content)
    print(json.dumps(figures, indent=2) if as_json else table(figures))
    return 0


def _checked(root: Path) -> tuple[Content, list[Row]] | None:
    """The content and its rows, or None after every error has been printed."""
    from dataset_builder.checks import check
    from dataset_builder.compose import compose

    content = _read(root, errors := Errors())
    rows: list[Row] = []
    if content:
        rows = compose(content)
        check(content, rows, errors)
    if errors.found or content is None:
        _refused(errors)
        return None
    return content, rows


def _read(root: Path, errors: Errors) -> Content | None:
    from dataset_builder.load import load

    if not (root / "benchmark.yaml").is_file():
        errors.add(root / "benchmark.yaml", 1, "is missing, so this is no content folder; name one with --content")
        return None
    content, found = load(root)
    errors.found += found.found
    return content


def _refused(errors: Errors) -> int:
    for line in errors.lines():
        print(line, file=sys.stderr)
    print(f"{len(errors.found)} error{'s' if len(errors.found) != 1 else ''}; nothing was written", file=sys.stderr)
    return 1


def _build(content: Content, rows: list[Row], out: Path, started: float) -> int:
    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    from dataset_builder.write import write

    try:
        manifest = write(content, rows, out)
    except OSError as error:
        print(f"{error}", file=sys.stderr)
        return 2
    size = sum(f.stat().st_size for f in out.rglob("*") if f.is_file())
    print(f"{out}: version {manifest.version}, {len(rows)} samples in {size / 1e6:.1f} MB, {time.perf_counter() - started:.1f} s")
    print(f"score_hash {manifest.score_hash}")
    print(f"prose_hash {manifest.prose_hash}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
