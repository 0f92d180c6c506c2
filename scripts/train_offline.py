"""Trains the offline judge's small model on the replies written for it, and writes `judge/offline/weights.json`.

Language models of this project wrote the rows (`judge/offline/training/*.jsonl`) for this use only; they contain no
calibration reply and no published text. Prints for each question its rows and its agreement with them on held-out
messages (five folds, a message's replies in one fold), at the threshold from which at least ACCURATE of its decisions
are right.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from harness import run
from numpy.typing import NDArray
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score
from sklearn.model_selection import GroupKFold

from helmbench_common.files import write_whole
from helmbench_common.jsonl import objects
from helmbench_common.tables import columns
from judge.offline import judge as offline
from judge.offline.model import WEIGHTS, verdict

ROWS = Path(__file__).resolve().parents[1] / "judge" / "offline" / "training"
FOLDS = 5
STRENGTH = 0.1  # inverse of the ridge penalty
FEWEST = 3  # messages in which a feature must occur
LEAST = 4  # rows that a label needs to be a separate label
ACCURATE = 0.9
SMALL = 0.02  # features with smaller weights in every label are left out


class Row(NamedTuple):
    """A reply of the training set under one question."""

    message: str
    reply: str
    label: str


def main(rows: Path = ROWS, out: Path = WEIGHTS) -> None:
    """Train the offline judge's small model."""
    made = {name: trained(name, own) for name, own in sorted(read(rows).items())}
    head = ("question", "rows", "labels", "κ", "threshold", "decided", "right", "κ decided", "features")
    print(columns(head, [(name, *own.said) for name, own in made.items()]))
    stored = {"name": offline.NAME, "questions": {name: own.stored for name, own in made.items()}}
    write_whole(out, json.dumps(stored, ensure_ascii=False, separators=(",", ":"), sort_keys=True) + "\n")


def read(folder: Path) -> dict[str, list[Row]]:
    """The rows of every question: the criteria that a row has labels for, and the rating of its category."""
    found: dict[str, list[Row]] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for _, row in objects(path):
            labels = dict(row["labels"])
            if "rating" in row:
                labels[offline.rating_question(row["category"])] = str(row["rating"])
            for name, label in labels.items():
                found.setdefault(name, []).append(Row(row["said"][-1], row["reply"], label))
    return found


class Trained(NamedTuple):
    """A question's weights, and a line about their accuracy."""

    stored: dict[str, Any]
    said: tuple[str, ...]


def trained(name: str, rows: list[Row]) -> Trained:
    """One question's model, with the threshold from held-out messages."""
    features = [offline.features(row.message, row.reply) for row in rows]
    known = _known(features, [row.message for row in rows])
    table = DictVectorizer(dtype=np.float64)
    matrix = table.fit_transform([dict.fromkeys(sorted(own & known), 1.0) for own in features])
    labels = _labels(rows)
    truth = np.array([verdict(label) for label in labels])
    guessed, sure = _left_out(matrix, labels, [row.message for row in rows])
    threshold = _threshold(guessed == truth, sure)
    decided = sure >= threshold
    model = _fit(matrix, labels)
    weights = _weights(table.get_feature_names_out(), model)
    stored = {
        "labels": [str(label) for label in model.classes_],
        "threshold": round(threshold, 2),
        "bias": [round(float(x), 3) for x in _intercept(model)],
        "weights": weights,
    }
    said = (
        str(len(rows)),
        str(len(model.classes_)),
        f"{_kappa(name, truth, guessed):.2f}",
        f"{threshold:.2f}",
        f"{decided.mean():.0%}",
        f"{np.mean(guessed[decided] == truth[decided]):.0%}",
        f"{_kappa(name, truth[decided], guessed[decided]):.2f}",
        str(len(weights)),
    )
    return Trained(stored, said)


def _known(features: Sequence[Collection[str]], messages: list[str]) -> set[str]:
    """The features that occur with enough different messages: words of one message teach nothing."""
    pairs = {(name, message) for own, message in zip(features, messages, strict=True) for name in own}
    return {name for name, many in Counter(name for name, _ in pairs).items() if many >= FEWEST}


def _labels(rows: list[Row]) -> NDArray[Any]:
    """The labels; one that is too rare to learn is replaced by the most common label of its verdict."""
    counts = Counter(row.label for row in rows)

    def kept(label: str) -> str:
        same = [other for other in counts if verdict(other) == verdict(label)]
        return label if counts[label] >= LEAST else max(same, key=counts.__getitem__)

    return np.array([kept(row.label) for row in rows])


def _fit(matrix: Any, labels: NDArray[Any]) -> LogisticRegression:
    return LogisticRegression(C=STRENGTH, max_iter=5000).fit(matrix, labels)


def _left_out(matrix: Any, labels: NDArray[Any], messages: list[str]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """The models' labels of the rows that they weren't trained on, and their certainty."""
    guessed = np.empty(len(labels), dtype=object)
    sure = np.zeros(len(labels))
    for train, test in GroupKFold(FOLDS).split(matrix, labels, messages):
        model = _fit(matrix[train], labels[train])
        names = sorted({verdict(label) for label in model.classes_})
        chances = model.predict_proba(matrix[test])
        own = [[verdict(label) == name for label in model.classes_] for name in names]
        sums = np.stack([chances[:, mine].sum(axis=1) for mine in own], axis=1)
        guessed[test], sure[test] = np.array(names)[sums.argmax(axis=1)], sums.max(axis=1)
    return guessed, sure


def _threshold(right: NDArray[np.bool_], sure: NDArray[np.float64]) -> float:
    """The smallest certainty from which at least ACCURATE of the decisions are right."""
    for threshold in np.arange(0.34, 0.99, 0.01):
        decided = sure >= threshold
        if decided.any() and right[decided].mean() >= ACCURATE:
            return float(threshold)
    return 0.99


def _intercept(model: LogisticRegression) -> NDArray[np.float64]:
    own: NDArray[np.float64] = model.intercept_
    return np.array([0.0, own[0]]) if len(model.classes_) == 2 else own


def _weights(names: NDArray[Any], model: LogisticRegression) -> dict[str, list[float]]:
    """A row of weights for each feature that matters, one per label."""
    table: NDArray[np.float64] = model.coef_
    if len(model.classes_) == 2:
        table = np.vstack([np.zeros_like(table), table])
    return {
        str(name): [round(float(x), 3) for x in column]
        for name, column in zip(names, table.T, strict=True)
        if np.abs(column).max() >= SMALL
    }


def _kappa(name: str, truth: NDArray[Any], guessed: NDArray[Any]) -> float:
    weights = "quadratic" if name.startswith("rating") else None
    return float(cohen_kappa_score(truth.astype(str), guessed.astype(str), weights=weights))


if __name__ == "__main__":
    run(main)
