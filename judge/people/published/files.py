"""Rows as they lie in a set's files. Every problem names the file and the row, and never shows its text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from helmbench_common.formats import csv_stream, json_file
from helmbench_common.formats.plain_file import read_text
from helmbench_common.formats.refused import FormatError, shown
from helmbench_common.jsonl import plain
from judge.people.published.types import Item
from judge.replies.errors import SHOWN, RunError, run_error
from judge.schema import LabelledRows

MOST = 2**28  # bytes of a file: the largest set has a twentieth of that
T = TypeVar("T")
START = {"all": (0, 1), "even": (0, 2), "odd": (1, 2)}


def read_list(path: Path) -> list[Any]:
    """The list that a JSON file holds.

    Raises:
        RunError: it can't be read, or holds something else.
    """
    try:
        found = json_file.lenient(read_text(path, "a list in JSON", MOST))
    except FormatError as error:
        raise RunError(str(error)) from None
    except ValueError as error:
        raise RunError(f"{shown(path)}: can't be read ({error}); expected a list in JSON") from None
    if not isinstance(found, list):
        raise RunError(f"{shown(path)}: is a {type(found).__name__}; expected a list in JSON")
    return found


def read_table(path: Path, columns: Iterable[str]) -> list[dict[str, str]]:
    """The rows of a CSV file that has at least these columns.

    Raises:
        RunError: it can't be read, or lacks one.
    """
    named = tuple(columns)
    try:
        if path.is_file() and path.stat().st_size > MOST:
            raise RunError(f"{shown(path)}: is longer than {MOST:,} bytes; expected CSV")
        (_, head), *rows = [*csv_stream.rows(path, "CSV", strict=False)] or [(1, list[str]())]
    except FormatError as error:
        raise RunError(str(error)) from None
    if lacking := [name for name in named if name not in head]:
        known = ", ".join(shown(name)[:40] for name in head[:SHOWN]) or "none"
        raise RunError(f"{shown(path)}: has no column '{shown(lacking[0])}'; its columns are {known}")
    if said := csv_stream.twice(head, named):
        raise RunError(f"{shown(path)}:1: {said}")
    return [dict(zip(head, [*cells, *[""] * len(head)], strict=False)) for _, cells in rows]


def found(folder: Path, pattern: str, repository: str, least: int = 1) -> list[Path]:
    """The files of a checkout that fit a pattern, in the order of their names.

    Raises:
        RunError: fewer than `least`.
    """
    files = sorted(folder.glob(pattern))
    if len(files) < least:
        raise RunError(
            f"{folder}: holds {len(files)} files {pattern}; expected {least} or more: a checkout of {repository}"
        )
    return files


def items(rows: Sequence[T], half: LabelledRows, read: Callable[[int, T], Iterable[Item]]) -> tuple[Item, ...]:
    """What `read` makes of the rows of a half, each given with its number, counted from 0 over all rows.

    Raises:
        RunError: all rows that `read` refuses by a ValueError, or no item at all.
    """
    start, step = START[half]
    problems: list[str] = []
    made: list[Item] = []
    for number in range(start, len(rows), step):
        try:
            made += read(number, rows[number])
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise run_error(problems)
    if not made:
        raise RunError(f"--rows {half}: no labelled item among {len(rows)} rows")
    return tuple(made)


def at(path: Path, row: int) -> str:
    """How a row is called in a message."""
    return f"{shown(path)}: row {row}"


def text(row: Any, name: str, where: str) -> str:
    """A field that must hold words.

    Raises:
        ValueError: it is missing, empty or no text; the message starts with `where`.
    """
    value = row.get(name) if isinstance(row, Mapping) else None
    if not isinstance(value, str) or not value.strip():
        kind = "empty" if isinstance(value, str) else f"a {type(value).__name__}" if value is not None else "missing"
        raise ValueError(f"{where}: '{name}' is {kind}; expected text")
    return plain(value)  # JSON can hold half of a surrogate pair, which no request can


def amount(row: Any, name: str, where: str) -> float:
    """A field that must hold a number, or a text that is one.

    Raises:
        ValueError: it doesn't; the message starts with `where`.
    """
    value = row.get(name) if isinstance(row, Mapping) else None
    try:
        if isinstance(value, str | int | float) and math.isfinite(found := float(value)):
            return found
    except (ValueError, OverflowError):
        pass
    raise ValueError(f"{where}: '{name}' is {str(value)[:40]!r}; expected a number")


def one_of(value: Any, labels: Iterable[str], name: str, where: str) -> str:
    """A field that must hold one of these labels.

    Raises:
        ValueError: another; the message starts with `where`.
    """
    known = tuple(labels)
    if value not in known:
        raise ValueError(f"{where}: '{name}' is {str(value)[:40]!r}; expected one of {', '.join(known)}")
    return str(value)
