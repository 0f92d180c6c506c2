"""Stage 1 of the build: one Markdown file → flat front matter and level-one parts with their lines; readers of single
fields. Every problem is added to `Errors`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple

from helmbench_common.errors import RefusedError
from helmbench_common.formats.plain_file import read_text
from helmbench_common.formats.refused import FormatError, shown
from helmbench_common.formats.yaml_file import flat

BYTES = 2**21  # largest file; our largest is a tenth of that
FRONT_MATTER = 200  # lines; our longest has 13
SHOWN = 20  # errors of one file
LONGEST = 2_000  # characters shown of an error message; some quote a whole line
NOTES = "Review notes"  # the optional part for reviewers' comments; never in a prompt or a hash
Wrong = Callable[[int, str], None]  # takes a problem's line and description


class ContentError(NamedTuple):
    """A problem that an author can fix; as text, `path:line: what is wrong; what was expected`."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        path, line, message = self
        whole = message if len(message) <= LONGEST else f"{message[: LONGEST // 2]} … {message[-LONGEST // 2 :]}"
        return f"{shown(path)}:{line}: {shown(whole)}"


class ContentRefusedError(RefusedError):
    """Every `ContentError` of a run, ordered by file and line."""


class Errors:
    """Collects every content error of a run, so that an author sees those of all files at once."""

    def __init__(self) -> None:
        self.found: list[ContentError] = []

    def add(self, path: Path | str, line: int, message: str) -> None:
        self.found.append(ContentError(str(path), line, message))

    def at(self, path: Path) -> Wrong:
        """`add` for one file."""
        return partial(self.add, path)

    def refused(self, error: FormatError) -> None:
        """Adds a format reader's error."""
        self.add(error.path, error.line or 1, error.message)

    def lines(self) -> list[str]:
        """The errors as text, by file and line: SHOWN of each file, then how many more it has."""
        texts = list[str]()
        for path, group in groupby(sorted(self.found), key=lambda error: error.path):
            own = list(group)
            texts += map(str, own[:SHOWN])
            texts += [f"{shown(path)}: and {len(own) - SHOWN:,} more errors"] if len(own) > SHOWN else []
        return texts


@dataclass(frozen=True)
class Part:
    """A level-one heading on `line`: its name, `(key value; key: value)` attributes, and text from `text_line` on."""

    name: str
    attributes: dict[str, str]
    text: str
    line: int
    text_line: int


@dataclass(frozen=True)
class Document:
    """An authored file. `front`: key → text or list of texts, at `front_lines`. `lines`: the whole file as written."""

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
    """`did you mean X?` if a close match exists, then the allowed words."""
    names = sorted(allowed)
    near = difflib.get_close_matches(word, names, n=1)
    return (f"did you mean '{near[0]}'? " if near else "") + f"expected one of {', '.join(names)}"


def parse_attributes(text: str, line: int, wrong: Wrong) -> dict[str, str]:
    """`severity 7; register: slang` → {"severity": "7", "register": "slang"}."""
    attributes: dict[str, str] = {}
    for piece in filter(None, (p.strip() for p in text.split(";"))):
        match = re.match(r"(not for|[a-z_\-][a-z_\-0-9]*)(?:: *| +)(.+)$", piece)
        if not match:
            wrong(
                line, f"cannot read '{piece}' in the heading; expected 'name value' or 'name: value', separated by ';'"
            )
        elif match[1] in attributes:
            wrong(line, f"'{match[1]}' appears twice in the heading; expected once")
        else:
            attributes[match[1]] = match[2].strip()
    return attributes


def read_document(path: Path, errors: Errors, *, bare: bool = False) -> Document | None:
    """One file; None (with errors added) if its front matter can't be read. `bare`: front matter is optional."""
    try:
        text = read_text(path, "a text in Markdown", BYTES)
    except FormatError as error:
        errors.refused(error)
        return None
    wrong = errors.at(path)
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")  # not splitlines: U+2028 in a message is data
    if bare and lines[0] != "---":
        return Document(path, {}, {}, _parts(lines, 0, wrong), lines)
    if lines[0] != "---" or "---" not in lines[1:]:
        wrong(1, "has no front matter; expected '---', flat 'key: value' lines, '---' at the top")
        return None
    end = lines.index("---", 1)
    if end > FRONT_MATTER:
        wrong(1, f"has front matter of {end - 1:,} lines; expected at most {FRONT_MATTER}, and prose under a heading")
        return None
    front, front_lines = _front_matter(lines[1:end], wrong)
    return Document(path, front, front_lines, _parts(lines, end + 1, wrong), lines)


