"""Mapping files and sources: every form is read, and every mistake names its file and line."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dataset_builder.corpora.read import documents, load_recipe, open_source, select
from dataset_builder.corpora.schema import CorpusError, Document, Source
from helmbench_common.formats.plain_file import LONGEST

MAPPING = "name: demo\ndate: 2026-11-01\nsources:\n  - {name: forum, path: posts.jsonl, fields: {text: body}}\n"
DEEP = 200_000
BODY, TURNS, TALK = {"text": "body"}, {"turns": "t"}, {"conversation": "c", "text": "t"}


def read(folder: Path, **source: Any) -> list[Document]:
    opened = open_source(Source.model_validate({"name": "made", **source}), folder)
    return list(documents(opened, folder))


def jsonl(path: Path, rows: Sequence[object]) -> None:
    path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows), encoding="utf-8")


def turns(document: Document) -> list[tuple[str, str]]:
    return [(t.role, t.text) for t in document.turns]


def row(**fields: object) -> bytes:
    return json.dumps(fields).encode() + b"\n"


def sparse(path: Path) -> None:
    """A quarter of a gigabyte without a line end, which takes no room on the disk."""
    with path.open("wb") as file:
        file.truncate(2**28)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def folder(path: Path) -> None:
    path.mkdir()


GOOD = row(body="Good morning")
QUOTE = "a cell that begins in this row may lack its end quote"
# The file, its bytes or what makes it, the mapping's fields, and how the error goes on after the file's name.
BROKEN: tuple[tuple[str, bytes | Callable[[Path], None], dict[str, str], str], ...] = (
    ("a.jsonl", pipe, BODY, ":1: source 'made' is not a regular file; expected messages"),
    ("a.csv.gz", endless, BODY, ":1: source 'made' is not a regular file; expected messages"),
    ("a.csv", folder, BODY, ":1: source 'made' is a folder; expected messages"),
    ("a.xlsx", b"", BODY, ":1: source 'made' has an unsupported file type; expected .jsonl or .csv"),
    ("a.jsonl", sparse, BODY, f":1: is longer than {LONGEST:,} bytes; expected messages"),
    ("a.jsonl.gz", gzip.compress(row(body="x" * 2**20) * 100), BODY, ": expands to more than"),
    ("a.jsonl.gz", gzip.compress(GOOD)[:-4], BODY, ":2: can't be read on: Compressed file ended before"),
    ("a.jsonl.gz", gzip.compress(GOOD) + b"rubbish", BODY, ":2: can't be read on: Not a gzipped file"),
    ("a.jsonl", b'{"body": ' + b"[" * DEEP + b"]" * DEEP + b"}", BODY, ":1: is nested more than 100 deep"),
    ("a.jsonl", GOOD + b'{"body": ' + b"9" * 9000 + b"}", BODY, ":2: contains a whole number of 9,000 digits"),
    ("a.jsonl", GOOD + b'{"body": \n', BODY, ":2: is not JSON: "),
    ("a.jsonl", GOOD + b"\n[1]\n", BODY, ":3: is a list; expected an object"),
    ("a.jsonl", GOOD + b'{"body": "\xff"}\n', BODY, ":2: is not UTF-8 (invalid start byte"),
    ("a.jsonl", row(bdy="a"), BODY, ":1: the row has no field 'body', which the mapping file names"),
    ("a.jsonl", row(body={"a": [[["deep"]]], "\x1b[2J": "x" * 10_000}), BODY, ":1: field 'body' is "),
    ("a.jsonl", row(t=[{"role": "\x1b[2J" + "x" * 10_000, "content": "a"}]), TURNS, ":1: role is '[U+001B][2Jxxx"),
    ("a.jsonl", row(t=[3]), TURNS, ":1: turn 1 of 't' is '3'; expected {role, content} or a text"),
    ("a.jsonl", row(t="a"), TURNS, ":1: field 't' is text but not JSON; expected a list"),
    ("a.jsonl", row(body="a", g="en-" + "x" * 9000), BODY | {"language": "g"}, ":1: language is 'en-xxx"),
    ("a.jsonl", row(body="a", l="mit\x1b[2J"), BODY | {"licence": "l"}, ":1: licence is 'mit[U+001B][2J'; expected"),
    ("a.csv", b"body,n\na,1\nb\n", BODY, ":3: has more or fewer cells than the 2 columns"),
    ("a.csv", b'body\n"one"\n"two, and on\n' + b"more\n" * 9, BODY, f":3: is not CSV: unexpected end of data: {QUOTE}"),
    ("a.csv", b'body\n"' + b"more\n" * (LONGEST // 5 + 9), BODY, f":2: a row is longer than {LONGEST:,} char"),
    ("a.csv", b"body,body\na,b\n", BODY, ":1: column 'body' appears twice; expected once"),
    ("a.csv", b'turns\n"' + b"[" * DEEP + b'"\n', {"turns": "turns"}, ":2: field 'turns' is nested more than 100 deep"),
    ("a.csv", b",".join(b"c%d" % n for n in range(5000)) + b"\n" + b"," * 4999 + b"\n", BODY, ":2: the row has no"),
    ("a.csv", b"c,role,t\n,user,a\n", TALK, ":2: field 'c' is empty; expected the conversation's id"),
    ("a.csv", b"c,role,t\n1,user,a\n2,user,b\n1,user,c\n", TALK, ":4: conversation '1' began on line 2 and another"),
)  # fmt: skip


def test_a_broken_source_names_its_line(tmp_path: Path) -> None:
    """Whatever a file is or contains, the error is one short line that a terminal may show, and reading stops."""
    wrong = []
    for n, (name, content, fields, error) in enumerate(BROKEN):
        path = tmp_path / str(n) / name
        path.parent.mkdir()
        _ = path.write_bytes(content) if isinstance(content, bytes) else content(path)
        with pytest.raises(CorpusError) as caught:
            read(path.parent, path=name, fields=fields)
        said = str(caught.value).removeprefix(str(path))
        if not (said.startswith(error) or (error.startswith(": ") and error[2:] in said)):
            wrong.append((error, said[:300]))
        assert said.isprintable()
        assert len(said) < (9000 if "the row has no" in error else 600)
    assert wrong == []
    with pytest.raises(CorpusError, match=r"none.jsonl:1: source 'made' can't be read \(No such file"):
        read(tmp_path, path="none.jsonl", fields=BODY)


def test_a_query_reads_its_folder_and_nothing_else(tmp_path: Path) -> None:
    """No other file, no link out, no network, no writing; and an error doesn't quote a value."""
    own = tmp_path / "own"
    own.mkdir()
    (tmp_path / "secret.csv").write_text("a\nsecret\n", encoding="utf-8")
    (own / "link.csv").symlink_to(tmp_path / "secret.csv")
    (own / "a.csv").write_text("a\nsecret 'words'\n", encoding="utf-8")
    assert [*select("SELECT a FROM 'a.csv'", "q", own)] == [(1, {"a": "secret 'words'"})]
    for query, told in (
        (f"FROM '{tmp_path}/secret.csv'", "a query reads the folder's own files"),
        ("FROM '../secret.csv'", "a query reads the folder's own files"),
        ("FROM 'link.csv'", "no link out of it"),
        ("FROM glob('/etc/*')", "a query reads the folder's own files"),
        ("FROM read_csv('http://127.0.0.1:9/a.csv')", "a query reads the folder's own files"),
        ("COPY (SELECT 1) TO 'out.csv'", "expected one SELECT"),
        ("SET enable_external_access = true", "expected one SELECT"),
        ("SELECT 1; SELECT 2", "expected one SELECT"),
        ("SELECT trim(a)::INT FROM 'a.csv'", "Could not convert string '…'"),
        ("SELECT b FROM 'a.csv'", 'Candidate bindings: "a"'),
    ):
        with pytest.raises(CorpusError, match=re.escape(told)) as caught:
            [*select(query, "q", own)]
        assert str(caught.value).startswith("query 'q': ")
        assert "words" not in str(caught.value)
    assert sorted(p.name for p in own.iterdir()) == ["a.csv", "link.csv"]


