"""Small readers for authored fields: each adds an error that names the line, what is wrong and what was expected."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from dataset_builder.reading.markdown import Document, Errors, Part, closest


def known_keys(document: Document, allowed: set[str], required: Iterable[str], errors: Errors) -> bool:
    for key, line in document.front_lines.items():
        if key not in allowed:
            errors.add(document.path, line, f"unknown key '{key}'; {closest(key, allowed)}")
    missing = [k for k in required if k not in document.front]
    for key in missing:
        errors.add(document.path, 1, f"key '{key}' is missing from the front matter")
    stem = document.path.stem
    if document.text("id") not in ("", stem):
        errors.add(
            document.path,
            document.front_lines["id"],
            f"id '{document.text('id')}' differs from the file's name '{stem}'; expected the same",
        )
    return not missing


def whole(text: str) -> int | None:
    """A whole number of up to nine digits, 0 to 9; None for anything else: `²` is a digit to Python, and no number."""
    return int(text) if re.fullmatch(r"-?[0-9]{1,9}", text) else None


def integer(text: str, low: int, high: int, what: str, path: Path, line: int, errors: Errors) -> int:
    number = whole(text)
    if number is not None and low <= number <= high:
        return number
    errors.add(path, line, f"{what} is '{text}'; expected a whole number from {low} to {high}")
    return low


def country_code(text: str, path: Path, line: int, errors: Errors) -> None:
    if not re.fullmatch(r"[A-Z]{2}", text):
        errors.add(path, line, f"country is '{text}'; expected a two-letter ISO 3166 code such as AU")


def choice(value: str, allowed: Iterable[str], what: str, path: Path, line: int, errors: Errors) -> str:
    if value not in set(allowed):
        errors.add(path, line, f"{what} is '{value}'; {closest(value, allowed)}")
    return value


def known_attributes(part: Part, allowed: set[str], required: Iterable[str], path: Path, errors: Errors) -> None:
    for key in part.attributes.keys() - allowed:
        errors.add(path, part.line, f"unknown '{key}' in the heading; {closest(key, allowed)}")
    for key in required:
        if key not in part.attributes:
            errors.add(path, part.line, f"heading '# {part.name}' has no '{key}'; expected '# {part.name} ({key} …)'")


def filled(part: Part, path: Path, errors: Errors) -> str:
    if not part.text.strip():
        errors.add(path, part.line, f"'# {part.name}' is empty; expected text below the heading")
    return part.text.strip()


def words(text: str) -> list[str]:
    return [w.strip() for w in text.split(",") if w.strip()]
