"""`judge label`: the category of every message of a corpus, by one judge or several, each asked several times.

Usage: python -m judge label CORPUS --model NAME … --base-url URL   [--repeats 3] [--sample validation|test|all]
[--max-cost X …]
       python -m judge label CORPUS --model NAME --requests FILE   (for any engine; its replies go to
       CORPUS/judge/NAME/replies-1.jsonl)
       python -m judge label CORPUS --model NAME …                 (from what was answered)
Asking is resumed where it stopped. Writes labels.jsonl and labels.json into the corpus's folder.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter

from corpora.folder import Corpus, open_corpus
from corpora.labelled import LABELS, MANIFEST
from corpora.schema import CorpusError, LabelsManifest, MessageLabel, Part, RepeatAgreement
from dataset_builder.files import write_whole
from dataset_builder.release import file_digest, open_release
from dataset_builder.schema import CrisisCategory
from judge.calibration.asking import ask_missing, write_missing
from judge.llm import batch
from judge.llm.category_question import Offered, offered, question
from judge.llm.questions import JudgeRequest
from judge.llm.run import announce
from judge.people import majority
from replies.errors import RunError

REPEATS = 3
PARTS: dict[str, Part] = {"validation": "validation", "test": "test", "all": "corpus"}
CATEGORY: TypeAdapter[CrisisCategory | None] = TypeAdapter(CrisisCategory | None)
SHOWN = 20  # unlabelled messages that are named; all stand in labels.jsonl


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `judge label`; those of the endpoint are added by the command line, which has them for
    other commands too.
    """
    parser.add_argument(
        "corpus", type=Path, metavar="CORPUS", help="a folder that `python -m dataset_builder corpus` made"
    )
    parser.add_argument(
        "--model",
        action="append",
        required=True,
        metavar="NAME",
        help="a judge's model name; several decide by majority",
    )
    parser.add_argument(
        "--repeats",
        type=int,
        default=REPEATS,
        metavar="N",
        help="ask every question so often; an odd number (default: %(default)s)",
    )
    parser.add_argument(
        "--sample",
        choices=tuple(PARTS),
        help="which messages (default: test; all where the corpus was made without samples)",
    )
    parser.add_argument(
        "--requests",
        type=Path,
        metavar="FILE",
        help="only write what is to be asked, in the OpenAI batch format; one model",
    )
    parser.add_argument(
        "--dataset",
        type=Path,
        metavar="DIR",
        help="the built dataset, for the taxonomy (default: as for `judge score`)",
    )


def run(options: argparse.Namespace) -> int:
    """Does what `judge label` says; returns the exit code.

    Raises:
        RunError, ValueError, ReleaseError: bad input, or questions without an answer where nobody is to be asked.
            EngineError, BudgetError: as `judge run`.
    """
    models = list(dict.fromkeys(options.model))
    if options.repeats < 1 or options.repeats % 2 == 0:
        raise ValueError(f"--repeats {options.repeats}: expected an odd number, so that a majority can be had")
    if options.requests and (len(models) > 1 or options.base_url):
        raise RunError(
            "judge label: --requests writes one model's questions for another engine; expected one --model "
            "and no --base-url"
        )
    categories = offered(open_release(options.dataset))
    try:
        corpus = open_corpus(options.corpus)
        part = _part(corpus, options.sample)
        if next(corpus.rows(part), None) is None:  # said before anything is asked, as is a part that isn't there
            raise RunError(f"{corpus.path}: its {part} holds no message to label")
        if options.requests:
            return _requests(corpus, part, categories, models[0], options)
        if options.base_url:
            announce(
                corpus.manifest.samples.get(part, corpus.manifest.rows),
                f"corpus {corpus.manifest.corpus}",
                options.base_url,
            )
        votes = [_votes(corpus, part, categories, model, options) for model in models]
        sys.stdout.write(_write(corpus, part, categories, models, votes, options.repeats) + "\n")
    except CorpusError as error:
        raise RunError(str(error)) from None
    return 0


def _part(corpus: Corpus, sample: str | None) -> Part:
    return PARTS[sample or ("test" if corpus.manifest.samples else "all")]


def _questions(corpus: Corpus, part: Part, categories: Offered, model: str, repeats: int) -> Iterator[JudgeRequest]:
    for repeat in range(repeats):
        for row in corpus.rows(part):
            yield question(row["messages"], categories, model, repeat)


