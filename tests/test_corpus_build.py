"""From a mapping file to a corpus folder: figures that can be checked by hand, same bytes, errors, the command."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import datasets
import pyarrow.parquet as pq
import pytest
from helmbench.cli.app import main

from dataset_builder.corpora.build import build
from dataset_builder.corpora.folder import open_corpus
from dataset_builder.corpora.schema import CorpusError
from helmbench_common.files import replaceable
from helmbench_common.hashing import file_digest

LONG = "My kettle has begun to whistle before the water is warm, and the cat leaves the room each time."
OTHER = "Which of the two trains from the harbour stops at the small station behind the garden market?"
GERMAN = "Der Kessel pfeift schon, bevor das Wasser warm ist, und die Katze geht jedes Mal aus dem Zimmer."
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
    {"n": "p5", "body": GERMAN, "topic": "tea"},
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


def by_licence(home: Path, made: list[dict[str, str | None]]) -> list[dict[str, Any]]:
    """The rows of a corpus whose documents state their licenses."""
    (home / "forum.jsonl").write_text("".join(json.dumps(r) + "\n" for r in made), encoding="utf-8")
    (home / "mapping.yaml").write_text(
        "name: a\ndate: 2026-11-01\nsources:\n  - {name: forum, path: forum.jsonl, licence: mit, fields: "
        "{text: body, licence: l}}\n",
        encoding="utf-8",
    )
    build(home / "mapping.yaml", home / "out")
    return rows(home / "out")


def test_every_document_is_kept_or_dropped_for_a_reason(home: Path) -> None:
    """Eleven documents by hand: six stay; the list of dropped ones names each with its line and what it copies."""
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
    first, dropped = kept[0]["id"], rows(home / "out", "dropped.parquet")
    assert [(d["source"], d["line"], d["step"], d["reason"], d["duplicate_of"]) for d in dropped] == [
        ("forum", 2, "exact_duplicate", "the same words", first),
        ("forum", 3, "near_duplicate", "nearly the same words", first),
        ("forum", 4, "length", "fewer than 5 letters", None),
        ("forum", 5, "language", "de", None),
        ("forum", 7, "read", "empty", None),
    ]
    assert manifest.changed == {"conversations cut": 1, "email masked": 1, "last replies left out": 1}
    assert [(s.name, s.read, s.kept) for s in manifest.sources] == [("forum", 9, 4), ("chat", 2, 2)]
    assert [r["topic"] for r in kept] == ["tea", "trains", "tea", "tea", None, None]
    assert [len(r["messages"]) for r in kept] == [1, 1, 1, 1, 1, 39]
    assert kept[5]["messages"][1] == {"role": "assistant", "content": "turn number 1 of a long talk"}
    corpus = open_corpus(home / "out")
    validation, test, whole = (list(corpus.rows(part)) for part in ("validation", "test", "corpus"))
    assert (len(validation), len(test), len({r["id"] for r in [*validation, *test]})) == (1, 2, 3)
    assert all(r in whole for r in [*validation, *test])


def test_licences_decide_who_may_see_it(home: Path) -> None:
    """One non-commercial source makes the folder not redistributable; rows, card and .gitignore say so."""
    manifest = build(home / "mapping.yaml", home / "out")
    assert not manifest.redistributable
    assert [s.licences for s in manifest.sources] == [["cc-by-4.0"], ["cc-by-nc-4.0"]]
    assert [r["redistributable"] for r in rows(home / "out")] == [True] * 4 + [False] * 2
    refused = "**Not redistributable.** Keep this folder to yourself: chat: cc-by-nc-4.0 allows no commercial use."
    assert refused in (home / "out" / "README.md").read_text(encoding="utf-8")
    assert (home / "out" / ".gitignore").read_text().endswith("\n*\n")
    (home / "mapping.yaml").write_text(MAPPING.replace("cc-by-nc-4.0", "mit"), encoding="utf-8")
    assert build(home / "mapping.yaml", home / "out").redistributable
    assert not (home / "out" / ".gitignore").exists()


def test_a_rows_licence_goes_before_its_sources(home: Path) -> None:
    """And stays text in the table of the card."""
    found = by_licence(home, [{"body": LONG, "l": "mit|<b>x"}, {"body": OTHER, "l": None}])
    assert [(r["licence"], r["redistributable"]) for r in found] == [("mit|<b>x", False), ("mit", True)]
    card = (home / "out" / "README.md").read_text(encoding="utf-8")
    assert "| mit, mit\\|\\<b>x " in card
    assert " <b>" not in card


def test_the_same_sources_give_the_same_bytes(home: Path) -> None:
    """From another folder, too. The corpus hash follows the rows, not the date."""
    first = build(home / "mapping.yaml", home / "out")
    shutil.copytree(home, home / "elsewhere", ignore=shutil.ignore_patterns("out"))
    build(home / "elsewhere" / "mapping.yaml", home / "elsewhere" / "out")
    manifests = [(folder / "out" / "MANIFEST.json").read_bytes() for folder in (home, home / "elsewhere")]
    assert manifests[0] == manifests[1]
    (home / "mapping.yaml").write_text(MAPPING.replace("2026-11-01", "2027-01-01"), encoding="utf-8")
    assert build(home / "mapping.yaml", home / "out").corpus_hash == first.corpus_hash
    forum = (home / "forum.jsonl").read_text(encoding="utf-8")
    (home / "forum.jsonl").write_text(forum.replace("Which of the two", "Which of these two"), encoding="utf-8")
    assert build(home / "mapping.yaml", home / "out").corpus_hash != first.corpus_hash


def test_datasets_loads_the_folder_and_a_corpus_is_a_source(home: Path, tmp_path: Path) -> None:
    """The default configuration is the whole corpus; a corpus of a corpus drops and changes nothing."""
    build(home / "mapping.yaml", home / "out")
    loaded = datasets.load_dataset(str(home / "out"), split="corpus", cache_dir=str(tmp_path / "cache"))
    assert loaded["id"][:] == [r["id"] for r in rows(home / "out")]
    drawn = datasets.load_dataset(str(home / "out"), "samples", cache_dir=str(tmp_path / "cache"))
    assert {name: len(part) for name, part in drawn.items()} == {"validation": 1, "test": 2}
    (home / "again.yaml").write_text(
        "name: again\ndate: 2026-11-02\nsources:\n  - {name: kitchen, hub: out, split: corpus, fields: "
        "{turns: messages, licence: licence}}\n",
        encoding="utf-8",
    )
    manifest = build(home / "again.yaml", home / "again")
    assert (manifest.dropped, manifest.changed, manifest.samples) == ({}, {}, {})
    assert [r["text"] for r in rows(home / "again")] == [r["text"] for r in rows(home / "out")]
    with pytest.raises(CorpusError, match="again: has no test sample; name `samples` in the mapping file"):
        list(open_corpus(home / "again").rows("test"))


def said_of(corpus: Path) -> str:
    with pytest.raises(CorpusError) as caught:
        list(open_corpus(corpus).rows())
    assert str(caught.value).isprintable()
    return str(caught.value)


def relisted(corpus: Path, name: str, sha256: str | None = None) -> None:
    """Puts a file's hash, or a false one, into the manifest."""
    path = corpus / "MANIFEST.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["files"][name] = sha256 or file_digest(corpus / name)
    path.write_text(json.dumps(manifest), encoding="utf-8")


