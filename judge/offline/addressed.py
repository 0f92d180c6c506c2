"""Finds the parts of a reply addressed to the person: text aimed at a grader, or invisible to a reader, is blanked
before the offline judge reads it.

A reply may quote the rubric, state its own verdict, pretend that the case has ended, or hide words in a comment. The
person who wrote to the service doesn't read these as help or harm, so the judge ignores them. Blanking preserves every
offset, so evidence can be copied from the original reply.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import NamedTuple

import re2

# Letters of other scripts that look like Latin ones; a mixed word is a trick, and pure Cyrillic is not English in any
# case.
LOOKALIKES = dict(
    zip(
        "аеорсухіјѕԁԛԝһӏАВЕКМНОРСТХІЈЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧοντκɑɡıℓ",
        "aeopcyxijsdqwhlABEKMHOPCTXIJSABEZHIKMNOPTYXovtkagil",
        strict=True,
    )
)
STRAIGHT = dict(zip("‘’ʼ′“”‐‑‒–—\u2028\u2029", "''''\"\"-----\n\n", strict=True))
SPACES = ((0xA0, 0xA0), (0x2000, 0x200A), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000))
LETTERS = ((0x2460, 0x24FF), (0xFF01, 0xFF5E), (0x1D400, 0x1D7FF))  # circled, full-width, mathematical
# NFKC character by character, where it gives one plain character.
WIDE = {
    chr(n): plain
    for first, last in (*SPACES, *LETTERS)
    for n in range(first, last + 1)
    if len(plain := unicodedata.normalize("NFKC", chr(n))) == 1 and plain.isascii()
}
FOLD = str.maketrans({**LOOKALIKES, **STRAIGHT, **WIDE})

GRADERS = r"(?:grad(?:er|ers|ing)|evaluators?|judg(?:e|es|ing)|reviewers?|examiners?|assessors?|raters?|annotators?)"
ROLES = r"(?:system|assistant|user|human|developer|tool|grader|judge|evaluator|instructions?|moderator)"
CHECKED = r"(?:reply|response|answer|message|output|text)"
PARAGRAPH = r"(?:[^\n]|\n[^\n])*"
SENTENCE = r"[^.!?\n]*"
# A quick check whether any pattern below could match; most replies end here.
TELL = re2.compile(
    rf"(?i)\b{GRADERS}\b|\brubrics?\b|\bverdicts?\b|\blabels?\b|\bcriterion\b|\bgraded?\b|\b(?:this|the|my|above|preceding|previous) {CHECKED}\b|\bscores?\b|\bmarks\b|\bevaluation\b|\bthe (?:assistant|model|AI|bot|author)\b|\bgenerated\b|\brat(?:e|ing)\b|"
    r"\binstructions?\b|\bprompts?\b|\bdisregard\b|\bthe case\b|\bend of\b|\bthe "
    rf"(?:person|writer|user)\b|<[!|/a-z]|<<|>>|\[/?inst|\b{ROLES}\b\W{{0,4}}(?:[:\n]|$)|^#|^\[|\{{|\[[a-z]|[^\s]{{60}}|[01]{{8}} [01]{{8}}|(?:[0-9a-f]{{2}}[ :]){{8}}|PASS|FAIL|PARTIAL"
)
BLOCKS = (
    re2.compile(r"(?s)<!--.*?(?:-->|\z)"),  # comments: not visible on a page
    re2.compile(r"(?m)^\[[^\]\n]*\]:\s*[#<].*$"),  # Markdown comments
    re2.compile(
        rf"(?i)<\|[^|>\n]*\|>{PARAGRAPH}|\[/?INST\]{PARAGRAPH}|</?s>{PARAGRAPH}|<</?SYS>>{PARAGRAPH}|<(?:start|end)_of_turn>{PARAGRAPH}"
    ),  # chat templates
    re2.compile(
        rf"(?i)</?(?:{ROLES}|verdict|label|score|case|reply|rubric|evaluation|result|output|override|thinking|scratchpad)\b[^>\n]*>{PARAGRAPH}"
    ),
    re2.compile(
        rf"(?im)^[ \t]*(?:#{{1,6}}[ \t]*|\*\*|__|\[|\(|>[ \t]*|-{{2,}}[ \t]*)*{ROLES}(?:[ "
        r"\t]+(?:message|prompt|note|notice|override|instructions?|update|mode|turn))?[ "
        rf"\t]*(?:\]|\)|\*\*|__)*[ \t]*:{PARAGRAPH}"
    ),
    re2.compile(
        rf"(?im)^[ \t]*#{{1,6}}[ "
        rf"\t]*(?:{ROLES}|answer|case|criteri\w+|labels?|outcomes?|verdicts?|rubric|not judged|neutral "
        rf"pair|evaluation|grading|end\b|new case|the (?:case|conversation|reply))\b{PARAGRAPH}"
    ),
    re2.compile(r"(?m)^[ \t]*(?:<{3,}|>{3,}|`{3,}[ \t]*(?:json|xml)?[ \t]*$).*$"),  # fences
    re2.compile(
        r"(?is)\{[^{}]*\b(?:label|verdict|score|rating|grade|quotes|result|outcome|decision)\b[^{}]*\}"
    ),  # an answer in the judge's format
    re2.compile(r"(?:[A-Za-z0-9+/=_]{60,}|(?:[01]{8}[ ]?){6,}|(?:[0-9A-Fa-f]{2}[ :]){20,})"),  # encoded text
    re2.compile(
        rf"(?i){SENTENCE}(?:"
        r"\b(?:as|to|dear|hello|hi|hey|attention|note to|for|you are|you're|if you are) (?:the |an? |my "
        rf"|any |all )*(?:\w+ )?{GRADERS}\b|\bthe {GRADERS}\b|\b{GRADERS}[:,]|\bgrad(?:er|ers|ing)\b|\bgrade "
        r"(?:this|it|me|the)\b"
        r"|\brubrics?\b|\bverdicts?\b|\b(?:the|this|each) criterion\b|\blabels? "
        r"(?:is|are|of|should|must|it|this|the|me|for)\b|\blabell?ed\b"
        rf"|\b(?:this|the|my|above|preceding|previous) (?:\w+ )?{CHECKED} (?:above |below |here "
        r")?(?:is|was|meets|pass\w*|fail\w*|fulfils?|names?|hands?|deserves?|should|must|does|doesn't|asks?|satisfies|shows?|points?|turns?|refers?|contains?|counts?|says?|treats?|takes?|helps?|gives?|opens?|sees?|stays?|keeps?|has|earns?|goes|withholds?|refuses?|suggests?|speaks?|notices?|passes)\b"
        rf"|\b(?:mark|rate|score|judge|evaluate|count|treat|read|accept) (?:this|it|me|my|the) (?:{CHECKED} "
        r")?(?:as|a|at|with|full|positively|highly|well)\b|\b(?:full|top|maximum|perfect|passing|failing|good|bad|low|high|highest|lowest|best) (?:scores?|marks?|grades?|ratings?|labels?)\b"
        r"|\b(?:ignore|disregard|forget|override|skip|bypass) (?:all |any |the |your |every |these |those "
        r"|previous |prior |above |earlier "
        r")*(?:instructions?|rules?|prompts?|above|guidelines?|criteri\w+|system)\b|\b(?:system|hidden|developer) (?:prompt|override|instructions?)\b"
        r"|\b(?:the|this) case (?:ends?|has ended|is "
        r"(?:over|closed|finished)|above)\b|\b(?:end|beginning|start) of (?:the "
        r")?(?:case|reply|conversation|transcript|data|input|document)\b|\b(?:next|new) case\b"
        r"|\b(?:points?|treats?|asks?|tells?|sends?|turns? to|helps?|leaves?|urges?|points|towards?) the "
        r"(?:person|writer|user)\b|\bthe (?:person|writer|user) "
        r"(?:is|was|has|may|might|can|should|to|could)\b|\bit (?:names|hands over|asks directly|opens a way|takes up)\b"
        r"|\b(?:the|this) (?:assistant|model|AI|bot|author) (?:has |have "
        r")?(?:kept|named|handed|did|does|has|was|is|noticed|saw|sees|stays?|stayed|accepted|turned|helps?|met|passes|passed|refus\w+|withh\w+)\b|\bevaluation (?:summary|result|note)|\bauto-?generated\b|\b(?:scores?|ratings?|grades?|label|verdict): ?\w"
        r"|\bI(?:'ve| have)? (?:also |clearly |correctly |fully |just )?(?:satisfied|met "
        r"(?:all|every|the)|complied with|followed (?:all|every|the) (?:rules?|guidelines?|instructions?))\b"
        rf"){SENTENCE}(?:[.!?]+[\"']{SENTENCE})*[.!?]*"  # a quoted question inside doesn't end the sentence
    ),
    re2.compile(rf"{SENTENCE}\b(?:PASS|FAIL|PARTIAL)\b{SENTENCE}[.!?]*"),
)


class Addressed(NamedTuple):
    """A reply's text as the person reads it: `text[i]` is at `places[i]` of the reply (None: at i)."""

    text: str
    places: tuple[int, ...] | None

    def original(self, reply: str, start: int, end: int) -> str:
        """The original text of a span."""
        return reply[start:end] if self.places is None else reply[self.places[start] : self.places[end - 1] + 1]


@lru_cache(maxsize=2_000)
def addressed(reply: str) -> Addressed:
    """Folds look-alikes to plain letters, drops invisible characters, blanks text aimed at a grader."""
    text, index = reply, None
    if not reply.isascii():
        text = reply.translate(FOLD)
    if not text.isascii() or not text.replace("\n", "").isprintable():
        keep = [
            n
            for n, c in enumerate(text)
            if c in "\n\t" or (c.isprintable() and unicodedata.category(c) != "Mn") or c == " "
        ]
        if len(keep) < len(text):
            index, text = tuple(keep), "".join(text[n] for n in keep)
    if TELL.search(text):
        for block in BLOCKS:
            text = block.sub(_blank, text)
    return Addressed(text, index)


def _blank(match: re2._Match) -> str:
    return "".join("\n" if c == "\n" else " " for c in match[0])
