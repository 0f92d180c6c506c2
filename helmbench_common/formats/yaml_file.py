"""YAML that somebody wrote → plain values, and the line of each. No anchors, aliases, tags or merges: what stands in
the file is all that it says.

Two ways to read a scalar: as YAML types it (`no` is False, `1.10` a float), or every one as the text that was written.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from helmbench_common.formats.plain_file import DIGITS, decoded, read_bytes
from helmbench_common.formats.refused import FormatError

BYTES = 2**20
NODES = 20_000  # keys and values; as many take about 3 s
DEPTH = 32
NUMBER = 40  # characters of a number with a point
NAMES: dict[type, str] = {dict: "a mapping (key: value)", list: "a list (- …)", str: "a text"}
Node = yaml.Node


class Yaml(NamedTuple):
    """What a file says. `lines`: where each key or entry stands, by the keys and places that lead to it, as texts."""

    value: Any
    lines: Mapping[tuple[str, ...], int]

    def line(self, location: tuple[int | str, ...] = ()) -> int:
        """The line of the deepest part of a location that the file has, such as pydantic's `loc`; 1 where it has none
        of it.
        """
        whole = tuple(map(str, location))
        return next((self.lines[whole[:n]] for n in range(len(whole), 0, -1) if whole[:n] in self.lines), 1)


def load(path: Path, expected: str, kind: type = dict, *, texts: bool = False) -> Yaml:
    """The file at `path`, whose top level is of `kind`. `expected`: what it should be, in words. `texts`: every scalar
    as it is written.

    Raises:
        FormatError: it can't be read, is none, is over a limit, or something else; the first such line.
    """
    return loads(read_bytes(path, expected, BYTES), path, expected, kind, texts=texts)


def loads(raw: bytes, path: Path | str, expected: str, kind: type = dict, *, texts: bool = False) -> Yaml:
    """`load` of bytes that were read already; `path` is what an error calls them.

    Raises:
        FormatError: as `load`.
    """
    if len(raw) > BYTES:
        raise FormatError(path, None, f"is longer than {BYTES:,} bytes; expected {expected}")
    text = decoded(raw, path)
    ends = [n for n, c in enumerate(text) if c == "\n"]  # YAML ends lines elsewhere too, and no editor does
    try:
        found = _parsed(text, texts)
    except _RefusedError as error:
        said = str(error) if error.whole else f"{error}; expected {expected}"
        raise FormatError(path, bisect_right(ends, error.index - 1) + 1, said) from None
    lines = {location: bisect_right(ends, index - 1) + 1 for location, index in found.places}
    if found.value is None and kind is list:
        return Yaml([], lines)  # a list of which nothing is left but the remarks
    if found.value is None:
        raise FormatError(path, 1, f"is empty; expected {expected}")
    if not isinstance(found.value, kind):
        is_one = NAMES.get(type(found.value), "a single value")
        raise FormatError(path, 1, f"is {is_one}; expected {NAMES[kind]}: {expected}")
    return Yaml(found.value, lines)


def flat(line: str) -> tuple[str, str | list[str]] | None:
    """One line `key: value` or `key: [a, list]`, all of it texts; None where it is anything else."""
    try:
        value = _parsed(line, texts=True).value
    except _RefusedError:
        return None
    if not isinstance(value, dict) or len(value) != 1:
        return None
    ((key, content),) = value.items()
    return key, content


class _RefusedError(Exception):
    """What is wrong at a place of a text. `whole`: the message says already what was expected."""

    def __init__(self, index: int, message: str, *, whole: bool = False) -> None:
        super().__init__(message)
        self.index, self.whole = index, whole


class _Parsed(NamedTuple):
    value: Any
    places: list[tuple[tuple[str, ...], int]]


class _Loader(yaml.SafeLoader):
    """The safe loader, which refuses before it builds: too much, too deep, or what stands for something else."""

    nodes, depth = 0, 0

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        at = event.start_mark.index
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            what = f"'{'*' if isinstance(event, yaml.AliasEvent) else '&'}{event.anchor[:40]}'"
            raise _RefusedError(at, f"{what} is an anchor or alias; expected the value itself, in full", whole=True)
        if event.tag is not None:
            raise _RefusedError(at, f"'{event.tag[:40]}' is a tag; expected plain values without one", whole=True)
        self.nodes, self.depth = self.nodes + 1, self.depth + 1
        if self.nodes > NODES:
            raise _RefusedError(at, f"contains more than {NODES:,} keys and values")
        if self.depth > DEPTH:
            raise _RefusedError(at, f"is nested more than {DEPTH} deep")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _parsed(text: str, texts: bool) -> _Parsed:
    loader: _Loader | None = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        places: list[tuple[tuple[str, ...], int]] = []
        return _Parsed(None if node is None else _value(node, (), places, None if texts else loader), places)
    except yaml.reader.ReaderError as error:
        character = chr(error.character) if isinstance(error.character, int) else error.character
        what = f"contains the character {character!a}, which no YAML may; expected it left out"
        raise _RefusedError(error.position, what, whole=True) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _RefusedError(mark.index if mark else 0, f"invalid YAML: {error.problem or error.context}") from None
    except (ValueError, OverflowError) as error:  # of an escape's number, or a version's, which the library converts
        raise _RefusedError(loader.index if loader else 0, f"invalid YAML: {error}") from None


def _value(
    node: Node, location: tuple[str, ...], places: list[tuple[tuple[str, ...], int]], loader: _Loader | None
) -> Any:
    """A node as plain values; `places` gets where each part stands. Without `loader` every scalar is a text."""
    if isinstance(node, yaml.MappingNode):
        found: dict[Any, Any] = {}
        for name, child in node.value:
            key = _key(name, loader)
            if key in found:
                what = f"'{str(key)[:60]}' appears twice; expected each key once"
                raise _RefusedError(name.start_mark.index, what, whole=True)
            own = (*location, str(key))
            places.append((own, name.start_mark.index))
            found[key] = _value(child, own, places, loader)
        return found
    if isinstance(node, yaml.SequenceNode):
        return list(_entries(node, location, places, loader))
    return _scalar(node, loader)


def _entries(
    node: yaml.SequenceNode, location: tuple[str, ...], places: list[tuple[tuple[str, ...], int]], loader: Any
) -> Iterator[Any]:
    for n, child in enumerate(node.value):
        own = (*location, str(n))
        places.append((own, child.start_mark.index))
        yield _value(child, own, places, loader)


def _key(node: Node, loader: _Loader | None) -> Any:
    if not isinstance(node, yaml.ScalarNode):
        raise _RefusedError(node.start_mark.index, "a list or a mapping can't be a key; expected a word", whole=True)
    if loader is not None and node.tag == "tag:yaml.org,2002:merge":
        raise _RefusedError(node.start_mark.index, "'<<' is a merge; expected its keys in full", whole=True)
    return _scalar(node, loader)


def _scalar(node: Node, loader: _Loader | None) -> Any:
    kind, at = node.tag.rpartition(":")[2], node.start_mark.index
    if any("\ud800" <= c <= "\udfff" for c in node.value):
        raise _RefusedError(at, "contains half of a surrogate pair; remove it", whole=True)
    if loader is None:
        return node.value
    if kind in ("int", "float"):
        digits = sum(c.isalnum() for c in node.value)
        if digits > (DIGITS if kind == "int" else NUMBER):
            what = f"contains a number of {digits:,} digits; expected at most {DIGITS if kind == 'int' else NUMBER}"
            raise _RefusedError(at, what, whole=True)
    try:
        value = loader.construct_object(node)
    except (ValueError, OverflowError) as error:
        raise _RefusedError(at, f"'{node.value[:40]}' can't be read as a {kind} ({error})") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise _RefusedError(at, f"'{node.value[:40]}' is not a finite number", whole=True)
    return value
