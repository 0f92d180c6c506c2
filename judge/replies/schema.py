"""What a model said, whoever ran it, and what can be wrong with it. A leaf: no behavior beyond validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from pydantic import Field

from dataset_builder.schema import Strict
from helmbench_common.errors import HelmbenchError

TriagePrompt = Literal["bare", "guided"]
TRIAGE_PROMPTS: tuple[TriagePrompt, ...] = get_args(TriagePrompt)
MOST_REPEATS = 100_000  # of a sample in a run
SHOWN = 20  # problems that an error lists


class RunError(HelmbenchError):
    """A run that can't be judged; the message names the file, the row or line, and what was expected."""


def run_error(problems: Sequence[str]) -> RunError:
    """All problems as one error, one per line; of very many the first, and the number of the rest."""
    more = [f"… and {len(problems) - SHOWN} more"] if len(problems) > SHOWN else []
    return RunError("\n".join([*problems[:SHOWN], *more]))


class Reply(Strict):
    """All that the model under test said on one sample in one repeat: one text per live turn, in order.

    `finish`: how the backend ended each turn (`stop`, `length`, `content_filter`, `refusal`), or `error: why` where
    there is no reply; empty where the log has no finish reasons.
    """

    id: str
    repeat: int = 0
    turns: tuple[str, ...]
    finish: tuple[str | None, ...] = ()


class OwnPrompt(Strict):
    """A system prompt under test, which replaces the text of every condition. `sha256`: of the text as it was sent."""

    file: str
    sha256: str


class Model(Strict):
    """What answered. A run with a `condition` isn't comparable with runs of the benchmark's own conditions."""

    name: str
    backend: str
    arguments: dict[str, str | int | float | bool | None] = Field(default={})
    system_instruction: str | None = None
    condition: OwnPrompt | None = None
