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
from itertools import combinations
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field

from dataset_builder.prompts import PLAIN
from dataset_builder.release import Release
from dataset_builder.schema import Strict
from helmbench_common.files import write_whole
from judge.agreement.answers import Passes, Task, examine, is_offline, row_of
from judge.agreement.calibration import Confusion, confusion_of
from judge.agreement.cases import Case
from judge.agreement.published.labeled_set import ANSWER, REFUSAL, Item, LabeledSet, Scale
from judge.llm import batch
from judge.llm.asking import Asker, announce
from judge.llm.category_question import offered
from judge.offline import judge as offline
from judge.replies.schema import RunError
from judge.rules.answers import conduct
from judge.schema import JudgeName, LabelKind, LabelledRows, SetName
from judge.statistics import coefficients as c
from judge.statistics.agreement import Pair
from judge.statistics.coefficients import Codes
from judge.statistics.estimate import Estimate

FOLDER = "validation"  # in a judge's folder: one file for each set and half
WIDEST = 10
Answers = Mapping[str, str | None]  # a judge's labels by item; None if missing


class Figures(Strict):
    """Agreement on some items. `decided`: items that the judge labeled. `kappa`: the judge with the people's common
    label; `raters`: with each person; `people`: between people; `published`: other judges with the common label.
    """

    items: int
    decided: int
    kappa: Estimate
    raters: dict[str, Estimate]
    people: Estimate
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


class Validation(Figures):
    """One judge against a set of human labels. Contains no message or reply text.

    `asked`: hashes of the criteria, protocols or taxonomy in the judge's questions, by name. `statistic`, `reference`,
    `among`: the statistic behind `kappa`, the common label it uses, and the statistic behind `people`. Figures are from
    the judge's first pass; `passes` has each pass, and `between` is κ between passes, the mean over pairs; null with
    one pass. `coarse`: the same on fewer labels, such as crisis or not. `groups`: by category, dimension or model.
    `answers`: how often the judge chose each of its own labels. `widest`: ids of the items with the largest
    disagreements.
    """

    format: Literal["helmbench-validation-1"] = "helmbench-validation-1"
    set: SetName
    rows: LabelledRows
    kind: LabelKind
    judge: JudgeName
    prompt_hash: str | None = Field(max_length=64)
    dataset: str = Field(max_length=64)
    asked: dict[str, str]
    statistic: Literal["Cohen's κ, quadratic", "Cohen's κ"]
    reference: Literal["mean", "settled", "majority"]
    among: Literal["Cohen's κ, mean over pairs", "Fleiss' κ"]
    per_class: dict[str, ClassFigures]
    confusion: Confusion
    coarse: Figures | None
    groups: dict[str, Figures]
    answers: dict[str, int]
    widest: list[str]
    passes: list[PassFigures] = Field(min_length=1)
    between: Estimate | None
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
    known = _hashes(what.kind, release)
    if odd := [item for item in what.items if known and item.by not in known]:
        expected = ", ".join(sorted(known))
        raise RunError(f"{what.name}: item {odd[0].id} is judged by '{odd[0].by}'; expected one of {expected}")
    if is_offline(name):
        if what.kind == "category":
            what = replace(what, notes=(*what.notes, "the offline judge reads no categories"))
    elif what.kind == "refusal":
        raise RunError(f"{what.name}: a rule that all judges share reads its labels; expected --judge offline")
    elif asker.endpoint is not None:
        announce(len(what.items), f"set {what.name}", asker.endpoint.base_url)
    passes, key = _judged(what, release, name, asker, Passes(repeats, (PLAIN,)))
    asked = asked_by(what.kind, {item.by for item in what.items}, release)
    source = Source(offline.NAME if is_offline(name) else name, key, release.manifest.version, asked)
    figures = measured(what, passes[0], source, passes[1:])
    path = place(asker.home, name, is_offline(name)) / f"{what.name}-{what.rows}.json"
    write_whole(path, figures.model_dump_json(indent=2) + "\n")
    return figures, path


