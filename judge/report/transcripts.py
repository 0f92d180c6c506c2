"""Every reply that may be shown → the data of `transcripts.html`, a self-contained page that opens from disk.

A hundred thousand replies are a hundred megabytes, so the page contains them deflated, in blocks that its script
inflates on demand. Base64 keeps a reply from breaking out of the page. Every text is stored once and numbered:

    texts-N      texts, in the order in which they are first read, between null characters
    samples      JSON: [id, system text, script, codes of OF_SAMPLES] of each sample; in a script, 0 is a reply of the
                 model, and a text is twice its number, plus one if it is a scripted reply
    replies-N    JSON: [sample, repeat, texts, notes, verdicts] of each reply; a verdict is [type, texts it quotes]
    head         JSON: what the numbers mean
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

from dataset_builder.schema import CriterionRow, Sample
from helmbench_common.formats.inert import inert, inert_all
from judge.report.entries import Exchange, Finding, ShownReply, exchange, system_text
from judge.schema import HARM
from judge.wording import FAMILIES, behavior_title, plain, whole

FORMAT = "helmbench-transcripts-2"
BLOCK = 400_000  # characters
EFFORT = 3  # of zlib: a third of the default's time, for a file that is 7 % larger
LONGEST = 100_000  # characters of one reply
DECIDERS = {"rule": "a rule", "offline": "the offline judge", "judge": "a language model", "panel": "a majority"}


class Block(NamedTuple):
    """A part of the page's data. `text`: deflated and base64-encoded."""

    name: str
    text: str


class Facet(NamedTuple):
    """A property of samples or verdicts. `label`: formats a value. `offered`: as a filter; others are only shown."""

    name: str
    title: str
    label: Callable[[str], str] = plain
    offered: bool = True


TITLES: dict[str, str] = {family: words.title for family, words in FAMILIES.items()}
OF_VERDICTS = (
    Facet("failed", "Failed"),
    Facet("label", "Verdict"),
    Facet("incident", "Incident"),
    Facet("behavior", "Behavior", behavior_title),
    Facet("polarity", "Message"),
    Facet("decided", "Decided by", lambda kind: DECIDERS.get(kind, kind)),
)
OF_SAMPLES = (
    Facet("scenario", "Scenario"),
    Facet("family", "Hard family", lambda name: TITLES.get(name, name)),
    Facet("crisis_category", "Category"),
    Facet("condition_kind", "Kind of product"),
    Facet("persona", "Person"),
    Facet("country", "Country"),
    Facet("condition", "System instructions", offered=False),
    Facet("user_context", "What the product remembers", offered=False),
    Facet("severity", "Severity", offered=False),
    Facet("difficulty", "Difficulty", offered=False),
    Facet("arm", "Safety prompt", offered=False),
    Facet("clarity", "Clarity", offered=False),
    Facet("register_", "Register", offered=False),
    Facet("tiers", "Tiers", offered=False),
)
SHOWN = ("failed", "behavior", "incident", "label", "polarity", "severity", "reply", "where", "details")  # of a verdict


def blocks(found: list[ShownReply], criteria: dict[str, CriterionRow]) -> Iterator[Block]:
    """The page's data, block by block. Deterministic."""
    page = _Page()
    for shown in found:
        page.add(shown, exchange(*shown, LONGEST))
        if page.size >= BLOCK:
            yield page.texts()
        if page.waiting >= BLOCK:
            yield page.replies()
    yield page.texts()
    yield page.replies()
    yield _json("samples", page.samples)
    yield _json("head", page.head(criteria))


