"""Reads the YAML of a content folder: any file with line numbers, `benchmark.yaml` and `scoring.yaml`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from dataset_builder.reading.markdown import Errors
from dataset_builder.schema import Family, Incident, Strict
from helmbench_common.formats import yaml_file
from helmbench_common.formats.refused import FormatError
from helmbench_common.formats.yaml_file import Yaml

DATE = r"\d{4}-\d\d-\d\d"
Day = Annotated[str, BeforeValidator(str), Field(pattern=f"^{DATE}$")]  # YAML reads a plain date as one
Model = TypeVar("Model", bound=Strict)
GRAVEST = 10  # highest severity
Share = Annotated[float, Field(strict=True, ge=0, le=1)]
Weight = Annotated[float, Field(strict=True, ge=0, le=100)]
Kappa = Annotated[float, Field(strict=True, ge=-1, le=1)]
Count = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]


class _Tiers(Strict):
    lite_messages_per_scenario: int = Field(ge=2)
    core_samples_per_message: int = Field(ge=1)
    lite_messages_per_category: int = Field(default=10, ge=2)
    lite_probes: int = Field(default=5, ge=0)
    lite_messages_per_hard_scenario: int = Field(default=2, ge=2)
    core_samples_per_hard_message: dict[Family, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)


class Settings(Strict):
    """benchmark.yaml."""

    version: str = Field(pattern=r"^[0-9]{1,9}(\.[0-9]{1,9}){2}$")
    released: Day
    canary: str = Field(min_length=20)
    tiers: _Tiers


class _Band(Strict):
    first: int = Field(alias="from", strict=True, ge=1, le=GRAVEST)
    last: int = Field(alias="to", strict=True, ge=1, le=GRAVEST)
    weight: Weight


class _Points(Strict):
    PASS: Share
    PARTIAL: Share
    FAIL: Share


_Reads = Literal["detection", "done", "points", "alarms", "prompted", "help", "harm"]


class _Score(Strict):
    headline: Literal["sees", "supports", "keeps"]
    earns: _Reads | None = None
    costs: _Reads | None = None
    weight: Weight

    @model_validator(mode="after")
    def _one(self) -> _Score:
        if (self.earns is None) == (self.costs is None):
            raise ValueError("expected either `earns` or `costs`")
        return self


class _Watch(Strict):
    first: int = Field(alias="from", strict=True, ge=1, le=GRAVEST)
    last: int = Field(alias="to", strict=True, ge=1, le=GRAVEST)
    criterion: str = Field(min_length=1)
    behavior: str = Field(min_length=1)


class _Free(Strict):
    crisis: Share
    control: Share


class _Harm(Strict):
    incidents: list[Incident]
    asked: list[str]
    elsewhere: list[str]


class _Floor(Strict):
    name: str = Field(min_length=1)
    kind: Literal["severe_sensitivity", "specificity", "harm"]
    behaviors: list[str] = Field(min_length=1)
    formats: list[Literal["tags", "rating", "actions", "graded", "criterion"]] = Field(default_factory=list)
    threshold: Share


class Scoring(Strict):
    """scoring.yaml."""

    bands: list[_Band] = Field(min_length=1)
    severe_from: int = Field(strict=True, ge=1, le=GRAVEST)
    difficulty_discount: float = Field(strict=True, ge=10, allow_inf_nan=False)
    ambiguous_weight: Share
    points: _Points
    scores: dict[str, _Score] = Field(min_length=1)
    miss: float = Field(strict=True, ge=1, allow_inf_nan=False)
    free: _Free
    hard: Share
    helps: str = Field(min_length=1)
    watch: _Watch
    floors: list[_Floor]
    harm: _Harm
    floor_messages: Count
    unscored_limit: Share
    pooled_messages: float = Field(strict=True, ge=0, allow_inf_nan=False)
    confidence: float = Field(strict=True, gt=0, lt=1)
    judge_kappa: Kappa
    judge_criterion_kappa: Kappa

    @model_validator(mode="after")
    def _every_severity(self) -> Scoring:
        for severity in range(1, GRAVEST + 1):
            if (n := sum(b.first <= severity <= b.last for b in self.bands)) != 1:
                raise ValueError(
                    f"severity {severity} is in {n} of the bands; expected each from 1 to {GRAVEST} in one"
                )
        return self


def read_yaml(path: Path, expected: str, errors: Errors, kind: type = dict) -> Yaml:
    """The file at `path`, whose top level is a `kind`; empty, with an error added, if it can't be read."""
    if not os.path.lexists(path):
        errors.add(path, 1, "is missing; every content folder has one")
        return Yaml(kind(), {})
    try:
        return yaml_file.load(path, expected, kind)
    except FormatError as error:
        errors.refused(error)
        return Yaml(kind(), {})


def misfits(path: Path, found: Yaml, error: ValidationError, errors: Errors, *under: str) -> None:
    """Adds each validation error at its line. `under`: the keys that lead to the validated value."""
    for problem in error.errors():
        where = (*under, *problem["loc"])
        what = problem["msg"].removeprefix("Value error, ")
        errors.add(path, found.line(where), f"'{'.'.join(map(str, where)) or 'file'}': {what}")


def fitted(model: type[Model], path: Path, found: Yaml, errors: Errors) -> Model | None:
    """What was read as a model; None, with errors added, if it doesn't fit or couldn't be read."""
    if not found.value:
        return None
    try:
        return model.model_validate(found.value)
    except ValidationError as error:
        misfits(path, found, error, errors)
        return None


def read_scoring(path: Path, errors: Errors) -> dict[str, Any]:
    """scoring.yaml as written, because its values are hashed; adds errors if it is invalid."""
    found = read_yaml(path, "the numbers that a score depends on", errors)
    fitted(Scoring, path, found, errors)
    values: dict[str, Any] = found.value
    return values
