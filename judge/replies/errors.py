"""What can be wrong with a run or a file of labels, said in one line each to the person who can mend it."""

from __future__ import annotations

from collections.abc import Sequence

from helmbench_common.errors import HelmbenchError


class RunError(HelmbenchError):
    """A run that can't be judged; the message names the file, the row or line, and what was expected."""


SHOWN = 20  # problems that are listed; the rest is counted


def run_error(problems: Sequence[str]) -> RunError:
    """All that is wrong as one error, a line each; of very many the first, and how many more there are."""
    return RunError(
        "\n".join([*problems[:SHOWN], *([f"… and {len(problems) - SHOWN} more"] if len(problems) > SHOWN else [])])
    )