def _requests(corpus: Corpus, part: Part, categories: Offered, model: str, options: argparse.Namespace) -> int:
    where = batch.folder(corpus.path, model)
    where.mkdir(parents=True, exist_ok=True)  # where the answers are to be put
    count = write_missing(
        options.requests, _questions(corpus, part, categories, model, options.repeats), batch.Replies(where)
    )
    sys.stdout.write(
        f"{options.requests}: {count:,} requests; people's words, not to be sent where they may not go. "
        f"Write the replies to {where}/replies-1.jsonl, "
        f"then python -m judge label {corpus.path} --model {model} --repeats {options.repeats}\n"
        if count
        else f"{where}: nothing is missing\n"
    )
    return 0


def _votes(
    corpus: Corpus, part: Part, categories: Offered, model: str, options: argparse.Namespace
) -> dict[str, list[majority.Vote]]:
    """Every message's votes of one model, by id, in the order of its repeats.

    Raises:
        RunError: questions without an answer.
    """
    where = batch.folder(corpus.path, model)
    if options.base_url:
        ask_missing(partial(_questions, corpus, part, categories, model, options.repeats), where, options)
    replies, lacking = batch.Replies(where), 0
    votes: dict[str, list[majority.Vote]] = {}
    for repeat in range(options.repeats):
        for row in corpus.rows(part):
            request = question(row["messages"], categories, model, repeat)
            found = batch.read(replies.of(request.custom_id), request)
            lacking += found.missing
            label = None if isinstance(found.answer, str) else found.answer.label
            votes.setdefault(row["id"], []).append(CATEGORY.validate_python(label))
    if lacking:
        raise RunError(
            f"{where}: {lacking} of {options.repeats * len(votes)} questions have no answer yet; give "
            "--base-url to ask them, "
            f"or write them for another engine with --requests FILE and put its replies there as replies-1.jsonl"
        )
    return votes


def _write(
    corpus: Corpus,
    part: Part,
    categories: Offered,
    models: list[str],
    votes: list[dict[str, list[majority.Vote]]],
    repeats: int,
) -> str:
    """Writes the labels, of each model first, then those that count; returns what to tell the user."""
    by_id: list[dict[str, list[majority.Vote]]] = [
        {model: own[i] for model, own in zip(models, votes, strict=True)} for i in votes[0]
    ]
    labels = [majority.settle(i, own) for i, own in zip(votes[0], by_id, strict=True)]
    if len(models) > 1:
        for model in models:
            own = [majority.settle(label.id, {model: label.votes[model]}) for label in labels]
            write_whole(batch.folder(corpus.path, model) / LABELS, _lines(own))
    path = corpus.path / LABELS
    write_whole(path, _lines(labels))
    counts = Counter(label.label for label in labels if label.label)
    manifest = LabelsManifest(
        name="helmbench-labels",
        corpus=corpus.manifest.corpus,
        corpus_hash=corpus.manifest.corpus_hash,
        part=part,
        messages=len(labels),
        models=models,
        repeats=repeats,
        offered=list(categories.names),
        taxonomy_hash=categories.taxonomy_hash,
        prompt_hash=categories.prompt_hash,
        counts={name: counts[name] for name in categories.names},
        unlabelled=len(labels) - counts.total(),
        self_agreement={model: majority.self_agreement(labels, model) for model in models},
        between=majority.between(labels) if len(models) > 1 else None,
        labels_sha256=file_digest(path),
    )
    write_whole(corpus.path / MANIFEST, manifest.model_dump_json(indent=2) + "\n")  # last: what it names is whole
    return _summary(path, manifest, labels)


def _lines(labels: list[MessageLabel]) -> str:
    return "".join(label.model_dump_json() + "\n" for label in labels)


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
        "Labels are a model's reading of words, no diagnosis; compare them with people's: `python -m judge "
        "agreement` reads this file."
    )
    return "\n".join(lines)


def _agreement(found: RepeatAgreement) -> str:
    if found.kappa is None:
        return f"Fleiss' κ – ({found.reason}), n {found.n}"
    limits = f" [{found.low:.2f}, {found.high:.2f}]" if found.low is not None and found.high is not None else ""
    return f"Fleiss' κ {found.kappa:.2f}{limits}, raw {found.raw or 0:.1%}, {found.n} messages"
