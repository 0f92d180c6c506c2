"""docs/schemas.md defines every column of every config and every value of a closed set: read off the page's tables, the
built parquet and the models, each against the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import BaseModel

from dataset_builder.reading.content_types import CONDITION_KINDS, DISCLOSURES, PERSUASIONS, REGISTERS
from dataset_builder.release import CONFIGS, parquet_path
from dataset_builder.schema import (
    BEHAVIORS,
    PILLARS,
    About,
    ActionsCheck,
    AppropriatenessCheck,
    CalibrationRow,
    Category,
    CriterionCheck,
    CriterionRow,
    GradedCheck,
    Helpline,
    Message,
    PartRow,
    PlayedLine,
    ProtocolRow,
    RatingCheck,
    Row,
    ScenarioRow,
    TagsCheck,
    UserMessage,
)

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "schemas.md").read_text(encoding="utf-8")
KINDS = {
    "string": "text",
    "int64": "number",
    "bool": "true/false",
    "list<element: string>": "list of texts",
}
COLUMNS_INSIDE = {
    "messages": "list",
    "evaluation": "list",
    "about": "facts",
    "lines": "list of lines",
}  # their fields have tables of their own
FEW = 20
MODELS: dict[str, list[type[BaseModel]]] = {
    **{config: [Row] for config in CONFIGS[:6]},
    "messages": [UserMessage],
    "scenarios": [ScenarioRow],
    "criteria": [CriterionRow],
    "calibration": [CalibrationRow],
    "rating_calibration": [CalibrationRow],
    "helplines": [Helpline],
    "parts": [PartRow],
    "talk_criteria": [CriterionRow],
    "protocols": [ProtocolRow],
    "taxonomy": [Category],
}
NESTED: dict[str, list[type[BaseModel]]] = {
    "messages": [Message],
    "about": [About],
    "lines": [PlayedLine],
    "evaluation": [TagsCheck, ActionsCheck, GradedCheck, RatingCheck, CriterionCheck, AppropriatenessCheck],
}
# Closed sets that the content's reader holds, and no model.
AUTHORED = {
    "register": set(REGISTERS),
    "disclosure": set(DISCLOSURES),
    "persuasion": set(PERSUASIONS),
    "condition_kind": set(CONDITION_KINDS) - {"safety_prompt"},  # laid over a product, and no row's kind
    "pillar": set(PILLARS),
    "behavior": set(BEHAVIORS),
}
# Texts of few values whose meaning stands elsewhere: what the page's column says of them is all there is to say.
OPEN = {
    "canary": "one string",
    "language": "a code of ISO 639-1",
    "country": "a code of ISO 3166-1",
    "condition": "a code of the scenario's",
    "user_context": "a code of the scenario's",
    "author": "whoever wrote the set",
    "scenario": "a code, told in the config scenarios",
    "job": "the scenario's own words",
    "persona": "a file's name",
    "verified": "a date",
    "expires": "a date",
    "culture": "the persona's own words",
    "sources": "none yet, or what the author names",
    "evaluation.offered": "the job's own tags or actions",
    "evaluation.flag": "the job's own tags",
    "evaluation.expected": "the job's own tags",
    "evaluation.accepted": "the job's own tags",
    "evaluation.words": "the job's own action",
    "evaluation.hand": "the job's own action",
    "evaluation.does": "the job's own actions",
}


class Column(NamedTuple):
    """A column, or a field inside one (`evaluation.check`): its type in the page's words, its distinct values but for
    null, how many it has in all, and whether some are null.
    """

    kind: str
    values: set[Any]
    given: int
    nulls: bool


def tables(heading: str) -> list[tuple[str, list[list[str]]]]:
    """Level-three heading → cells of the table below it, for every one under a level-two heading."""
    section = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return [
        (
            part.partition("\n")[0],
            [[c.strip() for c in line.strip("|").split(" | ")] for line in part.splitlines() if line.startswith("| `")],
        )
        for part in section.split("\n### ")[1:]
    ]


def names(heading: str) -> list[str]:
    return re.findall(r"`([^`]+)`", heading)


COLUMNS = {name: rows for h, rows in tables("Columns") if not h.startswith("Inside") for name in names(h)}
FIELDS = {name: rows for h, rows in tables("Columns") if h.startswith("Inside") for name in names(h)}
VALUES = [(names(heading), rows) for heading, rows in tables("Values")]


def defined(config: str) -> dict[str, tuple[str, str]]:
    """Column of a config, or field inside one → (type, what it holds), as the page has them."""
    rows = {name.strip("`"): (kind, text) for name, kind, text in COLUMNS[config]}
    assert len(rows) == len(COLUMNS[config])
    for name in set(rows) & set(FIELDS):
        rows |= {f"{name}.{field.strip('`')}": (kind, text) for field, kind, text in FIELDS[name]}
    return rows


def meanings(config: str, column: str) -> set[str] | None:
    """The values that the page defines for a column, None where it has no table for it."""
    for wanted in (f"{config}.{column}", column):
        for columns, rows in VALUES:
            if wanted in columns:
                return {value.strip("`") for value, _ in rows}
    return None


def places(name: str) -> list[tuple[str, str]]:
    """(config, column) of every column that a name above a table of values stands for."""
    config, _, column = name.partition(".")
    everywhere = [(c, name) for c in CONFIGS if name in defined(c)]
    return everywhere or [(c, column) for c in CONFIGS if c == config and column in defined(c)]


def leaves(name: str, held: pa.Array) -> Iterator[tuple[str, Column]]:
    """A column and, down to the last struct, the fields inside it."""
    flat = held.flatten() if pa.types.is_list(held.type) else held
    if not pa.types.is_struct(flat.type):
        values = set(flat.drop_null().unique().to_pylist())
        yield name, Column(KINDS[str(held.type)], values, len(flat) - flat.null_count, held.null_count > 0)
        return
    if "." not in name:
        yield name, Column(COLUMNS_INSIDE[name], set(), 0, held.null_count > 0)
    for field, part in zip(flat.type, flat.flatten(), strict=True):
        yield from leaves(f"{name}.{field.name}", part)


@pytest.fixture(scope="module")
def built(dataset: Path) -> dict[str, dict[str, Column]]:
    """Config → column → what the parquet holds."""
    found = {}
    for config in CONFIGS:
        table = pq.ParquetFile(dataset / parquet_path(config)).read()
        columns = zip(table.column_names, table.columns, strict=True)
        found[config] = {k: v for name, held in columns for k, v in leaves(name, held.combine_chunks())}
    return found


def literals(annotation: Any) -> Iterator[str]:
    """The values of every Literal in an annotation, but for those of a mapping's values."""
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
    else:
        yield from (value for part in get_args(annotation) for value in literals(part))


