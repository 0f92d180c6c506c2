"""What a log can't say: who submits which model, and what it was trained on. From flags or a small YAML file."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from helmbench_common.formats import yaml_file
from helmbench_common.formats.refused import FormatError, shown
from leaderboard.schema import Contact, Declaration, Subject
from leaderboard.submit import FIELDS, flag

PARTS: dict[str, type[BaseModel]] = {"contact": Contact, "model": Subject, "declaration": Declaration}


class About(NamedTuple):
    """`submitted`: the day, as 2026-11-22; `commit`: of the code that made the run."""

    contact: Contact
    model: Subject
    declaration: Declaration
    submitted: str
    commit: str | None = None


def commit_of(checkout: Path) -> str | None:
    """The commit of a checkout, or None."""
    if not (checkout / ".git").exists():
        return None
    done = subprocess.run(["git", "-C", str(checkout), "rev-parse", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or None


def gather(
    path: Path | None, given: Mapping[str, str | None], submitted: str, commit: str | None
) -> tuple[About | None, list[str]]:
    """What is declared, and everything that is missing or wrong. `given`: flags by field; they override the file."""
    try:
        values, problems = _file(path) if path else ({}, list[str]())
    except FormatError as error:  # a list of missing fields would hide the cause
        return None, [str(error)]
    values |= {field: value for field, value in given.items() if value is not None}
    required = [f for f in FIELDS if not f.endswith("?")]
    problems += [f"{f} is missing ({flag(f)}): {FIELDS[f]}" for f in required if values.get(f) is None]
    if values.get("model.revision") == "none":
        values["model.revision"] = None
    parts: dict[str, Any] = {}
    for part, model in PARTS.items():
        own = {f.partition(".")[2]: v for f, v in values.items() if f.startswith(part + ".")}
        try:
            parts[part] = model.model_validate(own)
        except ValidationError as error:
            for e in error.errors():
                field = f"{part}.{'.'.join(map(str, e['loc']))}"
                if e["type"] != "missing" and values.get(field) is not None:
                    problems.append(
                        f"{field} is {values[field]!r}; expected {FIELDS.get(field) or FIELDS.get(field + '?')}"
                    )
    return (About(**parts, submitted=submitted, commit=commit) if not problems else None), problems


def _file(path: Path) -> tuple[dict[str, Any], list[str]]:
    # As text: `no` isn't False.
    read = yaml_file.load(path, f"the parts {', '.join(PARTS)}", texts=True)
    values: dict[str, Any] = {}
    problems: list[str] = []
    for part, fields in read.value.items():
        if part not in PARTS or not isinstance(fields, dict):
            where = f"{shown(path)}:{read.line((part,))}: {shown(part[:60])}"
            problems.append(f"{where}: expected one of the parts {', '.join(PARTS)}, each with its fields")
            continue
        for name, value in fields.items():
            field = f"{part}.{name}"
            where = f"{shown(path)}:{read.line((part, name))}: {shown(field[:60])}"
            if field not in FIELDS and field + "?" not in FIELDS:
                problems.append(
                    f"{where}: no such field; expected "
                    f"{', '.join(f.rstrip('?') for f in FIELDS if f.startswith(part + '.'))}"
                )
            elif not isinstance(value, str):
                problems.append(f"{where}: expected text")
            else:
                values[field] = value
    return values, problems
