"""How well a judge agrees with human labels: `helmbench validate` asks the judge, measures agreement and writes one
file for each set and half.

Ratings are compared by quadratic κ with the people's mean rating, rounded half up: a reply counts as rated 1 if both of
two people rated it 1. Other labels are compared by Cohen's κ with the raters' consensus label, if the set has one, or
else with the majority label of more than half of an item's raters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field

from dataset_builder.prompts import PLAIN
from dataset_builder.release import Release
from dataset_builder.schema import Strict
from helmbench_common.files import write_whole
from judge.agreement.answers import JudgeLabel, JudgeLabels, Passes, Task, examine, is_offline, row_of
from judge.agreement.calibration import Confusion, confusion_of
from judge.agreement.cases import Case
from judge.agreement.published.labeled_set import ANSWER, REFUSAL, Item, LabeledSet, Scale
from judge.llm import batch
from judge.llm.asking import Asker, announce
from judge.llm.questions import taxonomy_hash
from judge.offline import judge as offline
from judge.replies.schema import RunError
from judge.rules.answers import conduct
from judge.schema import LabelKind, PeopleFigures, PeopleSet
from judge.statistics.agreement import Readings
from judge.statistics.coefficients import Weighting
from judge.statistics.estimate import Estimate
from judge.verdicts import JudgeIdentity

FOLDER = "validation"  # in a judge's folder: one file for each set and half
WIDEST = 10
Answers = Mapping[str, str | None]  # a judge's labels by item; None if missing


class Figures(PeopleFigures):
    """Also `raters`: the judge with each person; `published`: other judges with the common label."""

    raters: dict[str, Estimate]
    published: dict[str, Estimate]

    @property
    def unscored(self) -> float:
        """The share that the judge left unscored, 0 to 1."""
        return 1 - self.decided / self.items if self.items else 0.0


class ClassFigures(Strict):
    """One label. `people`, `judge`: how often each chose it, on items labeled by both. `recall`: of the items with this
    label from people, the share that also have it from the judge; `precision`: the reverse.
    """

    people: int
    judge: int
    recall: Estimate
    precision: Estimate


class PassFigures(Strict):
    """One independent pass of the judge: the number of items labeled, and agreement with the people's common label."""

    decided: int
    kappa: Estimate


class Validation(Figures, PeopleSet):
    """One judge against a set of human labels. Contains no message or reply text.

    `asked`: hashes of the criteria, protocols or taxonomy in the judge's questions, by name. `reference`, `among`: the
    people's common label, and the statistic behind `people`. Figures are from the judge's first pass; `passes` has each
    pass, and `between` is the mean over pairs of them; null with one. `coarse`: the same on fewer labels, such as
    crisis or not. `groups`: by category, dimension or model. `answers`: how often the judge chose each of its own
    labels. `widest`: ids of the items with the largest disagreements.
    """

    format: Literal["helmbench-validation-1"] = "helmbench-validation-1"
    asked: dict[str, str]
    reference: Literal["mean", "settled", "majority"]
    among: Literal["Cohen's κ, mean over pairs", "Fleiss' κ"]
    per_class: dict[str, ClassFigures]
    confusion: Confusion
    coarse: Figures | None
    groups: dict[str, Figures]
    answers: dict[str, int]
    widest: list[str]
    passes: list[PassFigures] = Field(min_length=1)
    notes: list[str]


class Source(NamedTuple):
    """The judge's name, the hash of its question, the dataset with the question, and the hashes of the criteria,
    protocols or taxonomy in it.
    """

    judge: str
    prompt_hash: str | None
    dataset: str
    asked: Mapping[str, str] = {}


