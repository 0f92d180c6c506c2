"""Requests to lm-eval's API models: retries each one, and returns completions that record how they ended.

lm-eval's loop raises after three attempts and keeps neither finish reason nor status. For API models
(`local-chat-completions`, `openai-chat-completions`, `anthropic-chat`, …) this module replaces it: it uses their
payload, address, header and reply parser with our HTTP client.

Before the first request that may cost money, `GET …/models` checks whether the server is up. Many servers don't have
that route, guard it, or list fewer names than they serve; in case of doubt, one short greeting decides.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import logging
import re
import ssl
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from lm_eval.models.api_models import JsonChatStr
from tqdm import tqdm

from helmbench_common import jsonl
from helmbench_common.errors import HelmbenchError
from helmbench_common.http.addresses import secrets, shown
from helmbench_common.http.bodies import error_text, tokens
from helmbench_common.http.client import Client
from helmbench_common.http.retry import (
    AGAIN,
    HOPELESS,
    IN_A_ROW,
    NO_QUOTA,
    PATIENCE,
    WRONG_ADDRESS,
    Trouble,
    retried,
    retry_after,
    worth_another,
)
from judge.rules.answers import REFUSED

log = logging.getLogger("lm_eval.helmbench")
NO_ITEMS_FAULT = WRONG_ADDRESS | {402, 407}  # 403 may concern one item: content filters return it
LONGEST_FINISH = 80  # characters of a finish reason
LIST_SECONDS = 5.0  # timeout for the list of models
LISTED, LONGEST_NAME = 5, 200  # models that an error lists, and characters of each name
ROUTES = ("/chat/completions", "/completions", "/messages")  # the list of models is a sibling of these
GUARDED = frozenset({401, 402, 403, 407})  # statuses if the list needs another key
NO_ROUTE = 501  # the one 5xx that says nothing about the server's health
GREETING, GREETING_TOKENS = "Hello!", 16
GREETINGS, GREETING_SECONDS = 3, 8.0  # attempts, and their total seconds
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
Prompt = tuple[Any, dict[str, Any]]  # lm-eval's request: a prompt and its generation settings


class UnusableError(HelmbenchError):
    """The server has answered no request and won't answer any."""


