"""voices.md: how people write whom no product remembers. No model reads it; messages say whose hand wrote them."""

from __future__ import annotations

import os
import re
from pathlib import Path

from dataset_builder.reading.content_types import Voice
from dataset_builder.reading.fields import country_code, filled, integer, known_attributes
from dataset_builder.reading.markdown import Errors, Part, read_document

HEAD = ("age", "country", "first_language")


def read_voices(path: Path, errors: Errors) -> dict[str, Voice]:
    """Slug → voice; none where there is no such file."""
    document = read_document(path, errors, bare=True) if os.path.lexists(path) else None
    voices: dict[str, Voice] = {}
    for part in document.parts if document else []:
        if part.name in voices:
            errors.add(path, part.line, f"'# {part.name}' appears twice; voice names are unique")
        else:
            voices[part.name] = _voice(part, path, errors)
    return voices


def _voice(part: Part, path: Path, errors: Errors) -> Voice:
    known_attributes(part, set(HEAD), HEAD, path, errors)
    slug, country = part.name, part.attributes.get("country", "")
    if not re.fullmatch(r"[a-z]+(-[a-z]+)*", slug):
        errors.add(path, part.line, f"'# {slug}' names no voice; expected small letters, such as '# dov (age 34; …)'")
    if country:
        country_code(country, path, part.line, errors)
    age = integer(part.attributes.get("age", "13"), 13, 110, "age", path, part.line, errors)
    return Voice(slug, age, country, part.attributes.get("first_language", ""), filled(part, path, errors), part.line)
