"""One form for the same text: NFC, plain whitespace, no control characters. Spelling, case and emoji are data and
stay.
"""

from __future__ import annotations

import re
import unicodedata

from corpora.schema import Document, Turn

# Controls other than tab and newline, lone surrogates, byte-order marks, and invisible marks that only part copies of
# the same text. The zero-width joiner stays: it builds emoji and letters. So do direction marks, which Arabic and
# Hebrew need.
_INVISIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufeff\u200b\u2060\u00ad\ufffe\uffff]")
_SPACES = re.compile(r"[^\S\n]+")
_BLANK_LINES = re.compile(r"\n{3,}")
_NOT_WORDS = re.compile(r"[\W_]+")


def normalise(text: str) -> str:
    """`text` in NFC, lines ended by a newline, runs of spaces as one, at most one blank line, none around."""
    text = re.sub(r"\r\n?|[\u2028\u2029\x85]", "\n", text)
    text = unicodedata.normalize("NFC", _INVISIBLE.sub("", text))
    lines = (line.strip() for line in _SPACES.sub(" ", text).split("\n"))
    return _BLANK_LINES.sub("\n\n", "\n".join(lines)).strip()


def normalise_document(document: Document) -> Document:
    """Every turn normalised, empty turns gone."""
    return document._replace(turns=tuple(Turn(t.role, text) for t in document.turns if (text := normalise(t.text))))


def fold(text: str) -> str:
    """What two copies of a text share: letters and digits, in order, whatever the case, punctuation and emoji."""
    return _NOT_WORDS.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip()