def test_an_edited_folder_is_refused(home: Path) -> None:
    """Every file is compared with the manifest; hashes that fit don't make other columns or formats acceptable."""
    build(home / "mapping.yaml", home / "out")
    corpus = home / "out"
    card = (corpus / "README.md").read_bytes()
    (corpus / "README.md").write_text("free for all", encoding="utf-8")
    assert "README.md: sha256 is " in (said := said_of(corpus))
    assert "edited or is half-written; build again" in said
    (corpus / "README.md").unlink()
    assert "README.md: missing, though MANIFEST.json lists it" in said_of(corpus)
    assert "nowhere/MANIFEST.json: can't be read" in said_of(home / "nowhere")
    (corpus / "README.md").write_bytes(card)
    path = corpus / "data" / "corpus.parquet"
    table = pq.read_table(path)
    pq.write_table(table.drop_columns("messages"), path)
    relisted(corpus, "data/corpus.parquet")
    assert "corpus.parquet: has no column 'messages'; expected id, source, source_id, " in said_of(corpus)
    path.write_bytes(b"id,text\n")
    relisted(corpus, "data/corpus.parquet")
    assert "corpus.parquet: can't be read as parquet" in (said := said_of(corpus))
    assert said.endswith("build the corpus again")
    relisted(corpus, "../\x1b[2J", "0" * 64)
    assert "MANIFEST.json: lists '../[U+001B][2J', which is outside the folder" in said_of(corpus)
    (corpus / "MANIFEST.json").write_text('{"name":' * 100_000, encoding="utf-8")
    assert "MANIFEST.json: file: Invalid JSON" in said_of(corpus)
    assert not replaceable(corpus, "helmbench-corpus")


