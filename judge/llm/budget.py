"""What asking costs: an estimate beforehand, and a cap that is never exceeded.

Before a question is sent, its worst case is reserved: a token is at least one byte, so a prompt has at most as many
tokens as its request has bytes, and the answer at most `max_tokens`. The usage that the server reports replaces the
reservation, if it is plausible; without a report (a timeout, a dropped connection) the reservation remains, since the
tokens may have been billed.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helmbench_common.files import fresh, naming
from helmbench_common.formats.plain_file import read_text
from judge.llm.errors import CapReachedError

LEDGER = "spent.json"
LEDGER_BYTES, MOST_TOKENS = 4096, 10**15  # the most that a ledger can contain, however long a judge is asked
BYTES_PER_TOKEN = 4  # in English prose; only for the estimate, not for the cap
ANSWER_TOKENS = 80
BEYOND = 4  # times `max_tokens`: some servers legitimately exceed it, because they don't count reasoning tokens


@dataclass(frozen=True)
class Tokens:
    """Tokens read and written by a model."""

    prompt: int
    completion: int

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(self.prompt + other.prompt, self.completion + other.completion)

    def __sub__(self, other: Tokens) -> Tokens:
        return Tokens(self.prompt - other.prompt, self.completion - other.completion)


NOTHING = Tokens(0, 0)


@dataclass(frozen=True)
class Prices:
    """Money per million tokens, in any currency."""

    prompt: float
    completion: float

    def cost(self, tokens: Tokens) -> float:
        return (tokens.prompt * self.prompt + tokens.completion * self.completion) / 1e6


@dataclass(frozen=True)
class Terms:
    """The prices of asking, and its cost limit. `cap`: in the currency of the prices, which it requires."""

    prices: Prices | None = None
    cap: float | None = None


FREE = Terms()


def terms(price_in: float | None, price_out: float | None, max_cost: float | None) -> Terms:
    """The terms from a user's options, prices per million tokens.

    Raises:
        ValueError: one price without the other, a cap without prices, or an invalid amount of money.
    """
    if not all(given is None or (math.isfinite(given) and given >= 0) for given in (price_in, price_out, max_cost)):
        raise ValueError("--price-in, --price-out, --max-cost: expected 0 or more, and no nan or inf")
    if price_in is None or price_out is None:
        if (price_in, price_out, max_cost) != (None, None, None):
            raise ValueError(
                "expected both --price-in and --price-out (prices of a million tokens); --max-cost needs them"
            )
        return FREE
    return Terms(Prices(price_in, price_out), max_cost)


def worst_case(body: dict[str, Any], payload: bytes) -> Tokens:
    """The maximum usage of one attempt."""
    return Tokens(len(payload), int(body.get("max_tokens") or body.get("max_completion_tokens") or 0))


def believed(usage: Mapping[str, int] | None, worst: Tokens) -> dict[str, int] | None:
    """A `usage` with these three counts, each limited to its possible maximum, so that no single answer uses up a
    budget: a prompt has no more tokens than its request has bytes, and an answer at most BEYOND times its limit.
    """
    prompt, completion = worst.prompt, BEYOND * worst.completion
    most = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return {k: min(n, most[k]) for k, n in usage.items()} if usage else None


def billed(usage: Mapping[str, int] | None, worst: Tokens) -> Tokens:
    """What one attempt is charged: the server's figures as limited by `believed`, or the worst case if there are
    none.
    """
    known = usage or {}
    return Tokens(known.get("prompt_tokens", worst.prompt), known.get("completion_tokens", worst.completion))


@dataclass
class CostEstimate:
    """Sums over questions, before asking: the likely usage, and the maximum if each is asked once."""

    requests: int = 0
    likely: Tokens = NOTHING
    most: Tokens = NOTHING

    def add(self, body: dict[str, Any], line: str) -> None:
        size = len(line.encode())
        self.requests += 1
        self.likely += Tokens(size // BYTES_PER_TOKEN, ANSWER_TOKENS)
        self.most += Tokens(size, worst_case(body, b"").completion)

    def text(self, prices: Prices | None) -> str:
        tokens = (
            f"{self.requests:,} requests, about {self.likely.prompt:,} tokens in and {self.likely.completion:,} out"
        )
        return tokens + (
            f"; about {prices.cost(self.likely):.2f}, at most {prices.cost(self.most):.2f} if none is asked again"
            if prices
            else ""
        )


class Budget:
    """Tracks what is spent and what is in flight; `reserve` waits while the cap could be exceeded, and raises if
    waiting can't help.

    A capped run keeps `spent.json` at what is spent and in flight, written before each request is sent and after each
    answer: after a kill, the requests that were in flight count as spent, at their worst case.
    """

    def __init__(self, where: Path, live: Tokens = NOTHING, elsewhere: Tokens = NOTHING, terms: Terms = FREE) -> None:
        """`live`, `elsewhere`: tokens reported by the live engine's and by other engines' answers on disk."""
        self._ledger, self._prices, self._cap = where / LEDGER, terms.prices, terms.cap
        self._written = _ledger(self._ledger)
        self._elsewhere = elsewhere
        self.spent = (
            Tokens(max(live.prompt, self._written.prompt), max(live.completion, self._written.completion)) + elsewhere
        )
        self.open = NOTHING
        self._changed = asyncio.Event()
        self._alone = threading.Lock()  # a write goes on in its thread after its task is canceled

    @property
    def cost(self) -> float | None:
        return self._prices.cost(self.spent) if self._prices else None

    async def reserve(self, worst: Tokens) -> None:
        """Reserves the worst case.

        Raises:
            CapReachedError: it doesn't fit, and nothing in flight could make room.
        """
        if self._cap is not None and self._prices is not None:
            while self._prices.cost(self.spent + self.open + worst) > self._cap:
                if self.open == NOTHING:
                    raise CapReachedError
                self._changed.clear()
                await self._changed.wait()
        self.open += worst
        await self._record()

    async def settle(self, worst: Tokens, used: Tokens) -> None:
        """Replaces a reservation with the actual usage: as reported, NOTHING if nothing was billed, `worst` if
        unknown.
        """
        self.spent += used  # before `open`, so that a thread that writes both never misses tokens
        self.open -= worst
        self._changed.set()
        await self._record()

    def close(self) -> None:
        """Writes the exact amount at a clean exit."""
        self.open = NOTHING
        if self.spent != NOTHING:
            self._write()

    async def _record(self) -> None:
        if self._cap is not None:
            await asyncio.to_thread(self._write)

    def _write(self) -> None:
        """Writes the current sum, durably; changes that come in meanwhile share the next write."""
        with self._alone:
            tokens = self.open + self.spent - self._elsewhere
            if tokens == self._written:
                return
            staged = fresh(self._ledger.with_suffix(".tmp"))
            with naming(self._ledger), staged.open("w", encoding="utf-8") as file:
                json.dump({"prompt_tokens": tokens.prompt, "completion_tokens": tokens.completion}, file)
                file.flush()
                os.fsync(file.fileno())
            staged.replace(self._ledger)
            self._written = tokens


def _ledger(path: Path) -> Tokens:
    if not path.exists():
        return NOTHING
    try:
        written = json.loads(read_text(path, "the ledger of `helmbench judge`", LEDGER_BYTES))
        counts = [written[k] for k in ("prompt_tokens", "completion_tokens")]
    except (ValueError, LookupError, TypeError, RecursionError):
        counts = []
    if not counts or not all(type(n) is int and 0 <= n <= MOST_TOKENS for n in counts):
        raise ValueError(
            f"{path}: is not what `helmbench judge` wrote; expected prompt_tokens and completion_tokens. Delete it "
            "to count from the replies"
        )
    return Tokens(*counts)
