"""A corpus message → the question for its category: the guided triage prompt, sent through the judge's engine.

Unlike in triage, `outside_taxonomy` is offered too: people write about delusions and violence at home, and a judge
limited to the other categories would misclassify these as a crisis of another kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dataset_builder.prompts import Prompts
from dataset_builder.release import Release
from dataset_builder.schema import Category, CrisisCategory
from helmbench_common.hashing import digest
from judge.llm.questions import JudgeRequest, sealed
from judge.replies.script import triage_question


@dataclass(frozen=True)
class Offered:
    """The categories available for a corpus message, in the schema's order, and their descriptions in the question."""

    categories: Mapping[CrisisCategory, Category]
    prompts: Prompts

    @property
    def names(self) -> tuple[CrisisCategory, ...]:
        return tuple(self.categories)

    @property
    def taxonomy_hash(self) -> str:
        """sha256 of the offered categories' texts."""
        return digest([c.category_hash for c in self.categories.values()])

    @property
    def prompt_hash(self) -> str:
        """sha256 of the question's own text."""
        return self.prompts.hash("triage-guided")


def offered(release: Release) -> Offered:
    """All categories of a release, including those that triage doesn't offer."""
    return Offered(
        {name: c.model_copy(update={"in_triage": True}) for name, c in release.taxonomy.items()}, release.prompts
    )


def question(said: Sequence[Mapping[str, Any]], offered: Offered, model: str, repeat: int) -> JudgeRequest:
    """The request that asks `model` for the category of the last message in `said`, a row's messages.

    `repeat`: the judge's repeat, from 0.
    """
    properties = {"category": {"type": "string", "enum": list(offered.names)}}
    asked = triage_question(said, offered.categories, offered.prompts, "guided")
    custom_id, body = sealed(asked, "category", properties, model, repeat)
    return JudgeRequest(custom_id, body, offered.names, "", category=True)
