"""A corpus's message → the question for its category: the guided triage prompt, asked through the judge's engine.

`outside_taxonomy` is offered too, which triage doesn't do: people write about delusions and violence at home, and a judge that
had to choose among the others would call these a crisis of a kind that they aren't.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from dataset_builder.release import Release, digest
from dataset_builder.schema import Category, CrisisCategory
from judge.asking.requests import JudgeRequest, sealed
from judge.messages import triage

Offered = Mapping[CrisisCategory, Category]


def offered(release: Release) -> Offered:
    """The categories that a corpus's message may be given, in the schema's order: all, as if triage offered them."""
    return {name: category.model_copy(update={"in_triage": True}) for name, category in release.taxonomy.items()}


def taxonomy_hash(categories: Offered) -> str:
    """sha256 over the offered categories' texts."""
    return digest([c.category_hash for c in categories.values()])


def prompt_hash() -> str:
    """sha256 over the question's own text."""
    return hashlib.sha256((triage.FILES / "triage-guided.md").read_bytes()).hexdigest()[:16]


def question(said: Sequence[Mapping[str, Any]], categories: Offered, model: str, repeat: int) -> JudgeRequest:
    """The request that asks `model` for the category of the last words of `said`, a row's messages. `repeat`: the judge's own, from 0."""
    labels = tuple(categories)
    properties = {"category": {"type": "string", "enum": list(labels)}}
    custom_id, body = sealed(triage.question(said, categories, "guided"), "category", properties, model, repeat)
    return JudgeRequest(custom_id, body, labels, "", category=True)
