"""Other people's text as data inside a prompt: it can't close the fence it stands in, nor speak as a role.

Brackets are broken by a visible dot, never by a character without width: Unicode clean-up on the way to the judge
(NFKC, removal of zero-width characters) must not put a fence together again.
"""

from __future__ import annotations

import re
import unicodedata
from functools import partial

from corpora.normalise import stream_safe

DOT = "·"
OPENING = dict.fromkeys("<＜﹤‹〈⟨˂𝈶❮", 1) | dict.fromkeys("«≪《⟪", 2) | {"⋘": 3}
CLOSING = dict.fromkeys(">＞﹥›〉⟩˃𝈷❯", 1) | dict.fromkeys("»≫》⟫", 2) | {"⋙": 3}
# What may stand between two brackets without a reader seeing it: spaces, fillers, marks and characters of no width.
GAP = (
    "[ "
    "\t\u00a0\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\u0300-\u036f]*"
)
RUNS = tuple(
    (re.compile(f"{one}(?:{GAP}{one})*"), brackets, plain)
    for brackets, plain in ((OPENING, "<"), (CLOSING, ">"))
    for one in ("[" + "".join(map(re.escape, brackets)) + "]",)
)
# Chat templates read these as the start of a role or the end of a text wherever they stand (`<|im_end|>`, `[/INST]`).
CONTROL = re.compile(
    r"<(?=[|｜])|(?<=[|｜])>|<(?=/?s>|(?:start|end)_of_turn>|/?(?:bos|eos|pad|unk)>|end_of_utterance>)|\[(?=/?(?:INST|SYS(?:TEM_PROMPT)?|AVAILABLE_TOOLS|TOOL_\w+)\])",
    re.IGNORECASE,
)
TAGS = re.compile("[\U000e0000-\U000e007f]")  # letters that nobody sees and a model reads


def fence(text: str) -> str:
    """`text` without three brackets in a row, look-alikes and hidden gaps included, and without a chat template's
    marks.

    Fencing twice changes nothing more. One or two brackets stay as they are.
    """
    text = TAGS.sub("", text)
    for runs, brackets, plain in RUNS:
        text = runs.sub(partial(_broken, brackets, plain), text)
    return CONTROL.sub(lambda m: m[0] + DOT if m[0] != ">" else DOT + ">", text)


def _broken(brackets: dict[str, int], plain: str, run: re.Match[str]) -> str:
    width = sum(brackets.get(c, 0) for c in run[0])
    return DOT.join(plain * width) if width >= 3 else run[0]


def compared(text: str) -> str:
    """The form in which a quote and its reply are compared: fenced, NFKC, one kind of quote mark, dash, space and
    ellipsis.

    Case, characters without width and Markdown's asterisks are dropped too: judges copy words, not typography.
    """
    folded = unicodedata.normalize("NFKC", stream_safe(fence(text)))
    folded = "".join(
        c for c in folded if unicodedata.category(c) != "Cf" and not "\ufe00" <= c <= "\ufe0f" and c != "*"
    )
    folded = re.sub(r"[\"'`´‘’‚‛“”„‟‹›«»′″‵‶「」『』]+", "'", folded)
    folded = re.sub(r"[\u2010-\u2015\u2212]", "-", folded)
    folded = re.sub(r"\.(?:\s?\.){2,}", "...", folded)
    return re.sub(r"\s+", " ", folded).strip().casefold()