def test_the_documents_mapping_file_is_one(tmp_path: Path) -> None:
    """What docs/own-data.md shows can be copied; scalars are read as text, so Norwegian stays `no`."""
    page = (Path(__file__).resolve().parents[1] / "docs" / "own-data.md").read_text(encoding="utf-8")
    (tmp_path / "m.yaml").write_text(page.split("```yaml\n")[1].split("```")[0], encoding="utf-8")
    recipe = load_recipe(tmp_path / "m.yaml").recipe
    assert [(s.name, s.path is None, s.hub is None) for s in recipe.sources] == [
        ("forum", False, True),
        ("chats", True, False),
    ]
    assert recipe.samples is not None
    assert (recipe.samples.validation, recipe.samples.test, recipe.samples.allocation) == (206, 2046, "equal")
    (tmp_path / "m.yaml").write_text(f"{MAPPING}limits: {{languages: [no, en]}}\n", encoding="utf-8")
    recipe = load_recipe(tmp_path / "m.yaml").recipe
    assert (recipe.limits.languages, recipe.date, recipe.limits.max_messages) == (["no", "en"], "2026-11-01", 40)


def test_a_broken_mapping_file_names_its_line(tmp_path: Path) -> None:
    """All errors at once, each with its line; nothing that is an alias, too deep or too large is read."""
    path, field, wrong = tmp_path / "m.yaml", "{text: body}", []
    for old, new, error in (
        ("name: demo", "name: &a [*a]", "1: '&a' is an anchor or alias; expected the value itself"),
        ("name: demo", "name: demo\nname: other", "2: 'name' appears twice; expected each key once"),
        ("name: demo", "name: " + "[" * 5000, "1: is nested more than 32 deep; expected a mapping file"),
        ("name: demo", "name: demo\nlimits: {min_letters: " + "9" * 4000 + "}", "2: 'limits.min_letters': "),
        ("name: demo", "name: demo\nlimits: {max_messages: many}", "2: 'limits.max_messages': Input should be a valid"),
        (
            "name: demo",
            "name: demo\nsamples: {validation: 1, test: 1, seed: 1, by: [topic]}",
            "1: 'file': samples.by names ['topic']; expected source",
        ),
        ("name: demo", "name: demo\n\x1b: x", "2: contains the character '\\x1b', which no YAML may"),
        ("name: demo", '"na\\u001bme": demo', "1: 'na[U+001B]me': unknown key; see docs/own-data.md for the keys"),
        ("name: demo", "name: !!python/object/apply:os.system [true]", "1: 'tag:yaml.org,2002:python/object/apply"),
        (MAPPING, "", "1: is empty; expected a mapping file"),
        (MAPPING, "- a\n", "1: is a list (- …); expected a mapping (key: value): a mapping file with name, date and"),
        ("date: 2026-11-01", "date: today", "2: 'date': String should match"),
        (field, "{txt: body}", "4: 'sources.0.fields.txt': unknown key"),
        (
            field,
            "{text: body, keep: [id]}",
            "4: 'sources.0.fields': `keep` names ['id'], which every row of a corpus has",
        ),
        (
            "path: posts.jsonl, ",
            "",
            "4: 'sources.0': expected one of `path` (a file), `query` (SQL",
        ),
    ):
        assert old in MAPPING
        path.write_text(MAPPING.replace(old, new), encoding="utf-8")
        with pytest.raises(CorpusError) as caught:
            load_recipe(path)
        if not all(map(str.isprintable, caught.value.lines)) or not any(
            line.startswith(f"{path}:{error}") for line in caught.value.lines
        ):
            wrong.append((error, str(caught.value)))
    assert wrong == []


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


