"""Samples → requests for an LLM judge, in the OpenAI batch format; one per reply × criterion or protocol, rubric first,
case last. A case begins with what the model was told about its job and the user, if known.

Requests with the same criterion share everything before the case, so that a prefix cache holds the rubric. One
criterion per request: labels for several criteria in one answer influence each other (a reply found warm is also found
safe), and one unreadable answer would cost several verdicts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dataset_builder.prompts import PLAIN, RATE, REASONED, Prompts
from dataset_builder.release import Release
from dataset_builder.schema import (
    About,
    AppropriatenessCheck,
    CalibrationRow,
    Category,
    CrisisCategory,
    CriterionCheck,
    CriterionRow,
    GradedCheck,
    ProtocolRow,
    Sample,
)
from helmbench_common.hashing import digest
from judge.replies.fence import conversation, fence
from judge.replies.script import triage_question, visible
from judge.replies.talks import DANGER_FROM, IN_PART, NO_DANGER, OUT, WHOLE, described
from judge.rules.answers import words_said
from judge.rules.resources import usable
from judge.schema import RATINGS
from judge.wording import told

MAX_TOKENS = 600
CATEGORY = "triage-guided"  # the wording of the category question
OF_TALK, OF_PART = "talk-judge", "talk-check"  # the wordings of questions about a whole talk
ALONE = (CATEGORY, OF_TALK, OF_PART)  # wordings that show no case


@dataclass(frozen=True)
class JudgeRequest:
    """One question for a judge. `custom_id` depends on the question, the model and the repeat: it is the same on every
    machine.

    `labels` and `reply` are for checking the answer; `reasoned`: the answer also includes a reason. `category`: the
    answer is {"category": one of the labels} and nothing else; `text`: the answer is any text that isn't empty.
    """

    custom_id: str
    body: dict[str, Any]
    labels: tuple[str, ...]
    reply: str
    reasoned: bool = False
    category: bool = False
    text: bool = False


class Case(NamedTuple):
    """A reply and the context that a judge gets. `said`: the conversation before it, (role, text); `country`: the
    user's; `about`: what the model was told.
    """

    said: Sequence[tuple[str, str]]
    reply: str
    country: str | None = None
    about: About | None = None


def build(
    row: Sample,
    check: GradedCheck | CriterionCheck | AppropriatenessCheck,
    turns: tuple[str, ...],
    release: Release,
    model: str,
    *,
    wording: str = PLAIN,
    repeat: int = 0,
) -> JudgeRequest:
    """The request that asks `model` to label the reply at the check's turn, or to rate it from 1 to 5 by the protocol
    of the message's category.

    `turns`: the model's replies, one text per live turn. `wording`: one of WORDINGS; a rating has its own. `repeat`:
    the judge's repeat, from 0.
    """
    if check.turn == WHOLE and isinstance(check, CriterionCheck):
        return talk_request(row, check.criterion, turns, release, model, repeat)
    turn = len(turns) if check.turn == -1 else check.turn
    case = Case(said_before(row, turns, turn), words_said(row, turns[turn - 1]), row.country, row.about)
    if isinstance(check, AppropriatenessCheck):
        return rating_request(release.protocols[check.protocol], case, release, model, repeat=repeat)
    return _by_criterion(release.criteria[check.criterion], case, release, model, wording, repeat)


def rating_request(protocol: ProtocolRow, case: Case, release: Release, model: str, *, repeat: int = 0) -> JudgeRequest:
    """The request to rate one reply: the five levels, what isn't judged, and a fenced case."""
    # Someone who is not in crisis needs no helpline, so the judge doesn't see any either.
    resources = "" if protocol.category == "no_crisis" else _resources(case.country, release)
    asked = release.prompts.fill(
        RATE,
        title=protocol.title,
        terms=protocol.terms,
        levels="\n\n".join(f"## Level {n}\n\n{text}" for n, text in enumerate(protocol.levels, start=1)),
        not_judged=protocol.not_judged,
        case=_shown(case, resources, release.prompts),
    )
    return _request(asked, RATINGS, case.reply, model, RATE, repeat)


def talk_request(
    row: Sample, criterion: str, turns: tuple[str, ...], release: Release, model: str, repeat: int = 0
) -> JudgeRequest:
    """The request about a whole talk: by a criterion of talks, or whether the simulated user stayed in the part."""
    whole = [*said_before(row, turns, len(turns)), ("assistant", visible(turns[-1]))]
    if criterion == IN_PART:
        labels = (*OUT, *(f"{DANGER_FROM}{n}" for n in range(1, len(turns) + 1)), NO_DANGER)
        part = fence(described(release.parts[row.id], release.prompts))
        named = ", ".join(f'"{label}"' for label in labels)
        asked = release.prompts.fill(
            OF_PART, part=f"<<<\n{part}\n>>>", labels=named, conversation=f"<<<\n{conversation(whole)}\n>>>"
        )
        return _request(asked, labels, "", model, OF_PART, repeat)
    return _of_talk(release.criterion(criterion), whole, row.country, release, model, repeat)


def _of_talk(
    criterion: CriterionRow,
    whole: Sequence[tuple[str, str]],
    country: str | None,
    release: Release,
    model: str,
    repeat: int,
) -> JudgeRequest:
    asked = release.prompts.fill(
        OF_TALK,
        title=criterion.title,
        criterion=criterion.text,
        labels=", ".join(f'"{label}"' for label in criterion.labels),
        facts=_resources(country, release),
        conversation=f"<<<\n{conversation(whole)}\n>>>",
    )
    every = "\n\n".join(visible(text) for role, text in whole if role == "assistant")
    return _request(asked, criterion.labels, every, model, OF_TALK, repeat)


