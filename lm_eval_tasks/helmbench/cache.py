"""lm-eval's `--use_cache`, plus what it doesn't store: the model, how each reply ended, which requests failed.

lm-eval stores no finish reason, looks up vLLM replies under different keys than it writes, and doesn't store sampled
replies.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from lm_eval.api.model import hash_args

from lm_eval_tasks.helmbench.api_models import Completion

log = logging.getLogger("lm_eval.helmbench")
NOTE, FAILED, OWNER = "helmbench note ", "helmbench failed ", "helmbench model"  # prefixes of our keys
HELD: dict[str, int] = {}  # caches that this process locks until it exits: path → handle


class Cache:
    """One model's cache; false if the run has none.

    Raises:
        SystemExit: it holds another model's replies, another process is writing to it, or it can't be written.
    """

    def __init__(self, model: Any) -> None:
        self.db: Any = getattr(getattr(model, "cache_hook", None), "dbdict", None)
        self._failed: set[str] = set()
        self.filled = False
        if self.db is None:
            return
        _hold(self.db.filename)
        with self.writing():
            self._claim(model)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Names the cache in SQLite's errors, such as of a full disk, and ends the run.

        Raises:
            SystemExit: the cache can't be read or written.
        """
        try:
            yield
        except sqlite3.Error as problem:
            raise SystemExit(
                f"helmbench: the cache {self.db.filename} can't be written ({problem}); is the disk full?"
            ) from None

    def _claim(self, model: Any) -> None:
        mine, owner = identity(model), self.db.get(OWNER)
        if owner not in (None, mine):
            raise SystemExit(
                f"helmbench: the cache {self.db.filename} holds replies of {owner}, this run is of {mine}; "
                "use a separate --use_cache for each model"
            )
        self.db[OWNER] = mine
        # lm-eval stores an empty text for a failed request; send it again.
        for key in [k for k in self.db if k.startswith(FAILED)]:
            self.db.pop(key.removeprefix(FAILED), None)
            del self.db[key]
        self.db.commit()
        self.filled = len(self.db) > 1

    def __bool__(self) -> bool:
        return self.db is not None

    @property
    def saved(self) -> Callable[[], None] | None:
        """Blocks until everything stored is on disk."""
        return None if self.db is None else self.db.commit

    def get(self, arguments: tuple[Any, ...]) -> Completion | None:
        if self.db is None:
            return None
        key = hash_args("generate_until", arguments[:2])
        text = None if key in self._failed else self.db.get(key)
        return None if text is None else Completion(text, **json.loads(self.db.get(NOTE + key, "{}")))

    def keep(self, arguments: tuple[Any, ...], completion: Completion) -> None:
        if self.db is None:
            return
        key = hash_args("generate_until", arguments[:2])
        if completion.failed:
            self._failed.add(key)
            self.db[FAILED + key] = completion.finish
        else:
            self.db[NOTE + key] = json.dumps(completion.note())  # before the text, without which it has no effect
            self.db[key] = completion.text


def _hold(path: str) -> None:
    """Locks a cache until this process exits.

    Raises:
        SystemExit: another process holds the lock; both would send, and pay for, the same requests.
    """
    if path in HELD:
        return
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise SystemExit(
            f"helmbench: another run is writing the cache {path}; wait for it, or use another --use_cache"
        ) from None
    except OSError:
        log.warning("helmbench: %s can't be locked; don't use it in two runs at once", path)
    HELD[path] = handle


def identity(model: Any) -> str:
    """What identifies the model behind a reply: backend, model, revision, adapters, and the server's address."""
    settings = getattr(model, "model_args", None)
    known = {**(settings if isinstance(settings, dict) else {}), **vars(model)}
    names = ("model", "pretrained", "base_url", "revision", "peft", "delta", "quantization", "dtype")
    parts = {n: re.sub(r"//[^/@\s]*@", "//", known[n]) for n in names if isinstance(known.get(n), str)}
    return " ".join([type(model).__name__, *(f"{n}={value}" for n, value in parts.items())])
