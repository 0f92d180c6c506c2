"""Labels the category of every message in a corpus, with one or more judges, each asked several times: `helmbench
label`.

It resumes where it stopped, and writes labels.jsonl and labels.json into the corpus folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from dataset_builder.corpora.folder import Corpus, open_corpus
from dataset_builder.corpora.labelled import LABELS, MANIFEST, by_people, majority
from dataset_builder.corpora.schema import CorpusError, LabelsManifest, MessageLabel, Part, RepeatAgreement
from dataset_builder.release import Release
from dataset_builder.schema import CrisisCategory
from helmbench_common import jsonl
from helmbench_common.files import write_whole
from helmbench_common.hashing import file_digest
from judge.agreement.answers import REPEATS
from judge.llm import batch
from judge.llm.asking import Asker, announce, write_missing
from judge.llm.budget import Terms
from judge.llm.questions import CATEGORY, JudgeRequest, category_request, offered, prompt_hash, taxonomy_hash
from judge.replies.schema import RunError
from judge.statistics.agreement import Readings
from judge.statistics.coefficients import NO_OVERLAP
from judge.statistics.estimate import Estimate
from judge.wording import coefficient, percent

if TYPE_CHECKING:
    from judge.llm.engine import Endpoint

PARTS: dict[str, Part] = {"validation": "validation", "test": "test", "all": "corpus"}
Vote = CrisisCategory | None  # None: no readable answer
VOTE: TypeAdapter[Vote] = TypeAdapter(Vote)
SHOWN = 20  # unlabeled messages to list; labels.jsonl has all of them


@dataclass(frozen=True)
class Labeling:
    """A labeling job. `release`: its categories are asked; `repeats`: how often each model is asked about a message."""

    corpus: Corpus
    part: Part
    release: Release
    models: tuple[str, ...]
    repeats: int

    def asked(self, model: str) -> Iterator[tuple[str, JudgeRequest]]:
        """A model's questions, each with the id of its message, one repeat after another."""
        categories, prompts = offered(self.release), self.release.prompts
        for repeat in range(self.repeats):
            for row in self.corpus.rows(self.part):
                yield row["id"], category_request(row["messages"], categories, prompts, model, repeat)

    def questions(self, model: str) -> Iterator[JudgeRequest]:
        return (request for _, request in self.asked(model))


def labeling(
    folder: Path, release: Release, models: Sequence[str], repeats: int = REPEATS, sample: str | None = None
) -> Labeling:
    """The labeling job that the command's options describe. `sample`: validation, test or all (default: test; all if
    the corpus has no samples).
    """
    if by_people(folder):
        raise RunError(
            f"{folder / LABELS}: holds people's labels, which would be lost; build the corpus elsewhere without"
        )
    if repeats < 1 or repeats % 2 == 0:
        raise RunError(f"--repeats {repeats}: expected an odd number, so that there is a majority")
    try:
        corpus = open_corpus(folder)
        part = PARTS[sample or ("test" if corpus.manifest.samples else "all")]
        if next(corpus.rows(part), None) is None:
            raise RunError(f"{corpus.path}: no message to label in its {part}")
    except CorpusError as error:
        raise RunError(str(error)) from None
    return Labeling(corpus, part, release, tuple(dict.fromkeys(models)), repeats)


def write_requests(what: Labeling, path: Path) -> str:
    """Writes one model's missing questions as an OpenAI batch file; returns a message for the user."""
    (model,) = what.models
    where = batch.folder(what.corpus.path, model)
    count = write_missing(lambda: what.questions(model), where, path).requests
    if not count:
        return f"{where}: nothing is missing"
    return (
        f"{path}: {count:,} requests with people's words; don't send them where these may not go. Write the replies to "
        f"{where}/replies-1.jsonl, then helmbench label {what.corpus.path} --model {model} --repeats {what.repeats}"
    )


