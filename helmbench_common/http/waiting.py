"""One policy for every server that is asked: which failures are worth another try, after how long, and when it is
enough.

The judge's engine and the task's requests both build their retries from these parts, on tenacity. An attempt returns
what came of it, or a `Trouble`; nothing is retried that isn't one, and each attempt is a call of the asker's own, so
that a budget can be reserved before it leaves.
"""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from tenacity import AsyncRetrying, RetryCallState, retry_if_result, wait_random_exponential
from tenacity.stop import stop_base
from tenacity.wait import wait_base

PATIENCE = 600.0  # seconds: nobody waits longer than this for one answer, whatever the server asks for
BACKOFF = 1.0  # seconds: the first wait is at most so long, each further one at most twice the one before
LONGEST_PAUSE = 60.0  # seconds between two attempts, unless the server asks for more
AGAIN = frozenset({408, 409, 425, 429})  # and every 5xx
REDIRECTS = frozenset({301, 302, 303, 307, 308})  # never followed: key and prompts would go to another host
WRONG_ADDRESS = REDIRECTS | {401, 404, 405}  # of no question: the key, the model's name or the path is wrong
HOPELESS = WRONG_ADDRESS | {402, 403, 407}  # where nobody filters by status, these are of no question either
NO_QUOTA = "insufficient_quota"  # comes with 429, and waiting doesn't help
NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{0,15})?|\.[0-9]{1,15}")


class Trouble(NamedTuple):
    """An attempt worth another one. `paid`: the server may have worked for it, so few are made."""

    reason: str
    paid: bool = False
    wait: float = 0.0  # seconds that the server asked for
    status: int | None = None
    connected: bool = True


def worth_another(status: int) -> bool:
    """Whether the same request may go well later."""
    return status in AGAIN or status >= 500


class WaitAsTold(wait_base):
    """Seconds before the next attempt: drawn between nothing and a bound that doubles, or what the server asked for."""

    def __init__(self) -> None:
        self._drawn = wait_random_exponential(multiplier=BACKOFF, max=LONGEST_PAUSE)

    def __call__(self, retry_state: RetryCallState) -> float:
        return max(_trouble(retry_state).wait, self._drawn(retry_state))


class StopAfterWaiting(stop_base):
    """Enough when the waits, with the next one, would be longer than `patience` seconds. Attempts don't count."""

    def __init__(self, patience: float) -> None:
        self._patience = patience

    def __call__(self, retry_state: RetryCallState) -> bool:
        return retry_state.idle_for + retry_state.upcoming_sleep > self._patience


class StopAfterPaid(stop_base):
    """Enough when so many attempts of one request were paid for and lost. One object for each request."""

    def __init__(self, most: int) -> None:
        self._left = most

    def __call__(self, retry_state: RetryCallState) -> bool:
        self._left -= _trouble(retry_state).paid
        return self._left <= 0


def retrying(stop: stop_base, sleep: Callable[[float], Awaitable[None]]) -> AsyncRetrying:
    """Calls an attempt until it returns no `Trouble`, or until `stop`; the last one's is then returned.

    What an attempt raises ends it at once. `statistics["attempt_number"]` counts; one object for each request.
    """
    return AsyncRetrying(
        sleep=sleep,
        stop=stop,
        wait=WaitAsTold(),
        retry=retry_if_result(lambda outcome: isinstance(outcome, Trouble)),
        retry_error_callback=_trouble,
    )


def _trouble(retry_state: RetryCallState) -> Trouble:
    assert retry_state.outcome is not None  # tenacity asks after an attempt
    found: Trouble = retry_state.outcome.result()
    return found


def asked_to_wait(headers: Mapping[str, Any]) -> float:
    """Seconds that the server wants to be left alone, from Retry-After-Ms or Retry-After; 0 without either."""
    milliseconds = str(headers.get("Retry-After-Ms", ""))
    return float(milliseconds) / 1000 if NUMBER.fullmatch(milliseconds) else retry_after(headers.get("Retry-After"))


def retry_after(header: str | None) -> float:
    """The wait of a Retry-After header in seconds, given as such or as a date (RFC 9110, 10.2.3); 0 without one that
    can be read.
    """
    try:
        if NUMBER.fullmatch((header or "").strip()):
            return float(header or 0)
        return max(0.0, email.utils.parsedate_to_datetime(header or "").timestamp() - time.time())
    except (ArithmeticError, LookupError, OSError, TypeError, ValueError):  # all that Python's reader of dates raises
        return 0.0
