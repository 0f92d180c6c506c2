"""The category of every message of a corpus, by one judge or several, each asked several times: `helmbench label`.

Asking is resumed where it stopped. Writes labels.jsonl and labels.json into the corpus's folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from dataset_builder.corpora.folder import Corpus, open_corpus
from dataset_builder.corpora.labelled import LABELS, MANIFEST
from dataset_builder.corpora.schema import CorpusError, LabelsManifest, MessageLabel, Part, RepeatAgreement
from dataset_builder.release import Release
from dataset_builder.schema import CrisisCategory
from helmbench_common import jsonl
from helmbench_common.files import write_whole
from helmbench_common.formats.refused import shown
from helmbench_common.hashing import file_digest
from judge.llm import batch
from judge.llm.asking import Asker, announce, write_missing
from judge.llm.budget import Terms
from judge.llm.category_question import Offered, offered, question
from judge.llm.questions import JudgeRequest
from judge.people import majority
from judge.replies.errors import RunError

if TYPE_CHECKING:
    from judge.llm.engine import Endpoint

REPEATS = 3
PARTS: dict[str, Part] = {"validation": "validation", "test": "test", "all": "corpus"}
CATEGORY: TypeAdapter[CrisisCategory | None] = TypeAdapter(CrisisCategory | None)
SHOWN = 20  # unlabelled messages that are named; all stand in labels.jsonl


@dataclass(frozen=True)
class Labelling:
    """A corpus to label: which part of it, with which categories, by whom and how often each is asked.

    Raises:
        ValueError: an even number of repeats, of which there may be no majority.
        RunError: a part without messages.
    """

    corpus: Corpus
    part: Part
    categories: Offered
    models: tuple[str, ...]
    repeats: int = REPEATS

    def __post_init__(self) -> None:
        if self.repeats < 1 or self.repeats % 2 == 0:
            raise ValueError(f"--repeats {self.repeats}: expected an odd number, so that a majority can be had")
        if next(self.corpus.rows(self.part), None) is None:  # said before anything is asked
            raise RunError(f"{self.corpus.path}: its {self.part} holds no message to label")

    def questions(self, model: str) -> Iterator[JudgeRequest]:
        return (request for _, request in self.asked(model))

    def asked(self, model: str) -> Iterator[tuple[str, JudgeRequest]]:
        """A model's questions, each with the id of its message, repeat after repeat."""
        for repeat in range(self.repeats):
            for row in self.corpus.rows(self.part):
                yield row["id"], question(row["messages"], self.categories, model, repeat)


def labelling(
    folder: Path, release: Release, models: Sequence[str], repeats: int = REPEATS, sample: str | None = None
) -> Labelling:
    """What is to be labelled. `sample`: validation, test or all (default: test; all where a corpus has no samples).

    Raises:
        RunError, ValueError: no such corpus, an empty part, or an even number of repeats.
    """
    try:
        corpus = open_corpus(folder)
        part = PARTS[sample or ("test" if corpus.manifest.samples else "all")]
        return Labelling(corpus, part, offered(release), tuple(dict.fromkeys(models)), repeats)
    except CorpusError as error:
        raise RunError(str(error)) from None


def write_requests(what: Labelling, path: Path) -> str:
    """Writes one model's questions for another engine; returns what to tell the user."""
    (model,) = what.models
    where = batch.folder(what.corpus.path, model)
    count = write_missing(lambda: what.questions(model), where, path).requests
    if not count:
        return f"{where}: nothing is missing"
    return (
        f"{path}: {count:,} requests; people's words, not to be sent where they may not go. Write the replies to "
        f"{where}/replies-1.jsonl, then helmbench label {what.corpus.path} --model {model} --repeats {what.repeats}"
    )


def label(what: Labelling, endpoint: Endpoint | None, terms: Terms) -> str:
    """Labels the messages by the majority of what was answered, asked for first if there is an endpoint; returns the
    summary.

    Raises:
        RunError: questions without an answer. EngineError, BudgetError: as `judge.llm.asking.ask`.
    """
    manifest = what.corpus.manifest
    if endpoint is not None:
        announce(manifest.samples.get(what.part, manifest.rows), f"corpus {manifest.corpus}", endpoint.base_url)
    asker = Asker(what.corpus.path, endpoint, terms)
    return _write(what, [_votes(what, model, asker) for model in what.models])


