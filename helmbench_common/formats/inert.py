"""Makes untrusted text and names safe to show in a terminal or on a page."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

# Control characters and bidirectional overrides. Right-to-left scripts can be read without them.
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
# Combining marks and wide spaces. No script puts eight marks on one letter, and a hundred cover nearby lines.
_HEAPED = "".join(chr(n) for n in range(0x10000) if unicodedata.category(chr(n)) in ("Mn", "Me"))
_HEAPED += "\u1680\u2000-\u200a\u205f\u3000"
HEAPED = re.compile(f"([{_HEAPED}]{{8}})([{_HEAPED}]+)")


def inert(text: str) -> str:
    """Text that can't reorder, color, cover or break its surroundings: control characters are spelled out, and long
    runs of marks or wide spaces are replaced by counts. Line ends and tabs stay.
    """
    text = CONTROLS.sub(lambda found: f"[U+{ord(found[0]):04X}]", text.replace("\r\n", "\n"))
    return text if text.isascii() else HEAPED.sub(lambda found: f"{found[1]}[{len(found[2])} more]", text)


def clip(text: str, characters: int = 200) -> str:
    """Inert text, cut after `characters` with a note on its full length."""
    return inert(text if len(text) <= characters else f"{text[:characters]}… ({len(text)} characters)")


def inert_all(value: Any) -> Any:
    """Plain values in which every text is inert, including keys."""
    if isinstance(value, dict):
        return {inert(str(k)): inert_all(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [inert_all(v) for v in value]
    return inert(value) if isinstance(value, str) else value


def printed(value: Any) -> Any:
    """The `finalize` of every Jinja environment: makes plain text inert and leaves everything else unchanged."""
    return inert(value) if type(value) is str else value


def escaped(text: str) -> str:
    """`inert` for a JSON document: control characters become JSON escapes, so its values stay the same."""
    return CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
