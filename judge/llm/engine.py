"""The live engine: judge requests → any OpenAI-compatible endpoint → `replies.jsonl`, one appended, fsynced line per
answer.

Killed at any moment and run again, it sends only what is missing. Requests are pulled as they are needed and never all
held. The key comes from OPENAI_API_KEY and is written nowhere.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from tenacity import stop_after_attempt, stop_any
from tqdm import tqdm

from helmbench_common import jsonl
from helmbench_common.http import client
from helmbench_common.http.addresses import elsewhere, proxy, secrets, shown, usable
from helmbench_common.http.keys import Keys
from helmbench_common.http.waiting import (
    HOPELESS,
    NO_QUOTA,
    PATIENCE,
    REDIRECTS,
    StopAfterWaiting,
    Trouble,
    asked_to_wait,
    retrying,
    worth_another,
)
from judge.llm import batch
from judge.llm.batch import ASKS, Log
from judge.llm.budget import NOTHING, Budget, Tokens, believed, billed, worst_case
from judge.llm.errors import CapReachedError, EngineError
from judge.llm.questions import JudgeRequest

UNKNOWN_BILL = {408, 504, 524}  # somebody in between gave up; the model may have answered
LONGEST = 2 * 2**20  # bytes of an answer, with whatever reasoning; each is kept on the disk
CONNECT = 30.0  # seconds
QUEUE = 1024  # answers waiting for the disk, at most
IN_A_ROW = (
    20  # or as many as are asked at once: so many failures one after the other are the endpoint's, not the questions'
)


@dataclass(frozen=True)
class Endpoint:
    """Where and how hard to ask. `timeout` in seconds, for one attempt; `max_retries` after the first attempt of each
    ask, fewer where the waits between them would come to more than PATIENCE.
    """

    base_url: str
    concurrency: int = 16
    timeout: float = 120.0
    max_retries: int = 6

    def __post_init__(self) -> None:
        if self.concurrency < 1 or not 0 < self.timeout < math.inf or self.max_retries < 0:
            raise ValueError(
                "--concurrency: expected 1 or more; --timeout: more than 0 seconds, not inf; --max-retries: 0 or more"
            )
        if not usable(self.base_url) or not {"?", "#"}.isdisjoint(self.base_url):
            raise ValueError(f"--base-url {self.shown}: expected http://… or https://…, without a query")

    @property
    def url(self) -> str:
        return self.base_url.rstrip("/").removesuffix("/chat/completions") + "/chat/completions"

    @property
    def shown(self) -> str:
        """The address without a user and password."""
        return shown(self.base_url)


@dataclass
class Outcome:
    """What became of the questions of one run. `failed`: no answer came. `capped`: the next could have passed the
    cap.
    """

    read: int = 0
    refused: int = 0
    unreadable: int = 0
    failed: int = 0
    capped: bool = False
    problem: str = ""


def drive(
    asked: Iterator[tuple[JudgeRequest, int]], log: Log, endpoint: Endpoint, budget: Budget, total: int | None = None
) -> Outcome:
    """Asks every question, each at most ASKS times less the unreadable answers it already has; every answer goes to
    `log`.

    `asked` yields each `custom_id` once (`judge.llm.batch.missing`); `total` is for the progress bar.

    Raises:
        EngineError: the endpoint turns everybody away, can't be reached, or answers nobody; what was answered is on the
            disk.
        OSError: the disk can't take the answers.
    """
    return asyncio.run(_Drive(asked, log, endpoint, budget, total).run())


class _Drive:
    def __init__(
        self, asked: Iterator[tuple[JudgeRequest, int]], log: Log, endpoint: Endpoint, budget: Budget, total: int | None
    ) -> None:
        self.asked, self.log, self.endpoint, self.budget, self.total = asked, log, endpoint, budget, total
        self.outcome = Outcome()
        self.lines: asyncio.Queue[tuple[str, bool, asyncio.Future[None]] | None] = asyncio.Queue(QUEUE)
        self.resume = 0.0  # by the loop's clock: nobody sends before, where a server said Retry-After
        self.failed_in_a_row = 0
        self.key = os.environ.get("OPENAI_API_KEY", "").strip()
        if not self.key.isascii() or not self.key.isprintable():
            raise EngineError("OPENAI_API_KEY holds characters that no key has")
        try:
            self.proxy = proxy(endpoint.url)
        except ValueError as problem:
            raise EngineError(str(problem)) from None
        self.keys = Keys([self.key, *secrets(endpoint.url), *secrets(self.proxy or "")])

    async def run(self) -> Outcome:
        headers = {"Content-Type": "application/json"}
        if self.key and not urlsplit(self.endpoint.url).username:  # else the address itself says who asks
            headers["Authorization"] = f"Bearer {self.key}"
        timeout = aiohttp.ClientTimeout(total=self.endpoint.timeout, sock_connect=min(CONNECT, self.endpoint.timeout))
        with tqdm(total=self.total, desc="judging", unit="reply", mininterval=1.0) as progress:
            async with client.session(self.endpoint.concurrency, timeout, self.proxy, headers) as self.session:
                writing = asyncio.create_task(self._write(progress))
                working = asyncio.create_task(self._work())
                try:
                    await asyncio.wait({working, writing}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    # Whoever ended first, and however: nobody asks on, and what was answered is written.
                    working.cancel()
                    with suppress(asyncio.CancelledError, Exception):
                        await working
                    while not writing.done():
                        with suppress(asyncio.QueueFull):
                            self.lines.put_nowait(None)
                            break
                        await asyncio.sleep(0.01)
                    await writing
        if not working.cancelled():
            working.result()
        return self.outcome

    async def _work(self) -> None:
        """`concurrency` workers over one stream of questions; the first that finds the endpoint useless ends all."""
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self.endpoint.concurrency):
                    group.create_task(self._worker())
        except ExceptionGroup as several:
            raise several.exceptions[0] from None

    async def _worker(self) -> None:
        for request, asks in self.asked:
            try:
                await self._question(request, asks)
            except CapReachedError:
                self.outcome.capped = True
            if self.outcome.capped:
                return

    async def _question(self, request: JudgeRequest, asks: int) -> None:
        payload = jsonl.plain(json.dumps(request.body, ensure_ascii=False)).encode()
        while True:
            record = await self._ask(request, payload)
            found = batch.read([record], request)
            asks += found.asks
            done = not found.missing or found.asks == 0 or asks >= ASKS
            written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            await self.lines.put((jsonl.line(record), done, written))
            await written  # a kill costs no more answers than are asked for at once
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

    async def _ask(self, request: JudgeRequest, payload: bytes) -> dict[str, Any]:
        """One ask, with its retries: the line of an answer, or of the failure that outlasted them."""
        enough = stop_any(stop_after_attempt(self.endpoint.max_retries + 1), StopAfterWaiting(PATIENCE))
        policy = retrying(enough, asyncio.sleep)
        outcome: dict[str, Any] | Trouble = await policy(self._attempt, request, payload)
        if not isinstance(outcome, Trouble):
            return outcome
        if not outcome.connected:
            raise self._useless(outcome.reason)
        return batch.failure(request.custom_id, outcome.reason, outcome.status)

    async def _attempt(self, request: JudgeRequest, payload: bytes) -> dict[str, Any] | Trouble:
        """One request that leaves, its worst case reserved before: a line, or why there is none yet.

        Raises:
            EngineError: the endpoint is useless. CapReachedError: this attempt could pass the cap.
        """
        while (wait := self.resume - time.monotonic()) > 0:
            await asyncio.sleep(wait)
        worst = worst_case(request.body, payload)
        await self.budget.reserve(worst)
        bill = worst  # until the server says what it used
        try:
            async with self.session.post(self.endpoint.url, data=payload, allow_redirects=False) as response:
                raw = await client.body(response, LONGEST)
            if raw is None:
                return Trouble(f"an answer of more than {LONGEST:,} bytes", paid=True)
            outcome, bill = self._outcome(request, response, _json(raw), worst)
            if isinstance(outcome, EngineError):
                raise outcome
            return outcome
        except aiohttp.ConnectionTimeoutError:
            bill = NOTHING
            return Trouble("can't connect (timeout)", connected=False)
        except TimeoutError:
            return Trouble(f"no answer within {self.endpoint.timeout:g} s", paid=True)
        except aiohttp.ClientConnectorError as error:
            bill = NOTHING
            return Trouble(f"can't connect ({type(error.os_error).__name__})", connected=False)
        except aiohttp.ClientHttpProxyError as error:
            bill = NOTHING
            return Trouble(f"can't connect (the proxy answers HTTP {error.status})", connected=False)
        except (aiohttp.ClientError, OSError) as error:
            return Trouble(f"connection broken ({type(error).__name__})", paid=True)
        finally:
            self.budget.settle(worst, bill)

    def _outcome(
        self, request: JudgeRequest, response: aiohttp.ClientResponse, body: Any, worst: Tokens
    ) -> tuple[dict[str, Any] | Trouble | EngineError, Tokens]:
        """What an answer comes to, and what it may cost: a line, another try, or the end of all asking."""
        status, headers = response.status, response.headers
        completion = batch.trim(body) if status == 200 else None
        if completion is not None and not self._repeats_key(completion):
            request_id = headers.get("x-request-id")
            kept = None if self.keys.repeated(request_id) else request_id
            completion["usage"] = believed(completion["usage"], worst)  # on the disk too: a later run counts from it
            return batch.result(request.custom_id, kept, completion), billed(completion["usage"], worst)
        bill = worst if status == 200 or status in UNKNOWN_BILL else NOTHING
        code = batch.error_code(body)
        problem = self._problem(status, headers, code, completion is not None)
        wait = asked_to_wait(headers)
        if status in HOPELESS or code == NO_QUOTA or wait > PATIENCE:
            return self._useless(problem + (f", and wants to be left alone for {wait:.0f} s" if wait else "")), bill
        if status != 200 and not worth_another(status):
            return batch.failure(request.custom_id, problem, status, code and self.keys.quoted(code)), bill
        self.resume = max(self.resume, time.monotonic() + wait)  # a limit is the key's: nobody sends before
        return Trouble(problem, bill != NOTHING, wait, status), bill

    def _problem(self, status: int, headers: Any, code: str | None, repeats: bool) -> str:
        """What is wrong with an answer, in our words."""
        if status == 200:
            return "an answer that repeats the key" if repeats else "no chat completion in the answer"
        if status in REDIRECTS:
            return self.keys.quoted(f"HTTP {status} {elsewhere(headers.get('Location'), self.keys.within)}")
        return f"HTTP {status}" + (f" {self.keys.quoted(code)}" if code else "")

    def _repeats_key(self, completion: dict[str, Any]) -> bool:
        choice = completion["choices"][0]
        return self.keys.repeated(completion["model"], choice["finish_reason"], *choice["message"].values())

    def _useless(self, problem: str) -> EngineError:
        return EngineError(f"judge at {self.endpoint.shown}: {problem}; nothing already answered is lost")

    async def _write(self, progress: Any) -> None:
        """Lines that arrived together share one fsync, off the loop; a question counts as done when its line is on the
        disk.
        """
        ended = False
        while not ended:
            lines = [await self.lines.get()]
            while not self.lines.empty():
                lines.append(self.lines.get_nowait())
            ended = None in lines
            whole = [line for line in lines if line is not None]
            await asyncio.to_thread(self.log.write, "".join(line for line, _, _ in whole))
            for _, _, written in whole:
                if not written.done():  # its asker was stopped meanwhile
                    written.set_result(None)
            progress.update(sum(done for _, done, _ in whole))
            if self.budget.cost is not None:
                progress.set_postfix_str(f"spent {self.budget.cost:.2f}", refresh=False)


def _json(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None
