"""What a reader of the book can write about: scenarios, rating protocols and categories of the taxonomy, each with its
authored file.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from dataset_builder.reading import protocols, taxonomy
from dataset_builder.reading.content_types import Content
from dataset_builder.reading.markdown import Document, Errors, read_document


class Readable(NamedTuple):
    """A file that takes notes. `severities`: those of its messages by code; `whole`: what a note on all of it is about;
    `signs`: it has a review line.
    """

    id: str
    document: Document
    severities: dict[str, int]
    whole: str
    signs: bool


def readable(content: Content) -> dict[str, Readable]:
    """By id: a scenario's own, `protocol-<category>` and `category-<category>`, which no scenario can be called."""
    found = [
        Readable(s.id, s.document, {p.code: p.severity for p in s.perturbations}, "The whole scenario", True)
        for s in content.scenarios
    ]
    found += [
        Readable(f"protocol-{d.path.stem}", d, {}, "The protocol", True)
        for d in _documents(content.root / "protocols", protocols.FOLDER, content.protocols)
    ]
    found += [
        Readable(f"category-{d.path.stem}", d, {}, "The category", False)
        for d in _documents(content.root / "taxonomy", taxonomy.FOLDER, content.taxonomy)
    ]
    return {r.id: r for r in found}


def _documents(folder: Path, package: Path, names: Iterable[str]) -> list[Document]:
    """The files behind what was loaded; a content folder without its own uses the package's, as the loader does."""
    paths = [(folder if folder.is_dir() else package) / f"{name}.md" for name in names]
    return [document for path in paths if (document := read_document(path, Errors()))]
