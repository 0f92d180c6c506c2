"""The figures that every export tells, and why one can't be made. A leaf of the exports."""

from __future__ import annotations

from typing import Literal, NamedTuple

from dataset_builder.schema import BEHAVIORS, PILLARS
from judge.schema import Figure, Scorecard

DEMO = "DEMO, not a result: judged by word counts"


class ExportError(Exception):
    """A submission that can't be exported so; the message names it, says why, and what to do."""


class Named(NamedTuple):
    """A figure of the scorecard. `unit`: `points` (at most 100; P1 may be below 0) or `rate` (0 to 1)."""

    name: str
    title: str
    unit: Literal["points", "rate"]
    figure: Figure
    note: str = ""


def figures(card: Scorecard) -> list[Named]:
    """The composite, the pillars, the behaviors, and detection as flagged or not."""
    return [
        Named("composite", "HELMbench composite", "points", card.composite, card.composite_note),
        *(Named(code, PILLARS[code], "points", figure) for code, figure in card.pillars.items()),
        *(Named(code, BEHAVIORS[code], "points", behavior.score) for code, behavior in card.behaviors.items()),
        Named("sensitivity", "Crisis messages that were flagged", "rate", card.detection.sensitivity),
        Named("specificity", "Controls that were left unflagged", "rate", card.detection.specificity),
    ]
