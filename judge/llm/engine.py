"""The live engine: judge requests → any OpenAI-compatible endpoint → `replies.jsonl`, one appended, fsynced line per
answer.

Killed at any moment and run again, it sends only what is missing. Requests are pulled as they are needed and never all
held.
The key comes from OPENAI_API_KEY and is written nowhere.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from tqdm import tqdm

from judge.llm import batch
from judge.llm.batch import ASKS, Log
from judge.llm.budget import NOTHING, Budget, worst_case
from judge.llm.errors import CapReachedError, EngineError
from judge.llm.questions import JudgeRequest
from replies.waiting import retry_after

BACKOFF, LONGEST = (
    0.5,
    60.0,
)  # seconds before the first retry, and at most; each wait is drawn between nothing and twice the one before
PATIENCE = 600.0  # seconds: a longer Retry-After is cut to this
HOPELESS = {
    301,
    302,
    303,
    307,
    308,
    401,
    402,
    403,
    404,
    405,
    407,
}  # the same for every question: no use in asking the next
AGAIN = {408, 409, 425, 429}  # and every 5xx
UNKNOWN_BILL = {408, 504, 524}  # somebody in between gave up; the model may have answered
CONNECT = 30.0  # seconds
QUEUE = 1024  # answers waiting for the disk, at most
IN_A_ROW = (
    20  # or as many as are asked at once: so many failures one after the other are the endpoint's, not the questions'
)


@dataclass(frozen=True)
class Endpoint:
    """Where and how hard to ask. `timeout` in seconds, for one attempt; `max_retries` after the first attempt of each
    ask.
    """

    base_url: str
    concurrency: int = 16
    timeout: float = 120.0
    max_retries: int = 6

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.timeout <= 0 or self.max_retries < 0:
            raise ValueError(
                "--concurrency: expected 1 or more; --timeout: more than 0 seconds; --max-retries: 0 or more"
            )
        if urlsplit(self.base_url).scheme not in ("http", "https"):
            raise ValueError(f"--base-url {self.shown}: expected http://… or https://…")

    @property
    def url(self) -> str:
        return self.base_url.rstrip("/").removesuffix("/chat/completions") + "/chat/completions"

    @property
    def shown(self) -> str:
        """The address without a user and password."""
        return re.sub(r"//[^/@]*@", "//", self.base_url)


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

    `asked` yields each `custom_id` once (`judge.batch.missing`); `total` is for the progress bar.

    Raises:
        EngineError: the endpoint turns everybody away, can't be reached, or answers nobody; what was answered is on the
            disk.
        OSError: the disk can't take the answers.
    """
    return asyncio.run(_Drive(asked, log, endpoint, budget, total).run())


class _Connections(aiohttp.TCPConnector):
    """Uses a connection again only where nothing came over it unasked: a late second copy of an answer would be the
    next question's.
    """

    async def _get(self, key: Any, traces: Any) -> Any:
        while (found := await super()._get(key, traces)) is not None:
            if found.protocol is None or not found.protocol.should_close:
                return found
            found.close()
        return None


