"""How a command ends that can say why it did nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from helmbench.cli.common import reason, wrong
from helmbench.cli.root import BAD_INPUT, SHUT
from helmbench_common.errors import RefusedError


@contextmanager
def ending(code: int, *kinds: type[Exception], last: str = "") -> Iterator[None]:
    """Ends the command with `code` where one of `kinds` is raised: its message, and then `last`, on standard error."""
    try:
        yield
    except kinds as error:
        wrong("\n".join(text for text in (reason(error), last) if text))
        raise typer.Exit(code) from None


@contextmanager
def refusing() -> Iterator[None]:
    """How commands end that write content, a build or a corpus: 1 with every problem, 2 where it can't be written."""
    try:
        with ending(BAD_INPUT, OSError):
            yield
    except RefusedError as error:
        count = f"{len(error.lines)} error{'s' if len(error.lines) != 1 else ''}"
        wrong("\n".join([*error.lines, f"{count}; nothing was written"]))
        raise typer.Exit(SHUT) from None
