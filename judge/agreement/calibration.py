"""How well a judge agrees with the calibration sets (scoring.md section 7): what `helmbench calibrate` measures and
writes to calibration.json and rating_calibration.json.

Agreement is measured as a run uses the judge: rules decide what they can, and the judge reads the rest. Rows that
differ only by a label-preserving change count as one observation in every interval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from dataset_builder.release import Release
from dataset_builder.schema import CalibrationRow, CriterionRow, GradedCheck, Label, Outcome, Strict
from helmbench_common.hashing import digest
from judge.agreement.answers import NO_READING, JudgeLabels
from judge.llm.questions import prompt_hash
from judge.panel import base
from judge.schema import OUTCOMES, RATINGS, VERDICTS, CriterionAgreement
from judge.statistics import coefficients as c
from judge.statistics.agreement import Readings
from judge.statistics.coefficients import Mask, Weighting
from judge.statistics.estimate import Estimate
from judge.verdicts import JudgeIdentity

NO_ROWS = "the calibration set has no reply for this criterion"
NO_LABEL = "no reply has a label"
NO_FAIL = "the author fails no reply that the judge labeled"
NO_ONE = "the author rates no reply 1 that the judge rated"
NO_REPEAT = "no reply has a label in two repeats"
Kind = Literal["criterion", "rating"]  # of a calibration set
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
    """`calibration.json` and `rating_calibration.json`: one judge against a calibration set. `labels`: its label of
    each row, by id (null: unscored).

    `criteria`: by criterion, or by category of the ratings. `rating_sd`: the mean standard deviation of its ratings of
    one reply; null with one repeat. Ratings have no other wordings and decide about no submission.
    """

    format: Literal["helmbench-calibration-1"] = "helmbench-calibration-1"
    kind: Kind = "criterion"
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
    rating_sd: float | None = None
    wordings: list[Wording]
    usable: bool
    reasons: list[str]
    labels: dict[str, str | None]


def criterion_hash(criterion: CriterionRow, rows: Sequence[CalibrationRow]) -> str:
    """The hash of a criterion's text and its calibration rows; agreement measured under another hash doesn't apply."""
    own = [r.model_dump(mode="json") for r in sorted(rows, key=lambda r: r.id) if r.criterion == criterion.criterion]
    return digest([criterion.criterion_hash, own])[:16]


def calibration_hash(release: Release, kind: Kind = "criterion") -> str:
    """The hash of the criteria or protocols and their replies; agreement measured under another hash doesn't apply."""
    if kind == "criterion":
        return digest({name: criterion_hash(k, release.calibration) for name, k in release.criteria.items()})[:16]
    rows = [r.model_dump(mode="json") for r in sorted(release.rating_calibration, key=lambda r: r.id)]
    return digest([{p.category: p.protocol_hash for p in release.protocols.values()}, rows])[:16]


def unmeasured(name: str | None, key: str, reason: str) -> CriterionAgreement:
    none = Estimate(value=None, reason=reason)
    counts = {"replies": 0, "by_rule": 0, "unscored": 0}
    figures = dict.fromkeys(("kappa", "kappa_agreed", "raw", "bias", "fail_recall"), none)
    return CriterionAgreement(criterion=name, hash=key, **counts, **figures, too_low=False, reason=reason)


def readings(
    rows: Sequence[CalibrationRow],
    scale: Sequence[str],
    judges: Sequence[JudgeLabels],
    read: Callable[[CalibrationRow, str], str] = lambda _, label: base(label),
) -> Readings:
    """The authors' labels of rows, then each judge's, named from 1. `read`: a row's label on the scale."""
    origin = {r.id: r.same_as for r in rows}

    def family(identity: str) -> str:
        seen = {identity}
        while (before := origin[identity]) in origin and before not in seen:
            identity = str(before)
            seen.add(identity)
        return identity

    given: dict[str, list[str | None]] = {"author": [read(r, r.label) for r in rows]}
    for n, labels in enumerate(judges, start=1):
        given[str(n)] = [None if (x := labels[r.id].label) is None else read(r, x) for r in rows]
    return Readings.of(given, scale, ordered=True, clusters=[family(r.id) for r in rows])


