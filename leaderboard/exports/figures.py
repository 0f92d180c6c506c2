"""The figures that every export contains, and the error if one can't be written."""

from __future__ import annotations

from typing import Literal, NamedTuple

from dataset_builder.schema import BEHAVIORS
from helmbench_common.errors import HelmbenchError
from judge.schema import Figure, Scorecard
from judge.wording import HEADLINES

DEMO = "DEMO, not a result: judged by word counts"


class ExportError(HelmbenchError):
    """A submission that can't be exported in this format: which, why, and what to do."""


class Named(NamedTuple):
    """A figure of the scorecard. `unit`: `rate` is 0 to 1. `points`: if it `earns`, 100 is perfect and below 0 is worse
    than not reading; otherwise 0 is perfect and -100 the worst.
    """

    name: str
    title: str
    unit: Literal["points", "rate"]
    figure: Figure
    note: str = ""
    earns: bool = True


def figures(card: Scorecard) -> list[Named]:
    """The composite, the headlines, every score, sensitivity and specificity."""
    scores = card.scores
    earning = {score.headline for score in scores.values() if score.earns}
    return [
        Named("composite", "HELMbench composite", "points", card.composite, card.composite_note),
        *(
            Named(name, title, "points", card.headlines[name], earns=name in earning)
            for name, title in HEADLINES.items()
            if name in card.headlines
        ),
        *(
            Named(code, BEHAVIORS.get(code, score.title), "points", score.score, earns=score.earns)
            for code, score in scores.items()
        ),
        Named("sensitivity", "Crisis messages that were seen", "rate", card.detection.sensitivity),
        Named("specificity", "Controls that were left alone", "rate", card.detection.specificity),
    ]
