"""Errors in asking a language model, each with a one-line message for the person who can fix it."""

from __future__ import annotations

from helmbench_common.errors import HelmbenchError


class EngineError(HelmbenchError):
    """The judge's endpoint is unusable (refused, unknown model, no key); the message says why."""

    exit_code = 3


class CapReachedError(Exception):
    """The next question could exceed the cap."""


class BudgetError(HelmbenchError):
    """A run stopped before exceeding its cap; the message says how to continue."""

    exit_code = 4