def calibrate(
    release: Release,
    identity: JudgeIdentity,
    repeats: Sequence[JudgeLabels],
    others: Mapping[str, JudgeLabels] | None = None,
    kind: Kind = "criterion",
) -> Calibration:
    """Every figure of one judge. `repeats`: the calibrated wording's labels, one mapping per repeat; the first is used
    as in a run. `others`: the labels of other wordings.
    """
    rows, first, others = _rows(release, kind), repeats[0], others or {}
    overall, criteria = agreement_over(release, first, kind)
    reasons = why_unusable(identity, overall, criteria, release) if kind == "criterion" else []
    again = _whole(release, kind, repeats).take(~_by_rule(rows, first)).without("author")
    steady = again.repeated(NO_REPEAT) if len(repeats) > 1 else (None, None)
    wordings = _whole(release, kind, [first, *others.values()])
    return Calibration(
        kind=kind,
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
        confusion={name: confusion_of(own) for name, own in _by_criterion(release, kind, first).items()},
        flips=[flips(change, rows, first) for change in CHANGES],
        repeats=len(repeats),
        self_agreement=steady[0],
        self_kappa=steady[1],
        rating_sd=_spread(again) if kind == "rating" else None,
        wordings=[
            _wording(
                name, prompt_hash(release.prompts, name), wordings.between("author", "1", str(n)), rows, first, labels
            )
            for n, (name, labels) in enumerate(others.items(), start=2)
        ],
        usable=kind == "criterion" and not reasons,
        reasons=reasons,
        labels={r.id: first[r.id].label for r in rows},
    )


def _rows(release: Release, kind: Kind) -> Sequence[CalibrationRow]:
    return release.calibration if kind == "criterion" else release.rating_calibration


def _whole(release: Release, kind: Kind, judges: Sequence[JudgeLabels]) -> Readings:
    """The authors' labels and judges', on a scale that all criteria share."""
    if kind == "rating":
        return readings(release.rating_calibration, RATINGS, judges)
    return readings(release.calibration, VERDICTS, judges, earned(release))


def _by_criterion(release: Release, kind: Kind, labels: JudgeLabels) -> dict[str, Readings]:
    """The authors' labels and a judge's, of the criteria or categories that have calibration rows."""
    rows, found = _rows(release, kind), {}
    for name in sorted({r.criterion for r in rows}):
        graded = kind == "criterion" and release.criteria[name].kind == "graded"
        scale = RATINGS if kind == "rating" else OUTCOMES if graded else VERDICTS
        found[name] = readings([r for r in rows if r.criterion == name], scale, [labels])
    return found


def _spread(repeats: Readings) -> float | None:
    """The mean standard deviation (n − 1) of the labels of one case, in steps; None without a case with two."""
    own = repeats.take(repeats.several)
    given = np.where(own.codes < 0, np.nan, own.codes)
    return float(np.nanstd(given, axis=1, ddof=1).mean()) if own.shared else None


def agreement_over(
    release: Release, labels: JudgeLabels, kind: Kind = "criterion"
) -> tuple[CriterionAgreement, list[CriterionAgreement]]:
    """The agreement over all replies, and for every criterion, or category with a protocol, measured or not."""
    rows, rated = _rows(release, kind), kind == "rating"
    whole = _whole(release, kind, [labels])
    points = None if rated else np.array([release.scoring["points"][v] for v in VERDICTS], dtype=np.float64)

    def measure(name: str | None, key: str, own: Readings) -> CriterionAgreement:
        """`own`: the labels of the criterion's rows, on its scale."""
        kept = np.array([name in (None, r.criterion) for r in rows], dtype=bool)
        agreed = np.array([_readers_agree(r) for r in rows], dtype=bool)[kept]
        worth = whole.take(kept)
        weights: Weighting = "quadratic" if rated else "identity"
        return CriterionAgreement(
            criterion=name,
            hash=key,
            replies=len(own.codes),
            by_rule=int(_by_rule(rows, labels)[kept].sum()),
            unscored=int((~own.several).sum()),
            kappa=own.kappa(weights),
            kappa_agreed=own.take(agreed).kappa(weights),
            raw=own.raw(NO_LABEL),
            within_one=own.within_one(NO_LABEL) if rated else None,
            bias=worth.bias(points, NO_LABEL),
            fail_recall=worth.recall(0, NO_ONE if rated else NO_FAIL),
            too_low=False,
        )

    criteria, measured, hash_ = [], _by_criterion(release, kind, labels), calibration_hash(release, kind)
    for name in release.protocols if rated else sorted(release.criteria):
        key = hash_ if rated else criterion_hash(release.criteria[name], rows)
        if name not in measured:
            criteria.append(unmeasured(name, key, NO_ROWS))
        elif all(labels[r.id].unscored == NO_READING for r in rows if r.criterion == name):
            criteria.append(unmeasured(name, key, NO_READING))
        else:
            found = measure(name, key, measured[name])
            high = found.kappa.high
            too_low = not rated and (high is None or high < float(release.scoring["judge_criterion_kappa"]))
            criteria.append(found.model_copy(update={"too_low": too_low}))
    return measure(None, hash_, whole), criteria


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