def label(what: Labeling, endpoint: Endpoint | None, terms: Terms) -> str:
    """Labels the messages by majority vote, first asking for missing answers if there is an endpoint; writes each
    model's labels, the final labels and their manifest; returns the summary.
    """
    corpus, models, manifest = what.corpus, what.models, what.corpus.manifest
    if endpoint is not None:
        announce(manifest.samples.get(what.part, manifest.rows), f"corpus {manifest.corpus}", endpoint.base_url)
    asker, votes = Asker(corpus.path, endpoint, terms), dict[str, dict[str, list[Vote]]]()
    for model in models:
        for message, given in _votes(what, model, asker).items():
            votes.setdefault(message, {})[model] = given
    labels = [settle(message, own) for message, own in votes.items()]
    if len(models) > 1:
        for model in models:
            own = [settle(message, {model: by[model]}) for message, by in votes.items()]
            write_whole(batch.folder(corpus.path, model) / LABELS, jsonl.lines(own))
    for taken in (path := corpus.path / LABELS, corpus.path / MANIFEST):
        batch.own_place(corpus.path, taken)  # a corpus may hold links to its user's files
    write_whole(path, jsonl.lines(labels))
    counts = Counter(message.label for message in labels if message.label)
    found = LabelsManifest(
        name="helmbench-labels",
        corpus=manifest.corpus,
        corpus_hash=manifest.corpus_hash,
        part=what.part,
        messages=len(labels),
        models=list(models),
        repeats=what.repeats,
        offered=list(what.release.taxonomy),
        taxonomy_hash=taxonomy_hash(what.release),
        prompt_hash=prompt_hash(what.release.prompts, CATEGORY),
        counts={name: counts[name] for name in what.release.taxonomy},
        unlabelled=len(labels) - counts.total(),
        self_agreement={model: votes_agreement([by[model] for by in votes.values()]) for model in models},
        between=votes_agreement([[*map(majority, by.values())] for by in votes.values()]) if len(models) > 1 else None,
        labels_sha256=file_digest(path),
    )
    write_whole(corpus.path / MANIFEST, found.model_dump_json(indent=2) + "\n")  # last: its files are complete
    missing = [message.id for message in labels if message.label is None]
    listed = f": {', '.join(missing[:SHOWN])}{' …' if len(missing) > SHOWN else ''}" if missing else ""
    agreed = [(f"self-agreement of {name}", own) for name, own in found.self_agreement.items() if what.repeats > 1]
    agreed += [("agreement of the models", found.between)] if found.between else []
    return "\n".join(
        [
            f"{path}: {len(labels)} messages, {len(models)} × {what.repeats} votes each",
            *(f"  {name}: {count}" for name, count in found.counts.items()),
            f"  no majority, unlabeled: {len(missing)}{listed}",
            *(f"{name}: {_shown(own)}" for name, own in agreed),
            "Labels are a model's reading of the words, not a diagnosis. Compare them with people's: `helmbench "
            "agreement` reads this file.",
        ]
    )


def _votes(what: Labeling, model: str, asker: Asker) -> dict[str, list[Vote]]:
    """One model's votes on every message, by id, in the order of its repeats."""
    stored = asker.answers(model, lambda: what.questions(model))
    votes: dict[str, list[Vote]] = {}
    for message, request in what.asked(model):
        answer = stored(request)
        votes.setdefault(message, []).append(VOTE.validate_python(None if isinstance(answer, str) else answer.label))
    if stored.lacking:
        raise RunError(
            f"{stored.where}: {len(stored.lacking)} of {what.repeats * len(votes)} questions have no answer yet; ask "
            "them with --base-url, or write them for another engine with --requests FILE and save its replies there "
            "as replies-1.jsonl"
        )
    return votes


def settle(identity: str, votes: dict[str, list[Vote]]) -> MessageLabel:
    """A message's label: each model's majority over its repeats, then the majority over models. `votes`: by model, not
    empty.
    """
    rater = next(iter(votes)) if len(votes) == 1 else "majority"
    own = majority([majority(given) for given in votes.values()])
    return MessageLabel(id=identity, label=own, rater=rater, votes=votes)


def votes_agreement(votes: Sequence[Sequence[Vote]]) -> RepeatAgreement:
    """How well the votes on each message agree: raw agreement and Fleiss' kappa over the categories that occur.
    Messages count as independent.
    """
    names = sorted({vote for own in votes for vote in own if vote is not None})
    given = {str(n): own for n, own in enumerate(zip(*votes, strict=True))}
    raw, kappa = Readings.of(given, names).repeated(NO_OVERLAP)
    return RepeatAgreement(raw=raw.value, kappa=kappa.value, **kappa.model_dump(include={"low", "high", "n", "reason"}))


def _shown(found: RepeatAgreement) -> str:
    if found.kappa is None:
        return f"Fleiss' κ – ({found.reason}), n {found.n}"
    kappa = coefficient(Estimate(value=found.kappa, low=found.low, high=found.high))
    return f"Fleiss' κ {kappa}, raw {percent(found.raw)}, {found.n} messages"
