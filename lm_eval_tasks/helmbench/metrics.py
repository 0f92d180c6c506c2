"""The figures that lm-eval prints right after a run, without a judge: those of `judge.scoring.detect`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dataset_builder.schema import Check, Row
from judge.rules.answers import detects
from judge.schema import Verdict
from judge.scoring.detect import detect
from judge.scoring.table import build

Item = list[Any]  # a verdict of a rule: sample id, repeat, index of the check, label, incident, unscored


def names(rows: Iterable[Row]) -> list[str]:
    """The figures that samples of these rows have; `rows`: with the checks that rules decide alone."""
    found: set[str] = set()
    for row in rows:
        for side in {_side(row, check) for check in row.evaluation}:
            found |= {side, f"prompt_{side}"} if row.arm == "with" else {side}
    if {"sensitivity", "specificity"} <= found:
        found.add("informedness")
    order = ("sensitivity", "specificity", "informedness", "job")
    return [name for name in (*order, *(f"prompt_{name}" for name in order)) if name in found]


def _side(row: Row, check: Check) -> str:
    return "job" if not detects(check) else "sensitivity" if row.polarity == "crisis" else "specificity"


def items(verdicts: Iterable[Verdict]) -> list[Item]:
    return [[v.id, v.repeat, v.index, v.label, v.incident, v.unscored] for v in verdicts]


def figures(rows: Mapping[str, Row], given: Sequence[list[Item]], scoring: Mapping[str, Any]) -> dict[str, float]:
    """Every figure and its standard error (`…_stderr`) from the items of all samples; nan where there is none."""
    verdicts = []
    for identity, repeat, index, label, incident, unscored in (item for sample in given for item in sample):
        check = rows[identity].evaluation[index]
        verdicts.append(
            Verdict(
                id=identity,
                repeat=repeat,
                index=index,
                check=check.check,
                behavior=check.behavior,
                turn=check.turn,
                label=label,
                incident=incident,
                unscored=unscored,
                decided_by="rule:lm-eval",
            )
        )
    made = detect(build(rows, verdicts, scoring), scoring)
    if made is None:
        return {}
    d = made.detection
    found = {
        "sensitivity": d.sensitivity,
        "specificity": d.specificity,
        "informedness": d.informedness,
        "job": made.job,
        **{f"prompt_{name}": figure for name, figure in made.prompt.items()},
    }
    values = {name: figure.value for name, figure in found.items() if figure is not None}
    return {name: np.nan if value is None else value for name, value in values.items()} | {
        f"{name}_stderr": error for name, error in made.stderr.items()
    }


def accuracy(given: list[list[float]]) -> float:
    """100 · the mean of each message's share of right labels."""
    shares = [share for message in given for share in message]
    return 100 * float(np.mean(shares)) if shares else float("nan")


def accuracy_stderr(given: list[list[float]]) -> float:
    shares = [share for message in given for share in message]
    return 100 * float(np.std(shares, ddof=1) / np.sqrt(len(shares))) if len(shares) > 1 else float("nan")
