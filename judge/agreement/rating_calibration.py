"""How well a judge's ratings, 1 to 5, agree with the rating calibration set, and whether they hold still under changes
that must move no rating: what `helmbench calibrate` writes to rating_calibration.json.

The replies are written for this purpose and labeled by their authors, not by clinicians. Rows that differ by such a
change count as one observation in every interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from dataset_builder.release import Release
from dataset_builder.schema import CalibrationRow, CrisisCategory, Strict
from helmbench_common.hashing import digest
from judge.agreement.answers import JudgeLabels
from judge.agreement.calibration import CHANGES, Flips, families, flips
from judge.schema import RATINGS, RatingAgreement
from judge.statistics import coefficients as c
from judge.statistics.coefficients import Codes
from judge.statistics.estimate import Estimate
from judge.verdicts import JudgeIdentity

NO_ROWS = "the rating calibration set has no reply of this category"
NO_RATING = "no reply has a rating"


class RatingCalibration(Strict):
    """`rating_calibration.json`: one judge against the rating calibration set. `labels`: its rating of each reply, by
    id (null: unscored).

    `agreement`: over all categories first. `rating_sd`: the mean standard deviation of its ratings of one reply, null
    with one repeat.
    """

    format: Literal["helmbench-rating-calibration-1"] = "helmbench-rating-calibration-1"
    judge: str
    prompt_hash: str | None
    dataset: str
    calibration_hash: str
    agreement: list[RatingAgreement]
    flips: list[Flips]
    repeats: int
    self_agreement: Estimate | None
    rating_sd: float | None
    labels: dict[str, str | None]


def calibration_hash(release: Release) -> str:
    """Over the protocols and the replies; agreement measured under another hash doesn't apply."""
    rows = [r.model_dump(mode="json") for r in sorted(release.rating_calibration, key=lambda r: r.id)]
    return digest([{p.category: p.protocol_hash for p in release.protocols.values()}, rows])[:16]


def measured(release: Release, identity: JudgeIdentity, repeats: Sequence[JudgeLabels]) -> RatingCalibration:
    """Every figure of one judge; the first of `repeats` counts as a run's would."""
    rows, first = release.rating_calibration, repeats[0]
    own, sd = _steadiness(rows, repeats)
    return RatingCalibration(
        judge=identity.name,
        prompt_hash=identity.prompt_hash,
        dataset=release.manifest.version,
        calibration_hash=calibration_hash(release),
        agreement=agreement(release, first),
        flips=[flips(change, rows, first) for change in CHANGES],
        repeats=len(repeats),
        self_agreement=own,
        rating_sd=sd,
        labels={r.id: first[r.id].label for r in rows},
    )


def agreement(release: Release, labels: JudgeLabels) -> list[RatingAgreement]:
    """The agreement over all replies, and by the category of each of the release's protocols."""
    rows = release.rating_calibration
    categories: list[CrisisCategory | None] = [None, *release.protocols]
    return [_agreed(category, [r for r in rows if category in (None, r.criterion)], labels) for category in categories]


def _agreed(category: CrisisCategory | None, rows: Sequence[CalibrationRow], labels: JudgeLabels) -> RatingAgreement:
    author, judge = _codes([r.label for r in rows]), _codes([labels[r.id].label for r in rows])
    clusters, both = families(rows), judge >= 0
    steps, own = (judge - author)[both].astype(np.float64), clusters[both]
    harmful = both & (author == 0)
    return RatingAgreement(
        category=category,
        replies=len(rows),
        by_rule=sum(labels[r.id].by_rule for r in rows),
        unscored=int(np.sum(~both)),
        kappa=c.estimate(c.cohen(author, judge, c.weights_of(len(RATINGS), "quadratic"), clusters))
        if rows
        else Estimate(value=None, reason=NO_ROWS),
        raw=c.share((steps == 0).astype(np.float64), own, NO_RATING),
        within_one=c.share((np.abs(steps) <= 1).astype(np.float64), own, NO_RATING),
        bias=c.mean(steps, own, -4.0, 4.0, NO_RATING),
        harmful_recall=c.share(
            (judge[harmful] == 0).astype(np.float64),
            clusters[harmful],
            "the author rates no reply 1 that the judge rated",
        ),
        reason=None if rows else NO_ROWS,
    )


def _codes(labels: Sequence[str | None]) -> Codes:
    return np.array([-1 if x is None else RATINGS.index(x) for x in labels], dtype=np.int64)


def _steadiness(rows: Sequence[CalibrationRow], repeats: Sequence[JudgeLabels]) -> tuple[Estimate | None, float | None]:
    """Raw agreement and mean standard deviation of a judge's repeats, on the replies that no rule decides."""
    asked = [r for r in rows if not repeats[0][r.id].by_rule]
    if len(repeats) < 2 or not asked:
        return None, None
    codes = np.stack([_codes([labels[r.id].label for r in asked]) for labels in repeats], axis=1)
    several = (codes >= 0).sum(axis=1) > 1
    if not several.any():
        return None, None
    raw, _ = c.repeat_agreement(codes, len(RATINGS), families(asked), "no reply has two ratings")
    given = np.where(codes[several] < 0, np.nan, codes[several])
    return raw, float(np.nanstd(given, axis=1, ddof=1).mean())
