"""Your own set, described by a mapping file (YAML): the label file, and the meaning of each field."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import Field, ValidationError, model_validator

from dataset_builder.release import Release
from dataset_builder.schema import CrisisCategory, Strict
from helmbench_common import jsonl
from helmbench_common.formats import json_file, yaml_file
from helmbench_common.formats.refused import FormatError, shown
from judge.agreement.labels import records
from judge.agreement.published.labeled_set import (
    RATING,
    REFUSALS,
    Item,
    LabeledSet,
    Row,
    Scale,
    crisis_or_not,
    items,
)
from judge.replies.schema import RunError, run_error
from judge.schema import VERDICTS, LabelKind, LabelledRows, SetName


class Mapping(Strict):
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
    def _whole(self) -> Mapping:
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
        """Every field name in the mapping."""
        named = (self.id, self.message, self.messages, self.reply, self.protocol_field, *self.raters.values())
        return tuple(name for name in named if name)


def read(path: Path, folder: Path, rows: LabelledRows, release: Release) -> LabeledSet:
    """The set that a mapping file describes."""
    try:
        loaded = yaml_file.load(path, "a mapping file")
        given = Mapping.model_validate(loaded.value)
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
        labels = {name: _label(row, field, given, scale) for name, field in given.raters.items()}
        known = {name: label for name, label in labels.items() if label is not None}
        if not known:
            return
        protocol = row.label(given.protocol_field, protocols) if given.protocol_field else given.protocol or ""
        yield Item(
            jsonl.plain(str(row.fields[given.id])),
            (row.text(given.message),) if given.message else _said(row, str(given.messages)),
            known,
            row.text(given.reply) if given.reply else "",
            given.criterion or protocol,
            groups=(protocol,) if given.protocol_field else (),
        )

    found = items(_rows(folder / given.path, given), item, rows)
    if len({i.id for i in found}) < len(found):
        raise RunError(f"{folder / given.path}: the field '{given.id}' repeats an id; expected a different one per row")
    return LabeledSet(given.name, rows, given.kind, scale, found)


def _scale(given: Mapping, release: Release) -> Scale:
    if given.kind == "rating":
        return RATING
    if given.kind == "refusal":
        return REFUSALS
    if given.kind == "category":
        return Scale(tuple(release.taxonomy), coarse=crisis_or_not(release.taxonomy))
    own = release.criteria[str(given.criterion)]
    return Scale(tuple(own.labels) if own.kind == "graded" else VERDICTS)


def _rows(path: Path, given: Mapping) -> list[Row]:
    """The rows of a file; every field in the mapping must exist."""
    problems: list[str] = []
    rows = [Row(f"{shown(path)}:{number}", fields) for number, fields in records(path, problems)]
    for row in rows:
        problems += [f"{row.where}: has no field '{name}'" for name in given.fields if name not in row.fields][:1]
    if not rows and not problems:
        problems.append(f"{shown(path)}: holds no rows; expected a header and at least one row")
    if problems:
        raise run_error(problems)
    return rows


def _label(row: Row, field: str, given: Mapping, scale: Scale) -> str | None:
    """A rater's label on HelmBench's scale, or None."""
    value = row.fields[field]
    if value is None or value == "":
        return None
    word = f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
    return row.label("label", scale.labels, given.values.get(word, word))


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
    return tuple(map(jsonl.plain, value))
