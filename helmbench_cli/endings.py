"""How a command ends that can say why it did nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from dataset_builder.errors import RefusedError
from dataset_builder.formats.refused import printable
from helmbench_cli.root import BAD_INPUT, SHUT


@contextmanager
def ending(code: int, *kinds: type[Exception], last: str = "") -> Iterator[None]:
    """Ends the command with `code` where one of `kinds` is raised: its message, and then `last`, on standard error."""
    try:
        yield
    except kinds as error:
        sys.stderr.write("".join(f"{printable(str(text))}\n" for text in (error, last) if str(text)))
        raise typer.Exit(code) from None


@contextmanager
def refusing() -> Iterator[None]:
    """How commands end that write content, a build or a corpus: 1 with every problem, 2 where it can't be written."""
    try:
        with ending(BAD_INPUT, OSError):
            yield
    except RefusedError as error:
        count = f"{len(error.lines)} error{'s' if len(error.lines) != 1 else ''}"
        sys.stderr.write("\n".join([*map(printable, error.lines), f"{count}; nothing was written"]) + "\n")
        raise typer.Exit(SHUT) from None
