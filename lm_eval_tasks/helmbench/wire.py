"""One chat request over HTTP, patiently: what came back, why it ends there, or why there is nothing.

lm-eval's own loop raises after three attempts, whatever the item, and keeps neither finish reason nor status. This one
is used in its place for its API models (`local-chat-completions`, `openai-chat-completions`, `anthropic-chat`, …):
their own payload, address, header and reader of replies, with attempts of ours around them.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import ssl
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import aiohttp
from lm_eval.models.api_models import JsonChatStr
from tenacity import stop_after_attempt, stop_any
from tqdm import tqdm

from helmbench_common import jsonl
from helmbench_common.http import client
from helmbench_common.http.addresses import elsewhere, proxy, secrets, shown
from helmbench_common.http.keys import Keys, in_headers
from helmbench_common.http.usage import counted
from helmbench_common.http.waiting import (
    AGAIN,
    HOPELESS,
    NO_QUOTA,
    PATIENCE,
    WRONG_ADDRESS,
    StopAfterPaid,
    StopAfterWaiting,
    Trouble,
    asked_to_wait,
    retrying,
    worth_another,
)
from lm_eval_tasks.helmbench.preflight import LONGEST, Seen, UnusableError, hint, look, refuse_keys

log = logging.getLogger("lm_eval.helmbench")
IN_A_ROW = 25  # so many requests failing one after the other are no longer the items' fault
OF_NO_ITEM = WRONG_ADDRESS | {402, 407}  # 403 may be: filters answer with it
LONGEST_FINISH = 80  # characters of a finish reason: it is a word
GREETING, GREETING_TOKENS = "Hello!", 16
GREETINGS, GREETING_SECONDS = 3, 8.0  # attempts, and seconds for all of them
FINISHES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "eos_token": "stop",
    "max_tokens": "length",
    "model_length": "length",
    "safety": "content_filter",
}
FILTERED = re.compile(
    r"content[ _-]?(?:filter|policy|management)|responsible[ _-]?ai|moderation|flagged|safety[ "
    r"_-](?:system|policy|filter)",
    re.IGNORECASE,
)
TOO_LONG = re.compile(
    r"context[ _-]?(?:length|window|size)|maximum context|max_model_len|prompt is too long|too many "
    r"tokens|string_above_max_length",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Ended:
    """How a request ended. `finish`: `stop`, `length`, `content_filter`, `refusal`, another word of the backend's, None
    where it said nothing, or `error: why`, with which there is no reply of the model's. Token counts are the server's.
    """

    text: str
    finish: str | None = None
    attempts: int = 1
    prompt_tokens: int | None = None
    reply_tokens: int | None = None

    @property
    def failed(self) -> bool:
        return bool(self.finish and self.finish.startswith("error"))

    @property
    def reason(self) -> str:
        """Why there is no reply, in a few words, alike for all that failed alike; empty where there is one."""
        return str(self.finish).partition(":")[2].partition(":")[0].strip()[:80] if self.failed else ""

    def note(self) -> dict[str, Any]:
        """What the log keeps beside the text."""
        return {k: v for k, v in vars(self).items() if k != "text" and (v is not None or k == "finish")}


class Wire:
    """Requests to one of lm-eval's API models, `num_concurrent` at once.

    `patience`: seconds of waiting per request. Replies that were paid for but lost (timeouts, broken JSON) are asked
    for `max_retries` times in all, lm-eval's setting.
    """

    def __init__(self, model: Any, patience: float = PATIENCE) -> None:
        self._model, self._patience = model, patience
        self._answered = self._in_a_row = 0
        self._stopped: str | None = None
        self._seen: Seen | None = None
        self._keys = Keys(())

    def run(
        self,
        asked: Sequence[tuple[Any, dict[str, Any]]],
        done: Callable[[int, Ended], None],
        saved: Callable[[], None] | None = None,
    ) -> None:
        """Calls `done(n, ended)` for each (prompt, generation settings), in the order of their answers.

        `saved` blocks until what `done` was given is on disk; a request's place is taken again only after that, so that
        a killed process loses no more than `num_concurrent` replies.

        Raises:
            UnusableError: a wrong key, address or model name, or nothing but failures from the beginning.
        """
        if not asked:
            return
        try:
            self._payload(*asked[0])
        except AssertionError as problem:  # lm-eval's word for a prompt that this model's server doesn't take
            raise UnusableError(str(problem)) from None
        asyncio.run(self._all(asked, done, saved))

    async def _all(
        self,
        asked: Sequence[tuple[Any, dict[str, Any]]],
        done: Callable[[int, Ended], None],
        saved: Callable[[], None] | None,
    ) -> None:
        model = self._model
        secure: Any = model.verify_certificate
        if secure and model.ca_cert_path:
            secure = ssl.create_default_context(cafile=model.ca_cert_path)
        at_once = min(max(model._concurrent, 1), len(asked))
        timeout = aiohttp.ClientTimeout(total=model.timeout)
        todo = iter(enumerate(asked))
        async with client.session(at_once, timeout, self._guarded(), tls=secure) as session:
            await self._ready(session, asked[0])
            self._settling = asyncio.Lock()
            with tqdm(total=len(asked), desc="Requesting API") as bar:
                await asyncio.gather(*(self._work(session, todo, done, saved, bar) for _ in range(at_once)))

    def _guarded(self) -> str | None:
        """The proxy of the model's address, and from now on no error quotes what is secret in either.

        Raises:
            UnusableError: no key where there must be one, a key in the address, or a proxy that can't be used.
        """
        url, header = refuse_keys(self._model)
        try:
            through = proxy(url)
        except ValueError as problem:
            raise UnusableError(str(problem)) from None
        self._keys = Keys([*in_headers(header), *secrets(url), *secrets(through or "")])
        return through

    async def _ready(self, session: aiohttp.ClientSession, first: tuple[Any, dict[str, Any]]) -> None:
        """Before the first request of all: a look that costs nothing, and a greeting only where it leaves a doubt.

        Raises:
            UnusableError: the server isn't there, or answers nobody.
        """
        if self._seen is not None:
            return
        seen = await look(session, self._model)
        self._seen = Seen(seen.doubt, tuple(n[:LONGEST] for n in seen.names if self._keys.quoted(n) == n))
        if not self._seen.doubt:
            return
        if why := await self._refusal(session, *first):
            raise self._unusable(why)
        where = shown(self._model.base_url)
        log.warning(
            "helmbench: %s answers, but asked for its models: %s; is it the one that you mean?", where, self._seen.doubt
        )

    async def _refusal(self, session: aiohttp.ClientSession, prompt: Any, settings: dict[str, Any]) -> str:
        """Why the server answers nobody, by what it says to a greeting; empty where it answers or this doesn't tell."""
        policy = retrying(stop_after_attempt(GREETINGS), lambda seconds: asyncio.sleep(seconds))
        payload = self._payload(_greeting(prompt), {**settings, "max_gen_toks": GREETING_TOKENS})
        outcome: Ended | Trouble
        try:
            outcome = await asyncio.wait_for(policy(self._attempt, session, payload), GREETING_SECONDS)
        except TimeoutError:  # slow isn't down
            return ""
        reason = outcome.reason if isinstance(outcome, Trouble) else str(outcome.finish).removeprefix("error: ")
        return reason if _says(reason, HOPELESS) or reason.startswith(("HTTP 5", "connection")) else ""

    async def _settle(self, session: aiohttp.ClientSession, prompt: Any, settings: dict[str, Any]) -> None:
        """A 403 before any answer is this prompt's, where a filter stands, or everybody's: a greeting tells.

        Raises:
            UnusableError: it is everybody's.
        """
        async with self._settling:
            if self._answered:
                return
            if why := await self._refusal(session, prompt, settings):
                raise self._unusable(why)
            self._answered += 1

    def _unusable(self, reason: str) -> UnusableError:
        told = hint(reason, self._model, self._seen.names if self._seen else ())
        return UnusableError(f"{shown(self._model.base_url)} answers no request: {reason}{told}")

    async def _work(
        self,
        session: aiohttp.ClientSession,
        todo: Iterator[tuple[int, tuple[Any, dict[str, Any]]]],
        done: Callable[[int, Ended], None],
        saved: Callable[[], None] | None,
        bar: Any,
    ) -> None:
        for n, (prompt, settings) in todo:
            if self._stopped:
                ended = Ended(
                    "",
                    f"error: not asked: {IN_A_ROW} requests in a row had failed, the last with {self._stopped}",
                    attempts=0,
                )
            else:
                ended = await self._one(session, self._payload(prompt, settings))
                if not self._answered and _says(ended.reason, {403}):
                    await self._settle(session, prompt, settings)
                self._count(ended)
            done(n, ended)
            if saved:
                await asyncio.to_thread(saved)
            bar.update(1)

    def _count(self, ended: Ended) -> None:
        """Stops where failing is no longer the items': nothing written before is lost, and the rest says why it wasn't
        asked.
        """
        if not ended.failed or "over-long" in str(ended.finish):
            self._answered, self._in_a_row = self._answered + 1, 0
            return
        self._in_a_row += 1
        reason = str(ended.finish).removeprefix("error: ")
        if not self._answered and (self._in_a_row >= IN_A_ROW or _says(reason, OF_NO_ITEM)):
            raise self._unusable(reason)
        if self._in_a_row >= IN_A_ROW and not self._stopped:
            self._stopped = reason
            log.error(
                "helmbench: %d requests in a row failed, the last with %s; the rest is not asked. Run again "
                "with --use_cache",
                IN_A_ROW,
                reason,
            )

    async def _one(self, session: aiohttp.ClientSession, payload: dict[str, Any]) -> Ended:
        enough = stop_any(StopAfterPaid(max(self._model.max_retries, 1)), StopAfterWaiting(self._patience))
        policy = retrying(enough, lambda seconds: asyncio.sleep(seconds))
        outcome: Ended | Trouble = await policy(self._attempt, session, payload)
        if isinstance(outcome, Trouble):
            outcome = Ended("", f"error: {outcome.reason}")
        return replace(outcome, attempts=policy.statistics["attempt_number"])

    async def _attempt(self, session: aiohttp.ClientSession, payload: dict[str, Any]) -> Ended | Trouble:
        try:
            async with session.post(
                self._model.base_url, json=payload, headers=self._model.header, allow_redirects=False
            ) as response:
                raw = await client.body(response)
        except TimeoutError:
            return Trouble(f"timeout after {self._model.timeout} s", paid=True)
        except aiohttp.ClientHttpProxyError as error:
            return Trouble(f"connection: the proxy answers HTTP {error.status}")
        except aiohttp.ClientError as error:
            return Trouble(f"connection: {type(error).__name__}", paid=isinstance(error, aiohttp.ClientPayloadError))
        if 300 <= response.status < 400:
            where = self._keys.quoted(elsewhere(response.headers.get("Location"), self._keys.within))
            return Ended("", f"error: HTTP {response.status} {where}; give the final address as base_url")
        if raw is None:
            return Trouble(f"an answer of more than {client.MOST:,} bytes", paid=True)
        try:
            body = json.loads(raw)
        except (ValueError, RecursionError):
            if response.status < 400:
                return Trouble("broken JSON", paid=True)
            body = None
        if response.status >= 400:
            return self._refused(response.status, body, asked_to_wait(response.headers), response.reason or "")
        if isinstance(body, dict) and isinstance(body.get("error"), dict) and not body.get("choices"):
            code = body["error"].get("code")  # some gateways answer 200 and put the status inside
            return self._refused(code if isinstance(code, int) and code >= 400 else 502, body, 0.0, "")
        found = read(body, self._model.parse_generations)
        if isinstance(found, Trouble):
            return found
        if self._keys.repeated(found.text, found.finish):
            return Trouble("an answer that repeats the key", paid=True)
        # Not before: of a key that a cut goes through, the rest would be kept.
        return replace(found, finish=found.finish and found.finish[:LONGEST_FINISH])

    def _refused(self, status: int, body: Any, asked: float, reason: str) -> Ended | Trouble:
        said = _said(body) or reason
        quoted = self._keys.quoted(said)
        if NO_QUOTA in said and NO_QUOTA not in quoted:
            quoted = NO_QUOTA
        if status < 500 and status not in AGAIN and FILTERED.search(said):
            return Ended("", "content_filter")
        if status == 413 or (status < 500 and status not in AGAIN and TOO_LONG.search(said)):
            return Ended("", f"error: over-long: HTTP {status} {quoted}"[:300])
        what = f"HTTP {status} {quoted}"[:200].strip()
        if worth_another(status) and NO_QUOTA not in said:
            return Trouble(what, wait=asked)
        return Ended("", f"error: {what}")

    def _payload(self, prompt: Any, settings: dict[str, Any]) -> dict[str, Any]:
        model, settings = self._model, deepcopy(settings)
        seed = model._seed + settings.pop("repeat", 0)  # the same seed with each request would make repeats alike
        if model.tokenized_requests:
            prompt = model.tok_encode([prompt], add_special_tokens=model.add_bos_token)[0]
        payload: dict[str, Any] = model._create_payload(
            model.create_message([prompt]), generate=True, gen_kwargs=settings, seed=seed
        )
        return payload


