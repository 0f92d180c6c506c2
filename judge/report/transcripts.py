"""Every reply that may be seen → the data of `transcripts.html`, a page that opens from disk and needs nothing else.

A hundred thousand replies are a hundred megabytes, so the page holds them packed, in blocks that its script unpacks
when it needs them. All words stand once in *texts*, which are numbered; what stands around them are columns of numbers.
Both are deflated and written in base64, in which no reply can break out of the page. What must not be seen never comes
here (`judge.report.entries`).

    texts-N        some of the texts, in the order in which they are first read, between null characters
    column-NAME    a column as JSON: of samples (`ids`, `system`, `script`, each describing facet), of replies
                   (`sample`, `repeat`, `said`, `notes`) or of verdicts (`findings`, `quoted`)
    head           JSON: what the numbers mean

Of `script` and what is written after it, each sample or reply has as many as `steps`, `verdicts` and `quotes` say.
"""

from __future__ import annotations

import base64
import json
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple, cast

from dataset_builder.schema import CriterionRow, Sample
from helmbench_common.formats.inert import inert
from judge.report.entries import Entries, Exchange, Finding, Played, exchange, system_text
from judge.wording import FAMILIES, behavior_title, plain, whole

FORMAT = "helmbench-transcripts-1"
COLUMNS = ("system", "steps", "script", "sample", "repeat", "said", "notes", "verdicts", "findings", "quotes", "quoted")
BLOCK = 400_000
EFFORT = 3  # of zlib: a third of the default's time, for a file that is 7 % larger
LONGEST = 100_000  # characters of one reply; a model that can't stop fills no page
DECIDERS = {"rule": "a rule", "offline": "the offline judge", "judge": "a language model", "panel": "a majority"}


class Block(NamedTuple):
    """One part of the page's data. `text`: deflated, in base64."""

    name: str
    text: str


class Facet(NamedTuple):
    """Something that replies or verdicts are told apart by. `label`: of a value, in words.

    `offered`: as a filter; the others are only shown.
    """

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


def blocks(found: Entries, criteria: dict[str, CriterionRow]) -> Iterator[Block]:
    """The page's data, made block by block: what is kept is numbers. The same replies give the same blocks."""
    texts, table = Texts(), Table()
    for played in found.played:
        table.add(played, exchange(*played, LONGEST), texts)
        if texts.size >= BLOCK:
            yield texts.block()
    yield texts.block()
    for name, column in table.columns.items():
        yield _json(f"column-{name}", list(column))
    yield _json("column-ids", [*table.samples])
    yield _json("head", table.head(texts, criteria))


@dataclass
class Texts:
    """Distinct texts, numbered from 0, which is the empty one. `starts`: the first number of each finished block."""

    numbers: dict[bytes, int] = field(default_factory=dict)
    starts: list[int] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    size: int = 0

    def __post_init__(self) -> None:
        self.number("")

    def number(self, text: str) -> int:
        """The number of a text, whose control characters are spelt out."""
        # A digest in the text's place: what was written is not kept.
        digest = blake2b(text.encode(), digest_size=16).digest()
        if digest not in self.numbers:
            self.numbers[digest] = len(self.numbers)
            self.open.append(text)
            self.size += len(text)
        return self.numbers[digest]

    def block(self) -> Block:
        """Those that no block holds yet."""
        packed = _packed(f"texts-{len(self.starts)}", "\0".join(self.open))
        self.starts.append(len(self.numbers) - len(self.open))
        self.open, self.size = [], 0
        return packed


