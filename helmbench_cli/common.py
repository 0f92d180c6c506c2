"""What several commands share: options that mean the same everywhere, and how figures leave."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from dataset_builder.files import write_whole

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


# What moves a terminal's cursor, colours it or turns its direction, and halves of characters: a model's name may hold
# any of them. Their escapes are what JSON writes, too.
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def safe(text: str) -> str:
    """A text as a terminal may show it."""
    return UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def say(text: str, quiet: bool = False) -> None:
    """Prints what a command came to."""
    if not quiet:
        sys.stdout.write(safe(text).rstrip("\n") + "\n")


def note(text: str, quiet: bool = False) -> None:
    """Says beside the figures what they are of; nothing where there is nothing to say."""
    if text and not quiet:
        sys.stderr.write(safe(text) + "\n")


def figures(value: Any, text: str, *, as_json: bool, quiet: bool = False, file: Path | None = None) -> None:
    """Prints a table, or the same figures as JSON; `file` gets the JSON too. `value`: plain values, ready for JSON.

    JSON that was asked for is printed whatever `quiet` says.
    """
    shown = json.dumps(value, indent=2, ensure_ascii=False)
    if file is not None:
        write_whole(file, shown + "\n")
    if as_json:
        say(shown)
    else:
        say(text, quiet)
