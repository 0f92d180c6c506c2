"""The retry policy of the runner and the judge: which failures to retry, after how long, how often."""

from __future__ import annotations

import email.utils
import itertools
import random
import re
import time
from asyncio import sleep
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypeVar

PATIENCE = 600.0  # seconds of waiting for one answer, even if the server asks for more
BACKOFF = 1.0  # seconds: upper bound of the first wait; it doubles with each attempt
LONGEST_PAUSE = 60.0  # seconds between two attempts, unless the server asks for more
IN_A_ROW = 20  # this many failures in a row, or as many as are sent at once, mean that the server is failing
AGAIN = frozenset({408, 409, 425, 429})  # and every 5xx
REDIRECTS = frozenset({301, 302, 303, 307, 308})  # never followed: key and prompts would go to another host
WRONG_ADDRESS = REDIRECTS | {401, 404, 405}  # the key, model name or path is wrong, for every request
HOPELESS = WRONG_ADDRESS | {402, 403, 407}  # the same, unless a content filter answers with these
NO_QUOTA = "insufficient_quota"  # comes with 429, but waiting doesn't help
NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{0,15})?|\.[0-9]{1,15}")
T = TypeVar("T")


class Trouble(NamedTuple):
    """An attempt without an answer. `paid`: the server may have charged for it, so these are retried less."""

    reason: str
    paid: bool = False
    wait: float = 0.0  # seconds that the server asked for
    status: int | None = None
    connected: bool = True


def worth_another(status: int) -> bool:
    """Whether retrying the same request may succeed."""
    return status in AGAIN or status >= 500


async def retried(
    attempt: Callable[[], Awaitable[T | Trouble]],
    patience: float = PATIENCE,
    most: float = float("inf"),
    most_paid: float = float("inf"),
) -> tuple[T | Trouble, int]:
    """Calls `attempt` until it returns no Trouble; returns its last outcome and the number of attempts.

    Stops after `most` attempts, after `most_paid` that may have been charged, and before the waits exceed `patience`
    seconds. An exception in an attempt propagates.
    """
    waited = 0.0
    for n in itertools.count(1):
        outcome = await attempt()
        if not isinstance(outcome, Trouble):
            break
        most_paid -= outcome.paid
        pause = max(outcome.wait, random.uniform(0, min(BACKOFF * 2.0 ** (n - 1), LONGEST_PAUSE)))
        waited += pause
        if n >= most or most_paid <= 0 or waited > patience:
            break
        await sleep(pause)
    return outcome, n


def retry_after(headers: Mapping[str, Any]) -> float:
    """The wait in seconds that the server asks for in Retry-After-Ms or Retry-After (RFC 9110, 10.2.3), else 0."""
    milliseconds, seconds = str(headers.get("Retry-After-Ms", "")), str(headers.get("Retry-After", "")).strip()
    if NUMBER.fullmatch(milliseconds):
        return float(milliseconds) / 1000
    if NUMBER.fullmatch(seconds):
        return float(seconds)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(seconds).timestamp() - time.time())
    except (ArithmeticError, LookupError, OSError, TypeError, ValueError):  # everything Python's date parser raises
        return 0.0
