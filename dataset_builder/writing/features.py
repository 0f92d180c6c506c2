"""The columns of every config, derived from the pydantic models, so that each field is named once.

A column is "string", "int64" or "bool", a list of one of these (`["string"]`), or a struct (`{name: column}`). They
give the Arrow schema and the two forms that `datasets` expects. `datasets` itself takes a second and a half to import
and three to convert the rows; the tests compare with it.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from pydantic import BaseModel

from dataset_builder.release import plain_text
from dataset_builder.schema import (
    About,
    ActionsCheck,
    AppropriatenessCheck,
    CalibrationRow,
    Category,
    CriterionCheck,
    CriterionRow,
    GradedCheck,
    Helpline,
    PartRow,
    PlayedLine,
    ProtocolRow,
    RatingCheck,
    Row,
    ScenarioRow,
    TagsCheck,
    UserMessage,
)

TEXT, WHOLE = "string", "int64"
Column = Any  # str | list[Column] | dict[str, Column]


def _column(annotation: Any) -> Column:
    if annotation == About | None:
        return _features(About)
    if annotation == list[PlayedLine]:
        return [_features(PlayedLine)]
    name = str(annotation)
    if "list[" in name:
        return [TEXT]
    if "bool" in name:
        return "bool"
    return WHOLE if "int" in name else TEXT


def _features(model: type[BaseModel]) -> dict[str, Any]:
    return {field.alias or name: _column(field.annotation) for name, field in model.model_fields.items()}


def _checks(*kinds: type[BaseModel]) -> dict[str, Any]:
    """A struct for any check of these kinds: the union of their fields, with missing ones null."""
    union: dict[str, Any] = {}
    for kind in kinds:
        union |= _features(kind)
    return union | ({"outcomes": {"flagged": TEXT, "attentive": TEXT, "ignored": TEXT}} if "outcomes" in union else {})


def _samples(model: type[BaseModel], *checks: type[BaseModel]) -> dict[str, Column]:
    first = {"id": TEXT, "text": TEXT}  # shown first, for people who open the table
    nested = {"messages": [{"role": TEXT, "content": TEXT}], "evaluation": [_checks(*checks)]}
    return first | _features(model) | nested


SAMPLES = _samples(Row, TagsCheck, ActionsCheck, GradedCheck, CriterionCheck, RatingCheck)
OTHERS: dict[str, type[BaseModel]] = {
    "scenarios": ScenarioRow,
    "criteria": CriterionRow,
    "calibration": CalibrationRow,
    "helplines": Helpline,
    "protocols": ProtocolRow,
    "taxonomy": Category,
    "rating_calibration": CalibrationRow,
    "parts": PartRow,
    "talk_criteria": CriterionRow,
}
FEATURES = {
    "messages": _samples(UserMessage, AppropriatenessCheck, CriterionCheck),
    **{name: _features(model) for name, model in OTHERS.items()},
}


def of(config: str) -> dict[str, Column]:
    """The columns of a config."""
    return FEATURES.get(config, SAMPLES)


def schema(config: str) -> pa.Schema:
    """A config's Arrow schema, with the metadata from which `datasets` reads its features."""
    columns = of(config)
    features = json.dumps({"info": {"features": {name: _feature(column) for name, column in columns.items()}}})
    return pa.schema([(name, _arrow(column)) for name, column in columns.items()], {"huggingface": features})


def listed(columns: dict[str, Column]) -> list[dict[str, Any]]:
    """Columns in the form of a dataset card's `dataset_info`."""
    return [{"name": name} | _entry(column) for name, column in columns.items()]


def _arrow(column: Column) -> pa.DataType:
    if isinstance(column, dict):
        return pa.struct([(name, _arrow(part)) for name, part in column.items()])
    return pa.list_(_arrow(column[0])) if isinstance(column, list) else pa.type_for_alias(column)


def _feature(column: Column) -> dict[str, Any]:
    if isinstance(column, dict):
        return {name: _feature(part) for name, part in column.items()}
    if isinstance(column, list):
        return {"feature": _feature(column[0]), "_type": "List"}
    return {"dtype": column, "_type": "Value"}


def _entry(column: Column) -> dict[str, Any]:
    if isinstance(column, dict):
        return {"struct": listed(column)}
    if isinstance(column, list):
        return {"list": column[0] if isinstance(column[0], str) else listed(column[0])}
    return {"dtype": column}


def complete(record: dict[str, Any], config: str) -> dict[str, Any]:
    """A record with every column, null if missing, down to the checks; adds a sample's `text`."""
    columns = {name: record.get(name) for name in of(config)}
    if "messages" in columns:
        columns["text"] = plain_text(record["messages"])
        columns["evaluation"] = [
            {key: check.get(key) for key in of(config)["evaluation"][0]} for check in record["evaluation"]
        ]
    return columns
