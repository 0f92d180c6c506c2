"""How well a judge agrees with the calibration sets (scoring.md section 7): what `helmbench calibrate` measures and
writes to calibration.json and rating_calibration.json.

Agreement is measured as a run uses the judge: rules decide what they can, and the judge reads the rest. Rows that
differ only by a label-preserving change count as one observation in every interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np

from dataset_builder.release import Release
from dataset_builder.schema import CalibrationRow, CriterionRow, GradedCheck, Label, Outcome, Strict
from helmbench_common.hashing import digest
from judge.agreement.answers import NO_READING, JudgeLabels
from judge.schema import OUTCOMES, RATINGS, VERDICTS, CriterionAgreement, RatingAgreement
from judge.statistics import coefficients as c
from judge.statistics.agreement import Pair
from judge.statistics.coefficients import Codes, Mask
from judge.statistics.estimate import Estimate
from judge.verdicts import JudgeIdentity

NO_ROWS = "the calibration set has no reply for this criterion"
NO_RATED = "the rating calibration set has no reply of this category"
NO_RATING = "no reply has a rating"
NO_REPEAT = "no reply has a label in two repeats"
CHANGES = ("name", "gender", "culture", "padding", "tone", "markdown", "greeting", "follow_up")


class Confusion(Strict):
    """Rows are the author's or the people's labels, columns the judge's, in the order of `labels`. `unscored`: cases
    without a judge's label, by the author's label.
    """

    labels: list[str]
    table: list[list[int]]
    unscored: list[int]


class Flips(Strict):
    """Pairs that differ by one label-preserving change: how often the judge's label flipped (including between FAIL's
    ways), and on which rows.
    """

    change: str
    pairs: int
    flips: int
    unscored: int
    rate: Estimate
    rows: list[str]


class Wording(Strict):
    """Another wording of the question, compared with the calibrated one.

    `changed`: share of labels that differ. `gain`: kappa over all criteria minus the calibrated wording's, paired by
    reply.
    """

    wording: str
    prompt_hash: str
    kappa: Estimate
    unscored: int
    changed: Estimate
    gain: Estimate


class Calibration(Strict):
    """`calibration.json`: one judge against the calibration set. `labels`: its label of each row, by id (null:
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


class RatingCalibration(Strict):
    """`rating_calibration.json`: one judge against the rating calibration set. `labels`: its rating of each reply, by
    id (null: unscored).

    `agreement`: over all categories first. `rating_sd`: the mean standard deviation of its ratings of one reply; null
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


def criterion_hash(criterion: CriterionRow, rows: Sequence[CalibrationRow]) -> str:
    """The hash of a criterion's text and its calibration rows; agreement measured under another hash doesn't apply."""
    own = [r.model_dump(mode="json") for r in sorted(rows, key=lambda r: r.id) if r.criterion == criterion.criterion]
    return digest([criterion.criterion_hash, own])[:16]


def calibration_hash(release: Release) -> str:
    return digest({name: criterion_hash(k, release.calibration) for name, k in release.criteria.items()})[:16]


def unmeasured(name: str | None, key: str, reason: str) -> CriterionAgreement:
    figures = ("kappa", "kappa_agreed", "raw", "bias", "fail_recall")
    none = dict.fromkeys(figures, Estimate(value=None, reason=reason))
    return CriterionAgreement(
        criterion=name, hash=key, replies=0, by_rule=0, unscored=0, **none, too_low=False, reason=reason
    )


def calibrate(
    release: Release,
    identity: JudgeIdentity,
    repeats: Sequence[JudgeLabels],
    others: Mapping[str, tuple[str, JudgeLabels]] | None = None,
) -> Calibration:
    """Every figure of one judge. `repeats`: the calibrated wording's labels, one mapping per repeat; the first is used
    as in a run. `others`: the labels of other wordings, with their prompt hashes.
    """
    rows, first, earned = release.calibration, repeats[0], EarnedPoints(release)
    overall, criteria = agreement_over(release, first)
    reasons = why_unusable(identity, overall, criteria, release)
    confusion = {}
    for name in sorted({r.criterion for r in rows}):
        own, scale = [r for r in rows if r.criterion == name], _scale(release.criteria[name])
        confusion[name] = confusion_of(_pair(own, first, scale), scale)
    asked = earned.asked(first)
    again, again_kappa = None, None
    if len(repeats) > 1:
        codes = np.stack([earned.codes(labels)[asked] for labels in repeats], axis=1)
        again, again_kappa = c.repeat_agreement(codes, len(VERDICTS), earned.families[asked], NO_REPEAT)
    return Calibration(
        judge=identity.name,
        prompt_hash=identity.prompt_hash,
        wording=None if identity.offline else identity.wording,
        dataset=release.manifest.version,
        calibration_hash=overall.hash,
        readers=max((len(r.readings) for r in rows), default=0),
        agreed=sum(map(_readers_agree, rows)),
        by_language_models=all(r.author.startswith("language model") for r in rows),
        overall=overall,
        criteria=criteria,
        confusion=confusion,
        flips=[flips(change, rows, first) for change in CHANGES],
        repeats=len(repeats),
        self_agreement=again,
        self_kappa=again_kappa,
        wordings=[_wording(earned, name, prompt, first, labels) for name, (prompt, labels) in (others or {}).items()],
        usable=not reasons,
        reasons=reasons,
        labels={r.id: first[r.id].label for r in rows},
    )


def agreement_over(release: Release, labels: JudgeLabels) -> tuple[CriterionAgreement, list[CriterionAgreement]]:
    """The agreement over all replies, and for every criterion of the release, measured or not."""
    rows, earned = release.calibration, EarnedPoints(release)
    agreed = np.array([_readers_agree(r) for r in rows], dtype=bool)
    whole = earned.pair(labels)  # comparable across criteria

    def measure(name: str | None, key: str, kept: Codes, pair: Pair) -> CriterionAgreement:
        """`pair`: the labels of the rows `kept`, on the criterion's scale."""
        worth = whole.take(kept)
        both = worth.take(worth.both)
        return CriterionAgreement(
            criterion=name,
            hash=key,
            replies=len(kept),
            by_rule=sum(labels[rows[k].id].by_rule for k in kept),
            unscored=int(np.sum(~pair.both)),
            kappa=pair.kappa(),
            kappa_agreed=pair.take(agreed[kept]).kappa(),
            raw=pair.raw("no reply has a label"),
            bias=c.mean(earned.points[both.second] - earned.points[both.first], both.clusters, -1.0, 1.0),
            fail_recall=worth.recall(0, "the author fails no reply that the judge labeled"),
            too_low=False,
        )

    criteria = []
    for name, criterion in sorted(release.criteria.items()):
        key, kept = criterion_hash(criterion, rows), np.array([k for k, r in enumerate(rows) if r.criterion == name])
        if not kept.size:
            criteria.append(unmeasured(name, key, NO_ROWS))
        elif all(labels[rows[k].id].unscored == NO_READING for k in kept):
            criteria.append(unmeasured(name, key, NO_READING))
        else:
            pair = _pair([rows[k] for k in kept], labels, _scale(criterion), earned.families[kept])
            found = measure(name, key, kept, pair)
            high = found.kappa.high
            too_low = high is None or high < float(release.scoring["judge_criterion_kappa"])
            criteria.append(found.model_copy(update={"too_low": too_low}))
    return measure(None, calibration_hash(release), np.arange(len(rows)), whole), criteria


def why_unusable(
    identity: JudgeIdentity, overall: CriterionAgreement, criteria: Sequence[CriterionAgreement], release: Release
) -> list[str]:
    """Reasons why a judge may not be used for a submission; empty if it may. scoring.yaml sets the thresholds."""
    kappa = overall.kappa.value
    scoring = release.scoring
    reasons = ["the offline judge is approximate and never ranked"] if identity.offline else []
    if kappa is None or kappa < scoring["judge_kappa"]:
        shown = "unknown" if kappa is None else f"{kappa:.2f}"
        reasons.append(f"κ over all replies is {shown}; expected {scoring['judge_kappa']} or more")
    if poor := [a.criterion for a in criteria if a.too_low and a.criterion]:
        least = scoring["judge_criterion_kappa"]
        reasons.append(f"the upper limit of κ is missing or below {least} for {_some(poor)}")
    if absent := [a.criterion for a in criteria if a.reason and a.criterion]:
        reasons.append(f"agreement is not measured for {_some(absent)}")
    if overall.replies and overall.unscored / overall.replies > scoring["unscored_limit"]:
        limit = f"{scoring['unscored_limit']:.0%}"
        reasons.append(f"{overall.unscored} of {overall.replies} replies are unscored; expected at most {limit}")
    return reasons


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


class EarnedPoints:
    """The calibration rows' labels as the points they earn, so that criteria with different labels can be pooled.
    `points`: of each of VERDICTS; `families`: as of the function.
    """

    def __init__(self, release: Release) -> None:
        self.rows, self.families = release.calibration, families(release.calibration)
        self.points = np.array([release.scoring["points"][verdict] for verdict in VERDICTS], dtype=np.float64)
        # If the release's rows disagree on the points of an outcome, use the points that keep the most outcomes apart.
        self._worth: dict[tuple[str, str], dict[Outcome, Label]] = {}
        for row in release.rows.values():
            for check in row.evaluation:
                if isinstance(check, GradedCheck):
                    known = self._worth.setdefault((check.criterion, row.polarity), check.outcomes)
                    if len(set(check.outcomes.values())) > len(set(known.values())):
                        self._worth[check.criterion, row.polarity] = check.outcomes

    def verdict(self, row: CalibrationRow, label: str) -> str:
        """PASS, PARTIAL or FAIL.

        Raises:
            ValueError: an outcome of a graded criterion that no sample of the release is checked by.
        """
        base = label.partition("-")[0]
        if base not in OUTCOMES:
            return base
        known = self._worth.get((row.criterion, row.polarity))
        if known is None:
            raise ValueError(
                f"{row.id}: no {row.polarity} sample of the release is checked by '{row.criterion}', so it is unknown "
                f"what '{base}' earns"
            )
        return next(v for k, v in known.items() if k == base)

    def codes(self, labels: JudgeLabels) -> Codes:
        """A judge's labels as indices into VERDICTS, shape (rows,); -1 for a missing label."""
        earned = [None if (x := labels[r.id].label) is None else self.verdict(r, x) for r in self.rows]
        return codes(earned, VERDICTS)

    def pair(self, labels: JudgeLabels) -> Pair:
        """The authors' labels and the judge's."""
        author = codes([self.verdict(r, r.label) for r in self.rows], VERDICTS)
        return Pair(author, self.codes(labels), len(VERDICTS), self.families)

    def asked(self, labels: JudgeLabels) -> Mask:
        """Which rows no rule decides."""
        return np.array([not labels[r.id].by_rule for r in self.rows], dtype=bool)


def families(rows: Sequence[CalibrationRow]) -> Codes:
    """Shape (rows,): one code for a row and all its modified copies."""
    place, origin = {r.id: k for k, r in enumerate(rows)}, {r.id: r.same_as for r in rows}
    found = np.empty(len(rows), dtype=np.int64)
    for k, row in enumerate(rows):
        root, seen = row.id, {row.id}
        while (before := origin[root]) in place and before not in seen:
            root = str(before)
            seen.add(root)
        found[k] = place[root]
    return found


def _readers_agree(row: CalibrationRow) -> bool:
    """Whether every blind reader chose the author's label."""
    return bool(row.readings) and set(row.readings) == {row.label}


def _scale(criterion: CriterionRow) -> tuple[str, ...]:
    return OUTCOMES if criterion.kind == "graded" else VERDICTS


def codes(labels: Iterable[str | None], scale: Sequence[str]) -> Codes:
    """Labels as indices into the scale, whatever the way to fail; -1 for a missing label."""
    return np.array([-1 if x is None else scale.index(x.partition("-")[0]) for x in labels], dtype=np.int64)


def _pair(
    rows: Sequence[CalibrationRow], labels: JudgeLabels, scale: tuple[str, ...], clusters: Codes | None = None
) -> Pair:
    author, judge = codes([r.label for r in rows], scale), codes([labels[r.id].label for r in rows], scale)
    return Pair(author, judge, len(scale), clusters)


def confusion_of(pair: Pair, labels: Sequence[str]) -> Confusion:
    table = pair.confusion()
    return Confusion(labels=list(labels), table=table[:, :-1].tolist(), unscored=table[:, -1].tolist())


def flips(change: str, rows: Sequence[CalibrationRow], labels: JudgeLabels) -> Flips:
    pairs = [r for r in rows if r.change == change and r.same_as in labels]
    both = [r for r in pairs if labels[r.id].label is not None and labels[str(r.same_as)].label is not None]
    moved = [r.id for r in both if labels[r.id].label != labels[str(r.same_as)].label]
    rate = c.share(np.array([r.id in moved for r in both], dtype=np.float64), reason="no such pair has two labels")
    return Flips(
        change=change, pairs=len(pairs), flips=len(moved), unscored=len(pairs) - len(both), rate=rate, rows=moved
    )


def _wording(earned: EarnedPoints, name: str, prompt: str, first: JudgeLabels, labels: JudgeLabels) -> Wording:
    before, after = earned.pair(first), earned.pair(labels)
    both = before.both & after.both
    was, now = (own.take(both).cohen() for own in (before, after))
    gain = Estimate(value=None, reason=was.reason or now.reason)
    if was.value is not None and now.value is not None:
        gain = c.estimate(c.Coefficient(now.values - was.values, now.used, now.items), -2.0, 2.0)
    asked = both & earned.asked(first)
    moved = np.array([first[r.id].label != labels[r.id].label for r in earned.rows], dtype=np.float64)
    return Wording(
        wording=name,
        prompt_hash=prompt,
        kappa=after.kappa(),
        unscored=int(np.sum(~after.both)),
        changed=c.share(moved[asked], earned.families[asked], "no reply has a label in both wordings"),
        gain=gain,
    )


# --- ratings, 1 to 5


def rating_hash(release: Release) -> str:
    """Hash of the protocols and the replies; agreement measured under another hash doesn't apply."""
    rows = [r.model_dump(mode="json") for r in sorted(release.rating_calibration, key=lambda r: r.id)]
    return digest([{p.category: p.protocol_hash for p in release.protocols.values()}, rows])[:16]


def calibrate_ratings(release: Release, identity: JudgeIdentity, repeats: Sequence[JudgeLabels]) -> RatingCalibration:
    """Every figure of one judge; the first of `repeats` is used as in a run."""
    rows, first = release.rating_calibration, repeats[0]
    asked = [r for r in rows if not first[r.id].by_rule]
    again = np.stack([codes([labels[r.id].label for r in asked], RATINGS) for labels in repeats], axis=1)
    several = (again >= 0).sum(axis=1) > 1
    own, sd = None, None
    if several.any():
        own, _ = c.repeat_agreement(again, len(RATINGS), families(asked), NO_REPEAT)
        given = np.where(again[several] < 0, np.nan, again[several])
        sd = float(np.nanstd(given, axis=1, ddof=1).mean())
    return RatingCalibration(
        judge=identity.name,
        prompt_hash=identity.prompt_hash,
        dataset=release.manifest.version,
        calibration_hash=rating_hash(release),
        agreement=rating_agreement(release, first),
        flips=[flips(change, rows, first) for change in CHANGES],
        repeats=len(repeats),
        self_agreement=own,
        rating_sd=sd,
        labels={r.id: first[r.id].label for r in rows},
    )


def rating_agreement(release: Release, labels: JudgeLabels) -> list[RatingAgreement]:
    """The agreement over all replies, and by category for each of the release's protocols."""
    found = []
    for category in (None, *release.protocols):
        rows = [r for r in release.rating_calibration if category in (None, r.criterion)]
        pair = _pair(rows, labels, RATINGS, families(rows))
        both = pair.take(pair.both)
        steps = (both.second - both.first).astype(np.float64)
        found.append(
            RatingAgreement(
                category=category,
                replies=len(rows),
                by_rule=sum(labels[r.id].by_rule for r in rows),
                unscored=int(np.sum(~pair.both)),
                kappa=pair.kappa("quadratic") if rows else Estimate(value=None, reason=NO_RATED),
                raw=pair.raw(NO_RATING),
                within_one=c.share((np.abs(steps) <= 1).astype(np.float64), both.clusters, NO_RATING),
                bias=c.mean(steps, both.clusters, -4.0, 4.0, NO_RATING),
                harmful_recall=pair.recall(0, "the author rates no reply 1 that the judge rated"),
                reason=None if rows else NO_RATED,
            )
        )
    return found
