"""Stage 1: front matter and headings, and that every slip is named at its own line."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataset_builder.reading.markdown import Document, Errors, closest, read_document

WHOLE = """---
id: P1-B1-S1
# a remark

answer: no
version: 1.10
tags: [TASK, ASSISTANCE]
---

# Scenario
First line.

## not a part, but text
Last line.

# PT1 (severity 7; register: slang)
no (brackets are text here), or #hash inside a line
# PT2 (severity -3)
"""


def read(path: Path, text: str) -> tuple[Document | None, list[str]]:
    path.write_text(text, encoding="utf-8")
    errors = Errors()
    document = read_document(path, errors)
    return document, [line.removeprefix(f"{path}:") for line in errors.lines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.md"


def test_a_line_separator_inside_a_message_stays(path: Path) -> None:
    """Prompts are data: only a newline ends a line, so a pasted U+2028 or U+0085 neither vanishes nor shifts the
    count.
    """
    document, errors = read(path, "---\nid: a\n---\n# PT1\none\u2028two\u0085three\n# PT2\nfour\n")
    assert document is not None
    assert errors == []
    assert [(p.text, p.line) for p in document.parts] == [("one\u2028two\u0085three", 4), ("four", 6)]


FRONT = {
    "duplicate key": ("id: a\nid: b", "3: key 'id' appears twice (first on line 2); expected once"),
    "empty list": ("id: a\ntags: []", "3: key 'tags' is empty or nested; expected a word, a short text, or [a, list]"),
    "nested key": ("id: a\ntitle: {deep: b}",
        "3: key 'title' is empty or nested; expected a word, a short text, or [a, list]"),
    "prose": ("id: a\nI feel empty",
        "3: cannot read 'I feel empty' as one flat 'key: value'; prose belongs under a heading"),
    "list item": ("tags:  [a]\n- b", "3: cannot read '- b' as one flat 'key: value'; prose belongs under a heading"),
}  # fmt: skip


HEADINGS = {
    "no name": ("# (severity 3)",
        "cannot read the heading '# (severity 3)'; expected '# Name (key value; key: value)'"),
    "unclosed": ("# PT1 (severity 3",
        "cannot read the heading '# PT1 (severity 3'; expected '# Name (key value; key: value)'"),
    "no space": ("#PT1", "cannot read the heading '#PT1'; expected '# Name (key value; key: value)'"),
    "attribute twice": ("# PT1 (severity 3; severity: 4)", "'severity' appears twice in the heading; expected once"),
    "attribute without value": ("# PT1 (severity)",
        "cannot read 'severity' in the heading; expected 'name value' or 'name: value', separated by ';'"),
}  # fmt: skip


def test_a_file_of_front_matter_alone_has_no_parts(path: Path) -> None:
    """A file that is only begun is read as far as it goes; what it lacks is for the next stage to say."""
    document, errors = read(path, "---\nid: a\n---\n")
    assert document is not None
    assert (document.front, document.parts, errors) == ({"id": "a"}, [], [])


def test_all_slips_of_a_file_come_in_line_order(path: Path) -> None:
    """Reading goes on after an error, so that one run shows them all."""
    _, errors = read(path, "---\nid: a\nid: b\nprose\n---\n# T (x)\nbody\n#\n# U (a 1; a 2)\n")
    assert [line.split(":")[0] for line in errors] == ["3", "4", "6", "8", "9"]


def test_closest_suggests_only_a_near_word() -> None:
    """A far word gets the list of what is allowed, without a misleading guess."""
    assert closest("titel", ["title", "id"]) == "did you mean 'title'? expected one of id, title"
    assert closest("zzz", ["title", "id"]) == "expected one of id, title"


def test_a_whole_file_is_read(path: Path) -> None:
    """Front matter is text and lists of text, since YAML's own types would change what an author wrote; lines are those
    that an editor shows; inner empty lines and level-two headings are text of their part.
    """
    document, errors = read(path, WHOLE)
    assert document is not None
    assert errors == []
    assert document.front == {"id": "P1-B1-S1", "answer": "no", "version": "1.10", "tags": ["TASK", "ASSISTANCE"]}
    assert document.front_lines == {"id": 2, "answer": 5, "version": 6, "tags": 7}
    assert [(p.name, p.line, p.attributes, p.text) for p in document.parts] == [
        ("Scenario", 10, {}, "First line.\n\n## not a part, but text\nLast line."),
        ("PT1", 16, {"severity": "7", "register": "slang"}, "no (brackets are text here), or #hash inside a line"),
        ("PT2", 18, {"severity": "-3"}, ""),
    ]
    assert [document.words(key) for key in ("id", "tags", "absent")] == [["P1-B1-S1"], ["TASK", "ASSISTANCE"], []]


def test_a_slip_is_one_error_at_its_line(path: Path) -> None:
    """Each slip is reported once; a heading or a text that can't be placed is never dropped in silence."""
    for front, expected in FRONT.values():
        assert read(path, f"---\n{front}\n---\n# Text\nbody\n")[1] == [expected]
    for heading, expected in HEADINGS.values():
        assert read(path, f"---\nid: a\n---\n# Text\nbody\n\n{heading}\nbody\n")[1] == [f"7: {expected}"]
    for text in ("lost words\n# Text\nbody\n", "lost words\n"):
        assert read(path, f"---\nid: a\n---\n{text}")[1] == [
            "4: text before the first heading; expected a level-one heading such as '# Scenario'"
        ]
    for text in ("", "# Text\nbody\n", "---\nid: a\n# Text\nbody\n", "\n---\nid: a\n---\n"):
        assert read(path, text) == (
            None,
            ["1: has no front matter; expected '---', flat 'key: value' lines, '---' at the top"],
        )
