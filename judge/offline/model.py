"""The small model: one linear model per question, read from `weights.json`, which `scripts/train_offline.py` writes.

A question is a criterion, or `rating:crisis` and `rating:no_crisis`. Each says how sure it must be to decide; a
question that real replies showed it can't read (`judge/offline/measured.json`) is never decided.
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
LEAST = 0.5  # κ on real replies, under which a question is never decided
FEWEST = 20  # real replies that it decided, with fewer of which its κ is nothing to go by
OTHERS = 5  # of these with another label than the commonest: who always says the same would agree on all but these
RATING = "rating:"  # what begins the names of the questions that rate
Scores = NDArray[np.float64]


class Guess(NamedTuple):
    """The likeliest label and how likely it is, 0 to 1; labels of one verdict (`FAIL-misses`, `FAIL-gives`) are summed
    first.
    """

    label: str
    sure: float


class Linear(NamedTuple):
    """One question's model. `weights[feature]`: a row of one number per label. `threshold`: how sure it must be."""

    labels: tuple[str, ...]
    threshold: float
    bias: Scores
    weights: dict[str, Scores]

    def scores(self, features: Iterable[str]) -> Scores:
        """One number per label, before they are made into probabilities."""
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
    """Whether it was found, on enough real replies, to read the question well enough; one not measured isn't."""
    return reads(measured().get(measured_as(question), {}))


def measured_as(question: str) -> str:
    """What a question's figures stand under: ratings are measured together."""
    return question.partition(":")[0]


def reads(figures: dict[str, Any]) -> bool:
    """Whether a question's figures on real replies let it decide."""
    kappa = figures.get("kappa")
    if kappa is None or figures["decided"] < FEWEST or figures["others"] < OTHERS:
        return False
    return bool(kappa >= LEAST)


@lru_cache(maxsize=1)
def measured() -> dict[str, dict[str, Any]]:
    """The figures on real replies that `scripts/measure_offline.py` wrote: of each criterion, and of all ratings."""
    found: dict[str, dict[str, Any]] = json.loads(MEASURED.read_text(encoding="utf-8"))["questions"]
    return found


def verdict(label: str) -> str:
    """What a label comes to: `FAIL-misses` is FAIL."""
    return label.partition("-")[0]


@lru_cache(maxsize=1)
def questions() -> dict[str, Linear]:
    """Every question that the model was trained on."""
    stored: dict[str, Any] = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    return {name: _linear(own) for name, own in stored["questions"].items()}


def _linear(stored: dict[str, Any]) -> Linear:
    return Linear(
        tuple(stored["labels"]),
        stored["threshold"],
        np.array(stored["bias"], dtype=np.float64),
        {name: np.array(row, dtype=np.float64) for name, row in stored["weights"].items()},
    )
