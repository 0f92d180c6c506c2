"""Plays a sample's conversation: scripted turns, and live ones that the model under test answers.

Inspect's own `generate` sends the requests, so its limits, cache, retries and viewer apply. Each live turn's reply, and
how it ended, is kept in the sample's store, from which `judge.replies.inspect_log` reads the run back.
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
    """Plays a sample to its end: after each live turn the script goes on, the model's own words behind it."""

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
            if then is None or (finish or "").startswith("error"):  # what nobody said can't be answered
                break
            history = continued(history, text, then)
        return state

    return solve


def chat(messages: ChatMessages) -> list[ChatMessage]:
    """Messages as Inspect has them, each content a plain text."""
    return [SAYS[m["role"]](content=m["content"]) for m in messages]


def plain(messages: list[ChatMessage]) -> ChatMessages:
    """Inspect's messages as ours."""
    return [{"role": m.role, "content": m.text} for m in messages]


def said(output: ModelOutput) -> tuple[str, str | None]:
    """A reply and how it ended, in the words of `judge.replies.run.Reply`: the same that the lm-eval tasks log."""
    if not output.choices:
        return "", "error: an answer without choices"
    message, reason = output.choices[0].message, output.stop_reason
    if reason == "model_length":  # the provider's refusal of the request stands where a reply would
        return "", f"error: over-long: {output.completion}"[:300]
    refused = isinstance(message.content, list) and any(
        isinstance(part, ContentText) and part.refusal for part in message.content
    )
    if refused:
        return output.completion, "refusal"
    return output.completion, ended(reason)


def ended(reason: StopReason) -> str | None:
    """Why a model stopped, in the words of the batch format; None where nobody said."""
    return {"max_tokens": "length", "unknown": None}.get(reason, reason)
