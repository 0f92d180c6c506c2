"""An LLM judge's answer → a label with quotes, or the reason why there is none. Nothing is guessed."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    label: str
    quotes: list[str] = Field(max_length=3)


class Parsed(NamedTuple):
    """`label` is None where `problem` says what was wrong with the answer."""

    label: str | None
    quotes: tuple[str, ...] = ()
    problem: str | None = None


def parse(answer: str | None, labels: tuple[str, ...], reply: str) -> Parsed:
    """Reads a judge's answer: one JSON object, a label of the closed set, quotes that occur in the reply."""
    if answer is None or not answer.strip():
        return Parsed(None, problem="empty answer")
    try:
        read = _Answer.model_validate(_object(answer))
    except (ValueError, ValidationError, RecursionError) as error:
        return Parsed(None, problem=f"not the asked JSON: {str(error).splitlines()[0][:120]}")
    if read.label not in labels:
        return Parsed(None, problem=f"label {read.label[:40]!r} is not one of {list(labels)}")
    text = plain(reply)
    for quote in read.quotes:
        if not plain(quote) or plain(quote) not in text:
            return Parsed(None, problem=f"quote {quote[:60]!r} does not occur in the reply")
    return Parsed(read.label, tuple(read.quotes))


def plain(text: str) -> str:
    """The form in which quotes are compared: NFKC, straight quotes, single spaces, `…` as three dots, lower case."""
    folded = unicodedata.normalize("NFKC", text).replace("\u200b", "")
    for curly, straight in (("\u2018", "'"), ("\u2019", "'"), ("\u201c", '"'), ("\u201d", '"'), ("\u2013", "-"), ("\u2014", "-")):
        folded = folded.replace(curly, straight)
    return re.sub(r"\s+", " ", folded).strip().strip("\"'").lower()


def _object(answer: str) -> object:
    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        keys = [k for k, _ in pairs]
        if len(keys) != len(set(keys)):
            raise ValueError("a field stands twice")
        return dict(pairs)

    return json.loads(answer.strip(), object_pairs_hook=unique)
