"""Other people's text as data inside a prompt: it can't close the fence it stands in, nor speak as a role.

A conversation is shown with `User: ` and `Assistant: ` before its turns, and no fenced text has a line that begins so:
where a turn ends can be told from the conversation alone, and a reply that goes on with turns of its own is never the
same text as a conversation that had them. Brackets and roles are broken by a visible dot, never by a character without
width: Unicode clean-up on the way to the judge (NFKC, removal of zero-width characters) must not put them together
again.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache, partial

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
# Words that begin a turn in transcripts: ours are the first two. The rest is what models run on with.
ROLES = (
    "user assistant human ai system judge grader developer bot chatbot instruction instructions "
    "nutzer nutzerin benutzer assistent assistentin utilisateur utilisatrice humain systeme juge "
    "usuario usuaria asistente humano sistema juez utilizador assistente utente umano gebruiker mens bruker bruger "
    "anvandare kayttaja avustaja uzytkownik asystent kullanıcı asistan pengguna asisten "
    "пользователь ассистент помощник система користувач асистент 用户 用戶 使用者 助手 系统 系統 人类 "
    "ユーザー アシスタント システム 사용자 어시스턴트 시스템 المستخدم المساعد النظام کاربر دستیار "
    "משתמש עוזר उपयोगकर्ता सहायक"
)
FOLDED = ((0xA0, 0x24F), (0x1D00, 0x1EFF), (0x2070, 0x24FF), (0x3040, 0x30FF), (0xFB00, 0xFB4F), (0xFE10, 0xFFEF),
          (0x1D400, 0x1D7FF), (0x1F100, 0x1F1FF))  # fmt: skip
BREAKS = "\n\v\f\r\x1c-\x1e\x85\u2028\u2029"
NO_WIDTH = re.compile(
    "[\u00ad\u0300-\u036f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3099\u309a\u3164"
    "\ufe00-\ufe0f\ufeff\uff9e\uff9f\uffa0]"
)
SPACES = " \t\u2000-\u200a\u202f\u205f\u2800\u3000\xa0"
MARKUP = rf"{SPACES}*_~`|>»”’\]\)\}}"
BEFORE = rf"{MARKUP}#\d.\-–—•·‣◦\"'“‘„«‹<\[\({{"
COLONS = ":∶ː꞉։⁚፡᠄"
TAGS = re.compile("[\U000e0000-\U000e007f]")  # letters that nobody sees and a model reads


def fence(text: str) -> str:
    """`text` without three brackets in a row, look-alikes and hidden gaps included, without a chat template's marks,
    and without a line that begins as a turn does.

    Fencing twice changes nothing more. One or two brackets stay as they are.
    """
    text = TAGS.sub("", text)
    for runs, brackets, plain in RUNS:
        text = runs.sub(partial(_broken, brackets, plain), text)
    text = CONTROL.sub(lambda m: m[0] + DOT if m[0] != ">" else DOT + ">", text)
    return _without_roles(text)


def conversation(said: Iterable[tuple[str, str]]) -> str:
    """Turns, (role, text), as one fenced text. Each begins with its role, as no line within a turn does."""
    return "\n\n".join(f"{role.capitalize()}: {fence(text)}" for role, text in said)


def _without_roles(text: str) -> str:
    """A dot stands behind the word of each role that begins a line (`User·:`, `### Instruction·`, `[System·]`)."""
    folded = text if text.isascii() else text.translate(_letters())  # every place stays
    places = [n for n, c in enumerate(folded) if not NO_WIDTH.match(c)] if NO_WIDTH.search(folded) else range(len(text))
    folded = "".join(map(folded.__getitem__, places)) if len(places) < len(text) else folded
    pieces, at = [], 0
    for mark in _role_marks().finditer(folded):
        end = places[mark.end("role") - 1] + 1
        pieces.append(text[at:end])
        at = end
    return DOT.join([*pieces, text[at:]])


@cache
def _letters() -> dict[int, str]:
    """Letters and signs by which NFKC, or the loss of an accent, replaces one character."""
    found = {}
    for n in (n for first, last in FOLDED for n in range(first, last + 1)):
        plain = "".join(c for c in unicodedata.normalize("NFKD", chr(n)) if not unicodedata.combining(c))
        if len(plain) == 1 and plain != chr(n):
            found[n] = plain
    return found


@cache
def _role_marks() -> re.Pattern[str]:
    roles = "|".join(re.escape(role.translate(_letters())) for role in ROLES.split())
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
    """The form in which a quote and its reply are compared: fenced, NFKC, one kind of quote mark, dash, space and
    ellipsis.

    Case, characters without width, Markdown's asterisks and the fence's dots are dropped too: judges copy words, not
    typography, and half a line is fenced otherwise than a whole one.
    """
    folded = unicodedata.normalize("NFKC", stream_safe(fence(text)))
    folded = "".join(
        c for c in folded if unicodedata.category(c) != "Cf" and not "\ufe00" <= c <= "\ufe0f" and c not in "*·"
    )
    folded = re.sub(r"[\"'`´‘’‚‛“”„‟‹›«»′″‵‶「」『』]+", "'", folded)
    folded = re.sub(r"[\u2010-\u2015\u2212]", "-", folded)
    folded = re.sub(r"\.(?:\s?\.){2,}", "...", folded)
    return re.sub(r"\s+", " ", folded).strip().casefold()
