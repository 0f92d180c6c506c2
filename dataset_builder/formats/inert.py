"""Other people's text and names where a person will see them, on a terminal or a page."""

from __future__ import annotations

import re

# Scripts that run right to left need no controls to be read; these only reorder what stands around them.
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
SPELT = {n: f"[U+{n:04X}]" for n in range(0x10000) if CONTROLS.match(chr(n))}


def inert(text: str) -> str:
    """Text with control characters, bidirectional overrides and lone surrogates spelt out, so that it can't reorder,
    colour or break what it stands in. Line ends and tabs stay.
    """
    text = text.replace("\r\n", "\n")
    return text.translate(SPELT) if CONTROLS.search(text) else text


def escaped(text: str) -> str:
    """The same of a JSON document, whose values stay what they are: such characters are written as its escapes."""
    return CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
