"""One form for the same text: NFC, plain spaces, no control characters. Spelling, case and emoji are data and stay."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

# Controls other than tab and newline, lone surrogates, byte-order marks, and invisible marks that only make copies of
# a text differ. The zero-width joiner stays (it builds emoji and letters), and so do direction marks (Arabic, Hebrew).
_INVISIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufeff\u200b\u2060\u00ad\ufffe\uffff]")
_SPACES = re.compile(r"[^\S\n]+")
_BLANK_LINES = re.compile(r"\n{3,}")
_NOT_WORDS = re.compile(r"[\W_]+")
MARKS = 30  # combining marks on one letter: no language writes more than a few
JOINER = "\u034f"  # U+034F COMBINING GRAPHEME JOINER: invisible, and normalization moves no mark across it


def normalize(text: str) -> str:
    """`text` in NFC with newlines as line ends, single spaces, at most one blank line, and nothing around it."""
    text = re.sub(r"\r\n?|[\u2028\u2029\x85]", "\n", text)
    text = unicodedata.normalize("NFC", stream_safe(_INVISIBLE.sub("", text)))
    lines = (line.strip() for line in _SPACES.sub(" ", text).split("\n"))
    return _BLANK_LINES.sub("\n\n", "\n".join(lines)).strip()


def fold(text: str) -> str:
    """The text that duplicates are compared by: letters and digits, whatever the case, punctuation and emoji."""
    return _NOT_WORDS.sub(" ", unicodedata.normalize("NFKC", stream_safe(text)).casefold()).strip()


def stream_safe(text: str) -> str:
    """`text` with a joiner after every 30 consecutive combining marks (Stream-Safe Text Format, UAX #15, 13).

    Normalization sorts such a run, in time that grows with its square. Other text is returned unchanged.
    """
    return text if text.isascii() else _long_runs().sub(rf"\g<0>{JOINER}", text)


@cache
def _long_runs() -> re.Pattern[str]:
    """MARKS marks that normalization may move, with another one after them."""
    # Planes above the first two hold no such marks: only ideographs, tags and private characters.
    characters = (chr(n) for n in range(0x300, 0x20000) if not 0xD800 <= n < 0xE000)
    marks = "".join(c for c in characters if all(map(unicodedata.combining, unicodedata.normalize("NFKD", c))))
    return re.compile(f"[{marks}]{{{MARKS}}}(?=[{marks}])")