def read(body: Any, parse: Callable[..., list[str | None]]) -> Ended | Trouble:
    """A reply in OpenAI's or Anthropic's form; `parse` is the lm-eval model's own reader of its text. Nothing is cut
    yet: whoever looks for keys looks at the whole.
    """
    if not isinstance(body, dict) or not (body.get("choices") or isinstance(body.get("content"), list)):
        return Trouble("an answer without choices", paid=True)
    choice = _first(body["choices"]) if body.get("choices") else {}
    message = None if choice is None else choice.get("message") or {}
    if choice is None or not isinstance(message, dict):
        return Trouble(f"an answer whose {'choices' if choice is None else 'message'} can't be read", paid=True)
    words = message.get("content") or choice.get("text")
    if words is not None and not isinstance(words, str):
        return Trouble("an answer that is no text", paid=True)
    said = choice.get("finish_reason") or body.get("stop_reason")
    finish = FINISHES.get(str(said).lower(), jsonl.plain(str(said))) if said else None
    counted = _counted(body.get("usage"))
    if choice and not message.get("content") and "text" not in choice:
        refusal = message.get("refusal")
        if not message and finish is None:
            return Trouble("an answer without a message", paid=True)
        return Ended(jsonl.plain(str(refusal)), "refusal", *counted) if refusal else Ended("", finish, *counted)
    if not choice:  # thinking stands in blocks of its own there, and a refusal has none
        blocks = [b.get("text") for b in body["content"] if isinstance(b, dict)]
        return Ended(jsonl.plain("".join(b for b in blocks if isinstance(b, str))), finish, *counted)
    try:
        # lm-eval looks for the reply under the choice's index, and takes one that has none for an empty reply.
        text = parse(outputs=body | {"choices": [choice | {"index": 0}]})[0] or ""
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as problem:
        return Trouble(f"an answer that can't be read ({type(problem).__name__})", paid=True)
    if not isinstance(text, str):
        return Trouble("an answer that is no text", paid=True)
    return Ended(jsonl.plain(text), finish, *counted)


