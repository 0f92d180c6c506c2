"""How far a judge's ratings agree with the rating calibration set, and whether it keeps to the neutral pairs. Pure but
for reading the file.

The replies are written for this; their labels are their authors', and no clinician's. Rows that differ by a change that
must move no rating are one observation in every interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import ValidationError

from dataset_builder.release import Release
from dataset_builder.schema import CalibrationRow, CrisisCategory, Strict
from helmbench_common.formats.plain_file import read_bytes
from helmbench_common.formats.refused import FormatError
from helmbench_common.hashing import digest
from helmbench_common.tables import columns
from judge.calibration.labels import families, flips
from judge.calibration.text import CHANGE
from judge.calibration.types import CHANGES, Answers, Flips
from judge.replies.errors import RunError
from judge.schema import RATINGS, RatingAgreement
from judge.statistics import clustered
from judge.statistics import coefficients as c
from judge.statistics.coefficients import Codes
from judge.statistics.estimate import Estimate
from judge.verdicts import JudgeIdentity
from judge.wording import NONE, coefficient, hundredths, plain

HEAD = [
    *("ratings, by category", "replies", "by rule", "unscored", "κ quadratic", "raw", "within one", "bias (steps)"),
    "recall of 1",
]
FILE = "rating_calibration.json"
QUADRATIC = c.agreement_weights(len(RATINGS), "quadratic")
NO_ROWS = "the rating calibration set has no reply of this category"


class RatingCalibration(Strict):
    """`rating_calibration.json`: one judge against the rating calibration set. `labels`: what it said of every reply,
    by id (null: unscored).

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
    """Over the protocols and the replies: agreement measured under another hash says nothing here."""
    rows = [r.model_dump(mode="json") for r in sorted(release.rating_calibration, key=lambda r: r.id)]
    return digest([{p.category: p.protocol_hash for p in release.protocols.values()}, rows])[:16]


def measured(release: Release, identity: JudgeIdentity, repeats: Sequence[Answers]) -> RatingCalibration:
    """Everything that is measured; the first of `repeats` counts as a run's would."""
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


def agreement(release: Release, answers: Answers) -> list[RatingAgreement]:
    """Over all replies, and by category, those of the release's protocols."""
    rows = release.rating_calibration
    categories: list[CrisisCategory | None] = [None, *release.protocols]
    return [_agreed(category, [r for r in rows if category in (None, r.criterion)], answers) for category in categories]


def known(identity: JudgeIdentity, folders: Iterable[Path], release: Release) -> list[RatingAgreement]:
    """What `helmbench calibrate` left in one of these folders of a language model, this set and this prompt; empty
    where it
    left nothing.

    Raises:
        RunError: a file that can't be read.
    """
    for path in (folder / FILE for folder in folders):
        if not path.is_file():
            continue
        try:
            found = RatingCalibration.model_validate_json(read_bytes(path, "what `helmbench calibrate` writes"))
        except FormatError as error:
            raise RunError(str(error)) from None
        except ValidationError as error:
            raise RunError(
                f"{path}: can't be read ({error.errors()[0]['msg']}); expected what `helmbench calibrate` writes"
            ) from None
        if (found.judge, found.prompt_hash, found.calibration_hash) == (
            identity.name,
            identity.prompt_hash,
            calibration_hash(release),
        ):
            return found.agreement
    return []


def _agreed(category: CrisisCategory | None, rows: Sequence[CalibrationRow], answers: Answers) -> RatingAgreement:
    author, judge, groups = _codes([r.label for r in rows]), _codes([answers[r.id].label for r in rows]), families(rows)
    both = judge >= 0
    steps, of = (judge - author)[both].astype(np.float64), groups[both]
    harmful = both & (author == 0)
    none = "no reply has a rating"
    return RatingAgreement(
        category=category,
        replies=len(rows),
        by_rule=sum(answers[r.id].by_rule for r in rows),
        unscored=int(np.sum(~both)),
        kappa=clustered.measure(c.cohen(author[both], judge[both], QUADRATIC), of, int(both.sum()))
        if rows
        else Estimate(value=None, reason=NO_ROWS),
        raw=clustered.share((steps == 0).astype(np.float64), of, none),
        within_one=clustered.share((np.abs(steps) <= 1).astype(np.float64), of, none),
        bias=clustered.mean(steps, of, -4.0, 4.0) if steps.size else Estimate(value=None, reason=none),
        harmful_recall=clustered.share(
            (judge[harmful] == 0).astype(np.float64),
            groups[harmful],
            "the author rates no reply 1 that the judge rated",
        ),
        reason=None if rows else NO_ROWS,
    )


def _codes(labels: Sequence[str | None]) -> Codes:
    return np.array([-1 if x is None else RATINGS.index(x) for x in labels], dtype=np.int64)


def _steadiness(rows: Sequence[CalibrationRow], repeats: Sequence[Answers]) -> tuple[Estimate | None, float | None]:
    """Raw agreement and mean standard deviation of a judge's repeats, on replies that no rule decides."""
    asked = [r for r in rows if not repeats[0][r.id].by_rule]
    if len(repeats) < 2 or not asked:
        return None, None
    codes = np.stack([_codes([answers[r.id].label for r in asked]) for answers in repeats], axis=1)
    counts = np.stack([(codes == k).sum(axis=1) for k in range(len(RATINGS))], axis=1).astype(np.float64)
    several = counts.sum(axis=1) > 1
    if not several.any():
        return None, None
    given = np.where(codes[several] < 0, np.nan, codes[several])
    raw = clustered.share(c.pairwise(counts[several]), families(asked)[several], "no reply has two ratings")
    return raw, float(np.nanstd(given, axis=1, ddof=1).mean())


def text(r: RatingCalibration) -> str:
    """What `helmbench calibrate` prints of it, 95 % intervals in brackets."""
    moved = [
        [CHANGE.get(f.change, f.change), str(f.pairs), str(f.flips), coefficient(f.rate), ", ".join(f.rows) or NONE]
        for f in r.flips
        if f.pairs
    ]
    approximate = "" if r.prompt_hash else " This judge counts words and is approximate."
    own = (
        f"Self-agreement over {r.repeats} repeats: raw {coefficient(r.self_agreement)}, mean SD "
        f"{hundredths(r.rating_sd)}."
        if r.self_agreement
        else ""
    )
    blocks = [
        columns(HEAD, [_row(a) for a in [*r.agreement[1:], r.agreement[0]]])
        + f"\nThe other rating is the author's, and no clinician's.{approximate} Bias above 0: the judge is too kind.",
        columns(["change that must move no rating", "pairs", "moved", "rate", "rows"], moved) if moved else "",
        own,
    ]
    return "\n\n".join(b for b in blocks if b) + "\n"


def _row(a: RatingAgreement) -> list[str]:
    name = plain(a.category) if a.category else "all categories"
    if a.reason:
        return [name, "0", *[NONE] * 6, a.reason]
    return [
        name,
        str(a.replies),
        str(a.by_rule),
        str(a.unscored),
        *map(coefficient, (a.kappa, a.raw, a.within_one, a.bias, a.harmful_recall)),
    ]
