"""A layer between lm-eval and a model's `generate_until`, so that one bad item doesn't end a run.

lm-eval 0.4.13 has no hook there. One attribute works for all backends: before the first request, the task sets this
object as the model instance's `generate_until`. Requests to API models then go through `api_models.py`, others through
the model's `generate_until`, without prompts that it would truncate.
"""

from __future__ import annotations

import sys
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.models.api_models import TemplateAPI

from helmbench_common.http.retry import PATIENCE
from lm_eval_tasks.helmbench.api_models import Completion, Requests, UnusableError
from lm_eval_tasks.helmbench.cache import Cache

SLICE = 1024  # requests that a local model with a cache gets at once: the most that a killed vLLM run loses
STOPPED = 130  # the exit code for Ctrl-C, as in `helmbench`
DEFAULT_WINDOW = 2047  # lm-eval's default for a completions server
SPECIAL_TOKENS = 16  # upper bound on tokens that a tokenizer adds to a prompt


def layer_of(model: Any, patience: float = PATIENCE) -> Layer:
    """The model's layer, installed by the first task that requests it.

    Raises:
        SystemExit: the cache holds another model's replies.
    """
    layer = model.generate_until
    if not isinstance(layer, Layer):
        layer = model.generate_until = Layer(model, patience)
    return layer


class Layer:
    """Replaces `generate_until` of one model. `window`: tokens for prompt and reply together, None if unknown."""

    def __init__(self, model: Any, patience: float) -> None:
        self._model, self._inner = model, model.generate_until
        self._requests = Requests(model, patience) if isinstance(model, TemplateAPI) else None
        self.cache = Cache(model)
        self._begun = self.cache.filled  # whether any request was answered, now or before
        self.window = _window(model)

    def __call__(self, requests: Sequence[Instance], disable_tqdm: bool = False) -> list[str]:
        """One text per request, in order; `completion` returns how each ended.

        Raises:
            SystemExit: the server has not answered a single request, no sample fits the window, the cache can't be
                written, or Ctrl-C.
        """
        found: list[Completion | None] = [self.cache.get(r.args) for r in requests]
        for n, request in enumerate(requests):
            if found[n] is None and (why := self.too_long(*request.args[:2])):
                found[n] = Completion("", f"error: over-long: {why}", attempts=0)
        todo = [n for n, completion in enumerate(found) if completion is None]
        if found and not self._begun and all(c and c.over_long for c in found):
            raise SystemExit(
                f"helmbench: no sample fits the model's window ({found[0] and found[0].finish!s}); try "
                "--gen_kwargs max_gen_toks=N"
            )
        self._begun = True

        def done(position: int, completion: Completion) -> None:
            found[todo[position]] = completion
            self.cache.keep(requests[todo[position]].args, completion)

        missing = [requests[n] for n in todo]
        try:
            with self.cache.writing():
                if self._requests:
                    self._requests.run([r.args[:2] for r in missing], done, self.cache.saved)
                else:
                    self._local(missing, done)
        except UnusableError as problem:
            raise SystemExit(f"helmbench: {problem}") from None
        except KeyboardInterrupt:
            more = "run the same command again to continue" if self.cache else "nothing is kept without --use_cache"
            sys.stderr.write(f"\nhelmbench: stopped; {more}\n")
            raise SystemExit(STOPPED) from None
        texts = []
        for request, completion in zip(requests, found, strict=True):
            assert completion is not None  # every request was cached, too long, or sent
            request.completion = completion
            texts.append(completion.text)
        return texts

    def completion(self, request: Instance) -> Completion:
        """How a request ended, in this process or the one that filled the cache."""
        known = getattr(request, "completion", None) or self.cache.get(request.args)
        return known or Completion(str(request.resps[0] or ""))

    def too_long(self, prompt: Any, settings: dict[str, Any]) -> str | None:
        """Why a prompt leaves no room for the reply; None if it fits. lm-eval would truncate it on the left, where the
        system message is.
        """
        if self.window is None:
            return None
        shared = getattr(self._model, "backend", "causal") != "seq2seq"  # an encoder's window holds only the prompt
        reply = int(settings.get("max_gen_toks", getattr(self._model, "max_gen_toks", 0))) if shared else 0
        text = str(getattr(prompt, "prompt", prompt))
        # A token is at least one byte, so the byte length clears most prompts without the tokenizer.
        if len(text.encode()) + SPECIAL_TOKENS + reply <= self.window:
            return None
        size = len(self._model.tok_encode(text))
        fits = size + reply <= self.window
        return None if fits else f"{size} tokens and {reply} for the reply, the window holds {self.window}"

    def _local(self, requests: list[Instance], done: Callable[[int, Completion], None]) -> None:
        # With data parallelism, each call restarts its workers and reloads the weights, so make only one call.
        step = SLICE if self.cache and getattr(self._model, "data_parallel_size", 1) <= 1 else max(len(requests), 1)
        for start in range(0, len(requests), step):
            self._slice(requests[start : start + step], lambda n, c, start=start: done(start + n, c))  # type: ignore[misc]

    def _slice(self, requests: list[Instance], done: Callable[[int, Completion], None]) -> None:
        """One call of the model's method; immediately stores each reply it reports, with how it ended."""
        waiting: dict[str, deque[int]] = defaultdict(deque)
        for n, request in enumerate(requests):
            waiting[request.args[0]].append(n)
        hook = Hook(waiting, done, self.cache.db)
        before = self._model.cache_hook
        self._model.cache_hook = hook
        restore = _listen(self._model, hook.completions)
        try:
            texts = self._inner([_without_repeat(r) for r in requests])
        finally:
            self._model.cache_hook = before
            restore()
        for n in (n for left in waiting.values() for n in left):  # for backends that don't report replies one by one
            done(n, Completion(str(texts[n] or "")))


