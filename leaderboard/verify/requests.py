"""Whether each logged request is the sample's own messages, live turns as the model replied, and nothing else.

A request to an API is the JSON of the messages. Any other is text: the submission records the chat template, and
rendering the messages with it must give the request.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

from dataset_builder.schema import Row
from helmbench_common.errors import HelmbenchError
from helmbench_common.formats import json_file
from judge.replies.script import NO_REPLY, visible
from leaderboard.schema import RESPONSES, SUBMISSION, ChatTemplate, Problem, Response
from leaderboard.verify.findings import Problems

RENDER = Path(__file__).with_name("render.py")
SECONDS, SECONDS_EACH = 10, 0.02  # of processor time for rendering: for any run, and more for each request
RENDERED = 16 * 2**20  # bytes of a rendered request
KINDS = {"system": "system_prompt", "user": "edited_prompt", "assistant": "live_turn"}
ROLES = {"system": "the system text", "user": "the user's message", "assistant": "the model's earlier reply"}
# What templates write around messages; the board flags and shows more letters than that.
TOKEN = re.compile(r"<[^<>\s]{1,40}>|\[/?[A-Z_]{1,20}\]|\b(?:system|user|assistant|model|human)\b", re.IGNORECASE)
LETTER = re.compile(r"[^\W\d_]")
LETTERS, SHOWN = 12, 3  # letters without a flag; texts that the flag shows
EAST_ASIAN = 3  # letters that a Chinese, Japanese or Korean character counts for: twelve are a whole instruction
Message = dict[str, str]


class RenderError(HelmbenchError):
    """The template failed on these messages."""


class Renderer:
    """Renders messages with a template, in a child process with limits on time and memory."""

    def __init__(self, template: ChatTemplate, requests: int) -> None:
        seconds = int(SECONDS + SECONDS_EACH * requests)
        self._limits = f"{seconds} s or 1 GiB"
        self._child = subprocess.Popen(
            [sys.executable, "-I", str(RENDER), str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._failed: str | None = None
        self._send(template.model_dump(mode="json"))

    def _send(self, value: Any) -> None:
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(json.dumps(value).encode() + b"\n")
            self._child.stdin.flush()
        except BrokenPipeError:
            self._failed = f"it takes more than {self._limits}"

    def __call__(self, messages: list[Message], day: date | None) -> str:
        """Raises:
        RenderError: the template refuses these messages, or exceeds a limit.
        """
        if self._failed is None:
            self._send({"messages": messages, "day": day and day.isoformat()})
        if self._failed is None:
            assert self._child.stdout is not None
            line = self._child.stdout.readline(RENDERED)
            if line.endswith(b"\n"):
                answer: dict[str, str] = json.loads(line)
                if "text" in answer:
                    return answer["text"]
                raise RenderError(answer["error"])
            self._failed = f"it takes more than {self._limits}, or writes more than {RENDERED:,} bytes"
        raise RenderError(self._failed)

    def close(self) -> None:
        self._child.kill()
        self._child.communicate()


class Requests:
    """Checks the requests of one response after the other. `turns`: how many a whole run has."""

    def __init__(self, template: ChatTemplate | None, turns: int, problems: Problems) -> None:
        self._problems = problems
        self._days = list(template.days) if template and template.days else [None]
        self._render = Renderer(template, 2 * turns * len(self._days)) if template else None
        self._forms: set[str] = set()
        self._used: Counter[date | None] = Counter()
        self._words: Counter[str] = Counter()

    def add(self, response: Response, row: Row, where: str) -> None:
        """`response` has as many turns as the row's script."""
        if hashlib.sha256(response.requests[0].encode()).hexdigest() != response.prompt_sha256:
            said = f"{row.id}: prompt_sha256 isn't the hash of its first request"
            self._problems.append(Problem("prompt_hash", where, said))
        for number, request in enumerate(response.requests):
            at = f"{where}: {row.id} repeat {response.repeat} turn {number + 1}"
            messages = expected(row, response.turns, number)
            problem = self._text(request, messages, at) if self._render else self._json(request, messages, at)
            if problem:
                self._problems.append(problem)

    def close(self) -> list[Problem]:
        """Adds what only all requests together show; returns flags."""
        if self._render:
            self._render.close()
        if len(self._forms) > 1:
            said = "some requests have messages with a type, others without; expected one form"
            self._problems.append(Problem("mixed_requests", RESPONSES, said))
        flags: list[Problem] = []
        if self._words:
            shown = ", ".join(f"{n} with {text!r}" for text, n in self._words.most_common(SHOWN))
            said = f"the chat template also writes words, in requests: {shown}"
            flags.append(Problem("template_text", f"{SUBMISSION}: generation.template", said))
        if len(self._used) > 1:
            days = ", ".join(f"{n} on {day}" for day, n in sorted(self._used.items(), key=str))
            flags.append(Problem("dates", RESPONSES, f"the requests are dated on {len(self._used)} days: {days}"))
        return flags

    def _json(self, request: str, messages: list[Message], at: str) -> Problem | None:
        try:
            given = json_file.strict(request)  # two readers could read two messages in an object with a duplicate key
        except ValueError:
            given = None
        if not isinstance(given, list):
            said = "isn't the JSON of messages, and the submission records no chat template"
            return Problem("mixed_requests", at, said)
        for form, type_ in (("plain", {}), ("typed", {"type": "text"})):
            if given == [m | type_ for m in messages]:
                self._forms.add(form)
                return None
        for n, message in enumerate(messages):
            own = given[n] if n < len(given) and isinstance(given[n], dict) else {}
            if own not in (message, message | {"type": "text"}):
                role = "system" if "system" in (own.get("role"), message["role"]) else message["role"]
                return Problem(KINDS[role], at, f"message {n + 1} isn't {ROLES[message['role']]} of this sample")
        if len(given) > len(messages):
            return Problem("extra_message", at, f"has {len(given)} messages; expected {len(messages)}")
        return Problem("mixed_requests", at, "some messages have a type, others don't; expected one form")

    def _text(self, request: str, messages: list[Message], at: str) -> Problem | None:
        assert self._render is not None
        place, around = 0, request
        for m in messages:  # the template must not change any message
            content = m["content"].strip()
            found = request.find(content, place if m["role"] != "system" else 0)
            if found < 0:
                return Problem(KINDS[m["role"]], at, f"{ROLES[m['role']]} isn't in the request, or not in its place")
            place = found + len(content) if m["role"] != "system" else place
            around = around.replace(content, " ", 1)
        for day in self._days:
            try:
                text = self._rendered(messages, day)
            except RenderError as error:
                return Problem("template", at, f"generation.template can't be rendered: {error}")
            if text == request:
                break
        else:
            differs = next((n for n, (a, b) in enumerate(zip(request, text, strict=False)) if a != b), 0)
            said = f"isn't what generation.template gives: character {differs + 1} on is {request[differs:][:60]!r}"
            return Problem("outside_text", at, said)
        self._days.sort(key=lambda d: d != day)  # the next request is probably of the same day
        self._used[day] += 1
        letters = LETTER.findall(TOKEN.sub("", around))
        if sum(EAST_ASIAN if c >= "\u2e80" else 1 for c in letters) > LETTERS and len(self._words) < 100:
            self._words[" ".join(around.split())[:400]] += 1
        return None

    def _rendered(self, messages: list[Message], day: date | None) -> str:
        """As our lm-eval task renders: if the template refuses the system role, its text goes before the user's."""
        assert self._render is not None
        system = messages[0]["content"] if messages[0]["role"] == "system" else ""
        try:
            text = self._render(messages, day)
            if system.strip() in text:
                return text
        except RenderError:
            if not system:
                raise
        first = {**messages[1], "content": f"{system}\n\n{messages[1]['content']}"}
        return self._render([first, *messages[2:]], day)


def expected(row: Row, turns: tuple[str, ...], number: int) -> list[Message]:
    """The messages of a row's request for its live turn `number` (from 0), with the model's earlier replies."""
    found: list[Message] = []
    live = 0
    for message in row.messages:
        if message.content is None:
            if live == number:
                break
            found.append({"role": "assistant", "content": visible(turns[live]) or NO_REPLY})
            live += 1
        else:
            found.append({"role": message.role, "content": message.content})
    return found
