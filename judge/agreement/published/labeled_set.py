"""A set of human labels, and the rows of its files. Every error names the file and the row but never quotes a
message.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple, TypeVar

from helmbench_common.formats import csv_file, json_file
from helmbench_common.formats.plain_file import read_text
from helmbench_common.formats.refused import FormatError, shown
from helmbench_common.jsonl import plain
from judge.replies.schema import SHOWN, RunError, run_error
from judge.schema import RATINGS, LabelKind, LabelledRows

REFUSAL, ANSWER = "refusal", "answer"
MOST = 2**28  # bytes of a file: the largest set has a twentieth of that
HALVES = {"all": slice(0, None, 1), "even": slice(0, None, 2), "odd": slice(1, None, 2)}
T = TypeVar("T")


class Item(NamedTuple):
    """A labeled item: a reply, or a standalone message.

    `said` alternates user and assistant and ends with the user. `by`: the criterion, or the protocol's category.
    `labels`: by rater, on the set's scale; raters who skipped the item are absent. `family`: items that share a prompt
    are one observation in every interval. `groups`: subgroups that also count the item. `settled`: the raters'
    consensus label, if the set publishes one. `published`: other judges' labels, by judge.
    """

    id: str
    said: tuple[str, ...]
    labels: Mapping[str, str]
    reply: str = ""
    by: str = ""
    family: str = ""
    groups: tuple[str, ...] = ()
    settled: str | None = None
    published: Mapping[str, str] = {}


@dataclass(frozen=True)
class Scale:
    """The labels available to people. `numbers`: the labels are consecutive numbers, lowest first, and the people's
    common label is their mean, rounded. `coarse`: maps the labels to fewer, for a second figure.
    """

    labels: tuple[str, ...]
    numbers: bool = False
    coarse: Mapping[str, str] = field(default_factory=dict)

    def common(self, item: Item) -> str | None:
        """The people's common label: their mean, their consensus label, or their majority; None if there is none."""
        if self.numbers and item.labels:
            return self.labels[nearest(mean(self.labels.index(x) for x in item.labels.values()))]
        if self.numbers or item.settled is not None:
            return item.settled
        ranked = Counter(item.labels.values()).most_common(1)
        return ranked[0][0] if ranked and 2 * ranked[0][1] > len(item.labels) else None


@dataclass(frozen=True)
class LabeledSet:
    """A set, or half of it. `reads`: maps a judge's label to this scale, if it differs; a way to fail (FAIL-misses)
    becomes FAIL first. `notes`: caveats about the figures.
    """

    name: str
    rows: LabelledRows
    kind: LabelKind
    scale: Scale
    items: tuple[Item, ...]
    reads: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def reading(self, label: str | None) -> str | None:
        """Maps a judge's label to this scale."""
        if label is None:
            return None
        plain = label.partition("-")[0] if self.kind == "criterion" else label
        return self.reads.get(plain, plain)


def nearest(mean: float) -> int:
    """Rounds a mean of ratings to a rating, half up: 1.5 → 2."""
    return math.floor(mean + 0.5)


def crisis_or_not(categories: Iterable[str]) -> dict[str, str]:
    """Maps categories to two labels: no_crisis, and crisis for all others."""
    return {name: name if name == "no_crisis" else "crisis" for name in categories}


RATING = Scale(RATINGS, numbers=True)
REFUSALS = Scale((REFUSAL, ANSWER))


class Row(NamedTuple):
    """A row of a file, and its location. Every method raises ValueError, with the location, for an invalid field."""

    where: str
    fields: Mapping[str, Any]

    def has(self, name: str) -> bool:
        """Whether the row has a value; published files write NaN for a missing one."""
        value = self.fields.get(name)
        return value not in (None, "") and value == value

    def text(self, name: str) -> str:
        value = self.fields.get(name)
        if not isinstance(value, str) or not value.strip():
            known = "missing" if value is None else f"a {type(value).__name__}"
            raise ValueError(f"{self.where}: '{name}' is {'empty' if isinstance(value, str) else known}; expected text")
        return plain(value)  # JSON may contain an unpaired surrogate, which a request can't

    def number(self, name: str) -> float:
        """A number, or text that parses as one."""
        value = self.fields.get(name)
        try:
            if isinstance(value, str | int | float) and math.isfinite(found := float(value)):
                return found
        except (ValueError, OverflowError):
            pass
        raise ValueError(f"{self.where}: '{name}' is {str(value)[:40]!r}; expected a number")

    def label(self, name: str, labels: Iterable[str], value: str | None = None) -> str:
        """One of these labels. `value`: replaces the field's value."""
        given, known = self.fields.get(name) if value is None else value, tuple(labels)
        if given not in known:
            raise ValueError(f"{self.where}: '{name}' is {str(given)[:40]!r}; expected one of {', '.join(known)}")
        return str(given)


def items(rows: Sequence[T], read: Callable[[int, T], Iterable[Item]], half: LabelledRows) -> tuple[Item, ...]:
    """The items that `read` makes from the rows of one half; `read` gets each row's number, from 0 over all rows, and
    the row.

    Raises:
        RunError: lists every row for which `read` raises ValueError; or there are no items.
    """
    problems: list[str] = []
    made: list[Item] = []
    for number in range(len(rows))[HALVES[half]]:
        try:
            made += read(number, rows[number])
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise run_error(problems)
    if not made:
        raise RunError(f"--rows {half}: no labeled item among {len(rows)} rows")
    return tuple(made)


def read_list(path: Path) -> list[Row]:
    """The rows of a JSON file that contains a list; an entry that isn't an object becomes a row without fields."""
    try:
        found = json_file.lenient(read_text(path, "a list in JSON", MOST))
    except FormatError as error:
        raise RunError(str(error)) from None
    except ValueError as error:
        raise RunError(f"{shown(path)}: can't be read ({error}); expected a list in JSON") from None
    if not isinstance(found, list):
        raise RunError(f"{shown(path)}: is a {type(found).__name__}; expected a list in JSON")
    return [Row(f"{shown(path)}: row {n}", row if isinstance(row, dict) else {}) for n, row in enumerate(found)]


def read_table(path: Path, columns: Iterable[str]) -> list[Row]:
    """The rows of a CSV file with at least these columns; missing cells are empty."""
    try:
        (_, head), *rows = [*csv_file.stream(path, "CSV", strict=False)] or [(1, list[str]())]
    except FormatError as error:
        raise RunError(str(error)) from None
    if missing := [name for name in columns if name not in head]:
        known = ", ".join(shown(name)[:40] for name in head[:SHOWN]) or "none"
        raise RunError(f"{shown(path)}: has no column '{missing[0]}'; its columns are {known}")
    empty = [""] * len(head)
    return [
        Row(f"{shown(path)}: row {n}", dict(zip(head, [*cells, *empty], strict=False)))
        for n, (_, cells) in enumerate(rows)
    ]