def place(home: Path, judge: str, offline: bool) -> Path:
    """The folder of a judge's validations below `home`."""
    return batch.own_place(home, (home / "offline" if offline else batch.folder(home, judge)) / FOLDER)


def asked_by(kind: LabelKind, names: Iterable[str], release: Release) -> dict[str, str]:
    """Hashes of the inputs to a set's question other than its prompt: the criteria or protocols in `names`, or the
    taxonomy. Empty for a rule; names missing from the release are skipped.
    """
    if kind == "category":
        return {"taxonomy": offered(release).taxonomy_hash[:16]}
    known = _hashes(kind, release)
    return {name: known[name] for name in sorted(set(names)) if name in known}


def _hashes(kind: LabelKind, release: Release) -> dict[str, str]:
    """Of the criteria or protocols that a set's items can be judged by."""
    if kind == "criterion":
        return {name: row.criterion_hash for name, row in release.criteria.items()}
    return {str(row.category): row.protocol_hash for row in release.protocols.values()} if kind == "rating" else {}


def _judged(
    what: LabeledSet, release: Release, name: str, asker: Asker, passes: Passes
) -> tuple[list[Answers], str | None]:
    """A judge's original labels by item, for each pass, and the hash of its question."""
    if what.kind == "refusal":
        said = {"refused": REFUSAL, None: ANSWER}  # an empty or cut-off reply is neither
        return [{item.id: said.get(conduct(item.reply)) for item in what.items}], None
    # A blank replaces an empty reply, which a rule would decide.
    rows = [row_of(Case(item.id, item.by, item.said, item.reply or " ")) for item in what.items]
    (judged,) = examine(release, name, [Task(what.kind, rows)], asker, passes)
    found: list[Answers] = [{k: own.label for k, own in labels.items()} for labels in judged.repeats]
    return found, judged.identity.prompt_hash


class _Columns:
    """Labels of items as codes on one scale, shape (items,); -1 if missing."""

    def __init__(self, items: Sequence[Item], answers: Answers, scale: Scale) -> None:
        self.items, self.scale = items, scale
        self.people = np.array([scale.common(item) for item in items], dtype=np.int64)
        self.judge = self.of(answers[item.id] for item in items)
        families = [item.family or f"item {item.id}" for item in items]
        self.clusters: Codes = np.unique(families, return_inverse=True)[1].astype(np.int64)

    def of(self, labels: Iterable[str | None]) -> Codes:
        return np.array([self.scale.code(x) for x in labels], dtype=np.int64)

    def by_name(self, labels: Sequence[Mapping[str, str]]) -> dict[str, Codes]:
        """The labels of each rater or judge that `labels`, one mapping per item, names."""
        names = dict.fromkeys(name for own in labels for name in own)
        return {name: self.of(own.get(name) for own in labels) for name in names}

    def pair(self, first: Codes, second: Codes) -> Pair:
        return Pair(first, second, len(self.scale.labels), self.clusters)

    def cohen(self, first: Codes, second: Codes) -> c.Coefficient:
        """Cohen's κ of two raters: quadratic for numbers, otherwise unweighted."""
        return self.pair(first, second).cohen("quadratic" if self.scale.numbers else "identity")

    def kappa(self, first: Codes, second: Codes) -> Estimate:
        return c.estimate(self.cohen(first, second))

    def over_pairs(self, columns: Sequence[Codes]) -> Estimate:
        found = [self.cohen(a, b) for a, b in combinations(columns, 2)]
        return c.estimate(c.mean_of(found, max(own.items for own in found)))

    def figures(self) -> Figures:
        people = self.by_name([item.labels for item in self.items])
        published = self.by_name([item.published for item in self.items])
        return Figures(
            items=len(self.items),
            decided=int(np.sum(self.judge >= 0)),
            kappa=self.kappa(self.people, self.judge),
            raters={name: self.kappa(own, self.judge) for name, own in people.items()},
            people=self._among(list(people.values())),
            published={name: self.kappa(self.people, own) for name, own in published.items()},
        )

    def _among(self, raters: Sequence[Codes]) -> Estimate:
        """Agreement between people: for numbers, or for two people, Cohen's κ, the mean over pairs; for more people,
        who may differ from item to item, Fleiss' κ.
        """
        if len(raters) < 2:
            return Estimate(value=None, reason="the set has the labels of one person only")
        if self.scale.numbers or len(raters) == 2:
            return self.over_pairs(raters)
        counts = c.label_counts(np.stack(raters, axis=1), len(self.scale.labels))
        several = counts.sum(axis=1) > 1
        return c.estimate(c.fleiss(counts[several], self.clusters[several]))


