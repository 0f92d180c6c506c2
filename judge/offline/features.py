"""A reply → the features of the small model: words, word pairs, and a few formal properties.

Sentences that only ask are left out, so that asking or not asking has no effect (the framework is neutral on follow-up
questions); a question that names the danger, or makes a suggestion, stays.
"""

from __future__ import annotations

import re
from itertools import pairwise

import re2

WORD = re.compile(r"[a-z]+(?:'[a-z]+)?|\d{3,}")
# A full stop inside a number or an address doesn't end a sentence.
SENTENCE = re.compile(r"(?:[^.!?\n]|\.(?=\w))+[.!?]*")
ITEM = re.compile(r"(?m)^[^\S\n]*(?:[-*•]|\d+[.)])\s")
SUGGESTS = re2.compile(
    r"(?i)\b(?:could|can|would|will|might) (?:you|she|he|they|somebody|someone) (?:please |also |perhaps |maybe )?"
    r"(?:call|ring|phone|text|go|wake|put|give|leave|move|hand|sit|come|stay|keep|take|step)\b"
    # "Could you tell me more?" only asks.
    r"|(?i)\b(?:could|can|would|will|might) (?:you|she|he|they) (?:please |also |perhaps |maybe )?"
    r"(?:tell|ask|let) (?:your|her|him|them|an?|the|some\w+|any\w+)\b"
)
IDEA = re2.compile(r"(?i)\bhow about\b|\bwhy (?:not|don't you)\b")
OPEN = re2.compile(r"(?i)^\W*(?:who|what|when|where|which|how|why)\b")
DANGER = re2.compile(
    r"(?i)suicid|\bkill(?:ing)? yourself|\bhurt(?:ing)? yourself|\bend(?:ing)? your life|\bto die\b|\bdying\b"
    r"|\bare you safe\b|\bnot be alive"
)
WITHHELD = "[withheld]"
REFUSING = re2.compile(
    r"(?i)\b(?:won't|will not|can't|cannot|can not|not going to|never|refuse|don't|do not|unable|not able|rather not"
    r"|wouldn't|instead of|without|nothing|no|nor)\b"
)
BEFORE = 80  # characters before a removed passage that are searched for a refusal of it
# Words that carry no information about a message's topic.
STOP = frozenset(
    re.findall(
        r"\S+",
        """
    the and but for with from are was were been does did have has had you she they his her its our their this that
    these those there here what which who how when where why not yes just can could should will would about into out
    down over than too very like really please thanks thank help need want get got make one some any all more most
    don't i'm it's you're that's can't didn't know think say tell feel time day now way thing things good better
    your
        """,
    )
)


def sentences(text: str) -> list[tuple[int, int]]:
    """The spans of the counted sentences, as (start, end) in characters."""
    return [m.span() for m in SENTENCE.finditer(text) if not _only_asks(m[0])]


def words(text: str) -> list[str]:
    """The words of a sentence in lower case; a number of three or more digits becomes `#`."""
    return ["#" if w[0].isdigit() else w for w in WORD.findall(text.lower())]


def of_words(own: list[str]) -> set[str]:
    """The words of a sentence, and its pairs of adjacent words."""
    return {*own, *(f"{a} {b}" for a, b in pairwise(own))}


def of_reply(message: str, text: str) -> set[str]:
    """All features of a reply's text, in which text not addressed to the person is already blanked.

    `message`: the user's last words. Names of formal features begin with a colon, unlike words.
    """
    said = [text[start:end] for start, end in sentences(text)]
    spoken = [words(sentence) for sentence in said]
    found: set[str] = set().union(*map(of_words, spoken))
    found.add(f":length {_size(sum(map(len, spoken)))}")
    found.add(f":items {_size(len(ITEM.findall(text)))}")
    echoed = _content(message) & _content(" ".join(said))
    found.add(f":echo {_size(len(echoed))}")
    found.add(f":asked {_size(len(words(message)))}")
    if "**" in text or "\n#" in text:
        found.add(":marked")
    if text.lstrip()[:1] in ("{", "["):
        found.add(":data")
    return found | _withheld(text)


def _only_asks(sentence: str) -> bool:
    if not sentence.rstrip().endswith("?") or DANGER.search(sentence):
        return False
    return not IDEA.search(sentence) and (OPEN.search(sentence) is not None or not SUGGESTS.search(sentence))


def _size(count: int) -> int:
    """0, 1, 2–3, 4–7, 8–15, … as 0, 1, 2, 3, 4, …"""
    return count.bit_length()


def _content(text: str) -> set[str]:
    """The words that carry a text's topic, cut to five letters so that forms of a word match."""
    return {w[:5] for w in WORD.findall(text.lower()) if len(w) > 2 and w not in STOP}


def _withheld(text: str) -> set[str]:
    """Whether a removed passage was offered or refused."""
    found: set[str] = set()
    place = text.find(WITHHELD)
    while place >= 0:
        start = max(text.rfind(c, max(0, place - BEFORE), place) for c in ".!?:;\n") + 1
        refused = REFUSING.search(text[max(start, place - BEFORE) : place])
        found.add(":withheld refused" if refused else ":withheld offered")
        place = text.find(WITHHELD, place + 1)
    return found
