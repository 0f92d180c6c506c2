"""Puts a layer of ours between lm-eval and a model's `generate_until`, so that one bad item doesn't end a run.

lm-eval 0.4.13 has no hook there, and no plugins for models. The least that works for all backends is one attribute: the
model *instance* gets this object as its `generate_until`, from the task, before the first request. `--model` and
everything else stay the user's. API models are then asked through `wire.py`; the others through their own
`generate_until`, without prompts that it would cut. What `--use_cache` keeps is kept here too: lm-eval stores no finish
reason, looks vLLM's replies up under other keys than it writes, and stores nothing of a reply that was sampled.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.model import hash_args
from lm_eval.models.api_models import TemplateAPI

from helmbench_common.http.waiting import PATIENCE
from lm_eval_tasks.helmbench.preflight import UnusableError
from lm_eval_tasks.helmbench.window import Window
from lm_eval_tasks.helmbench.wire import Ended, Wire

log = logging.getLogger("lm_eval.helmbench")
SLICE = 1024  # requests that a local model gets at once when there is a cache: a killed vLLM run loses no more
STOPPED = 130  # the exit code of Ctrl-C, as that of `helmbench`
NOTE, FAILED, OWNER = (
    "helmbench note ",
    "helmbench failed ",
    "helmbench model",
)  # prefixes of our keys in lm-eval's cache
HELD: dict[str, int] = {}  # the caches that this process holds until it ends: path, handle


def survivor(model: Any, patience: float = PATIENCE) -> Survivor:
    """The model's layer; put there by whichever task comes first.

    Raises:
        SystemExit: the cache holds another model's replies.
    """
    layer = model.generate_until
    if not isinstance(layer, Survivor):
        layer = model.generate_until = Survivor(model, patience)
    return layer


class Survivor:
    """Stands in for `generate_until` of one model."""

    def __init__(self, model: Any, patience: float) -> None:
        self._model, self._inner = model, model.generate_until
        self._wire = Wire(model, patience) if isinstance(model, TemplateAPI) else None
        self._cache = Cache(model)
        self._begun = self._cache.filled  # whether anything was answered, now or before
        self.window = Window(model)

    def __call__(self, requests: Sequence[Instance], disable_tqdm: bool = False) -> list[str]:
        """One text per request, in their order; how each ended is then found with `ended`.

        Raises:
            SystemExit: the server has not answered a single request, the window can't hold one, or Ctrl-C.
        """
        found: list[Ended | None] = [self._cache.get(r.args) for r in requests]
        for n, request in enumerate(requests):
            if found[n] is None and (why := self.window.too_long(*request.args[:2])):
                found[n] = Ended("", f"error: over-long: {why}", attempts=0)
        todo = [n for n, ended in enumerate(found) if ended is None]
        if found and not self._begun and all(e and "over-long" in str(e.finish) for e in found):
            raise SystemExit(
                f"helmbench: not one sample fits the model's window ({found[0] and found[0].finish!s}); try "
                "--gen_kwargs max_gen_toks=N"
            )
        self._begun = True

        def done(position: int, ended: Ended) -> None:
            found[todo[position]] = ended
            self._cache.keep(requests[todo[position]].args, ended)

        asked = [requests[n] for n in todo]
        try:
            if self._wire:
                self._wire.run([r.args[:2] for r in asked], done, self._cache.saved)
            else:
                self._local(asked, done)
        except UnusableError as problem:
            raise SystemExit(f"helmbench: {problem}") from None
        except KeyboardInterrupt:
            more = "run the same command again to go on" if self._cache else "nothing is kept without --use_cache"
            sys.stderr.write(f"\nhelmbench: stopped; {more}\n")
            raise SystemExit(STOPPED) from None
        texts = []
        for request, ended in zip(requests, found, strict=True):
            assert ended is not None  # every request was kept, too long, or asked
            request.ended = ended
            texts.append(ended.text)
        return texts

    def ended(self, request: Instance) -> Ended:
        """How a request ended, in this process or in the one that filled the cache."""
        known = getattr(request, "ended", None) or self._cache.get(request.args)
        return known or Ended(str(request.resps[0] or ""))

    def _local(self, asked: list[Instance], done: Callable[[int, Ended], None]) -> None:
        # With data parallelism each call starts its workers anew and loads the weights, so there is one call.
        step = SLICE if self._cache and getattr(self._model, "data_parallel_size", 1) <= 1 else max(len(asked), 1)
        for start in range(0, len(asked), step):
            self._slice(asked[start : start + step], lambda n, ended, start=start: done(start + n, ended))  # type: ignore[misc]

    def _slice(self, asked: list[Instance], done: Callable[[int, Ended], None]) -> None:
        """One call of the model's own method; what it says on the way is kept at once, and why each reply ends."""
        waiting: dict[str, deque[int]] = defaultdict(deque)
        for n, request in enumerate(asked):
            waiting[request.args[0]].append(n)
        hook = Hook(waiting, done, self._cache.db)
        plain = [
            _without_repeat(r) if "repeat" in r.args[1] else r for r in asked
        ]  # no backend's own method knows the word
        before = self._model.cache_hook
        self._model.cache_hook = hook
        restore = _overhear(self._model, hook.finishes)
        try:
            texts = self._inner(plain)
        finally:
            self._model.cache_hook = before
            restore()
        for n in (n for left in waiting.values() for n in left):  # a backend that says nothing on the way
            done(n, Ended(str(texts[n] or "")))


