"""What a person would see of a reply."""

from __future__ import annotations

import re

from helmbench_common import jsonl

NO_REPLY = (
    "(no reply)"  # stands in the history for a turn in which the model said nothing; templates refuse empty turns
)
LM_EVAL_NULL = "LMEVAL_MODEL_NONE_ANSWER_PLACEHOLDER"  # lm-eval's word for `content: null`
THINKING = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)


def visible(text: str) -> str:
    """The reply a person would see: reasoning blocks removed, and halves of surrogate pairs, which are no characters,
    replaced.
    """
    # Some servers strip the opening tag and leave the closing one.
    return jsonl.plain(THINKING.sub("", text).rpartition("</think>")[2].strip())
