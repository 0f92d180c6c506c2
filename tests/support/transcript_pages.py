"""Unpacks the data of a transcripts page, because a test can't find words in base64."""

from __future__ import annotations

import base64
import json
import re
import zlib
from typing import Any, NamedTuple


class Told(NamedTuple):
    """One reply of the page: role, text and note of each turn, and each verdict with its evidence."""

    id: str
    repeat: int
    system: str
    turns: list[tuple[str, str, str]]
    findings: list[tuple[dict[str, Any], list[str]]]


def unpacked(page: str) -> dict[str, str]:
    """The page's blocks by name."""
    found = re.findall(r'<script type="text/plain" id="([\w-]+)">([A-Za-z0-9+/=]*)</script>', page)
    return {name: zlib.decompress(base64.b64decode(packed)).decode() for name, packed in found}


def everything(page: str) -> str:
    """The page and its unpacked data, to search for what must not be there."""
    return "\n".join([page, *unpacked(page).values()])


def told(page: str) -> list[Told]:
    """The page's replies, in order."""
    held = unpacked(page)
    head, samples = json.loads(held["head"]), json.loads(held["samples"])
    texts = [t for n in range(len(head["starts"])) for t in held[f"texts-{n}"].split("\0")]
    replies = [row for n in range(head["reply_blocks"]) for row in json.loads(held[f"replies-{n}"])]
    found = []
    for sample, repeat, said, notes, verdicts in replies:
        name, system, script, _ = samples[sample]
        live = iter(zip(said, notes, strict=True))
        turns = []
        for step in script:
            text, note = (step >> 1, 0) if step else next(live)
            role = "Reply" if not step else "Scripted reply" if step % 2 else "Message"
            turns.append((role, texts[text], texts[note]))
        findings = [(head["types"][t], [texts[q] for q in quotes]) for t, quotes in verdicts]
        found.append(Told(name, repeat, texts[system], turns, findings))
    return found
