"""Plays a sample's conversation: scripted turns, and live turns that the model under test answers.

Inspect's `generate` sends the requests, so its limits, cache, retries and viewer apply. The sample's store keeps each
live turn's reply and finish reason; `judge.replies.inspect_log` reads the run from it.
"""

from __future__ import annotations

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ContentText,
    ModelOutput,
    StopReason,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver

from judge.replies.inspect_log import FINISHES, SCRIPT, TURNS
from judge.replies.script import ChatMessages, continued

SAYS = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}


@solver
def play() -> Solver:
    """Plays a sample to its end: after each live turn the model's reply is added and the script continues."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        history = plain(state.messages)
        following: list[ChatMessages] = state.metadata.get(SCRIPT, [])
        turns, ends = list[str](), list[str | None]()
        for then in [*following, None]:
            state.messages = chat(history)
            state = await generate(state)
            text, finish = said(state.output)
            turns.append(text)
            ends.append(finish)
            state.store.set(TURNS, turns)
            state.store.set(FINISHES, ends)
            if then is None or (finish or "").startswith("error"):  # the script can't continue after a missing reply
                break
            history = continued(history, text, then)
        return state

    return solve


def chat(messages: ChatMessages) -> list[ChatMessage]:
    """Our messages as Inspect's, with plain text content."""
    return [SAYS[m["role"]](content=m["content"]) for m in messages]


def plain(messages: list[ChatMessage]) -> ChatMessages:
    """Inspect's messages as ours."""
    return [{"role": m.role, "content": m.text} for m in messages]


def said(output: ModelOutput) -> tuple[str, str | None]:
    """A reply and its finish reason, in the terms of `judge.replies.run.Reply`, as the lm-eval tasks log them."""
    if not output.choices:
        return "", "error: an answer without choices"
    message, reason = output.choices[0].message, output.stop_reason
    if reason == "model_length":  # the completion contains the provider's error message, not a reply
        return "", f"error: over-long: {output.completion}"[:300]
    refused = isinstance(message.content, list) and any(
        isinstance(part, ContentText) and part.refusal for part in message.content
    )
    if refused:
        return output.completion, "refusal"
    return output.completion, ended(reason)


def ended(reason: StopReason) -> str | None:
    """The finish reason in the terms of the batch format; None if unknown."""
    return {"max_tokens": "length", "unknown": None}.get(reason, reason)
