"""The one reader and writer of JSON lines: line numbers, limits, errors that name the line, problems collected."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from dataset_builder.schema import Message
from helmbench_common import jsonl


def written(path: Path, raw: bytes) -> Path:
    path.write_bytes(raw)
    return path


def test_objects_come_with_the_numbers_of_their_lines(tmp_path: Path) -> None:
    """Blank lines count and are left out; a byte order mark and the ends of Windows lines are no part of an object."""
    path = written(tmp_path / "a.jsonl", b'\xef\xbb\xbf{"a": 1}\r\n\n  \n{"a": "\xc3\xa9"}')
    assert list(jsonl.objects(path)) == [(1, {"a": 1}), (4, {"a": "é"})]


BROKEN = [
    (b"[1]", "is a list; expected an object"),
    (b"null", "is a NoneType; expected an object"),
    (b'{"a": ', "is not JSON: Expecting value"),
    (b'{"a": "\xff"}', "is not UTF-8 (invalid start byte at byte 7 of the line)"),
    (b"[" * 100_000, "is nested more than 100 deep; expected a JSON object"),
    (b'{"a": ' + b"[" * 100 + b"]" * 100 + b"}", "is nested more than 100 deep; expected a JSON object"),
    (b'{"a": ' + b"9" * 5_000 + b"}", "contains a whole number of 5,000 digits, and 20 are the most"),
    (b'{"a": ' + b"9" * 21 + b"}", "contains a whole number of 21 digits, and 20 are the most"),
]


def test_a_line_that_is_no_object_is_named(tmp_path: Path) -> None:
    """As an error that begins with path and line, or as a problem after which reading goes on."""
    for line, words in BROKEN:
        path = written(tmp_path / "a.jsonl", b'{"a": 1}\n' + line + b'\n{"a": 3}\n')
        with pytest.raises(jsonl.LineError) as caught:
            list(jsonl.objects(path))
        assert str(caught.value).startswith(f"{path}:2: {words}")
        problems: list[tuple[int, str]] = []
        found = list(jsonl.objects(path, lambda number, why: problems.append((number, str(why)))))  # noqa: B023
        assert [number for number, _ in found] == [1, 3]
        ((number, said),) = problems
        assert (number, said.startswith(words)) == (2, True), said


def test_a_line_over_the_limit_ends_the_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is never held whole, so what stands behind it can't be found."""
    monkeypatch.setattr(jsonl, "LONGEST", 20)
    path = written(tmp_path / "a.jsonl", b'{"a": 1}\n{"a": "' + b"x" * 100 + b'"}\n{"a": 3}\n')
    problems: list[str] = []
    found = list(jsonl.objects(path, lambda number, why: problems.append(f"{number}: {why}")))
    assert found == [(1, {"a": 1})]
    assert problems == ["2: is longer than 20 bytes; expected one record per line"]


def test_models_are_read_with_the_field_that_is_wrong(tmp_path: Path) -> None:
    """What doesn't validate names its line and field."""
    path = written(tmp_path / "a.jsonl", b'{"role": "user", "content": "hello"}\n{"role": "nobody", "content": "x"}\n')
    with pytest.raises(jsonl.LineError, match=r"a\.jsonl:2: role: Input should be 'system', 'user' or 'assistant'"):
        list(jsonl.models(path, Message))
    problems: list[tuple[str, str]] = []
    found = list(jsonl.models(path, Message, lambda _, why: problems.append(jsonl.first_problem(why))))
    assert found == [(1, Message(role="user", content="hello"))]
    assert problems == [("role", "Input should be 'system', 'user' or 'assistant'")]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    """One line for each record, models and mappings alike; text stays readable."""
    records: list[BaseModel | Mapping[str, Any]] = [
        Message(role="user", content="línea\nzwei"),
        {"id": "a", "n": 1.5, "of": [None, True]},
    ]
    text = jsonl.lines(records)
    assert text == "".join(jsonl.line(r) for r in records)
    assert text.splitlines()[0] == '{"role":"user","content":"línea\\nzwei"}'
    path = tmp_path / "a.jsonl"
    path.write_text(text, encoding="utf-8")
    assert [r for _, r in jsonl.objects(path)] == [{"role": "user", "content": "línea\nzwei"}, records[1]]


def test_half_a_surrogate_pair_can_be_written() -> None:
    """JSON can hold one and no file can; the two halves of an emoji stay one."""
    given = json.loads(r'{"text": "\ud800 and \ud83d\ude00"}')
    assert jsonl.line(given).encode() == '{"text": "\ufffd and \U0001f600"}\n'.encode()
