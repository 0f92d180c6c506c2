"""Asks a judge for its labels of calibration rows: through the requests, engine and parser of a real run, or the
offline judge.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dataset_builder.release import Release
from dataset_builder.schema import CalibrationRow, CriterionCheck, ProtocolRow
from judge.calibration.labels import calibrate
from judge.calibration.types import NO_READING, Answered, Answers, Calibration
from judge.llm import batch
from judge.llm.budget import Prices
from judge.llm.errors import BudgetError, EngineError
from judge.llm.questions import PLAIN, RATE, JudgeRequest, for_calibration, prompt_hash, rating_request, roles
from judge.llm.run import collect
from judge.offline import judge as offline
from judge.offline import rating as offline_rating
from judge.rules.answers import conduct
from judge.rules.resources import decide_resource
from judge.verdicts import SAYS_NOTHING, JudgeIdentity
from replies.errors import RunError
from replies.visible import visible

Questions = Callable[[], Iterator[JudgeRequest]]


class Ask(NamedTuple):
    """One pass over the rows: a wording and the judge's repeat under it."""

    wording: str
    repeat: int


@dataclass(frozen=True)
class Examined:
    """A judge and what it said, by pass; the first pass is the one that is calibrated."""

    identity: JudgeIdentity
    answers: dict[Ask, Answers]

    @property
    def repeats(self) -> list[Answers]:
        return [a for ask, a in self.answers.items() if ask.wording == self.identity.wording]


def measured(release: Release, judge: Examined) -> Calibration:
    """One judge's calibration from its answers."""
    plain = judge.identity.wording
    others = {
        ask.wording: (prompt_hash(release.prompts, ask.wording), a)
        for ask, a in judge.answers.items()
        if ask.wording != plain
    }
    return calibrate(release, judge.identity, judge.repeats, others)


def of_offline(release: Release) -> Calibration:
    """The offline judge's calibration: what `scripts/make_references.py` ships."""
    return measured(release, _offline(release, release.calibration))


def examine(
    release: Release, name: str, rows: Sequence[CalibrationRow], options: argparse.Namespace, wordings: tuple[str, ...]
) -> Examined:
    """Every label of a judge on `rows`, by rule, from the offline judge, or from the model's answers, asked for first
    if there is an endpoint.
    """
    if name in ("offline", offline.NAME):
        return _offline(release, rows)
    (answers,) = _asked(name, [_labels(release, name, rows, options.repeats, wordings)], options)
    return Examined(JudgeIdentity(name, prompt_hash(release.prompts, wordings[0]), wordings[0]), answers)


def examine_all(
    release: Release, name: str, options: argparse.Namespace, wordings: tuple[str, ...]
) -> tuple[Examined, Examined]:
    """A judge's labels of the calibration set, and its ratings, "1" to "5", of the rating calibration set; all
    questions are asked together.
    """
    if name in ("offline", offline.NAME):
        return _offline(release, release.calibration), Examined(
            JudgeIdentity(offline.NAME, None), {Ask(PLAIN, 0): offline_ratings(release)}
        )
    labels = _labels(release, name, release.calibration, options.repeats, wordings)
    given, rated = _asked(name, [labels, _ratings(release, name, options.repeats)], options)
    return Examined(JudgeIdentity(name, prompt_hash(release.prompts, wordings[0]), wordings[0]), given), Examined(
        JudgeIdentity(name, prompt_hash(release.prompts, RATE), RATE), rated
    )


class Plan(NamedTuple):
    """What a judge is to be asked: rows in every pass, but for those that a rule decides."""

    rows: Sequence[CalibrationRow]
    passes: Sequence[Ask]
    ruled: Answers
    question: Callable[[CalibrationRow, Ask], JudgeRequest]

    @property
    def left(self) -> list[CalibrationRow]:
        return [r for r in self.rows if r.id not in self.ruled]

    def questions(self) -> Iterator[JudgeRequest]:
        return (self.question(row, ask) for ask in self.passes for row in self.left)


def _labels(
    release: Release, name: str, rows: Sequence[CalibrationRow], repeats: int, wordings: tuple[str, ...]
) -> Plan:
    def question(row: CalibrationRow, ask: Ask) -> JudgeRequest:
        return for_calibration(row, release, name, wording=ask.wording, repeat=ask.repeat)

    passes = [*(Ask(wordings[0], k) for k in range(repeats)), *(Ask(w, 0) for w in wordings[1:])]
    return Plan(rows, passes, by_rules(rows, release), question)


def _ratings(release: Release, name: str, repeats: int) -> Plan:
    def question(row: CalibrationRow, ask: Ask) -> JudgeRequest:
        return rating_request(
            _protocol(row, release), roles(row.said), row.reply, row.country, release, name, repeat=ask.repeat
        )

    rows = release.rating_calibration
    return Plan(rows, [Ask(RATE, k) for k in range(repeats)], _says_nothing(rows), question)


def offline_ratings(release: Release) -> Answers:
    """The offline judge's ratings of the set, by rule where a run's would be."""
    ruled = _says_nothing(release.rating_calibration)
    left = [r for r in release.rating_calibration if r.id not in ruled]
    read = {
        r.id: offline_rating.rate(
            _protocol(r, release).category, r.said[-1], visible(r.reply), r.country, release.helplines
        )
        for r in left
    }
    return {**ruled, **{identity: Answered(reading.answer) for identity, reading in read.items()}}


