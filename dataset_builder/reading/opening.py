"""A content folder as a command is given it: read whole, with private additions laid over, or refused with every line.

What is read here may still break a rule across files; `checking` looks at those.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from dataset_builder.prompts import CONTENT
from dataset_builder.reading.content_types import Content
from dataset_builder.reading.load import load
from dataset_builder.reading.markdown import ContentRefusedError, Errors
from dataset_builder.reading.overlay import Source, opened


class Opened(NamedTuple):
    """Content that could be read, and where its files come from."""

    content: Content
    source: Source


@contextmanager
def open_content(folder: Path = CONTENT) -> Iterator[Opened]:
    """The content of a folder, whose files are there for as long as the block runs.

    Raises:
        ContentRefusedError: it is no content folder, or something in it can't be read.
    """
    with opened(folder, errors := Errors()) as source:
        content = _read(source, errors)
        refuse(source, errors)
        assert content  # without errors there is content
        yield Opened(source.marked(content), source)


def refuse(source: Source, errors: Errors) -> None:
    """Does nothing where there are no errors.

    Raises:
        ContentRefusedError: every one, at the authors' own files and lines.
    """
    if errors.found:
        raise ContentRefusedError(*source.placed(errors).lines())


def _read(source: Source, errors: Errors) -> Content | None:
    """What can be read; None with errors added where something can't be."""
    if not os.path.lexists(source.root / "benchmark.yaml"):
        errors.add(
            source.root / "benchmark.yaml", 1, "missing, so this is not a content folder; pass one with --content"
        )
        return None
    content, found = load(source.root)
    errors.found += found.found
    return content
