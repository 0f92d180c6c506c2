"""`helmbench`: the root of all commands, and what ends a command with which exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated, Any

import typer

OK, SHUT, BAD_INPUT, UNREACHABLE, CAPPED, STOPPED = 0, 1, 2, 3, 4, 130
WRONG_CALL: Any = typer.BadParameter.__mro__[2]  # ClickException, of which newer typers have a copy of their own
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


def main(arguments: Sequence[str] | None = None, program: str = "helmbench") -> int:
    """Runs one command; returns the exit code."""
    from helmbench_cli.failures import exit_code

    _commands()
    try:
        returned = app(args=None if arguments is None else list(arguments), prog_name=program, standalone_mode=False)
    except WRONG_CALL as error:
        error.show()
        return BAD_INPUT
    except typer.Abort:
        sys.stderr.write("stopped; run the same command again to go on where it stopped\n")
        return STOPPED
    except (Exception, KeyboardInterrupt) as error:
        return exit_code(error)
    return returned if isinstance(returned, int) else OK


def run() -> None:
    """The console script."""
    sys.exit(main())


def _commands() -> None:
    """Each module adds its commands to `app` as it is imported; they import what they do only when they do it."""
    from helmbench_cli import board, content, people, runs  # noqa: F401
