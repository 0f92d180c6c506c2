"""Judges against people's labels: how far each agrees with each rater, how far the raters agree with one another, and
which judge to take.

The selection of seed 003: several judges, several repeats, human labels of any replies. The judge whose mean κ with the
raters is highest is chosen; whether its lead is more than chance stands beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dataset_builder.release import Release
from dataset_builder.schema import CalibrationRow
from helmbench_common.tables import columns
from judge.calibration.asking import Examined, Passes, examine
from judge.llm.asking import Asker
from judge.people.cases import Case, read_cases
from judge.people.labels import Item, LabelTable, read_labels
from judge.replies.errors import RunError
from judge.statistics import clustered
from judge.statistics import coefficients as c
from judge.statistics.agreement import Ratings
from judge.statistics.coefficients import Codes, Statistic
from judge.statistics.estimate import Estimate
from judge.wording import coefficient


@dataclass(frozen=True)
class Candidate:
    """One judge against the raters. `kappas`: by rater; `mean`: over them, whose influences are kept for the comparison
    of two judges.
    """

    name: str
    kappas: dict[str, Estimate]
    mean: Statistic
    criteria: dict[str, Estimate]
    self_agreement: Estimate | None
    self_kappa: Estimate | None
    unscored: int


def against_people(
    release: Release, names: Sequence[str], labels: Sequence[Path], source: Path, asker: Asker, passes: Passes
) -> str:
    """Examines every judge on the replies of `source` that `labels` label; returns the tables and the choice.

    Raises:
        RunError: label files that can't be read, or that label none of the cases; questions without an answer.
    """
    everything = read_labels(list(labels), least=1)
    if clash := sorted({*names} & {*everything.raters}):
        raise RunError(
            f"{clash[0]}: is the name of a judge and of a rater; give the labels' file another name, or another `rater`"
        )
    wanted, people, left = _labelled(everything, source, labels, release)
    _fits(people, wanted, release)
    rows = [_row(k, n) for n, k in enumerate(wanted)]
    first = Passes(passes.repeats, passes.wordings[:1])
    judges = [examine(release, name, rows, asker, first) for name in names]
    candidates = [_candidate(j, rows, people) for j in judges]
    return text(candidates, people, left)


def _labelled(
    everything: LabelTable, source: Path, labels: Sequence[Path], release: Release
) -> tuple[list[Case], LabelTable, int]:
    """The cases that people labelled, their labels of these, and how many labels are of no such case."""
    cases = read_cases(source, release).cases
    labelled = {item for own in everything.labels.values() for item in own}
    wanted = [k for k in cases if _item(k, everything) in labelled]
    if not wanted:
        raise RunError(
            f"{source}: none of its {len(cases)} replies is labelled in "
            f"{', '.join(map(str, labels))}; name the labelled replies with --cases"
        )
    items = [_item(k, everything) for k in wanted]
    kept = {*items}
    own = {r: {i: x for i, x in given.items() if i in kept} for r, given in everything.labels.items()}
    return wanted, LabelTable(own, tuple(items)), len(labelled) - len(wanted)


def _fits(people: LabelTable, cases: Sequence[Case], release: Release) -> None:
    """Raises: RunError: a reply that labels without a criterion could mean twice, or a label that its criterion doesn't
    have.
    """
    if twice := [i for i, n in Counter(people.items).items() if n > 1]:
        raise RunError(
            f"{twice[0].id}: is a reply for several criteria, and the labels don't say which; expected a "
            "`criterion` beside each label"
        )
    for item, case in zip(people.items, cases, strict=True):
        known = {x.partition("-")[0] for x in release.criteria[case.criterion].labels}
        for rater, own in people.labels.items():
            if item in own and own[item] not in known:
                raise RunError(
                    f"{rater}: {item.id} ({case.criterion}) is labelled {own[item]}; expected one of "
                    f"{', '.join(sorted(known))}"
                )


def _row(case: Case, n: int) -> CalibrationRow:
    """A case as the examination takes it. Two criteria may be put to one reply, so that its place is its id; polarity
    and label are not read.
    """
    return CalibrationRow(
        id=str(n),
        criterion=case.criterion,
        polarity="crisis",
        country=case.country,
        about=case.about,
        said=list(case.said),
        reply=case.reply,
        label="",
        author="",
    )


def _candidate(judge: Examined, rows: Sequence[CalibrationRow], people: LabelTable) -> Candidate:
    labels = [[answers[row.id].label for row in rows] for answers in judge.repeats]
    items, name = people.items, judge.identity.name
    own = {item: x.partition("-")[0] for item, x in zip(items, labels[0], strict=True) if x is not None}
    table = LabelTable({name: own, **people.labels}, items)
    ratings = table.ratings()
    return Candidate(
        name,
        {rater: _kappa(ratings, n) for n, rater in enumerate(ratings.raters) if n},
        _mean(ratings),
        {criterion: _measure(_mean(table.ratings(criterion))) for criterion in table.criteria},
        *_self_agreement(labels, rows, judge),
        unscored=len(items) - len(own),
    )


def _item(case: Case, people: LabelTable) -> Item:
    """How the label files call a case: with its criterion, unless none of them names any."""
    return Item(case.id, case.criterion if people.criteria else "")


def _kappa(ratings: Ratings, rater: int) -> Estimate:
    q = len(ratings.labels)
    return clustered.kappa(ratings.codes[:, rater], ratings.codes[:, 0], np.arange(len(ratings.codes)), q)


def _mean(ratings: Ratings) -> Statistic:
    """The mean of the judge's kappas with each rater."""
    q = len(ratings.labels)
    pairs = [c.cohen(ratings.codes[:, n], ratings.codes[:, 0], np.eye(q)) for n in range(1, len(ratings.raters))]
    return c.mean_of(pairs, int(np.sum((ratings.codes[:, 0] >= 0) & (ratings.codes[:, 1:] >= 0).any(axis=1))))