def _votes(what: Labelling, model: str, asker: Asker) -> dict[str, list[majority.Vote]]:
    """Every message's votes of one model, by id, in the order of its repeats."""
    stored = asker.answers(model, lambda: what.questions(model))
    votes: dict[str, list[majority.Vote]] = {}
    for message, request in what.asked(model):
        answer = stored(request)
        given = None if isinstance(answer, str) else answer.label
        votes.setdefault(message, []).append(CATEGORY.validate_python(given))
    if stored.lacking:
        raise RunError(
            f"{stored.where}: {len(stored.lacking)} of {what.repeats * len(votes)} questions have no answer yet; give "
            "--base-url to ask them, or write them for another engine with --requests FILE and put its replies there "
            "as replies-1.jsonl"
        )
    return votes


def _write(what: Labelling, votes: list[dict[str, list[majority.Vote]]]) -> str:
    """Writes the labels, of each model first, then those that count; returns what to tell the user."""
    corpus, models = what.corpus, what.models
    by_id = [{model: own[i] for model, own in zip(models, votes, strict=True)} for i in votes[0]]
    labels = [majority.settle(i, own) for i, own in zip(votes[0], by_id, strict=True)]
    if len(models) > 1:
        for model in models:
            own = [majority.settle(label.id, {model: label.votes[model]}) for label in labels]
            write_whole(batch.folder(corpus.path, model) / LABELS, jsonl.lines(own))
    path = corpus.path / LABELS
    for taken in (path, corpus.path / MANIFEST):
        if batch.own_place(corpus.path, taken).is_dir():
            raise RunError(f"{shown(taken)}: is a folder; expected an earlier file of labels or none")
    write_whole(path, jsonl.lines(labels))
    manifest = _manifest(what, labels, path)
    write_whole(corpus.path / MANIFEST, manifest.model_dump_json(indent=2) + "\n")  # last: what it names is whole
    return _summary(path, manifest, labels)


def _manifest(what: Labelling, labels: list[MessageLabel], path: Path) -> LabelsManifest:
    counts = Counter(label.label for label in labels if label.label)
    return LabelsManifest(
        name="helmbench-labels",
        corpus=what.corpus.manifest.corpus,
        corpus_hash=what.corpus.manifest.corpus_hash,
        part=what.part,
        messages=len(labels),
        models=list(what.models),
        repeats=what.repeats,
        offered=list(what.categories.names),
        taxonomy_hash=what.categories.taxonomy_hash,
        prompt_hash=what.categories.prompt_hash,
        counts={name: counts[name] for name in what.categories.names},
        unlabelled=len(labels) - counts.total(),
        self_agreement={model: majority.self_agreement(labels, model) for model in what.models},
        between=majority.between(labels) if len(what.models) > 1 else None,
        labels_sha256=file_digest(path),
    )


def _summary(path: Path, manifest: LabelsManifest, labels: list[MessageLabel]) -> str:
    lacking = [label.id for label in labels if label.label is None]
    lines = [f"{path}: {manifest.messages} messages, {len(manifest.models)} × {manifest.repeats} votes each"]
    lines += [f"  {name}: {count}" for name, count in manifest.counts.items()]
    lines += [
        f"  no majority, unlabelled: {len(lacking)}"
        + (f": {', '.join(lacking[:SHOWN])}{' …' if len(lacking) > SHOWN else ''}" if lacking else "")
    ]
    lines += [
        f"self-agreement of {model}: {_agreement(own)}"
        for model, own in manifest.self_agreement.items()
        if manifest.repeats > 1
    ]
    if manifest.between:
        lines.append(f"agreement of the models: {_agreement(manifest.between)}")
    lines.append(
        "Labels are a model's reading of words, no diagnosis; compare them with people's: `helmbench agreement` "
        "reads this file."
    )
    return "\n".join(lines)


def _agreement(found: RepeatAgreement) -> str:
    if found.kappa is None:
        return f"Fleiss' κ – ({found.reason}), n {found.n}"
    limits = f" [{found.low:.2f}, {found.high:.2f}]" if found.low is not None and found.high is not None else ""
    return f"Fleiss' κ {found.kappa:.2f}{limits}, raw {found.raw or 0:.1%}, {found.n} messages"
