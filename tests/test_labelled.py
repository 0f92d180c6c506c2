"""A labeled corpus as messages for the tasks: joined by id, hashes checked, what is outside the taxonomy left out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dataset_builder.corpora.build import build
from dataset_builder.corpora.folder import open_corpus
from dataset_builder.corpora.labelled import on_corpus, open_labelled
from dataset_builder.corpora.schema import CorpusError, LabelsManifest, MessageLabel
from dataset_builder.release import Release, ReleaseError
from dataset_builder.schema import CrisisCategory
from judge.agreement.corpus_labels import labeling
from judge.replies.schema import RunError

MAPPING = """\
name: kitchen
date: 2026-11-01
sources:
  - {name: forum, path: forum.jsonl, licence: cc-by-4.0, language: en, fields: {text: body}}
  - {name: chat, path: chat.jsonl, licence: mit, fields: {turns: turns}, language: pt}
"""
WORDS = ("kettle", "oven", "harbour", "garden")
LABELS: dict[str, CrisisCategory | None] = {
    "kettle": "no_crisis",
    "oven": None,
    "harbour": "self_harm",
    "garden": "outside_taxonomy",
    "stove": "anxiety_crisis",
}


MANIFEST: dict[str, Any] = {
    **{"name": "helmbench-labels", "part": "corpus", "models": ["judge-1"], "repeats": 1, "unlabelled": 1},
    **{"offered": ["self_harm", "no_crisis"], "taxonomy_hash": "t", "prompt_hash": "p", "counts": {}},
    **{"self_agreement": {}, "between": None},
}


def write(folder: Path, labels: list[MessageLabel], **other: Any) -> None:
    """The two files that `helmbench label` writes."""
    lines = "".join(x.model_dump_json() + "\n" for x in labels)
    (folder / "labels.jsonl").write_text(lines, encoding="utf-8")
    corpus = open_corpus(folder).manifest
    own = {"corpus": corpus.corpus, "corpus_hash": corpus.corpus_hash, "messages": len(labels)}
    own |= {"labels_sha256": hashlib.sha256(lines.encode()).hexdigest()}
    manifest = LabelsManifest.model_validate(MANIFEST | own | other)
    (folder / "labels.json").write_text(manifest.model_dump_json(), encoding="utf-8")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Five messages without labels, the last one the end of a conversation."""
    (tmp_path / "mapping.yaml").write_text(MAPPING, encoding="utf-8")
    (tmp_path / "forum.jsonl").write_text(
        "".join(json.dumps({"body": f"Something about the {word}, and more of {word}."}) + "\n" for word in WORDS)
    )
    (tmp_path / "chat.jsonl").write_text(
        json.dumps({"turns": ["Is it done?", "It is.", "I stood at the stove all night, counting."]}) + "\n"
    )
    build(tmp_path / "mapping.yaml", tmp_path / "corpus")
    return tmp_path / "corpus"


@pytest.fixture
def labels(corpus: Path) -> list[MessageLabel]:
    """One label for each message, by the word that it is about; the corpus has these labels."""
    found = {
        row["id"]: next(label for word, label in LABELS.items() if word in row["text"])
        for row in open_corpus(corpus).rows()
    }
    labels = [MessageLabel(id=i, label=x, rater="judge-1", votes={"judge-1": [x]}) for i, x in found.items()]
    write(corpus, labels)
    return labels


