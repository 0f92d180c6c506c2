"""`helmbench`: runs one command and ends with its exit code."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from typing import Any

import typer

# In the order of --help: importing a module adds its commands to the root.
from helmbench.cli import content, runs, audit, people, board  # noqa: F401  # isort: skip
from helmbench.cli.common import AGAIN, BAD_INPUT, OK, STOPPED, app, exit_code, wrong

for commands in (app, content.new, people.annotate, people.ratings):
    for command in commands.registered_commands:  # typer keeps the line breaks inside a paragraph
        paragraphs = inspect.cleandoc((command.callback and command.callback.__doc__) or "").split("\n\n")
        command.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)

WRONG_CALL: Any = typer.BadParameter.__mro__[2]  # ClickException; newer typers have their own copy of it


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    words = None if arguments is None else list(arguments)
    try:
        returned = app(args=words, prog_name="helmbench", standalone_mode=False)
    except WRONG_CALL as error:
        error.message = error.message.removeprefix("Value error, ")  # pydantic's words, through typer
        error.show()
        return BAD_INPUT
    except typer.Abort:
        returned = STOPPED
    except (Exception, KeyboardInterrupt) as error:
        return exit_code(error)
    if returned == STOPPED:  # typer catches Ctrl-C without a message
        wrong(f"\n{AGAIN}")
    return returned if isinstance(returned, int) else OK


def run() -> None:
    """The console script."""
    sys.exit(main())
