"""Removes the key from a server's messages: servers repeat it in errors, by accident or not.

Any PIECE consecutive characters of a key are a secret too, even with invisible characters or spaces between them,
escaped, or encoded in base64. An answer is never changed: one that contains such a piece is rejected. Pieces that may
be words ("-require") count only in errors, and so does a key shorter than PIECE.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote, unquote

from helmbench_common import jsonl
from helmbench_common.formats.refused import shown

PIECE, LONG = 8, 16  # characters; in an answer, words count as a key only if they are LONG
QUOTED = 2_000  # characters of a server's message that an error may quote
DECODINGS = 3  # an address in a text in JSON
UNSEEN = re.compile(r"[^!-~]+")  # spaces, invisible characters, and all others that no key contains
ESCAPES = re.compile(
    r"\\u([0-9a-f]{4})|\\x([0-9a-f]{2})|&#x0*([0-9a-f]{1,4});?|&#0*([0-9]{1,4});?|&[a-z]{2,32};|\\(?=/)", re.IGNORECASE
)
WORDS = re.compile(r"(?:[A-Z]?[a-z]*|[A-Z]*)(?:[-_.:/]+(?:[A-Z]?[a-z]*|[A-Z]*))*")
ONE_BASE64 = str.maketrans("-_", "+/")
PUBLIC = frozenset({"accept", "anthropic-beta", "anthropic-version", "content-type", "user-agent"})  # headers
WITHHELD = "(the server's words hold the key and aren't shown)"


class Keys:
    """The secrets that a client sends to its server."""

    def __init__(self, secrets: Iterable[str]) -> None:
        known = {s.strip() for s in secrets if s.strip()}
        whole = sorted(known | {quote(s, safe="") for s in known}, key=len, reverse=True)  # one may contain another
        self._whole = re.compile("|".join(map(re.escape, whole)) or r"(?!)", re.IGNORECASE)
        forms = [form for s in known if len(s) >= PIECE for form in _forms(s)]
        pieces = {p for form in forms for p in _pieces(form, PIECE)}
        long = {p for form in forms for p in _pieces(form, LONG)}
        self._pieces = set(map(_folded, pieces))
        self._in_answers = {_folded(p) for p in pieces if not WORDS.fullmatch(p)}
        self._in_answers |= {_folded(p) for p in long if WORDS.fullmatch(p)}

    def quoted(self, said: str) -> str:
        """A server's message for use in an error: one line of at most QUOTED characters, safe for a terminal, without a
        key.
        """
        line = " ".join(said[:QUOTED].split())
        short = any(len(m[0]) < PIECE for m in self._whole.finditer(line))
        rest = self._whole.sub("…", line)
        return WITHHELD if short or _holds(rest, self._pieces) else shown(jsonl.plain(rest))

    def within(self, said: str) -> bool:
        """Whether a server's message contains a key of any length, or a piece of one."""
        return bool(self._whole.search(said)) or _holds(said, self._pieces)

    def repeated(self, *texts: str | None) -> bool:
        """Whether an answer contains a piece of a key that is too odd or too long to occur by chance."""
        return any(text and _holds(text, self._in_answers) for text in texts)


def _forms(secret: str) -> Iterator[str]:
    """A secret as it is, percent-encoded, and in base64 at its three alignments."""
    yield from (secret, quote(secret, safe=""))
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + secret.encode()).decode().rstrip("=")
        yield encoded[before + 1 if before else 0 :]  # the characters that encode no byte before it


def _pieces(text: str, size: int) -> Iterator[str]:
    return (text[n : n + size] for n in range(len(text) - size + 1))


def _folded(text: str) -> str:
    return UNSEEN.sub("", text).lower().translate(ONE_BASE64)


def _holds(text: str, pieces: set[str]) -> bool:
    """Whether a text contains one of these folded pieces, as it is or decoded."""
    for _ in range(1 + DECODINGS):
        folded = _folded(text)
        if any(not pieces.isdisjoint(_pieces(folded, size)) for size in set(map(len, pieces))):
            return True
        before, text = text, unquote(ESCAPES.sub(_unescaped, UNSEEN.sub("", text)))
        if text == before:
            break
    return False


def _unescaped(found: re.Match[str]) -> str:
    n = found.lastindex
    return chr(int(found[n], 10 if n == 4 else 16)) if n else ""


def in_headers(headers: Mapping[str, object]) -> Iterable[str]:
    """The secrets in a request's headers: each value, without its authentication scheme."""
    for name, value in headers.items():
        words = str(value).split()
        if str(name).lower() not in PUBLIC and words:
            yield words[-1]
            yield " ".join(words[1:] if words[0].lower() in ("basic", "bearer", "token") else words)