class Hook:
    """Replaces lm-eval's cache hook during one call: hf and vLLM report each reply to it, batch by batch.

    `completions`: how the batch's replies ended, in order, collected just before they are reported.
    """

    def __init__(self, waiting: dict[str, deque[int]], done: Callable[[int, Completion], None], db: Any) -> None:
        self.dbdict = db
        self.completions: deque[Completion] = deque()
        self._waiting, self._done = waiting, done

    def add_partial(self, attr: str, request: Sequence[Any], text: str) -> None:
        completion = self.completions.popleft() if self.completions else Completion("")
        if self._waiting[request[0]]:
            self._done(self._waiting[request[0]].popleft(), replace(completion, text=str(text or "")))


def _window(model: Any) -> int | None:
    try:
        size = int(model.max_length)
    except (AttributeError, TypeError, ValueError, NotImplementedError):
        return None
    if hasattr(model, "base_url"):  # a chat server counts tokens itself, and rejects long prompts
        return size if model.tokenized_requests and size != DEFAULT_WINDOW else None
    return size if getattr(model, "tokenizer", None) else None


def _without_repeat(request: Instance) -> Instance:
    """The request without our setting `repeat`, which backends don't know."""
    settings = {k: v for k, v in request.args[1].items() if k != "repeat"}
    return replace(request, arguments=(request.args[0], settings)) if "repeat" in request.args[1] else request


def _listen(model: Any, completions: deque[Completion]) -> Callable[[], None]:
    """Wraps `_model_generate` of hf and vLLM, the last place with finish reasons; returns a function to undo it."""
    inner = getattr(model, "_model_generate", None)
    if inner is None:
        return lambda: None

    def listening(*args: Any, **kwargs: Any) -> Any:
        given = inner(*args, **kwargs)
        completions.clear()
        if isinstance(given, list):  # vLLM's RequestOutput
            for o in given:
                reply = o.outputs[0]
                completions.append(
                    Completion("", reply.finish_reason, 1, len(o.prompt_token_ids), len(reply.token_ids))
                )
        elif "context" in kwargs and "max_length" in kwargs and getattr(model, "backend", "") == "causal":
            start, stops = kwargs["context"].shape[1], kwargs.get("stop") or []
            completions.extend(_tensor_completions(model, given, start, kwargs["max_length"], stops))
        return given

    model._model_generate = listening
    return lambda: delattr(model, "_model_generate")


def _tensor_completions(model: Any, rows: Any, start: int, limit: int, stops: list[str]) -> list[Completion]:
    """For transformers: a row that fills the limit without an end token or stop text was truncated."""
    known = getattr(getattr(model.model, "generation_config", None), "eos_token_id", None)
    ends = {model.eot_token_id, *(known if isinstance(known, list) else [known])}
    found = []
    for row in rows.tolist():
        reply = row[start:]
        length = next((n for n, token in enumerate(reply) if token in ends), None)
        full = length is None and len(row) >= limit
        cut = full and not any(stop and stop in model.tok_decode(reply) for stop in stops)
        found.append(Completion("", "length" if cut else "stop", reply_tokens=len(reply) if length is None else length))
    return found
