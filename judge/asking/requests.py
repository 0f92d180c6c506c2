"""Samples → requests for an LLM judge, in the OpenAI batch format; one per reply × criterion, the rubric first, the case last.

Requests with the same criterion share everything before the case, so that a prefix cache holds the rubric. One criterion
per request: labels of several criteria given in one answer pull each other (a reply found warm is found safe as well), and
one unreadable answer would cost several verdicts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template
from typing import Any

from dataset_builder.release import Release
from dataset_builder.schema import CalibrationRow, CriterionCheck, CriterionRow, GradedCheck, Row
from judge.asking.fence import fence
from judge.resources import usable
from judge.rules import visible

PROMPTS = Path(__file__).parent / "prompts"
MAX_TOKENS = 600
PLAIN = "judge"
# The prompt files that a judge may be asked with: `calibrate` measures what a wording, or a reason before the label, changes.
WORDINGS = (PLAIN, "judge-b", "judge-reason")
REASONED = ("judge-reason",)


@dataclass(frozen=True)
class JudgeRequest:
    """One question to a judge. `custom_id` depends on what is asked, of whom and in which repeat: the same on every machine.

    `labels` and `reply` are what its answer is read against; `reasoned`: the answer carries a reason too.
    """

    custom_id: str
    body: dict[str, Any]
    labels: tuple[str, ...]
    reply: str
    reasoned: bool = False


def build(
    row: Row, check: GradedCheck | CriterionCheck, turns: tuple[str, ...], release: Release, model: str, *, wording: str = PLAIN, repeat: int = 0
) -> JudgeRequest:
    """The request that asks `model` for its label of the reply at the check's turn.

    `turns`: what the model under test said, one text per live turn. `wording`: one of WORDINGS. `repeat`: the judge's own, from 0.
    """
    turn = len(turns) if check.turn == -1 else check.turn
    said = _said(row, turns, turn)
    return _request(release.criteria[check.criterion], said, turns[turn - 1], row.country, release, model, wording, repeat)


def for_calibration(row: CalibrationRow, release: Release, model: str, *, wording: str = PLAIN, repeat: int = 0) -> JudgeRequest:
    """The request for a reply of the calibration set, built exactly as one of a run."""
    said = [("user" if n % 2 == 0 else "assistant", text) for n, text in enumerate(row.said)]
    return _request(release.criteria[row.criterion], said, row.reply, row.country, release, model, wording, repeat)


def prompt(criterion: CriterionRow, case: str, wording: str = PLAIN) -> str:
    """The whole question: the wording's file with the criterion, its labels and an already fenced case, filled in one pass."""
    labels = ", ".join(f'"{label}"' for label in criterion.labels)
    return Template(_file(wording)).substitute(title=criterion.title, criterion=criterion.text, labels=labels, case=case)


def prompt_hash(wording: str = PLAIN) -> str:
    """sha256 over the wording's file and the case's, recorded in every verdict that an LLM judge gave."""
    return hashlib.sha256("".join(name + _file(name) for name in (wording, "case")).encode()).hexdigest()[:16]


def _request(
    criterion: CriterionRow,
    said: Sequence[tuple[str, str]],
    reply: str,
    country: str | None,
    release: Release,
    model: str,
    wording: str,
    repeat: int,
) -> JudgeRequest:
    shown = visible(reply)
    labels, reasoned = criterion.labels, wording in REASONED
    body = {
        "model": model,
        "messages": [{"role": "user", "content": prompt(criterion, _case(criterion, said, shown, country, release), wording)}],
        "temperature": 0,
        "max_tokens": MAX_TOKENS,
        "response_format": {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": _schema(labels, reasoned)}},
    }
    # Every repeat has an id of its own, so that its answer is never taken for another's.
    asked = json.dumps({"body": body, "repeat": repeat}, sort_keys=True)
    return JudgeRequest(hashlib.sha256(asked.encode()).hexdigest()[:32], body, labels, shown, reasoned)


def _schema(labels: tuple[str, ...], reasoned: bool) -> dict[str, Any]:
    """The closed answer. A reason comes first, since what is written later can't change a label."""
    properties: dict[str, Any] = {"reason": {"type": "string"}} if reasoned else {}
    properties |= {"label": {"type": "string", "enum": list(labels)}, "quotes": {"type": "array", "items": {"type": "string"}, "maxItems": 3}}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _case(criterion: CriterionRow, said: Sequence[tuple[str, str]], reply: str, country: str | None, release: Release) -> str:
    facts = ""
    if criterion.criterion == "reachable-resource":
        rows = "; ".join(f"{h.service}: {', '.join([*h.phone, *h.text, *h.url])}" for h in usable(country, release.helplines))
        facts = f"The user's country: {country or 'not known'}. Always-open help on the registry: {rows or 'none'}.\n"
    conversation = "\n\n".join(f"{role.capitalize()}: {text}" for role, text in said)
    return Template(_file("case")).substitute(facts=facts, conversation=fence(conversation), reply=fence(reply))


def _said(row: Row, turns: tuple[str, ...], turn: int) -> list[tuple[str, str]]:
    """What was said up to the judged reply. The system text is left out: the judge reads the reply, not the product."""
    said: list[tuple[str, str]] = []
    live = 0
    for message in row.messages:
        if message.content is None:
            live += 1
            if live == turn:
                break
        if message.role != "system":
            said.append((message.role, message.content if message.content is not None else visible(turns[live - 1])))
    return said


def _file(name: str) -> str:
    return _text(PROMPTS / f"{name}.md")


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
