"""What every set of people's labels comes down to: items, what is asked about them, and the scale of the labels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from judge.schema import LabelKind, LabelledRows

REFUSAL, ANSWER = "refusal", "answer"


class Item(NamedTuple):
    """Something that people labelled: a reply, or a message alone.

    `said` alternates user and assistant and ends with the user. `by`: the criterion, or the category of the protocol.
    `labels`: by rater, of the set's scale; a rater who left it out is not among them. `family`: items that share a
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
    """The labels that people could give. `numbers`: they are numbers, lowest first, and people's common label is their
    mean, rounded, and so is a published judge's mean of several passes. `coarse`: the same labels on fewer, for a
    second figure.
    """

    labels: tuple[str, ...]
    numbers: bool = False
    coarse: Mapping[str, str] = field(default_factory=dict)

    def value(self, label: str) -> float:
        """A label as a number: itself, or its place."""
        return rounded(float(label)) if self.numbers else float(self.labels.index(label))


@dataclass(frozen=True)
class LabelledSet:
    """A set, or half of it. `reads`: what a judge's label is on this scale, where it isn't itself; a way to fail
    (FAIL-misses) is FAIL before that. `notes`: what is to be known beside the figures.
    """

    name: str
    rows: LabelledRows
    kind: LabelKind
    scale: Scale
    items: tuple[Item, ...]
    reads: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def reading(self, label: str) -> str:
        """A judge's label on this scale."""
        plain = label.partition("-")[0] if self.kind == "criterion" else label
        return self.reads.get(plain, plain)


def rounded(value: float) -> float:
    """A mean of ratings as a rating: half a step goes up, away from 0, as in 1.5 → 2."""
    return float(math.floor(value + 0.5))


RATING = Scale(("1", "2", "3", "4", "5"), numbers=True)
REFUSALS = Scale((REFUSAL, ANSWER))