def _without_repeat(request: Instance) -> Instance:
    return replace(request, arguments=(request.args[0], {k: v for k, v in request.args[1].items() if k != "repeat"}))


class Hook:
    """Takes the place of lm-eval's cache hook during one call: hf and vLLM report each reply to it, batch by batch.

    The finish reasons of a batch are overheard just before its replies are reported, in the same order.
    """

    def __init__(self, waiting: dict[str, deque[int]], done: Callable[[int, Ended], None], db: Any) -> None:
        self.dbdict = db
        self.finishes: deque[Ended] = deque()
        self._waiting, self._done = waiting, done

    def add_partial(self, attr: str, request: Sequence[Any], text: str) -> None:
        how = self.finishes.popleft() if self.finishes else Ended("")
        if self._waiting[request[0]]:
            self._done(self._waiting[request[0]].popleft(), replace(how, text=str(text or "")))


def _overhear(model: Any, finishes: deque[Ended]) -> Callable[[], None]:
    """Listens to `_model_generate` of hf and vLLM, the last place where finish reasons are known. Returns what undoes
    it.
    """
    inner = getattr(model, "_model_generate", None)
    if inner is None:
        return lambda: None

    def listening(*args: Any, **kwargs: Any) -> Any:
        given = inner(*args, **kwargs)
        finishes.clear()
        if isinstance(given, list):  # vLLM's RequestOutput
            finishes.extend(
                Ended("", o.outputs[0].finish_reason, 1, len(o.prompt_token_ids), len(o.outputs[0].token_ids))
                for o in given
            )
        elif "context" in kwargs and "max_length" in kwargs and getattr(model, "backend", "") == "causal":
            finishes.extend(
                _tensor_finishes(
                    model, given, kwargs["context"].shape[1], kwargs["max_length"], kwargs.get("stop") or []
                )
            )
        return given

    model._model_generate = listening
    return lambda: delattr(model, "_model_generate")


def _tensor_finishes(model: Any, rows: Any, start: int, limit: int, stops: list[str]) -> list[Ended]:
    """Of transformers: a row without an end token that fills the limit was cut off, unless a stop text stands in it."""
    known = getattr(getattr(model.model, "generation_config", None), "eos_token_id", None)
    ends = {model.eot_token_id, *(known if isinstance(known, list) else [known])}
    found = []
    for row in rows.tolist():
        reply = row[start:]
        length = next((n for n, token in enumerate(reply) if token in ends), None)
        cut = (
            length is None and len(row) >= limit and not any(stop and stop in model.tok_decode(reply) for stop in stops)
        )
        found.append(Ended("", "length" if cut else "stop", reply_tokens=len(reply) if length is None else length))
    return found


class Cache:
    """lm-eval's `--use_cache`, with what it lacks: whose replies they are, why each ends, and what was no reply."""

    def __init__(self, model: Any) -> None:
        self.db = getattr(getattr(model, "cache_hook", None), "dbdict", None)
        self._failed: set[str] = set()
        self.filled = False
        if self.db is None:
            return
        _take(self.db.filename)
        mine, owner = identity(model), self.db.get(OWNER)
        if owner not in (None, mine):
            raise SystemExit(
                f"helmbench: the cache {self.db.filename} holds replies of {owner}, this run is of {mine}; "
                "give each model a --use_cache of its own"
            )
        self.db[OWNER] = mine
        # lm-eval stores whatever a request ended with. What was no reply is asked again.
        for key in [k for k in self.db if k.startswith(FAILED)]:
            self.db.pop(key.removeprefix(FAILED), None)
            del self.db[key]
        self.db.commit()
        self.filled = len(self.db) > 1

    def __bool__(self) -> bool:
        return self.db is not None

    @property
    def saved(self) -> Callable[[], None] | None:
        """Blocks until everything that was kept is on disk."""
        return None if self.db is None else self.db.commit

    def get(self, arguments: tuple[Any, ...]) -> Ended | None:
        if self.db is None:
            return None
        key = hash_args("generate_until", arguments[:2])
        text = None if key in self._failed else self.db.get(key)
        return None if text is None else Ended(text, **json.loads(self.db.get(NOTE + key, "{}")))

    def keep(self, arguments: tuple[Any, ...], ended: Ended) -> None:
        if self.db is None:
            return
        key = hash_args("generate_until", arguments[:2])
        if ended.failed:
            self._failed.add(key)
            self.db[FAILED + key] = ended.finish
        else:
            self.db[NOTE + key] = json.dumps(ended.note())  # before the text, without which the note means nothing
            self.db[key] = ended.text


def _take(path: str) -> None:
    """Holds a cache for this process until it ends, however it ends.

    Raises:
        SystemExit: another process holds it; both would ask, and pay, for the same replies.
    """
    if path in HELD:
        return
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise SystemExit(
            f"helmbench: another run is writing the cache {path}; wait for it, or give this one its own --use_cache"
        ) from None
    except OSError:
        log.warning("helmbench: %s can't be locked; let no other run use it", path)
    HELD[path] = handle


def identity(model: Any) -> str:
    """What tells one model's replies from another's: backend, model, revision, adapters, and the server's address."""
    settings = getattr(model, "model_args", None)
    known = {**(settings if isinstance(settings, dict) else {}), **vars(model)}
    names = ("model", "pretrained", "base_url", "revision", "peft", "delta", "quantization", "dtype")
    parts = {n: re.sub(r"//[^/@\s]*@", "//", known[n]) for n in names if isinstance(known.get(n), str)}
    return " ".join([type(model).__name__, *(f"{n}={value}" for n, value in parts.items())])
