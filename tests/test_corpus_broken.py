"""Corpora, their mapping files, and published labels that are broken on purpose: one line that says where and what."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dataset_builder.corpora.build import build
from dataset_builder.corpora.clean import ROOM, batches
from dataset_builder.corpora.folder import open_corpus
from dataset_builder.corpora.mask import mask
from dataset_builder.corpora.normalize import JOINER, MARKS, fold, normalize, stream_safe
from dataset_builder.corpora.read import documents, load_recipe, open_source
from dataset_builder.corpora.schema import CorpusError, Document, Source, Turn
from dataset_builder.corpora.write import is_corpus
from helmbench_common.formats.text_lines import LONGEST
from helmbench_common.hashing import file_digest

MAPPING = "name: demo\ndate: 2026-11-01\nsources:\n  - {name: forum, path: posts.jsonl, fields: {text: body}}\n"
DEEP = 200_000


def read(folder: Path, path: str, **fields: Any) -> list[Document]:
    source = Source.model_validate({"name": "made", "path": path, "fields": fields})
    return list(documents(open_source(source, folder), folder))


def sparse(path: Path) -> None:
    """A quarter of a gigabyte without an end of a line, which takes no room on the disk."""
    with path.open("wb") as file:
        file.truncate(2**28)


def long(path: Path) -> None:
    """As much as a line may have, and a byte."""
    with path.open("wb") as file:
        file.truncate(LONGEST + 1)


def bomb(path: Path) -> None:
    """A hundred kilobytes that would be a hundred megabytes."""
    path.write_bytes(gzip.compress(row(body="x" * 2**20) * 100))


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def folder(path: Path) -> None:
    path.mkdir()


def holds(content: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(content)

    return write


def row(**fields: object) -> bytes:
    return json.dumps(fields).encode() + b"\n"


GOOD = row(body="Good morning")
SOURCES: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "pipe": ("a.jsonl", pipe, ":1: source 'made' is a pipe; expected messages"),
    "device": ("a.jsonl", endless, ":1: source 'made' is a device; expected messages"),
    "device-csv": ("a.csv.gz", endless, ":1: source 'made' is a device; expected messages"),
    "folder": ("a.csv", folder, ":1: source 'made' is a folder; expected messages"),
    "long-line": ("a.jsonl", sparse, f":1: is longer than {LONGEST:,} bytes; expected messages"),
    "long-line-csv": ("a.csv", long, f":1: is longer than {LONGEST:,} bytes; expected messages"),
    "long-line-gz": (
        "a.jsonl.gz",
        holds(gzip.compress(GOOD + b" " * (LONGEST + 1))),
        f":2: is longer than {LONGEST:,} bytes",
    ),
    "bomb": ("a.jsonl.gz", bomb, "expands to more than"),
    "gz-cut": ("a.jsonl.gz", holds(gzip.compress(GOOD)[:-4]), ":2: can't be read on: Compressed file ended before"),
    "gz-rubbish": ("a.jsonl.gz", holds(gzip.compress(GOOD) + b"rubbish"), ":2: can't be read on: Not a gzipped file"),
    "gz-checksum": (
        "a.jsonl.gz",
        holds(gzip.compress(GOOD)[:-8] + bytes(8)),
        ":2: can't be read on: CRC check failed",
    ),
    "gz-empty": ("a.jsonl.gz", holds(b"\x1f\x8b"), ":1: can't be read on: "),
    "deep": ("a.jsonl", holds(b'{"body": ' + b"[" * DEEP + b"]" * DEEP + b"}"), ":1: is nested more than 100 deep"),
    "deep-objects": ("a.jsonl", holds(b'{"body":' * DEEP), ":1: is nested more than 100 deep"),
    "digits": (
        "a.jsonl",
        holds(GOOD + b'{"body": ' + b"9" * 9000 + b"}"),
        ":2: contains a whole number of 9,000 digits",
    ),
    "utf-16": ("a.jsonl", holds(GOOD.decode().encode("utf-16")), ":1: is not UTF-8 (invalid start byte at byte 0"),
    "surrogate-bytes": ("a.jsonl", holds(b'{"body": "\xed\xa0\x80"}'), ":1: is not UTF-8"),
    "zero-bytes": ("a.jsonl", holds(bytes(100)), ":1: is not JSON"),
    "nested-text": (
        "a.jsonl",
        holds(row(body={"a": [[[[[[[["deep"]]]]]]]], "\x1b[2J": "x" * 10_000})),
        ":1: field 'body' is ",
    ),
    "role": (
        "a.jsonl",
        holds(row(turns=[{"role": "\x1b[2J" + "x" * 10_000, "content": "a"}])),
        ":1: role is '[U+001B][2Jxxx",
    ),
    "csv-quote": (
        "a.csv",
        holds(b'body\n"one"\n"two, and on\n' + b"more\n" * 9),
        ":3: is not CSV: unexpected end of data: a cell that begins in this row may lack its end quote",
    ),
    "csv-endless-cell": (
        "a.csv",
        holds(b'body\n"' + b"more\n" * (LONGEST // 5 + 9)),
        f":2: a row is longer than {LONGEST:,} characters; a cell that begins in this row may lack its end quote",
    ),
    "csv-columns": ("a.csv", holds(b"body" + b"," * 20_000 + b"\na\n"), ":1: has 20,001 cells; expected at most"),
    "csv-twice": ("a.csv", holds(b"body,body\na,b\n"), ":1: column 'body' appears twice; expected once"),
    "csv-deep": (
        "a.csv",
        holds(b'turns\n"' + b"[" * DEEP + b'"\n'),
        ":2: field 'turns' is nested more than 100 deep; expected a list of {role, content} or of texts",
    ),
    "csv-digits": (
        "a.csv",
        holds(b"turns\n" + b"9" * 9000 + b"\n"),
        ":2: field 'turns' contains a whole number of 9,000",
    ),
    "csv-missing": (
        "a.csv",
        holds(b",".join(b"column %d" % n for n in range(5000)) + b"\n" + b"," * 4999 + b"\n"),
        ":2: the first row has no field '",
    ),
    "licence": ("a.jsonl", holds(row(body="a", l="mit\x1b[2J")), ":1: licence is 'mit[U+001B][2J'; expected its name"),
    "licence-long": ("a.jsonl", holds(row(body="a", l="x" * 9000)), ":1: licence is 'xxxx"),
    "language": ("a.jsonl", holds(row(body="a", g="en-" + "x" * 9000)), ":1: language is 'en-xxx"),
}


def test_a_broken_source_names_its_line(tmp_path: Path) -> None:
    """Whatever a file is or contains: one short line that a terminal may show."""
    wrong = []
    for name, (path, make, error) in SOURCES.items():
        home = tmp_path / name
        home.mkdir()
        make(home / path)
        fields = {"turns": "turns"} if name in ("role", "csv-deep", "csv-digits") else {"text": "body"}
        fields |= {"licence": "l"} if name.startswith("licence") else {"language": "g"} if name == "language" else {}
        with pytest.raises(CorpusError) as caught:
            read(home, path, **fields)
        said = str(caught.value)
        longest = len(str(home)) + (9000 if name == "csv-missing" else 600)
        if not (said.startswith(f"{home / path}") and error in said and said.isprintable() and len(said) < longest):
            wrong.append((name, said[:300]))
    assert wrong == []


def test_what_looks_broken_and_is_read(tmp_path: Path) -> None:
    """Of a name that stands twice the last counts, as everywhere in JSON; a column that nobody named may stand twice;
    a member of zeros behind a gzip is padding; the last line needs no end.
    """
    (tmp_path / "a.jsonl").write_bytes(b'{"body": "one", "body": "two"}')
    (tmp_path / "a.csv").write_bytes(b"body,x,x\none\x00,2,3")
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(GOOD) + gzip.compress(GOOD) + bytes(512))
    assert [d.said for d in read(tmp_path, "a.jsonl", text="body")] == ["two"]
    assert [d.said for d in read(tmp_path, "a.csv", text="body")] == ["one\x00"]
    assert [d.line for d in read(tmp_path, "b.jsonl.gz", text="body")] == [1, 2]


def test_a_conversation_of_very_many_rows_is_put_together_once(tmp_path: Path) -> None:
    """60,000 rows of one conversation, each with a row's work: all of them in one document, at its first line."""
    rows = "".join(f"1,user,{n}\n" for n in range(60_000))
    (tmp_path / "a.csv").write_text(f"talk,role,text\n{rows}2,user,bye\n", encoding="utf-8")
    first, second = read(tmp_path, "a.csv", conversation="talk", text="text")
    assert (first.line, len(first.turns), first.turns[-1].text) == (2, 60_000, "59999")
    assert (second.line, second.said) == (60_002, "bye")


