"""Whether each logged request is the sample's own: every message as it is pinned, live turns as they were replied,
nothing else.

An API's request is the JSON of the messages, and must equal them. A templated text or a transcript must hold every
message in its order;
what stands around the messages must be the same in all requests with the same roles, and is shown where it has words of
its own.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from dataset_builder.schema import Row
from leaderboard.schema import ARCHIVE, Problem, Response
from leaderboard.verify.findings import Problems
from leaderboard.verify.reading import UnreadableError, once
from replies.visible import NO_REPLY, visible

WORDS, MOST_WORDS = 12, 2000  # letters around the messages: more are shown, more still are refused
DATE = "\0DATE\0"
DATES = re.compile(
    r"\d{4}-\d{2}-\d{2}|\d{1,2} [A-Z][a-z]{2,8} \d{4}|[A-Z][a-z]{2,8} \d{1,2}, \d{4}"
)  # a run may last over midnight
# What known templates write around messages. Any other token's letters count as words: `<hand><over>` could be a
# prompt, too.
TOKENS = (
    "im_start|im_end|im_sep|im_middle|begin_of_text|end_of_text|endoftext|endofprompt|start_header_id|end_header_id|eot_id|eom_id|eot|start_of_turn|end_of_turn|"
    "start_of_role|end_of_role|start|end|message|channel|return|header_start|header_end|turn|think|sop|gMASK|s|bos|eos|pad|begin▁of▁sentence|end▁of▁sentence|"
    "INST|SYS|SYSTEM_PROMPT|BOS_TOKEN|START_OF_TURN_TOKEN|END_OF_TURN_TOKEN|SYSTEM_TOKEN|USER_TOKEN|CHATBOT_TOKEN|system|user|assistant|model|observation"
)
MARKS = re.compile(
    rf"<<?/?[|｜]?(?:{TOKENS})[|｜]?>>?|\[/?(?:{TOKENS})\]|\b(?:system|user|assistant|model|human)\b|{re.escape(DATE)}",
    re.IGNORECASE,
)
LETTER = re.compile(r"[^\W\d_]")
KINDS = {"system": "system_prompt", "user": "edited_prompt", "assistant": "live_turn"}
SAID = {"system": "the system text", "user": "the user's message", "assistant": "the model's own earlier reply"}
KEPT = 64  # requests of one shape that are kept for a second look


class Part(NamedTuple):
    """A message as the request has to carry it."""

    role: str
    content: str


Shape = tuple[str, ...]  # roles in the order in which a template puts them
Around = tuple[str, ...]  # what stands before, between and behind the messages


class Example(NamedTuple):
    """A text request, to be read again when what usually stands around messages is known."""

    where: str
    request: str
    contents: tuple[str, ...]
    around: Around


class Prompts:
    """Goes through the responses once, and adds what is wrong to `problems`. Memory holds a few examples, not the
    requests.
    """

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._forms: Counter[str] = Counter()
        self._around: dict[Shape, Counter[Around]] = defaultdict(Counter)
        self._examples: dict[Shape, list[Example]] = defaultdict(list)

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
            self._forms["a text" if messages is None else "a list of messages"] += 1
            problem = self._text(request, expected, at) if messages is None else _exact(messages, expected, at)
            if problem:
                self._problems.append(problem)

    def close(self) -> list[Problem]:
        """Adds what only all requests together can show; returns flags."""
        if len(self._forms) > 1:
            told = ", ".join(f"{n} are {form}" for form, n in sorted(self._forms.items()))
            self._problems.append(Problem("mixed_requests", ARCHIVE, f"has requests of two kinds: {told}"))
        words: set[str] = set()
        for shape, found in sorted((shape, found) for shape, found in self._around.items() if found):
            usual = _usual(found)
            words.add(" … ".join(p.strip() for p in usual if LETTER.search(MARKS.sub("", p))))
            for example in self._examples[shape]:
                if example.around != usual and not _fits(usual, example.contents, example.request):
                    other = next((p for p, u in zip(example.around, usual, strict=True) if p != u), "")
                    self._problems.append(
                        Problem(
                            "outside_text",
                            example.where,
                            f"holds text beside its messages that other requests don't: {other[:200]!r}",
                        )
                    )
        return list(self._foreign(words))

    def _text(self, request: str, expected: list[Part], at: str) -> Problem | None:
        """A templated text or a transcript: the messages in order. What is around them is kept for the end."""
        for order in _orders(expected):
            shape, contents = tuple(p.role for p in order), tuple(p.content for p in order)
            known = self._around[shape]
            if known and _fits(_usual(known), contents, request):
                known[_usual(known)] += 1
                return None
            around, lacking = _cut(request, contents)
            if lacking is None:
                known[around] += 1
                if len(known) > 1 or known[around] == 1:
                    self._examples[shape].append(Example(at, request, contents, around))
                if len(self._examples[shape]) > KEPT:
                    self._examples[shape].pop()
                    return Problem(
                        "outside_text",
                        at,
                        f"is one of more than {KEPT} requests with different text beside their messages",
                    )
                return None
        role = expected[_cut(request, [p.content for p in expected])[1] or 0].role
        return Problem(KINDS[role], at, f"{SAID[role]} that belongs there is not in the request, or not in its place")

    def _foreign(self, words: set[str]) -> Iterator[Problem]:
        """A flag, or a problem, for words around the messages that every request carries: a comparison can't tell them
        from a template's own.
        """
        for text in sorted(words):
            letters = len(LETTER.findall(MARKS.sub("", text)))
            if letters > MOST_WORDS:
                self._problems.append(
                    Problem(
                        "outside_text",
                        ARCHIVE,
                        f"every request holds {letters} letters beside its messages: {text[:300]!r}",
                    )
                )
            elif letters > WORDS:
                yield Problem(
                    "template_text",
                    ARCHIVE,
                    f"every request also holds words that are no message of the sample's: {text[:600]!r}",
                )


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
        value = json.loads(request, object_pairs_hook=once)
    except (ValueError, RecursionError, UnreadableError):
        return None
    plain = isinstance(value, list) and all(
        isinstance(m, dict) and all(isinstance(v, str) for v in m.values()) and "role" in m for m in value
    )
    return value if plain and value else None


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


def _orders(expected: list[Part]) -> Iterator[list[Part]]:
    """As they are said; and as some templates write them, with the system text before the user's last message."""
    yield expected
    if expected[0].role == "system" and len(expected) > 2:
        yield [*expected[1:-1], expected[0], expected[-1]]


def _cut(request: str, contents: tuple[str, ...] | list[str]) -> tuple[Around, int | None]:
    """What stands around the messages, dates evened out; or the place of the first that isn't found."""
    around: list[str] = []
    at = 0
    for n, content in enumerate(contents):
        found = request.find(content, at)
        if found < 0:
            return (), n
        around.append(request[at:found])
        at = found + len(content)
    return tuple(DATES.sub(DATE, piece) for piece in [*around, request[at:]]), None


def _fits(around: Around, contents: tuple[str, ...], request: str) -> bool:
    """Whether a request is exactly these messages in these surroundings, whatever the dates in the latter."""
    if not any(DATE in piece for piece in around):
        return request == "".join(piece + content for piece, content in zip(around, [*contents, ""], strict=True))
    date = f"(?:{DATES.pattern})"
    pieces = [date.join(re.escape(part) for part in piece.split(DATE)) for piece in around]
    return (
        re.fullmatch(
            "".join(piece + re.escape(content) for piece, content in zip(pieces, [*contents, ""], strict=True)), request
        )
        is not None
    )


def _usual(found: Counter[Around]) -> Around:
    return max(found, key=lambda around: (found[around], around))