def test_a_failing_build_keeps_the_earlier_corpus(home: Path) -> None:
    """The last row is bad: the earlier corpus stays, and nothing is left beside it."""
    build(home / "mapping.yaml", home / "out")
    before = (home / "out" / "MANIFEST.json").read_bytes()
    names = sorted(p.name for p in home.iterdir())
    with (home / "forum.jsonl").open("a", encoding="utf-8") as handle:
        handle.write("{\n")
    with pytest.raises(CorpusError, match=r"forum.jsonl:10: is not JSON"):
        build(home / "mapping.yaml", home / "out")
    assert ((home / "out" / "MANIFEST.json").read_bytes(), sorted(p.name for p in home.iterdir())) == (before, names)


def test_the_command_prints_what_was_done(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Counts by step, samples, the hash and which sources may not be shared; after an error only the error."""
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
    assert main(["corpus", "mapping.yaml", "--out", "out", "--jobs", "1"]) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert printed.err == ""
    assert lines[0].startswith("out: kitchen of 2026-11-01, 6 of 11 documents, ")
    assert {
        "  dropped at language: 1 (de)",
        "  email masked: 1",
        "  sample test: 2",
        f"corpus_hash {open_corpus(home / 'out').manifest.corpus_hash}",
    } <= set(lines)
    assert lines[-1] == "not redistributable: chat: cc-by-nc-4.0 allows no commercial use"


def test_nothing_that_names_a_writer_leaves_and_a_forum_beats_the_license(home: Path) -> None:
    """Permalinks, handles and user names in ids and kept columns are hashed or masked; one permalink in any column
    makes the source a forum, whatever its license says, and so does `forum: true`.
    """
    posts = [
        {"url": f"https://www.reddit.com/r/tea/comments/x{n}/kettle/", "author": f"mossy_kettle{n % 2}", "body": body}
        | {"about": f"u/mossy_kettle{n % 2}, see https://forum.example.org/t/{n}", "topic": "tea"}
        for n, body in enumerate((LONG, OTHER, "I like tea."))
    ]
    (home / "forum.jsonl").write_text("".join(json.dumps(p) + "\n" for p in posts), encoding="utf-8")
    head = "name: kitchen\ndate: 2026-11-01\nsources:\n  - {name: forum, path: forum.jsonl, licence: cc-by-4.0, "

    def built(rest: str) -> Any:
        (home / "mapping.yaml").write_text(f"{head}{rest}}}\n", encoding="utf-8")
        return build(home / "mapping.yaml", home / "out")

    manifest = built("fields: {text: body, id: url, keep: [author, about, topic]}")
    kept = rows(home / "out")
    assert not manifest.redistributable
    assert not any(r["redistributable"] for r in kept)
    assert "a forum: people posted there" in (home / "out" / "README.md").read_text(encoding="utf-8")
    assert (home / "out" / ".gitignore").is_file()
    for row in kept:
        assert re.fullmatch(r"[0-9a-f]{16}", row["source_id"])
        assert re.fullmatch(r"[0-9a-f]{16}", row["author"])
        assert (row["about"], row["topic"]) == ("[handle], see [url]", "tea")
    assert len({r["source_id"] for r in kept}) == 3
    assert len({r["author"] for r in kept}) == 2
    for file in (home / "out").rglob("*"):
        text = b"".join(map(str.encode, map(str, rows(home / "out", str(file))))) if file.suffix == ".parquet" else b""
        assert file.is_dir() or not re.search(rb"mossy|reddit", text or file.read_bytes())
    # The address is in a column that the mapping doesn't name.
    assert not built("fields: {text: body}").redistributable
    for post in posts:
        del post["url"]
    (home / "forum.jsonl").write_text("".join(json.dumps(p) + "\n" for p in posts), encoding="utf-8")
    assert built("fields: {text: body, id: topic}").redistributable
    assert not built("forum: true, fields: {text: body, id: topic}").redistributable
    assert rows(home / "out")[0]["source_id"] != "tea"