def _says_nothing(rows: Sequence[CalibrationRow]) -> dict[str, Answered]:
    return {r.id: Answered(str(SAYS_NOTHING), by_rule=True) for r in rows if conduct(r.reply)}


def _protocol(row: CalibrationRow, release: Release) -> ProtocolRow:
    return next(p for p in release.protocols.values() if p.category == row.criterion)


def _asked(name: str, plans: Sequence[Plan], options: argparse.Namespace) -> list[dict[Ask, Answers]]:
    """A model's answers to each plan, asked for first if there is an endpoint.

    Raises:
        RunError: questions without an answer and nobody to ask; they are then in requests.jsonl.
    """
    where = batch.folder(options.home, name)

    def questions() -> Iterator[JudgeRequest]:
        return (question for plan in plans for question in plan.questions())

    if options.base_url:
        ask_missing(questions, where, options)
    replies = batch.Replies(where)
    lacking = 0
    answers: list[dict[Ask, Answers]] = [{} for _ in plans]
    for plan, found in zip(plans, answers, strict=True):
        for ask in plan.passes:
            own = dict(plan.ruled)
            for row in plan.left:
                request = plan.question(row, ask)
                read = batch.read(replies.of(request.custom_id), request)
                lacking += read.missing
                own[row.id] = _answered(read.answer)
            found[ask] = own
    if lacking:
        where.mkdir(parents=True, exist_ok=True)
        write_missing(where / "requests.jsonl", questions(), replies)
        raise RunError(
            f"{where}: {lacking} questions have no answer yet; give --base-url to ask them, "
            "or let another engine answer requests.jsonl there into replies-1.jsonl"
        )
    return answers


def ask_missing(questions: Questions, where: Path, options: argparse.Namespace) -> None:
    """Asks the command line's endpoint what has no answer in `where` yet.

    Raises:
        ValueError: one price without the other. EngineError, BudgetError: as `judge run`.
    """
    from judge.llm.engine import Endpoint

    prices = _prices(options)
    done = collect(
        questions,
        where,
        Endpoint(options.base_url, options.concurrency, options.timeout, options.max_retries),
        prices,
        options.max_cost,
    )
    if not done.asked:
        return
    sys.stderr.write(f"{where}: {done.text(prices)}\n")
    if done.outcome.capped:
        raise BudgetError(
            f"{where}: stopped before --max-cost {options.max_cost:g} could be passed; run the same command "
            "with a higher one to go on"
        )
    if done.left:
        raise EngineError(
            f"{where}: {done.left} of {done.asked} got no answer (the last: {done.outcome.problem}). Run the "
            "same command again to ask these"
        )


def _prices(options: argparse.Namespace) -> Prices | None:
    given = options.price_in, options.price_out
    if (None in given and given != (None, None)) or (options.max_cost is not None and None in given):
        raise ValueError(
            "--price-in and --price-out go together, and --max-cost needs both: money per million tokens "
            "read, and written"
        )
    return None if None in given else Prices(*given)


def write_missing(path: Path, questions: Iterator[JudgeRequest], replies: batch.Replies) -> int:
    """Writes the questions that have no answer yet in the batch format, the file whole or not at all; returns how many
    there are.
    """
    count = 0
    staged = path.with_name(f".{path.name}-{os.getpid()}")
    with staged.open("w", encoding="utf-8") as file:
        for request, _ in batch.missing(questions, replies):
            file.write(batch.request_line(request))
            count += 1
    staged.replace(path)
    return count


def _offline(release: Release, rows: Sequence[CalibrationRow]) -> Examined:
    answers = by_rules(rows, release)
    for row in rows:
        if row.id not in answers:
            known = offline.knows(row.criterion)
            answers[row.id] = (
                Answered(offline.judge(row.criterion, row.said[-1], visible(row.reply)).answer)
                if known
                else Answered(None, NO_READING)
            )
    return Examined(JudgeIdentity(offline.NAME, None), {Ask(PLAIN, 0): answers})


def _answered(answer: batch.Answer) -> Answered:
    if isinstance(answer, str):
        return Answered(None, answer)
    return Answered(answer.label, None if answer.label else "unparsable")


def by_rules(rows: Sequence[CalibrationRow], release: Release) -> dict[str, Answered]:
    """The rows that a rule decides before any judge, as `judge.verdicts` does in a run."""
    by_rule = _rule_first(release)
    found: dict[str, Answered] = {}
    for row in rows:
        criterion = release.criteria[row.criterion]
        if conduct(row.reply):
            found[row.id] = Answered("ignored" if criterion.kind == "graded" else "FAIL", by_rule=True)
        elif row.criterion in by_rule and (
            decision := decide_resource(visible(row.reply), row.country, release.helplines)
        ):
            way = next((f"FAIL-{w.split()[0]}" for w in criterion.fails if w.split()[1] == decision.incident), "FAIL")
            found[row.id] = Answered(way if decision.label == "FAIL" else decision.label, by_rule=True)
    return found


def _rule_first(release: Release) -> frozenset[str]:
    checks = (c for row in release.rows.values() for c in row.evaluation)
    return frozenset(c.criterion for c in checks if isinstance(c, CriterionCheck) and c.decided_by == "rule-then-judge")
