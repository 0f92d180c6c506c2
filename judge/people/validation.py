"""Any judge against people's published labels: asks what is missing, measures, writes `validation.json`.

Asking is that of a run and of the calibration set: the same questions, resumed where they stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from dataset_builder.files import write_whole
from dataset_builder.prompts import PLAIN
from dataset_builder.release import Release
from dataset_builder.schema import CalibrationRow
from judge.calibration.asking import Examined, Passes, examine, examine_ratings
from judge.llm import batch
from judge.llm.asking import Asker, announce, refuse_lacking
from judge.llm.category_question import offered, question
from judge.llm.questions import JudgeRequest
from judge.offline import judge as offline
from judge.people.published.types import ANSWER, REFUSAL, Item, LabelledSet
from judge.people.validated import Source, Validation, measured
from judge.rules.answers import conduct
from replies.errors import RunError

FILE = "validation.json"
ONCE = Passes(1, (PLAIN,))
OFFLINE = ("offline", offline.NAME)


class Validated(NamedTuple):
    """What was measured, and where it stands."""

    figures: Validation
    path: Path


class Judged(NamedTuple):
    """A judge's own labels by item, None where it gave none, and the hash of its question."""

    labels: dict[str, str | None]
    prompt_hash: str | None


def validate(what: LabelledSet, release: Release, name: str, asker: Asker) -> Validated:
    """Measures one judge, `offline` or a model, against a set, and writes the figures into its folder.

    Raises:
        RunError: questions without an answer and nobody to ask, items that the release has no question for, or a model
        where a rule decides. EngineError, BudgetError: as `judge.llm.asking.ask`.
    """
    _has_questions(what, release)
    if name not in OFFLINE:
        if what.kind == "refusal":
            raise RunError(f"{what.name}: its labels are read by a rule that every judge shares; use --judge offline")
        if asker.endpoint is not None:
            announce(len(what.items), f"set {what.name}", asker.endpoint.base_url)
    judged = _judged(what, release, name, asker)
    source = Source(offline.NAME if name in OFFLINE else name, judged.prompt_hash, release.manifest.version)
    silent = name in OFFLINE and what.kind == "category"
    noted = replace(what, notes=(*what.notes, "the offline judge reads no categories")) if silent else what
    figures = measured(noted, judged.labels, source)
    path = (asker.home / "offline" if name in OFFLINE else asker.folder(name)) / FILE
    write_whole(path, figures.model_dump_json(indent=2) + "\n")
    return Validated(figures, path)


def _judged(what: LabelledSet, release: Release, name: str, asker: Asker) -> Judged:
    if what.kind == "refusal":
        return Judged({item.id: _refusal(item.reply) for item in what.items}, None)
    if what.kind == "category":
        return _categories(what.items, release, name, asker)
    rows = [_row(item) for item in what.items]
    ask = examine if what.kind == "criterion" else examine_ratings
    return _first_pass(ask(release, name, rows, asker, ONCE))


def _first_pass(examined: Examined) -> Judged:
    (answers,) = examined.answers.values()
    return Judged({k: answer.label for k, answer in answers.items()}, examined.identity.prompt_hash)


def _refusal(reply: str) -> str | None:
    """What the rule says; of an empty reply it can say neither."""
    found = conduct(reply)
    return REFUSAL if found == "refused" else ANSWER if found is None else None


def _row(item: Item) -> CalibrationRow:
    """An item as the row that a judge is asked about. A blank stands for an empty reply, which a rule decides."""
    return CalibrationRow(
        id=item.id,
        criterion=item.by,
        polarity="crisis",
        said=list(item.said),
        reply=item.reply or " ",
        label="",
        author="",
    )


def _categories(items: Sequence[Item], release: Release, name: str, asker: Asker) -> Judged:
    """The category of each message; the offline judge reads none."""
    if name in OFFLINE:
        return Judged(dict.fromkeys((item.id for item in items), None), None)
    choice = offered(release)

    def asked() -> Iterator[tuple[str, JudgeRequest]]:
        for item in items:
            said = [{"role": "assistant" if n % 2 else "user", "content": words} for n, words in enumerate(item.said)]
            yield item.id, question(said, choice, name, 0)

    stored = asker.answers(name, lambda: (request for _, request in asked()))
    labels = {identity: _label(stored(request)) for identity, request in asked()}
    refuse_lacking(stored, lambda: (request for _, request in asked()))
    return Judged(labels, choice.prompt_hash)


def _label(answer: batch.Answer) -> str | None:
    return None if isinstance(answer, str) else answer.label


def _has_questions(what: LabelledSet, release: Release) -> None:
    """A category without a protocol, or a criterion that the release lacks, is said before anything is asked."""
    known = {"criterion": set(release.criteria), "rating": {str(p.category) for p in release.protocols.values()}}
    if what.kind not in known:
        return
    for item in what.items:
        if item.by not in known[what.kind]:
            raise RunError(
                f"{what.name}: item {item.id} is to be judged by '{item.by}'; the dataset has "
                f"{', '.join(sorted(known[what.kind]))}"
            )
