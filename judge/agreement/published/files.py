"""Rows of a set's files. Every error names the file and the row, and never quotes a message."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from helmbench_common.formats import csv_stream, json_file
from helmbench_common.formats.plain_file import read_text
from helmbench_common.formats.refused import FormatError, shown
from helmbench_common.jsonl import plain
from judge.agreement.published.labeled_set import Item
from judge.replies.errors import SHOWN, RunError, run_error
from judge.schema import LabelledRows

MOST = 2**28  # bytes of a file: the largest set has a twentieth of that
HUB_ID = re.compile(r"[A-Za-z0-9][\w.\-]*/[A-Za-z0-9][\w.\-]*")
HALVES = {"all": slice(0, None, 1), "even": slice(0, None, 2), "odd": slice(1, None, 2)}
T = TypeVar("T")


def located(source: str) -> Path:
    """The folder of that name, or else the newest commit of the Hub dataset OWNER/NAME, fetched into the Hub's cache.

    Raises:
        RunError: neither exists.
    """
    folder = Path(source)
    if folder.is_dir():
        return folder
    if not HUB_ID.fullmatch(source):
        raise RunError(
            f"--from {source}: no such folder; expected a checkout of the set's repository, or a Hub dataset "
            "(OWNER/NAME)"
        )
    from huggingface_hub import snapshot_download  # half a second to import
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, RepositoryNotFoundError

    try:
        found = Path(snapshot_download(source, repo_type="dataset", endpoint=os.environ.get("HF_ENDPOINT")))
    except RepositoryNotFoundError:
        why = "the Hub has no dataset of this name that your token, or no token, can read"
    except (HfHubHTTPError, HFValidationError, OSError) as error:
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        why = f"the Hub dataset can't be fetched: {first}"
    else:
        sys.stderr.write(f"{source}: from the Hub, commit {found.name}\n")
        return found
    raise RunError(f"--from {source}: no such folder, and {why}")


def find(folder: Path, pattern: str, repository: str, least: int = 1) -> list[Path]:
    """The files of a checkout that match a pattern, sorted by name.

    Raises:
        RunError: fewer than `least`.
    """
    files = sorted(folder.glob(pattern))
    if len(files) < least:
        raise RunError(
            f"{folder}: {len(files)} files match {pattern}; expected {least} or more: a checkout of {repository}"
        )
    return files


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
    """The rows of a CSV file that has at least these columns; cells that a row is missing are empty.

    Raises:
        RunError: it can't be read, or a column is missing or repeated.
    """
    named = tuple(columns)
    try:
        if path.is_file() and path.stat().st_size > MOST:
            raise RunError(f"{shown(path)}: is longer than {MOST:,} bytes; expected CSV")
        (_, head), *rows = [*csv_stream.rows(path, "CSV", strict=False)] or [(1, list[str]())]
    except FormatError as error:
        raise RunError(str(error)) from None
    if missing := [name for name in named if name not in head]:
        known = ", ".join(shown(name)[:40] for name in head[:SHOWN]) or "none"
        raise RunError(f"{shown(path)}: has no column '{shown(missing[0])}'; its columns are {known}")
    if repeated := csv_stream.twice(head, named):
        raise RunError(f"{shown(path)}:1: {repeated}")
    return [dict(zip(head, [*cells, *[""] * len(head)], strict=False)) for _, cells in rows]


def items(rows: Sequence[T], half: LabelledRows, read: Callable[[int, T], Iterable[Item]]) -> tuple[Item, ...]:
    """The items that `read` makes of the rows of a half; it gets each row's number, from 0 over all rows, and the row.

    Raises:
        RunError: every row for which `read` raises ValueError, or no item at all.
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


def at(path: Path, row: int) -> str:
    """A row's place, for an error message."""
    return f"{shown(path)}: row {row}"


def text(row: Any, name: str, where: str) -> str:
    """A field that must hold text.

    Raises:
        ValueError: it is missing, empty or not text; the message starts with `where`.
    """
    value = row.get(name) if isinstance(row, Mapping) else None
    if not isinstance(value, str) or not value.strip():
        kind = "empty" if isinstance(value, str) else f"a {type(value).__name__}" if value is not None else "missing"
        raise ValueError(f"{where}: '{name}' is {kind}; expected text")
    return plain(value)  # JSON can hold half of a surrogate pair, which no request can


def amount(row: Any, name: str, where: str) -> float:
    """A field that must hold a number, or text that is one.

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
        ValueError: it holds another; the message starts with `where`.
    """
    known = tuple(labels)
    if value not in known:
        raise ValueError(f"{where}: '{name}' is {str(value)[:40]!r}; expected one of {', '.join(known)}")
    return str(value)
