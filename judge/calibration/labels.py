"""A judge's labels of the calibration set → how far it agrees with it (scoring.md section 7). Pure;
`judge.calibration.asking`
asks.

Agreement is measured as a run would use the judge: rules decide first what they can, the judge reads the rest. Rows
that differ from another by a change that must move no label are one observation with it in every interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dataset_builder.release import Release
from dataset_builder.schema import CalibrationRow, CriterionRow, GradedCheck, Label, Outcome
from judge.calibration.types import (
    CHANGES,
    NO_READING,
    NO_ROWS,
    Answers,
    Calibration,
    Confusion,
    Flips,
    Wording,
    blank,
    calibration_hash,
    criterion_hash,
)
from judge.schema import OUTCOMES, VERDICTS, CriterionAgreement
from judge.statistics import clustered
from judge.statistics import coefficients as c
from judge.statistics.coefficients import Array, Codes
from judge.statistics.estimate import Estimate
from judge.verdicts import JudgeIdentity


def worth(release: Release) -> dict[tuple[str, str], dict[Outcome, Label]]:
    """What an outcome earns, by graded criterion and polarity; where the release's rows differ, those count that keep
    most apart.
    """
    found: dict[tuple[str, str], dict[Outcome, Label]] = {}
    for row in release.rows.values():
        for check in row.evaluation:
            if isinstance(check, GradedCheck):
                known = found.setdefault((check.criterion, row.polarity), check.outcomes)
                if len(set(check.outcomes.values())) > len(set(known.values())):
                    found[check.criterion, row.polarity] = check.outcomes
    return found


class Earned:
    """Labels as the points that they earn, so that criteria of different labels can be pooled."""

    def __init__(self, release: Release) -> None:
        self._worth, self._points = worth(release), release.scoring["points"]

    def label(self, row: CalibrationRow, label: str) -> str:
        """PASS, PARTIAL or FAIL.

        Raises:
            ValueError: a graded criterion that no row of the release is checked by, so that nobody knows what its
                outcomes earn.
        """
        base = label.partition("-")[0]
        if base not in OUTCOMES:
            return base
        known = self._worth.get((row.criterion, row.polarity))
        if known is None:
            raise ValueError(
                f"{row.id}: no {row.polarity} sample of the release is checked by '{row.criterion}', so "
                f"nobody knows what '{base}' earns"
            )
        return next(v for k, v in known.items() if k == base)

    def codes(self, rows: Sequence[CalibrationRow], labels: Sequence[str | None]) -> Codes:
        """Places in VERDICTS, shape (rows,), -1 where there is no label."""
        return np.array(
            [-1 if x is None else VERDICTS.index(self.label(r, x)) for r, x in zip(rows, labels, strict=True)],
            dtype=np.int64,
        )

    def points(self, codes: Codes) -> Array:
        return np.array([self._points[VERDICTS[k]] for k in codes], dtype=np.float64)


def calibrate(
    release: Release,
    identity: JudgeIdentity,
    repeats: Sequence[Answers],
    others: Mapping[str, tuple[str, Answers]] | None = None,
) -> Calibration:
    """Everything that is measured. `repeats`: the calibrated wording's answers, one mapping per repeat, of which the
    first counts as a run's would; `others`: further wordings with their prompt hashes.
    """
    rows, earned, groups = release.calibration, Earned(release), families(release.calibration)
    first = repeats[0]
    overall, criteria = agreement_over(release, first)
    reasons = shut_out(identity, overall, criteria, release)
    names = {name: _scale(release.criteria[name]) for name in sorted({r.criterion for r in rows})}
    own, own_kappa = _self_agreement(rows, repeats, groups, earned)
    return Calibration(
        judge=identity.name,
        prompt_hash=identity.prompt_hash,
        wording=None if identity.offline else identity.wording,
        dataset=release.manifest.version,
        calibration_hash=overall.hash,
        readers=max((len(r.readings) for r in rows), default=0),
        agreed=int(_agreeing(rows).sum()),
        by_language_models=all(r.author.startswith("language model") for r in rows),
        overall=overall,
        criteria=criteria,
        confusion={
            name: _confusion([r for r in rows if r.criterion == name], first, scale) for name, scale in names.items()
        },
        flips=[flips(change, rows, first) for change in CHANGES],
        repeats=len(repeats),
        self_agreement=own,
        self_kappa=own_kappa,
        wordings=[
            _wording(name, prompt, rows, first, answers, groups, earned)
            for name, (prompt, answers) in (others or {}).items()
        ],
        usable=not reasons,
        reasons=reasons,
        labels={r.id: first[r.id].label for r in rows},
    )


def agreement_over(release: Release, answers: Answers) -> tuple[CriterionAgreement, list[CriterionAgreement]]:
    """The agreement over all replies, and under every criterion of the release, measured or not."""
    earned, groups = Earned(release), families(release.calibration)
    criteria = [
        _criterion(release.criteria[name], release, answers, groups, earned) for name in sorted(release.criteria)
    ]
    overall = _agreed(
        None,
        calibration_hash(release),
        release.calibration,
        answers,
        groups,
        *_pooled(release.calibration, answers, earned),
        earned,
    )
    return overall, criteria


def shut_out(
    identity: JudgeIdentity, overall: CriterionAgreement, criteria: Sequence[CriterionAgreement], release: Release
) -> list[str]:
    """Why a judge may not be used for a submission; empty where it may. The numbers are scoring.yaml's."""
    k = overall.kappa.value
    asked, least, most_unscored = (
        threshold(release, name) for name in ("judge_kappa", "judge_criterion_kappa", "unscored_limit")
    )
    reasons = (
        ["it is the offline judge, which is approximate and never ranked, whatever its agreement"]
        if identity.offline
        else []
    )
    if k is None or k < asked:
        reasons.append(f"κ over all replies is {'not known' if k is None else f'{k:.2f}'}; {asked} is asked for")
    if poor := [a.criterion for a in criteria if a.too_low and a.criterion]:
        reasons.append(f"the upper limit of κ is below {least}, or there is none, for {_some(poor)}")
    if absent := [a.criterion for a in criteria if a.reason and a.criterion]:
        reasons.append(f"nothing is measured for {_some(absent)}")
    if overall.replies and overall.unscored / overall.replies > most_unscored:
        reasons.append(f"{overall.unscored} of {overall.replies} replies are unscored, above {most_unscored:.0%}")
    return reasons


