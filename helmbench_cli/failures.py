"""Which error ends a command with which exit code. What isn't listed is a fault of ours, and shows its traceback."""

from __future__ import annotations

import traceback

from dataset_builder.release import ReleaseError
from helmbench_cli.common import reason, wrong
from helmbench_cli.root import AGAIN, BAD_INPUT, CAPPED, FAULT, SHUT, STOPPED, UNREACHABLE
from judge.llm.errors import BudgetError, EngineError
from lm_eval_tasks.registering import RegistrationError
from replies.errors import RunError

CODES: tuple[tuple[type[BaseException], int], ...] = (
    (BudgetError, CAPPED),
    (EngineError, UNREACHABLE),
    (RegistrationError, SHUT),
    (ReleaseError, BAD_INPUT),
    (RunError, BAD_INPUT),
    (ValueError, BAD_INPUT),
    (OSError, UNREACHABLE),
)


def exit_code(error: BaseException) -> int:
    """Prints the error's one message and returns its exit code; where a user can't mend it, all that is known of it."""
    if isinstance(error, KeyboardInterrupt):
        wrong(AGAIN)
        return STOPPED
    for kind, code in CODES:
        if isinstance(error, kind):
            wrong(reason(error))
            return code
    traceback.print_exception(error)
    return FAULT
