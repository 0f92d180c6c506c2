"""`helmbench label`: the majority of a judge's repeats, over a real loopback endpoint."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from helmbench.cli.app import main
from support.judge_server import Said, Serve, failed, said

from dataset_builder.corpora.build import build
from dataset_builder.corpora.folder import open_corpus
from dataset_builder.corpora.labelled import majority
from dataset_builder.corpora.schema import LabelsManifest, MessageLabel
from judge.agreement.corpus_labels import settle, votes_agreement
from judge.agreement.labels import read_labels

MAPPING = """\
name: kitchen
date: 2026-11-01
sources:
  - {name: forum, path: forum.jsonl, licence: cc-by-4.0, language: en, fields: {text: body}}
  - {name: chat, path: chat.jsonl, licence: mit, fields: {turns: turns}}
samples: {validation: 2, test: 5, seed: 3, by: [source]}
"""
WORDS = ("kettle", "oven", "harbour", "garden", "ladder", "window", "violin", "cellar")
TALK = ["Is the marmalade done?", "It is. Why >>> do you ask?", "Because I stood at the stove all night, counting."]
# What the test's judge says to a message with this word; anything else is no_crisis.
SAYS = {"harbour": "suicidal_ideation", "violin": "outside_taxonomy", "marmalade": "anxiety_crisis"}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Nine messages, one of them the end of a conversation."""
    (tmp_path / "mapping.yaml").write_text(MAPPING, encoding="utf-8")
    (tmp_path / "forum.jsonl").write_text(
        "".join(json.dumps({"body": f"Something about the {word}, and more of {word}."}) + "\n" for word in WORDS)
    )
    (tmp_path / "chat.jsonl").write_text(json.dumps({"turns": TALK}) + "\n")
    build(tmp_path / "mapping.yaml", tmp_path / "corpus")
    return tmp_path / "corpus"


def reads(body: dict[str, Any], attempt: int) -> Said:
    """A judge that always says the same of the same message."""
    asked = body["messages"][0]["content"].rpartition("<<<")[2]
    return said(json.dumps({"category": next((c for word, c in SAYS.items() if word in asked), "no_crisis")}))


Capture = pytest.CaptureFixture[str]


def label(corpus: Path, dataset: Path, *more: str, model: str = "judge-1") -> int:
    return main(["label", str(corpus), "--model", model, "--dataset", str(dataset), "--max-retries", "0", *more])


def lines(corpus: Path) -> list[MessageLabel]:
    return [MessageLabel.model_validate_json(line) for line in (corpus / "labels.jsonl").read_text().splitlines()]


def word_of(corpus: Path) -> dict[str, str]:
    """Message id → the word that it is about."""
    return {row["id"]: next(w for w in (*WORDS, "stove") if w in row["text"]) for row in open_corpus(corpus).rows()}


# Votes


def test_a_label_needs_more_than_half_of_the_votes() -> None:
    """Missing answers count in the denominator; ties and scattered votes give no label. Several models vote once each,
    however sure one of them is of itself.
    """
    cases: list[tuple[list[Any], str | None]] = [
        (["no_crisis"] * 3, "no_crisis"),
        (["self_harm", "no_crisis", "self_harm"], "self_harm"),
        (["self_harm", None, "self_harm"], "self_harm"),
        (["self_harm", "no_crisis", "risk_taking"], None),  # no majority
        (["self_harm", None, None], None),  # one answer in three is none
        ([None, None, None], None),
        (["self_harm", "no_crisis"], None),  # a tie of two models
        (["self_harm"], "self_harm"),
    ]
    assert [majority(votes) for votes, _ in cases] == [expected for _, expected in cases]
    votes: dict[str, list[Any]] = {
        "a": ["self_harm", "self_harm", "no_crisis"],
        "b": ["no_crisis"] * 3,
        "c": ["self_harm", None, "self_harm"],
    }
    found = [settle("m", {name: votes[name] for name in names}) for names in ("abc", "ab", "b")]
    assert [(x.label, x.rater) for x in found] == [("self_harm", "majority"), (None, "majority"), ("no_crisis", "b")]


def test_self_agreement_is_fleiss_kappa() -> None:
    """Four messages × three votes: P̄ = (1 + 1 + 1/3 + 1) / 4 = 5/6, shares 7/12 and 5/12, so κ = (5/6 − 74/144) / (1 −
    74/144) = 23/35. A single label leaves no kappa; without answers there is no figure at all.
    """
    votes: list[Any] = ["no_crisis", "self_harm"]
    one, two = votes
    found = votes_agreement([[one] * 3, [one] * 3, [one, two, two], [two] * 3])
    assert (found.raw, found.kappa, found.n) == (pytest.approx(5 / 6), pytest.approx(23 / 35), 4)
    alike, silent = votes_agreement([[one] * 3] * 3), votes_agreement([[None, None, None]] * 3)
    assert (alike.kappa, alike.raw) == (None, 1.0)
    assert "one label" in (alike.reason or "")
    assert (silent.raw, silent.n) == (None, 0)


# The command


