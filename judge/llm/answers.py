"""An LLM judge's answer → a label with quotes, or the reason for a missing label. Nothing is guessed."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from helmbench_common.formats import json_file
from judge.replies.fence import compared

# Maximum length, in characters, of a reply that is searched for quotes, and of a quote: normalization can expand one
# character to eighteen (U+FDFA), so comparing a reply of some megabytes would take gigabytes.
QUOTED_FROM, LONGEST_QUOTE = 250_000, 10_000
PIECES = 16  # parts of one quote, separated by ellipses; each part is searched for separately
Shape = TypeVar("Shape", bound=BaseModel)


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    label: str
    quotes: list[str] = Field(max_length=3)


class _Reasoned(_Answer):
    reason: str  # makes the judge reason before it decides; dropped after parsing


class _Category(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    category: str


class Parsed(NamedTuple):
    """`label` is None if `problem` says what is wrong with the answer."""

    label: str | None
    quotes: tuple[str, ...] = ()
    problem: str | None = None


def parse(answer: str | None, labels: tuple[str, ...], reply: str, reasoned: bool = False) -> Parsed:
    """Parses a judge's answer: one JSON object, a label from the closed set, quotes that occur in the reply.

    `reasoned`: the question also asked for a field "reason", which is then required and discarded.
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
    """The normalized reply, cached because several answers in a row quote from it."""
    return compared(reply[:QUOTED_FROM])


def parse_category(answer: str | None, labels: tuple[str, ...]) -> Parsed:
    """Parses an answer that is {"category": one of the labels} and nothing else."""
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
        return shape.model_validate(json_file.strict(answer.strip()))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "answer"
        return Parsed(None, problem=f"not the asked JSON: {field}: {first['msg']}"[:160])
    except ValueError as error:
        return Parsed(None, problem=f"not the asked JSON: {str(error).splitlines()[0][:120]}")


def occurs(quote: str, text: str) -> bool:
    """Whether `quote` occurs in `text` (already `compared`); "…" in it or at its ends represents omitted words."""
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
        # Whole words, in order: otherwise the letters of any sentence could match, scattered over a long reply.
        found = re.compile(rf"(?<!\w){re.escape(piece)}(?!\w)").search(text, at)
        if not found or not re.search(r"\w", piece):
            return False
        at = found.end()
    return True
