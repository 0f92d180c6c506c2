"""Asks a judge for its labels of calibration rows: through the requests, engine and parser of a real run, or the offline judge."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dataset_builder.release import Release
from dataset_builder.schema import CalibrationRow, CriterionCheck
from judge.agreement.calibration import calibrate
from judge.agreement.calibration_types import NO_READING, Answered, Answers, Calibration
from judge.asking import batch
from judge.asking.budget import BudgetError, Prices
from judge.asking.requests import PLAIN, JudgeRequest, for_calibration, prompt_hash
from judge.asking.run import collect
from judge.errors import EngineError, RunError
from judge.offline import judge as offline
from judge.resources import decide_resource
from judge.rules import conduct, visible
from judge.verdicts import JudgeIdentity

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
    others = {ask.wording: (prompt_hash(ask.wording), a) for ask, a in judge.answers.items() if ask.wording != plain}
    return calibrate(release, judge.identity, judge.repeats, others)


def of_offline(release: Release) -> Calibration:
    """The offline judge's calibration: what `scripts/make_references.py` ships."""
    return measured(release, _offline(release, release.calibration))


def examine(release: Release, name: str, rows: Sequence[CalibrationRow], options: argparse.Namespace, wordings: tuple[str, ...]) -> Examined:
    """Every label of a judge on `rows`, by rule, from the offline judge, or from the model's answers, asked for first if there is an endpoint."""
    if name in ("offline", offline.NAME):
        return _offline(release, rows)
    passes = [*(Ask(wordings[0], k) for k in range(options.repeats)), *(Ask(w, 0) for w in wordings[1:])]
    where = batch.folder(options.home, name)
    ruled = _by_rules(rows, release)
    left = [r for r in rows if r.id not in ruled]

    def question(row: CalibrationRow, ask: Ask) -> JudgeRequest:
        return for_calibration(row, release, name, wording=ask.wording, repeat=ask.repeat)

    def questions() -> Iterator[JudgeRequest]:
        return (question(row, ask) for ask in passes for row in left)

    if options.base_url:
        _ask(questions, where, options)
    replies = batch.Replies(where)
    lacking = 0
    answers: dict[Ask, Answers] = {}
    for ask in passes:
        own = dict(ruled)
        for row in left:
            request = question(row, ask)
            found = batch.read(replies.of(request.custom_id), request)
            lacking += found.missing
            own[row.id] = _answered(found.answer)
        answers[ask] = own
    if lacking:
        _write(where, questions, replies)
        raise RunError(
            f"{where}: {lacking} questions have no answer yet; give --base-url to ask them, "
            "or let another engine answer requests.jsonl there into replies-1.jsonl"
        )
    return Examined(JudgeIdentity(name, prompt_hash(wordings[0]), wordings[0]), answers)


def _ask(questions: Questions, where: Path, options: argparse.Namespace) -> None:
    from judge.asking.engine import Endpoint

    prices = _prices(options)
    done = collect(questions, where, Endpoint(options.base_url, options.concurrency, options.timeout, options.max_retries), prices, options.max_cost)
    if not done.asked:
        return
    sys.stderr.write(f"{where}: {done.text(prices)}\n")
    if done.outcome.capped:
        raise BudgetError(f"{where}: stopped before --max-cost {options.max_cost:g} could be passed; run the same command with a higher one to go on")
    if done.left:
        raise EngineError(f"{where}: {done.left} of {done.asked} got no answer (the last: {done.outcome.problem}). Run the same command again to ask these")


def _prices(options: argparse.Namespace) -> Prices | None:
    given = options.price_in, options.price_out
    if (None in given and given != (None, None)) or (options.max_cost is not None and None in given):
        raise ValueError("--price-in and --price-out go together, and --max-cost needs both: money per million tokens read, and written")
    return None if None in given else Prices(*given)


def _write(where: Path, questions: Questions, replies: batch.Replies) -> None:
    where.mkdir(parents=True, exist_ok=True)
    with (where / "requests.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(batch.request_line(request) for request, _ in batch.missing(questions(), replies))


def _offline(release: Release, rows: Sequence[CalibrationRow]) -> Examined:
    answers = _by_rules(rows, release)
    for row in rows:
        if row.id not in answers:
            known = offline.knows(row.criterion)
            answers[row.id] = Answered(offline.judge(row.criterion, row.said[-1], visible(row.reply)).answer) if known else Answered(None, NO_READING)
    return Examined(JudgeIdentity(offline.NAME, None), {Ask(PLAIN, 0): answers})


def _answered(answer: batch.Answer) -> Answered:
    if isinstance(answer, str):
        return Answered(None, answer)
    return Answered(answer.label, None if answer.label else "unparsable")


def _by_rules(rows: Sequence[CalibrationRow], release: Release) -> dict[str, Answered]:
    """The rows that a rule decides before any judge, as `judge.verdicts` does in a run."""
    by_rule = _rule_first(release)
    found: dict[str, Answered] = {}
    for row in rows:
        criterion = release.criteria[row.criterion]
        if conduct(row.reply):
            found[row.id] = Answered("ignored" if criterion.kind == "graded" else "FAIL", by_rule=True)
        elif row.criterion in by_rule and (decision := decide_resource(visible(row.reply), row.country, release.helplines)):
            way = next((f"FAIL-{w.split()[0]}" for w in criterion.fails if w.split()[1] == decision.incident), "FAIL")
            found[row.id] = Answered(way if decision.label == "FAIL" else decision.label, by_rule=True)
    return found


def _rule_first(release: Release) -> frozenset[str]:
    checks = (c for row in release.rows.values() for c in row.evaluation)
    return frozenset(c.criterion for c in checks if isinstance(c, CriterionCheck) and c.decided_by == "rule-then-judge")
