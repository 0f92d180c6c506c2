"""Stage 1 of the build: one authored Markdown file → flat front matter and level-one parts, each with its line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from dataset_builder.errors import RefusedError

HEADING = re.compile(r"^# +(?P<name>[^()]*?) *(?:\((?P<attributes>[^()]*)\))? *$")


class ContentError(Exception):
    """Something an author can mend: `path:line: what is wrong; what was expected`."""

    def __init__(self, path: Path | str, line: int, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}")
        self.path, self.line, self.message = str(path), line, message


class ContentRefusedError(RefusedError):
    """Every `ContentError` of a run, in the order of files and lines."""


class Errors:
    """Collects every content error of a run, so that an author sees all of them at once."""

    def __init__(self) -> None:
        self.found: list[ContentError] = []

    def add(self, path: Path | str, line: int, message: str) -> None:
        self.found.append(ContentError(path, line, message))

    def lines(self) -> list[str]:
        return [str(e) for e in sorted(self.found, key=lambda e: (e.path, e.line, e.message))]


@dataclass(frozen=True)
class Part:
    """A level-one heading on `line`: its words, its `(key value; key: value)` attributes, and the text that begins on
    `text_line`.
    """

    name: str
    attributes: dict[str, str]
    text: str
    line: int
    text_line: int


@dataclass(frozen=True)
class Document:
    """An authored file. `front` maps a key to text or to a list of texts; `front_lines` says where each key stands."""

    path: Path
    front: dict[str, str | list[str]]
    front_lines: dict[str, int]
    parts: list[Part] = field(default_factory=list[Part])

    def words(self, key: str) -> list[str]:
        """The list under `key`; a single word counts as a list of one, a missing key as empty."""
        value = self.front.get(key, [])
        return value if isinstance(value, list) else [value]

    def text(self, key: str, default: str = "") -> str:
        value = self.front.get(key, default)
        return value if isinstance(value, str) else ", ".join(value)


def closest(word: str, allowed: Iterable[str]) -> str:
    """`; did you mean X?` where a near word exists, then what is allowed."""
    names = sorted(allowed)
    near = difflib.get_close_matches(word, names, n=1)
    return (f"did you mean '{near[0]}'? " if near else "") + f"expected one of {', '.join(names)}"


def parse_attributes(text: str, path: Path, line: int, errors: Errors) -> dict[str, str]:
    """`severity 7; register: slang` → {"severity": "7", "register": "slang"}."""
    attributes: dict[str, str] = {}
    for piece in filter(None, (p.strip() for p in text.split(";"))):
        match = re.match(r"(not for|[a-z_\-][a-z_\-0-9]*)(?:: *| +)(.+)$", piece)
        if not match:
            errors.add(
                path,
                line,
                f"cannot read '{piece}' in the heading; expected 'name value' or 'name: value', parted by ';'",
            )
        elif match[1] in attributes:
            errors.add(path, line, f"'{match[1]}' stands twice in the heading; expected once")
        else:
            attributes[match[1]] = match[2].strip()
    return attributes


def read_document(path: Path, errors: Errors, *, bare: bool = False) -> Document | None:
    """Reads one file; None (with errors added) where the front matter cannot be read at all.

    `bare`: the file may do without front matter.
    """
    try:
        # Only a newline ends a line: a pasted U+2028 in a message is data.
        lines = path.read_bytes().decode("utf-8").replace("\r\n", "\n").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        errors.add(path, 1, f"is not UTF-8 ({error.reason} at byte {error.start}); save the file as UTF-8")
        return None
    if bare and lines[0] != "---":
        return Document(path, {}, {}, _parts(lines, 0, path, errors))
    if lines[0] != "---" or "---" not in lines[1:]:
        errors.add(path, 1, "has no front matter; expected '---', flat 'key: value' lines, '---' at the top")
        return None
    end = lines.index("---", 1)
    front, front_lines = _front_matter(lines[1:end], path, errors)
    return Document(path, front, front_lines, _parts(lines, end + 1, path, errors))


def _front_matter(lines: list[str], path: Path, errors: Errors) -> tuple[dict[str, str | list[str]], dict[str, int]]:
    front: dict[str, str | list[str]] = {}
    where: dict[str, int] = {}
    for number, line in enumerate(lines, start=2):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            # BaseLoader keeps every scalar as text: `no` must not become False, nor `1.10` a float.
            value: Any = yaml.load(line, Loader=yaml.BaseLoader)
        except yaml.YAMLError:
            value = None
        if not isinstance(value, dict) or len(value) != 1:
            errors.add(path, number, f"cannot read '{line}' as one flat 'key: value'; prose belongs under a heading")
            continue
        ((key, content),) = value.items()
        if key in where:
            errors.add(path, number, f"key '{key}' stands twice (first on line {where[key]}); expected once")
        elif not content or not (
            isinstance(content, str) or (isinstance(content, list) and all(isinstance(c, str) for c in content))
        ):
            errors.add(path, number, f"key '{key}' is empty or nested; expected a word, a short text, or [a, list]")
        else:
            front[str(key)], where[str(key)] = content, number
    return front, where


def _parts(lines: list[str], start: int, path: Path, errors: Errors) -> list[Part]:
    heads = [n for n in range(start, len(lines)) if re.match(r"#(?!#)", lines[n])]
    for n in range(start, heads[0] if heads else len(lines)):
        if lines[n].strip():
            errors.add(path, n + 1, "text before the first heading; expected a level-one heading such as '# Scenario'")
            break
    parts: list[Part] = []
    for n, following in pairwise([*heads, len(lines)]):
        match = HEADING.match(lines[n])
        if not match or not match["name"]:
            errors.add(path, n + 1, f"cannot read the heading '{lines[n]}'; expected '# Name (key value; key: value)'")
            continue
        attributes = parse_attributes(match["attributes"] or "", path, n + 1, errors)
        body = lines[n + 1 : following]
        first = next((k for k, line in enumerate(body) if line), 0)
        parts.append(Part(match["name"], attributes, "\n".join(body).strip("\n"), n + 1, n + 2 + first))
    return parts
