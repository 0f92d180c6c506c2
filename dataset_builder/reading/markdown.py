"""Stage 1 of the build: one authored Markdown file → flat front matter and level-one parts, each with its line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from helmbench_common.errors import HelmbenchError, RefusedError
from helmbench_common.formats.plain_file import read_text
from helmbench_common.formats.refused import FormatError, shown
from helmbench_common.formats.yaml_file import flat

BYTES = 2**21  # of a text: the longest of ours has a tenth
LONGEST = 2_000  # characters of a message that are shown: some quote what their author wrote


class ContentError(HelmbenchError):
    """Something an author can mend: `path:line: what is wrong; what was expected`, as a terminal may show it."""

    exit_code = 1

    def __init__(self, path: Path | str, line: int, message: str) -> None:
        whole = message if len(message) <= LONGEST else f"{message[: LONGEST // 2]} … {message[-LONGEST // 2 :]}"
        super().__init__(f"{shown(path)}:{line}: {shown(whole)}")
        self.path, self.line, self.message = str(path), line, message


class ContentRefusedError(RefusedError):
    """Every `ContentError` of a run, in the order of files and lines."""


class Errors:
    """Collects every content error of a run, so that an author sees all of them at once."""

    def __init__(self) -> None:
        self.found: list[ContentError] = []

    def add(self, path: Path | str, line: int, message: str) -> None:
        self.found.append(ContentError(path, line, message))

    def refused(self, error: FormatError) -> None:
        """Adds what a reader of a format says of a file."""
        self.add(error.path, error.line or 1, error.message)

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
    """An authored file. `front` maps a key to text or to a list of texts; `front_lines` says where each key stands.
    `lines`: all of it as it was written.
    """

    path: Path
    front: dict[str, str | list[str]]
    front_lines: dict[str, int]
    parts: list[Part] = field(default_factory=list[Part])
    lines: list[str] = field(default_factory=list[str], compare=False, repr=False)

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
                f"cannot read '{piece}' in the heading; expected 'name value' or 'name: value', separated by ';'",
            )
        elif match[1] in attributes:
            errors.add(path, line, f"'{match[1]}' appears twice in the heading; expected once")
        else:
            attributes[match[1]] = match[2].strip()
    return attributes


def read_document(path: Path, errors: Errors, *, bare: bool = False) -> Document | None:
    """Reads one file; None (with errors added) where the front matter cannot be read at all.

    `bare`: the file may do without front matter.
    """
    try:
        # Only a newline ends a line: a pasted U+2028 in a message is data.
        text = read_text(path, "a text in Markdown", BYTES)
    except FormatError as error:
        errors.refused(error)
        return None
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    if bare and lines[0] != "---":
        return Document(path, {}, {}, _parts(lines, 0, path, errors), lines)
    if lines[0] != "---" or "---" not in lines[1:]:
        errors.add(path, 1, "has no front matter; expected '---', flat 'key: value' lines, '---' at the top")
        return None
    end = lines.index("---", 1)
    front, front_lines = _front_matter(lines[1:end], path, errors)
    return Document(path, front, front_lines, _parts(lines, end + 1, path, errors), lines)


def _front_matter(lines: list[str], path: Path, errors: Errors) -> tuple[dict[str, str | list[str]], dict[str, int]]:
    front: dict[str, str | list[str]] = {}
    where: dict[str, int] = {}
    for number, line in enumerate(lines, start=2):
        if not line.strip() or line.startswith("#"):
            continue
        # Every value is a text: `no` must not become False, nor `1.10` a float.
        if (read := flat(line)) is None:
            errors.add(path, number, f"cannot read '{line}' as one flat 'key: value'; prose belongs under a heading")
            continue
        key, content = read
        if key in where:
            errors.add(path, number, f"key '{key}' appears twice (first on line {where[key]}); expected once")
        elif not content or not (
            isinstance(content, str) or (isinstance(content, list) and all(isinstance(c, str) for c in content))
        ):
            errors.add(path, number, f"key '{key}' is empty or nested; expected a word, a short text, or [a, list]")
        else:
            front[key], where[key] = content, number
    return front, where


def _parts(lines: list[str], start: int, path: Path, errors: Errors) -> list[Part]:
    heads = [n for n in range(start, len(lines)) if re.match(r"#(?!#)", lines[n])]
    for n in range(start, heads[0] if heads else len(lines)):
        if lines[n].strip():
            errors.add(path, n + 1, "text before the first heading; expected a level-one heading such as '# Scenario'")
            break
    parts: list[Part] = []
    for n, following in pairwise([*heads, len(lines)]):
        heading = _heading(lines[n])
        if heading is None:
            errors.add(path, n + 1, f"cannot read the heading '{lines[n]}'; expected '# Name (key value; key: value)'")
            continue
        name, written = heading
        attributes = parse_attributes(written, path, n + 1, errors)
        body = lines[n + 1 : following]
        first = next((k for k, line in enumerate(body) if line), 0)
        parts.append(Part(name, attributes, "\n".join(body).strip("\n"), n + 1, n + 2 + first))
    return parts


def _heading(line: str) -> tuple[str, str] | None:
    """`# Name (attributes)` → both, the second empty where there is none. No pattern: one would try every split of a
    line of spaces.
    """
    if not line.startswith("# "):
        return None
    name, bracket, attributes = line[1:].strip(" ").partition("(")
    if bracket and not attributes.endswith(")"):
        return None
    name, attributes = name.rstrip(" "), attributes.removesuffix(")")
    return (name, attributes) if name and not {*"()"} & {*name, *attributes} else None