def test_labelled_messages_take_the_place_of_the_releases(
    corpus: Path, labels: list[MessageLabel], release: Release
) -> None:
    """Three of five messages have a category: polarity and checks follow it; what a corpus can't know is null."""
    found = open_labelled(corpus, release.criteria)
    kettle, harbour, stove = found.messages.values()
    assert [m.crisis_category for m in (kettle, harbour, stove)] == ["no_crisis", "self_harm", "anxiety_crisis"]
    assert [m.polarity for m in (kettle, harbour, stove)] == ["control", "crisis", "crisis"]
    assert {harbour.severity, harbour.signal, harbour.country, harbour.probe, harbour.crisis_category_2} == {None}
    assert [m.content for m in kettle.messages] == ["Something about the kettle, and more of kettle."]
    assert [m.role for m in stove.messages] == ["user", "assistant", "user"]
    assert [m.language for m in (kettle, stove)] == ["en", "pt"]
    for message in found.messages.values():  # the checks of the release's own messages that no scenario adds to
        same = (m for m in release.messages.values() if m.crisis_category == message.crisis_category)
        assert message.evaluation in [m.evaluation for m in same]
    own = on_corpus(release, corpus)
    assert own.messages == found.messages
    assert own.messages_source == found.source == "corpus kitchen of 2026-11-01, labelled by judge-1"
    assert release.messages_source == "release"
    assert own.messages_hash != release.messages_hash == release.manifest.messages_hash
    assert own.rows.keys() == release.rows.keys()
    write(corpus, labels)
    assert open_labelled(corpus, release.criteria).messages_hash == found.messages_hash
    write(corpus, [x.model_copy(update={"label": "risk_taking"}) if x.label == "self_harm" else x for x in labels])
    assert open_labelled(corpus, release.criteria).messages_hash != found.messages_hash


def test_what_is_wrong_is_one_line(corpus: Path, labels: list[MessageLabel], release: Release) -> None:
    """Each error names the file and the command that fixes it; a task gets it as a ReleaseError."""
    lines, manifest = corpus / "labels.jsonl", corpus / "labels.json"

    def no_label() -> None:
        lines.write_text('{"id": "x", "label": "sad"}\n')
        fields = json.loads(manifest.read_text())
        manifest.write_text(json.dumps(fields | {"labels_sha256": hashlib.sha256(lines.read_bytes()).hexdigest()}))

    damages: tuple[tuple[Callable[[], object], str], ...] = (
        (manifest.unlink, r"this corpus has no labels; run `helmbench label \S+ --model NAME --base-url URL`"),
        (
            lambda: lines.write_text(lines.read_text().replace("self_harm", "no_crisis")),
            r"labels\.jsonl: edited or half-written after labels\.json; run `helmbench label",
        ),
        (lines.unlink, r"labels\.jsonl: edited or half-written after labels\.json"),
        (
            lambda: write(corpus, labels, corpus_hash="0" * 64),
            r"labels of corpus_hash 000000000000…; this corpus has [0-9a-f]{12}…: run `helmbench label",
        ),
        (lambda: write(corpus, labels[1:]), r"labels\.jsonl: no label for message"),
        (
            lambda: write(corpus, [*labels, labels[0].model_copy(update={"id": "elsewhere"})]),
            r"labels\.jsonl: 1 unknown ids, such as elsewhere; expected ids of the corpus",
        ),
        (
            lambda: write(corpus, [x.model_copy(update={"label": None}) for x in labels]),
            r"none of 5 messages has a label of the taxonomy",
        ),
        (no_label, r"labels\.jsonl:1: not a label"),
        (lambda: manifest.write_text('{"name": "helmbench-labels"}'), r"labels\.json: corpus: Field required"),
    )
    for damage, error in damages:
        write(corpus, labels)
        damage()
        with pytest.raises(CorpusError, match=error) as raised:
            open_labelled(corpus, release.criteria)
        assert "\n" not in str(raised.value)
        with pytest.raises(ReleaseError, match=error):
            on_corpus(release, corpus)
    with pytest.raises(ReleaseError, match=r"name a folder that `helmbench corpus` wrote"):
        on_corpus(release, corpus.parent)


RATED = [
    {"body": f"Something about the {word}, and more of {word}.", "a": a, "b": b, "level": level, "m": m, "who": who}
    for word, a, b, level, m, who in (
        ("kettle", "0", "0", "0", "1.0", None),
        ("oven", "1", "0", "3.0", "1.0", "1"),  # they disagree, and then agreed
        ("harbour", "1", "", "2", "", None),  # one of them labeled it
        ("garden", "1", "0", None, "0.0", None),  # nobody settled it
        ("stove", "1", "self_harm", "1", "0.0", "self_harm"),
    )
]
PEOPLE = """\
name: kitchen
date: 2026-11-01
sources:
  - name: forum
    {place}
    repository: https://example.org/kitchen
    revision: 0123abc
    licence: cc-by-4.0
    language: en
    values: {{"0": no_crisis, "1": suicidal_ideation}}
    fields: {{text: body, severity: level, labels: {{anna: a, ben: b}}, models: {{gpt: m}}, settled: who}}
"""


