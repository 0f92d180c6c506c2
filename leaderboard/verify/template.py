"""What a chat template may write around messages: marks, names of roles, and nothing else without a word about it."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterable, Iterator

from leaderboard.schema import RESPONSES, Problem
from leaderboard.verify.dates import MARK, SHOWN

WORDS, MOST_WORDS = 12, 2000  # letters around the messages: more are shown, more still are refused
MOST_SIGNS = 20_000  # characters of any kind: a template with all its marks and tools has fewer
MOST_PLAIN = 64  # ASCII signs around the messages: lines and brackets of a template
MARKS_EACH = 8  # marks and role names between two messages; what goes beyond are words
# What known templates write around messages. Any other token's letters count as words: `<hand><over>` could be a
# prompt, too.
TOKENS = (
    "im_start|im_end|im_sep|im_middle|begin_of_text|end_of_text|endoftext|endofprompt|start_header_id|end_header_id|"
    "eot_id|eom_id|eot|start_of_turn|end_of_turn|start_of_role|end_of_role|start|end|message|channel|return|"
    "header_start|header_end|turn|think|sop|gMASK|s|bos|eos|pad|begin▁of▁sentence|end▁of▁sentence|"
    "INST|SYS|SYSTEM_PROMPT|BOS_TOKEN|START_OF_TURN_TOKEN|END_OF_TURN_TOKEN|SYSTEM_TOKEN|USER_TOKEN|CHATBOT_TOKEN|"
    "system|user|assistant|model|observation"
)
MARKS = re.compile(
    rf"<<?/?[|｜]?(?:{TOKENS})[|｜]?>>?|\[/?(?:{TOKENS})\]|\b(?:system|user|assistant|model|human)\b|{re.escape(MARK)}",
    re.IGNORECASE,
)
LETTER = re.compile(r"[^\W\d_]")


def foreign(piece: str) -> str:
    """What of the text between two messages is none of the marks that templates are known to write."""
    return MARKS.sub("", piece, count=MARKS_EACH)


def _own(text: str) -> bool:
    return LETTER.search(text) is not None or _signs(text)


def _signs(text: str) -> bool:
    """Whether a text has digits, or emoji, marks, wide spaces and other signs that are neither ASCII nor a letter, or
    many that are ASCII: a hint needs no word.
    """
    plain = sum(c in string.punctuation for c in text)
    odd = any(c.isdigit() or (not c.isascii() and unicodedata.category(c)[0] in "SNPCMZ") for c in text)
    return odd or plain > MOST_PLAIN


def shown(arounds: Iterable[Iterable[str]]) -> tuple[list[Problem], list[Problem]]:
    """Problems and flags for what every request carries around its messages: a comparison can't tell a template's own
    words from smuggled ones.
    """
    problems: list[Problem] = []
    flags: list[Problem] = []
    arounds = list(arounds)
    if (longest := max((sum(len(foreign(p)) for p in around) for around in arounds), default=0)) > MOST_SIGNS:
        said = f"every request holds {longest:,} characters beside its messages; expected at most {MOST_SIGNS:,}"
        return [Problem("outside_text", RESPONSES, said)], []
    for pieces in sorted({tuple(p.strip() for p in around if _own(foreign(p))) for around in arounds}):
        text = " … ".join(pieces).replace(MARK, SHOWN)
        rest = [foreign(piece) for piece in pieces]
        letters = sum(len(LETTER.findall(piece)) for piece in rest)
        if letters > MOST_WORDS:
            said = f"every request holds {letters} letters beside its messages: {text[:300]!r}"
            problems.append(Problem("outside_text", RESPONSES, said))
        elif letters > WORDS or any(_signs(piece) for piece in rest):
            said = f"every request also holds words that are no message of the sample's: {text[:600]!r}"
            flags.append(Problem("template_text", RESPONSES, said))
    return problems, flags


def apart(one: str, other: str) -> tuple[str, str]:
    """Where two pieces differ: each without what they begin and end with alike."""
    start = _alike(one, other)
    one, other = one[start:], other[start:]
    end = _alike(one[::-1], other[::-1])
    return one[: len(one) - end], other[: len(other) - end]


def _alike(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def carries(parts: tuple[str, str]) -> Iterator[str]:
    """What a difference could say: `words`, `signs`; nothing where it is spaces and digits, as of a turn's number."""
    text = "".join(parts)
    if LETTER.search(text):
        yield "words"
    elif not all(c.isspace() or (c.isascii() and c.isdigit()) for c in text):
        yield "signs"
