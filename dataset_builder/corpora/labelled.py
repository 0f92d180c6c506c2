"""A labeled corpus as messages for the triage and appropriateness tasks, in place of the release's.

A label is people's or a model's classification, not a diagnosis. Unlabeled messages and those outside the taxonomy are
excluded: none of the six categories is a right answer for them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, get_args

from pydantic import ValidationError

from dataset_builder.composing.messages import CRITERIA, evaluation
from dataset_builder.corpora.folder import Corpus, open_corpus, read_json
from dataset_builder.corpora.schema import CorpusError, CorpusManifest, Document, LabelsManifest, MessageLabel, Recipe
from dataset_builder.release import OwnMessages, Release, ReleaseError
from dataset_builder.schema import CrisisCategory, Message, Polarity, RealMessages, RealSource, UserMessage
from helmbench_common import jsonl
from helmbench_common.files import naming, write_whole
from helmbench_common.formats.refused import shown
from helmbench_common.hashing import digest, file_digest

LABELS, MANIFEST = "labels.jsonl", "labels.json"
UNDETERMINED = "und"  # BCP 47 for an unknown language
PEOPLE = "people"  # the rater of labels that people gave
LEVEL = re.compile(r"\d|10")  # a severity that figures can use


def majority(votes: Sequence[CrisisCategory | None]) -> CrisisCategory | None:
    """The label with more than half of the votes, counting unreadable ones; None without such a label."""
    (found, count), *_ = Counter(votes).most_common(1) or [(None, 0)]
    return found if 2 * count > len(votes) else None


def of_people(document: Document, identity: str) -> MessageLabel:
    """The label that people gave a message: the one they agreed on, else that of most who labeled it."""
    given = [label for _, label in document.people if label]
    people, models = ({who: [label] for who, label in votes} for votes in (document.people, document.models))
    return MessageLabel(
        id=identity, label=document.settled or majority(given), rater=PEOPLE, votes=people, models=models
    )


def write_labels(folder: Path, corpus: CorpusManifest, recipe: Recipe, lines: Iterable[bytes]) -> None:
    """Writes people's labels of all rows, in their order, and their manifest. `lines`: those of `of_people`."""
    counts, people, models = Counter[CrisisCategory | None](), set[str](), set[str]()
    with naming(folder / LABELS), (folder / LABELS).open("wb") as file:
        for line in lines:
            own = MessageLabel.model_validate_json(line)
            counts[own.label] += 1
            people |= {*own.votes}
            models |= {*own.models}
            file.write(line)
    words = {*counts, *(name for s in recipe.labelled for name in s.values.values())}
    offered = [name for name in get_args(CrisisCategory) if name in words]
    manifest = LabelsManifest(
        name="helmbench-labels",
        corpus=corpus.corpus,
        corpus_hash=corpus.corpus_hash,
        part="corpus",
        messages=corpus.rows,
        by=PEOPLE,
        people=sorted(people),
        models=sorted(models),
        repeats=1,
        offered=offered,
        taxonomy_hash=None,
        prompt_hash=None,
        counts={name: counts[name] for name in offered},
        unlabelled=counts[None],
        self_agreement={},
        between=None,
        labels_sha256=file_digest(folder / LABELS),
    )
    write_whole(folder / MANIFEST, manifest.model_dump_json(indent=2) + "\n")


def by_people(folder: Path) -> bool:
    """Whether the labels in a corpus folder came with its sources, so that building it again brings them back."""
    try:
        return read_json(folder / MANIFEST, LabelsManifest, "a manifest of labels", "").by == PEOPLE
    except CorpusError:
        return False


def labels_summary(folder: Path) -> list[str]:
    """A line about a corpus's labels, if it has some."""
    if not (folder / MANIFEST).exists():
        return []
    labels = read_manifest(open_corpus(folder))
    counts = ", ".join(f"{name} {n}" for name, n in labels.counts.items())
    return [f"labelled by {labelled_by(labels)}: {counts}; unlabelled {labels.unlabelled}"]


def labelled_by(labels: LabelsManifest) -> str:
    """Who labeled, in words: the models, or how many people and their names."""
    if labels.by != PEOPLE:
        return ", ".join(labels.models)
    count = "1 person" if len(labels.people) == 1 else f"{len(labels.people)} people"
    return f"{count} ({', '.join(labels.people)})" if labels.people else PEOPLE


def on_corpus(release: Release, folder: Path) -> Release:
    """The release with its messages replaced by those of a labeled corpus; protocols, taxonomy and criteria stay.

    Raises ReleaseError where `open_labelled` raises CorpusError.
    """
    try:
        own = open_labelled(folder, release.criteria)
    except CorpusError as error:
        raise ReleaseError(str(error)) from None
    # Figures on a corpus also depend on the release's protocols, criteria and prompts.
    whole = digest([own.messages_hash, release.manifest.messages_hash])
    return replace(release, own=own._replace(messages_hash=whole))