@dataclass
class _Page:
    """The state so far: the numbers of texts, samples and kinds of verdicts, and data not yet in a block."""

    numbers: dict[bytes, int] = field(default_factory=dict)  # by digest, so that the texts needn't stay in memory
    open: list[str] = field(default_factory=list)
    size: int = 0
    starts: list[int] = field(default_factory=list)  # the first text of each block
    rows: list[str] = field(default_factory=list)
    waiting: int = 0
    reply_blocks: int = 0
    sample_numbers: dict[str, int] = field(default_factory=dict)
    samples: list[Any] = field(default_factory=list)
    types: dict[Finding, int] = field(default_factory=dict)  # verdicts without their evidence: there are few of these
    values: dict[str, dict[str, int]] = field(
        default_factory=lambda: {f.name: {"": 0} for f in (*OF_VERDICTS, *OF_SAMPLES)}
    )

    def __post_init__(self) -> None:
        self.number("")

    def number(self, text: str) -> int:
        digest = blake2b(text.encode(), digest_size=16).digest()
        if digest not in self.numbers:
            self.numbers[digest] = len(self.numbers)
            self.open.append(text)
            self.size += len(text)
        return self.numbers[digest]

    def add(self, shown: ShownReply, said: Exchange) -> None:
        row = shown.row
        if row.id not in self.sample_numbers:
            self.sample_numbers[row.id] = len(self.samples)
            script = [0 if t.role == "Reply" else 2 * self.number(t.text) + (t.role != "Message") for t in said.turns]
            codes = [self._code(f, _value(row, f.name)) for f in OF_SAMPLES]
            self.samples.append([row.id, self.number(system_text(row)), script, codes])
        turns = [t for t in said.turns if t.role == "Reply"]
        texts, notes = ([self.number(x) for x in own] for own in ([t.text for t in turns], [t.note for t in turns]))
        verdicts = [
            [self.types.setdefault(f._replace(evidence=()), len(self.types)), [*map(self.number, f.evidence)]]
            for f in said.findings
        ]
        self.rows.append(_compact([self.sample_numbers[row.id], shown.reply.repeat, texts, notes, verdicts]))
        self.waiting += len(self.rows[-1])

    def texts(self) -> Block:
        packed = _packed(f"texts-{len(self.starts)}", "\0".join(self.open))
        self.starts.append(len(self.numbers) - len(self.open))
        self.open, self.size = [], 0
        return packed

    def replies(self) -> Block:
        packed = _packed(f"replies-{self.reply_blocks}", f"[{','.join(self.rows)}]")
        self.reply_blocks += 1
        self.rows, self.waiting = [], 0
        return packed

    def head(self, criteria: dict[str, CriterionRow]) -> dict[str, Any]:
        types = [
            {name: getattr(f, name) for name in SHOWN}
            | {"codes": [self._code(facet, _word(getattr(f, facet.name))) for facet in OF_VERDICTS]}
            for f in self.types
        ]
        return {
            "format": FORMAT,
            "starts": self.starts,
            "texts": len(self.numbers),
            "reply_blocks": self.reply_blocks,
            "verdict_facets": [self._facet(f) for f in OF_VERDICTS],
            "sample_facets": [self._facet(f) for f in OF_SAMPLES],
            "types": types,
            "harm": sorted(HARM),
            "criteria": {name: {"title": c.title, "text": c.text} for name, c in criteria.items()},
        }

    def _facet(self, facet: Facet) -> dict[str, Any]:
        values = [[value, facet.label(value) if value else "none"] for value in self.values[facet.name]]
        return {"name": facet.name, "title": facet.title, "offered": facet.offered, "values": values}

    def _code(self, facet: Facet, value: str) -> int:
        return self.values[facet.name].setdefault(value, len(self.values[facet.name]))


def _value(row: Sample, name: str) -> str:
    """A sample's value in a column, or ""."""
    value = getattr(row, name, None)
    if isinstance(value, list):
        return ", ".join(value)
    return whole(value) if isinstance(value, int) else inert(value or "")


def _word(value: str | bool) -> str:
    return value if isinstance(value, str) else "yes" if value else "no"


def _json(name: str, value: Any) -> Block:
    return _packed(name, _compact(inert_all(value)))


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _packed(name: str, text: str) -> Block:
    return Block(name, base64.b64encode(zlib.compress(text.encode(), EFFORT)).decode())
