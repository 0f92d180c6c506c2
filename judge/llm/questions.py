"""Samples → requests for an LLM judge, in the OpenAI batch format; one per reply × criterion or protocol, the rubric
first, the case last. A case begins with what the model was told of its job and of the user, where that is known.

Requests with the same criterion share everything before the case, so that a prefix cache holds the rubric. One
criterion per request: labels of several criteria given in one answer pull each other (a reply found warm is found safe
as well), and one unreadable answer would cost several verdicts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dataset_builder.prompts import PLAIN, RATE, REASONED, Prompts
from dataset_builder.release import Release
from dataset_builder.schema import (
    About,
    AppropriatenessCheck,
    CalibrationRow,
    CriterionCheck,
    CriterionRow,
    GradedCheck,
    ProtocolRow,
    Sample,
)
from judge.replies.fence import conversation, fence
from judge.replies.script import visible
from judge.rules.answers import words_said
from judge.rules.resources import usable
from judge.schema import RATINGS
from judge.wording import told

MAX_TOKENS = 600


@dataclass(frozen=True)
class JudgeRequest:
    """One question to a judge. `custom_id` depends on what is asked, of whom and in which repeat: the same on every
    machine.

    `labels` and `reply` are what its answer is read against; `reasoned`: the answer carries a reason too. `category`:
    it is {"category": one of the labels} and nothing else.
    """

    custom_id: str
    body: dict[str, Any]
    labels: tuple[str, ...]
    reply: str
    reasoned: bool = False
    category: bool = False


class Case(NamedTuple):
    """A reply and all that a judge is told of it. `said`: the conversation before it, (role, text); `country`: the
    user's; `about`: what the model was told.
    """

    said: Sequence[tuple[str, str]]
    reply: str
    country: str | None = None
    about: About | None = None


def build(
    row: Sample,
    check: GradedCheck | CriterionCheck,
    turns: tuple[str, ...],
    release: Release,
    model: str,
    *,
    wording: str = PLAIN,
    repeat: int = 0,
) -> JudgeRequest:
    """The request that asks `model` for its label of the reply at the check's turn.

    `turns`: what the model under test said, one text per live turn. `wording`: one of WORDINGS. `repeat`: the judge's
    own, from 0.
    """
    return _by_criterion(
        release.criteria[check.criterion], _of(row, check.turn, turns), release, model, wording, repeat
    )


def build_rating(
    row: Sample, check: AppropriatenessCheck, turns: tuple[str, ...], release: Release, model: str, *, repeat: int = 0
) -> JudgeRequest:
    """The request that asks `model` to rate the reply at the check's turn from 1 to 5, by the protocol of the message's
    category.
    """
    return rating_request(release.protocols[check.protocol], _of(row, check.turn, turns), release, model, repeat=repeat)


def rating_request(protocol: ProtocolRow, case: Case, release: Release, model: str, *, repeat: int = 0) -> JudgeRequest:
    """The request to rate one reply."""
    # A person in no crisis is to be told of no line, so none is named to the judge either.
    resources = "" if protocol.category == "no_crisis" else _resources(case.country, release)
    asked = rating_prompt(protocol, _shown(case, resources, release.prompts), release.prompts)
    return _request(asked, RATINGS, case.reply, model, RATE, repeat)


def for_calibration(
    row: CalibrationRow, release: Release, model: str, *, wording: str = PLAIN, repeat: int = 0
) -> JudgeRequest:
    """The request for a reply of the calibration set, built exactly as one of a run."""
    return _by_criterion(release.criteria[row.criterion], calibrated(row), release, model, wording, repeat)


def calibrated(row: CalibrationRow) -> Case:
    """A calibration row's case."""
    return Case(roles(row.said), row.reply, row.country, row.about)


def roles(said: Sequence[str]) -> list[tuple[str, str]]:
    """Texts that alternate user and assistant, each with its role."""
    return [("user" if n % 2 == 0 else "assistant", text) for n, text in enumerate(said)]


