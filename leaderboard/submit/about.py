"""What a run can't say of itself: who submits it, which model it is, what it was trained on. From flags or a small YAML
file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic import BaseModel, ValidationError

from leaderboard.schema import Contact, Declaration, Subject

# Field of the YAML file → what is expected there; `?` marks what may be left out.
FIELDS = {
    "contact.name": "who answers for the submission",
    "contact.address": "an email or web address",
    "model.organization": "who made the model, such as ORG of ORG/NAME on the Hub",
    "model.name": "the model's name",
    "model.revision": "a commit or dated snapshot; `none` where the provider gives none",
    "model.access": "open_weights, api or private",
    "model.relation": "yours to whoever made the model: developer, paid_by_developer or independent",
    "model.family?": "what it descends from, where the name doesn't say",
    "declaration.trained_on_benchmark": "no, yes or unknown: whether the model, or what it was made from, "
    "was trained on this benchmark",
    "declaration.note?": "anything to add",
}
PARTS: dict[str, type[BaseModel]] = {"contact": Contact, "model": Subject, "declaration": Declaration}


class About(NamedTuple):
    contact: Contact
    model: Subject
    declaration: Declaration


def flag(field: str) -> str:
    """The command-line flag of a field: `--contact-name`, `--model` for the model's name, `--organization` for its
    other fields.
    """
    part, _, name = field.rstrip("?").partition(".")
    if field == "model.name":
        return "--model"
    return (
        f"--{part}-{name}".replace("_", "-") if part == "contact" or name == "note" else f"--{name}".replace("_", "-")
    )


def gather(path: Path | None, given: dict[str, str | None]) -> tuple[About | None, list[str]]:
    """All that is known, flags before the file, and everything that is missing or wrong. `given`: by field."""
    values, problems = _file(path) if path else ({}, list[str]())
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
                        f"{field} is {values[field]!r}: {e['msg']}; expected "
                        f"{FIELDS.get(field) or FIELDS.get(field + '?')}"
                    )
    return (About(**parts) if not problems else None), problems


def _file(path: Path) -> tuple[dict[str, Any], list[str]]:
    try:
        read = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)  # texts only: `no` stays a word
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        return {}, [f"{path}: can't be read ({' '.join(str(error).split())[:200]})"]
    if not isinstance(read, dict):
        return {}, [f"{path}: expected the parts {', '.join(PARTS)}"]
    values: dict[str, Any] = {}
    problems: list[str] = []
    for part, fields in read.items():
        if part not in PARTS or not isinstance(fields, dict):
            problems.append(f"{path}: {part}: expected one of the parts {', '.join(PARTS)}, each with its fields")
            continue
        for name, value in fields.items():
            field = f"{part}.{name}"
            if field not in FIELDS and field + "?" not in FIELDS:
                problems.append(
                    f"{path}: {field}: no such field; expected "
                    f"{', '.join(f.rstrip('?') for f in FIELDS if f.startswith(part + '.'))}"
                )
            elif not isinstance(value, str):
                problems.append(f"{path}: {field}: expected a text")
            else:
                values[field] = value
    return values, problems
