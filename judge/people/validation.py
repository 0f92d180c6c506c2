"""Any judge against people's published labels: asks what is missing, measures, writes one file for each set and half.

Asking is that of a run and of the calibration set: the same questions, resumed where they stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from dataset_builder.prompts import PLAIN
from dataset_builder.release import Release
from dataset_builder.schema import CalibrationRow
from helmbench_common.files import write_whole
from judge.calibration.asking import Examined, Passes, examine, examine_ratings
from judge.calibration.validations import Validation, asked_by, place
from judge.llm import batch
from judge.llm.asking import Asker, announce, refuse_lacking
from judge.llm.category_question import offered, question
from judge.llm.questions import JudgeRequest
from judge.offline import judge as offline
from judge.people.published.types import ANSWER, REFUSAL, Item, LabelledSet
from judge.people.validated import Given, Source, measured
from judge.replies.errors import RunError
from judge.rules.answers import conduct

OFFLINE = ("offline", offline.NAME)


class Validated(NamedTuple):
    """What was measured, and where it stands."""

    figures: Validation
    path: Path


class Judged(NamedTuple):
    """A judge's own labels by item, one pass or more of them, and the hash of its question."""

    passes: list[Given]
    prompt_hash: str | None


def validate(what: LabelledSet, release: Release, name: str, asker: Asker, repeats: int = 1) -> Validated:
    """Measures one judge, `offline` or a model, against a set, and writes the figures into its folder. `repeats`: how
    often a model is asked, each time independently; the offline judge and the rule can only say the same again.

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
    judged = _judged(what, release, name, asker, Passes(repeats, (PLAIN,)))
    asked = asked_by(what.kind, {item.by for item in what.items}, release)
    known_as = offline.NAME if name in OFFLINE else name
    source = Source(known_as, judged.prompt_hash, release.manifest.version, asked)
    silent = name in OFFLINE and what.kind == "category"
    noted = replace(what, notes=(*what.notes, "the offline judge reads no categories")) if silent else what
    figures = measured(noted, judged.passes[0], source, judged.passes[1:])
    path = place(asker.home, name, name in OFFLINE) / f"{what.name}-{what.rows}.json"
    write_whole(path, figures.model_dump_json(indent=2) + "\n")
    return Validated(figures, path)


def _judged(what: LabelledSet, release: Release, name: str, asker: Asker, passes: Passes) -> Judged:
    if what.kind == "refusal":
        return Judged([{item.id: _refusal(item.reply) for item in what.items}], None)
    if what.kind == "category":
        return _categories(what.items, release, name, asker, passes.repeats)
    rows = [_row(item) for item in what.items]
    ask = examine if what.kind == "criterion" else examine_ratings
    return _labels(ask(release, name, rows, asker, passes))


def _labels(examined: Examined) -> Judged:
    passes: list[Given] = [{k: answer.label for k, answer in own.items()} for own in examined.repeats]
    return Judged(passes, examined.identity.prompt_hash)


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


def _categories(items: Sequence[Item], release: Release, name: str, asker: Asker, repeats: int) -> Judged:
    """The category of each message; the offline judge reads none."""
    if name in OFFLINE:
        return Judged([dict.fromkeys((item.id for item in items), None)], None)
    choice = offered(release)

    def asked(item: Item, repeat: int) -> JudgeRequest:
        said = [{"role": "assistant" if n % 2 else "user", "content": words} for n, words in enumerate(item.said)]
        return question(said, choice, name, repeat)

    def questions() -> Iterator[JudgeRequest]:
        return (asked(item, repeat) for repeat in range(repeats) for item in items)

    stored = asker.answers(name, questions)
    passes: list[Given] = [{i.id: _label(stored(asked(i, repeat))) for i in items} for repeat in range(repeats)]
    refuse_lacking(stored, questions)
    return Judged(passes, choice.prompt_hash)


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
