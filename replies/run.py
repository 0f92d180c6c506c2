"""A run: what one model replied to one release, whoever asked it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from dataset_builder.schema import Tier
from replies.schema import Model, Reply


@dataclass(frozen=True)
class Run:
    """Replies of one model on one release. `tier` is null for replies collected elsewhere, and where no benchmark task
    was run.

    `messages`: replies to messages that stand alone (appropriateness); `triage`: the labels that the model gave them,
    by prompt (`bare`, `guided`); `messages_tier` is of both.
    """

    path: Path
    model: Model
    tier: Tier | None
    replies: list[Reply]
    limited: bool
    messages: list[Reply] = field(default_factory=list[Reply])
    triage: dict[str, list[Reply]] = field(default_factory=dict[str, list[Reply]])
    messages_tier: Tier | None = None

    @property
    def ids(self) -> set[str]:
        return {r.id for r in self.replies}