@dataclass(frozen=True)
class Completion:
    """A reply and how it ended. `finish`: `stop`, `length`, `content_filter`, `refusal`, another backend value, None if
    unknown, `refused: why` if the server won't answer this item, or `error: why` if there is no reply. Token counts are
    the server's.
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
    def refused(self) -> bool:
        return bool(self.finish and self.finish.startswith(REFUSED))

    @property
    def over_long(self) -> bool:
        return "over-long" in str(self.finish)

    @property
    def reason(self) -> str:
        """Why there is no reply, in a few words, identical for failures of the same kind; empty if there is one."""
        return str(self.finish).partition(":")[2].partition(":")[0].strip()[:80] if self.failed else ""

    def note(self) -> dict[str, Any]:
        """What the log stores in addition to the text."""
        return {k: v for k, v in vars(self).items() if k != "text" and (v is not None or k == "finish")}


class Requests:
    """Requests to one of lm-eval's API models, `num_concurrent` at a time.

    `patience`: seconds of waiting per request. Replies that were paid for but lost (timeouts, broken JSON) are
    requested at most `max_retries` times (lm-eval's setting).
    """

    def __init__(self, model: Any, patience: float = PATIENCE) -> None:
        self._model, self._patience = model, patience
        self._answered = self._in_a_row = 0
        self._stopped: str | None = None
        self._names: tuple[str, ...] | None = None  # the server's list; None before the request

    def run(
        self,
        prompts: Sequence[Prompt],
        done: Callable[[int, Completion], None],
        saved: Callable[[], None] | None = None,
    ) -> None:
        """Calls `done(n, completion)` for each prompt, in the order of the answers.

        `saved` blocks until everything passed to `done` is on disk; only then does a new request take the slot, so that
        a killed process loses at most `num_concurrent` replies.

        Raises:
            UnusableError: a wrong key, address or model name, or only failures from the start.
        """
        if not prompts:
            return
        try:
            self._payload(*prompts[0])
        except AssertionError as problem:  # lm-eval raises this for a prompt that the model's server doesn't accept
            raise UnusableError(str(problem)) from None
        asyncio.run(self._all(prompts, done, saved))

    async def _all(
        self,
        prompts: Sequence[Prompt],
        done: Callable[[int, Completion], None],
        saved: Callable[[], None] | None,
    ) -> None:
        model = self._model
        secure: Any = model.verify_certificate
        if secure and model.ca_cert_path:
            secure = ssl.create_default_context(cafile=model.ca_cert_path)
        self._at_once = min(max(model._concurrent, 1), len(prompts))
        header = self._checked_header()
        try:
            self._client = Client(model.base_url, header, self._at_once, model.timeout, tls=secure)
        except ValueError as problem:
            raise UnusableError(str(problem)) from None
        todo = iter(enumerate(prompts))
        async with self._client:
            if self._names is None:
                await self._preflight(*prompts[0])
            self._settling = asyncio.Lock()
            with tqdm(total=len(prompts), desc="Requesting API") as bar:
                await asyncio.gather(*(self._work(todo, done, saved, bar) for _ in range(self._at_once)))

    async def _work(
        self,
        todo: Iterator[tuple[int, Prompt]],
        done: Callable[[int, Completion], None],
        saved: Callable[[], None] | None,
        bar: Any,
    ) -> None:
        for n, prompt in todo:
            if self._stopped:
                why = f"error: not asked: too many requests in a row had failed, the last with {self._stopped}"
                completion = Completion("", why, attempts=0)
            else:
                completion = await self._one(self._payload(*prompt))
                if not self._answered and _has_status(completion.reason, {403}):
                    await self._settle_403(*prompt)
                self._count(completion)
            done(n, completion)
            if saved:
                await asyncio.to_thread(saved)
            bar.update(1)

    def _count(self, completion: Completion) -> None:
        """Stops if the server, not the items, causes the failures: keeps the answers and skips the other requests."""
        if not (completion.failed or completion.refused) or completion.over_long:
            self._answered, self._in_a_row = self._answered + 1, 0
            return
        self._in_a_row += 1
        reason = str(completion.finish).removeprefix("error: ").removeprefix(REFUSED)
        many = self._in_a_row >= max(IN_A_ROW, self._at_once)
        if not self._answered and (many or _has_status(reason, NO_ITEMS_FAULT)):
            raise self._unusable(reason)
        if many and not self._stopped:
            self._stopped = reason
            log.error(
                "helmbench: %d requests in a row failed, the last with %s; the rest is not asked. Run again "
                "with --use_cache",
                self._in_a_row,
                reason,
            )

    # --- one request -------------------------------------------------------------------------------------------------

    def _payload(self, prompt: Any, settings: dict[str, Any]) -> bytes:
        model, settings = self._model, deepcopy(settings)
        seed = model._seed + settings.pop("repeat", 0)  # the same seed would make repeats identical
        if model.tokenized_requests:
            prompt = model.tok_encode([prompt], add_special_tokens=model.add_bos_token)[0]
        message = model.create_message([prompt])
        return json.dumps(model._create_payload(message, generate=True, gen_kwargs=settings, seed=seed)).encode()

    async def _one(self, payload: bytes) -> Completion:
        outcome, attempts = await retried(
            lambda: self._attempt(payload), self._patience, most_paid=max(self._model.max_retries, 1)
        )
        if isinstance(outcome, Trouble):
            outcome = Completion("", f"error: {outcome.reason}")
        return replace(outcome, attempts=attempts)

    async def _attempt(self, payload: bytes) -> Completion | Trouble:
        answer, keys = await self._client.post(payload), self._client.keys
        if isinstance(answer, Trouble):
            return answer
        status, body = answer.status, answer.body
        if 300 <= status < 400:
            return Completion("", f"error: {self._client.redirect(answer)}; give the final address as base_url")
        if status >= 400:
            return self._refused(status, error_text(body) or answer.reason, retry_after(answer.headers))
        if body is None:
            return Trouble("broken JSON", paid=True)
        if isinstance(body, dict) and (error := body.get("error")):
            # Some gateways return 200 with the status in the body, even beside the part of a reply that broke off.
            code = error.get("code") if isinstance(error, dict) else None
            return self._refused(code if isinstance(code, int) and code >= 400 else 502, error_text(body), 0.0)
        found = read(body, self._model.parse_generations)
        if isinstance(found, Trouble):
            return found
        if keys.repeated(found.text, found.finish):
            return Trouble("an answer that repeats the key", paid=True)
        # Truncate only now: earlier, part of a key at the cut would remain.
        return replace(found, finish=found.finish and found.finish[:LONGEST_FINISH])

    def _refused(self, status: int, text: str, wait: float) -> Completion | Trouble:
        quoted = self._client.keys.quoted(text)
        if NO_QUOTA in text and NO_QUOTA not in quoted:
            quoted = NO_QUOTA
        if status == 451 or (status < 500 and status not in AGAIN and FILTERED.search(text)):  # 451: for legal reasons
            return Completion("", "content_filter")
        if status == 413 or (status < 500 and status not in AGAIN and TOO_LONG.search(text)):
            return Completion("", f"error: over-long: HTTP {status} {quoted}"[:300])
        what = f"HTTP {status} {quoted}"[:200].strip()
        if worth_another(status) and NO_QUOTA not in text:
            return Trouble(what, wait=wait, status=status)
        # The same request would be refused again: that is how this model answers this item.
        return Completion("", f"{'error: ' if status in HOPELESS or status >= 500 else REFUSED}{what}")

    # --- is the server there? ----------------------------------------------------------------------------------------

    def _checked_header(self) -> dict[str, str]:
        """The model's headers.

        Raises:
            UnusableError: no address; no key although the model type requires one; a key that a header can't hold, or
                one in the address, which lm-eval would write into the results.
        """
        url = self._model.base_url
        if not url:
            raise UnusableError(
                "base_url is missing in --model_args; expected for example http://HOST:8000/v1/chat/completions"
            )
        try:
            held = any(secrets(url))
        except ValueError:
            raise UnusableError("base_url in --model_args is not a valid address") from None
        if held:
            raise UnusableError(
                f"base_url {shown(url)} contains a password or a key, which would be visible in the results and in the "
                "process list; set OPENAI_API_KEY instead"
            )
        try:
            header: dict[str, str] = self._model.header
        except ValueError as problem:  # lm-eval raises this for a missing key
            raise UnusableError(" ".join(str(problem).split())) from None
        if not all(str(value).isascii() and str(value).isprintable() for value in header.values()):
            raise UnusableError(
                "the key in the environment contains characters that a key can't have; does it end with a line break?"
            )
        return header

    async def _preflight(self, prompt: Any, settings: dict[str, Any]) -> None:
        """Checks the list of models, and sends a greeting in case of doubt.

        Raises:
            UnusableError: the server is unreachable, or all requests fail.
        """
        doubt = await self._look()
        if not doubt:
            return
        if why := await self._refusal(prompt, settings):
            raise self._unusable(why)
        where = shown(self._model.base_url)
        log.warning("helmbench: %s works, but its list of models is odd: %s; is it the right one?", where, doubt)

    async def _look(self) -> str:
        """Why the server may not answer, judging by its list of models; empty if nothing suggests that.

        Raises:
            UnusableError: no connection.
        """
        name, self._names = str(self._model.model), ()
        answer = await self._client.get(models_address(self._model.base_url), LIST_SECONDS)
        if isinstance(answer, Trouble):
            if not answer.connected:
                raise UnusableError(f"nothing answers at {shown(self._model.base_url)}: {answer.reason}")
            return "" if answer.paid else answer.reason  # it is up but slow
        if answer.status in GUARDED or (answer.status >= 500 and answer.status != NO_ROUTE):
            return f"HTTP {answer.status}"
        try:
            names = [str(entry["id"]) for entry in answer.body["data"]] if answer.status == 200 else []
        except (KeyError, TypeError):
            return ""
        quoted = self._client.keys.quoted
        self._names = tuple(n[:LONGEST_NAME] for n in names if quoted(n) == n)
        return f"it doesn't list {name!r}" if names and name not in names else ""

    async def _refusal(self, prompt: Any, settings: dict[str, Any]) -> str:
        """Why requests to the server fail, judging by a greeting; empty if it answers, or if that is unclear."""
        payload = self._payload(_greeting(prompt), {**settings, "max_gen_toks": GREETING_TOKENS})
        try:
            outcome, _ = await asyncio.wait_for(
                retried(lambda: self._attempt(payload), most=GREETINGS), GREETING_SECONDS
            )
        except TimeoutError:  # slow isn't down
            return ""
        if isinstance(outcome, Completion):
            reason = str(outcome.finish).removeprefix("error: ")
            return reason if outcome.failed and _has_status(reason, HOPELESS) else ""
        down = not outcome.paid and (outcome.status is None or outcome.status >= 500)
        return outcome.reason if down else ""

    async def _settle_403(self, prompt: Any, settings: dict[str, Any]) -> None:
        """Sends a greeting to decide whether a 403 before any answer concerns this prompt (a filter) or all requests.

        Raises:
            UnusableError: it concerns all requests.
        """
        async with self._settling:
            if self._answered:
                return
            if why := await self._refusal(prompt, settings):
                raise self._unusable(why)
            self._answered += 1

    def _unusable(self, reason: str) -> UnusableError:
        return UnusableError(f"requests to {shown(self._model.base_url)} fail: {reason}{self._hint(reason)}")

    def _hint(self, reason: str) -> str:
        """What to check, to append to the reason; empty if unknown."""
        model, names = self._model, self._names or ()
        status = reason.removeprefix("HTTP ")[:3]
        if status in ("401", "403", "407"):
            sent = str(model.header.get("Authorization", "")).strip() != "Bearer"
            return "; is the key right? May it use this model?" if sent else "; no key was sent: is OPENAI_API_KEY set?"
        if status in ("400", "404", "405") and names and model.model not in names:
            near = difflib.get_close_matches(str(model.model), names, n=1)
            known = ", ".join(names[:LISTED]) + (" …" if len(names) > LISTED else "")
            return f"; it lists {known}" + (f"; did you mean {near[0]}?" if near else "")
        if status in ("404", "405"):
            whole = urlsplit(model.base_url).path.rstrip("/").endswith(ROUTES)
            example = "" if whole else " Give the whole address, such as http://HOST:8000/v1/chat/completions"
            return f"; is the path of base_url right?{example}"
        return "; it is up, but not ready" if status.startswith("5") else ""


def models_address(base_url: str) -> str:
    """Where the server may list its models; the address itself if its form is unknown."""
    parts = urlsplit(base_url)
    path = parts.path.rstrip("/")
    end = next((e for e in ROUTES if path.endswith(e)), None)
    return urlunsplit((*parts[:2], path.removesuffix(end) + "/models", *parts[3:])) if end else base_url


def read(body: Any, parse: Callable[..., list[str | None]]) -> Completion | Trouble:
    """A completion from OpenAI's or Anthropic's format; `parse`: the lm-eval model's text parser."""
    if not isinstance(body, dict) or not (body.get("choices") or isinstance(body.get("content"), list)):
        return Trouble("an answer without choices", paid=True)
    choices = body.get("choices")
    finish = body.get("stop_reason")
    prompt_tokens = tokens(body.get("usage"), "prompt_tokens", "input_tokens")
    reply_tokens = tokens(body.get("usage"), "completion_tokens", "output_tokens")

    def completion(text: str, finish: Any) -> Completion:
        known = FINISHES.get(str(finish).lower(), jsonl.plain(str(finish))) if finish else None
        return Completion(jsonl.plain(text), known, 1, prompt_tokens, reply_tokens)

    if not choices:  # Anthropic: thinking is in other block types, and a refusal has no blocks
        blocks = [b.get("text") for b in body["content"] if isinstance(b, dict)]
        return completion("".join(b for b in blocks if isinstance(b, str)), finish)
    choice = choices[0] if isinstance(choices, list) else None
    message = (choice.get("message") or {}) if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return Trouble(f"an answer whose {'message' if isinstance(choice, dict) else 'choices'} can't be read", True)
    finish = choice.get("finish_reason") or finish
    if not isinstance(message.get("content") or choice.get("text") or "", str):
        return Trouble("an answer that isn't text", paid=True)
    if not message.get("content") and "text" not in choice:
        if not message and not finish:
            return Trouble("an answer without a message", paid=True)
        refusal = message.get("refusal")
        return completion(str(refusal), "refusal") if refusal else completion("", finish)
    try:
        # lm-eval looks up the reply by the choice's index, and treats one without an index as empty.
        text = parse(outputs=body | {"choices": [choice | {"index": 0}]})[0] or ""
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as problem:
        return Trouble(f"an answer that can't be read ({type(problem).__name__})", paid=True)
    return completion(text, finish) if isinstance(text, str) else Trouble("an answer that isn't text", paid=True)


def _greeting(prompt: Any) -> Any:
    """A harmless prompt in the same format as `prompt`: an API's messages, or a text."""
    messages = [{"role": "user", "content": GREETING}]
    if isinstance(prompt, JsonChatStr):
        return JsonChatStr(json.dumps(messages))
    return messages if isinstance(prompt, list) else f"User: {GREETING}\n\nAssistant:"


def _has_status(reason: str, statuses: Iterable[int]) -> bool:
    """Whether a request failed with one of these; an exhausted quota shares its status with other errors."""
    return reason.startswith(tuple(f"HTTP {s}" for s in statuses)) or NO_QUOTA in reason
