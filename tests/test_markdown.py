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


@pytest.fixture
def whole(path: Path) -> Document:
    document, errors = read(path, WHOLE)
    assert document is not None
    assert errors == []
    return document


def test_front_matter_is_text_and_lists_of_text(whole: Document) -> None:
    """`no` stays text and 1.10 keeps its zero: YAML's own types would change what an author wrote."""
    assert whole.front == {"id": "P1-B1-S1", "answer": "no", "version": "1.10", "tags": ["TASK", "ASSISTANCE"]}


def test_front_matter_lines_count_from_the_top_of_the_file(whole: Document) -> None:
    """A remark or an empty line in the front matter doesn't shift the keys below it."""
    assert whole.front_lines == {"id": 2, "answer": 5, "version": 6, "tags": 7}


def test_parts_carry_the_line_of_their_heading(whole: Document) -> None:
    """Line numbers are those that an editor shows."""
    assert [(p.name, p.line) for p in whole.parts] == [("Scenario", 10), ("PT1", 16), ("PT2", 18)]


def test_text_of_a_part_is_what_stands_between_headings(whole: Document) -> None:
    """Inner empty lines and level-two headings are text; empty lines around it are not."""
    assert [p.text for p in whole.parts] == [
        "First line.\n\n## not a part, but text\nLast line.",
        "no (brackets are text here), or #hash inside a line",
        "",
    ]


def test_attributes_are_read_with_and_without_a_colon(whole: Document) -> None:
    """`severity 7` and `register: slang` are both attributes."""
    assert [p.attributes for p in whole.parts] == [{}, {"severity": "7", "register": "slang"}, {"severity": "-3"}]


def test_a_single_word_is_a_list_of_one(whole: Document) -> None:
    """`graded: x` and `graded: [x]` mean the same; a missing key is no word at all."""
    assert (whole.words("id"), whole.words("tags"), whole.words("absent")) == (["P1-B1-S1"], ["TASK", "ASSISTANCE"], [])


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
    "empty key": ("id: a\ntitle:", "3: key 'title' is empty or nested; expected a word, a short text, or [a, list]"),
    "empty list": ("id: a\ntags: []", "3: key 'tags' is empty or nested; expected a word, a short text, or [a, list]"),
    "nested key": ("id: a\ntitle: {deep: b}",
        "3: key 'title' is empty or nested; expected a word, a short text, or [a, list]"),
    "nested list": ("id: a\ntags: [[TASK], b]",
        "3: key 'tags' is empty or nested; expected a word, a short text, or [a, list]"),
    "indented key": ("id: a\ntitle: b\n  deep: c: d",
        "4: cannot read '  deep: c: d' as one flat 'key: value'; prose belongs under a heading"),
    "prose": ("id: a\nI feel empty",
        "3: cannot read 'I feel empty' as one flat 'key: value'; prose belongs under a heading"),
    "colon in a value": ("text: I feel: empty",
        "2: cannot read 'text: I feel: empty' as one flat 'key: value'; prose belongs under a heading"),
    "list item": ("tags:  [a]\n- b", "3: cannot read '- b' as one flat 'key: value'; prose belongs under a heading"),
}  # fmt: skip


@pytest.mark.parametrize("name", FRONT)
def test_bad_front_matter_is_one_error_at_its_line(path: Path, name: str) -> None:
    """Each slip in the front matter is reported once, at the line of the slip."""
    front, expected = FRONT[name]
    assert read(path, f"---\n{front}\n---\n# Text\nbody\n")[1] == [expected]


