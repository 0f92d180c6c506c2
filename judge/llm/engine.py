"""The live engine: judge requests → any OpenAI-compatible endpoint → `replies.jsonl`, one appended, fsynced line per
answer.

After a kill at any moment, it sends only what is missing. It pulls requests as needed and never holds all of them. The
key comes from OPENAI_API_KEY and is never written.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tqdm import tqdm

from helmbench_common import jsonl
from helmbench_common.http.addresses import shown, usable
from helmbench_common.http.bodies import error_code
from helmbench_common.http.client import Answer, Client
from helmbench_common.http.retry import (
    HOPELESS,
    IN_A_ROW,
    NO_QUOTA,
    PATIENCE,
    REDIRECTS,
    Trouble,
    retried,
    retry_after,
    worth_another,
)
from judge.llm import batch
from judge.llm.batch import ASKS, Log
from judge.llm.budget import NOTHING, Budget, Tokens, believed, billed, worst_case
from judge.llm.errors import CapReachedError, EngineError
from judge.llm.questions import JudgeRequest

UNKNOWN_BILL = {408, 504, 524}  # a gateway gave up; the model may have answered
LONGEST = 2 * 2**20  # bytes of an answer, including reasoning; each is stored on disk
CONNECT = 30.0  # seconds
DOING = {"judge": "judging", "user": "playing"}


@dataclass(frozen=True)
class Endpoint:
    """Where to ask, and at what rate. `timeout`: seconds per attempt; `max_retries`: after the first attempt of each
    ask, fewer if the waits between them would exceed PATIENCE. `who`: for messages.
    """

    base_url: str
    concurrency: int = 16
    timeout: float = 120.0
    max_retries: int = 6
    who: str = "judge"

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise ValueError(f"--concurrency {self.concurrency}: expected 1 or more")
        if not 0 < self.timeout < math.inf:
            raise ValueError(f"--timeout {self.timeout:g}: expected more than 0 seconds")
        if self.max_retries < 0:
            raise ValueError(f"--max-retries {self.max_retries}: expected 0 or more")
        if not usable(self.base_url) or not {"?", "#"}.isdisjoint(self.base_url):
            raise ValueError(f"--base-url {self.shown}: expected an http:// or https:// address without a query")

    @property
    def url(self) -> str:
        return self.base_url.rstrip("/").removesuffix("/chat/completions") + "/chat/completions"

    @property
    def shown(self) -> str:
        """The address without credentials."""
        return shown(self.base_url)


@dataclass
class Outcome:
    """The outcome of one run's questions. `failed`: without an answer. `capped`: the next could have exceeded the
    cap.
    """

    read: int = 0
    refused: int = 0
    unreadable: int = 0
    failed: int = 0
    capped: bool = False
    problem: str = ""


def drive(
    asked: Iterator[tuple[JudgeRequest, int]], log: Log, endpoint: Endpoint, budget: Budget, total: int
) -> Outcome:
    """Asks every question, each at most ASKS times minus the unreadable answers it already has; every answer goes to
    `log`.

    `asked` yields each `custom_id` once (`judge.llm.batch.missing`); `total` is for the progress bar.

    Raises:
        EngineError: the endpoint rejects every request, can't be reached, or never answers; answers received so far are
    on disk.
        OSError: the disk can't store the answers.
    """
    return asyncio.run(_Drive(asked, log, endpoint, budget, total).run())


class _Drive:
    def __init__(
        self, asked: Iterator[tuple[JudgeRequest, int]], log: Log, endpoint: Endpoint, budget: Budget, total: int
    ) -> None:
        self.asked, self.log, self.endpoint, self.budget, self.total = asked, log, endpoint, budget, total
        self.outcome = Outcome()
        self.received: list[str] = []  # lines that are not on disk yet
        self.writing = asyncio.Lock()
        self.resume = 0.0  # no request is sent before this time.monotonic value: a server sent Retry-After
        self.failed_in_a_row = 0
        key = os.environ.get("OPENAI_API_KEY", "").strip()
        if not key.isascii() or not key.isprintable():
            raise EngineError("OPENAI_API_KEY contains characters that a key can't have")
        in_address = urlsplit(endpoint.url).username
        headers = {"Authorization": f"Bearer {key}"} if key and not in_address else {}
        connect = min(CONNECT, endpoint.timeout)
        try:
            self.client = Client(endpoint.url, headers, endpoint.concurrency, endpoint.timeout, connect, LONGEST)
        except ValueError as problem:
            raise EngineError(str(problem)) from None

    async def run(self) -> Outcome:
        """`concurrency` workers over one stream of questions; the first to find the endpoint unusable stops all."""
        with tqdm(total=self.total, desc=DOING[self.endpoint.who], unit="reply", mininterval=1.0) as progress:
            try:
                async with self.client, asyncio.TaskGroup() as group:
                    for _ in range(self.endpoint.concurrency):
                        group.create_task(self._worker(progress))
            except ExceptionGroup as several:
                raise several.exceptions[0] from None
            finally:
                await self._write()  # whatever ended it, the answers received are kept
        return self.outcome

    async def _worker(self, progress: Any) -> None:
        for request, asks in self.asked:
            try:
                await self._question(request, asks)
                progress.update()
            except CapReachedError:
                self.outcome.capped = True
            if self.budget.cost is not None:
                progress.set_postfix_str(f"spent {self.budget.cost:.2f}", refresh=False)
            if self.outcome.capped:
                return

    async def _question(self, request: JudgeRequest, asks: int) -> None:
        payload = jsonl.plain(json.dumps(request.body, ensure_ascii=False)).encode()
        while True:
            attempts = self.endpoint.max_retries + 1
            record, _ = await retried(lambda: self._attempt(request, payload), PATIENCE, most=attempts)
            if isinstance(record, Trouble):
                if not record.connected:
                    raise self._useless(record.reason)
                record = batch.failure(request.custom_id, record.reason, record.status)
            found = batch.read([record], request)
            asks += found.asks
            done = not found.missing or found.asks == 0 or asks >= ASKS
            self.received.append(jsonl.line(record))
            await self._write()  # a kill loses at most the answers in flight
            if done:
                return self._count(found, record)

    def _count(self, found: batch.Read, record: dict[str, Any]) -> None:
        if found.asks == 0:
            self.outcome.failed += 1
            self.outcome.problem = record["error"]["message"] if record["error"] else "no answer"
            self.failed_in_a_row += 1
            if self.failed_in_a_row >= max(IN_A_ROW, self.endpoint.concurrency):
                raise self._useless(
                    f"{self.failed_in_a_row} questions in a row got no answer, the last: {self.outcome.problem}"
                )
            return
        self.failed_in_a_row = 0
        if isinstance(found.answer, str):
            self.outcome.refused += 1
        elif found.answer.label is None:
            self.outcome.unreadable += 1
        else:
            self.outcome.read += 1

    async def _attempt(self, request: JudgeRequest, payload: bytes) -> dict[str, Any] | Trouble:
        """One request, its worst case reserved before it is sent: the line for an answer, or why there is none yet.

        Raises:
            EngineError: the endpoint is unusable. CapReachedError: this attempt could exceed the cap.
        """
        while (wait := self.resume - time.monotonic()) > 0:
            await asyncio.sleep(wait)
        worst = worst_case(request.body, payload)
        await self.budget.reserve(worst)
        bill = worst  # until the server reports its usage
        try:
            answer = await self.client.post(payload)
            if isinstance(answer, Trouble):
                bill = worst if answer.connected else NOTHING
                return answer
            outcome, bill = self._outcome(request, answer, worst)
            if isinstance(outcome, EngineError):
                raise outcome
            return outcome
        finally:
            await self.budget.settle(worst, bill)

    def _outcome(
        self, request: JudgeRequest, answer: Answer, worst: Tokens
    ) -> tuple[dict[str, Any] | Trouble | EngineError, Tokens]:
        """Interprets an answer and its cost: a line, another try, or the end of the run."""
        status, keys = answer.status, self.client.keys
        completion = batch.trim(answer.body) if status == 200 else None
        if completion is not None and not self._repeats_key(completion):
            request_id = answer.headers.get("x-request-id")
            kept = None if keys.within(request_id or "") else request_id
            completion["usage"] = believed(completion["usage"], worst)  # on disk too: a later run counts from it
            return batch.result(request.custom_id, kept, completion), billed(completion["usage"], worst)
        bill = worst if status == 200 or status in UNKNOWN_BILL else NOTHING
        code, wait = error_code(answer.body), retry_after(answer.headers)
        if status == 200:
            problem = "no chat completion in the answer" if completion is None else "an answer that repeats the key"
        elif status in REDIRECTS:
            problem = self.client.redirect(answer)
        else:
            problem = f"HTTP {status}" + (f" {keys.quoted(code)}" if code else "")
        if status in HOPELESS or code == NO_QUOTA or wait > PATIENCE:
            return self._useless(problem + (f", and asks to wait {wait:.0f} s" if wait else "")), bill
        if status != 200 and not worth_another(status):
            return batch.failure(request.custom_id, problem, status, code and keys.quoted(code)), bill
        self.resume = max(self.resume, time.monotonic() + wait)  # the limit applies to the key, so every request waits
        return Trouble(problem, bill != NOTHING, wait, status), bill

    def _repeats_key(self, completion: dict[str, Any]) -> bool:
        choice = completion["choices"][0]
        texts = completion["model"], choice["finish_reason"], *choice["message"].values()
        return self.client.keys.repeated(*texts)

    def _useless(self, problem: str) -> EngineError:
        return EngineError(
            f"{self.endpoint.who} at {self.endpoint.shown}: {problem}; answers already received are kept"
        )

    async def _write(self) -> None:
        """Writes the lines received off the event loop; those that arrive during one fsync share the next."""
        async with self.writing:
            lines, self.received = self.received, []
            if lines:
                await asyncio.to_thread(self.log.write, lines)
