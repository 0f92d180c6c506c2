"""A cleaned document → the row that a corpus holds of it, or the line that says why it holds none."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from dataset_builder.corpora.licences import Reading, normal, read_licence
from dataset_builder.corpora.normalise import fold
from dataset_builder.corpora.schema import Document, Dropped, Recipe
from helmbench_common import jsonl

licence_reading: Callable[[str | None], Reading] = cache(read_licence)


def identity(source: str, digest: bytes) -> str:
    """A row's id: of its source and its words."""
    return f"{source}-{digest.hex()[:16]}"


def row(document: Document, digest: bytes, recipe: Recipe) -> dict[str, Any]:
    """`schema.COLUMNS`, then the kept fields of all sources, null where this one has none."""
    kept = dict(document.kept)
    return {
        "id": identity(document.source, digest),
        "source": document.source,
        "source_id": document.source_id,
        "language": document.language,
        "licence": normal(document.licence) or None,
        "redistributable": licence_reading(document.licence).redistributable,
        "characters": len(document.said),
        "text": document.turns[-1].text,
        "messages": [{"role": t.role, "content": t.text} for t in document.turns],
        **{name: kept.get(name) for name in recipe.kept},
    }


def folded(line: bytes) -> str:
    """The text that duplicates are compared by, of a row's line."""
    return fold("\n".join(m["content"] for m in jsonl.loads(line)["messages"]))


def exact_copy(source: str, line: int, kept: str) -> Dropped:
    """A document that says what the row `kept` says."""
    return Dropped(source, line, "exact_duplicate", "the same words", kept, 1.0)


def near_copy(source: str, line: int, kept: str, jaccard: float) -> Dropped:
    """A document that says nearly what the row `kept` says."""
    return Dropped(source, line, "near_duplicate", "nearly the same words", kept, round(jaccard, 4))
