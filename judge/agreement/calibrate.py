"""Implements `helmbench calibrate`: measures a judge against the calibration sets, or, with --labels, measures several
judges against human labels of any replies and chooses one.

The judge with the highest mean κ with the raters is chosen; the output says whether its lead exceeds chance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dataset_builder.release import Release
from dataset_builder.schema import CalibrationRow
from helmbench_common.files import write_whole
from helmbench_common.tables import columns
from judge.agreement.answers import JudgedCases, Passes, Task, examine, row_of
from judge.agreement.calibration import Calibration, RatingCalibration, calibrate, calibrate_ratings
from judge.agreement.cases import Case, read_cases
from judge.agreement.known import FILE, RATING_FILE
from judge.agreement.labels import Item, LabelTable, read_labels
from judge.agreement.tables import calibration_text, ratings_text
from judge.llm.asking import Asker
from judge.llm.questions import prompt_hash
from judge.replies.schema import RunError
from judge.statistics import coefficients as c
from judge.statistics.agreement import Ratings
from judge.statistics.estimate import Estimate
from judge.wording import coefficient


class Measured(NamedTuple):
    """A judge's calibration and its file, and those for ratings if the release has a rating calibration set."""

    labels: Calibration
    path: Path
    ratings: RatingCalibration | None
    ratings_path: Path

    def text(self, release: Release) -> str:
        """The tables, and the paths of the figures' files."""
        said = f"{calibration_text(self.labels, release)}\n\n{self.path}"
        return said + (f"\n\n{ratings_text(self.ratings)}\n\n{self.ratings_path}" if self.ratings else "")

    def values(self) -> dict[str, Any]:
        """Every figure, ready for JSON."""
        rated = self.ratings.model_dump(mode="json") if self.ratings else None
        return {"labels": self.labels.model_dump(mode="json"), "ratings": rated}


def calibrate_judge(release: Release, name: str, asker: Asker, passes: Passes, out: Path | None = None) -> Measured:
    """Measures one judge against the calibration sets. `out`: the file to write (default: in the asker's home)."""
    if not release.calibration:
        raise RunError(f"{release.path}: no calibration set in this dataset; measure against people with --labels")
    tasks = [Task("criterion", release.calibration), Task("rating", release.rating_calibration)]
    labels, rated = examine(release, name, tasks, asker, passes)
    others = {
        own.wording: (prompt_hash(release.prompts, own.wording), given)
        for own, given in labels.passes.items()
        if own.wording != labels.identity.wording
    }
    found = calibrate(release, labels.identity, labels.repeats, others)
    path = out or asker.folder(found.judge) / FILE
    write_whole(path, found.model_dump_json(indent=1) + "\n")
    ratings = None
    if release.rating_calibration:
        ratings = calibrate_ratings(release, rated.identity, rated.repeats)
        write_whole(path.parent / RATING_FILE, ratings.model_dump_json(indent=1) + "\n")
    return Measured(found, path, ratings, path.parent / RATING_FILE)


# --- several judges against people's labels ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Candidate:
    """One judge against the raters. `kappas`: by rater; `mean`: over raters; `criteria`: the mean by criterion."""

    name: str
    kappas: dict[str, Estimate]
    mean: c.Coefficient
    criteria: dict[str, Estimate]
    self_agreement: Estimate | None
    self_kappa: Estimate | None
    unscored: int


def against_people(
    release: Release, names: Sequence[str], labels: Sequence[Path], source: Path, asker: Asker, passes: Passes
) -> str:
    """Measures every judge on the replies in `source` that `labels` covers; returns the tables and the choice."""
    everything = read_labels(list(labels), least=1)
    if clash := sorted({*names} & {*everything.raters}):
        raise RunError(f"{clash[0]}: both a judge and a rater have this name; rename the label file, or its `rater`")

    def item_of(case: Case) -> Item:
        """The item of a case in the label files, which may or may not name criteria."""
        return Item(case.id, case.criterion if everything.criteria else "")

    cases = read_cases(source, release).cases
    labeled = {item for own in everything.labels.values() for item in own}
    wanted = [case for case in cases if item_of(case) in labeled]
    if not wanted:
        files = ", ".join(map(str, labels))
        raise RunError(f"{source}: {files} label none of its {len(cases)} replies; name the labeled ones with --cases")
    items = tuple(map(item_of, wanted))
    kept = {*items}
    own = {rater: {i: x for i, x in given.items() if i in kept} for rater, given in everything.labels.items()}
    people = LabelTable(own, items)
    _check(people, wanted, release)
    # One reply may be judged by two criteria, so a case is identified by its position.
    rows = [row_of(str(n), k.criterion, k.said, k.reply, k.country, k.about) for n, k in enumerate(wanted)]
    first = Passes(passes.repeats, passes.wordings[:1])
    candidates = [
        _candidate(judged, rows, people)
        for name in names
        for judged in examine(release, name, [Task("criterion", rows)], asker, first)
    ]
    return choice_text(candidates, people, len(labeled) - len(wanted))


def _check(people: LabelTable, cases: Sequence[Case], release: Release) -> None:
    """Raises: RunError: labels without a criterion for a reply with several, or a label that its criterion doesn't
    define.
    """
    if repeated := [i for i, n in Counter(people.items).items() if n > 1]:
        raise RunError(
            f"{repeated[0].id}: has several criteria, and the labels don't say which; expected a `criterion` with "
            "each label"
        )
    for item, case in zip(people.items, cases, strict=True):
        known = {x.partition("-")[0] for x in release.criteria[case.criterion].labels}
        for rater, own in people.labels.items():
            if item in own and own[item] not in known:
                expected = ", ".join(sorted(known))
                raise RunError(f"{rater}: {item.id} ({case.criterion}) is labeled {own[item]}; expected {expected}")


