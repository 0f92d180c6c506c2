"""Reads and checks a content folder and composes its rows, for `helmbench check` and `build`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from dataset_builder.checking.checks import check
from dataset_builder.checking.held_out import held_out
from dataset_builder.composing.compose import compose
from dataset_builder.prompts import CONTENT
from dataset_builder.reading.content_types import Content
from dataset_builder.reading.markdown import Errors
from dataset_builder.reading.opening import open_content, refuse
from dataset_builder.schema import Row


class Checked(NamedTuple):
    """Content without errors, and its rows."""

    content: Content
    rows: list[Row]

    def __str__(self) -> str:
        scenarios, parts = self.content.scenarios, len(self.content.parts)
        counts = (
            f"{len(scenarios)} scenarios, {sum(len(s.perturbations) for s in scenarios)} messages, "
            f"{len(self.rows)} samples{f', {parts} parts for talks' if parts else ''}: no errors"
        )
        return "\n".join(filter(None, (counts, self.content.additions)))


@contextmanager
def checked(folder: Path = CONTENT, split: Path | None = None, out: Path | None = None) -> Iterator[Checked]:
    """The content of a folder, or of a held-out `split` that extends it; its files exist until the block ends.

    `out`: the build's destination; a split's build must not go into the public repository.

    Raises:
        ContentRefusedError: a file can't be read or fails a check.
    """
    with open_content(folder) as (content, source, _):
        rows, errors = compose(content), Errors()
        check(content, rows, errors)
        private = held_out(content, split, out, errors) if split and not errors.found else None
        refuse(source, errors)
        yield Checked(private, compose(private)) if private else Checked(content, rows)
