"""The root that every command hangs from, and the exit codes."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer

OK, SHUT, BAD_INPUT, UNREACHABLE, CAPPED, STOPPED = 0, 1, 2, 3, 4, 130
AGAIN = "stopped; run the same command again to go on where it stopped"
EPILOG = (
    "Exit codes: 0 fine; 1 a gate is shut, or what was checked doesn't hold; 2 bad input; 3 the judge can't be "
    "reached, or the disk; 4 --max-cost is reached; 130 stopped by Ctrl-C."
)

app = typer.Typer(
    name="helmbench",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EPILOG,
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
