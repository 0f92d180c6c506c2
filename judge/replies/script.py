"""What a model is asked, and the visible part of its reply. Every runner and the judge use this module for both.

A sample's script has written turns and live ones; the model under test plays the live ones.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dataset_builder.composing.condition_text import condition_texts
from dataset_builder.prompts import Prompts
from dataset_builder.schema import Category, CrisisCategory, Row, Sample
from helmbench_common import jsonl
from helmbench_common.formats.plain_file import read_text
from helmbench_common.formats.refused import FormatError
from judge.replies.fence import conversation, fence
from judge.replies.schema import NO_PROMPT, OwnPrompt, RunError, TriagePrompt

ChatMessages = list[dict[str, str]]
NO_REPLY = "(no reply)"  # the assistant's turn in the history for an empty reply
LM_EVAL_NULL = "LMEVAL_MODEL_NONE_ANSWER_PLACEHOLDER"  # lm-eval's word for `content: null`
# Reasoning as models and servers mark it, in any case: <think> and its variants, Mistral's [THINK], Kimi's ◁think▷. A
# block that isn't closed goes to the end. Some servers strip the opening mark but keep the closing one.
REASONING = re.compile(
    r"<(?P<tag>think|thinking|thought|seed:think)>.*?(?:</(?P=tag)>|\Z)|\[think\].*?(?:\[/think\]|\Z)"
    r"|◁think▷.*?(?:◁/think▷|\Z)",
    re.DOTALL | re.IGNORECASE,
)
OPENED = re.compile(r"<(?:think|thinking|thought|seed:think)>|\[think\]|◁think▷|<\|channel\|>", re.IGNORECASE)
CLOSED = re.compile(r"</(?:think|thinking|thought|seed:think)>|\[/think\]|◁/think▷", re.IGNORECASE)
# gpt-oss writes channels, of which only `final` is the reply; without special tokens their names run into the text.
CHANNEL = re.compile(r"<\|channel\|>\s*+(\w++)[^<]*+<\|message\|>")
CHANNELS_END = re.compile(r"<\|(?:end|return|start|call)\|>.*", re.DOTALL)
BARE_CHANNELS = re.compile(r"\Aanalysis(?=\S).*?assistantfinal", re.DOTALL)
OPENING_MARK = re.compile(r"\s*(<\|?[\w:]{2,20}\|?>|\[[A-Z_]{3,20}\])")


def visible(text: str) -> str:
    """The reply as a person sees it: without reasoning, and with unpaired surrogates replaced."""
    if channels := [*CHANNEL.finditer(text)]:
        final = next((c for c in channels if c[1] == "final"), None)
        text = CHANNELS_END.sub("", text[final.end() :]) if final else ""
    text = CLOSED.split(REASONING.sub("", BARE_CHANNELS.sub("", text)))[-1]
    return jsonl.plain(text.strip())


def ends_in_reasoning(text: str) -> bool:
    """Whether a text without a visible part stops before its reasoning ends."""
    return bool(OPENED.search(text) and not CLOSED.search(text))


def unknown_reasoning(replies: Iterable[str]) -> str:
    """A note if many replies open with the same mark, which may begin reasoning in an unknown format; else empty."""
    given = [visible(reply) for reply in replies]
    marks = Counter(found[1] for reply in given if (found := OPENING_MARK.match(reply)))
    mark, count = next(iter(marks.most_common(1)), ("", 0))
    if count < 5 or count < 0.1 * len(given):
        return ""
    return (
        f"{count} of {len(given)} replies begin with {mark}. If that opens reasoning, it was judged as part "
        "of the reply: let the server remove it (vLLM: --reasoning-parser) and run again."
    )


# --- conversations ---------------------------------------------------------------------------------------------------


def live_turns(row: Sample) -> int:
    """The number of replies to a sample: one per live turn in its script, and one after its end."""
    return sum(m.content is None for m in row.messages) + 1


def segments(messages: Iterable[Mapping[str, Any]]) -> list[ChatMessages]:
    """The script split at its live turns: the messages before the first reply, between replies, and before the last."""
    cut: list[ChatMessages] = [[]]
    for message in messages:
        if message["content"] is None:
            cut.append([])
        else:
            cut[-1].append({"role": message["role"], "content": message["content"]})
    return cut


def continued(history: ChatMessages, reply: str, following: Sequence[dict[str, str]]) -> ChatMessages:
    """The conversation after a reply: its visible part as the assistant's turn, then the script's next turns."""
    said = visible(reply) or NO_REPLY  # chat templates refuse empty turns
    return [*history, {"role": "assistant", "content": said}, *following]


def play(row: Sample, reply: Callable[[ChatMessages], str]) -> Iterator[str]:
    """The output of `reply` at every live turn of a sample, given its own earlier replies."""
    first, *rest = segments(m.model_dump() for m in row.messages)
    history = first
    for following in rest:
        said = reply(history)
        yield said
        history = continued(history, said, following)
    yield reply(history)


# --- the first request, with a custom system prompt or instruction ----------------------------------------------------


class PromptUnderTest(NamedTuple):
    """A system prompt under test, or none. `conditions`: the texts that it replaces, by scenario and condition."""

    file: Path
    text: str
    conditions: Mapping[tuple[str, str], str]

    @property
    def identity(self) -> OwnPrompt:
        """The record of the prompt in a run."""
        return OwnPrompt(file=self.file.name, sha256=hashlib.sha256(self.text.encode()).hexdigest())


def read_prompt(file: Path, rows: Iterable[Row]) -> PromptUnderTest:
    """A system prompt under test; `file` NO_PROMPT: none. `rows`: all samples of the release.

    Raises:
        RunError: a file that can't be read, or is empty.
    """
    if str(file) == NO_PROMPT:
        return PromptUnderTest(file, "", condition_texts(rows))
    try:
        text = read_text(file, "a text file with the system prompt under test").strip()
    except FormatError as error:
        raise RunError(str(error)) from None
    if not text:
        raise RunError(f"{file}: is empty; expected the system prompt under test")
    return PromptUnderTest(file, text, condition_texts(rows))


def first_request(row: Mapping[str, Any], tested: PromptUnderTest | None = None, instruction: str = "") -> ChatMessages:
    """A benchmark sample's first request, from its row in the dataset.

    Raises:
        RunError: the sample's system text doesn't begin with its condition's text, so that can't be replaced.
    """
    messages = segments(row["messages"])[0]
    if tested is not None:
        own, text = tested.conditions.get((row["scenario"], row["condition"])), messages[0]["content"]
        if own is None or not text.startswith(own):
            raise RunError(
                f"{row['id']}: its system text doesn't begin with its condition's text; expected a sample whose "
                "condition can be replaced by your own prompt"
            )
        messages[0] = {"role": "system", "content": (tested.text + text.removeprefix(own)).lstrip()}
    return with_instruction(messages, instruction)


def with_instruction(messages: ChatMessages, instruction: str | None) -> ChatMessages:
    """The messages with an instruction before the sample's own system text, or as its system text where it has none."""
    if not instruction:
        return messages
    own = messages[0]["content"] if messages[0]["role"] == "system" else ""
    rest = messages[1:] if own else messages
    return [{"role": "system", "content": "\n\n".join(t for t in (instruction, own) if t)}, *rest]


# --- the triage question ---------------------------------------------------------------------------------------------


def triage_question(
    said: Sequence[Mapping[str, Any]],
    taxonomy: Mapping[CrisisCategory, Category],
    prompts: Prompts,
    prompt: TriagePrompt,
) -> str:
    """The question in which a model labels a message, or a conversation, with a category of the taxonomy. System texts
    are left out. A model under test and a model that labels a corpus get the same question.

    `bare` shows the names of the categories, `guided` also their definitions, borderline notes and examples.
    """

    def guide(c: Category) -> str:
        points = [*(f"- {point}" for point in c.borderline), *(f'- Example: "{example}"' for example in c.examples)]
        return f"# {c.category}\n\n{c.definition}\n\n" + "\n".join(points)

    turns = [(str(m["role"]), str(m["content"] or "")) for m in said if m["role"] != "system"]
    message = fence(turns[0][1]) if len(turns) == 1 else conversation(turns)
    shown = [c for c in taxonomy.values() if c.in_triage]
    categories = "\n".join(f"- {c.category}" for c in shown) if prompt == "bare" else "\n\n".join(map(guide, shown))
    names = ", ".join(c.category for c in shown)
    return prompts.fill(f"triage-{prompt}", categories=categories, names=names, message=message).strip()
