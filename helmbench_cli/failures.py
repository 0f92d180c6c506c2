"""Which error ends a command with which exit code. What isn't listed is a fault of ours, and shows its traceback."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from dataset_builder.errors import RefusedError
from dataset_builder.release import ReleaseError
from helmbench_cli.app import BAD_INPUT, CAPPED, SHUT, STOPPED, UNREACHABLE
from judge.llm.errors import BudgetError, EngineError
from lm_eval_tasks.registering import RegistrationError
from replies.errors import RunError

CODES: tuple[tuple[type[BaseException], int], ...] = (
    (BudgetError, CAPPED),
    (EngineError, UNREACHABLE),
    (RegistrationError, SHUT),
    (ReleaseError, BAD_INPUT),
    (RunError, BAD_INPUT),
    (ValueError, BAD_INPUT),
    (OSError, UNREACHABLE),
)


def exit_code(error: BaseException) -> int:
    """Prints the error's one message and returns its exit code.

    Raises:
        BaseException: the error itself, where it is none that a user can mend.
    """
    if isinstance(error, KeyboardInterrupt):
        sys.stderr.write("stopped; run the same command again to go on where it stopped\n")
        return STOPPED
    for kind, code in CODES:
        if isinstance(error, kind):
            sys.stderr.write(f"{error}\n")
            return code
    raise error


@contextmanager
def ending(code: int, *kinds: type[Exception], last: str = "") -> Iterator[None]:
    """Ends the command with `code` where one of `kinds` is raised: its message, and then `last`, on standard error."""
    try:
        yield
    except kinds as error:
        sys.stderr.write("".join(f"{text}\n" for text in (error, last) if str(text)))
        raise typer.Exit(code) from None


@contextmanager
def refusing() -> Iterator[None]:
    """How commands end that write content, a build or a corpus: 1 with every problem, 2 where it can't be written."""
    try:
        with ending(BAD_INPUT, OSError):
            yield
    except RefusedError as error:
        count = f"{len(error.lines)} error{'s' if len(error.lines) != 1 else ''}"
        sys.stderr.write("\n".join([*error.lines, f"{count}; nothing was written"]) + "\n")
        raise typer.Exit(SHUT) from None
