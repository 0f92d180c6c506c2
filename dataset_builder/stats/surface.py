"""What a rule can measure on one message without understanding it: its length, its punctuation, its habits.

Each feature is a number per message; those of SHARES are 1 or 0. They are rules over characters and word lists, so
they count what looks like a request or a sentence, not what is one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
# A run of marks or of empty lines is tried from its beginning only: from each of its places it would take the square.
SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]+[\"'”’)\]]*(?=\s|$)|\n+")
REQUEST = re.compile(
    r"\b(?:please|pls|plz|help|need|advice|advise|suggestions?|(?:can|could|would|will) (?:you|u|someone|anyone)|"
    r"how (?:do|can|could|should|would|to|long|much|many|often)|wh(?:at|ich|ere|en|o) (?:do|can|could|should|would)|"
    r"should i|do i|(?:tell|give|show|send|teach|remind) me|let me know|looking for|i(?:'d| would) like|wondering)\b",
    re.IGNORECASE,
)
IMPERATIVE = re.compile(
    r"(?:add|answer|ask|book|calculate|cancel|change|check|compare|convert|correct|create|describe|draft|edit|explain|"
    r"find|fix|give|help|how|keep|list|look|make|name|order|plan|proofread|put|read|recommend|remind|remove|rewrite|"
    r"say|send|set|shorten|show|sort|suggest|summari[sz]e|tell|translate|turn|update|what|which|write)\b",
    re.IGNORECASE,
)
SWEARING = re.compile(
    r"\b(?:\w*fuck\w*|(?:bull|horse)?shit\w*|bitch\w*|bastards?|arseholes?|assholes?|(?:god)?damn(?:ed|it)?|"
    r"crap(?:py)?|wtf|piss(?:ed)?|bollocks|bloody hell)\b",
    re.IGNORECASE,
)
LIST_LINE = re.compile(r"^[^\S\n]*(?:[-*•–]|\d+[.)])\s", re.MULTILINE)
CONTRACTION = re.compile(r"\w['’](?:t|s|re|ve|ll|d|m)\b", re.IGNORECASE)
FIRST_PERSON = re.compile(r"\b(?:i|me|my|mine|myself)\b|\bim\b|\bive\b", re.IGNORECASE)
LOWER_I, UPPER_I = re.compile(r"\bi\b(?!\.)"), re.compile(r"\bI\b")
QUOTED = re.compile(r"[\"“”„«»]")
EMOJI = re.compile("[\U0001f000-\U0001faff\u2600-\u27bf]|[:;][-']?[()DP](?!\\w)")
FUNCTION_WORD = re.compile(
    r"(?:a|an|and|are|as|at|be|been|but|by|did|do|does|for|from|had|has|have|he|her|him|his|how|i|i'm|if|in|is|it|it's|"
    r"its|just|like|me|my|no|not|of|on|or|our|out|she|so|than|that|that's|the|their|them|then|there|they|this|to|up|was|"
    r"we|were|what|when|which|who|will|with|would|you|your)"
)
NUMBERS = (
    "words",
    "sentences",
    "words per sentence",
    "commas per 100 words",
    "contractions per 100 words",
    "first person per 100 words",
    "capitals per 100 letters",
)
SHARES = (
    "question mark",
    "request",
    "no capital letter",
    "no final punctuation",
    "only lower-case i",
    "swearing",
    "repetition",
    "line break",
    "list",
    "quotation marks",
    "digits",
    "exclamation mark",
    "emoji",
)
FEATURES = (*NUMBERS, *SHARES)


def features(text: str) -> dict[str, float]:
    """FEATURES → number, of one message, in that order."""
    words, said = WORD.findall(text), sentences(text)
    per_100 = 100 / max(1, len(words))
    letters = sum(map(str.isalpha, text))
    return {
        "words": len(words),
        "sentences": len(said),
        "words per sentence": len(words) / max(1, len(said)),
        "commas per 100 words": text.count(",") * per_100,
        "contractions per 100 words": len(CONTRACTION.findall(text)) * per_100,
        "first person per 100 words": len(FIRST_PERSON.findall(text)) * per_100,
        "capitals per 100 letters": 100 * sum(map(str.isupper, text)) / max(1, letters),
    } | {name: float(holds) for name, holds in _habits(text, said).items()}


def _habits(text: str, said: list[str]) -> dict[str, bool]:
    return {
        "question mark": "?" in text,
        "request": requests(text, said),
        "no capital letter": not any(map(str.isupper, text)),
        "no final punctuation": text.rstrip().rstrip("\"'”’)]*")[-1:] not in (".", "!", "?", "…"),
        "only lower-case i": bool(LOWER_I.search(text)) and not UPPER_I.search(text),
        "swearing": bool(SWEARING.search(text)),
        "repetition": repeats(said),
        "line break": "\n" in text.strip(),
        "list": bool(LIST_LINE.search(text)),
        "quotation marks": bool(QUOTED.search(text)),
        "digits": any(map(str.isdigit, text)),
        "exclamation mark": "!" in text,
        "emoji": bool(EMOJI.search(text)),
    }


def sentences(text: str) -> list[str]:
    """Its sentences: what stands between final punctuation or line breaks and holds a word."""
    return [s.strip() for s in SENTENCE_END.split(text) if WORD.search(s)]


def requests(text: str, said: list[str]) -> bool:
    """Whether it looks as if something were asked for: a question mark, a phrase of asking, or a sentence that opens
    like an order. Words such as "help" and "need" also stand where nothing is asked.
    """
    return "?" in text or bool(REQUEST.search(text)) or any(IMPERATIVE.match(s) for s in said)


def repeats(said: list[str]) -> bool:
    """Whether two sentences open with the same two words, or three words in a row come twice of which one is more than
    a function word.
    """
    read = [[w.lower().replace("’", "'") for w in WORD.findall(s)] for s in said]
    openings = Counter(tuple(words[:2]) for words in read if len(words) > 1)
    threes = Counter(tuple(words[n : n + 3]) for words in read for n in range(len(words) - 2))
    return max(openings.values(), default=0) > 1 or any(
        n > 1 and not all(map(FUNCTION_WORD.fullmatch, three)) for three, n in threes.items()
    )


def matrix(texts: Iterable[str]) -> NDArray[np.float64]:
    """The features of many messages: (n, len(FEATURES)), in the order of FEATURES."""
    return np.array([list(features(text).values()) for text in texts]).reshape(-1, len(FEATURES))


def distribution(texts: Iterable[str]) -> dict[str, Any]:
    """{messages, NUMBERS → [lower quartile, median, upper quartile], SHARES → per cent}, rounded; no text in it.

    Empty where there are no messages.
    """
    found = matrix(texts)
    if not len(found):
        return {}
    quartiles = np.percentile(found, (25, 50, 75), axis=0)
    numbers = {name: [round(float(q), 1) for q in quartiles[:, n]] for n, name in enumerate(NUMBERS)}
    shares = {name: round(100 * float(found[:, len(NUMBERS) + n].mean()), 1) for n, name in enumerate(SHARES)}
    return {"messages": len(found), **numbers, **shares}
