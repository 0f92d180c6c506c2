"""Dates that chat templates write: the only text beside the messages that may differ between requests, since a run may
last over midnight. Only days of the calendar count, and only as long as they don't tell what the samples are.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import date
from typing import NamedTuple

from dataset_builder.schema import Row
from leaderboard.schema import ARCHIVE, Problem

MARK = "\0DATE\0"  # stands for a date in what is compared
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
NUMBERS = {name[:length]: n for n, name in enumerate(MONTHS, start=1) for length in (3, len(name))}
NAMES = "|".join(sorted(NUMBERS, key=len, reverse=True))
# 2026-07-26, 26 Jul 2026, 26 July 2026, July 26, 2026: what `strftime_now` is asked for in published templates.
YEAR, TWO, DAY, MONTH = "([0-9]{4})", "([0-9]{2})", "([0-9]{1,2})", f"({NAMES})"
FORMS = re.compile(f"{YEAR}-{TWO}-{TWO}|{DAY} {MONTH} {YEAR}|{MONTH} {DAY}, {YEAR}")
LONGEST = 20  # characters of a date, and some more
YEARS = range(2000, 2100)
MOST = 8  # dates in one request; more are text like any other
TOLD_FROM = 20  # dated requests from which a date may be found to tell a label
TELLS, SEEMS_TO_TELL = 0.5, 0.1  # share of a guesser's errors about samples that knowing the day would save
DAYS = 7  # that a run may last without a word


def _day(found: re.Match[str]) -> date | None:
    a, b, c, day, month, year, month_us, day_us, year_us = found.groups()
    try:
        if a:
            value = date(int(a), int(b), int(c))
        elif month:
            value = date(int(year), NUMBERS[month], int(day))
        else:
            value = date(int(year_us), NUMBERS[month_us], int(day_us))
    except ValueError:
        return None
    return value if value.year in YEARS else None


def evened(text: str) -> tuple[str, list[date]]:
    """A text with MARK in the place of its first MOST dates, and these."""
    pieces: list[str] = []
    days: list[date] = []
    at = 0
    for found in FORMS.finditer(text):
        if len(days) < MOST and (day := _day(found)):
            days.append(day)
            pieces += [text[at : found.start()], MARK]
            at = found.end()
    return "".join([*pieces, text[at:]]), days


def read(text: str, at: int) -> tuple[date, int] | None:
    """The date that stands at a place of a text, and where it ends."""
    found = FORMS.match(text[at : at + LONGEST])
    day = _day(found) if found else None
    return (day, at + found.end()) if found and day else None


class _Known(NamedTuple):
    """What could be told of the samples that were asked on one day: by polarity, and by severity."""

    polarity: Counter[str]
    severity: Counter[int]


class Days:
    """The days that stand in requests, with what their samples are."""

    def __init__(self) -> None:
        self._seen: dict[tuple[date, ...], _Known] = defaultdict(lambda: _Known(Counter(), Counter()))

    def add(self, days: list[date], row: Row) -> None:
        """One request, which may have none."""
        if days:
            self._seen[tuple(days)].polarity[row.polarity] += 1
            self._seen[tuple(days)].severity[row.severity] += 1

    def told(self) -> tuple[list[Problem], list[Problem]]:
        """Problems and flags: dates that tell the samples' polarity or severity, and a run of many days."""
        known = list(self._seen.values())
        asked = sum(k.polarity.total() for k in known)
        if len(known) < 2 or asked < TOLD_FROM:
            return [], []
        saved = max(_saved([k.polarity for k in known]), _saved([k.severity for k in known]))
        days = {day for own in self._seen for day in own}
        said = f"{asked} requests name {len(days)} days, {', '.join(self._counts())}"
        if saved > TELLS:
            return [Problem("outside_text", ARCHIVE, f"{said}: the date tells what the sample is")], []
        if saved > SEEMS_TO_TELL or len(days) > DAYS:
            return [], [Problem("dates", ARCHIVE, f"{said}: look whether the date tells what the sample is")]
        return [], []

    def _counts(self) -> Iterator[str]:
        for days, known in sorted(self._seen.items())[:4]:
            counts = ", ".join(f"{n} {name}" for name, n in sorted(known.polarity.items()))
            yield f"{days[0].isoformat()} ({counts})"


def _saved(groups: list[Counter[str]] | list[Counter[int]]) -> float:
    """The share of errors that somebody who guesses the most frequent value saves by knowing the group."""
    whole: Counter[str | int] = Counter()
    for group in groups:
        whole.update(group)
    wrong = whole.total() - max(whole.values())
    better = sum(max(group.values()) for group in groups) - max(whole.values())
    return better / wrong if wrong else 0.0