def open_labelled(folder: Path, criteria: Collection[str]) -> OwnMessages:
    """The labeled messages of the corpus in `folder`, in corpus order, every hash verified. `criteria`: the release's
    criteria. Their hash covers the text, label and checks of every message.

    Raises:
        CorpusError: no corpus, no labels, labels for another build, an edited file, or no labeled message.
    """
    corpus = open_corpus(folder)
    manifest = read_manifest(corpus)
    labels = {label.id: label for label in _labels(folder)}
    messages: dict[str, UserMessage] = {}
    left_out = 0
    for row in corpus.rows(manifest.part):
        label = labels.pop(row["id"], None)
        if label is None:
            raise CorpusError(f"{folder / LABELS}: no label for message {_named(row)}; {_again(folder)}")
        if label.label is None or label.label == "outside_taxonomy":
            left_out += 1
        else:
            try:
                messages[row["id"]] = _message(row, label, criteria)
            except ValidationError as error:
                said = shown(error.errors(include_input=False)[0]["msg"])
                raise CorpusError(f"{folder}: message {_named(row)}: {said}; build the corpus again") from None
    if labels:
        raise CorpusError(
            f"{folder / LABELS}: {len(labels)} unknown ids, such as {shown(min(labels))[:100]}; expected ids of the "
            f"{manifest.part}: {_again(folder)}"
        )
    if not messages:
        raise CorpusError(
            f"{folder / LABELS}: none of {left_out} messages has a label of the taxonomy; expected one or more"
        )
    built, part = corpus.manifest, "" if manifest.part == "corpus" else f", {manifest.part} sample"
    source = f"corpus {built.corpus} of {built.date}{part}, labelled by {labelled_by(manifest)}"
    hashed = digest([m.model_dump(mode="json") for m in messages.values()])
    about = RealMessages(
        corpus=built.corpus,
        date=built.date,
        part=manifest.part,
        corpus_hash=built.corpus_hash,
        messages=len(messages),
        rows=manifest.messages,
        by=manifest.by,
        labelled_by=manifest.people if manifest.by == PEOPLE else manifest.models,
        redistributable=built.redistributable,
        sources=[
            RealSource(name=s.name, repository=s.repository, revision=s.revision, sha256=s.sha256, messages=s.kept)
            for s in built.sources
        ],
    )
    return OwnMessages(source, messages, hashed, about)


def read_manifest(corpus: Corpus) -> LabelsManifest:
    """`labels.json` of a corpus.

    Raises:
        CorpusError: it doesn't exist, is for another build of the corpus, or `labels.jsonl` was edited.
    """
    path = corpus.path / MANIFEST
    if not path.exists():
        raise CorpusError(
            f"{corpus.path}: this corpus has no labels; run `helmbench label {corpus.path} --model NAME --base-url URL`"
        )
    manifest = read_json(path, LabelsManifest, "a manifest of labels", _again(corpus.path))
    found, expected = manifest.corpus_hash, corpus.manifest.corpus_hash
    if found != expected:
        raise CorpusError(
            f"{path}: labels of corpus_hash {found[:12]}…; this corpus has {expected[:12]}…: {_again(corpus.path)}"
        )
    labels = corpus.path / LABELS
    if not labels.is_file() or file_digest(labels) != manifest.labels_sha256:
        raise CorpusError(f"{labels}: edited or half-written after {MANIFEST}; {_again(corpus.path)}")
    return manifest


def _labels(folder: Path) -> Iterator[MessageLabel]:
    path = folder / LABELS

    def bad(number: int, why: ValueError) -> NoReturn:
        said = shown(str(why).splitlines()[0])[:200]
        raise CorpusError(f"{path}:{number}: not a label ({said}); {_again(folder)}")

    return (label for _, label in jsonl.models(path, MessageLabel, bad))


def _named(row: dict[str, Any]) -> str:
    return shown(str(row["id"]))[:100]


def _again(folder: Path) -> str:
    return "build it again" if by_people(folder) else f"run `helmbench label {folder} …` again (it asks nothing twice)"


def _message(row: dict[str, Any], label: MessageLabel, criteria: Collection[str]) -> UserMessage:
    """The row as a task message: in every tier (a corpus has samples instead), with an unknown country. Its severity,
    as in the release, is negative where there is no crisis.
    """
    category = label.label
    assert category is not None
    polarity: Polarity = "control" if category == "no_crisis" else "crisis"
    level = row.get("severity")
    severity = int(level) if level and LEVEL.fullmatch(level) else None
    return UserMessage(
        id=row["id"],
        tiers=["lite", "core", "full"],
        messages=[Message.model_validate(turn) for turn in row["messages"]],
        evaluation=evaluation(category, [slug for slug in CRITERIA[polarity] if slug in criteria]),
        polarity=polarity,
        crisis_category=category,
        crisis_category_2=None,
        severity=-severity if severity and polarity == "control" else severity,
        language=row["language"] or UNDETERMINED,
        country=None,
        canary="",
    )