HEADINGS = {
    "no name": ("# (severity 3)",
        "cannot read the heading '# (severity 3)'; expected '# Name (key value; key: value)'"),
    "unclosed": ("# PT1 (severity 3",
        "cannot read the heading '# PT1 (severity 3'; expected '# Name (key value; key: value)'"),
    "text after": ("# PT1 (severity 3) x",
        "cannot read the heading '# PT1 (severity 3) x'; expected '# Name (key value; key: value)'"),
    "no space": ("#PT1", "cannot read the heading '#PT1'; expected '# Name (key value; key: value)'"),
    "attribute twice": ("# PT1 (severity 3; severity: 4)", "'severity' appears twice in the heading; expected once"),
    "attribute without value": ("# PT1 (severity)",
        "cannot read 'severity' in the heading; expected 'name value' or 'name: value', separated by ';'"),
    "capital attribute": ("# PT1 (Severity 3)",
        "cannot read 'Severity 3' in the heading; expected 'name value' or 'name: value', separated by ';'"),
}  # fmt: skip


@pytest.mark.parametrize("name", HEADINGS)
def test_bad_heading_is_one_error_at_its_line(path: Path, name: str) -> None:
    """A heading that can't be read is never taken for text: it is an error."""
    heading, expected = HEADINGS[name]
    assert read(path, f"---\nid: a\n---\n# Text\nbody\n\n{heading}\nbody\n")[1] == [f"7: {expected}"]


def test_text_before_the_first_heading_is_an_error(path: Path) -> None:
    """Text that belongs to no part would otherwise be dropped in silence."""
    assert read(path, "---\nid: a\n---\n\nlost words\nmore\n# Text\nbody\n")[1] == [
        "5: text before the first heading; expected a level-one heading such as '# Scenario'"
    ]


def test_a_file_of_text_without_any_heading_is_an_error(path: Path) -> None:
    """The same holds where no heading follows at all."""
    assert read(path, "---\nid: a\n---\nlost words\n")[1] == [
        "4: text before the first heading; expected a level-one heading such as '# Scenario'"
    ]


def test_a_file_of_front_matter_alone_has_no_parts(path: Path) -> None:
    """A file that is only begun is read as far as it goes; what it lacks is for the next stage to say."""
    document, errors = read(path, "---\nid: a\n---\n")
    assert document is not None
    assert (document.front, document.parts, errors) == ({"id": "a"}, [], [])


@pytest.mark.parametrize(
    "text",
    ["", "# Text\nbody\n", "---\nid: a\n# Text\nbody\n", "\n---\nid: a\n---\n"],
    ids=["empty", "none", "unclosed", "not on top"],
)
def test_a_file_without_front_matter_is_not_read(path: Path, text: str) -> None:
    """Without a closed front matter at the top there is no document, and the author is told the shape."""
    document, errors = read(path, text)
    assert document is None
    assert errors == ["1: has no front matter; expected '---', flat 'key: value' lines, '---' at the top"]


def test_a_file_that_is_not_utf8_is_not_read(path: Path) -> None:
    """Latin-1 would turn an é into another character in a prompt; the byte is named."""
    path.write_bytes(b"---\nid: caf\xe9\n---\n")
    errors = Errors()
    assert read_document(path, errors) is None
    assert errors.lines() == [f"{path}:2: is not UTF-8 (invalid continuation byte at byte 11); save the file as UTF-8"]


def test_all_slips_of_a_file_come_in_line_order(path: Path) -> None:
    """Reading goes on after an error, so that one run shows them all."""
    _, errors = read(path, "---\nid: a\nid: b\nprose\n---\n# T (x)\nbody\n#\n# U (a 1; a 2)\n")
    assert [line.split(":")[0] for line in errors] == ["3", "4", "6", "8", "9"]


def test_errors_sort_lines_as_numbers() -> None:
    """Line 9 stands before line 10."""
    errors = Errors()
    for line in (10, 9, 100):
        errors.add("a.md", line, "slip")
    assert errors.lines() == ["a.md:9: slip", "a.md:10: slip", "a.md:100: slip"]


def test_closest_suggests_only_a_near_word() -> None:
    """A far word gets the list of what is allowed, without a misleading guess."""
    assert closest("titel", ["title", "id"]) == "did you mean 'title'? expected one of id, title"
    assert closest("zzz", ["title", "id"]) == "expected one of id, title"
