"""Shared by the scripts: options from a function's signature, and errors as one line with exit code 2."""

from __future__ import annotations

import sys
from collections.abc import Callable

import typer

from helmbench_common.errors import HelmbenchError


def run(main: Callable[..., None]) -> None:
    """Runs a script. Its docstring is the help."""
    try:
        typer.run(main)
    except (HelmbenchError, OSError, ValueError) as error:
        sys.exit(print(error, file=sys.stderr) or 2)