def validate(what: LabeledSet, release: Release, name: str, asker: Asker, repeats: int = 1) -> tuple[Validation, Path]:
    """Measures one judge, `offline` or a model, against a set, and writes the figures to its folder; returns them and
    their file. `repeats`: how often a model is independently asked each question.
    """
    release = asking(what, release)
    known = _hashes(what.kind, release)
    if odd := [item for item in what.items if known and item.by not in known]:
        expected = ", ".join(sorted(known))
        raise RunError(f"{what.name}: item {odd[0].id} is judged by '{odd[0].by}'; expected one of {expected}")
    if not any(item.labels or item.settled is not None for item in what.items):
        raise RunError(f"{what.name}: no person labeled it; `helmbench read` reads sets without labels")
    if is_offline(name):
        if what.kind == "category":
            what = what._replace(notes=(*what.notes, "the offline judge reads no categories"))
    elif what.kind == "refusal":
        raise RunError(f"{what.name}: a rule that all judges share reads its labels; expected --judge offline")
    elif asker.endpoint is not None:
        announce(len(what.items), f"set {what.name}", asker.endpoint.base_url)
    identity, passes = judged(what, release, name, asker, repeats)
    asked = asked_by(what.kind, {item.by for item in what.items}, release)
    source = Source(identity.name, identity.prompt_hash, release.manifest.version, asked)
    figures = measured(what, [{k: own.label for k, own in each.items()} for each in passes], source)
    path = place(asker.home, name, is_offline(name)) / f"{what.name}-{what.rows}.json"
    write_whole(path, figures.model_dump_json(indent=2) + "\n")
    return figures, path


def judged(
    what: LabeledSet, release: Release, name: str, asker: Asker, repeats: int = 1
) -> tuple[JudgeIdentity, list[JudgeLabels]]:
    """A judge's labels of every item, by id, in each of its passes. Refusals are read by a rule that all judges share.
    `release`: as `asking` returns it.
    """
    if what.kind == "refusal":
        said = {"refused": REFUSAL, None: ANSWER}  # an empty or cut-off reply is neither
        states = {item.id: conduct(item.reply) for item in what.items}
        labels = {
            key: JudgeLabel(said.get(state), None if state in said else state, by_rule=True)
            for key, state in states.items()
        }
        return JudgeIdentity(offline.NAME, None), [labels]
    # A blank replaces an empty reply, which a rule would decide.
    rows = [row_of(Case(item.id, item.by, item.said, item.reply or " ", item.country)) for item in what.items]
    (found,) = examine(release, name, [Task(what.kind, rows)], asker, Passes(repeats, (PLAIN,)))
    return found.identity, found.repeats


def asking(what: LabeledSet, release: Release) -> Release:
    """The release, with the set's own question, and the criteria of whole talks, among its criteria."""
    own = {} if what.question is None else {what.question.criterion: what.question}
    view = replace(release)
    view.__dict__.update(release.__dict__)  # what was read stays read
    view.__dict__["criteria"] = {**release.criteria, **release.talk_criteria, **own}
    return view


def place(home: Path, judge: str, offline: bool) -> Path:
    """The folder of a judge's validations below `home`."""
    return batch.own_place(home, (home / "offline" if offline else batch.folder(home, judge)) / FOLDER)


def asked_by(kind: LabelKind, names: Iterable[str], release: Release) -> dict[str, str]:
    """Hashes of the inputs to a set's question other than its prompt: the criteria or protocols in `names`, or the
    taxonomy. Empty for a rule; names missing from the release are skipped.
    """
    if kind == "category":
        return {"taxonomy": taxonomy_hash(release)[:16]}
    known = _hashes(kind, release)
    return {name: known[name] for name in sorted(set(names)) if name in known}


def _hashes(kind: LabelKind, release: Release) -> dict[str, str]:
    """Of the criteria or protocols that a set's items can be judged by."""
    if kind == "criterion":
        return {name: row.criterion_hash for name, row in release.criteria.items()}
    return {str(row.category): row.protocol_hash for row in release.protocols.values()} if kind == "rating" else {}


COMMON, FIRST = "people", "judge 1"  # columns of `_readings`


def _readings(items: Sequence[Item], passes: Sequence[Answers], scale: Scale) -> Readings:
    """Columns: people's common label, the judge's by pass (judge 1, …), each person's (rater NAME), and those of other
    judges (published NAME).
    """
    columns: dict[str, list[str | None]] = {COMMON: [scale.common(item) for item in items]}
    for n, answers in enumerate(passes, start=1):
        columns[f"judge {n}"] = [answers[item.id] for item in items]
    for name in dict.fromkeys(name for item in items for name in item.labels):
        columns[f"rater {name}"] = [item.labels.get(name) for item in items]
    for name in dict.fromkeys(name for item in items for name in item.published):
        columns[f"published {name}"] = [item.published.get(name) for item in items]
    families = [item.family or f"item {item.id}" for item in items]
    return Readings.of(columns, scale.labels, scale.numbers, families)


def _columns(own: Readings, kind: str) -> dict[str, str]:
    """The columns of a kind that have a label, by name."""
    used = [name for name in own.raters if (own.between(name).codes >= 0).any()]
    return {name.removeprefix(f"{kind} "): name for name in used if name.startswith(f"{kind} ")}


