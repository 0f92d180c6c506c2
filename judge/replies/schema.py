"""What a model said, whoever ran it. A leaf: no behaviour beyond validation."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import Field

from dataset_builder.schema import Strict

TriagePrompt = Literal["bare", "guided"]
MOST_REPEATS = 100_000  # of a sample in a run: figures count them in numbers that have a size
TRIAGE_PROMPTS: tuple[TriagePrompt, ...] = get_args(TriagePrompt)


class Reply(Strict):
    """All that the model under test said on one sample in one repeat: one text per live turn, in order.

    `finish` is what the backend said of each (`stop`, `length`, `content_filter`, `refusal`), where it was kept, or
    `error: why` where it gave no reply; empty where nothing was kept.
    """

    id: str
    repeat: int = 0
    turns: tuple[str, ...]
    finish: tuple[str | None, ...] = ()


class OwnPrompt(Strict):
    """A system prompt under test, which stood in the place of every condition's text: `sha256` is that of the text as
    it was sent.
    """

    file: str
    sha256: str


class Model(Strict):
    """What answered. A run with a `condition` is comparable with no run of the benchmark's own conditions."""

    name: str
    backend: str
    arguments: dict[str, str | int | float | bool | None] = Field(default={})
    system_instruction: str | None = None
    condition: OwnPrompt | None = None
