"""Foreign text as data inside a prompt: it can't close its fence, nor imitate a role.

A conversation is shown with `User: ` and `Assistant: ` before its turns, and no fenced text has a line that begins this
way: turn boundaries are unambiguous, and a reply that continues with made-up turns never yields the same text as a
conversation that had them. Brackets and roles are broken by a visible dot, never by a zero-width character: Unicode
normalization on the way to the judge (NFKC, removal of zero-width characters) must not restore them.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache, partial
from itertools import pairwise

from dataset_builder.corpora.normalize import stream_safe

DOT = "·"
OPENING = dict.fromkeys("<＜﹤‹〈⟨˂𝈶❮", 1) | dict.fromkeys("«≪《⟪", 2) | {"⋘": 3}
CLOSING = dict.fromkeys(">＞﹥›〉⟩˃𝈷❯", 1) | dict.fromkeys("»≫》⟫", 2) | {"⋙": 3}
# The start of a role or the end of a text anywhere, for chat templates (`<|im_end|>`, `[/INST]`) or as JSON.
CONTROL = re.compile(
    r"[<\[](?=[|｜])|(?<=[|｜])[>\]]"
    r"|<(?=/?s>|(?:start|end)_of_turn>|/?(?:bos|eos|pad|unk)(?:_token)?>|end_of_utterance>|/?SYS>)"
    r"|\[(?=/?(?:INST|SYS(?:TEM_PROMPT)?|AVAILABLE_TOOLS|TOOL_\w+)\])"
    r"|(?<=[\"'])role(?=[\"']\s*:)",  # of a chat message as JSON
    re.IGNORECASE,
)
# Words that begin a turn in transcripts: HelmBench's are the first two; models continue with the others.
ROLES = (
    "user assistant human ai system judge grader evaluator rater annotator answer developer bot chatbot "
    "instruction instructions "
    "nutzer nutzerin benutzer assistent assistentin utilisateur utilisatrice humain systeme juge "
    "usuario usuaria asistente humano sistema juez utilizador assistente utente umano gebruiker mens bruker bruger "
    "anvandare kayttaja avustaja uzytkownik asystent kullanıcı asistan pengguna asisten "
    "пользователь ассистент помощник система користувач асистент 用户 用戶 使用者 助手 系统 系統 人类 "
    "ユーザー アシスタント システム 사용자 어시스턴트 시스템 المستخدم المساعد النظام کاربر دستیار "
    "משתמש עוזר उपयोगकर्ता सहायक"
)
BREAKS = "\n\v\f\r\x1c-\x1e\x85\u2028\u2029"
ODD_BREAKS = re.compile("[\v\f\r\x1c-\x1e\x85]")  # control characters: line breaks here, dropped elsewhere
FILLERS = "\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"  # letters and signs without a visible glyph
NO_WIDTH = ("Cc", "Cf", "Mn", "Me")  # general categories: control, format and combining characters
PLAIN = re.compile(r"[\n\t -~]*")
SPACES = " \t\u1680\u2000-\u200a\u202f\u205f\u3000\xa0"
MARKUP = rf"{SPACES}*_~`|>»”’\]\)\}}"
BEFORE = rf"{MARKUP}#\d.\-–—•·‣◦\"'“‘„«‹<\[\({{"
COLONS = ":∶ː꞉։⁚፡᠄"
TAGS = re.compile("[\U000e0000-\U000e007f]")  # invisible letters that a model reads


def fence(text: str) -> str:
    """`text` without three brackets in a row (including look-alikes and hidden gaps), without chat-template markers,
    and without lines that begin like a turn.

    Fencing is idempotent. One or two brackets are unchanged.
    """
    text = TAGS.sub("", text)
    for runs, brackets, plain in _runs():
        text = runs.sub(partial(_broken, brackets, plain), text)
    return _dotted(text, {place for folded, places in _cleaned(text) for place in _marks(folded, places)})


def conversation(said: Iterable[tuple[str, str]]) -> str:
    """Turns, (role, text), as one fenced text. Each begins with its role; no line within a turn does."""
    return "\n\n".join(f"{role.capitalize()}: {fence(text)}" for role, text in said)


def _marks(folded: str, places: Sequence[int]) -> Iterator[int]:
    """Where to insert a dot: inside a template marker (`<·|im_end|·>`), and after each role word that begins a line
    (`User·:`, `### Instruction·`, `[System·]`).
    """
    for mark in CONTROL.finditer(folded):
        yield places[mark.start()] if mark[0] in ">]" else places[mark.end() - 1] + 1
    for mark in _role_marks().finditer(folded):
        yield places[mark.end("role") - 1] + 1


def _dotted(text: str, places: Iterable[int]) -> str:
    ends = sorted(places)
    return DOT.join(text[start:end] for start, end in pairwise([0, *ends, len(text)]))


def _cleaned(text: str) -> Iterator[tuple[str, Sequence[int]]]:
    """The variants of a text that normalization may produce, with the position of each of their characters in `text`:
    every letter in its plain form, without zero-width characters; once with line-breaking control characters, and once
    without.
    """
    if PLAIN.fullmatch(text):
        yield text, range(len(text))
        return
    for breaks in ("\n", "\v\f\r\x1c\x1d\x1e\x85")[: 2 if ODD_BREAKS.search(text) else 1]:
        found = [("\n" if c in breaks else _plain(c), n) for n, c in enumerate(text)]
        yield "".join(plain for plain, _ in found), [n for plain, n in found for _ in plain]


@lru_cache(maxsize=2**16)
def _plain(character: str) -> str:
    """What remains of a character after NFKC and removal of accents and zero-width characters."""
    return "".join(c for c in unicodedata.normalize("NFKD", character) if not _unseen(c))


def _unseen(character: str) -> bool:
    return character not in "\n\t" and (character in FILLERS or unicodedata.category(character) in NO_WIDTH)


@cache
def _runs() -> tuple[tuple[re.Pattern[str], dict[str, int], str], ...]:
    """Runs of brackets and look-alikes, with anything invisible between them."""
    unseen = [n for n in range(sys.maxunicode + 1) if _unseen(chr(n))]
    begins = [n for k, n in enumerate(unseen) if not k or unseen[k - 1] != n - 1]
    ends = [n for k, n in enumerate(unseen) if k + 1 == len(unseen) or unseen[k + 1] != n + 1]
    hidden = "".join(f"\\U{a:08x}-\\U{b:08x}" for a, b in zip(begins, ends, strict=True))
    gap = f"[{SPACES}\u2028\u2029{hidden}]*"
    return tuple(
        (re.compile(f"{one}(?:{gap}{one})*"), brackets, plain)
        for brackets, plain in ((OPENING, "<"), (CLOSING, ">"))
        for one in ("[" + "".join(map(re.escape, brackets)) + "]",)
    )


@cache
def _role_marks() -> re.Pattern[str]:
    roles = "|".join(re.escape("".join(map(_plain, role))) for role in ROLES.split())
    more = r"(?: (?:message|prompt|turn)| ?\(?\d{1,3}\)?)?"
    return re.compile(
        rf"(?<![^{BREAKS}])[{BEFORE}]*+(?P<role>{roles})"
        rf"(?=[\])}}>»→|]|{more}[{MARKUP}]*+(?:[{COLONS}{BREAKS}]|\Z))",
        re.IGNORECASE,
    )


def _broken(brackets: dict[str, int], plain: str, run: re.Match[str]) -> str:
    width = sum(brackets.get(c, 0) for c in run[0])
    return DOT.join(plain * width) if width >= 3 else run[0]


def compared(text: str) -> str:
    """The normal form for comparing a quote with its reply: fenced, NFKC, one kind of quote mark, dash, space and
    ellipsis.

    It also drops case, zero-width characters, Markdown's asterisks and the fence's dots: judges copy words, not
    typography, and part of a line is fenced differently from a whole one.
    """
    folded = unicodedata.normalize("NFKC", stream_safe(fence(text)))
    dropped = [c for c in set(folded) if unicodedata.category(c) == "Cf" or "\ufe00" <= c <= "\ufe0f" or c in "*·"]
    folded = folded.translate(dict.fromkeys(map(ord, dropped)))
    folded = re.sub(r"[\"'`´‘’‚‛“”„‟‹›«»′″‵‶「」『』]+", "'", folded)
    folded = re.sub(r"[\u2010-\u2015\u2212]", "-", folded)
    folded = re.sub(r"\.(?:\s?\.){2,}", "...", folded)
    return re.sub(r"\s+", " ", folded).strip().casefold()
