"""Normalizes text: NFC, plain spaces, no control characters. Spelling, case and emoji are data and stay."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

# Controls other than tab and newline, lone surrogates, byte-order marks, and invisible marks that only make copies of
# a text differ. The zero-width joiner (part of emoji and letters) and direction marks (Arabic, Hebrew) stay.
_INVISIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufeff\u200b\u2060\u00ad\ufffe\uffff]")
_SPACES = re.compile(r"[^\S\n]+")
_BLANK_LINES = re.compile(r"\n{3,}")
_NOT_WORDS = re.compile(r"[\W_]+")
MARKS = 30  # combining marks on one letter: no language writes more than a few
JOINER = "\u034f"  # U+034F COMBINING GRAPHEME JOINER: invisible, and normalization moves no mark across it


def normalize(text: str) -> str:
    """`text` in NFC with LF line ends, single spaces, at most one blank line in a row, and stripped."""
    text = re.sub(r"\r\n?|[\u2028\u2029\x85]", "\n", text)
    text = unicodedata.normalize("NFC", stream_safe(_INVISIBLE.sub("", text)))
    lines = (line.strip() for line in _SPACES.sub(" ", text).split("\n"))
    return _BLANK_LINES.sub("\n\n", "\n".join(lines)).strip()


def fold(text: str) -> str:
    """The text used to compare duplicates: letters and digits, ignoring case, punctuation and emoji."""
    return _NOT_WORDS.sub(" ", unicodedata.normalize("NFKC", stream_safe(text)).casefold()).strip()


def stream_safe(text: str) -> str:
    """`text` with a joiner after every 30 consecutive combining marks (Stream-Safe Text Format, UAX #15, 13).

    Normalization sorts such a run in quadratic time. Other text is returned unchanged.
    """
    return text if text.isascii() else _long_runs().sub(rf"\g<0>{JOINER}", text)


@cache
def _long_runs() -> re.Pattern[str]:
    """MARKS marks that normalization may move, followed by another one."""
    # Planes above the first two have no such marks: only ideographs, tags and private-use characters.
    characters = (chr(n) for n in range(0x300, 0x20000) if not 0xD800 <= n < 0xE000)
    marks = "".join(c for c in characters if all(map(unicodedata.combining, unicodedata.normalize("NFKD", c))))
    return re.compile(f"[{marks}]{{{MARKS}}}(?=[{marks}])")
