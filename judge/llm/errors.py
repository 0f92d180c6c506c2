"""What can go wrong in asking a language model, said in one line each to the person who can mend it."""

from __future__ import annotations

from helmbench_common.errors import HelmbenchError


class EngineError(HelmbenchError):
    """The judge's endpoint can't be used at all (refused, unknown model, no key); the message says which."""

    exit_code = 3


class CapReachedError(Exception):
    """The next question could pass the cap."""


class BudgetError(HelmbenchError):
    """A run stopped before its cap could be passed; the message says how to go on."""

    exit_code = 4