def threshold(release: Release, name: str) -> float:
    """A number of scoring.yaml.

    Raises:
        ValueError: this build was made before the number was there.
    """
    if name not in release.scoring:
        raise ValueError(
            f"{release.path / 'scoring.yaml'}: has no {name}; this dataset was built by an earlier version, "
            "build it again"
        )
    return float(release.scoring[name])


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def families(rows: Sequence[CalibrationRow]) -> Codes:
    """Shape (rows,): a code for each row that others were made from by a change, shared with these."""
    place, origin = {r.id: k for k, r in enumerate(rows)}, {r.id: r.same_as for r in rows}
    found = np.empty(len(rows), dtype=np.int64)
    for k, row in enumerate(rows):
        root, seen = row.id, {row.id}
        while (before := origin[root]) in place and before not in seen:
            root = str(before)
            seen.add(root)
        found[k] = place[root]
    return found


def _agreeing(rows: Sequence[CalibrationRow]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.array([bool(r.readings) and set(r.readings) == {r.label} for r in rows], dtype=bool)


def _scale(criterion: CriterionRow) -> tuple[str, ...]:
    return OUTCOMES if criterion.kind == "graded" else VERDICTS


def _codes(labels: Sequence[str | None], scale: tuple[str, ...]) -> Codes:
    return np.array([-1 if x is None else scale.index(x.partition("-")[0]) for x in labels], dtype=np.int64)


def _pooled(rows: Sequence[CalibrationRow], answers: Answers, earned: Earned) -> tuple[Codes, Codes, int]:
    return (
        earned.codes(rows, [r.label for r in rows]),
        earned.codes(rows, [answers[r.id].label for r in rows]),
        len(VERDICTS),
    )


def _criterion(
    criterion: CriterionRow, release: Release, answers: Answers, groups: Codes, earned: Earned
) -> CriterionAgreement:
    key = criterion_hash(criterion, release.calibration)
    kept = [k for k, r in enumerate(release.calibration) if r.criterion == criterion.criterion]
    rows, scale = [release.calibration[k] for k in kept], _scale(criterion)
    if not rows:
        return blank(criterion.criterion, key, NO_ROWS)
    if all(answers[r.id].unscored == NO_READING for r in rows):
        return blank(criterion.criterion, key, NO_READING)
    author, judge = _codes([r.label for r in rows], scale), _codes([answers[r.id].label for r in rows], scale)
    found = _agreed(criterion.criterion, key, rows, answers, groups[kept], author, judge, len(scale), earned)
    high = found.kappa.high
    return found.model_copy(update={"too_low": high is None or high < threshold(release, "judge_criterion_kappa")})


def _agreed(
    name: str | None,
    key: str,
    rows: Sequence[CalibrationRow],
    answers: Answers,
    groups: Codes,
    author: Codes,
    judge: Codes,
    labels: int,
    earned: Earned,
) -> CriterionAgreement:
    """`author`, `judge`: codes of the labels, shape (rows,), -1 where unscored, out of `labels`."""
    agreed = _agreeing(rows)
    known = judge >= 0
    right, given, _ = _pooled(rows, answers, earned)
    failed = known & (right == 0)
    differences = earned.points(given[known]) - earned.points(right[known])
    return CriterionAgreement(
        criterion=name,
        hash=key,
        replies=len(rows),
        by_rule=sum(answers[r.id].by_rule for r in rows),
        unscored=int(np.sum(~known)),
        kappa=clustered.kappa(author, judge, groups, labels),
        kappa_agreed=clustered.kappa(author[agreed], judge[agreed], groups[agreed], labels),
        raw=clustered.share((author == judge)[known].astype(np.float64), groups[known], "no reply has a label"),
        bias=clustered.mean(differences, groups[known], -1.0, 1.0),
        fail_recall=clustered.share(
            (given == 0)[failed].astype(np.float64), groups[failed], "the author fails no reply that the judge labelled"
        ),
        too_low=False,
    )


def _confusion(rows: Sequence[CalibrationRow], answers: Answers, scale: tuple[str, ...]) -> Confusion:
    author, judge = _codes([r.label for r in rows], scale), _codes([answers[r.id].label for r in rows], scale)
    table = np.zeros((len(scale), len(scale) + 1), dtype=np.int64)
    np.add.at(table, (author, judge), 1)  # unscored is -1: the last column
    return Confusion(labels=list(scale), table=table[:, :-1].tolist(), unscored=table[:, -1].tolist())


def flips(change: str, rows: Sequence[CalibrationRow], answers: Answers) -> Flips:
    """How often a change that must move no label moved the judge's."""
    pairs = [r for r in rows if r.change == change and r.same_as in answers]
    both = [r for r in pairs if answers[r.id].label is not None and answers[str(r.same_as)].label is not None]
    moved = [r.id for r in both if answers[r.id].label != answers[str(r.same_as)].label]
    rate = clustered.share(
        np.array([r.id in moved for r in both], dtype=np.float64), np.arange(len(both)), "no such pair has two labels"
    )
    return Flips(
        change=change, pairs=len(pairs), flips=len(moved), unscored=len(pairs) - len(both), rate=rate, rows=moved
    )


def _self_agreement(
    rows: Sequence[CalibrationRow], repeats: Sequence[Answers], groups: Codes, earned: Earned
) -> tuple[Estimate | None, Estimate | None]:
    """Raw agreement and Fleiss' kappa of a judge's own repeats, on replies that no rule decides."""
    if len(repeats) < 2:
        return None, None
    asked = [k for k, r in enumerate(rows) if not repeats[0][r.id].by_rule]
    own = [rows[k] for k in asked]
    codes = np.stack([earned.codes(own, [answers[r.id].label for r in own]) for answers in repeats], axis=1)
    counts = np.stack([(codes == k).sum(axis=1) for k in range(len(VERDICTS))], axis=1).astype(np.float64)
    several = counts.sum(axis=1) > 1
    counts, of = counts[several], groups[asked][several]
    raw = clustered.share(c.pairwise(counts), of, "no reply has a label in two repeats")
    return raw, clustered.measure(c.fleiss(counts), of, len(counts))


def _wording(
    name: str,
    prompt: str,
    rows: Sequence[CalibrationRow],
    first: Answers,
    answers: Answers,
    groups: Codes,
    earned: Earned,
) -> Wording:
    author, before, q = _pooled(rows, first, earned)
    after = earned.codes(rows, [answers[r.id].label for r in rows])
    both = (before >= 0) & (after >= 0)
    was, now = (c.cohen(author[both], x[both], np.eye(q)) for x in (before, after))
    gain = Estimate(value=None, reason=was.reason or now.reason)
    if was.value is not None and now.value is not None:
        difference = c.Statistic(now.value - was.value, now.influence - was.influence, int(both.sum()))
        gain = clustered.measure(difference, groups[both], int(both.sum()), -2.0, 2.0)
    read = both & np.array([not first[r.id].by_rule for r in rows], dtype=bool)
    labels = [(first[r.id].label, answers[r.id].label) for r, k in zip(rows, read, strict=True) if k]
    changed = np.array([a != b for a, b in labels], dtype=np.float64)
    return Wording(
        wording=name,
        prompt_hash=prompt,
        kappa=clustered.kappa(author, after, groups, q),
        unscored=int(np.sum(after < 0)),
        changed=clustered.share(changed, groups[read], "no reply has a label in both wordings"),
        gain=gain,
    )
