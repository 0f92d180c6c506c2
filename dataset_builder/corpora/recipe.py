"""Reads a mapping file. Every error names its line; scalars stay text until the model asks for a number."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from dataset_builder.corpora.schema import CorpusError, Recipe
from helmbench_common.formats import yaml_file
from helmbench_common.formats.plain_file import read_bytes
from helmbench_common.formats.refused import FormatError, shown

EXPECTED = "a mapping file with name, date and sources, see docs/own-data.md"


class Loaded(NamedTuple):
    """A mapping file: what it says, where it stands, and the sha256 of its bytes."""

    recipe: Recipe
    path: Path
    sha256: str


def load_recipe(path: Path) -> Loaded:
    """The mapping file at `path`.

    Raises:
        CorpusError: it is missing, is no YAML, or says something that no mapping file can; all errors at once.
    """
    try:
        content = read_bytes(path, EXPECTED, yaml_file.BYTES)
        # Every scalar as text: the language `no` must not become False, nor a date a datetime.
        found = yaml_file.loads(content, path, EXPECTED, texts=True)
    except FormatError as error:
        raise CorpusError(str(error)) from None
    try:
        return Loaded(Recipe.model_validate(found.value), path, hashlib.sha256(content).hexdigest())
    except ValidationError as error:
        lines = {
            (found.line(p["loc"]), f"'{shown('.'.join(map(str, p['loc'])) or 'file')}': {_said(p['msg'])}")
            for p in error.errors()
        }
        raise CorpusError(*(f"{shown(path)}:{line}: {message}" for line, message in sorted(lines))) from None


def _said(message: str) -> str:
    message = shown(message.removeprefix("Value error, "))
    return "is unknown here; see docs/own-data.md for the keys" if message.startswith("Extra inputs") else message
