"""Reads the mapping file, and streams its sources as documents. Every error names its file and line."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import chdir
from itertools import chain, groupby
from pathlib import Path
from reprlib import Repr
from typing import Any, NamedTuple, NoReturn, TypeVar, get_args

from pydantic import ValidationError

from dataset_builder.corpora.clean import normal_licence
from dataset_builder.corpora.mask import is_post
from dataset_builder.corpora.schema import CorpusError, Document, Fields, Recipe, Role, Source, Turn
from dataset_builder.reading.markdown import closest
from dataset_builder.schema import CrisisCategory
from helmbench_common import jsonl
from helmbench_common.formats import csv_file, json_file, yaml_file
from helmbench_common.formats.plain_file import LONGEST, read_bytes, sha256, text_lines
from helmbench_common.formats.refused import FormatError, shown
from helmbench_common.hashing import digest, file_digest

EXPECTED = "messages, as .jsonl or .csv (also .gz)"
CATEGORIES: tuple[CrisisCategory, ...] = get_args(CrisisCategory)
NAMES = 100  # field names of a row that an error lists
LICENCE = 200  # characters of a license name
LANGUAGE = re.compile(r"[A-Za-z]{2,3}([-_]\w{1,40})?")
QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")
SHORT = Repr()
SHORT.maxstring = SHORT.maxother = 60
Row = tuple[int, dict[str, Any]]
Label = TypeVar("Label", bound=str)


class RowError(Exception):
    """What is wrong with one row. `line`: 0 until the reader adds it."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


class Loaded(NamedTuple):
    """A mapping file: its content, path, and the sha256 of its bytes."""

    recipe: Recipe
    path: Path
    sha256: str


def load_recipe(path: Path) -> Loaded:
    """The mapping file at `path`.

    Raises:
        CorpusError: it is missing, not YAML, or has fields that don't validate; all errors at once.
    """
    expected = "a mapping file with name, date and sources, see docs/own-data.md"
    try:
        content = read_bytes(path, expected, yaml_file.BYTES)
        # Read every scalar as text: the language `no` must not become False, nor a date a datetime.
        found = yaml_file.loads(content, path, expected, texts=True)
    except FormatError as error:
        raise CorpusError(str(error)) from None
    try:
        return Loaded(Recipe.model_validate(found.value), path, hashlib.sha256(content).hexdigest())
    except ValidationError as error:
        lines = set[tuple[int, str]]()
        for problem in error.errors():
            field = shown(".".join(map(str, problem["loc"])) or "file")
            message = shown(problem["msg"].removeprefix("Value error, "))
            if message.startswith("Extra inputs"):
                message = "unknown key; see docs/own-data.md for the keys"
            lines.add((found.line(problem["loc"]), f"'{field}': {message}"))
        raise CorpusError(*(f"{shown(path)}:{line}: {message}" for line, message in sorted(lines))) from None


class Opened(NamedTuple):
    """A readable source, completed from its dataset card. `place`: its name in errors; `sha256`: of a file, or of a
    query and its files; `files`: the sha256 of each.
    """

    source: Source
    place: str
    sha256: str
    revision: str | None
    rows: Iterator[Row]
    files: dict[str, str]


def open_source(source: Source, folder: Path) -> Opened:
    """Opens a source; `folder` is the mapping file's folder.

    Raises:
        CorpusError: it doesn't exist, is a file of another type, or a dataset that can't be loaded.
    """
    if source.hub:
        return _dataset(source, folder)
    if source.query:
        files = files_of(source.query, folder)
        fingerprint = digest([source.query, files]) if files else ""
        rows = select(source.query, source.name, folder)
        return Opened(source, f"query '{source.name}'", fingerprint, source.revision, rows, files)
    path = folder / str(source.path)
    kind = path.name.removesuffix(".gz").rsplit(".", 1)[-1].lower()
    if kind not in ("jsonl", "csv"):
        raise CorpusError(
            f"{shown(path)}:1: source '{source.name}' has an unsupported file type; expected .jsonl or .csv "
            "(also .gz), or a dataset named with `hub`"
        )
    try:
        fingerprint = sha256(path, EXPECTED)
    except FormatError as error:
        raise CorpusError(f"{shown(path)}:1: source '{source.name}' {error.message}") from None
    rows = _jsonl(path) if kind == "jsonl" else _csv(path, _named(source.fields))
    return Opened(source, str(source.path), fingerprint, source.revision, rows, {str(source.path): fingerprint})


def files_of(query: str, folder: Path) -> dict[str, str]:
    """The sha256 of every file in `folder` that a text or a name in the query is, or is a pattern of."""
    found: set[Path] = set()
    for words in QUOTED.findall(query):
        try:
            found.update(path for path in folder.glob("".join(words)) if path.is_file())
        except (ValueError, NotImplementedError, OSError):  # no pattern of a file below the folder
            continue
    return {path.relative_to(folder).as_posix(): file_digest(path) for path in sorted(found)}