def test_every_message_gets_the_majority_of_three(corpus: Path, dataset: Path, serve: Serve, capsys: Capture) -> None:
    """The test sample unless said otherwise, then the whole, and nothing is asked twice: 9 × 3 questions; each label,
    the counts and the hashes by hand; the file is one that `helmbench agreement` reads.
    """
    server = serve(reads)
    away = server.url.replace("127.0.0.1", "0.0.0.0")
    assert label(corpus, dataset, "--base-url", away) == 0
    assert capsys.readouterr().err.startswith(
        "5 messages of corpus kitchen LEAVE THIS MACHINE, for 0.0.0.0. People wrote them"
    )
    assert {x.id for x in lines(corpus)} == {row["id"] for row in open_corpus(corpus).rows("test")}
    assert server.total == 15
    assert label(corpus, dataset, "--base-url", server.url, "--sample", "all") == 0
    assert server.total == 27
    words = word_of(corpus)
    assert {words[x.id]: x.label for x in lines(corpus)} == {
        word: SAYS.get("marmalade" if word == "stove" else word, "no_crisis") for word in words.values()
    }
    assert all(x.votes == {"judge-1": [x.label] * 3} for x in lines(corpus))
    manifest = LabelsManifest.model_validate_json((corpus / "labels.json").read_bytes())
    counts = {"suicidal_ideation": 1, "anxiety_crisis": 1, "no_crisis": 6, "outside_taxonomy": 1}
    assert {k: n for k, n in manifest.counts.items() if n} == counts
    assert (manifest.messages, manifest.unlabelled, manifest.repeats) == (9, 0, 3)
    assert (manifest.models, manifest.part) == (["judge-1"], "corpus")
    assert manifest.corpus_hash == open_corpus(corpus).manifest.corpus_hash
    assert manifest.labels_sha256 == hashlib.sha256((corpus / "labels.jsonl").read_bytes()).hexdigest()
    assert (manifest.self_agreement["judge-1"].kappa, manifest.self_agreement["judge-1"].n) == (1.0, 9)
    out, err = capsys.readouterr()
    assert "no majority, unlabeled: 0" in out
    assert "LEAVE THIS MACHINE" not in err
    people = corpus.parent / "people.csv"
    people.write_text("id,label\n" + "".join(f"{x.id},{x.label}\n" for x in lines(corpus)))
    assert read_labels([corpus / "labels.jsonl", people]).raters == ("judge-1", "people")
    assert label(corpus, dataset, "--sample", "validation") == 0  # nobody is asked
    assert len(lines(corpus)) == 2


def test_scattered_votes_leave_a_message_unlabelled(corpus: Path, dataset: Path, serve: Serve, capsys: Capture) -> None:
    """A judge that wavers over one message, refuses another and can't be read on a third: none gets a label, all are
    counted and listed.
    """

    def wavers(body: dict[str, Any], attempt: int) -> Said:
        asked = body["messages"][0]["content"].rpartition("<<<")[2]
        if "kettle" in asked:
            return said(json.dumps({"category": ("self_harm", "no_crisis", "risk_taking")[(attempt - 1) % 3]}))
        if "oven" in asked:
            return said(None, refusal="No.")
        return said("It is a crisis.") if "garden" in asked else reads(body, attempt)

    server = serve(wavers)
    assert label(corpus, dataset, "--base-url", server.url, "--sample", "all") == 0
    words = word_of(corpus)
    lacking = {words[x.id]: x.votes["judge-1"] for x in lines(corpus) if x.label is None}
    assert {word: Counter(votes) for word, votes in lacking.items()} == {
        "kettle": Counter({"self_harm": 1, "no_crisis": 1, "risk_taking": 1}),
        "oven": Counter({None: 3}),
        "garden": Counter({None: 3}),
    }
    assert server.total == 27 + 3 * 2  # an unreadable answer is asked for twice more
    out = capsys.readouterr().out
    assert "no majority, unlabeled: 3" in out
    assert all(x.id in out for x in lines(corpus) if x.label is None)


def test_it_goes_on_where_it_stopped(corpus: Path, dataset: Path, serve: Serve, capsys: Capture) -> None:
    """An endpoint that fails on one message: exit 3 and no labels; then only what is missing is asked."""
    server = serve(
        lambda body, attempt: (
            failed(500) if "oven" in body["messages"][0]["content"].rpartition("<<<")[2] else reads(body, attempt)
        )
    )
    assert label(corpus, dataset, "--base-url", server.url, "--sample", "all") == 3
    assert not (corpus / "labels.jsonl").exists()
    assert label(corpus, dataset, "--sample", "all") == 2
    assert "3 of 27 questions have no answer yet" in capsys.readouterr().err
    whole = serve(reads)
    assert label(corpus, dataset, "--base-url", whole.url, "--sample", "all") == 0
    assert whole.total == 3