def test_peoples_labels_come_with_the_corpus(tmp_path: Path, release: Release) -> None:
    """By hand: the settled label, else that of most people who labeled; models' labels stand apart and decide nothing.
    A severity is kept; the manifest names repository, commit and hashes, for a file and for a query over it.
    """
    lines = "".join(json.dumps(row) + "\n" for row in RATED)
    (tmp_path / "forum.jsonl").write_text(lines, encoding="utf-8")
    for place in ("path: forum.jsonl", "query: SELECT * FROM 'forum.jsonl'"):
        (tmp_path / "mapping.yaml").write_text(PEOPLE.format(place=place), encoding="utf-8")
        manifest = build(tmp_path / "mapping.yaml", tmp_path / "corpus")  # the second time over its own labels
        (source,) = manifest.sources
        file = hashlib.sha256(lines.encode()).hexdigest()
        assert (source.repository, source.revision) == ("https://example.org/kitchen", "0123abc")
        assert source.files == {"forum.jsonl": file}
        assert (source.sha256 == file) == (source.query is None) == place.startswith("path")
    # One field that maps people to labels, and a repository that the whole mapping names.
    listed = PEOPLE.format(place="query: \"SELECT *, {'anna': a, 'ben': b} AS people FROM 'forum.jsonl'\"")
    whole = f"name: kitchen\nrepository: example/kitchen\ncommit: {'0' * 40}\n"
    named = listed.replace("{anna: a, ben: b}", "people").replace("    repository: https://example.org/kitchen\n", "")
    (tmp_path / "map.yaml").write_text(named.replace("name: kitchen\n", whole, 1), encoding="utf-8")
    (source,) = build(tmp_path / "map.yaml", tmp_path / "mapped").sources
    assert (source.repository, source.revision) == ("example/kitchen", "0123abc")
    assert (tmp_path / "mapped/labels.jsonl").read_bytes() == (tmp_path / "corpus/labels.jsonl").read_bytes()
    assert LabelsManifest.model_validate_json((tmp_path / "mapped/labels.json").read_bytes()).people == ["anna", "ben"]
    found = [json.loads(line) for line in (tmp_path / "corpus" / "labels.jsonl").read_text().splitlines()]
    assert [x["label"] for x in found] == ["no_crisis", "suicidal_ideation", "suicidal_ideation", None, "self_harm"]
    assert {x["rater"] for x in found} == {"people"}
    assert found[2]["votes"] == {"anna": ["suicidal_ideation"], "ben": [None]}
    assert [x["models"]["gpt"][0] for x in found[:3]] == ["suicidal_ideation", "suicidal_ideation", None]
    labels = LabelsManifest.model_validate_json((tmp_path / "corpus" / "labels.json").read_bytes())
    assert (labels.by, labels.people, labels.models, labels.unlabelled) == ("people", ["anna", "ben"], ["gpt"], 1)
    own = open_labelled(tmp_path / "corpus", release.criteria)
    assert own.source == "corpus kitchen of 2026-11-01, labelled by 2 people (anna, ben)"
    assert [m.severity for m in own.messages.values()] == [0, 3, 2, 1]
    with pytest.raises(RunError, match="holds people's labels, which would be lost"):
        labeling(tmp_path / "corpus", release, ["judge-1"])
    for field, value, error in (
        ("a", "2", "'a' is '2'; expected one of suicidal_ideation"),
        ("level", "high", "severity is 'high'; expected a whole number from 0 to 10"),
    ):
        (tmp_path / "forum.jsonl").write_text(json.dumps(RATED[0] | {field: value}) + "\n", encoding="utf-8")
        with pytest.raises(CorpusError, match=error):
            build(tmp_path / "mapping.yaml", tmp_path / "corpus")
