"""Sentences of TEMPLATE.md that a scenario still holds. A placeholder that stays would be asked of every model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from dataset_builder.prompts import CONTENT
from dataset_builder.reading.markdown import Errors

TEMPLATE = CONTENT / "TEMPLATE.md"
PROSE = re.compile(r"(?:title|job): +(?P<value>.+)")  # front matter that is somebody's words; the rest are fields
LISTED = re.compile(r"- (?:[A-Z][A-Z_]*: )?")


@cache
def placeholders() -> frozenset[str]:
    """Every sentence of the template that its author is to replace."""
    lines = TEMPLATE.read_text(encoding="utf-8").splitlines()
    return frozenset(_plain(s) for _, text in _prose(lines) for s in _sentences(text))


def left_over(path: Path, lines: list[str], errors: Errors) -> None:
    """An error for each sentence of the template that stands whole in a scenario of these lines."""
    for number, text in _prose(lines):
        for sentence in _sentences(text):
            if _plain(sentence) in placeholders():
                errors.add(path, number, f"'{sentence}' is the template's; expected words of your own")


def _prose(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Lines that are somebody's words, numbered: no headings, and no fields but a title and a job."""
    end = lines.index("---", 1) if lines[:1] == ["---"] and "---" in lines[1:] else -1
    for number, line in enumerate(lines, start=1):
        if number - 1 > end and not line.startswith("#"):
            yield number, line
        elif match := PROSE.fullmatch(line):
            yield number, match["value"]


def _sentences(line: str) -> list[str]:
    """The sentences of a line. What says the form of an answer (`{"tags": …}`) is shared by many, and none of them."""
    text = LISTED.sub("", line.strip(), count=1) if line.startswith("- ") else line.strip()
    return [] if "{" in text else [s for s in re.split(r"(?<=[.!?:]) +", text) if s]


def _plain(sentence: str) -> str:
    return " ".join(re.findall(r"[\w']+", sentence.lower()))
