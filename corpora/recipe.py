"""Reads a mapping file. Every error names its line; scalars stay text until the model asks for a number."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

import yaml
from pydantic import ValidationError

from corpora.schema import CorpusError, Recipe


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
        content = path.read_bytes()
        # BaseLoader keeps every scalar as text: the language `no` must not become False, nor a date a datetime.
        values = yaml.load(content, Loader=yaml.BaseLoader)
        node = yaml.compose(content, Loader=yaml.BaseLoader)
    except OSError as error:
        raise CorpusError(
            f"{path}:1: can't be read ({error.strerror}); name a mapping file, see docs/corpora.md"
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        raise CorpusError(
            f"{path}:{mark.line + 1 if mark else 1}: is not YAML: {getattr(error, 'problem', error)}"
        ) from None
    if not isinstance(values, dict):
        raise CorpusError(f"{path}:1: is no mapping file; expected name, date and sources, see docs/corpora.md")
    try:
        return Loaded(Recipe.model_validate(values), path, hashlib.sha256(content).hexdigest())
    except ValidationError as error:
        lines = {
            (_line(node, p["loc"]), f"'{'.'.join(str(k) for k in p['loc']) or 'file'}': {_said(p['msg'])}")
            for p in error.errors()
        }
        raise CorpusError(*(f"{path}:{line}: {message}" for line, message in sorted(lines))) from None


def _said(message: str) -> str:
    message = message.removeprefix("Value error, ")
    return "is unknown here; see docs/corpora.md for the keys" if message.startswith("Extra inputs") else message


def _line(node: yaml.Node | None, location: tuple[int | str, ...]) -> int:
    """The line of the deepest part of `location` that the file has."""
    line = 1
    for key in location:
        if isinstance(node, yaml.MappingNode):
            own = next(((k, v) for k, v in node.value if k.value == key), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
            own = (node.value[key], node.value[key])
        else:
            own = None
        if own is None:
            break
        line, node = own[0].start_mark.line + 1, own[1]
    return line