def _greeting(prompt: Any) -> Any:
    """What anybody may be asked, in the form of a prompt: an API's messages, or a text."""
    messages = [{"role": "user", "content": GREETING}]
    if isinstance(prompt, JsonChatStr):
        return JsonChatStr(json.dumps(messages))
    return messages if isinstance(prompt, list) else f"User: {GREETING}\n\nAssistant:"


def _says(reason: str, statuses: Iterable[int]) -> bool:
    """Whether a request failed with one of these; money that is spent comes under a status of other things, too."""
    return reason.startswith(tuple(f"HTTP {s}" for s in statuses)) or NO_QUOTA in reason


def _first(choices: Any) -> dict[str, Any] | None:
    return choices[0] if isinstance(choices, list) and isinstance(choices[0], dict) else None


def _counted(usage: Any) -> tuple[int, int | None, int | None]:
    """One attempt, and the tokens of prompt and reply as far as the server counts them: a reply needs no usage."""
    return 1, counted(usage, "prompt_tokens", "input_tokens"), counted(usage, "completion_tokens", "output_tokens")


def _said(body: Any) -> str:
    """The error's own words, on one line: its code and message, as OpenAI, Anthropic and FastAPI put them."""
    if not isinstance(body, dict):
        return ""
    error = body.get("error", body)
    parts = [error.get("code"), error.get("message") or error.get("detail")] if isinstance(error, dict) else [error]
    return " ".join(" ".join(str(p) for p in parts if p is not None).split())
