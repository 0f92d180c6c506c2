"""What a model reads first of a sample: its messages, under a system prompt or an instruction of one's own where one is
under test. Every runner takes them from here, so that two runners can't ask two things.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dataset_builder.composing.condition_text import condition_texts
from dataset_builder.schema import Row
from helmbench_common.formats.plain_file import read_text
from helmbench_common.formats.refused import FormatError
from judge.replies.errors import RunError
from judge.replies.schema import OwnPrompt
from judge.replies.script import ChatMessages, segments


class PromptUnderTest(NamedTuple):
    """A system prompt under test, which takes the place of every condition's own text. `conditions`: these texts, by
    scenario and condition.
    """

    file: Path
    text: str
    conditions: Mapping[tuple[str, str], str]

    @property
    def identity(self) -> OwnPrompt:
        """What a run records of it: whoever reads the run sees by this that the model read other conditions."""
        return OwnPrompt(file=self.file.name, sha256=hashlib.sha256(self.text.encode()).hexdigest())


def read_prompt(file: Path, rows: Iterable[Row]) -> PromptUnderTest:
    """A system prompt under test. `rows`: all samples of the release.

    Raises:
        RunError: a file that can't be read, or is empty.
    """
    try:
        text = read_text(file, "a text file with the system prompt under test").strip()
    except FormatError as error:
        raise RunError(str(error)) from None
    if not text:
        raise RunError(f"{file}: is empty; expected the system prompt under test")
    return PromptUnderTest(file, text, condition_texts(rows))


def first_request(row: Mapping[str, Any], tested: PromptUnderTest | None = None, instruction: str = "") -> ChatMessages:
    """A benchmark sample's first request, from its row as it stands in the dataset.

    Raises:
        RunError: the condition's text can't be told from the job, so it can't be replaced.
    """
    messages = segments(row["messages"])[0]
    if tested is not None:
        own, text = tested.conditions.get((row["scenario"], row["condition"])), messages[0]["content"]
        if own is None or not text.startswith(own):
            raise RunError(
                f"{row['id']}: where its condition's text ends can't be told; it can't be replaced by a prompt of "
                "one's own"
            )
        messages[0] = {"role": "system", "content": tested.text + text.removeprefix(own)}
    return with_instruction(messages, instruction)


def with_instruction(messages: ChatMessages, instruction: str | None) -> ChatMessages:
    """The messages with an instruction before the sample's own system text, or as its system text where it has none."""
    if not instruction:
        return messages
    own = messages[0]["content"] if messages[0]["role"] == "system" else ""
    rest = messages[1:] if own else messages
    return [{"role": "system", "content": "\n\n".join(t for t in (instruction, own) if t)}, *rest]