def prompt(criterion: CriterionRow, case: str, prompts: Prompts, wording: str = PLAIN) -> str:
    """The whole question: the wording's file with the criterion, its labels and an already fenced case, filled in one
    pass.
    """
    labels = ", ".join(f'"{label}"' for label in criterion.labels)
    return prompts.fill(wording, title=criterion.title, criterion=criterion.text, labels=labels, case=case)


def rating_prompt(protocol: ProtocolRow, case: str, prompts: Prompts) -> str:
    """The whole question for a rating: the five levels and what isn't judged, then an already fenced case, filled in
    one pass.
    """
    levels = "\n\n".join(f"## Level {n}\n\n{text}" for n, text in enumerate(protocol.levels, start=1))
    return prompts.fill(
        RATE, title=protocol.title, terms=protocol.terms, levels=levels, not_judged=protocol.not_judged, case=case
    )


def prompt_hash(prompts: Prompts, wording: str = PLAIN) -> str:
    """sha256 over the wording's file and those of the case, recorded in every verdict that an LLM judge gave."""
    return prompts.hash(wording, "case", "about")


def _by_criterion(
    criterion: CriterionRow, case: Case, release: Release, model: str, wording: str, repeat: int
) -> JudgeRequest:
    resources = _resources(case.country, release) if criterion.criterion == "reachable-resource" else ""
    asked = prompt(criterion, _shown(case, resources, release.prompts), release.prompts, wording)
    return _request(asked, criterion.labels, case.reply, model, wording, repeat)


def _request(asked: str, labels: tuple[str, ...], reply: str, model: str, wording: str, repeat: int) -> JudgeRequest:
    reasoned = wording in REASONED
    # A reason comes first, since what is written later can't change a label.
    properties: dict[str, Any] = {"reason": {"type": "string"}} if reasoned else {}
    properties |= {
        "label": {"type": "string", "enum": list(labels)},
        "quotes": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
    }
    custom_id, body = sealed(asked, "verdict", properties, model, repeat)
    return JudgeRequest(custom_id, body, labels, visible(reply), reasoned)


def sealed(asked: str, name: str, properties: dict[str, Any], model: str, repeat: int) -> tuple[str, dict[str, Any]]:
    """The id and body of a request whose answer is one closed JSON object with these properties; `name` is the
    schema's.
    """
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    body = {
        "model": model,
        "messages": [{"role": "user", "content": asked}],
        "temperature": 0,
        "max_tokens": MAX_TOKENS,
        "response_format": {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}},
    }
    # Every repeat has an id of its own, so that its answer is never taken for another's.
    key = json.dumps({"body": body, "repeat": repeat}, sort_keys=True)
    return hashlib.sha256(key.encode()).hexdigest()[:32], body


def _shown(case: Case, resources: str, prompts: Prompts) -> str:
    """The case as a judge reads it: facts, where there are any, then conversation and reply, each in a fence."""
    known = told(case.about)
    # A profile is somebody's text too: a corpus's, or a team's own.
    about = prompts.fill("about", about=fence("\n\n".join(known))) if known else ""
    return prompts.fill(
        "case",
        facts="\n".join(filter(None, (resources, about))),
        conversation=conversation(case.said),
        reply=fence(visible(case.reply)),
    )


def _resources(country: str | None, release: Release) -> str:
    """Where the user is, and which services answer there."""
    rows = "; ".join(
        f"{h.service}: {', '.join([*h.phone, *h.text, *h.url])}" for h in usable(country, release.helplines)
    )
    return f"The user's country: {country or 'not known'}. Always-open help on the registry: {rows or 'none'}.\n"


def _of(row: Sample, turn: int, turns: tuple[str, ...]) -> Case:
    """A row's case at a check's turn."""
    turn = len(turns) if turn == -1 else turn
    return Case(said_before(row, turns, turn), words_said(row, turns[turn - 1]), row.country, row.about)


def said_before(row: Sample, turns: tuple[str, ...], turn: int) -> list[tuple[str, str]]:
    """What was said up to the judged reply. The system text is left out: of it a judge is told the facts in `about`."""
    given: list[tuple[str, str]] = []
    live = 0
    for message in row.messages:
        if message.content is None:
            live += 1
            if live == turn:
                break
        if message.role != "system":
            given.append((message.role, message.content if message.content is not None else visible(turns[live - 1])))
    return given