def select(query: str, name: str, folder: Path) -> Iterator[Row]:
    """The rows of one SELECT that DuckDB runs in `folder`, numbered from 1, all in memory. It can read the folder's
    files and nothing else.

    Raises:
        CorpusError: it isn't one SELECT, or fails.
    """
    import duckdb  # takes a tenth of a second to import

    place, own = f"query '{name}'", folder.resolve()
    # The Hub's cache links a dataset's files to its blobs.
    readable = [own, *([own.parents[1] / "blobs"] if own.parent.name == "snapshots" else [])]
    try:
        statements = duckdb.extract_statements(query)
        if [s.type for s in statements] != [duckdb.StatementType.SELECT]:
            raise CorpusError(f"{place}: expected one SELECT")
        # The query may come from somebody else: no network, no extensions, no files outside the folder.
        with duckdb.connect(config={"autoinstall_known_extensions": False}) as db, chdir(folder):
            db.execute("SET threads = 1")  # rows keep the files' order
            quoted = ", ".join("'" + str(path).replace("'", "''") + "'" for path in readable)
            db.execute(f"SET allowed_directories = [{quoted}]")
            db.execute("SET enable_external_access = false")
            db.execute("SET lock_configuration = true")
            found = db.execute(statements[0])
            head, rows = [column[0] for column in found.description or ()], found.fetchall()
    except duckdb.Error as error:
        raise CorpusError(f"{place}: {_without_texts(str(error))}, in {shown(folder)}") from None
    for number, values in enumerate(rows, start=1):
        yield number, dict(zip(head, values, strict=True))


def _without_texts(error: str) -> str:
    """DuckDB's error, without the value that it quotes: a message, perhaps."""
    first, *rest = re.sub(r"(?s)(string '|Input: \").*(['\"])", r"\1…\2", error).splitlines() or [""]
    if "file system operations are disabled" in first:
        first = f"{first.partition(' - ')[0]}: a query reads the folder's own files and no link out of it"
    known = [line for line in rest if line.startswith("Candidate bindings")]
    return shown(" ".join([first, *known]))[:400]


def _dataset(source: Source, folder: Path) -> Opened:
    """A dataset, streamed, with its card's license and the Hub's commit.

    A folder of that name next to the mapping file takes precedence, as in `load_dataset`.
    """
    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    import datasets

    hub = str(source.hub)
    local = folder / hub
    for found in local.rglob("*"):  # `datasets` would wait forever for a pipe
        if found.exists() and not (found.is_file() or found.is_dir()):
            raise CorpusError(f"{shown(found)}:1: source '{source.name}' holds a pipe or a device; expected files")
    name, revision = (str(local), None) if local.is_dir() else (hub, source.revision)
    try:
        builder = datasets.load_dataset_builder(name, source.config, revision=revision)
        rows = datasets.load_dataset(name, source.config, split=source.split, streaming=True, revision=revision)
    except Exception as error:  # the library raises a dozen kinds, including network errors
        raise CorpusError(f"{shown(hub)}:1: source '{source.name}' can't be loaded: {_said(error)}") from None
    commit = None if local.is_dir() else builder.hash or source.revision
    licence = source.licence or _card_licence(local if local.is_dir() else None, hub, commit)
    pinned = source.model_copy(update={"licence": licence, "revision": commit})
    return Opened(pinned, hub, "", commit, _numbered(rows, hub), {})


def _card_licence(local: Path | None, hub: str, commit: str | None) -> str | None:
    """The license in the dataset card; None if it names none, or several, which a person must read."""
    from huggingface_hub import DatasetCard, hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        path = local / "README.md" if local else hf_hub_download(hub, "README.md", repo_type="dataset", revision=commit)
        card = DatasetCard(Path(path).read_text(encoding="utf-8"), ignore_metadata_errors=True)
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError):
        return None
    stated = getattr(card.data, "license", None)
    return stated if isinstance(stated, str) else None


def _numbered(rows: Any, hub: str) -> Iterator[Row]:
    number = 0
    try:
        for number, row in enumerate(rows, start=1):
            yield number, row
    except Exception as error:  # anything that the readers of a dozen formats and the network raise
        raise CorpusError(f"{shown(hub)}:{number + 1}: can't be read on: {_said(error)}") from None


def _said(error: Exception) -> str:
    return shown(next(iter(str(error).splitlines()), "") or type(error).__name__)[:400]


