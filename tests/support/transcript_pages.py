"""What a page of transcripts holds, unpacked: for tests, which otherwise would look for words in base64."""

from __future__ import annotations

import base64
import json
import re
import zlib
from itertools import accumulate, pairwise
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
    """The page and all that is packed in it, to be searched for what must not be there."""
    return "\n".join([page, *unpacked(page).values()])


def told(page: str) -> list[Told]:
    """The page's replies in its order."""
    held = unpacked(page)
    head = json.loads(held["head"])
    texts = [t for n in range(len(head["starts"])) for t in held[f"texts-{n}"].split("\0")]
    column = {name.removeprefix("column-"): json.loads(text) for name, text in held.items() if "column-" in name}
    scripts = _parts(column["script"], column["steps"])
    live = [script.count(0) for script in scripts]
    said = _parts(column["said"], [live[s] for s in column["sample"]])
    notes = _parts(column["notes"], [live[s] for s in column["sample"]])
    quoted = _parts(column["quoted"], column["quotes"])
    judged = _parts(list(zip(column["findings"], quoted, strict=True)), column["verdicts"])
    found = []
    for e, sample in enumerate(column["sample"]):
        replies = iter(zip(said[e], notes[e], strict=True))
        turns = []
        for step in scripts[sample]:
            text, note = (step >> 1, 0) if step else next(replies)
            role = "Reply" if not step else "Scripted reply" if step % 2 else "Message"
            turns.append((role, texts[text], texts[note]))
        findings = [(head["types"][t], [texts[q] for q in quotes]) for t, quotes in judged[e]]
        system = texts[column["system"][sample]]
        found.append(Told(column["ids"][sample], column["repeat"][e], system, turns, findings))
    return found


def _parts(values: list[Any], counts: list[int]) -> list[list[Any]]:
    """A flat column cut into the part of each."""
    assert len(values) == sum(counts)
    return [values[a:b] for a, b in pairwise(accumulate(counts, initial=0))]
