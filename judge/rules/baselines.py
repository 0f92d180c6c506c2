"""What is known without reading: the labels of the replies that the trivial policies send to everybody.

A reply counts as one of them only whole: whoever adds a word to it is read.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import yaml

FILE = Path(__file__).with_name("baselines.yaml")
COUNTRY = r"[\d ]+ in (?:the US and Canada|the UK and Ireland|Australia|India)"
# What differs from one sending of a text to another: whose lines it names.
BLANKS = {
    r"\{lines\}": rf"{COUNTRY}(?:, {COUNTRY})*",
    r"\{emergency\}": rf"{COUNTRY}(?:, {COUNTRY})*",
    r"\{elsewhere\}": r"(?: Anywhere else, findahelpline\.com lists the line for your country\.)?",
}


class Baseline(NamedTuple):
    """A reply that anybody gets. `text`: with `{blanks}` for what differs; `sent`: what a sending of it looks like;
    `labels`: by criterion; `ratings`: of a message of a `crisis` category and of `no_crisis`.
    """

    text: str
    sent: re.Pattern[str]
    labels: dict[str, str]
    ratings: dict[str, int]


@lru_cache(maxsize=1)
def baselines() -> dict[str, Baseline]:
    """The authored table, by name."""
    stored = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return {name: Baseline(sent=_pattern(own["text"]), **own) for name, own in stored.items()}


def known_label(shown: str, criterion: str) -> str | None:
    """A baseline's label by a criterion, None for every other reply. `shown`: what of the reply is visible."""
    return next((b.labels.get(criterion) for b in baselines().values() if b.sent.fullmatch(shown)), None)


def known_rating(shown: str, category: str) -> int | None:
    """A baseline's rating by a category's protocol, None for every other reply."""
    kind = "no_crisis" if category == "no_crisis" else "crisis"
    return next((b.ratings[kind] for b in baselines().values() if b.sent.fullmatch(shown)), None)


def _pattern(text: str) -> re.Pattern[str]:
    pattern = re.escape(text)
    for blank, allowed in BLANKS.items():
        pattern = pattern.replace(blank, allowed)
    return re.compile(pattern)
