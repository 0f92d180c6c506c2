"""Arrow types of every config, read off the pydantic models, so that a field is named once."""

from __future__ import annotations

from typing import Any

from datasets import Features, List, Value
from pydantic import BaseModel

from dataset_builder.schema import CalibrationRow, CriterionCheck, CriterionRow, GradedCheck, Helpline, RatingCheck, Row, ScenarioRow, TagsCheck

TEXT, WHOLE = Value("string"), Value("int64")


def _column(annotation: Any) -> Any:
    name = str(annotation)
    if "list[" in name:
        return List(TEXT)
    if "bool" in name:
        return Value("bool")
    return WHOLE if "int" in name else TEXT


def _features(model: type[BaseModel]) -> dict[str, Any]:
    return {field.alias or name: _column(field.annotation) for name, field in model.model_fields.items()}


def _checks() -> dict[str, Any]:
    """One struct that holds any check: the union of the kinds' fields, absent ones null."""
    union: dict[str, Any] = {}
    for kind in (TagsCheck, GradedCheck, CriterionCheck, RatingCheck):
        union |= _features(kind)
    return union | {"outcomes": {"flagged": TEXT, "attentive": TEXT, "ignored": TEXT}}


SAMPLES = Features(_features(Row) | {"messages": List({"role": TEXT, "content": TEXT}), "evaluation": List(_checks())})
FEATURES = {"scenarios": Features(_features(ScenarioRow)), "criteria": Features(_features(CriterionRow)), "calibration": Features(_features(CalibrationRow)),
            "helplines": Features(_features(Helpline))}  # fmt: skip


def of(config: str) -> Features:
    """The columns of a config."""
    return FEATURES.get(config, SAMPLES)


def complete(record: dict[str, Any], config: str) -> dict[str, Any]:
    """A record with every column, null where it has none, down to the checks."""
    columns = {name: record.get(name) for name in of(config)}
    if "evaluation" in columns:
        columns["evaluation"] = [{key: check.get(key) for key in SAMPLES["evaluation"].feature} for check in record["evaluation"]]
    return columns
