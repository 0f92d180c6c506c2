"""Asks a judge for its labels of calibration rows: through the requests, engine and parser of a real run, or the
offline judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dataset_builder.prompts import PLAIN, RATE, WORDINGS
from dataset_builder.release import Release
from dataset_builder.schema import CalibrationRow
from judge.calibration.labels import calibrate
from judge.calibration.ruled import by_rules, offline_labels, offline_ratings, protocol_of, says_nothing
from judge.calibration.types import Answered, Answers, Calibration
from judge.llm import batch
from judge.llm.asking import Asker, Stored, refuse_lacking
from judge.llm.questions import JudgeRequest, calibrated, for_calibration, prompt_hash, rating_request
from judge.offline import judge as offline
from judge.verdicts import JudgeIdentity

REPEATS = 3


class Pass(NamedTuple):
    """One pass over the rows: a wording and the judge's repeat under it."""

    wording: str
    repeat: int


@dataclass(frozen=True)
class Passes:
    """How rows are put to a judge: each `repeats` times in the first wording, which is calibrated, and once in each
    further one, which is compared with it.

    Raises:
        ValueError: fewer than one repeat.
    """

    repeats: int = REPEATS
    wordings: tuple[str, ...] = WORDINGS

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise ValueError("--repeats: expected 1 or more")

    @property
    def of_labels(self) -> list[Pass]:
        return [*(Pass(self.wordings[0], k) for k in range(self.repeats)), *(Pass(w, 0) for w in self.wordings[1:])]

    @property
    def of_ratings(self) -> list[Pass]:
        return [Pass(RATE, k) for k in range(self.repeats)]


@dataclass(frozen=True)
class Examined:
    """A judge and what it said, by pass; the first pass is the one that is calibrated."""

    identity: JudgeIdentity
    answers: dict[Pass, Answers]

    @property
    def repeats(self) -> list[Answers]:
        return [a for own, a in self.answers.items() if own.wording == self.identity.wording]


def wordings(given: str) -> tuple[str, ...]:
    """`judge,judge-b,judge-reason`, or their short names a, b and reason, as the wordings' names.

    Raises:
        ValueError: a name that is no wording.
    """
    short = {"a": PLAIN, "b": "judge-b", "reason": "judge-reason"}
    names = tuple(dict.fromkeys(short.get(name.strip(), name.strip()) for name in given.split(",")))
    if unknown := [n for n in names if n not in WORDINGS]:
        raise ValueError(f"{unknown[0]!r} is no wording; expected some of {', '.join([*short, *WORDINGS])}")
    return names


def measured(release: Release, judge: Examined) -> Calibration:
    """One judge's calibration from its answers."""
    plain = judge.identity.wording
    others = {
        own.wording: (prompt_hash(release.prompts, own.wording), a)
        for own, a in judge.answers.items()
        if own.wording != plain
    }
    return calibrate(release, judge.identity, judge.repeats, others)


def of_offline(release: Release) -> Calibration:
    """The offline judge's calibration: what `scripts/make_references.py` ships."""
    return measured(release, _offline(offline_labels(release.calibration, release)))


def examine(release: Release, name: str, rows: Sequence[CalibrationRow], asker: Asker, passes: Passes) -> Examined:
    """Every label of a judge on `rows`, by rule, from the offline judge, or from the model's answers, asked for first
    if there is an endpoint.

    Raises:
        RunError: questions without an answer and nobody to ask. EngineError, BudgetError: as `judge.llm.asking.ask`.
    """
    if name in ("offline", offline.NAME):
        return _offline(offline_labels(rows, release))
    (answers,) = _asked(name, [_labels(release, name, rows, passes)], asker)
    return _examined(release, name, passes.wordings[0], answers)


def examine_ratings(
    release: Release, name: str, rows: Sequence[CalibrationRow], asker: Asker, passes: Passes
) -> Examined:
    """As `examine`, the ratings, "1" to "5", of `rows`, whose criterion is the category of their protocol."""
    if name in ("offline", offline.NAME):
        return _offline(offline_ratings(release, rows))
    (answers,) = _asked(name, [_ratings(release, name, rows, passes)], asker)
    return _examined(release, name, RATE, answers)


def examine_all(release: Release, name: str, asker: Asker, passes: Passes) -> tuple[Examined, Examined]:
    """A judge's labels of the calibration set, and its ratings, "1" to "5", of the rating calibration set; all
    questions are asked together.

    Raises:
        RunError, EngineError, BudgetError: as `examine`.
    """
    if name in ("offline", offline.NAME):
        return _offline(offline_labels(release.calibration, release)), _offline(offline_ratings(release))
    labels = _labels(release, name, release.calibration, passes)
    given, rated = _asked(name, [labels, _ratings(release, name, release.rating_calibration, passes)], asker)
    return _examined(release, name, passes.wordings[0], given), _examined(release, name, RATE, rated)


class Plan(NamedTuple):
    """What a judge is to be asked: rows in every pass, but for those that a rule decides."""

    rows: Sequence[CalibrationRow]
    passes: Sequence[Pass]
    ruled: Answers
    question: Callable[[CalibrationRow, Pass], JudgeRequest]

    @property
    def left(self) -> list[CalibrationRow]:
        return [r for r in self.rows if r.id not in self.ruled]

    def questions(self) -> Iterator[JudgeRequest]:
        return (self.question(row, own) for own in self.passes for row in self.left)

    def read(self, stored: Stored) -> dict[Pass, Answers]:
        """Every row's answer, by pass."""
        return {
            own: {**self.ruled, **{row.id: _answered(stored(self.question(row, own))) for row in self.left}}
            for own in self.passes
        }


def _labels(release: Release, name: str, rows: Sequence[CalibrationRow], passes: Passes) -> Plan:
    def question(row: CalibrationRow, own: Pass) -> JudgeRequest:
        return for_calibration(row, release, name, wording=own.wording, repeat=own.repeat)

    return Plan(rows, passes.of_labels, by_rules(rows, release), question)


def _ratings(release: Release, name: str, rows: Sequence[CalibrationRow], passes: Passes) -> Plan:
    def question(row: CalibrationRow, own: Pass) -> JudgeRequest:
        return rating_request(protocol_of(row, release), calibrated(row), release, name, repeat=own.repeat)

    return Plan(rows, passes.of_ratings, says_nothing(rows), question)


def _asked(name: str, plans: Sequence[Plan], asker: Asker) -> list[dict[Pass, Answers]]:
    """A model's answers to each plan; what lacks one, and nobody is to be asked for, is then in requests.jsonl."""

    def questions() -> Iterator[JudgeRequest]:
        return (question for plan in plans for question in plan.questions())

    stored = asker.answers(name, questions)
    answers = [plan.read(stored) for plan in plans]
    refuse_lacking(stored, questions)
    return answers


def _examined(release: Release, name: str, wording: str, answers: dict[Pass, Answers]) -> Examined:
    return Examined(JudgeIdentity(name, prompt_hash(release.prompts, wording), wording), answers)


def _offline(answers: Answers) -> Examined:
    return Examined(JudgeIdentity(offline.NAME, None), {Pass(PLAIN, 0): answers})


def _answered(answer: batch.Answer) -> Answered:
    if isinstance(answer, str):
        return Answered(None, answer)
    return Answered(answer.label, None if answer.label else "unparsable")