def _weights(own: Readings) -> Weighting:
    return "quadratic" if own.ordered else "identity"


def _figures(own: Readings) -> Figures:
    def kappa(*columns: str) -> Estimate:
        return own.between(*columns).kappa(_weights(own))

    raters = _columns(own, "rater")
    people = own.between(*raters.values())
    # People who may differ from item to item have no pairs; numbers are weighted, which Fleiss' κ isn't.
    if len(raters) < 2:
        among = Estimate(value=None, reason="the set has the labels of one person only")
    elif own.ordered or len(raters) == 2:
        among = people.kappa(_weights(own))
    else:
        among = people.take(people.several).fleiss()
    return Figures(
        items=len(own.codes),
        decided=int((own.between(FIRST).codes >= 0).sum()),
        kappa=kappa(COMMON, FIRST),
        raters={name: kappa(column, FIRST) for name, column in raters.items()},
        people=among,
        published={name: kappa(COMMON, column) for name, column in _columns(own, "published").items()},
    )


def measured(what: LabeledSet, answers: Sequence[Answers], source: Source) -> Validation:
    """Every figure. `answers`: the judge's original labels in each of its independent passes; the first is measured."""
    passes = [{k: what.reading(label) for k, label in own.items()} for own in answers]
    scale, items = what.scale, what.items
    whole = _readings(items, passes, scale)
    with_people = [whole.between(COMMON, f"judge {n}") for n in range(1, 1 + len(passes))]
    first = with_people[0]
    settled = any(item.settled is not None for item in items)
    confusion, judge_first = confusion_of(first), first.between(FIRST, COMMON)
    return Validation(
        set=what.name,
        source=what.source,
        rows=what.rows,
        kind=what.kind,
        **source._asdict(),
        statistic="Cohen's κ, quadratic" if scale.numbers else "Cohen's κ",
        reference="mean" if scale.numbers else "settled" if settled else "majority",
        among="Cohen's κ, mean over pairs" if scale.numbers or len(_columns(whole, "rater")) < 3 else "Fleiss' κ",
        **_figures(whole).model_dump(),
        per_class={
            label: ClassFigures(
                people=sum(confusion.table[k]),
                judge=sum(row[k] for row in confusion.table),
                recall=first.recall(k, "people never gave this label"),
                precision=judge_first.recall(k, "the judge never gave this label"),
            )
            for k, label in enumerate(scale.labels)
        },
        confusion=confusion,
        coarse=_figures(_readings(*_coarse(what, passes[0]))) if scale.coarse else None,
        groups={
            name: _figures(whole.take(np.array([name in item.groups for item in items])))
            for name in sorted({name for item in items for name in item.groups})
        },
        answers=dict(Counter(label for label in answers[0].values() if label is not None).most_common()),
        widest=_widest(items, whole),
        passes=[PassFigures(decided=int((p.codes[:, 1] >= 0).sum()), kappa=p.kappa(_weights(p))) for p in with_people],
        between=whole.between(*(p.raters[1] for p in with_people)).kappa(_weights(whole)) if len(passes) > 1 else None,
        notes=list(what.notes),
    )


def _coarse(what: LabeledSet, answers: Answers) -> tuple[list[Item], list[Answers], Scale]:
    """The set and a judge's labels on the coarser scale; each person's label is mapped before the common label is
    determined.
    """
    to = what.scale.coarse
    mapped = [
        item._replace(
            labels={name: to[x] for name, x in item.labels.items()},
            published={name: to[x] for name, x in item.published.items()},
        )
        for item in what.items
    ]
    return mapped, [{k: x and to[x] for k, x in answers.items()}], Scale(tuple(dict.fromkeys(to.values())))


def _widest(items: Sequence[Item], own: Readings) -> list[str]:
    """The ids of the items on which judge and people differ most; for labels without distances, items with a larger
    majority for the common label come first.
    """
    people, judge = own.between(COMMON, FIRST).codes.T
    given = own.between(*_columns(own, "rater").values()).codes
    alike = (given == people[:, None]).sum(axis=1) / np.maximum((given >= 0).sum(axis=1), 1)
    distance = np.abs(people - judge) if own.ordered else alike
    apart = np.flatnonzero((people >= 0) & (judge >= 0) & (people != judge))
    return [items[k].id for k in apart[np.argsort(-distance[apart], kind="stable")][:WIDEST]]
