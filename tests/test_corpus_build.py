"""From a mapping file to a folder: counts that can be checked by hand, identity, refusals, the command."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pyarrow.parquet as pq
import pytest
from helmbench.cli.app import main

from dataset_builder.corpora.build import build
from dataset_builder.corpora.folder import open_corpus
from dataset_builder.corpora.schema import CorpusError
from dataset_builder.corpora.write import is_corpus
from helmbench_common.hashing import file_digest

LONG = "My kettle has begun to whistle before the water is warm, and the cat leaves the room each time."
OTHER = "Which of the two trains from the harbour stops at the small station behind the garden market?"
MAPPING = """\
name: kitchen
date: 2026-11-01
sources:
  - name: forum
    path: forum.jsonl
    date: 2025-03-01
    licence: cc-by-4.0
    fields: {text: body, id: n, keep: [topic]}
  - name: chat
    path: chat.csv
    licence: cc-by-nc-4.0
    language: en
    fields: {turns: turns}
limits: {languages: [en]}
samples: {validation: 1, test: 2, seed: 3, by: [source]}
"""
FORUM = [
    {"n": "p1", "body": LONG, "topic": "tea"},
    {"n": "p2", "body": LONG.upper() + "!!", "topic": "tea"},  # an exact copy, but for case and punctuation
    {"n": "p3", "body": LONG.replace("warm", "hot"), "topic": None},  # a near copy
    {"n": "p4", "body": "hm", "topic": "tea"},
    {
        "n": "p5",
        "body": "Der Kessel pfeift schon, bevor das Wasser warm ist, und die Katze geht jedes Mal aus dem Zimmer.",
        "topic": "tea",
    },
    {"n": "p6", "body": f"{OTHER} Write to jo@example.org", "topic": "trains"},
    {"n": "p7", "body": None, "topic": "tea"},
    {"n": "p8", "body": "I like tea.", "topic": "tea"},
    {"n": "p9", "body": "I like teas.", "topic": "tea"},  # near, but so short that a letter is much of it
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with the mapping file and its two sources."""
    (tmp_path / "mapping.yaml").write_text(MAPPING, encoding="utf-8")
    (tmp_path / "forum.jsonl").write_text("".join(json.dumps(r) + "\n" for r in FORUM), encoding="utf-8")
    talks = [["Good morning, is the oven on?", "It is."], [f"turn number {n} of a long talk" for n in range(50)]]
    cells = "".join('"' + json.dumps(t).replace('"', '""') + '"\n' for t in talks)
    (tmp_path / "chat.csv").write_text("turns\n" + cells, encoding="utf-8")
    return tmp_path


def rows(folder: Path, name: str = "data/corpus.parquet") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(folder / name).to_pylist()
    return found


def test_every_document_is_kept_or_dropped_for_a_reason(home: Path) -> None:
    """Eleven documents by hand: six stay, five go, and each that goes is named with its line and what it copies."""
    manifest = build(home / "mapping.yaml", home / "out")
    kept = rows(home / "out")
    assert [(r["source"], r["source_id"], r["text"]) for r in kept] == [
        ("forum", "p1", LONG),
        ("forum", "p6", f"{OTHER} Write to [email]"),
        ("forum", "p8", "I like tea."),
        ("forum", "p9", "I like teas."),
        ("chat", None, "Good morning, is the oven on?"),
        ("chat", None, "turn number 38 of a long talk"),
    ]
    first = kept[0]["id"]
    assert {
        (d["source"], d["line"], d["step"], d["reason"], d["duplicate_of"])
        for d in rows(home / "out", "dropped.parquet")
    } == {
        ("forum", 2, "exact_duplicate", "the same words", first),
        ("forum", 3, "near_duplicate", "nearly the same words", first),
        ("forum", 4, "length", "fewer than 5 letters", None),
        ("forum", 5, "language", "de", None),
        ("forum", 7, "read", "empty", None),
    }
    assert manifest.changed == {"conversations cut": 1, "email masked": 1, "last replies left out": 1}
    assert [(s.name, s.read, s.kept) for s in manifest.sources] == [("forum", 9, 4), ("chat", 2, 2)]
    assert sum(n for reasons in manifest.dropped.values() for n in reasons.values()) + manifest.rows == 11
    assert [r["topic"] for r in kept] == ["tea", "trains", "tea", "tea", None, None]
    assert [len(r["messages"]) for r in kept] == [1, 1, 1, 1, 1, 39]
    assert kept[5]["messages"][1] == {"role": "assistant", "content": "turn number 1 of a long talk"}