def test_a_broken_mapping_file_names_its_line(tmp_path: Path) -> None:
    """All errors at once, each with its line; nothing that is an alias, too deep or too large is read."""
    path, field, wrong = tmp_path / "m.yaml", "{text: body}", []
    for old, new, error in (
        ("name: demo", "name: &a [*a]", "1: '&a' is an anchor or alias; expected the value itself"),
        ("name: demo", "name: demo\nname: other", "2: 'name' appears twice; expected each key once"),
        ("name: demo", "name: " + "[" * 5000, "1: is nested more than 32 deep; expected a mapping file"),
        ("name: demo", "name: demo\nlimits: {min_letters: " + "9" * 4000 + "}", "2: 'limits.min_letters': "),
        ("name: demo", "name: demo\nlimits: {near_min_characters: 99999999999999999999}", "2: 'limits.near_min_char"),
        ("name: demo", "name: demo\nlimits: {near_jaccard: .nan}", "2: 'limits.near_jaccard': "),
        ("name: demo", "name: demo\nlimits: {max_messages: many}", "2: 'limits.max_messages': Input should be a valid"),
        ("name: demo", "name: demo\nsamples: {validation: 1e9, test: 1, seed: 1}", "2: 'samples.validation': "),
        (
            "name: demo",
            "name: demo\nsamples: {validation: 1, test: 1, seed: 1, by: [topic]}",
            "1: 'file': samples.by names ['topic']; expected source",
        ),
        ("name: demo", "name: demo\n\x1b: x", "2: contains the character '\\x1b', which no YAML may"),
        ("name: demo", '"na\\u001bme": demo', "1: 'na[U+001B]me': unknown key; see docs/own-data.md for the keys"),
        ("name: demo", "name: !!python/object/apply:os.system [true]", "1: 'tag:yaml.org,2002:python/object/apply"),
        ("name: demo", "name: [", "3: invalid YAML: "),
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
            "4: 'sources.0': expected either `path` (a file) or `hub` (a dataset), not both or",
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


def test_a_mapping_file_is_a_file(tmp_path: Path) -> None:
    """A pipe that waits for its writer, a device, a folder: the command ends, and nothing is written."""
    for make, what in ((pipe, "a pipe"), (endless, "a device"), (folder, "a folder")):
        mapping = tmp_path / f"{make.__name__}.yaml"
        make(mapping)
        with pytest.raises(CorpusError, match=rf"\.yaml: is {what}; expected a mapping file"):
            build(mapping, tmp_path / "out")
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "helmbench.cli",
        "corpus",
        tmp_path / "pipe.yaml",
        "--out",
        tmp_path / "out",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert "pipe.yaml: is a pipe; expected a mapping file" in done.stderr
    assert not (tmp_path / "out").exists()


def test_marks_beyond_what_a_letter_carries_are_parted() -> None:
    """Unicode's Stream-Safe Text Format: a joiner behind each 30 marks that follow each other, and no other change.

    So normalising, which sorts a run by pairs, has runs of 30: of 100,000 marks of two classes in turn none stays
    unsorted, and none is moved across a joiner.
    """
    run = "\u0301\u0316" * 50_000
    safe = stream_safe(run)
    assert [len(part) for part in safe.split(JOINER)] == [MARKS] * 3333 + [10]
    assert normalize(f"a{run}").startswith("á" + "\u0316" * 15 + "\u0301" * 14 + JOINER)
    assert stream_safe(safe) == safe
    assert fold(f"A{run}") == "á"
    for text in ("Ça va?", "Việt", "é" * 40, "a" + "\u0301" * MARKS, "नमस्ते", "שָׁלוֹם", "\U0001f468\u200d\U0001f469"):
        assert stream_safe(text) == text


def test_numbers_are_masked_one_after_the_other() -> None:
    """A dump of numbers: each is masked, what stands between them stays, and a helpline's number too."""
    text = "; ".join(["5551234"] * 60 + ["116 123"] + ["5554321"] * 60) + " and no more"
    assert mask(text) == "; ".join(["[phone]"] * 60 + ["116 123"] + ["[phone]"] * 60) + " and no more"


def test_batches_are_cut_at_very_long_documents() -> None:
    """So that a source of many long texts never stands in memory; of short ones each has as many as asked."""
    short = [Document("made", n, (Turn("user", "hello"),)) for n in range(5)]
    long = Document("made", 9, (Turn("user", "x" * ROOM),))
    assert [[d.line for d in own] for own in batches([*short, long, *short], 4)] == [
        [0, 1, 2, 3],
        [4, 9],
        [0, 1, 2, 3],
        [4],
    ]


def test_a_licence_ends_no_cell_of_the_card(tmp_path: Path) -> None:
    """A row states its licence; the card's table and its page show it as the text that it is."""
    (tmp_path / "posts.jsonl").write_bytes(row(body="Good morning to you", licence="mit|<b>x"))
    (tmp_path / "m.yaml").write_text(
        MAPPING.replace("{text: body}", "{text: body, licence: licence}"), encoding="utf-8"
    )
    build(tmp_path / "m.yaml", tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "| mit\\|\\<b>x " in card
    assert " <b>" not in card


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of one message."""
    home = tmp_path_factory.mktemp("built")
    (home / "posts.jsonl").write_bytes(row(body="Good morning to you"))
    (home / "m.yaml").write_text(MAPPING, encoding="utf-8")
    build(home / "m.yaml", home / "out")
    return home / "out"


def relisted(corpus: Path, name: str, sha256: str | None = None) -> None:
    """The manifest with a file's own hash again, or with another file."""
    path = corpus / "MANIFEST.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["files"][name] = sha256 or file_digest(corpus / name)
    path.write_text(json.dumps(manifest), encoding="utf-8")


def said_of(corpus: Path) -> str:
    with pytest.raises(CorpusError) as caught:
        list(open_corpus(corpus).rows())
    assert str(caught.value).isprintable()
    return str(caught.value)


def test_a_corpus_of_other_things_than_files(built: Path, tmp_path: Path) -> None:
    """Not waited for or read forever; and `helmbench corpus` won't replace such a folder."""
    for make, what in ((pipe, "pipe"), (endless, "device"), (folder, "folder"), (long, "long")):
        for name in ("MANIFEST.json", "data/corpus.parquet"):
            corpus = shutil.copytree(built, tmp_path / f"{what}-{Path(name).stem}")
            (corpus / name).unlink()
            make(corpus / name)
            said = said_of(corpus)
            if name == "MANIFEST.json":
                assert f"MANIFEST.json: is a {what}; expected the manifest" in said or "file: Invalid JSON" in said
                assert not is_corpus(corpus)
            else:
                assert "corpus.parquet: missing, though" in said or "corpus.parquet: sha256 is" in said


def test_a_corpus_that_a_stranger_made_to_fit(built: Path, tmp_path: Path) -> None:
    """Hashes that fit say nothing of what was hashed: rows of other columns, no rows, and files that lie elsewhere."""
    corpus = shutil.copytree(built, tmp_path / "corpus")
    path = corpus / "data" / "corpus.parquet"
    rows = pq.read_table(path)
    pq.write_table(rows.drop_columns("messages"), path)
    relisted(corpus, "data/corpus.parquet")
    assert "corpus.parquet: has no column 'messages'; expected id, source, source_id, " in said_of(corpus)
    pq.write_table(rows.set_column(0, "id", [[7]]), path)
    relisted(corpus, "data/corpus.parquet")
    assert "corpus.parquet: its column 'id' is int64; expected string; build the corpus again" in said_of(corpus)
    path.write_bytes(b"id,text\n")
    relisted(corpus, "data/corpus.parquet")
    assert "corpus.parquet: not a parquet file, or truncated; expected the rows of a corpus" in said_of(corpus)
    relisted(corpus, "../\x1b[2J", "0" * 64)
    assert "MANIFEST.json: lists '../[U+001B][2J', which is outside the folder; build the corpus again" in said_of(
        corpus
    )
    (corpus / "MANIFEST.json").write_text('{"name":' * 100_000, encoding="utf-8")
    assert "MANIFEST.json: file: Invalid JSON" in said_of(corpus)
    assert not is_corpus(corpus)


def test_a_datasets_folder_holds_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`datasets` would wait for a pipe, and read a device for ever."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    (tmp_path / "org" / "data").mkdir(parents=True)
    pipe(tmp_path / "org" / "data" / "train.jsonl")
    source = Source.model_validate({"name": "made", "hub": "org", "fields": {"text": "t"}})
    with pytest.raises(CorpusError, match=r"train\.jsonl:1: source 'made' holds a pipe or a device; expected files"):
        open_source(source, tmp_path)
