"""Whether each logged request is the sample's own: every message as it is pinned, live turns as they were replied,
nothing else.

An API's request is the JSON of the messages, and must equal them. A templated text or a transcript must hold every
message in its order; what stands around the messages must be the same in all requests, and is shown where it has words
of its own (leaderboard.verify.around).
"""

from __future__ import annotations

import hashlib
from collections import Counter

from dataset_builder.schema import Row
from helmbench_common.formats import json_file
from judge.replies.script import NO_REPLY, visible
from leaderboard.schema import RESPONSES, Problem, Response
from leaderboard.verify.around import Part, Surroundings
from leaderboard.verify.findings import Problems

KINDS = {"system": "system_prompt", "user": "edited_prompt", "assistant": "live_turn"}
ALL, SOME, NONE = (f"lists of messages, {n} with a type" for n in ("all", "some", "none"))
SAID = {"system": "the system text", "user": "the user's message", "assistant": "the model's own earlier reply"}


class Prompts:
    """Goes through the responses once, and adds what is wrong to `problems`. Memory holds a few examples, not the
    requests.
    """

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._forms: Counter[str] = Counter()
        self._surroundings = Surroundings(problems)

    def add(self, response: Response, row: Row, where: str) -> None:
        """Looks at one response, whose turns are as many as the row's script has."""
        if hashlib.sha256(response.requests[0].encode()).hexdigest() != response.prompt_sha256:
            self._problems.append(
                Problem("prompt_hash", where, f"{row.id}: prompt_sha256 is not that of its first request")
            )
        for number, request in enumerate(response.requests):
            at = f"{where}: {row.id} repeat {response.repeat}" + (
                f" turn {number + 1}" if len(response.requests) > 1 else ""
            )
            expected = parts(row, response.turns, number)
            messages = _messages(request)
            self._forms[_form(messages)] += 1
            problem = self._text(request, expected, row, at) if messages is None else _exact(messages, expected, at)
            if problem:
                self._problems.append(problem)

    def close(self) -> list[Problem]:
        """Adds what only all requests together can show; returns flags."""
        if len(self._forms) > 1:
            told = ", ".join(f"{n} {form}" for form, n in sorted(self._forms.items()))
            self._problems.append(Problem("mixed_requests", RESPONSES, f"has requests of several kinds: {told}"))
        elif SOME in self._forms:
            said = "has requests in which some messages have a type and others none; expected it of all or of none"
            self._problems.append(Problem("mixed_requests", RESPONSES, said))
        return self._surroundings.close()

    def _text(self, request: str, expected: list[Part], row: Row, at: str) -> Problem | None:
        lacking = self._surroundings.add(request, expected, row, at)
        if lacking is None:
            return None
        role = expected[lacking].role
        return Problem(KINDS[role], at, f"{SAID[role]} that belongs there is not in the request, or not in its place")


def parts(row: Row, turns: tuple[str, ...], number: int) -> list[Part]:
    """The messages of a row's request for its live turn `number` (from 0), with what was replied at the turns
    before.
    """
    found: list[Part] = []
    live = 0
    for message in row.messages:
        if message.content is None:
            if live == number:
                break
            found.append(Part("assistant", visible(turns[live]) or NO_REPLY))
            live += 1
        else:
            found.append(Part(message.role, message.content))
    return found


def _messages(request: str) -> list[dict[str, str]] | None:
    """An API's request as messages; None for a text."""
    if not request.startswith("["):
        return None
    try:
        value = json_file.strict(request)
    except ValueError:
        return None
    plain = isinstance(value, list) and all(
        isinstance(m, dict) and all(isinstance(v, str) for v in m.values()) and "role" in m for m in value
    )
    return value if plain and value else None


def _form(messages: list[dict[str, str]] | None) -> str:
    """Of which kind a request is. A run has one: which of its messages have a type could tell what a sample is."""
    if messages is None:
        return "texts"
    typed = sum("type" in m for m in messages)
    return ALL if typed == len(messages) else SOME if typed else NONE


def _exact(messages: list[dict[str, str]], expected: list[Part], at: str) -> Problem | None:
    for n, part in enumerate(expected):
        given = messages[n] if n < len(messages) else {}
        if given not in (
            {"role": part.role, "content": part.content},
            {"role": part.role, "content": part.content, "type": "text"},
        ):
            # A system message where none belongs, or another one, is a system prompt of somebody's own.
            kind = "system_prompt" if "system" in (given.get("role"), part.role) else KINDS[part.role]
            return Problem(kind, at, f"message {n + 1} is not {SAID[part.role]} that belongs there")
    if len(messages) > len(expected):
        return Problem("extra_message", at, f"has {len(messages)} messages; expected {len(expected)}")
    return None
