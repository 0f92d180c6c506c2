"""The small model: one linear model per question, read from `weights.json`, which `scripts/train_offline.py` writes.

A question is a criterion, or `rating:crisis` and `rating:no_crisis`. Each has a confidence threshold for deciding; a
question that the model can't read on real replies (`judge/offline/measured.json`) is never decided.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

WEIGHTS = Path(__file__).with_name("weights.json")
MEASURED = Path(__file__).with_name("measured.json")
LEAST = 0.5  # κ on real replies; below it, a question is never decided
FEWEST = 20  # decided real replies; with fewer, κ is unreliable
OTHERS = 5  # of these, with a label other than the most common; otherwise a constant answer would agree on nearly all
RATING = "rating:"  # prefix of the names of rating questions
Scores = NDArray[np.float64]


class Guess(NamedTuple):
    """The most likely label and its probability, 0 to 1; labels of one verdict (`FAIL-misses`, `FAIL-gives`) are summed
    first.
    """

    label: str
    sure: float


class Linear(NamedTuple):
    """One question's model. `weights[feature]`: one number per label. `threshold`: the probability required to
    decide.
    """

    labels: tuple[str, ...]
    threshold: float
    bias: Scores
    weights: dict[str, Scores]

    def scores(self, features: Iterable[str]) -> Scores:
        """One number per label, before conversion to probabilities."""
        total = self.bias.copy()
        for name in features:
            if (row := self.weights.get(name)) is not None:
                total += row
        return total

    def guess(self, features: Iterable[str]) -> Guess:
        scores = self.scores(features)
        shares = np.exp(scores - scores.max())
        shares /= shares.sum()
        sums: dict[str, float] = {}
        for label, share in zip(self.labels, shares, strict=True):
            sums[verdict(label)] = sums.get(verdict(label), 0.0) + float(share)
        best = max(sums, key=lambda name: sums[name])
        own = [n for n, label in enumerate(self.labels) if verdict(label) == best]
        return Guess(self.labels[max(own, key=lambda n: shares[n])], sums[best])


def decides(question: str) -> bool:
    """Whether the model reads the question well enough on enough real replies; False if not measured."""
    return reads(measured().get(measured_as(question), {}))


def measured_as(question: str) -> str:
    """The key of a question's figures: ratings are measured together."""
    return question.partition(":")[0]


def reads(figures: dict[str, Any]) -> bool:
    """Whether a question's figures on real replies are good enough to decide it."""
    kappa = figures.get("kappa")
    return kappa is not None and kappa >= LEAST and figures["decided"] >= FEWEST and figures["others"] >= OTHERS


@lru_cache(maxsize=1)
def measured() -> dict[str, dict[str, Any]]:
    """The figures on real replies, written by `scripts/measure_offline.py`: for each criterion, and for all ratings."""
    found: dict[str, dict[str, Any]] = json.loads(MEASURED.read_text(encoding="utf-8"))["questions"]
    return found


def verdict(label: str) -> str:
    """The verdict of a label: `FAIL-misses` is FAIL."""
    return label.partition("-")[0]


@lru_cache(maxsize=1)
def questions() -> dict[str, Linear]:
    """Every question that the model was trained on."""
    stored: dict[str, Any] = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    return {
        name: Linear(
            tuple(own["labels"]),
            own["threshold"],
            np.array(own["bias"], dtype=np.float64),
            {feature: np.array(row, dtype=np.float64) for feature, row in own["weights"].items()},
        )
        for name, own in stored["questions"].items()
    }
