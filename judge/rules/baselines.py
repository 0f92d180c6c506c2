"""Labels that are known without reading: those of the trivial policies' fixed replies.

Only an exact, complete copy counts as one of them: a reply with anything added is read by a judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Literal

from dataset_builder.schema import Baseline

COUNTRY = r"[\d ]+ in (?:the US and Canada|the UK and Ireland|Australia|India)"
# The variable part of a text: whose helplines it names.
BLANKS = {
    r"\{lines\}": rf"{COUNTRY}(?:, {COUNTRY})*",
    r"\{emergency\}": rf"{COUNTRY}(?:, {COUNTRY})*",
    r"\{elsewhere\}": r"(?: Anywhere else, findahelpline\.com lists the line for your country\.)?",
}


def known_label(baselines: Mapping[str, Baseline], shown: str, criterion: str) -> str | None:
    """A baseline's label under a criterion; None for every other reply. `shown`: the visible part of the reply."""
    return next((b.labels[criterion] for b in _sent(baselines.values(), shown) if criterion in b.labels), None)


def known_rating(baselines: Mapping[str, Baseline], shown: str, category: str) -> int | None:
    """A baseline's rating under a category's protocol; None for every other reply."""
    kind: Literal["crisis", "no_crisis"] = "no_crisis" if category == "no_crisis" else "crisis"
    return next((b.ratings[kind] for b in _sent(baselines.values(), shown) if b.ratings), None)


def _sent(baselines: Iterable[Baseline], shown: str) -> Iterable[Baseline]:
    return (b for b in baselines if b.text and _pattern(b.text).fullmatch(shown))


@cache
def _pattern(text: str) -> re.Pattern[str]:
    pattern = re.escape(text)
    for blank, allowed in BLANKS.items():
        pattern = pattern.replace(blank, allowed)
    return re.compile(pattern)