class Table:
    """Columns of numbers, and the values that they stand for, in the order in which these are first met."""

    def __init__(self) -> None:
        self.samples: dict[str, int] = {}
        self.columns = {name: array("I") for name in (*COLUMNS, *(f.name for f in OF_SAMPLES))}
        self.types: dict[Finding, int] = {}  # a verdict without its evidence: there are few of these
        self.values: dict[str, dict[str, int]] = {f.name: {"": 0} for f in (*OF_VERDICTS, *OF_SAMPLES)}

    def add(self, played: Played, said: Exchange, texts: Texts) -> None:
        """One reply with its conversation and its verdicts."""
        known = played.row.id in self.samples
        sample = self.samples.setdefault(played.row.id, len(self.samples))
        if not known:
            self._sample(played.row, said, texts)
        replies = [t for t in said.turns if t.role == "Reply"]
        self._put("sample", [sample])
        self._put("repeat", [played.reply.repeat])
        self._put("said", (texts.number(t.text) for t in replies))
        self._put("notes", (texts.number(t.note) for t in replies))
        self._put("verdicts", [len(said.findings)])
        for finding in said.findings:
            bare = finding._replace(evidence=())
            self._put("findings", [self.types.setdefault(bare, len(self.types))])
            self._put("quotes", [len(finding.evidence)])
            self._put("quoted", map(texts.number, finding.evidence))

    def head(self, texts: Texts, criteria: dict[str, CriterionRow]) -> dict[str, Any]:
        """What the numbers mean."""
        types = [self._type(f) for f in self.types]
        return {
            "format": FORMAT,
            "starts": texts.starts,
            "texts": len(texts.numbers),
            "verdict_facets": [self._facet(f) for f in OF_VERDICTS],
            "sample_facets": [self._facet(f) for f in OF_SAMPLES],
            "types": types,
            "criteria": {name: {"title": c.title, "text": c.text} for name, c in criteria.items()},
        }

    def _sample(self, row: Sample, said: Exchange, texts: Texts) -> None:
        self._put("system", [texts.number(system_text(row))])
        # A live turn is 0; a text is twice its number, and one more where the script speaks for the model.
        steps = [0 if t.role == "Reply" else 2 * texts.number(t.text) + (t.role != "Message") for t in said.turns]
        self._put("steps", [len(steps)])
        self._put("script", steps)
        for facet in OF_SAMPLES:
            self._put(facet.name, [self._code(facet, _value(row, facet.name))])

    def _type(self, finding: Finding) -> dict[str, Any]:
        own = ("failed", "behavior", "incident", "label", "polarity", "severity", "reply", "where", "details")
        codes = [self._code(f, _word(getattr(finding, f.name))) for f in OF_VERDICTS]
        return {name: getattr(finding, name) for name in own} | {"codes": codes}

    def _facet(self, facet: Facet) -> dict[str, Any]:
        values = [[value, facet.label(value) if value else "none"] for value in self.values[facet.name]]
        return {"name": facet.name, "title": facet.title, "offered": facet.offered, "values": values}

    def _code(self, facet: Facet, value: str) -> int:
        return self.values[facet.name].setdefault(value, len(self.values[facet.name]))

    def _put(self, name: str, numbers: Iterable[int]) -> None:
        self.columns[name].extend(numbers)


def _value(row: Sample, name: str) -> str:
    """What a sample has in a describing column; empty where it has nothing."""
    value = getattr(row, name, None)
    if isinstance(value, list):
        return ", ".join(value)
    return whole(value) if isinstance(value, int) else inert(value or "")


def _word(value: str | bool) -> str:
    return value if isinstance(value, str) else "yes" if value else "no"


def _json(name: str, value: Any) -> Block:
    return _packed(name, json.dumps(_inert(value), ensure_ascii=False, separators=(",", ":")))


def _inert(value: Any) -> Any:
    """Plain values with every text in them, the names of fields apart, spelt out as it may be shown."""
    if isinstance(value, str):
        return inert(value)
    if isinstance(value, list | tuple):
        return [_inert(v) for v in cast("Sequence[Any]", value)]
    if isinstance(value, dict):
        return {k: _inert(v) for k, v in cast("dict[str, Any]", value).items()}
    return value


def _packed(name: str, text: str) -> Block:
    return Block(name, base64.b64encode(zlib.compress(text.encode(), EFFORT)).decode())