def documents(opened: Opened, folder: Path) -> Iterator[Document]:
    """Every document of a source, in order; a document without text has no turns.

    Raises:
        CorpusError: at the first row that can't be read.
    """
    place = shown(folder / opened.place) if opened.source.path else opened.place
    grouped, rows = opened.source.fields.conversation, _documents(opened)
    try:
        yield from _conversations(rows, grouped) if grouped else (document for document, _ in rows)
    except RowError as error:
        raise CorpusError(f"{place}:{error.line}: {error}") from None
    except FormatError as error:
        raise CorpusError(str(error)) from None


def _documents(opened: Opened) -> Iterator[tuple[Document, dict[str, Any]]]:
    """Every row as a document and in its original form."""
    for n, (line, row) in enumerate(opened.rows):
        try:
            if n == 0:
                check_fields(opened.source.fields, row)
            yield _labeled(document(opened.source, line, row), opened.source, row), row
        except RowError as error:
            error.line = error.line or line
            raise


def _conversations(rows: Iterator[tuple[Document, dict[str, Any]]], field: str) -> Iterator[Document]:
    """Merges consecutive rows with the same value of `field` into one document, at the first row's line."""
    seen: dict[str, int] = {}

    def key(pair: tuple[Document, dict[str, Any]]) -> str:
        value = pair[1].get(field)
        found = None if isinstance(value, list | dict) else _text(value, field)
        if not found:
            what = "empty" if value in (None, "") else _short(value)
            raise RowError(f"field '{field}' is {what}; expected the conversation's id", pair[0].line)
        return found

    for identity, own in groupby(rows, key):
        documents = (document for document, _ in own)
        first = next(documents)
        if identity in seen:
            raise RowError(
                f"conversation '{_short(identity)}' began on line {seen[identity]} and another one followed; expected "
                "its rows to be consecutive",
                first.line,
            )
        seen[identity] = first.line
        turns, size = list[Turn](), 0
        for document in chain([first], documents):
            turns += document.turns
            size += sum(len(turn.text) for turn in document.turns)
            if size > LONGEST:
                raise RowError(f"its conversation is longer than {LONGEST:,} characters; expected less", document.line)
        yield first._replace(turns=tuple(turns))


def _named(fields: Fields) -> set[str]:
    """Every field that rows must have."""
    flat = fields.model_dump(exclude={"role", "content", "keep", "labels", "models"}).values()
    columns = (own.values() if isinstance(own, dict) else [own] for own in (fields.labels, fields.models))
    lists = (*fields.keep, *chain.from_iterable(columns))
    return {name for name in (*flat, *lists, fields.role if fields.conversation else None) if name}


def check_fields(fields: Fields, row: Mapping[str, Any]) -> None:
    """Raises RowError if a row lacks fields: a misspelled one would otherwise drop every row as empty."""
    if missing := sorted(_named(fields) - {*row}):
        names = ", ".join(f"'{_short(name)}'" for name in missing[:NAMES])
        known = closest(missing[0], [_short(key) for key in sorted(row)[:NAMES]])
        raise RowError(f"the row has no field {names}, which the mapping file names; {known}")


def document(source: Source, line: int, row: dict[str, Any]) -> Document:
    """One row as a document. Raises RowError."""
    fields = source.fields
    said = {fields.text, fields.turns}
    language = _text(row.get(fields.language), fields.language) if fields.language else source.language
    if language and not LANGUAGE.fullmatch(language):
        raise RowError(f"language is '{_short(language)}'; expected a code such as en")
    licence = _text(row.get(fields.licence), fields.licence) if fields.licence else None
    if licence and (len(licence) > LICENCE or not normal_licence(licence).isprintable()):
        raise RowError(f"licence is '{_short(licence)}'; expected its name, such as cc-by-4.0")
    return Document(
        source=source.name,
        line=line,
        turns=_turns(source, row),
        source_id=_text(row.get(fields.id), fields.id) if fields.id else None,
        language=language,
        licence=licence or source.licence,
        kept=tuple((k, _severity(source, row) if k == "severity" else _text(row.get(k), k)) for k in fields.kept),
        forum=source.forum or any(isinstance(v, str) and is_post(v) for k, v in row.items() if k not in said),
    )


def _severity(source: Source, row: dict[str, Any]) -> str | None:
    """The row's severity as a whole number; as it is, if the column is only kept."""
    name = source.fields.severity
    said = _text(row.get(name or "severity"), name or "severity")
    if name is None or said is None:
        return said
    if not re.fullmatch(r"(\d|10)(\.0+)?", said):
        raise RowError(f"severity is '{_short(said)}'; expected a whole number from 0 to 10")
    return said.split(".")[0]


