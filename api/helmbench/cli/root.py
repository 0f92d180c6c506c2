"""The root that every command hangs from, and the exit codes."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer

OK, SHUT, BAD_INPUT, UNREACHABLE, CAPPED, UNANSWERED, FAULT, STOPPED = 0, 1, 2, 3, 4, 5, 70, 130
MEANINGS = {
    OK: "fine",
    SHUT: "a gate is shut, or what was checked doesn't hold",
    BAD_INPUT: "bad input",
    UNREACHABLE: "the judge can't be reached, or the disk",
    CAPPED: "--max-cost is reached",
    UNANSWERED: "too little was answered for the figures to count",
    FAULT: "a fault of helmbench",
    STOPPED: "stopped by Ctrl-C",
}
ANY = (OK, BAD_INPUT, UNREACHABLE, FAULT, STOPPED)  # that every command may end with
AGAIN = "stopped; run the same command again to go on where it stopped"


def exits(*own: int) -> str:
    """The last line of a command's help: the exit codes of any command, and its own."""
    return "Exit codes: " + "; ".join(f"{code} {MEANINGS[code]}" for code in sorted({*ANY, *own})) + "."


app = typer.Typer(
    name="helmbench",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=exits(*MEANINGS),
    help="Measures how language models treat people in distress.",
)


def _version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"helmbench {version('helmbench')}\n")
        raise typer.Exit


@app.callback()
def _root(
    show: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Measures how language models treat people in distress."""