def _measure(s: Statistic) -> Estimate:
    found = c.estimate(s)
    return Estimate(value=found.value, low=found.low, high=found.high, n=found.n, reason=found.reason)


def _self_agreement(
    labels: Sequence[Sequence[str | None]], rows: Sequence[CalibrationRow], judge: Examined
) -> tuple[Estimate | None, Estimate | None]:
    if len(labels) < 2:
        return None, None
    asked = [k for k, r in enumerate(rows) if not judge.repeats[0][r.id].by_rule]
    names = sorted({x.partition("-")[0] for own in labels for x in own if x is not None})
    codes = np.array(
        [[-1 if own[k] is None else names.index(str(own[k]).partition("-")[0]) for own in labels] for k in asked],
        dtype=np.int64,
    )
    counts = (
        np.stack([(codes == k).sum(axis=1) for k in range(len(names))], axis=1).astype(np.float64)
        if asked
        else np.zeros((0, len(names)))
    )
    several = counts[counts.sum(axis=1) > 1]
    groups: Codes = np.arange(len(several))
    return clustered.share(c.pairwise(several), groups, "no reply has a label in two repeats"), clustered.measure(
        c.fleiss(several), groups, len(several)
    )


def text(candidates: Sequence[Candidate], people: LabelTable, left: int = 0) -> str:
    """The tables, the anchor that the raters are for one another, and the choice. `left`: labels of no reply that was
    examined.
    """
    raters, replies = list(people.raters), len(people.items)
    head = [
        "judge",
        *(f"κ with {r}" for r in raters),
        "mean κ",
        "self-agreement",
        "Fleiss' κ of its repeats",
        "unscored",
    ]
    rows = [
        [
            k.name,
            *(coefficient(k.kappas[r]) for r in raters),
            coefficient(_measure(k.mean)),
            coefficient(k.self_agreement),
            coefficient(k.self_kappa),
            f"{k.unscored} of {replies}",
        ]
        for k in candidates
    ]
    criteria = sorted({name for k in candidates for name in k.criteria})
    by = [[name, *(coefficient(k.criteria[name]) for k in candidates)] for name in criteria]
    blocks = [
        f"{replies} replies labelled by {len(raters)} rater{'s' if len(raters) > 1 else ''}: {', '.join(raters)}"
        + (f"; {left} labels are of no such reply" if left else ""),
        columns(head, rows),
        *([columns(["mean κ by criterion", *(k.name for k in candidates)], by)] if criteria else []),
        _people(people),
        _choice(candidates),
        "κ is Cohen's, unweighted, FAIL whatever its way, with 95 % intervals; replies are taken to be independent. "
        "It is about replies like these: labels of another corpus say little of this benchmark's.",
    ]
    return "\n\n".join(blocks)


def _people(people: LabelTable) -> str:
    if len(people.raters) < 2:
        return "Agreement of the raters: there is one only, so nobody knows how far another would agree."
    ratings = people.ratings()
    counts = ratings.counts
    fleiss = clustered.measure(
        c.fleiss(counts), np.arange(int((counts.sum(axis=1) > 0).sum())), int((counts.sum(axis=1) > 1).sum())
    )
    own = []
    for n, rater in enumerate(ratings.raters):
        others = [
            c.cohen(ratings.codes[:, n], ratings.codes[:, k], np.eye(len(ratings.labels)))
            for k in range(len(ratings.raters))
            if k != n
        ]
        own.append(f"{rater} {coefficient(_measure(c.mean_of(others, len(ratings.codes))))}")
    return f"Agreement of the raters: Fleiss' κ {coefficient(fleiss)}; mean κ of each with the others: {', '.join(own)}"


def _choice(candidates: Sequence[Candidate]) -> str:
    """The highest mean kappa; of equals the one that agrees more with itself, then the one with fewer unscored, then
    the first named.
    """
    known = [k for k in candidates if k.mean.value is not None]
    if not known:
        return f"No judge is chosen: {candidates[0].mean.reason}."
    order = sorted(
        known,
        key=lambda k: (
            -round(k.mean.value or 0.0, 9),
            -((k.self_agreement.value or 0.0) if k.self_agreement else 0.0),
            k.unscored,
        ),
    )
    first = order[0]
    reason = f"its mean κ with the raters is {coefficient(_measure(first.mean))}"
    if len(order) < 2:
        return f"Chosen: {first.name}; {reason}" + ("." if len(candidates) == 1 else ", and the others have none.")
    return f"Chosen: {first.name}; {reason}. " + " ".join(_lead(first, other) for other in order[1:])


def _lead(first: Candidate, other: Candidate) -> str:
    a, b = first.mean, other.mean
    gain = c.estimate(
        Statistic((a.value or 0.0) - (b.value or 0.0), a.influence - b.influence, min(a.n, b.n)), -2.0, 2.0
    )
    ahead = f"It is ahead of {other.name} by {gain.value:.2f}"
    if gain.low is None or gain.high is None:
        return f"{ahead}, without an interval."
    return (
        f"{ahead} [{gain.low:.2f}, {gain.high:.2f}], "
        f"{'which is more than chance' if gain.low > 0 else 'which may be chance'}."
    )