def test_what_was_dropped_stands_in_the_order_of_reading(home: Path) -> None:
    """Source after source, line after line, whatever step a document was dropped at."""
    build(home / "mapping.yaml", home / "out")
    assert [d["line"] for d in rows(home / "out", "dropped.parquet")] == [2, 3, 4, 5, 7]


def test_licences_decide_who_may_see_it(home: Path) -> None:
    """One non-commercial source makes the folder not redistributable, and the folder says so, row by row and to git."""
    manifest = build(home / "mapping.yaml", home / "out")
    assert not manifest.redistributable
    assert [(s.licences, s.redistributable) for s in manifest.sources] == [
        (["cc-by-4.0"], True),
        (["cc-by-nc-4.0"], False),
    ]
    assert [r["redistributable"] for r in rows(home / "out")] == [True] * 4 + [False] * 2
    assert (
        "**Not redistributable.** Keep this folder to yourself: chat: cc-by-nc-4.0 allows no commercial use."
        in (home / "out" / "README.md").read_text()
    )
    assert (home / "out" / ".gitignore").read_text().endswith("\n*\n")
    (home / "mapping.yaml").write_text(MAPPING.replace("cc-by-nc-4.0", "mit"), encoding="utf-8")
    assert build(home / "mapping.yaml", home / "out").redistributable
    assert not (home / "out" / ".gitignore").exists()


def test_an_unlicensed_row_in_a_licensed_source_is_not_redistributable(home: Path) -> None:
    """The row's own licence goes before the source's."""
    made = [{"body": LONG, "l": "cc-by-nd-4.0"}, {"body": OTHER, "l": None}]
    (home / "forum.jsonl").write_text("".join(json.dumps(r) + "\n" for r in made), encoding="utf-8")
    (home / "mapping.yaml").write_text(
        "name: a\ndate: 2026-11-01\nsources:\n  - {name: forum, path: forum.jsonl, licence: mit, fields: "
        "{text: body, licence: l}}\n",
        encoding="utf-8",
    )
    manifest = build(home / "mapping.yaml", home / "out")
    assert [(r["licence"], r["redistributable"]) for r in rows(home / "out")] == [
        ("cc-by-nd-4.0", False),
        ("mit", True),
    ]
    assert (manifest.sources[0].licences, manifest.redistributable) == (["cc-by-nd-4.0", "mit"], False)


def test_the_same_sources_give_the_same_bytes(home: Path) -> None:
    """From another folder, at another time, with more processes: every file's hash is the same."""
    first = build(home / "mapping.yaml", home / "out", jobs=1)
    shutil.copytree(home, home / "elsewhere", ignore=shutil.ignore_patterns("out"))
    second = build(home / "elsewhere" / "mapping.yaml", home / "elsewhere" / "deep" / "out", jobs=2)
    assert first == second
    assert (home / "out" / "MANIFEST.json").read_bytes() == (
        home / "elsewhere" / "deep" / "out" / "MANIFEST.json"
    ).read_bytes()


def test_the_corpus_hash_follows_the_rows(home: Path) -> None:
    """A changed word changes it; a changed date of the corpus does not, since no row carries it."""
    first = build(home / "mapping.yaml", home / "out").corpus_hash
    (home / "mapping.yaml").write_text(MAPPING.replace("2026-11-01", "2027-01-01"), encoding="utf-8")
    assert build(home / "mapping.yaml", home / "out").corpus_hash == first
    (home / "forum.jsonl").write_text(
        (home / "forum.jsonl").read_text().replace("Which of the two", "Which of these two"), encoding="utf-8"
    )
    assert build(home / "mapping.yaml", home / "out").corpus_hash != first


def test_samples_are_rows_of_the_corpus(home: Path) -> None:
    """One and two, of six; each a row of the corpus, none in both."""
    build(home / "mapping.yaml", home / "out")
    corpus = open_corpus(home / "out")
    validation, test, whole = list(corpus.rows("validation")), list(corpus.rows("test")), list(corpus.rows())
    assert (len(validation), len(test)) == (1, 2)
    assert all(r in whole for r in [*validation, *test])
    assert len({r["id"] for r in [*validation, *test]}) == 3


