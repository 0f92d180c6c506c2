"""Sources → documents, one at a time, each with its line. A row that can't be read is an error that names the line."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from corpora.schema import CorpusError, Document, Fields, Role, Source, Turn
from dataset_builder import jsonl
from dataset_builder.reading.markdown import closest

Row = tuple[int, dict[str, Any]]


class _RowError(Exception):
    """What is wrong with one row; the reader adds its place."""


class Opened(NamedTuple):
    """A source that can be read: how errors call it, its hash, and what its dataset card says of revision and
    licence.
    """

    source: Source
    place: str
    sha256: str
    revision: str | None
    rows: Iterator[Row]


def open_source(source: Source, folder: Path) -> Opened:
    """Opens a source; `folder` is the mapping file's.

    Raises:
        CorpusError: it is not there, or is no kind of file that this reads.
    """
    if source.hub:
        from corpora.hub import open_dataset

        found, place, sha256, rows = open_dataset(source, folder)
        return Opened(found, place, sha256, found.revision, rows)
    path = folder / str(source.path)
    kind = path.name.removesuffix(".gz").rsplit(".", 1)[-1].lower()
    if kind not in ("jsonl", "csv"):
        raise CorpusError(
            f"{path}:1: source '{source.name}' is no .jsonl or .csv (also .gz); convert it, or name a "
            "dataset with `hub`"
        )
    try:
        with path.open("rb") as handle:
            sha256 = hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError as error:
        raise CorpusError(f"{path}:1: source '{source.name}' can't be read ({error.strerror})") from None
    return Opened(source, str(source.path), sha256, None, _jsonl(path) if kind == "jsonl" else _csv(path))


def documents(opened: Opened, folder: Path) -> Iterator[Document]:
    """Every document of a source, in its order; one without any text is there, with no turns.

    Raises:
        CorpusError: at the first row that can't be read.
    """
    source, place = opened.source, opened.place if opened.source.hub else str(folder / opened.place)
    seen: dict[str, int] = {}
    previous: tuple[str | None, Document | None] = (None, None)
    for n, (line, row) in enumerate(opened.rows):
        try:
            if n == 0:
                _has_fields(source.fields, row)
            document = _document(source, line, row)
            if not source.fields.conversation:
                yield document
                continue
            key = _text(row.get(source.fields.conversation), source.fields.conversation)
            if not key:
                raise _RowError(f"field '{source.fields.conversation}' is empty; expected the conversation's id")
            if key == previous[0] and previous[1]:
                previous = (key, previous[1]._replace(turns=previous[1].turns + document.turns))
                continue
            if key in seen:
                raise _RowError(
                    f"conversation '{key}' began on line {seen[key]} and another came between; expected its "
                    "rows to follow each other"
                )
        except _RowError as error:
            raise CorpusError(f"{place}:{line}: {error}") from None
        if previous[1]:
            yield previous[1]
        seen[key], previous = line, (key, document)
    if previous[1]:
        yield previous[1]


def _has_fields(fields: Fields, row: dict[str, Any]) -> None:
    """A misspelt field would otherwise drop every row as empty."""
    flat = {fields.text, fields.conversation, fields.id, fields.language, fields.licence, fields.turns, *fields.keep}
    if fields.conversation:
        flat.add(fields.role)
    for name in sorted(name for name in flat if name and name not in row):
        raise _RowError(f"the first row has no field '{name}', which the mapping file names; {closest(name, row)}")


def _document(source: Source, line: int, row: dict[str, Any]) -> Document:
    fields = source.fields
    language = _text(row.get(fields.language), fields.language) if fields.language else source.language
    if language and not re.fullmatch(r"[A-Za-z]{2,3}([-_]\w+)?", language):
        raise _RowError(f"language is '{language}'; expected a code such as en")
    return Document(
        source=source.name,
        line=line,
        turns=_turns(source, row),
        source_id=_text(row.get(fields.id), fields.id) if fields.id else None,
        language=language,
        licence=_text(row.get(fields.licence), fields.licence) or source.licence if fields.licence else source.licence,
        kept=tuple((k, _text(row.get(k), k)) for k in fields.keep),
    )


def _turns(source: Source, row: dict[str, Any]) -> tuple[Turn, ...]:
    fields = source.fields
    if fields.text:
        text = _text(row.get(fields.text), fields.text)
        role: Role = _role(source, row.get(fields.role)) if fields.conversation else "user"
        return (Turn(role, text),) if text else ()
    value = row.get(str(fields.turns))
    if isinstance(value, str) and value.strip():  # in a CSV a list can only be JSON
        try:
            value = json.loads(value)
        except ValueError:
            raise _RowError(
                f"field '{fields.turns}' is text and no JSON; expected a list of {{{fields.role}, "
                f"{fields.content}}} or of texts"
            ) from None
    turns: list[Turn] = []
    for n, turn in enumerate(value or []) if isinstance(value, list) or not value else [(0, value)]:
        if isinstance(turn, dict) and fields.content in turn:
            role, text = _role(source, turn.get(fields.role)), _text(turn[fields.content], fields.content)
        elif isinstance(turn, str) and isinstance(value, list):
            role, text = "user" if n % 2 == 0 else "assistant", _text(turn, fields.turns)
        else:
            raise _RowError(
                f"turn {n + 1} of '{fields.turns}' is {str(turn)[:60]!r}; expected {{{fields.role}, "
                f"{fields.content}}} or a text"
            )
        if text:
            turns.append(Turn(role, text))
    return tuple(turns)


def _role(source: Source, value: object) -> Role:
    for role, names in source.roles.items():
        if str(value).strip().lower() in (n.lower() for n in names):
            return role
    raise _RowError(
        f"role is '{value}'; expected one of {sorted(n for names in source.roles.values() for n in names)}: "
        "name it under `roles`"
    )


def _text(value: object, name: str | None) -> str | None:
    if value is None or isinstance(value, str):
        # JSON can hold half of a surrogate pair, which no file can.
        return (value or "").encode("utf-8", "ignore").decode() or None
    if isinstance(value, (bool, int, float)):
        return str(value)
    raise _RowError(f"field '{name}' is {str(value)[:60]!r}; expected text")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Text lines with their numbers; a file that ends in the middle or is no UTF-8 is an error at its line."""
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as handle:
            for number, raw in enumerate(handle, start=1):
                yield number, raw.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{path}:{number}: is not UTF-8 ({error.reason} at byte {error.start} of the line); save the file as UTF-8"
        ) from None
    except (OSError, EOFError, zlib.error) as error:
        raise CorpusError(f"{path}:{number + 1}: can't be read on: {error}") from None


def _jsonl(path: Path) -> Iterator[Row]:
    def bad(line: int, why: ValueError) -> NoReturn:
        expected = " with the fields that the mapping file names" if str(why).endswith("an object") else ""
        raise CorpusError(f"{path}:{line}: {why}{expected}")

    return jsonl.objects_in((text for _, text in _lines(path)), path, bad)


def _csv(path: Path) -> Iterator[Row]:
    # A cell may hold a whole conversation; the module's own limit is 128 kB, and is the process's.
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    reader = csv.DictReader((text for _, text in _lines(path)), strict=True)
    line = 2
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise CorpusError(f"{path}:{reader.reader.line_num}: is not CSV: {error}") from None
        if row is None:
            return
        if None in row or None in row.values():
            raise CorpusError(f"{path}:{line}: has more or fewer cells than the {len(reader.fieldnames or [])} columns")
        yield line, row
        line = reader.line_num + 1