def test_what_looks_broken_and_is_read(tmp_path: Path) -> None:
    """The last of two values of a name counts, as everywhere in JSON; an unused column may appear twice; zeros after a
    gzip are padding; the last line needs no end; half a surrogate pair, which no file can hold, is left out.
    """
    (tmp_path / "a.jsonl").write_bytes(b'{"body": "one", "body": "so\\ud800 good"}')
    (tmp_path / "a.csv").write_bytes(b"body,x,x\none\x00,2,3")
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(GOOD) + gzip.compress(GOOD) + bytes(512))
    assert [d.said for d in read(tmp_path, path="a.jsonl", fields=BODY)] == ["so good"]
    assert [d.said for d in read(tmp_path, path="a.csv", fields=BODY)] == ["one\x00"]
    assert [d.line for d in read(tmp_path, path="b.jsonl.gz", fields=BODY)] == [1, 2]


def test_a_dataset_is_read_through_datasets(tmp_path: Path) -> None:
    """A folder is streamed as a dataset of the Hub is, with its card's license unless the mapping file states one."""
    (tmp_path / "org").mkdir()
    talks = [{"talk": [{"role": "user", "content": text}], "n": n} for n, text in enumerate(("hello", "bye"), 1)]
    jsonl(tmp_path / "org" / "train.jsonl", talks)
    (tmp_path / "org" / "README.md").write_text("---\nlicense: cc-by-nc-4.0\n---\n# Talks\n", encoding="utf-8")
    source = Source.model_validate({"name": "hub", "hub": "org", "fields": {"turns": "talk", "id": "n"}})
    opened = open_source(source, tmp_path)
    assert (opened.place, opened.source.licence) == ("org", "cc-by-nc-4.0")
    assert open_source(source.model_copy(update={"licence": "mit"}), tmp_path).source.licence == "mit"
    assert [(d.line, d.source_id, turns(d)) for d in documents(opened, tmp_path)] == [
        (1, "1", [("user", "hello")]),
        (2, "2", [("user", "bye")]),
    ]
    with pytest.raises(CorpusError, match=r"^org:1: source 'hub' can't be loaded: .*test"):
        open_source(source.model_copy(update={"split": "test"}), tmp_path)
    (tmp_path / "org" / "data").mkdir()
    pipe(tmp_path / "org" / "data" / "train.jsonl")  # `datasets` would wait for it
    with pytest.raises(CorpusError, match=r"train\.jsonl:1: source 'hub' holds a pipe or a device; expected files"):
        open_source(source, tmp_path)