def _front_matter(lines: list[str], wrong: Wrong) -> tuple[dict[str, str | list[str]], dict[str, int]]:
    front: dict[str, str | list[str]] = {}
    where: dict[str, int] = {}
    for number, line in enumerate(lines, start=2):
        if not line.strip() or line.startswith("#"):
            continue
        # Read every value as text: `no` must not become False, nor `1.10` a float.
        if (read := flat(line)) is None:
            wrong(number, f"cannot read '{line}' as one flat 'key: value'; prose belongs under a heading")
            continue
        key, content = read
        if key in where:
            wrong(number, f"key '{key}' appears twice (first on line {where[key]}); expected once")
        elif not content or not all(isinstance(c, str) for c in (content if isinstance(content, list) else [content])):
            wrong(number, f"key '{key}' is empty or nested; expected a word, a short text, or [a, list]")
        else:
            front[key], where[key] = content, number
    return front, where


def _parts(lines: list[str], start: int, wrong: Wrong) -> list[Part]:
    heads = [n for n in range(start, len(lines)) if re.match(r"#(?!#)", lines[n])]
    for n in range(start, heads[0] if heads else len(lines)):
        if lines[n].strip():
            wrong(n + 1, "text before the first heading; expected a level-one heading such as '# Scenario'")
            break
    parts: list[Part] = []
    for n, following in pairwise([*heads, len(lines)]):
        heading = _heading(lines[n])
        if heading is None:
            wrong(n + 1, f"cannot read the heading '{lines[n]}'; expected '# Name (key value; key: value)'")
            continue
        name, written = heading
        attributes = parse_attributes(written, n + 1, wrong)
        body = lines[n + 1 : following]
        first = next((k for k, line in enumerate(body) if line), 0)
        parts.append(Part(name, attributes, "\n".join(body).strip("\n"), n + 1, n + 2 + first))
    return parts


def _heading(line: str) -> tuple[str, str] | None:
    """`# Name (attributes)` → (name, attributes). A regex would take quadratic time on a line of spaces."""
    if not line.startswith("# "):
        return None
    name, bracket, attributes = line[1:].strip(" ").partition("(")
    if bracket and not attributes.endswith(")"):
        return None
    name, attributes = name.rstrip(" "), attributes.removesuffix(")")
    return (name, attributes) if name and not {*"()"} & {*name, *attributes} else None


def known_keys(document: Document, allowed: Iterable[str], required: Iterable[str], errors: Errors) -> bool:
    """Whether all `required` keys exist; also adds errors for unknown keys and an id that isn't the file name."""
    wrong, stem = errors.at(document.path), document.path.stem
    for key, line in document.front_lines.items():
        if key not in allowed:
            wrong(line, f"unknown key '{key}'; {closest(key, allowed)}")
    missing = [k for k in required if k not in document.front]
    for key in missing:
        wrong(1, f"key '{key}' is missing from the front matter")
    if (identity := document.text("id")) not in ("", stem):
        wrong(document.front_lines["id"], f"id '{identity}' differs from the file's name '{stem}'; expected the same")
    return not missing


def whole(text: str) -> int | None:
    """An integer of up to nine ASCII digits; None for anything else (Python counts `²` as a digit)."""
    return int(text) if re.fullmatch(r"-?[0-9]{1,9}", text) else None


def integer(text: str, low: int, high: int, what: str, line: int, wrong: Wrong) -> int:
    number = whole(text)
    if number is not None and low <= number <= high:
        return number
    wrong(line, f"{what} is '{text}'; expected a whole number from {low} to {high}")
    return low


def country_code(text: str, line: int, wrong: Wrong) -> None:
    if not re.fullmatch(r"[A-Z]{2}", text):
        wrong(line, f"country is '{text}'; expected a two-letter ISO 3166 code such as AU")


def choice(value: str, allowed: Iterable[str], what: str, line: int, wrong: Wrong) -> str:
    if value not in set(allowed):
        wrong(line, f"{what} is '{value}'; {closest(value, allowed)}")
    return value


def known_attributes(part: Part, allowed: Iterable[str], required: Iterable[str], wrong: Wrong) -> None:
    for key in part.attributes.keys() - {*allowed}:
        wrong(part.line, f"unknown '{key}' in the heading; {closest(key, allowed)}")
    for key in required:
        if key not in part.attributes:
            wrong(part.line, f"heading '# {part.name}' has no '{key}'; expected '# {part.name} ({key} …)'")


def headings(document: Document, expected: list[str], errors: Errors, *, notes: bool = True) -> bool:
    """Whether the parts are the `expected` ones in order; adds an error if not. `notes`: allow review notes."""
    found = [p.name for p in document.parts if not (notes and p.name == NOTES)]
    if found != expected:
        errors.add(document.path, 1, f"headings are {found}; expected {expected}, in this order")
    return found == expected


def filled(part: Part, wrong: Wrong) -> str:
    if not part.text.strip():
        wrong(part.line, f"'# {part.name}' is empty; expected text below the heading")
    return part.text.strip()


def words(text: str) -> list[str]:
    return [w.strip() for w in text.split(",") if w.strip()]
