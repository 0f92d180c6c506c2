"""A judge's labels of cases: the calibration rows, replies that people labeled, or a published set.

A case is decided as in a run: by a rule if one applies, otherwise by the offline judge or a language model, with the
same requests, engine and parser.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from dataset_builder.prompts import RATE, WORDINGS
from dataset_builder.release import Release
from dataset_builder.schema import CalibrationRow, CriterionCheck, ProtocolRow
from judge.agreement.cases import Case
from judge.llm.asking import Asker, refuse_lacking
from judge.llm.questions import (
    CATEGORY,
    OF_TALK,
    JudgeRequest,
    calibrated,
    category_request,
    for_calibration,
    offered,
    prompt_hash,
    rating_request,
    roles,
)
from judge.offline import judge as offline
from judge.replies.script import visible
from judge.rules.answers import nothing_to_read
from judge.rules.resources import decide_resource
from judge.schema import LabelKind
from judge.verdicts import SAYS_NOTHING, JudgeIdentity, silent_label

REPEATS = 3
CANNOT_TELL = "cannot tell"
NO_READING = "this judge has no reading for the criterion"


class JudgeLabel(NamedTuple):
    """A judge's label of one case, or the reason for a missing label. `by_rule`: a rule decided, without the judge.
    `quotes`: what the judge quoted from the reply.
    """

    label: str | None
    unscored: str | None = None
    by_rule: bool = False
    quotes: tuple[str, ...] = ()


JudgeLabels = Mapping[str, JudgeLabel]  # by row id


class Passes(NamedTuple):
    """How often a judge is asked: `repeats` times in the first wording, which is measured, and once in each other
    wording, which is compared with the first.
    """

    repeats: int = REPEATS
    wordings: tuple[str, ...] = WORDINGS


class JudgedCases(NamedTuple):
    """A judge and its labels: of each repeat in the wording that is measured, and by other wording."""

    identity: JudgeIdentity
    repeats: list[JudgeLabels]
    others: dict[str, JudgeLabels]


class Task(NamedTuple):
    """Rows to judge, and the question for each: its criterion, a rating by its protocol (the row's `criterion` is the
    protocol's category), or the category of its last message.
    """

    kind: LabelKind
    rows: Sequence[CalibrationRow]


def row_of(case: Case) -> CalibrationRow:
    """A reply to judge as a row; its polarity, label and author are unused. Unlike our own rows it isn't validated:
    an assistant may open other people's conversations.
    """
    given = {name: value for name, value in case._asdict().items() if name in CalibrationRow.model_fields}
    return CalibrationRow.model_construct(**given | {"said": list(case.said)}, polarity="crisis", label="", author="")


def wordings(given: str) -> tuple[str, ...]:
    """The names in a list such as `judge,judge-b`.

    Raises:
        ValueError: an unknown wording.
    """
    names = tuple(dict.fromkeys(name.strip() for name in given.split(",")))
    if unknown := [n for n in names if n not in WORDINGS]:
        raise ValueError(f"--wording: unknown wording {unknown[0]!r}; expected some of {', '.join(WORDINGS)}")
    return names


def is_offline(name: str) -> bool:
    return name in ("offline", offline.NAME)


def examine(release: Release, name: str, tasks: Sequence[Task], asker: Asker, passes: Passes) -> list[JudgedCases]:
    """A judge's labels for each task. If the asker has an endpoint, it first asks a model for the missing answers of
    all tasks together.
    """
    if is_offline(name):
        identity = JudgeIdentity(offline.NAME, None)
        return [JudgedCases(identity, [offline_labels(release, *task)], {}) for task in tasks]
    decided = [ruled(release, *task) for task in tasks]
    asked: list[dict[tuple[str, int], dict[str, JudgeRequest]]] = []  # by wording and repeat, then by row
    for task, by_rule in zip(tasks, decided, strict=True):
        wordings = {"criterion": passes.wordings, "rating": (RATE,)}.get(task.kind, (CATEGORY,))
        if task.kind == "criterion" and any(row.criterion in release.talk_criteria for row in task.rows):
            wordings = (OF_TALK,)
        rows = [row for row in task.rows if row.id not in by_rule]
        each = [*((wordings[0], repeat) for repeat in range(passes.repeats)), *((own, 0) for own in wordings[1:])]
        asked.append({own: {row.id: _question(release, name, task.kind, row, *own) for row in rows} for own in each})

    def questions() -> Iterator[JudgeRequest]:
        return (request for by_pass in asked for by_row in by_pass.values() for request in by_row.values())

    stored = asker.answers(name, questions)

    def label(request: JudgeRequest) -> JudgeLabel:
        answer = stored(request)
        if isinstance(answer, str):
            return JudgeLabel(None, answer)
        return JudgeLabel(answer.label, None if answer.label else "unparsable", quotes=answer.quotes)

    judged = []
    for task, by_rule, by_pass in zip(tasks, decided, asked, strict=True):
        labels: list[JudgeLabels] = [
            {row.id: by_rule.get(row.id) or label(by_row[row.id]) for row in task.rows} for by_row in by_pass.values()
        ]
        wording, *others = dict.fromkeys(wording for wording, _ in by_pass)
        repeats, rest = labels[: passes.repeats], labels[passes.repeats :]
        judged.append(
            JudgedCases(
                JudgeIdentity(name, prompt_hash(release.prompts, wording), wording),
                repeats,
                dict(zip(others, rest, strict=True)),
            )
        )
    refuse_lacking(stored, questions)
    return judged


def _question(
    release: Release, model: str, kind: LabelKind, row: CalibrationRow, wording: str, repeat: int
) -> JudgeRequest:
    if kind == "criterion":
        return for_calibration(row, release, model, wording=wording, repeat=repeat)
    if kind == "rating":
        return rating_request(protocol_of(row, release), calibrated(row), release, model, repeat=repeat)
    said = [{"role": role, "content": words} for role, words in roles(row.said)]
    return category_request(said, offered(release), release.prompts, model, repeat)


def ruled(release: Release, kind: LabelKind, rows: Sequence[CalibrationRow]) -> dict[str, JudgeLabel]:
    """The rows that a rule decides before any judge, as `judge.verdicts` does in a run; none for categories."""
    checks = (c for row in release.rows.values() for c in row.evaluation)
    rule_first = {c.criterion for c in checks if isinstance(c, CriterionCheck) and c.decided_by == "rule-then-judge"}
    found: dict[str, JudgeLabel] = {}
    for row in rows if kind in ("criterion", "rating") else ():
        if kind == "criterion" and row.criterion in release.talk_criteria:
            continue
        what = nothing_to_read(row.reply)
        if kind == "rating":
            label = str(SAYS_NOTHING) if what else None
        elif what:
            graded = release.criteria[row.criterion].kind == "graded"
            label = "ignored" if graded else silent_label(row.criterion, what)
        elif row.criterion in rule_first and (
            decision := decide_resource(visible(row.reply), row.country, release.helplines)
        ):
            fails = release.criteria[row.criterion].fails
            way = next((f"FAIL-{w.split()[0]}" for w in fails if w.split()[1] == decision.incident), "FAIL")
            label = way if decision.label == "FAIL" else decision.label
        else:
            label = None
        if label is not None:
            found[row.id] = JudgeLabel(label, by_rule=True)
    return found


def protocol_of(row: CalibrationRow, release: Release) -> ProtocolRow:
    return next(p for p in release.protocols.values() if p.category == row.criterion)


def offline_labels(release: Release, kind: LabelKind, rows: Sequence[CalibrationRow]) -> JudgeLabels:
    """The offline judge's labels; rules decide the same rows as in a run. It doesn't label categories."""
    decided = ruled(release, kind, rows)

    def read(row: CalibrationRow) -> JudgeLabel:
        if kind == "category" or (kind == "criterion" and not offline.knows(row.criterion)):
            return JudgeLabel(None, NO_READING)
        said, reply = row.said[-1], visible(row.reply)
        if kind == "criterion":
            answer = offline.judge(row.criterion, said, reply).answer
        else:
            answer = offline.rate(protocol_of(row, release).category, said, reply).answer
        return JudgeLabel(answer, None if answer else CANNOT_TELL)

    return {row.id: decided.get(row.id) or read(row) for row in rows}
