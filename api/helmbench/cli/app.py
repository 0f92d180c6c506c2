"""`helmbench`: runs one command and ends it with its exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import typer

# In the order of --help: each module hangs its commands from the root as it is imported.
from helmbench.cli import content, runs, people, board  # noqa: F401  # isort: skip
from helmbench.cli.common import wrong
from helmbench.cli.root import AGAIN, BAD_INPUT, OK, STOPPED, app, exits

for commands in (app, content.new, people.annotate, people.ratings):
    for command in commands.registered_commands:
        command.epilog = command.epilog or exits()

WRONG_CALL: Any = typer.BadParameter.__mro__[2]  # ClickException, of which newer typers have a copy of their own


def main(arguments: Sequence[str] | None = None, program: str = "helmbench") -> int:
    """Runs one command; returns the exit code."""
    try:
        returned = app(args=None if arguments is None else list(arguments), prog_name=program, standalone_mode=False)
    except WRONG_CALL as error:
        error.show()
        return BAD_INPUT
    except typer.Abort:
        returned = STOPPED
    except (Exception, KeyboardInterrupt) as error:
        from helmbench.cli.failures import exit_code  # whose errors are those of every room

        return exit_code(error)
    if returned == STOPPED:  # which typer makes of Ctrl-C, without a word
        wrong(f"\n{AGAIN}")
    return returned if isinstance(returned, int) else OK


def run() -> None:
    """The console script."""
    sys.exit(main())
