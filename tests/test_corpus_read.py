"""Mapping files and sources: every form is read, and every slip names its file and line."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dataset_builder.corpora.read import documents, load_recipe, open_source
from dataset_builder.corpora.schema import CorpusError, Document, Source

MAPPING = """\
name: demo
date: 2026-11-01
sources:
  - name: forum
    path: posts.jsonl
    fields: {text: body}
limits:
  languages: [no, en]
"""


def read(folder: Path, **source: Any) -> list[Document]:
    opened = open_source(Source.model_validate({"name": "made", **source}), folder)
    return list(documents(opened, folder))


def jsonl(path: Path, rows: Sequence[object]) -> None:
    path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows), encoding="utf-8")


def turns(document: Document) -> list[tuple[str, str]]:
    return [(t.role, t.text) for t in document.turns]


def test_a_mapping_file_is_read_as_text(tmp_path: Path) -> None:
    """Norwegian stays `no` and a date stays what was written."""
    (tmp_path / "m.yaml").write_text(MAPPING, encoding="utf-8")
    recipe = load_recipe(tmp_path / "m.yaml").recipe
    assert (recipe.limits.languages, recipe.date, recipe.limits.max_messages) == (["no", "en"], "2026-11-01", 40)


def test_the_documents_mapping_file_is_one(tmp_path: Path) -> None:
    """What docs/own-data.md shows can be copied: both sources, the limits and the samples are read."""
    page = (Path(__file__).resolve().parents[1] / "docs" / "own-data.md").read_text(encoding="utf-8")
    (tmp_path / "m.yaml").write_text(page.split("```yaml\n")[1].split("```")[0], encoding="utf-8")
    recipe = load_recipe(tmp_path / "m.yaml").recipe
    assert [(s.name, bool(s.path), bool(s.hub)) for s in recipe.sources] == [
        ("forum", True, False),
        ("chats", False, True),
    ]
    assert recipe.samples is not None
    assert (recipe.samples.validation, recipe.samples.test, recipe.samples.allocation) == (206, 2046, "equal")


def test_half_a_surrogate_pair_is_left_out(tmp_path: Path) -> None:
    """JSON may escape one; no file could hold it."""
    (tmp_path / "a.jsonl").write_text('{"t": ["so\\ud800 good"], "k": "\\udfff"}\n', encoding="utf-8")
    (document,) = read(tmp_path, path="a.jsonl", fields={"turns": "t", "keep": "k"})
    assert (turns(document), document.kept) == ([("user", "so good")], (("k", None),))


def test_messages_with_all_fields(tmp_path: Path) -> None:
    """Id, language, licence and kept fields are taken from the row; numbers become text; the source's licence fills a
    gap.
    """
    rows = [
        {"n": 7, "body": "one", "lang": "en", "lic": "mit", "topic": "tea"},
        {"n": None, "body": "two", "lang": None, "lic": None, "topic": 3},
    ]
    jsonl(tmp_path / "a.jsonl", rows)
    fields = {"text": "body", "id": "n", "language": "lang", "licence": "lic", "keep": "topic"}
    first, second = read(tmp_path, path="a.jsonl", licence="cc0-1.0", fields=fields)
    assert first == Document("made", 1, (("user", "one"),), "7", "en", "mit", (("topic", "tea"),))  # type: ignore[arg-type]
    assert second == Document("made", 2, (("user", "two"),), None, None, "cc0-1.0", (("topic", "3"),))  # type: ignore[arg-type]


def test_conversations_in_three_forms(tmp_path: Path) -> None:
    """A list of roles and contents, a list of texts in turn, and rows that follow each other give the same turns."""
    said = [("user", "hello"), ("assistant", "good day"), ("user", "how are you")]
    jsonl(
        tmp_path / "roles.jsonl",
        [{"t": [{"from": {"user": "human", "assistant": "GPT"}[r], "value": c} for r, c in said]}],
    )
    jsonl(tmp_path / "texts.jsonl", [{"t": [c for _, c in said]}])
    (tmp_path / "rows.csv").write_text(
        "talk,who,what\n1,seeker,hello\n1,helper,good day\n1,seeker,how are you\n2,seeker,bye\n", encoding="utf-8"
    )
    assert (
        turns(read(tmp_path, path="roles.jsonl", fields={"turns": "t", "role": "from", "content": "value"})[0]) == said
    )
    assert turns(read(tmp_path, path="texts.jsonl", fields={"turns": "t"})[0]) == said
    roles = {"user": "seeker", "assistant": ["helper"]}
    talks = read(tmp_path, path="rows.csv", roles=roles, fields={"conversation": "talk", "role": "who", "text": "what"})
    assert [(d.line, turns(d)) for d in talks] == [(2, said), (5, [("user", "bye")])]


def test_csv_cells_over_several_lines_and_json_in_a_cell(tmp_path: Path) -> None:
    """A quoted newline is part of the text, and the next row's line number is still right; a byte-order mark is no
    column.
    """
    text = '\ufefftext,turns\n"two\nlines",\n"","[""a"", ""b""]"\n'
    with gzip.open(tmp_path / "a.csv.gz", "wt", encoding="utf-8", newline="") as handle:
        handle.write(text)
    assert [(d.line, turns(d)) for d in read(tmp_path, path="a.csv.gz", fields={"text": "text"})] == [
        (2, [("user", "two\nlines")]),
        (4, []),
    ]
    assert turns(read(tmp_path, path="a.csv.gz", fields={"turns": "turns"})[1]) == [("user", "a"), ("assistant", "b")]


BODY, TURNS = {"text": "body"}, {"turns": "t"}
BAD_ROWS = (
    ("a.jsonl", b'{"body": "a"}\n{"body": \n', BODY, "a.jsonl:2: is not JSON: "),
    ("a.jsonl", b'{"body": "a"}\n\n[1]\n', BODY, "a.jsonl:3: is a list; expected an object"),
    ("a.jsonl", b'{"body": "a"}\n{"body": "\xff"}\n', BODY, "a.jsonl:2: is not UTF-8 (invalid start byte"),
    (
        "a.jsonl",
        b'{"bdy": "a"}\n',
        BODY,
        "a.jsonl:1: the first row has no field 'body', which the mapping file names; did",
    ),
    ("a.jsonl", b'{"body": {"x": 1}}\n', BODY, "a.jsonl:1: field 'body' is \"{'x': 1}\"; expected text"),
    (
        "a.jsonl",
        b'{"t": [{"role": "cook", "content": "a"}]}\n',
        TURNS,
        "a.jsonl:1: role is 'cook'; expected one of ['ass",
    ),
    ("a.jsonl", b'{"t": [3]}\n', TURNS, "a.jsonl:1: turn 1 of 't' is '3'; expected {role, content} or a text"),
    ("a.jsonl", b'{"t": "a"}\n', TURNS, "a.jsonl:1: field 't' is text but not JSON; expected a list"),
    (
        "a.jsonl",
        b'{"t": 1, "l": "English"}\n',
        {"text": "t", "language": "l"},
        "a.jsonl:1: language is 'English'; expected",
    ),
    ("a.csv", b"body,n\na,1\nb\n", BODY, "a.csv:3: has more or fewer cells than the 2 columns"),
    ("a.csv", b'body\n"a"b\n', BODY, "a.csv:2: is not CSV: "),
    (
        "a.csv",
        b"c,role,t\n,user,a\n",
        {"conversation": "c", "text": "t"},
        "a.csv:2: field 'c' is empty; expected the conv",
    ),
    (
        "a.csv",
        b"c,role,t\n1,user,a\n2,user,b\n1,user,c\n",
        {"conversation": "c", "text": "t"},
        "a.csv:4: conversation '1' began on line 2 and another one followed",
    ),
    ("a.jsonl.gz", gzip.compress(b'{"body": "a"}\n' * 9000)[:-20], BODY, "a.jsonl.gz:"),
    ("a.jsonl.gz", b"plain", BODY, "a.jsonl.gz:1: can't be read on: Not a gzipped file"),
)


def test_a_bad_row_names_its_line(tmp_path: Path) -> None:
    """Reading stops there: a row that is skipped silently would be a hole in the corpus."""
    wrong = []
    for name, content, fields, error in BAD_ROWS:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(CorpusError) as caught:
            read(tmp_path, path=name, fields=fields)
        if not str(caught.value).removeprefix(f"{tmp_path}/").startswith(error):
            wrong.append((error, str(caught.value)))
    assert wrong == []


def test_a_source_that_is_not_there_or_no_table(tmp_path: Path) -> None:
    """Named with what can be read instead."""
    with pytest.raises(CorpusError, match=r"none.jsonl:1: source 'made' can't be read \(No such file"):
        read(tmp_path, path="none.jsonl", fields={"text": "t"})
    with pytest.raises(
        CorpusError, match=r"a.xlsx:1: source 'made' has an unsupported file type; expected .jsonl or .csv"
    ):
        read(tmp_path, path="a.xlsx", fields={"text": "t"})


def test_a_dataset_is_read_through_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder is loaded as one of the Hub is, streamed, with its card's licence unless the mapping file states one,
    and the conversations as they stand.
    """
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    (tmp_path / "org").mkdir()
    jsonl(
        tmp_path / "org" / "train.jsonl",
        [
            {"talk": [{"role": "user", "content": "hello"}], "n": 1},
            {"talk": [{"role": "user", "content": "bye"}], "n": 2},
        ],
    )
    (tmp_path / "org" / "README.md").write_text("---\nlicense: cc-by-nc-4.0\n---\n# Talks\n", encoding="utf-8")
    source = Source.model_validate({"name": "hub", "hub": "org", "fields": {"turns": "talk", "id": "n"}})
    opened = open_source(source, tmp_path)
    assert (opened.place, opened.source.licence) == ("org", "cc-by-nc-4.0")
    assert open_source(source.model_copy(update={"licence": "mit"}), tmp_path).source.licence == "mit"
    assert [(d.line, d.source_id, turns(d)) for d in documents(opened, tmp_path)] == [
        (1, "1", [("user", "hello")]),
        (2, "2", [("user", "bye")]),
    ]


def test_a_dataset_or_split_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that names the source; the library's traceback helps nobody."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    (tmp_path / "org").mkdir()
    jsonl(tmp_path / "org" / "train.jsonl", [{"t": "hello"}])
    with pytest.raises(CorpusError, match=r"^org:1: source 'made' can't be loaded: .*test"):
        read(tmp_path, hub="org", split="test", fields={"text": "t"})