def test_answers_of_another_engine_are_read(corpus: Path, dataset: Path) -> None:
    """--requests writes the batch file, and results in the judge's folder are read."""
    batch = corpus.parent / "batch.jsonl"
    assert label(corpus, dataset, "--requests", str(batch), "--repeats", "1", model="org/judge") == 0
    asked = [json.loads(line) for line in batch.read_text().splitlines()]
    assert len(asked) == 5
    answers = [
        {"id": f"r{n}", "custom_id": a["custom_id"], "error": None}
        | {"response": {"status_code": 200, "body": json.loads(reads(a["body"], 1).body)}}
        for n, a in enumerate(asked)
    ]
    (corpus / "judge" / "org_judge" / "replies-1.jsonl").write_text("".join(json.dumps(a) + "\n" for a in answers))
    assert label(corpus, dataset, "--repeats", "1", model="org/judge") == 0
    assert len(lines(corpus)) == 5


def test_a_link_out_of_the_corpus_is_refused(corpus: Path, dataset: Path, serve: Serve, capsys: Capture) -> None:
    """A corpus may hold links to its user's files: one line, exit 2, and these are untouched."""
    outside, words = corpus.parent / "outside", "a page with no line end"
    (outside / "judge-1").mkdir(parents=True)
    files = [outside / name for name in ("mine", "replies.jsonl", "judge-1/replies.jsonl")]
    for file in files:
        file.write_text(words)
    for linked in ("judge/judge-1/replies.jsonl", "judge/judge-1", "judge", "labels.jsonl"):
        place = corpus / linked
        shutil.rmtree(corpus / "judge", ignore_errors=True)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(outside / "mine" if place.suffix else outside)
        assert label(corpus, dataset, "--base-url", serve(reads).url) == 2
        assert f"{place}: is a link; expected a " in capsys.readouterr().err
        assert sorted(p for p in outside.rglob("*") if p.is_file()) == sorted(files)
        assert {file.read_text() for file in files} == {words}
        place.unlink()


def test_several_models_leave_their_own_labels_too(corpus: Path, dataset: Path, serve: Serve) -> None:
    """Each model's majority stands beside its answers, as a label file to compare with people's; the models' majority
    is the label.
    """

    def script(body: dict[str, Any], attempt: int) -> Said:
        return said('{"category": "no_crisis"}') if body["model"] == "b" else reads(body, attempt)

    server = serve(script)
    models = ["--model", "b", "--model", "c"]
    assert label(corpus, dataset, "--base-url", server.url, "--sample", "all", *models, model="a") == 0
    assert server.total == 81
    own = {name: [x.label for x in lines(corpus / "judge" / name)] for name in "abc"}
    assert own["b"] == ["no_crisis"] * 9
    assert own["a"] == own["c"] == [x.label for x in lines(corpus)]
    manifest = LabelsManifest.model_validate_json((corpus / "labels.json").read_bytes())
    assert manifest.between is not None
    assert manifest.between.raw == pytest.approx((6 * 1 + 3 / 3) / 9)
    assert read_labels([corpus / "judge" / name / "labels.jsonl" for name in "abc"]).raters == ("a", "b", "c")


def test_bad_options_and_folders_are_one_line(corpus: Path, dataset: Path, capsys: Capture) -> None:
    """Exit 2, and nothing is written: a folder that is no corpus, one that was edited, and one without samples."""
    before, url = sorted(p.name for p in corpus.iterdir()), "http://127.0.0.1:1/v1"
    mapping = corpus.parent / "mapping.yaml"
    for name, text in (("bare", MAPPING.partition("samples:")[0]), ("less", MAPPING.replace("ion: 2", "ion: 0"))):
        mapping.write_text(text)
        build(mapping, corpus.parent / name)
    for name, options, told in (
        ("corpus", ["--repeats", "2"], "--repeats 2: expected an odd number"),
        ("corpus", ["--requests", "x.jsonl", "--model", "b"], "expected one --model and no --base-url"),
        ("corpus", ["--requests", "x.jsonl", "--base-url", url], "expected one --model and no --base-url"),
        (".", [], "name a folder that `helmbench corpus` wrote"),
        ("bare", ["--sample", "test"], "has no test sample"),
        ("less", ["--sample", "validation"], "no message to label in its validation"),
    ):
        assert label(corpus.parent / name, dataset, *options) == 2
        assert told in capsys.readouterr().err
    assert [n for n in sorted(p.name for p in corpus.iterdir()) if n != "judge"] == before
    (corpus / "data" / "test.parquet").write_bytes(b"")
    assert label(corpus, dataset) == 2
    assert "it was edited or is half-written" in capsys.readouterr().err


def test_a_new_build_does_not_throw_labels_away(corpus: Path, dataset: Path, serve: Serve) -> None:
    """What judges said was paid for: the folder isn't replaced until they are moved; elsewhere the same answers are
    taken up.
    """
    assert label(corpus, dataset, "--base-url", serve(reads).url) == 0
    with pytest.raises(FileExistsError, match=r"holds labels or judges' answers"):
        build(corpus.parent / "mapping.yaml", corpus)
    build(corpus.parent / "mapping.yaml", corpus.parent / "again")
    shutil.copytree(corpus / "judge", corpus.parent / "again" / "judge")
    assert label(corpus.parent / "again", dataset) == 0
    assert (corpus.parent / "again" / "labels.jsonl").read_bytes() == (corpus / "labels.jsonl").read_bytes()