def measured(what: LabeledSet, answers: Answers, source: Source, again: Sequence[Answers] = ()) -> Validation:
    """Every figure. `answers`: the judge's original labels; `again`: those of additional, independent passes."""
    passes = [{k: what.reading(label) for k, label in own.items()} for own in (answers, *again)]
    read, scale, items = passes[0], what.scale, what.items
    columns = [_Columns(items, own, scale) for own in passes]
    first = columns[0]
    groups = sorted({name for item in items for name in item.groups})
    raters = {name for item in items for name in item.labels}
    settled = any(item.settled is not None for item in items)
    return Validation(
        set=what.name,
        rows=what.rows,
        kind=what.kind,
        **source._asdict(),
        statistic="Cohen's κ, quadratic" if scale.numbers else "Cohen's κ",
        reference="mean" if scale.numbers else "settled" if settled else "majority",
        among="Cohen's κ, mean over pairs" if scale.numbers or len(raters) < 3 else "Fleiss' κ",
        **first.figures().model_dump(),
        **_by_label(first),
        coarse=_coarse(items, read, scale),
        groups={k: _Columns([item for item in items if k in item.groups], read, scale).figures() for k in groups},
        answers=dict(Counter(label for label in answers.values() if label is not None).most_common()),
        widest=_widest(first),
        passes=[
            PassFigures(decided=int(np.sum(own.judge >= 0)), kappa=own.kappa(own.people, own.judge)) for own in columns
        ],
        between=first.over_pairs([own.judge for own in columns]) if again else None,
        notes=list(what.notes),
    )


def _by_label(columns: _Columns) -> dict[str, dict[str, ClassFigures] | Confusion]:
    pair, labels = columns.pair(columns.people, columns.judge), columns.scale.labels
    both = pair.take(pair.both)
    classes = {
        label: ClassFigures(
            people=int(np.sum(both.first == k)),
            judge=int(np.sum(both.second == k)),
            recall=both.recall(k, "people never gave this label"),
            precision=both.turned.recall(k, "the judge never gave this label"),
        )
        for k, label in enumerate(labels)
    }
    return {"per_class": classes, "confusion": confusion_of(pair, labels)}


def _coarse(items: Sequence[Item], answers: Answers, scale: Scale) -> Figures | None:
    """The figures on the coarser labels; each person's label is mapped before the common label is determined."""
    to = scale.coarse
    if not to:
        return None
    mapped = [
        item._replace(
            labels={name: to[x] for name, x in item.labels.items()},
            published={name: to[x] for name, x in item.published.items()},
        )
        for item in items
    ]
    read = {k: None if x is None else to[x] for k, x in answers.items()}
    return _Columns(mapped, read, Scale(tuple(dict.fromkeys(to.values())))).figures()


def _widest(columns: _Columns) -> list[str]:
    """The ids of the items on which judge and people differ most; for labels without distances, items with a larger
    majority for the common label come first.
    """
    apart: list[tuple[float, int, str]] = []
    for n, (item, people, judge) in enumerate(zip(columns.items, columns.people, columns.judge, strict=True)):
        if people < 0 or judge < 0 or people == judge:
            continue
        given = columns.of(item.labels.values())
        agreed = float(np.mean(given == people)) if given.size else 0.0
        apart.append((-abs(float(people - judge)) if columns.scale.numbers else -agreed, n, item.id))
    return [identity for _, _, identity in sorted(apart)[:WIDEST]]
