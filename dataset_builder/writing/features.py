"""Arrow types of every config, read off the pydantic models, so that a field is named once."""

from __future__ import annotations

from typing import Any

from datasets import Features, List, Value
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
    ProtocolRow,
    RatingCheck,
    Row,
    ScenarioRow,
    TagsCheck,
    UserMessage,
)

TEXT, WHOLE = Value("string"), Value("int64")


def _column(annotation: Any) -> Any:
    if annotation == About | None:
        return _features(About)
    name = str(annotation)
    if "list[" in name:
        return List(TEXT)
    if "bool" in name:
        return Value("bool")
    return WHOLE if "int" in name else TEXT


def _features(model: type[BaseModel]) -> dict[str, Any]:
    return {field.alias or name: _column(field.annotation) for name, field in model.model_fields.items()}


def _checks(*kinds: type[BaseModel]) -> dict[str, Any]:
    """One struct that holds any check of these kinds: the union of their fields, absent ones null."""
    union: dict[str, Any] = {}
    for kind in kinds:
        union |= _features(kind)
    return union | ({"outcomes": {"flagged": TEXT, "attentive": TEXT, "ignored": TEXT}} if "outcomes" in union else {})


def _samples(model: type[BaseModel], *checks: type[BaseModel]) -> Features:
    first = {"id": TEXT, "text": TEXT}  # what somebody who opens the table wants to see
    nested = {"messages": List({"role": TEXT, "content": TEXT}), "evaluation": List(_checks(*checks))}
    return Features(first | _features(model) | nested)


SAMPLES = _samples(Row, TagsCheck, ActionsCheck, GradedCheck, CriterionCheck, RatingCheck)
OTHERS: dict[str, type[BaseModel]] = {
    "scenarios": ScenarioRow,
    "criteria": CriterionRow,
    "calibration": CalibrationRow,
    "helplines": Helpline,
    "protocols": ProtocolRow,
    "taxonomy": Category,
    "rating_calibration": CalibrationRow,
}
FEATURES = {
    "messages": _samples(UserMessage, AppropriatenessCheck, CriterionCheck),
    **{name: Features(_features(model)) for name, model in OTHERS.items()},
}


def of(config: str) -> Features:
    """The columns of a config."""
    return FEATURES.get(config, SAMPLES)


def complete(record: dict[str, Any], config: str) -> dict[str, Any]:
    """A record with every column, null where it has none, down to the checks; a sample's `text` is made here."""
    columns = {name: record.get(name) for name in of(config)}
    if "messages" in columns:
        columns["text"] = plain_text(record["messages"])
        columns["evaluation"] = [
            {key: check.get(key) for key in of(config)["evaluation"].feature} for check in record["evaluation"]
        ]
    return columns
