"""The shapes of a calibration: what a judge said of the calibration set, what was measured of it, and the hashes that
tie both to a release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from dataset_builder.release import Release
from dataset_builder.schema import CalibrationRow, CriterionRow, Strict
from helmbench_common.hashing import digest
from judge.schema import CriterionAgreement
from judge.statistics.estimate import Estimate

NO_ROWS = "the calibration set has no reply for this criterion"
CANNOT_TELL = "cannot tell"
NO_READING = "this judge has no reading for the criterion"
CHANGES = ("name", "gender", "culture", "padding", "tone", "markdown", "greeting", "follow_up")


class Answered(NamedTuple):
    """One row's label, or why it has none (`unscored`; `no reading`: the judge doesn't know the criterion). `by_rule`:
    no judge was asked.
    """

    label: str | None
    unscored: str | None = None
    by_rule: bool = False


Answers = Mapping[str, Answered]  # by row id


class Confusion(Strict):
    """Rows the author's labels, columns the judge's, in the order of `labels`; `unscored` by the author's label."""

    labels: list[str]
    table: list[list[int]]
    unscored: list[int]


class Flips(Strict):
    """Pairs that differ by one change which must move no label: how often the judge's moved (FAIL's ways included), and
    on which rows.
    """

    change: str
    pairs: int
    flips: int
    unscored: int
    rate: Estimate
    rows: list[str]


class Wording(Strict):
    """Another wording of the question beside the one that was calibrated: its agreement, and what it changes.

    `changed`: share of labels that differ. `gain`: kappa over all criteria less the calibrated wording's, paired by
    reply.
    """

    wording: str
    prompt_hash: str
    kappa: Estimate
    unscored: int
    changed: Estimate
    gain: Estimate


class Calibration(Strict):
    """`calibration.json`: one judge against the calibration set. `labels`: what it said of every row, by id (null:
    unscored).
    """

    format: Literal["helmbench-calibration-1"] = "helmbench-calibration-1"
    judge: str
    prompt_hash: str | None
    wording: str | None
    dataset: str
    calibration_hash: str
    readers: int
    agreed: int
    by_language_models: bool
    overall: CriterionAgreement
    criteria: list[CriterionAgreement]
    confusion: dict[str, Confusion]
    flips: list[Flips]
    repeats: int
    self_agreement: Estimate | None
    self_kappa: Estimate | None
    wordings: list[Wording]
    usable: bool
    reasons: list[str]
    labels: dict[str, str | None]


def criterion_hash(criterion: CriterionRow, rows: Sequence[CalibrationRow]) -> str:
    """Over a criterion as a judge reads it and the rows that stand for it: agreement measured under another hash says
    nothing here.
    """
    own = [r.model_dump(mode="json") for r in sorted(rows, key=lambda r: r.id) if r.criterion == criterion.criterion]
    return digest([criterion.criterion_hash, own])[:16]


def calibration_hash(release: Release) -> str:
    return digest({name: criterion_hash(k, release.calibration) for name, k in release.criteria.items()})[:16]


def blank(name: str | None, key: str, reason: str) -> CriterionAgreement:
    """A criterion about which nothing is known, listed all the same."""
    none = Estimate(value=None, reason=reason)
    return CriterionAgreement(
        criterion=name,
        hash=key,
        replies=0,
        by_rule=0,
        unscored=0,
        kappa=none,
        kappa_agreed=none,
        raw=none,
        bias=none,
        fail_recall=none,
        too_low=False,
        reason=reason,
    )