def _labeled(document: Document, source: Source, row: dict[str, Any]) -> Document:
    """The document with the categories that people and models gave it. Raises RowError."""
    fields = source.fields
    return document._replace(
        people=tuple(labels_of(source, fields.labels, row, CATEGORIES).items()),
        models=tuple(labels_of(source, fields.models, row, CATEGORIES).items()),
        settled=labels_of(source, {"": fields.settled}, row, CATEGORIES)[""] if fields.settled else None,
    )


def labels_of(
    source: Source, columns: Mapping[str, str] | str, row: Mapping[str, Any], scale: Sequence[Label]
) -> dict[str, Label | None]:
    """Labels by rater, in our words; None for an empty cell. `columns`: by rater, or one that maps raters to labels.

    Raises RowError for a label that isn't on the scale.
    """
    if isinstance(columns, str):
        own = row[columns] or {}
        if not isinstance(own, dict):
            raise RowError(f"'{columns}' is a {type(own).__name__}; expected labels by person")
        values = [(str(who), columns, value) for who, value in own.items()]
    else:
        values = [(who, column, row[column]) for who, column in columns.items()]
    found: dict[str, Label | None] = {}
    for who, column, value in values:
        # Published files write NaN for a missing label, and a number with gaps as 3.0.
        word = "" if value is None or value != value else str(value).strip().removesuffix(".0")
        label = source.values.get(word, word)
        found[who] = next((own for own in scale if own == label), None)
        if word and found[who] is None:
            raise RowError(
                f"'{column}' is {_short(label)!r}; expected one of {', '.join(scale)}, or a word in `values`"
            )
    return found


def _turns(source: Source, row: dict[str, Any]) -> tuple[Turn, ...]:
    fields = source.fields
    if fields.text:
        text = _text(row.get(fields.text), fields.text)
        role: Role = _role(source, row.get(fields.role)) if fields.conversation else "user"
        return (Turn(role, text),) if text else ()
    value = row.get(str(fields.turns))
    if isinstance(value, str) and value.strip():  # a CSV can hold a list only as JSON
        expected = f"expected a list of {{{fields.role}, {fields.content}}} or of texts"
        try:
            value = json_file.lenient(value)
        except json.JSONDecodeError:
            raise RowError(f"field '{fields.turns}' is text but not JSON; {expected}") from None
        except ValueError as error:  # over a limit
            raise RowError(f"field '{fields.turns}' {error}; {expected}") from None
    turns: list[Turn] = []
    for n, turn in enumerate(value or []) if isinstance(value, list) or not value else [(0, value)]:
        if isinstance(turn, dict) and fields.content in turn:
            role, text = _role(source, turn.get(fields.role)), _text(turn[fields.content], fields.content)
        elif isinstance(turn, str) and isinstance(value, list):
            role, text = "user" if n % 2 == 0 else "assistant", _text(turn, fields.turns)
        else:
            raise RowError(
                f"turn {n + 1} of '{fields.turns}' is {_short(turn)!r}; expected {{{fields.role}, {fields.content}}} "
                "or a text"
            )
        if text:
            turns.append(Turn(role, text))
    return tuple(turns)


def _role(source: Source, value: object) -> Role:
    said = value.strip().lower() if isinstance(value, str) else _short(value).lower()
    for role, names in source.roles.items():
        if said in (n.lower() for n in names):
            return role
    known = sorted(name for names in source.roles.values() for name in names)
    raise RowError(f"role is '{_short(value)}'; expected one of {known}: name it under `roles`")


def _text(value: object, name: str | None) -> str | None:
    if value is None or isinstance(value, str):
        # JSON can hold half a surrogate pair, but a file can't.
        return (value or "").encode("utf-8", "ignore").decode() or None
    if isinstance(value, (bool, int, float)):
        return str(value)
    raise RowError(f"field '{name}' is {_short(value)!r}; expected text")


def _short(value: object) -> str:
    """A foreign value shortened for an error message, however long or deep it is."""
    return shown(value if isinstance(value, str) else SHORT.repr(value))[:60]


def _jsonl(path: Path) -> Iterator[Row]:
    def bad(line: int, why: ValueError) -> NoReturn:
        expected = " with the fields that the mapping file names" if str(why).endswith("an object") else ""
        raise CorpusError(f"{shown(path)}:{line}: {why}{expected}")

    return jsonl.objects_in((text for _, text in text_lines(path, EXPECTED)), path, bad)


def _csv(path: Path, named: Collection[str]) -> Iterator[Row]:
    rows = csv_file.stream(path, EXPECTED)
    _, header = next(rows, (1, list[str]()))
    if said := csv_file.duplicate(header, named):
        raise FormatError(path, 1, said)
    for line, cells in rows:
        if len(cells) != len(header):
            raise FormatError(path, line, f"has more or fewer cells than the {len(header)} columns")
        yield line, dict(zip(header, cells, strict=True))