def test_datasets_loads_the_folder(home: Path, tmp_path: Path) -> None:
    """The folder is a dataset like any other; its default is the whole corpus."""
    build(home / "mapping.yaml", home / "out")
    loaded = datasets.load_dataset(str(home / "out"), split="corpus", cache_dir=str(tmp_path / "cache"))
    assert loaded["id"][:] == [r["id"] for r in rows(home / "out")]
    drawn = datasets.load_dataset(str(home / "out"), "samples", cache_dir=str(tmp_path / "cache"))
    assert {name: len(part) for name, part in drawn.items()} == {"validation": 1, "test": 2}


def test_a_corpus_is_a_source(home: Path) -> None:
    """A corpus of a corpus drops nothing and changes nothing."""
    build(home / "mapping.yaml", home / "out")
    (home / "again.yaml").write_text(
        "name: again\ndate: 2026-11-02\nsources:\n  - {name: kitchen, hub: out, split: corpus, fields: "
        "{turns: messages, licence: licence}}\n",
        encoding="utf-8",
    )
    manifest = build(home / "again.yaml", home / "again")
    assert (manifest.rows, manifest.dropped, manifest.changed) == (6, {}, {})
    assert [r["text"] for r in rows(home / "again")] == [r["text"] for r in rows(home / "out")]


def test_an_edited_folder_is_refused(home: Path) -> None:
    """Every file is compared with the manifest before a row is read."""
    build(home / "mapping.yaml", home / "out")
    (home / "out" / "README.md").write_text("free for all", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"README.md: sha256 is .* edited or is half-written; build again"):
        open_corpus(home / "out")
    (home / "out" / "README.md").unlink()
    with pytest.raises(CorpusError, match=r"README.md: missing, though MANIFEST.json lists it"):
        open_corpus(home / "out")
    with pytest.raises(CorpusError, match=r"nowhere/MANIFEST.json: can't be read"):
        open_corpus(home / "nowhere")


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


def test_a_corpus_of_other_things_than_files(home: Path, tmp_path: Path) -> None:
    """Not waited for or read forever; and `helmbench corpus` won't replace such a folder."""
    build(home / "mapping.yaml", home / "out")
    makers: dict[str, Callable[[Path], object]] = {
        "pipe": os.mkfifo,
        "device": lambda path: path.symlink_to("/dev/zero"),
        "folder": Path.mkdir,
    }
    for what, make in makers.items():
        for name in ("MANIFEST.json", "data/corpus.parquet"):
            corpus = shutil.copytree(home / "out", tmp_path / f"{what}-{Path(name).stem}")
            (corpus / name).unlink()
            make(corpus / name)
            said = said_of(corpus)
            if name == "MANIFEST.json":
                kind = "is a folder" if what == "folder" else "is not a regular file"
                assert f"MANIFEST.json: {kind}; expected the manifest" in said
                assert not is_corpus(corpus)
            else:
                assert "corpus.parquet: missing, though" in said


def test_a_corpus_that_a_stranger_made_to_fit(home: Path) -> None:
    """Hashes that fit say nothing of what was hashed: rows of other columns, no rows, and files that lie elsewhere."""
    build(home / "mapping.yaml", home / "out")
    corpus = home / "out"
    path = corpus / "data" / "corpus.parquet"
    rows = pq.read_table(path)
    pq.write_table(rows.drop_columns("messages"), path)
    relisted(corpus, "data/corpus.parquet")
    assert "corpus.parquet: has no column 'messages'; expected id, source, source_id, " in said_of(corpus)
    pq.write_table(rows.set_column(0, "id", [list(range(rows.num_rows))]), path)
    relisted(corpus, "data/corpus.parquet")
    assert "corpus.parquet: its column 'id' is int64; expected string; build the corpus again" in said_of(corpus)
    path.write_bytes(b"id,text\n")
    relisted(corpus, "data/corpus.parquet")
    assert "corpus.parquet: can't be read as parquet" in said_of(corpus)
    relisted(corpus, "../\x1b[2J", "0" * 64)
    assert "MANIFEST.json: lists '../[U+001B][2J', which is outside the folder; build the corpus again" in said_of(
        corpus
    )
    (corpus / "MANIFEST.json").write_text('{"name":' * 100_000, encoding="utf-8")
    assert "MANIFEST.json: file: Invalid JSON" in said_of(corpus)
    assert not is_corpus(corpus)