def _candidate(judge: JudgedCases, rows: Sequence[CalibrationRow], people: LabelTable) -> Candidate:
    repeats = [
        {
            item: label.partition("-")[0]
            for item, row in zip(people.items, rows, strict=True)
            if (label := labels[row.id].label) is not None
        }
        for labels in judge.repeats
    ]
    name = judge.identity.name
    table = LabelTable({name: repeats[0], **people.labels}, people.items)
    ratings = table.ratings()
    own, own_kappa = None, None
    if len(repeats) > 1:
        asked = [item for item, row in zip(people.items, rows, strict=True) if not judge.repeats[0][row.id].by_rule]
        again = LabelTable({str(n): given for n, given in enumerate(repeats)}, tuple(asked)).ratings()
        own, own_kappa = c.repeat_agreement(again.codes, len(again.labels), None, "no reply has a label in two repeats")
    return Candidate(
        name,
        {
            rater: c.kappa(ratings.codes[:, n], ratings.codes[:, 0], len(ratings.labels))
            for n, rater in enumerate(ratings.raters)
            if n
        },
        _mean(ratings, 0),
        {criterion: c.estimate(_mean(table.ratings(criterion), 0)) for criterion in table.criteria},
        own,
        own_kappa,
        unscored=len(people.items) - len(repeats[0]),
    )


def _mean(ratings: Ratings, rater: int) -> c.Coefficient:
    """The mean of one rater's kappas with every other rater."""
    own, others = ratings.codes[:, rater], np.delete(ratings.codes, rater, axis=1)
    found = [c.cohen(other, own, np.eye(len(ratings.labels))) for other in others.T]
    return c.mean_of(found, int(np.sum((own >= 0) & (others >= 0).any(axis=1))))


def choice_text(candidates: Sequence[Candidate], people: LabelTable, left: int = 0) -> str:
    """The tables, the raters' agreement with each other, and the choice. `left`: the number of labels that match no
    reply.
    """
    raters, replies = list(people.raters), len(people.items)
    head = ["judge", *(f"κ with {r}" for r in raters), "mean κ", "self-agreement", "Fleiss' κ of its repeats"]
    rows = [
        [
            k.name,
            *(coefficient(k.kappas[r]) for r in raters),
            *map(coefficient, (c.estimate(k.mean), k.self_agreement, k.self_kappa)),
            f"{k.unscored} of {replies}",
        ]
        for k in candidates
    ]
    criteria = sorted({name for k in candidates for name in k.criteria})
    by = [[name, *(coefficient(k.criteria[name]) for k in candidates)] for name in criteria]
    blocks = [
        f"{replies} replies labeled by {len(raters)} rater{'s' if len(raters) > 1 else ''}: {', '.join(raters)}"
        + (f"; {left} labels are of other replies" if left else ""),
        columns([*head, "unscored"], rows),
        columns(["mean κ by criterion", *(k.name for k in candidates)], by) if criteria else "",
        _people(people),
        _choice(candidates),
        "κ is Cohen's, unweighted, FAIL whatever its way, with 95 % intervals; replies count as independent. "
        "It describes replies like these: labels of another corpus say little about this benchmark's.",
    ]
    return "\n\n".join(filter(None, blocks))


def _people(people: LabelTable) -> str:
    if len(people.raters) < 2:
        return "Agreement of the raters: unknown with one rater."
    ratings = people.ratings()
    fleiss = coefficient(c.estimate(c.fleiss(ratings.counts)))
    own = [f"{rater} {coefficient(c.estimate(_mean(ratings, n)))}" for n, rater in enumerate(ratings.raters)]
    return f"Agreement of the raters: Fleiss' κ {fleiss}; mean κ of each with the others: {', '.join(own)}"


def _choice(candidates: Sequence[Candidate]) -> str:
    """The candidate with the highest mean kappa; ties go to the higher self-agreement, then to fewer unscored cases,
    then to the order given.
    """
    known = [k for k in candidates if k.mean.value is not None]
    if not known:
        return f"No judge is chosen: {candidates[0].mean.reason}."

    def rank(k: Candidate) -> tuple[float, float, int]:
        own = k.self_agreement.value if k.self_agreement else None
        return (-round(k.mean.value or 0.0, 9), -(own or 0.0), k.unscored)

    first, *others = sorted(known, key=rank)
    reason = f"its mean κ with the raters is {coefficient(c.estimate(first.mean))}"
    if not others:
        return f"Chosen: {first.name}; {reason}" + ("." if len(candidates) == 1 else ", and the others have none.")
    return f"Chosen: {first.name}; {reason}. " + " ".join(_lead(first, other) for other in others)


def _lead(first: Candidate, other: Candidate) -> str:
    a, b = first.mean, other.mean
    gain = c.estimate(c.Coefficient(a.values - b.values, a.used & b.used, min(a.items, b.items)), -2.0, 2.0)
    ahead = f"It is ahead of {other.name} by {gain.value:.2f}"
    if gain.low is None or gain.high is None:
        return f"{ahead}, without an interval."
    likely = "more than chance" if gain.low > 0 else "which may be chance"
    return f"{ahead} [{gain.low:.2f}, {gain.high:.2f}], {likely}."
