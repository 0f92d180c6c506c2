"""Turns an error that a command raised into its message and exit code."""

from __future__ import annotations

import traceback

from helmbench.cli.common import reason, wrong
from helmbench.cli.root import AGAIN, BAD_INPUT, FAULT, STOPPED, UNREACHABLE
from helmbench_common.errors import HelmbenchError


def exit_code(error: BaseException) -> int:
    """Prints the error's message and returns the exit code; an unexpected error prints its traceback."""
    if isinstance(error, KeyboardInterrupt):
        wrong(AGAIN)
        return STOPPED
    if isinstance(error, HelmbenchError | ValueError | OSError):
        wrong(reason(error))
        if isinstance(error, HelmbenchError):
            return error.exit_code
        return BAD_INPUT if isinstance(error, ValueError) else UNREACHABLE
    traceback.print_exception(error)
    return FAULT