def test_a_licence_ends_no_cell_of_the_card(home: Path) -> None:
    """A row states its license; the card's table shows it as text."""
    (home / "forum.jsonl").write_text(json.dumps({"body": LONG, "l": "mit|<b>x"}) + "\n", encoding="utf-8")
    (home / "mapping.yaml").write_text(
        "name: a\ndate: 2026-11-01\nsources:\n  - {name: forum, path: forum.jsonl, fields: {text: body, licence: l}}\n",
        encoding="utf-8",
    )
    build(home / "mapping.yaml", home / "out")
    card = (home / "out" / "README.md").read_text(encoding="utf-8")
    assert "| mit\\|\\<b>x " in card
    assert " <b>" not in card


def test_a_failing_build_keeps_the_earlier_corpus(home: Path) -> None:
    """A bad last row is found after all others were read; what stood in the folder still stands, and nothing lies
    beside it.
    """
    build(home / "mapping.yaml", home / "out")
    before = (home / "out" / "MANIFEST.json").read_bytes()
    names = sorted(p.name for p in home.iterdir())
    with (home / "forum.jsonl").open("a", encoding="utf-8") as handle:
        handle.write("{\n")
    with pytest.raises(CorpusError, match=r"forum.jsonl:10: is not JSON"):
        build(home / "mapping.yaml", home / "out")
    assert ((home / "out" / "MANIFEST.json").read_bytes(), sorted(p.name for p in home.iterdir())) == (before, names)


def test_nothing_left_is_an_error_that_says_why(home: Path) -> None:
    """An empty corpus is no corpus."""
    (home / "mapping.yaml").write_text(
        MAPPING.replace("languages: [en]", "languages: [en], min_letters: 5000"), encoding="utf-8"
    )
    with pytest.raises(
        CorpusError, match=r"nothing is left of 11 documents: 10 length \(fewer than 5000 letters\), 1 read \(empty\)"
    ):
        build(home / "mapping.yaml", home / "out")


def test_the_command_prints_what_was_done(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Counts by step, samples, the hash and which sources may not be shared; nothing on stderr."""
    monkeypatch.chdir(home)
    assert main(["corpus", "mapping.yaml", "--out", "out", "--jobs", "1"]) == 0
    printed = capsys.readouterr()
    manifest = json.loads((home / "out" / "MANIFEST.json").read_text(encoding="utf-8"))
    lines = printed.out.splitlines()
    assert printed.err == ""
    assert lines[0].startswith("out: kitchen of 2026-11-01, 6 of 11 documents, ")
    assert {
        "  dropped at language: 1 (de)",
        "  email masked: 1",
        "  sample test: 2",
        f"corpus_hash {manifest['corpus_hash']}",
    } <= set(lines)
    assert lines[-1] == "not redistributable: chat: cc-by-nc-4.0 allows no commercial use"


def test_the_command_writes_nothing_after_an_error(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reason on stderr, nothing on stdout, the exit code, and no folder."""
    monkeypatch.chdir(home)
    (home / "large.yaml").write_text(MAPPING.replace("test: 2,", "test: 2046,"), encoding="utf-8")
    before = sorted(p.name for p in home.iterdir())
    for arguments, code, error in (
        (["none.yaml", "--out", "out"], 1, "none.yaml: can't be read (No such file or directory); expected a mapping"),
        (["mapping.yaml", "--out", "."], 2, ".: not a corpus folder; expected an empty folder or an earlier corpus"),
        (["mapping.yaml"], 2, "Missing option '--out'."),
        (["large.yaml", "--out", "out"], 1, "the corpus has 6 rows, the samples ask for 1 + 2046; ask for fewer"),
    ):
        assert main(["corpus", *arguments]) == code
        printed = capsys.readouterr()
        assert printed.out == ""
        assert error in printed.err
        assert sorted(p.name for p in home.iterdir()) == before
