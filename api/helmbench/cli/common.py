"""What several commands share: options that mean the same everywhere, and how figures leave."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from helmbench_common.files import write_whole
from helmbench_common.formats.inert import escaped, inert
from helmbench_common.formats.refused import shown

# Where `helmbench --help` lists a command.
CONTENT, RUNS, PEOPLE, BOARD = "What is asked", "Run and score", "Judges and people", "Submissions and board"

Dataset = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="The built dataset (default: $HELMBENCH_DATASET, ./helmbench, then this repository's)."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, with everything, in place of the tables.")]
JsonFile = Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the figures as JSON to FILE.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing unless something is wrong.")]


def say(text: str, quiet: bool = False) -> None:
    """Prints what a command came to; what a terminal would obey, in a name or a reply, is spelt out."""
    if not quiet:
        sys.stdout.write(inert(text.rstrip("\n")) + "\n")


def note(text: str, quiet: bool = False) -> None:
    """Says beside the figures what they are of; nothing where there is nothing to say."""
    if not quiet:
        wrong(text)


def wrong(text: str) -> None:
    """Says on standard error what is wrong, or what to do next, where there is a word; as inert as `say`."""
    if text:
        sys.stderr.write(inert(text) + "\n")


def reason(error: BaseException) -> str:
    """An error's one message; the system's own as those of a file are: what it is, and what is wrong."""
    if isinstance(error, OSError) and isinstance(error.filename, str | bytes) and error.strerror:
        return f"{shown(os.fsdecode(error.filename))}: {error.strerror}"
    return str(error)


def figures(value: Any, text: str, *, as_json: bool, quiet: bool = False, file: Path | None = None) -> None:
    """Prints a table, or the same figures as JSON; `file` gets the JSON too. `value`: plain values, ready for JSON.

    JSON that was asked for is printed whatever `quiet` says.
    """
    shown = json.dumps(value, indent=2, ensure_ascii=False)
    if file is not None:
        write_whole(file, shown + "\n")
    if as_json:
        say(escaped(shown))
    else:
        say(text, quiet)
