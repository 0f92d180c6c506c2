"""A set of human labels, the rows of its files, and your own set, described by a mapping file (YAML). Every error names
the file and the row but never quotes a message.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple, TypeVar

from pydantic import Field, ValidationError, model_validator

from dataset_builder.release import Release
from dataset_builder.schema import CrisisCategory, Strict
from helmbench_common.formats import csv_file, json_file, yaml_file
from helmbench_common.formats.plain_file import read_text
from helmbench_common.formats.refused import FormatError, shown
from helmbench_common.jsonl import plain
from judge.agreement.labels import records
from judge.panel import base
from judge.replies.schema import SHOWN, RunError, run_error
from judge.schema import RATINGS, VERDICTS, LabelKind, LabelledRows, SetName

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


class Scale(NamedTuple):
    """The labels available to people. `numbers`: the labels are consecutive numbers, lowest first, and the people's
    common label is their mean, rounded. `coarse`: maps the labels to fewer, for a second figure.
    """

    labels: tuple[str, ...]
    numbers: bool = False
    coarse: Mapping[str, str] = {}

    def common(self, item: Item) -> str | None:
        """The people's common label: their mean, their consensus label, or their majority; None if there is none."""
        if self.numbers and item.labels:
            return self.labels[nearest(mean(self.labels.index(x) for x in item.labels.values()))]
        if self.numbers or item.settled is not None:
            return item.settled
        ranked = Counter(item.labels.values()).most_common(1)
        return ranked[0][0] if ranked and 2 * ranked[0][1] > len(item.labels) else None


class LabeledSet(NamedTuple):
    """A set, or half of it. `reads`: maps a judge's label to this scale, if it differs; a way to fail (FAIL-misses)
    becomes FAIL first. `notes`: caveats about the figures.
    """

    name: str
    rows: LabelledRows
    kind: LabelKind
    scale: Scale
    items: tuple[Item, ...]
    reads: Mapping[str, str] = {}
    notes: tuple[str, ...] = ()

    def reading(self, label: str | None) -> str | None:
        """Maps a judge's label to this scale."""
        if label is None:
            return None
        label = base(label) if self.kind == "criterion" else label
        return self.reads.get(label, label)


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


# --- your own set


class SetMapping(Strict):
    """The mapping file. `path`: JSONL or CSV, relative to --from. `id`, `message`, `messages`, `reply`: field names.

    `messages`: a field with a list of texts, alternating, user first (JSON in a CSV). `raters`: each rater's field.
    `values`: maps the file's labels to HelmBench's, where they differ. `protocol`: the category of every row;
    `protocol_field`: a field with each row's category.
    """

    name: SetName
    path: str
    id: str
    message: str | None = None
    messages: str | None = None
    reply: str | None = None
    kind: LabelKind
    criterion: str | None = None
    protocol: CrisisCategory | None = None
    protocol_field: str | None = None
    raters: dict[str, str] = Field(min_length=1)
    values: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _whole(self) -> SetMapping:
        if (self.message is None) == (self.messages is None):
            raise ValueError("expected either `message` (a text) or `messages` (a list of texts)")
        if (self.reply is None) != (self.kind == "category"):
            raise ValueError("expected `reply` for every kind but `category`, which labels messages alone")
        if (self.criterion is None) == (self.kind == "criterion"):
            raise ValueError("expected `criterion` for the kind `criterion`, and only for it")
        if ((self.protocol is None) == (self.protocol_field is None)) == (self.kind == "rating"):
            raise ValueError("expected `protocol` or `protocol_field` for the kind `rating`, and only for it")
        return self

    @property
    def fields(self) -> tuple[str, ...]:
        named = (self.id, self.message, self.messages, self.reply, self.protocol_field, *self.raters.values())
        return tuple(name for name in named if name)


def read_own(path: Path, folder: Path, rows: LabelledRows, release: Release) -> LabeledSet:
    """The set that a mapping file describes."""
    try:
        loaded = yaml_file.load(path, "a mapping file")
        given = SetMapping.model_validate(loaded.value)
    except FormatError as error:
        raise RunError(str(error)) from None
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        where = shown(".".join(map(str, first["loc"])) or "mapping")
        raise RunError(f"{shown(path)}:{loaded.line(first['loc'])}: {where}: {shown(first['msg'])}") from None
    if given.criterion is not None and given.criterion not in release.criteria:
        names = ", ".join(sorted(release.criteria))
        raise RunError(f"{path}: criterion is '{given.criterion}'; expected one of {names}")
    scale, protocols = _scale(given, release), [str(p.category) for p in release.protocols.values()]

    def item(_: int, row: Row) -> Iterator[Item]:
        labels = {}
        for name, field in given.raters.items():
            value = row.fields[field]
            if value is not None and value != "":
                word = f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
                labels[name] = row.label("label", scale.labels, given.values.get(word, word))
        if not labels:
            return
        protocol = row.label(given.protocol_field, protocols) if given.protocol_field else given.protocol or ""
        yield Item(
            plain(str(row.fields[given.id])),
            (row.text(given.message),) if given.message else _said(row, str(given.messages)),
            labels,
            row.text(given.reply) if given.reply else "",
            given.criterion or protocol,
            groups=(protocol,) if given.protocol_field else (),
        )

    file, problems = folder / given.path, list[str]()
    read = [Row(f"{shown(file)}:{number}", fields) for number, fields in records(file, problems)]
    for row in read:
        problems += [f"{row.where}: has no field '{name}'" for name in given.fields if name not in row.fields][:1]
    if not read and not problems:
        problems.append(f"{shown(file)}: holds no rows; expected a header and at least one row")
    if problems:
        raise run_error(problems)
    found = items(read, item, rows)
    if len({i.id for i in found}) < len(found):
        raise RunError(f"{file}: the field '{given.id}' repeats an id; expected a different one per row")
    return LabeledSet(given.name, rows, given.kind, scale, found)


def _scale(given: SetMapping, release: Release) -> Scale:
    if given.kind == "rating":
        return RATING
    if given.kind == "refusal":
        return REFUSALS
    if given.kind == "category":
        return Scale(tuple(release.taxonomy), coarse=crisis_or_not(release.taxonomy))
    own = release.criteria[str(given.criterion)]
    return Scale(tuple(own.labels) if own.kind == "graded" else VERDICTS)


def _said(row: Row, name: str) -> tuple[str, ...]:
    value = row.fields[name]
    if isinstance(value, str):
        try:
            value = json_file.lenient(value)
        except ValueError:
            value = None
    if not isinstance(value, list) or len(value) % 2 == 0 or not all(isinstance(x, str) and x for x in value):
        raise ValueError(
            f"{row.where}: '{name}' must be a list of texts that alternates user and assistant and ends with the user"
        )
    return tuple(map(plain, value))
