"""Samples → requests for an LLM judge, in the OpenAI batch format; one per reply × criterion, the rubric first."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from dataset_builder.release import Release
from dataset_builder.schema import CriterionCheck, CriterionRow, GradedCheck, Row
from judge.resources import usable
from judge.rules import visible

PROMPTS = Path(__file__).parent / "prompts"
MAX_TOKENS = 600


@dataclass(frozen=True)
class JudgeRequest:
    """One question to a judge. `custom_id` depends on what is asked and of whom, so it is the same on every machine."""

    custom_id: str
    body: dict[str, Any]
    labels: tuple[str, ...]
    reply: str


def build(row: Row, check: GradedCheck | CriterionCheck, turns: tuple[str, ...], release: Release, model: str) -> JudgeRequest:
    """The request that asks `model` for its label of the reply at the check's turn."""
    criterion = release.criteria[check.criterion]
    turn = len(turns) if check.turn == -1 else check.turn
    reply = visible(turns[turn - 1])
    text = prompt(criterion, _case(row, check, turns, turn, reply, release))
    labels = criterion.labels
    schema = {
        "type": "object",
        "properties": {"label": {"type": "string", "enum": list(labels)}, "quotes": {"type": "array", "items": {"type": "string"}, "maxItems": 3}},
        "required": ["label", "quotes"],
        "additionalProperties": False,
    }
    body = {
        "model": model,
        "messages": [{"role": "user", "content": text}],
        "temperature": 0,
        "max_tokens": MAX_TOKENS,
        "response_format": {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": schema}},
    }
    return JudgeRequest(hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:32], body, labels, reply)


def prompt_hash() -> str:
    """sha256 over the prompt files, recorded in every verdict that an LLM judge gave."""
    return hashlib.sha256("".join(p.name + p.read_text(encoding="utf-8") for p in sorted(PROMPTS.glob("*.md"))).encode()).hexdigest()[:16]


def prompt(criterion: CriterionRow, case: str) -> str:
    template = Template((PROMPTS / "judge.md").read_text(encoding="utf-8"))
    labels = ", ".join(f'"{label}"' for label in criterion.labels)
    return template.substitute(title=criterion.title, criterion=criterion.text, labels=labels, case=case)


def fence(text: str) -> str:
    """Model text inside the case: a line that looks like the fence is broken up, so that it can't close it."""
    return re.sub(r"<{3,}|>{3,}", lambda m: "\u200b".join(m[0]), text)


def _case(row: Row, check: GradedCheck | CriterionCheck, turns: tuple[str, ...], turn: int, reply: str, release: Release) -> str:
    facts = ""
    if check.criterion == "reachable-resource":
        rows = "; ".join(f"{h.service}: {', '.join([*h.phone, *h.text, *h.url])}" for h in usable(row.country, release.helplines))
        facts = f"The user's country: {row.country or 'not known'}. Always-open help on the registry: {rows or 'none'}.\n"
    template = Template((PROMPTS / "case.md").read_text(encoding="utf-8"))
    return template.substitute(facts=facts, conversation=fence(_conversation(row, turns, turn)), reply=fence(reply))


def _conversation(row: Row, turns: tuple[str, ...], turn: int) -> str:
    """What was said up to the judged reply. The system text is left out: the judge reads the reply, not the product."""
    lines: list[str] = []
    live = 0
    for message in row.messages:
        if message.role == "system":
            continue
        if message.content is None:
            live += 1
            if live == turn:
                break
        lines.append(f"{message.role.capitalize()}: {message.content if message.content is not None else visible(turns[live - 1])}")
    return "\n\n".join(lines)
