"""What the figures on messages that stand alone rest on (scoring.md section 6): ratings and labels of one release or
corpus.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from dataset_builder.schema import Category, CrisisCategory, CriterionRow, Tier, UserMessage


class RatingBasis(Protocol):
    """What ratings are counted on: every message and criterion by id, and scoring.yaml as it was read. A release is
    one.
    """

    @property
    def messages(self) -> Mapping[str, UserMessage]: ...
    @property
    def criteria(self) -> Mapping[str, CriterionRow]: ...
    @property
    def scoring(self) -> Mapping[str, Any]: ...


class LabelBasis(Protocol):
    """What labels are counted on: every message by id, the categories in their order, and scoring.yaml as it was read.
    A release is one.
    """

    @property
    def messages(self) -> Mapping[str, UserMessage]: ...
    @property
    def taxonomy(self) -> Mapping[CrisisCategory, Category]: ...
    @property
    def scoring(self) -> Mapping[str, Any]: ...


class Asked(NamedTuple):
    """Which messages a run was asked. `source`: the release, or the corpus; `complete`: whether it was asked all of
    them, and enough could be read. `tier`: None where the source has none.
    """

    source: str
    messages_hash: str
    complete: bool
    tier: Tier | None = None
