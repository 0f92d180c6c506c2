"""Hand-written YAML → plain values, each with its line. Anchors, aliases, tags and merges are errors.

Scalars are either typed by YAML's rules (`no` is False, `1.10` a float) or all kept as written text.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from helmbench_common.formats.plain_file import DIGITS, decoded, read_bytes
from helmbench_common.formats.refused import FormatError

BYTES = 2**20
NODES = 20_000  # keys and values
DEPTH = 32
NUMBER = 40  # characters of a number with a decimal point
NAMES: dict[type, str] = {dict: "a mapping (key: value)", list: "a list (- …)", str: "a text"}
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is ten times as fast
Location = tuple[str, ...]


class Yaml(NamedTuple):
    """A file's value, and the line of each key or list entry, by its path of keys and indexes."""

    value: Any
    lines: Mapping[Location, int]

    def line(self, location: tuple[int | str, ...] = ()) -> int:
        """The line of the deepest part of a location (such as pydantic's `loc`) that exists; 1 if none does."""
        whole = tuple(map(str, location))
        return next((self.lines[whole[:n]] for n in range(len(whole), 0, -1) if whole[:n] in self.lines), 1)


def load(path: Path, expected: str, kind: type = dict, *, texts: bool = False) -> Yaml:
    """The file at `path`, whose top level is a `kind`. `expected`: a description of the file. `texts`: keep every
    scalar as text.

    Raises:
        FormatError: it can't be read, isn't plain YAML, exceeds a limit, or is another kind of value.
    """
    return loads(read_bytes(path, expected, BYTES), path, expected, kind, texts=texts)


def loads(raw: bytes, path: Path | str, expected: str, kind: type = dict, *, texts: bool = False) -> Yaml:
    """`load` for bytes; errors name them `path`."""
    if len(raw) > BYTES:
        raise FormatError(path, None, f"is longer than {BYTES:,} bytes; expected {expected}")
    text = decoded(raw, path)
    ends = [n for n, c in enumerate(text) if c == "\n"]  # unlike editors, YAML also ends lines at other characters
    try:
        value, places = _parsed(text, texts)
    except _RefusedError as error:
        what = str(error) if error.whole else f"{error}; expected {expected}"
        raise FormatError(path, bisect_right(ends, error.index - 1) + 1, what) from None
    lines = {location: bisect_right(ends, index - 1) + 1 for location, index in places}
    if value is None and kind is list:
        return Yaml([], lines)  # a list with only comments
    if value is None:
        raise FormatError(path, 1, f"is empty; expected {expected}")
    if not isinstance(value, kind):
        raise FormatError(path, 1, f"is {NAMES.get(type(value), 'a single value')}; expected {NAMES[kind]}: {expected}")
    return Yaml(value, lines)


def flat(line: str) -> tuple[str, str | list[str]] | None:
    """One line `key: value` or `key: [a, list]`, as text; None for anything else."""
    try:
        value, _ = _parsed(line, texts=True)
    except _RefusedError:
        return None
    if not isinstance(value, dict) or len(value) != 1:
        return None
    ((key, content),) = value.items()
    return key, content


class _RefusedError(Exception):
    """A problem at an index in the text. `whole`: the message already says what was expected."""

    def __init__(self, index: int, message: str, *, whole: bool = False) -> None:
        super().__init__(message)
        self.index, self.whole = index, whole


def _parsed(text: str, texts: bool) -> tuple[Any, list[tuple[Location, int]]]:
    """The value, and the index in the text of each of its parts."""
    if bad := yaml.reader.Reader.NON_PRINTABLE.search(text):
        what = f"contains the character {bad[0]!a}, which no YAML may; expected it left out"
        raise _RefusedError(bad.start(), what, whole=True)
    try:
        _bounded(text)
        node = yaml.compose(text, LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = str(error.problem or error.context).replace("did not find expected", "expected here:")
        raise _RefusedError(mark.index if mark else 0, f"invalid YAML: {what}") from None
    except (ValueError, OverflowError, yaml.YAMLError) as error:
        raise _RefusedError(0, f"invalid YAML: {error}") from None
    places: list[tuple[Location, int]] = []
    return None if node is None else _value(node, (), places, texts), places


def _bounded(text: str) -> None:
    """Rejects input that is too large, too deep, or uses anchors, aliases or tags, before building any value."""
    nodes = depth = 0
    for event in yaml.parse(text, LOADER):
        if isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if not isinstance(event, yaml.AliasEvent | yaml.ScalarEvent | yaml.CollectionStartEvent):
            continue
        at: int = event.start_mark.index  # type: ignore[union-attr]
        if event.anchor is not None:
            what = f"'{'*' if isinstance(event, yaml.AliasEvent) else '&'}{event.anchor[:40]}'"
            raise _RefusedError(at, f"{what} is an anchor or alias; expected the value itself, in full", whole=True)
        if not isinstance(event, yaml.AliasEvent) and event.tag is not None:
            raise _RefusedError(at, f"'{event.tag[:40]}' is a tag; expected plain values without one", whole=True)
        nodes, depth = nodes + 1, depth + isinstance(event, yaml.CollectionStartEvent)
        if nodes > NODES:
            raise _RefusedError(at, f"contains more than {NODES:,} keys and values")
        if depth > DEPTH:
            raise _RefusedError(at, f"is nested more than {DEPTH} deep")


def _value(node: yaml.Node, location: Location, places: list[tuple[Location, int]], texts: bool) -> Any:
    """A node as plain values; adds the index of each part to `places`."""
    if isinstance(node, yaml.MappingNode):
        found: dict[Any, Any] = {}
        for name, child in node.value:
            at = name.start_mark.index
            if not isinstance(name, yaml.ScalarNode):
                raise _RefusedError(at, "a list or a mapping can't be a key; expected a word", whole=True)
            if not texts and name.tag == "tag:yaml.org,2002:merge":
                raise _RefusedError(at, "'<<' is a merge; expected its keys in full", whole=True)
            key = _scalar(name, texts)
            if key in found:
                raise _RefusedError(at, f"'{str(key)[:60]}' appears twice; expected each key once", whole=True)
            places.append(((*location, str(key)), at))
            found[key] = _value(child, (*location, str(key)), places, texts)
        return found
    if isinstance(node, yaml.SequenceNode):
        places += [((*location, str(n)), child.start_mark.index) for n, child in enumerate(node.value)]
        return [_value(child, (*location, str(n)), places, texts) for n, child in enumerate(node.value)]
    return _scalar(node, texts)


def _scalar(node: yaml.Node, texts: bool) -> Any:
    kind, at = node.tag.rpartition(":")[2], node.start_mark.index
    if texts:
        return node.value
    if kind in ("int", "float"):
        digits, most = sum(c.isalnum() for c in node.value), DIGITS if kind == "int" else NUMBER
        if digits > most:
            raise _RefusedError(at, f"contains a number of {digits:,} digits; expected at most {most}", whole=True)
    try:
        value = yaml.constructor.SafeConstructor().construct_object(node)
    except (ValueError, OverflowError) as error:
        raise _RefusedError(at, f"'{node.value[:40]}' can't be read as a {kind} ({error})") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise _RefusedError(at, f"'{node.value[:40]}' is not a finite number", whole=True)
    return value
