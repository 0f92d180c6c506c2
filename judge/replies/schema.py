"""A model's replies, from any runner, and errors about them. A leaf: no behavior beyond validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from pydantic import Field

from dataset_builder.schema import Strict
from helmbench_common.errors import HelmbenchError

TriagePrompt = Literal["bare", "guided"]
TRIAGE_PROMPTS: tuple[TriagePrompt, ...] = get_args(TriagePrompt)
MOST_REPEATS = 100_000  # per sample in a run
SHOWN = 20  # maximum number of problems in an error


class RunError(HelmbenchError):
    """A run that can't be judged; the message names the file, the row or line, and what was expected."""


def run_error(problems: Sequence[str]) -> RunError:
    """All problems as one error, one per line; if there are many, the first ones and the number of the rest."""
    more = [f"… and {len(problems) - SHOWN} more"] if len(problems) > SHOWN else []
    return RunError("\n".join([*problems[:SHOWN], *more]))


class Reply(Strict):
    """All replies of the model under test to one sample in one repeat: one text per live turn, in order.

    `finish`: how the backend ended each turn (`stop`, `length`, `content_filter`, `refusal`), or `error: why` if there
    is no reply; empty if the log has no finish reasons.
    """

    id: str
    repeat: int = 0
    turns: tuple[str, ...]
    finish: tuple[str | None, ...] = ()


NO_PROMPT = "none"  # in place of a file: samples keep their job, without a product's prompt


class OwnPrompt(Strict):
    """A system prompt under test, or NO_PROMPT, which replaces the text of every condition. `sha256`: of the text as
    sent.
    """

    file: str
    sha256: str


class Model(Strict):
    """The model that answered. `condition`: a prompt in place of the benchmark's conditions."""

    name: str
    backend: str
    arguments: dict[str, str | int | float | bool | None] = Field(default={})
    system_instruction: str | None = None
    condition: OwnPrompt | None = None
