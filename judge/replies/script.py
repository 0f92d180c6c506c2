"""A sample's script: the turns that are written, and the live ones, which the model under test plays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from dataset_builder.schema import Sample
from judge.replies.visible import NO_REPLY, visible

ChatMessages = list[dict[str, str]]


def live_turns(row: Sample) -> int:
    """How many replies a sample asks of the model: every live turn in its script, and the one after its end."""
    return sum(m.content is None for m in row.messages) + 1


def segments(messages: Iterable[Mapping[str, Any]]) -> list[ChatMessages]:
    """The script cut at its live turns: what is said before the first reply, between replies, and before the last."""
    cut: list[ChatMessages] = [[]]
    for message in messages:
        if message["content"] is None:
            cut.append([])
        else:
            cut[-1].append({"role": message["role"], "content": message["content"]})
    return cut


def continued(history: ChatMessages, reply: str, following: Sequence[dict[str, str]]) -> ChatMessages:
    """The conversation after a reply: what a person saw of it stands as the assistant's turn, then the script goes
    on.
    """
    said = visible(reply) or NO_REPLY  # a template refuses empty turns
    return [*history, {"role": "assistant", "content": said}, *following]


def play(row: Sample, reply: Callable[[ChatMessages], str]) -> Iterator[str]:
    """What `reply` says on every live turn of a sample, its own words behind it."""
    first, *rest = segments(m.model_dump() for m in row.messages)
    history = first
    for following in rest:
        said = reply(history)
        yield said
        history = continued(history, said, following)
    yield reply(history)