def closed(config: str) -> dict[str, set[str]]:
    """Column of a config → every value that its model or the content's reader allows, where that is a closed set."""
    found: dict[str, set[str]] = {}
    inside = [(f"{name}.", m) for name in COLUMNS_INSIDE if name in defined(config) for m in NESTED[name]]
    for prefix, model in [*(("", m) for m in MODELS[config]), *inside]:
        for name, field in model.model_fields.items():
            if get_origin(field.annotation) is dict:  # `outcomes`: a column for each of its keys
                keys, value = get_args(field.annotation)
                found |= {f"{prefix}{name}.{key}": set(literals(value)) for key in literals(keys)}
            elif values := set(literals(field.annotation)):
                found.setdefault(f"{prefix}{field.alias or name}", set()).update(values)
    return found | {name: values for name, values in AUTHORED.items() if name in defined(config)}


def test_the_page_has_a_table_for_every_config(built: dict[str, dict[str, Column]]) -> None:
    """And one for what stands inside messages, checks and facts; none is of something that is gone."""
    assert set(COLUMNS) == set(CONFIGS)
    assert set(FIELDS) == set(COLUMNS_INSIDE)
    fields = {name for columns in built.values() for name in columns if name.startswith("evaluation.")}
    assert {f"evaluation.{name.strip('`')}" for name, *_ in FIELDS["evaluation"]} == fields


def test_every_column_is_defined_with_its_type(built: dict[str, dict[str, Column]]) -> None:
    """What the parquet holds is what the page says, no more and no less, and which columns may be null."""
    for config, found in built.items():
        said = defined(config)
        # A check's fields are in one table, with those of kinds that no row here has.
        kinds = {name: kind for name, (kind, _) in said.items() if name in found or not name.startswith("evaluation.")}
        assert kinds == {name: column.kind for name, column in found.items()}, config
        assert [name for name, column in found.items() if column.nulls and "null" not in said[name][1]] == [], config
        assert [name for name, (_, text) in said.items() if len(text.split()) < 2] == [], config


def test_every_value_of_a_closed_set_is_defined(built: dict[str, dict[str, Column]]) -> None:
    """All values that the models allow and that the rows hold."""
    undefined = [
        (config, name, lacking)
        for config in CONFIGS
        for name, values in closed(config).items()
        if name in built[config] and (lacking := values - (meanings(config, name) or set()))
    ]
    unknown = [
        (config, name, column.values - known)
        for config in CONFIGS
        for name, column in built[config].items()
        if (known := meanings(config, name)) is not None and column.values - known
    ]
    assert (undefined, unknown) == ([], [])


def test_every_text_of_few_values_is_defined_or_open(built: dict[str, dict[str, Column]]) -> None:
    """A column whose texts repeat is a set that somebody has to look up; what is excepted is so still."""
    few = {
        name
        for config, columns in built.items()
        for name, column in columns.items()
        if column.kind in ("text", "list of texts")
        and 0 < len(column.values) <= FEW
        and column.given >= 10 * len(column.values)
        and meanings(config, name) is None
    }
    assert few == set(OPEN)


def test_no_value_is_defined_that_nothing_can_hold(built: dict[str, dict[str, Column]]) -> None:
    """Every table of values is of a column, and every value in it one that a model, the reader or a row has."""
    for columns, rows in VALUES:
        assert all(places(name) for name in columns), columns
        held = set()
        for config, name in (place for column in columns for place in places(column)):
            held |= closed(config).get(name, set()) | built[config].get(name, Column("", set(), 0, False)).values
        values = [value.strip("`") for value, _ in rows]
        assert len(values) == len(set(values))
        assert set(values) - held == set(), columns
        assert all(len(meaning) > 1 for _, meaning in rows)
