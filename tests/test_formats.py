"""The readers of formats: what a file says and where, and a `FormatError` that names the line for anything else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helmbench_common import jsonl
from helmbench_common.formats import csv_file, json_file, yaml_file
from helmbench_common.formats.inert import inert
from helmbench_common.formats.plain_file import read_text
from helmbench_common.formats.refused import FormatError, shown


def test_every_part_of_a_yaml_file_has_its_line() -> None:
    """The deepest part of a location that is there; 1 where none is. Remarks and blank lines count."""
    raw = b"# \xc3\xa9\nname: x\n\nsources:\n  - path: a\n    fields: {id: b,\n      text: c}\n  - path: d\n"
    read = yaml_file.loads(raw, "m.yaml", "a mapping file", texts=True)
    assert read.value == {"name": "x", "sources": [{"path": "a", "fields": {"id": "b", "text": "c"}}, {"path": "d"}]}
    places: list[tuple[tuple[int | str, ...], int]] = [
        (("name",), 2),
        (("sources",), 4),
        (("sources", 0, "fields", "text"), 7),
        (("sources", 1), 8),
        (("sources", 1, "none"), 8),
        (("none",), 1),
        ((), 1),
    ]
    assert [read.line(where) for where, _ in places] == [line for _, line in places]
    with pytest.raises(FormatError) as error:  # only a newline ends a line: YAML also ends them at U+2028
        yaml_file.loads("a: \u2028\nb: 1\nb: 2\n".encode(), "m.yaml", "a mapping")
    assert error.value.line == 3


def test_scalars_are_typed_or_texts() -> None:
    """`no` is False to YAML, and a text to whoever asks for texts."""
    raw = b"a: no\nb: 1.10\nc: 2026-11-22\nd: ~\ne: .nan\n"
    texts = yaml_file.loads(raw, "m.yaml", "a mapping", texts=True).value
    assert texts == {"a": "no", "b": "1.10", "c": "2026-11-22", "d": "~", "e": ".nan"}
    typed = yaml_file.loads(raw.replace(b"e: .nan\n", b""), "m.yaml", "a mapping").value
    assert (typed["a"], typed["b"], str(typed["c"]), typed["d"]) == (False, 1.1, "2026-11-22", None)


def test_a_flat_line_is_a_key_and_texts() -> None:
    """Front matter, line by line; None for anything else."""
    lines = [
        ("a: b", ("a", "b")),
        ("a: [b, c]", ("a", ["b", "c"])),
        ("a:", ("a", "")),
        ("a: 1.10  # remark", ("a", "1.10")),
        ("a", None),
        ("a: b: c", None),
        ("{a: b, c: d}", None),
        ("a: *b", None),
        ("- a", None),
        ("", None),
    ]
    assert [(line, yaml_file.flat(line)) for line, _ in lines] == lines


def test_json_is_read_strictly() -> None:
    """What is wrong, with its line where Python's reader knows it, whatever stands in texts before it."""
    cases: tuple[tuple[str, int | None, str], ...] = (
        ('{"a": {"b": 1},\n"b": 2,\n"\\u0061": 3}', None, "'a' appears twice"),
        ('{"a": "NaN",\n"b": NaN}', None, "NaN is not a number"),
        ('{"a":\n1e999}', None, "'1e999' is too large"),
        ('{"a":\n0.' + "1" * 500 + "}", None, "contains a number of 502 characters"),
        ('{"a":\n' + "9" * 21 + "}", None, "contains a whole number of 21 digits"),
        ('{"a":' + "\n[" * 100 + "]" * 100 + "}", None, "is nested more than 100 deep"),
        ('{"a": 1}\n\nx', 3, "is not JSON (Extra data"),
        ("[]", 1, "is a list; expected an object"),
    )
    for text, line, words in cases:
        with pytest.raises(FormatError) as error:
            json_file.loads(text, "a.json", "a thing")
        assert (error.value.line, words in error.value.message) == (line, True), str(error.value)


def test_good_json_is_read_as_it_stands() -> None:
    """At the limits: numbers of 64 bits, a hundred brackets, brackets and NaN in texts."""
    text = (
        '{"a": -9223372036854775808, "b": 18446744073709551615, "c": "[[NaN", "d": 1e-7, "e": [' + "[" * 97 + "]" * 98
    )
    value = json_file.loads(text + "}", "a.json", "a thing")
    assert value == json_file.lenient(text + "}")
    assert (value["a"], value["b"], value["c"], value["d"]) == (-(2**63), 2**64 - 1, "[[NaN", 1e-7)


def test_rows_of_a_sheet_come_by_name() -> None:
    """With the line that each ends on; a row of another width is reported and skipped."""
    problems: list[tuple[int, str]] = []
    text = 'sep=;\nid;label;\n\na;"x\ny";\nb\n;;\nc;z;;\n'
    found = list(csv_file.records(text, "a.csv", lambda line, why: problems.append((line, why))))
    assert found == [(5, {"id": "a", "label": "x\ny"}), (8, {"id": "c", "label": "z"})]
    assert problems == [(6, "has 1 cells, the header 2")]


def _jsonl(path: Path) -> list[Any]:
    try:
        return list(jsonl.objects(path))
    except OSError as error:
        raise FormatError(path, None, str(error.strerror)) from None


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    """A pipe without a writer would never end, nor would a device. A sheet must fit into memory."""
    path = tmp_path / "sheet.csv"
    with path.open("wb") as file:
        file.truncate(2**27 + 1)
    with pytest.raises(FormatError, match="is longer than 134,217,728 bytes; expected a sheet"):
        csv_file.load(path, "a sheet")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "loop").symlink_to("loop")
    said = {
        "none": "No such file",
        "pipe": "is not a regular file",
        "folder": "is a folder",
        "device": "is not a regular file",
        "loop": "symbolic links",
    }
    readers: list[Callable[[Path], Any]] = [
        lambda path: read_text(path, "a text"),
        lambda path: yaml_file.load(path, "a mapping"),
        lambda path: json_file.load(path, "an object"),
        lambda path: csv_file.load(path, "a sheet"),
        _jsonl,
    ]
    for read in readers:
        for name, words in said.items():
            with pytest.raises(FormatError, match=words):
                read(tmp_path / name)


def test_a_terminal_only_prints_names() -> None:
    """No escape, no line break, no turn of direction, no half character; every script's letters stay."""
    assert shown("a\x1b[31m\n\u202e\udce9王é.md") == "a[U+001B][31m[U+000A][U+202E][U+DCE9]王é.md"
    assert inert("a\nb\x07") == "a\nb[U+0007]"
