"""Surface features of a message (length, punctuation, habits, alarm words), and our messages compared to real ones.

Each feature is a number per message; those in SHARES are 1 or 0. They are rules over characters and word lists, so they
count what looks like a request or a sentence, not what is one. Only figures about real messages are stored, in
real_messages.yaml, which scripts/measure_real_messages.py generates from checkouts of public sets.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dataset_builder.composing.compose import samples
from dataset_builder.reading.content_types import Content
from helmbench_common.formats import yaml_file
from helmbench_common.tables import columns

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
# Match a run of marks or empty lines only from its start: trying every position would take quadratic time.
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
    *("words", "sentences", "words per sentence", "commas per 100 words", "contractions per 100 words"),
    *("first person per 100 words", "capitals per 100 letters"),
)
SHARES = (
    *("question mark", "request", "no capital letter", "no final punctuation", "only lower-case i", "swearing"),
    *("repetition", "line break", "list", "quotation marks", "digits", "exclamation mark", "emoji"),
)
FEATURES = (*NUMBERS, *SHARES)
REAL_MESSAGES = Path(__file__).with_name("real_messages.yaml")
# A word list that an engineer could write in an afternoon: the `keyword` policy hands over at ALARM.
ALARM = re.compile(
    r"\b(?:suicid\w*|kill(?:ing)? myself|kms|end(?:ing)? (?:it|my life)|(?:want to|wanna|going to) die|"
    r"(?:wish i (?:was|were)|better off) dead|better off without me|no way out|nothing to live for|"
    r"no point (?:any ?more|in living)|can(?:'?t|not) (?:go on|take (?:it|this) any ?more)|hopeless\w*|goodbyes?|"
    r"farewell|my (?:own )?(?:will|funeral|affairs)|last wishes|self[- ]?harm\w*|"
    r"(?:cut|hurt|harm)(?:t?ing)? myself|overdos\w*|trapped|burden|worthless)\b",
    re.IGNORECASE,
)
# Removed before matching: figures of speech, and plain denials.
EXCUSED = re.compile(
    r"\b(?:killing it|dying (?:to|for)|to die for|kill for|die (?:of )?laughing|"
    r"(?:goodbye|farewell) (?:party|card|lunch|drinks|speech|tour)|"
    r"(?:not|never|no longer|isn't|aren't|wasn't) (?:feeling )?(?:suicidal|hopeless|trapped|worthless|a burden)|"
    r"(?:do not|don't|didn't|never|not) (?:want|wanted|going) to (?:die|kill myself|end (?:it|my life)|hurt myself))\b",
    re.IGNORECASE,
)
FICTION = re.compile(r"\b(?:essay|novel|short story|screenplay|lyrics|poem|film|movie|homework)\b", re.IGNORECASE)


def features(text: str) -> dict[str, float]:
    """The FEATURES of one message, in that order."""
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
        "question mark": "?" in text,
        "request": _requests(text, said),
        "no capital letter": not any(map(str.isupper, text)),
        "no final punctuation": text.rstrip().rstrip("\"'”’)]*")[-1:] not in (".", "!", "?", "…"),
        "only lower-case i": bool(LOWER_I.search(text)) and not UPPER_I.search(text),
        "swearing": bool(SWEARING.search(text)),
        "repetition": _repeats(said),
        "line break": "\n" in text.strip(),
        "list": bool(LIST_LINE.search(text)),
        "quotation marks": bool(QUOTED.search(text)),
        "digits": any(map(str.isdigit, text)),
        "exclamation mark": "!" in text,
        "emoji": bool(EMOJI.search(text)),
    }


def sentences(text: str) -> list[str]:
    """The sentences: text between final punctuation or line breaks that contains a word."""
    return [s.strip() for s in SENTENCE_END.split(text) if WORD.search(s)]


def _requests(text: str, said: list[str]) -> bool:
    """A question mark, a phrase of asking, or a sentence that opens like an order. Words such as "help" and "need" also
    occur without a request.
    """
    return "?" in text or bool(REQUEST.search(text)) or any(IMPERATIVE.match(s) for s in said)


def _repeats(said: list[str]) -> bool:
    """Whether two sentences open with the same two words, or three consecutive words, not all function words, occur
    twice.
    """
    read = [[w.lower().replace("’", "'") for w in WORD.findall(s)] for s in said]
    openings = Counter(tuple(words[:2]) for words in read if len(words) > 1)
    threes = Counter(tuple(words[n : n + 3]) for words in read for n in range(len(words) - 2))
    return max(openings.values(), default=0) > 1 or any(
        n > 1 and not all(map(FUNCTION_WORD.fullmatch, three)) for three, n in threes.items()
    )


def matrix(texts: Iterable[str]) -> NDArray[np.float64]:
    """The features of many messages: (n, len(FEATURES)), in the order of FEATURES."""
    return np.array([list(features(text).values()) for text in texts], dtype=float).reshape(-1, len(FEATURES))


def distribution(texts: Iterable[str]) -> dict[str, Any]:
    """{messages, NUMBERS → [lower quartile, median, upper quartile], SHARES → percent}, rounded; contains no text.

    Empty if there are no messages.
    """
    found = matrix(texts)
    if not len(found):
        return {}
    quartiles = np.percentile(found, (25, 50, 75), axis=0)
    numbers = {name: [round(float(q), 1) for q in quartiles[:, n]] for n, name in enumerate(NUMBERS)}
    shares = {name: round(100 * float(found[:, len(NUMBERS) + n].mean()), 1) for n, name in enumerate(SHARES)}
    return {"messages": len(found), **numbers, **shares}


def known_sets() -> list[dict[str, Any]]:
    """The measured public sets: {set, source, commit, date, licence, rows, figures: a `distribution`}."""
    found: list[dict[str, Any]] = yaml_file.load(REAL_MESSAGES, "the figures of public sets", list).value
    return found


def next_to_real(content: Content) -> dict[str, Any]:
    """{ours: {crisis, control, lite}, real: set → …}, each a `distribution`; ours cover live scenarios.

    Excludes conversations, because all public sets contain single messages.
    """
    found = [(s.id, p) for s in content.live if s.kind == "scenario" for p in s.perturbations]
    lite = {(x.scenario.id, x.message.code) for x in samples(content) if "lite" in x.tiers}
    ours = {
        polarity: distribution(p.words for _, p in found if p.polarity == polarity)
        for polarity in ("crisis", "control")
    }
    ours["lite"] = distribution(p.words for scenario, p in found if (scenario, p.code) in lite)
    return {"ours": ours, "real": {one["set"]: one["figures"] for one in known_sets()}}


def table(figures: dict[str, Any]) -> str:
    """The figures of `next_to_real` as text."""
    sets = {**figures["ours"], **figures["real"]}
    rows = [["messages", *(f"{own.get('messages', 0):,}" for own in sets.values())]]
    for name in FEATURES:
        cells = (own.get(name) for own in sets.values())
        form = "{1:.0f} ({0:.0f}–{2:.0f})".format if name in NUMBERS else "{:.0f} %".format
        rows.append([name, *("–" if c is None else form(*c) if name in NUMBERS else form(c) for c in cells)])
    title = "single messages, ours and real ones: median (quartiles), or the share of messages"
    return f"{title}\n{columns(['', *sets], rows)}"


def matches(pattern: re.Pattern[str], texts: Iterable[str]) -> set[str]:
    """The distinct matches, outside figures of speech, denials and texts about fiction or schoolwork."""
    plain = [EXCUSED.sub(" ", text.replace("\u2019", "'")) for text in texts if not FICTION.search(text)]
    return {found.lower() for text in plain for found in pattern.findall(text)}
