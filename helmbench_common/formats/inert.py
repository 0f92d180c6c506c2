"""Other people's text and names where a person will see them, on a terminal or a page."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

# Scripts that run right to left need no controls to be read; these only reorder what stands around them.
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
SPELT = {n: f"[U+{n:04X}]" for n in range(0x10000) if CONTROLS.match(chr(n))}
# No script puts eight marks on one letter, and a hundred are drawn over the lines around it; between wide spaces no
# line is broken.
_HEAPED = "".join(chr(n) for n in range(0x10000) if unicodedata.category(chr(n)) in ("Mn", "Me"))
_HEAPED += "\u1680\u2000-\u200a\u205f\u3000"
HEAPED = re.compile(f"([{_HEAPED}]{{8}})([{_HEAPED}]+)")


def inert(text: str) -> str:
    """Text with control characters, bidirectional overrides and lone surrogates spelt out, and heaps of marks or wide
    spaces counted, so that it can't reorder, colour, cover or break what it stands in. Line ends and tabs stay.
    """
    text = text.replace("\r\n", "\n")
    if CONTROLS.search(text):
        text = text.translate(SPELT)
    return text if text.isascii() else HEAPED.sub(lambda found: f"{found[1]}[{len(found[2])} more]", text)


def clip(text: str, characters: int = 200) -> str:
    """Inert text, cut after `characters` with a note of its full length."""
    return inert(text if len(text) <= characters else f"{text[:characters]}… ({len(text)} characters)")


def printed(value: Any) -> Any:
    """What a template prints: plain text inert, everything else as it is. For `finalize` of a Jinja environment, so
    that no value of any page can be forgotten.
    """
    return inert(value) if type(value) is str else value


def escaped(text: str) -> str:
    """The same of a JSON document, whose values stay what they are: such characters are written as its escapes."""
    return CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