def earned(release: Release) -> Callable[[CalibrationRow, str], str]:
    """What a row's label earns, PASS, PARTIAL or FAIL, so that criteria with different labels can be pooled.

    It raises ValueError for an outcome of a graded criterion that no sample of the release is checked by.
    """
    # If the release's rows disagree on the points of an outcome, use the points that keep the most outcomes apart.
    worth: dict[tuple[str, str], dict[Outcome, Label]] = {}
    for row in release.rows.values():
        for check in row.evaluation:
            if isinstance(check, GradedCheck):
                known = worth.setdefault((check.criterion, row.polarity), check.outcomes)
                if len(set(check.outcomes.values())) > len(set(known.values())):
                    worth[check.criterion, row.polarity] = check.outcomes

    def verdict(row: CalibrationRow, label: str) -> str:
        if label not in OUTCOMES:
            return base(label)
        if (known := worth.get((row.criterion, row.polarity))) is None:
            raise ValueError(
                f"{row.id}: no {row.polarity} sample of the release is checked by '{row.criterion}', so it is unknown "
                f"what '{label}' earns"
            )
        return next(v for k, v in known.items() if k == label)

    return verdict


def _readers_agree(row: CalibrationRow) -> bool:
    """Whether every blind reader chose the author's label."""
    return bool(row.readings) and set(row.readings) == {row.label}


def _by_rule(rows: Sequence[CalibrationRow], labels: JudgeLabels) -> Mask:
    return np.array([labels[r.id].by_rule for r in rows], dtype=bool)


def confusion_of(readings: Readings) -> Confusion:
    table = readings.confusion()
    return Confusion(labels=list(readings.labels), table=table[:, :-1].tolist(), unscored=table[:, -1].tolist())


def flips(change: str, rows: Sequence[CalibrationRow], labels: JudgeLabels) -> Flips:
    pairs = [r for r in rows if r.change == change and r.same_as in labels]
    both = [r for r in pairs if labels[r.id].label is not None and labels[str(r.same_as)].label is not None]
    moved = [r.id for r in both if labels[r.id].label != labels[str(r.same_as)].label]
    rate = c.share(np.array([r.id in moved for r in both], dtype=np.float64), reason="no such pair has two labels")
    return Flips(
        change=change, pairs=len(pairs), flips=len(moved), unscored=len(pairs) - len(both), rate=rate, rows=moved
    )


def _wording(
    name: str, prompt: str, three: Readings, rows: Sequence[CalibrationRow], first: JudgeLabels, labels: JudgeLabels
) -> Wording:
    """`three`: the labels of the author, of the calibrated wording and of this one."""
    author, before, after = three.raters
    both: Mask = three.codes.min(axis=1) >= 0
    was, now = (three.take(both).between(author, judge).cohen() for judge in (before, after))
    gain = Estimate(value=None, reason=was.reason or now.reason)
    if was.value is not None and now.value is not None:
        gain = c.estimate(now.less(was), -2.0, 2.0)
    asked = both & ~_by_rule(rows, first)
    moved = np.array([first[r.id].label != labels[r.id].label for r in rows], dtype=np.float64)
    own = three.between(author, after)
    return Wording(
        wording=name,
        prompt_hash=prompt,
        kappa=own.kappa(),
        unscored=int((~own.several).sum()),
        changed=c.share(moved[asked], three.take(asked).clusters, "no reply has a label in both wordings"),
        gain=gain,
    )