class _Drive:
    def __init__(
        self, asked: Iterator[tuple[JudgeRequest, int]], log: Log, endpoint: Endpoint, budget: Budget, total: int | None
    ) -> None:
        self.asked, self.log, self.endpoint, self.budget, self.total = asked, log, endpoint, budget, total
        self.outcome = Outcome()
        self.lines: asyncio.Queue[tuple[str, bool] | None] = asyncio.Queue(QUEUE)
        self.resume = 0.0  # by the loop's clock: nobody sends before, where a server said Retry-After
        self.failed_in_a_row = 0
        self.key = os.environ.get("OPENAI_API_KEY", "").strip()
        if not self.key.isascii() or not self.key.isprintable():
            raise EngineError("OPENAI_API_KEY holds characters that no key has")
        self.proxy = _proxy(endpoint.url)

    async def run(self) -> Outcome:
        headers = {"Content-Type": "application/json"}
        if self.key and not urlsplit(self.endpoint.url).username:  # else the address itself says who asks
            headers["Authorization"] = f"Bearer {self.key}"
        timeout = aiohttp.ClientTimeout(total=self.endpoint.timeout, sock_connect=min(CONNECT, self.endpoint.timeout))
        connector = _Connections(limit=self.endpoint.concurrency)
        with tqdm(total=self.total, desc="judging", unit="reply", mininterval=1.0) as progress:
            async with aiohttp.ClientSession(connector=connector, headers=headers, timeout=timeout) as self.session:
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
        payload = json.dumps(request.body, ensure_ascii=False).encode()
        while True:
            record = await self._ask(request, payload)
            found = batch.read([record], request)
            asks += found.asks
            done = not found.missing or found.asks == 0 or asks >= ASKS
            await self.lines.put((json.dumps(record, ensure_ascii=False) + "\n", done))
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
        worst = worst_case(request.body, payload)
        problem, connected = "", True
        status: int | None = None
        for attempt in range(self.endpoint.max_retries + 1):
            if attempt:
                await asyncio.sleep(random.uniform(0, min(LONGEST, BACKOFF * 2**attempt)))
            while (wait := self.resume - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            await self.budget.reserve(worst)
            bill, status, connected = worst, None, True  # until the server says what it used
            try:
                async with self.session.post(
                    self.endpoint.url, data=payload, proxy=self.proxy, allow_redirects=False
                ) as response:
                    status, headers = response.status, response.headers
                    body = _json(await response.read())
                if status == 200 and (completion := batch.trim(body)) is not None:
                    record = batch.result(request.custom_id, headers.get("x-request-id"), completion)
                    bill = batch.used(record) if completion["usage"] else worst
                    return record
                code = batch.error_code(body)
                problem = (
                    "no chat completion in the answer"
                    if status == 200
                    else f"HTTP {status}" + (f" {code}" if code else "")
                )
                bill = worst if status == 200 or status in UNKNOWN_BILL else NOTHING
                if status in HOPELESS or code == "insufficient_quota":
                    raise self._useless(problem)
                if status != 200 and status < 500 and status not in AGAIN:
                    return batch.failure(request.custom_id, problem, status, code)
                self.resume = max(self.resume, time.monotonic() + _retry_after(headers))
            except aiohttp.ConnectionTimeoutError:
                problem, bill, connected = "can't connect (timeout)", NOTHING, False
            except TimeoutError:
                problem = f"no answer within {self.endpoint.timeout:g} s"
            except aiohttp.ClientConnectorError as error:
                problem, bill, connected = f"can't connect ({type(error.os_error).__name__})", NOTHING, False
            except (aiohttp.ClientError, OSError) as error:
                problem = f"connection broken ({type(error).__name__})"
            finally:
                self.budget.settle(worst, bill)
        if not connected:
            raise self._useless(problem)
        return batch.failure(request.custom_id, problem, status)

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
            text = "".join(line for line, _ in whole)
            await asyncio.to_thread(self.log.write, text.replace(self.key, "[key]") if self.key else text)
            progress.update(sum(done for _, done in whole))
            if self.budget.cost is not None:
                progress.set_postfix_str(f"spent {self.budget.cost:.2f}", refresh=False)


def _json(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _retry_after(headers: Any) -> float:
    """Seconds that the server wants to be left alone, from Retry-After-Ms or Retry-After (seconds or a date); 0 without
    either.
    """
    try:
        seconds = (
            float(headers["retry-after-ms"]) / 1000
            if "retry-after-ms" in headers
            else retry_after(headers.get("retry-after"))
        )
    except ValueError:
        return 0.0
    return min(max(seconds, 0.0), PATIENCE)


def _proxy(url: str) -> str | None:
    """The proxy that the environment names for `url`. (aiohttp's own trust_env would also read ~/.netrc, for every
    request.)
    """
    parts = urlsplit(url)
    return None if urllib.request.proxy_bypass(parts.netloc) else urllib.request.getproxies().get(parts.scheme)
