"""One form for the same text: NFC, plain whitespace, no control characters. Spelling, case and emoji are data and
stay.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from dataset_builder.corpora.schema import Document, Turn

# Controls other than tab and newline, lone surrogates, byte-order marks, and invisible marks that only part copies of
# the same text. The zero-width joiner stays: it builds emoji and letters. So do direction marks, which Arabic and
# Hebrew need.
_INVISIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufeff\u200b\u2060\u00ad\ufffe\uffff]")
_SPACES = re.compile(r"[^\S\n]+")
_BLANK_LINES = re.compile(r"\n{3,}")
_NOT_WORDS = re.compile(r"[\W_]+")
MARKS = 30  # that one letter may carry: no language writes more than a handful
JOINER = "\u034f"  # U+034F COMBINING GRAPHEME JOINER: nobody sees it, and no mark is moved across it


def normalise(text: str) -> str:
    """`text` in NFC, lines ended by a newline, runs of spaces as one, at most one blank line, none around."""
    text = re.sub(r"\r\n?|[\u2028\u2029\x85]", "\n", text)
    text = unicodedata.normalize("NFC", stream_safe(_INVISIBLE.sub("", text)))
    lines = (line.strip() for line in _SPACES.sub(" ", text).split("\n"))
    return _BLANK_LINES.sub("\n\n", "\n".join(lines)).strip()


def normalise_document(document: Document) -> Document:
    """Every turn normalised, empty turns gone."""
    return document._replace(turns=tuple(Turn(t.role, text) for t in document.turns if (text := normalise(t.text))))


def fold(text: str) -> str:
    """What two copies of a text share: letters and digits, in order, whatever the case, punctuation and emoji."""
    return _NOT_WORDS.sub(" ", unicodedata.normalize("NFKC", stream_safe(text)).casefold()).strip()


def stream_safe(text: str) -> str:
    """`text` with a joiner behind every 30 combining marks that follow each other (Unicode's Stream-Safe Text Format,
    UAX #15, 13): normalising sorts such a run, in time that grows with its square. Any other text is returned as it is.
    """
    return text if text.isascii() else _long_runs().sub(rf"\g<0>{JOINER}", text)


@cache
def _long_runs() -> re.Pattern[str]:
    """As many marks as one letter may carry, with another behind them."""
    # None stands beyond: planes above the first two hold ideographs, tags and private characters.
    marks = "".join(chr(n) for n in range(0x300, 0x20000) if not 0xD800 <= n < 0xE000 and _is_mark(chr(n)))
    return re.compile(f"[{marks}]{{{MARKS}}}(?=[{marks}])")


def _is_mark(character: str) -> bool:
    """Whether normalising may move all of it."""
    return all(map(unicodedata.combining, unicodedata.normalize("NFKD", character)))