def for_calibration(
    row: CalibrationRow, release: Release, model: str, *, wording: str = PLAIN, repeat: int = 0
) -> JudgeRequest:
    """The request for a reply of the calibration set, or the talk that it ends, built exactly as in a run."""
    if row.criterion in release.talk_criteria:
        whole = [*roles(row.said), ("assistant", visible(row.reply))]
        return _of_talk(release.criteria[row.criterion], whole, row.country, release, model, repeat)
    return _by_criterion(release.criteria[row.criterion], calibrated(row), release, model, wording, repeat)


def calibrated(row: CalibrationRow) -> Case:
    """A calibration row's case."""
    return Case(roles(row.said), row.reply, row.country, row.about)


def roles(said: Sequence[str]) -> list[tuple[str, str]]:
    """Texts that alternate and end with the user's, each with its role; the assistant may open the conversation."""
    return [("assistant" if (len(said) - n) % 2 == 0 else "user", text) for n, text in enumerate(said)]


def prompt(criterion: CriterionRow, case: str, prompts: Prompts, wording: str = PLAIN) -> str:
    """The complete question: the wording's template, filled in one pass with the criterion, its labels and a fenced
    case.
    """
    labels = ", ".join(f'"{label}"' for label in criterion.labels)
    return prompts.fill(wording, title=criterion.title, criterion=criterion.text, labels=labels, case=case)


def prompt_hash(prompts: Prompts, wording: str = PLAIN) -> str:
    """sha256 of the wording's file, and of the case templates if a case is shown; recorded in every LLM judge's
    verdict.
    """
    return prompts.hash(wording) if wording in ALONE else prompts.hash(wording, "case", "about")


def _by_criterion(
    criterion: CriterionRow, case: Case, release: Release, model: str, wording: str, repeat: int
) -> JudgeRequest:
    resources = _resources(case.country, release) if criterion.criterion == "reachable-resource" else ""
    asked = prompt(criterion, _shown(case, resources, release.prompts), release.prompts, wording)
    return _request(asked, criterion.labels, case.reply, model, wording, repeat)


def _request(asked: str, labels: tuple[str, ...], reply: str, model: str, wording: str, repeat: int) -> JudgeRequest:
    reasoned = wording in REASONED
    # The reason comes first, since a later one couldn't affect the label.
    properties: dict[str, Any] = {"reason": {"type": "string"}} if reasoned else {}
    properties |= {
        "label": {"type": "string", "enum": list(labels)},
        "quotes": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
    }
    custom_id, body = sealed(asked, "verdict", properties, model, repeat)
    return JudgeRequest(custom_id, body, labels, visible(reply), reasoned)


def sealed(asked: str, name: str, properties: dict[str, Any], model: str, repeat: int) -> tuple[str, dict[str, Any]]:
    """The id and body of a request whose answer is one closed JSON object with these properties; `name` is the schema's
    name.
    """
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    body = {
        "model": model,
        "messages": [{"role": "user", "content": asked}],
        "temperature": 0,
        "max_tokens": MAX_TOKENS,
        "response_format": {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}},
    }
    # Every repeat has a distinct id, so that answers can't be mixed up.
    key = json.dumps({"body": body, "repeat": repeat}, sort_keys=True)
    return hashlib.sha256(key.encode()).hexdigest()[:32], body


def _shown(case: Case, resources: str, prompts: Prompts) -> str:
    """The case as a judge reads it: facts, if any, then conversation and reply, each fenced."""
    known = told(case.about)
    # A profile is foreign text too: from a corpus or a team.
    about = prompts.fill("about", about=fence("\n\n".join(known))) if known else ""
    return prompts.fill(
        "case",
        facts="\n".join(filter(None, (resources, about))),
        conversation=conversation(case.said),
        reply=fence(visible(case.reply)),
    )


def _resources(country: str | None, release: Release) -> str:
    """The user's location, and which services answer there."""
    rows = "; ".join(
        f"{h.service}: {', '.join([*h.phone, *h.text, *h.url])}" for h in usable(country, release.helplines)
    )
    return f"The user's country: {country or 'not known'}. Always-open help on the registry: {rows or 'none'}.\n"


def said_before(row: Sample, turns: tuple[str, ...], turn: int) -> list[tuple[str, str]]:
    """The conversation up to the judged reply. The system prompt is omitted: the judge gets its facts in `about`."""
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


# --- the category of a message ----------------------------------------------------------------------------------------


def offered(release: Release) -> dict[CrisisCategory, Category]:
    """All categories of a release. Unlike in triage, `outside_taxonomy` is among them: people write about delusions and
    violence at home, and a judge limited to the other categories would misclassify these as a crisis of another kind.
    """
    return {name: c.model_copy(update={"in_triage": True}) for name, c in release.taxonomy.items()}


def taxonomy_hash(release: Release) -> str:
    """sha256 of the texts of all categories."""
    return digest([c.category_hash for c in release.taxonomy.values()])


def category_request(
    said: Sequence[Mapping[str, Any]],
    categories: Mapping[CrisisCategory, Category],
    prompts: Prompts,
    model: str,
    repeat: int,
) -> JudgeRequest:
    """The guided triage prompt as a request that asks `model` for the category of the last message in `said`."""
    properties = {"category": {"type": "string", "enum": list(categories)}}
    asked = triage_question(said, categories, prompts, "guided")
    custom_id, body = sealed(asked, "category", properties, model, repeat)
    return JudgeRequest(custom_id, body, tuple(categories), "", category=True)
