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
from leaderboard.schema import RESPONSES, Problem

MARK = "\ud800DATE\ud800"  # stands for a date in what is compared; half a character is in no request
SHOWN = "[date]"  # the same in a message
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
NUMBERS = {name[:length]: n for n, name in enumerate(MONTHS, start=1) for length in (3, len(name))}
NAMES = "|".join(sorted(NUMBERS, key=len, reverse=True))
# 2026-07-26, 26 Jul 2026, 26 July 2026, July 26, 2026: what `strftime_now` is asked for in published templates.
YEAR, TWO, DAY, MONTH = "([0-9]{4})", "([0-9]{2})", "([0-9]{1,2})", f"({NAMES})"
FORMS = re.compile(f"{YEAR}-{TWO}-{TWO}|{DAY} {MONTH} {YEAR}|{MONTH} {DAY}, {YEAR}")
SHORT, TEN = 3, 10  # letters of a month's short name; the first day without a zero
ZERO = {(2, True): "with a zero", (1, True): "without a zero"}  # by digits, and whether one is enough
LONGEST = 20  # characters of a date, and some more
YEARS = range(2000, 2100)
MOST = 8  # dates in one request; more are text like any other
TOLD_FROM = 20  # dated requests from which a date may be found to tell a label
TELLS = 0.5  # share of a guesser's errors about samples that knowing the day would save: more is no chance


class Written(NamedTuple):
    """A date, and how it is written: the order of its parts, the length of its month's name, whether its day has a
    zero before it. Empty where the date doesn't tell, as `26 May 2026` tells neither of the last two.
    """

    day: date
    order: str
    month: str = ""
    zero: str = ""


def _written(found: re.Match[str]) -> Written | None:
    a, b, c, *words = found.groups()
    day, name, year = words[:3] if words[0] else (words[4], words[3], words[5])
    try:
        value = date(int(a), int(b), int(c)) if a else date(int(year), NUMBERS[name], int(day))
    except ValueError:
        return None
    if value.year not in YEARS:
        return None
    if a:
        return Written(value, "2026-07-26")
    month = "" if name == MONTHS[4] else "short" if len(name) == SHORT else "long"
    return Written(
        value, "26 Jul 2026" if words[0] else "Jul 26, 2026", month, ZERO.get((len(day), value.day < TEN), "")
    )


def evened(text: str) -> tuple[str, list[Written]]:
    """A text with MARK in the place of its first MOST dates, and these."""
    pieces: list[str] = []
    days: list[Written] = []
    at = 0
    for found in FORMS.finditer(text):
        if len(days) < MOST and (day := _written(found)):
            days.append(day)
            pieces += [text[at : found.start()], MARK]
            at = found.end()
    return "".join([*pieces, text[at:]]), days


def read(text: str, at: int) -> tuple[Written, int] | None:
    """The date that stands at a place of a text, and where it ends."""
    found = FORMS.match(text[at : at + LONGEST])
    day = _written(found) if found else None
    return (day, at + found.end()) if found and day else None


class _Known(NamedTuple):
    """What could be told of the samples that were asked on one day: by polarity, and by severity."""

    polarity: Counter[str]
    severity: Counter[int]


class Days:
    """The days that stand in requests, with what their samples are, and how they are written."""

    def __init__(self) -> None:
        self._seen: dict[tuple[date, ...], _Known] = defaultdict(lambda: _Known(Counter(), Counter()))
        self._ways: dict[tuple[int, str], set[str]] = defaultdict(set)  # which date of a request, what of it

    def add(self, written: list[Written], row: Row) -> None:
        """One request, which may have none."""
        if written:
            known = self._seen[tuple(w.day for w in written)]
            known.polarity[row.polarity] += 1
            known.severity[row.severity] += 1
        for n, w in enumerate(written):
            for part in ("order", "month", "zero"):
                self._ways[n, part] |= {getattr(w, part)} - {""}

    def told(self) -> tuple[list[Problem], list[Problem]]:
        """Problems and flags: dates written in several ways, dates that tell the samples' polarity or severity, and a
        run of more days than one.
        """
        if ways := next((sorted(ways) for _, ways in sorted(self._ways.items()) if len(ways) > 1), None):
            said = f"the same date is written in several ways in different requests: {', '.join(ways)}"
            return [Problem("outside_text", RESPONSES, said)], []
        known = list(self._seen.values())
        asked = sum(k.polarity.total() for k in known)
        if len(known) < 2 or asked < TOLD_FROM:
            return [], []
        saved = max(_saved([k.polarity for k in known]), _saved([k.severity for k in known]))
        days = {day for own in self._seen for day in own}
        said = f"{asked} requests name {len(days)} days, {', '.join(self._counts())}"
        if saved > TELLS:
            return [Problem("outside_text", RESPONSES, f"{said}: the date tells what the sample is")], []
        # Two days are a bit for each sample, which together with its words can say anything; no count shows that.
        return [], [Problem("dates", RESPONSES, f"{said}: look whether a run lasted so long, and what its days tell")]

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
