"""Shared code for figures on standalone messages (scoring.md section 6): their source, and rates with one observation
per message. A message's replies and their ratings aren't independent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, get_args

import numpy as np

from dataset_builder.release import RELEASE
from dataset_builder.schema import Category, CrisisCategory, CriterionRow, Tier, UserMessage
from judge.schema import Figure
from judge.scoring.table import Codes
from judge.statistics.intervals import Array, Clusters, Interval, wilson

CATEGORIES: tuple[CrisisCategory, ...] = get_args(CrisisCategory)  # the strata


class RatingBasis(Protocol):
    """The data for scoring ratings. A release is one."""

    @property
    def messages(self) -> Mapping[str, UserMessage]: ...
    @property
    def criteria(self) -> Mapping[str, CriterionRow]: ...
    @property
    def scoring(self) -> Mapping[str, Any]: ...


class LabelBasis(Protocol):
    """The data for scoring triage labels. A release is one."""

    @property
    def messages(self) -> Mapping[str, UserMessage]: ...
    @property
    def taxonomy(self) -> Mapping[CrisisCategory, Category]: ...
    @property
    def scoring(self) -> Mapping[str, Any]: ...


class MessageSet(NamedTuple):
    """The messages that a run was asked. `source`: the release, or the corpus; `complete`: all of them were asked, and
    enough answers were readable. `tier`: None if the source has none.
    """

    source: str
    messages_hash: str
    complete: bool
    tier: Tier | None = None

    @property
    def own(self) -> bool:
        """Whether the messages are a corpus's."""
        return self.source != RELEASE


def clusters(num: Array | Codes, den: Array | Codes, strata: Codes) -> Clusters:
    """One cluster per message: its share num/den, weighted by den, so that the mean is the plain share over all."""
    weights = den.astype(np.float64)
    return Clusters(num.astype(np.float64), weights, weights**2, strata, np.arange(len(weights)))


def rate(num: Array | Codes, den: Array | Codes, strata: Codes, scoring: Mapping[str, Any]) -> Interval:
    """Σnum/Σden over messages, with Wilson's interval at the effective number of messages."""
    inside = den > 0
    if not inside.any():
        return None, None, None
    found = clusters(num[inside], den[inside], strata[inside])
    return wilson(found, None, scoring["pooled_messages"], scoring["confidence"])


def figure(found: Interval, n: int, clusters: int, unscored: int = 0, bounds: tuple[Any, Any] = (None, None)) -> Figure:
    """An interval as a figure. `bounds`: the value if every unscored verdict failed, or passed."""
    value, low, high = found
    fail, passed = (None if b is None else float(b) for b in bounds)
    return Figure(
        value=value, low=low, high=high, n=n, clusters=clusters, unscored=unscored, all_fail=fail, all_pass=passed
    )
