"""An LLM judge's answer → a label with quotes, or the reason why there is none. Nothing is guessed."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from judge.replies.fence import compared

# Characters of a reply in which quotes are looked for, and of a quote: a single one can stand for eighteen (U+FDFA), so
# that a reply of some megabytes would take gigabytes to compare.
QUOTED_FROM, LONGEST_QUOTE = 250_000, 10_000
PIECES = 16  # words left out between them, of one quote; each piece is searched for by itself
Shape = TypeVar("Shape", bound=BaseModel)


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    label: str
    quotes: list[str] = Field(max_length=3)


class _Reasoned(_Answer):
    reason: str  # asked for so that the judge thinks before it decides; dropped as soon as it is read


class _Category(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    category: str


class Parsed(NamedTuple):
    """`label` is None where `problem` says what was wrong with the answer."""

    label: str | None
    quotes: tuple[str, ...] = ()
    problem: str | None = None


def parse(answer: str | None, labels: tuple[str, ...], reply: str, reasoned: bool = False) -> Parsed:
    """Reads a judge's answer: one JSON object, a label of the closed set, quotes that occur in the reply.

    `reasoned`: the question asked for a field "reason" as well, which is then required and not kept.
    """
    read = _read(answer, _Reasoned if reasoned else _Answer)
    if isinstance(read, Parsed):
        return read
    if read.label not in labels:
        return Parsed(None, problem=f"label {read.label[:40]!r} is not one of {list(labels)}")
    text = _compared_once(reply)
    for quote in read.quotes:
        if not occurs(quote, text):
            return Parsed(None, problem=f"quote {quote[:60]!r} does not occur in the reply")
    return Parsed(read.label, tuple(read.quotes))


@lru_cache(maxsize=1)
def _compared_once(reply: str) -> str:
    """The reply that several answers in a row are about, as far as anybody quotes from it."""
    return compared(reply[:QUOTED_FROM])


def parse_category(answer: str | None, labels: tuple[str, ...]) -> Parsed:
    """Reads an answer that is {"category": one of the labels} and nothing else."""
    read = _read(answer, _Category)
    if isinstance(read, Parsed):
        return read
    if read.category not in labels:
        return Parsed(None, problem=f"category {read.category[:40]!r} is not one of {list(labels)}")
    return Parsed(read.category)


def _read(answer: str | None, shape: type[Shape]) -> Shape | Parsed:
    """The answer as `shape`, or what is wrong with it."""
    if answer is None or not answer.strip():
        return Parsed(None, problem="empty answer")
    try:
        return shape.model_validate(_object(answer))
    except ValidationError as error:
        first = error.errors()[0]
        return Parsed(
            None, problem=f"not the asked JSON: {'.'.join(map(str, first['loc'])) or 'answer'}: {first['msg']}"[:160]
        )
    except (ValueError, RecursionError) as error:
        return Parsed(None, problem=f"not the asked JSON: {str(error).splitlines()[0][:120]}")


def occurs(quote: str, text: str) -> bool:
    """Whether `quote` stands in `text` (already `compared`); "…" at its ends or in it stands for words that were left
    out.
    """
    if len(quote) > LONGEST_QUOTE:
        return False
    wanted = compared(quote).strip("' ")
    if not re.search(r"\w", wanted):
        return False
    if wanted in text:
        return True
    at = 0
    pieces = [p.strip("' ") for p in re.split(r"\[?\.\.\.\]?", wanted)]
    pieces = [p for p in pieces if p]
    if len(pieces) > PIECES:
        return False
    for piece in pieces:
        # Whole words, in order: else the letters of any sentence could be found scattered over a long reply.
        found = re.compile(rf"(?<!\w){re.escape(piece)}(?!\w)").search(text, at)
        if not found or not re.search(r"\w", piece):
            return False
        at = found.end()
    return True


def _object(answer: str) -> object:
    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        keys = [k for k, _ in pairs]
        if len(keys) != len(set(keys)):
            raise ValueError("a field stands twice")
        return dict(pairs)

    return json.loads(answer.strip(), object_pairs_hook=unique)
