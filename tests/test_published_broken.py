"""Broken files in published sets and in a set of your own: the error is short, names the file, and is printable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support import labelled_sets as shapes

from dataset_builder.release import Release
from judge.agreement.published.sets import read_set
from judge.replies.schema import RunError

DEEP = 100_000
BROKEN: dict[str, bytes] = {
    "empty": b"",
    "zero-bytes": bytes(1000),
    "not-utf-8": b"id,label\n\xff\xfe,a\n",
    "deep-object": b'[{"label":' * DEEP,
    "digits": b'[{"evaluation": ' + b"9" * 9000 + b', "label": "no_crisis"}]',
    "large-number": b'[{"evaluation": 1e400, "label": "no_crisis", "inputs": "a", "answer": "b"}]',
    "text-for-number": b'[{"evaluation": "\\u001b[2J five", "label": "no_crisis", "inputs": "a", "answer": "b"}]',
    "other-types": b'[1, "a", null, [], {}, {"label": {}, "inputs": 7, "evaluation": true}]',
    "constants": b"[NaN, Infinity, -Infinity]",
    "half-a-pair": b'[{"label": "\\ud800", "inputs": "\\udfff", "evaluation": 5, "answer": "\\ud800"}]',
    "no-end-quote": b'id,label\n"a,b\n' + b"more\n" * 999,
    "long-cell": b'id,label\n"' + b"x" * 2**20 + b'",b\n',
    "columns": b",".join(b"c%d" % n for n in range(20_000)) + b"\n1\n",
    "column-twice": b"id,id,scenarios,conversation_id,questionID\n1,2,3,4,5\n",
    "escape": b"\x1b[2J\x1b]0;a\x07,\x1b[31mb\n1,2\n",
}


def said_of(mapping: str, release: Release) -> str:
    """What is said of a set; empty where it is read all the same."""
    try:
        read_set(mapping, None, "all", release)
    except RunError as error:
        return str(error)
    return ""


def test_a_broken_file_of_a_published_set(release: Release, tmp_path: Path) -> None:
    """In place of its first or last file: read all the same, where it can be, or refused in printable lines. The hashes
    that would refuse each of them aren't there.
    """
    for name in shapes.WRITERS:
        root = tmp_path / name
        own = shapes.published(name, root)
        files = [path for path in sorted(root.rglob("*")) if path.is_file() and path.suffix != ".yaml"]
        refused = 0
        for broken, content in BROKEN.items():
            for path in {files[0], files[-1]}:
                whole = path.read_bytes()
                path.write_bytes(content)
                lines = said_of(own, release).splitlines()
                path.write_bytes(whole)
                refused += bool(lines)
                assert all(map(str.isprintable, lines)), broken
                assert all(len(line) < len(str(path)) + 900 for line in lines), broken
                assert not lines or str(root) in lines[0] or lines[0].startswith("query '"), (broken, lines[0])
        assert refused, name
        assert said_of(own, release) == ""


def test_a_broken_file_or_row_of_your_own_set(release: Release, tmp_path: Path) -> None:
    """The labels, the mapping file itself, and single fields, shown as far as a terminal may show them."""
    for suffix in ("jsonl", "csv"):
        for broken, content in BROKEN.items():
            mapping = shapes.own(tmp_path, path=f"labels.{suffix}")
            for broken_file in (tmp_path / f"labels.{suffix}", mapping):
                broken_file.write_bytes(content)
                said = said_of(str(mapping), release)
                assert all(map(str.isprintable, said.splitlines())), broken
                assert broken_file.name in said or "no item among 0 rows" in said, broken
    mapping = shapes.own(tmp_path)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"ana": {"a": [1]}}, "'ana' is \"{'a': [1]}\"; expected one of FAIL, PARTIAL, PASS"),
        ({"ana": 10**19}, "'ana' is '10000000000000000000'; expected one of"),
        ({"ana": 1e400}, "'ana' is 'inf'; expected one of"),
        ({"ana": "\x1b[2J"}, "'ana' is '[U+001B][2J'; expected one of"),
        ({"q": ["a"]}, "field 'q' is \"['a']\"; expected text"),
        ({"a": ["a"]}, "'a' is a list; expected text"),
        ({"q": ""}, "'q' is empty; expected the user's words last"),
        ({"q": " "}, "'q' is empty; expected the user's words last"),
    ]
    for fields, error in cases:
        fields = {"case": 0, "q": "Loud?", "a": "Yes.", "ana": "fine", "ben": "fine"} | fields
        (tmp_path / "labels.jsonl").write_text(json.dumps(fields) + "\n", encoding="utf-8")
        assert said_of(str(mapping), release).startswith(f"{tmp_path}/labels.jsonl:1: {error}")
    # JSON can hold half a surrogate pair, and no request can.
    row = '{"case": "a\\ud800", "q": "Lo\\ud800ud?", "a": "Y\\udfffes.", "ana": "fine", "ben": null}'
    (tmp_path / "labels.jsonl").write_text(row + "\n", encoding="utf-8")
    (item,) = read_set(str(mapping), tmp_path, "all", release).items
    assert (item.id, item.said, item.reply) == ("a\ufffd", ("Loud?",), "Y\ufffdes.")
