"""A set of people's labels: items, what is asked about them, and the scale of the labels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from judge.schema import LabelKind, LabelledRows

REFUSAL, ANSWER = "refusal", "answer"


class Item(NamedTuple):
    """Something that people labeled: a reply, or a message alone.

    `said` alternates user and assistant and ends with the user. `by`: the criterion, or the category of the protocol.
    `labels`: by rater, on the set's scale; a rater who left the item out is missing. `family`: items that share a
    prompt are one observation in every interval. `groups`: what it is also counted under. `settled`: the label that
    the raters agreed on together, where the set publishes it. `published`: other judges' labels, by judge.
    """

    id: str
    said: tuple[str, ...]
    labels: Mapping[str, str]
    reply: str = ""
    by: str = ""
    family: str = ""
    groups: tuple[str, ...] = ()
    settled: str | None = None
    published: Mapping[str, str] = {}


@dataclass(frozen=True)
class Scale:
    """The labels that people could give. `numbers`: they are numbers, lowest first, and the people's common label is
    their mean, rounded; so is a published judge's mean of several passes. `coarse`: the same labels on fewer, for a
    second figure.
    """

    labels: tuple[str, ...]
    numbers: bool = False
    coarse: Mapping[str, str] = field(default_factory=dict)

    def value(self, label: str | None) -> float:
        """A label as a number: itself, rounded, or its place; NaN for None."""
        if label is None:
            return math.nan
        return rounded(float(label)) if self.numbers else float(self.labels.index(label))

    def common(self, item: Item) -> float:
        """The people's common label as a number: their mean, the label they settled on, or their majority; NaN without
        one.
        """
        if self.numbers:
            return rounded(float(np.mean([self.value(x) for x in item.labels.values()]))) if item.labels else math.nan
        if item.settled is not None:
            return self.value(item.settled)
        ranked = Counter(item.labels.values()).most_common(1)
        return self.value(ranked[0][0]) if ranked and 2 * ranked[0][1] > len(item.labels) else math.nan


@dataclass(frozen=True)
class LabeledSet:
    """A set, or half of it. `reads`: a judge's label on this scale, where it differs; a way to fail (FAIL-misses) is
    FAIL before that. `notes`: what to know about the figures.
    """

    name: str
    rows: LabelledRows
    kind: LabelKind
    scale: Scale
    items: tuple[Item, ...]
    reads: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def reading(self, label: str | None) -> str | None:
        """A judge's label on this scale."""
        if label is None:
            return None
        plain = label.partition("-")[0] if self.kind == "criterion" else label
        return self.reads.get(plain, plain)


def rounded(value: float) -> float:
    """A mean of ratings as a rating; half a step rounds up, as 1.5 → 2."""
    return float(math.floor(value + 0.5))


def crisis_or_not(categories: Iterable[str]) -> dict[str, str]:
    """Categories on two labels: no_crisis, and crisis for all others."""
    return {name: name if name == "no_crisis" else "crisis" for name in categories}


RATING = Scale(("1", "2", "3", "4", "5"), numbers=True)
REFUSALS = Scale((REFUSAL, ANSWER))
