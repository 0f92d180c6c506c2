"""A judge's labels beside people's: how far it agrees with them, and they with each other. Pure.

Ratings are compared by quadratic κ with the people's mean, rounded to a rating, half a step up: a reply counts as rated
1 where both of two people rated it 1. Other labels are compared by Cohen's κ with the label that the raters settled on
together, where the set has it, or else that more than half of an item's raters gave.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from judge.calibration.validations import ClassFigures, Figures, PassFigures, Table, Validation
from judge.people.published.types import Item, LabelledSet, Scale, rounded
from judge.statistics import clustered
from judge.statistics import coefficients as c
from judge.statistics.coefficients import Array, Codes, Statistic
from judge.statistics.estimate import Estimate

WIDEST = 10
Given = Mapping[str, str | None]  # a judge's labels by item; None: it gave none


class Source(NamedTuple):
    """Who judged: a judge's name, the hash of its question, the dataset that it stands in, and the hashes of the
    criteria, protocols or taxonomy that it was asked by.
    """

    judge: str
    prompt_hash: str | None
    dataset: str
    asked: Mapping[str, str] = {}


def measured(what: LabelledSet, answers: Given, source: Source, again: Sequence[Given] = ()) -> Validation:
    """Everything that is measured. `answers`: the judge's own labels, by item; None where it gave none. `again`: those
    of further, independent passes.
    """
    passes = [_read(what, own) for own in (answers, *again)]
    given = passes[0]
    groups = sorted({name for item in what.items for name in item.groups})
    numbers, settled = what.scale.numbers, any(i.settled is not None for i in what.items)
    return Validation(
        set=what.name,
        rows=what.rows,
        kind=what.kind,
        judge=source.judge,
        prompt_hash=source.prompt_hash,
        dataset=source.dataset,
        asked=dict(source.asked),
        statistic="Cohen's κ, quadratic" if numbers else "Cohen's κ",
        reference="mean" if numbers else "settled" if settled else "majority",
        among="Cohen's κ, mean over pairs" if numbers or len(_raters(what.items)) < 3 else "Fleiss' κ",
        **_figures(what.items, given, what.scale).model_dump(),
        per_class=_classes(what.items, given, what.scale),
        confusion=_confusion(what.items, given, what.scale),
        coarse=_coarse(what, given),
        groups={name: _figures([i for i in what.items if name in i.groups], given, what.scale) for name in groups},
        answers=dict(Counter(label for label in answers.values() if label is not None).most_common()),
        widest=_widest(what.items, given, what.scale),
        passes=[_pass(what, own) for own in passes],
        between=_between(what, passes),
        notes=list(what.notes),
    )


def _read(what: LabelledSet, answers: Given) -> Given:
    """A judge's own labels on the set's scale."""
    return {k: None if label is None else what.reading(label) for k, label in answers.items()}


def _pass(what: LabelledSet, given: Given) -> PassFigures:
    judge = _judge(what.items, given, what.scale)
    return PassFigures(
        decided=int(np.sum(~np.isnan(judge))),
        kappa=kappa(_common(what.items, what.scale), judge, _families(what.items), what.scale),
    )


def _between(what: LabelledSet, passes: Sequence[Given]) -> Estimate | None:
    """How far a judge's passes agree among themselves: κ as with people, the mean over pairs of them."""
    if len(passes) < 2:
        return None
    columns = [_judge(what.items, given, what.scale) for given in passes]
    return _over_pairs(columns, _families(what.items), what.scale)


def common(item: Item, scale: Scale) -> float | None:
    """The people's common label as a number: their mean, what they settled on, or their majority; None without one."""
    if scale.numbers:
        return rounded(float(np.mean([scale.value(x) for x in item.labels.values()]))) if item.labels else None
    if item.settled is not None:
        return scale.value(item.settled)
    ranked = Counter(item.labels.values()).most_common(1)
    return scale.value(ranked[0][0]) if ranked and 2 * ranked[0][1] > len(item.labels) else None


def label_of(item: Item, scale: Scale) -> str | None:
    """The common label itself."""
    value = common(item, scale)
    return None if value is None else next(x for x in scale.labels if scale.value(x) == value)


def kappa(first: Array, second: Array, families: Codes, scale: Scale) -> Estimate:
    """Cohen's κ of two raters' values, NaN where one is missing: quadratic between numbers, else unweighted."""
    return clustered.measure(_cohen(first, second, scale), families, _both(first, second))


def _cohen(first: Array, second: Array, scale: Scale) -> Statistic:
    values = np.unique(np.concatenate([first, second]))
    values = values[~np.isnan(values)]
    return c.cohen(_codes(first, values), _codes(second, values), _weights(values, scale))


def _weights(values: Array, scale: Scale) -> Array:
    """How much two values agree: 1 − (their distance / that of the scale's ends)², or whether they are the same."""
    if not scale.numbers:
        return np.eye(len(values))
    reach = scale.value(scale.labels[-1]) - scale.value(scale.labels[0])
    weights: Array = 1.0 - (np.subtract.outer(values, values) / reach) ** 2
    return weights


def _codes(given: Array, values: Array) -> Codes:
    return np.where(np.isnan(given), -1, np.searchsorted(values, given)).astype(np.int64)


def _both(first: Array, second: Array) -> int:
    return int(np.sum(~np.isnan(first) & ~np.isnan(second)))


def _raters(items: Sequence[Item]) -> list[str]:
    return list(dict.fromkeys(name for item in items for name in item.labels))


def _column(items: Sequence[Item], labels: Sequence[str | None], scale: Scale) -> Array:
    return np.array([math.nan if x is None else scale.value(x) for x in labels], dtype=np.float64).reshape(len(items))


def _judge(items: Sequence[Item], given: Given, scale: Scale) -> Array:
    return _column(items, [given[i.id] for i in items], scale)


def _common(items: Sequence[Item], scale: Scale) -> Array:
    values = [common(item, scale) for item in items]
    return np.array([math.nan if v is None else v for v in values], dtype=np.float64)


def _families(items: Sequence[Item]) -> Codes:
    """One code for items of one family; an item without any is its own."""
    codes: Codes = np.unique([i.family or f"item {i.id}" for i in items], return_inverse=True)[1].astype(np.int64)
    return codes


def _figures(items: Sequence[Item], given: Given, scale: Scale) -> Figures:
    families, people = _families(items), _common(items, scale)
    judge = _judge(items, given, scale)
    raters = {name: _column(items, [i.labels.get(name) for i in items], scale) for name in _raters(items)}
    judges = dict.fromkeys(name for item in items for name in item.published)
    others = {name: _column(items, [i.published.get(name) for i in items], scale) for name in judges}
    return Figures(
        items=len(items),
        decided=int(np.sum(~np.isnan(judge))),
        kappa=kappa(people, judge, families, scale),
        raters={name: kappa(own, judge, families, scale) for name, own in raters.items()},
        people=_among(list(raters.values()), families, scale),
        published={name: kappa(people, own, families, scale) for name, own in others.items()},
    )


def _among(raters: Sequence[Array], families: Codes, scale: Scale) -> Estimate:
    """People among themselves: of numbers, or of two people, Cohen's κ, the mean over pairs; of more, who may differ
    from item to item, Fleiss' κ.
    """
    if len(raters) < 2:
        return Estimate(value=None, reason="the set has the labels of one person only")
    if scale.numbers or len(raters) == 2:
        return _over_pairs(raters, families, scale)
    counts = np.stack([sum(own == scale.value(x) for own in raters) for x in scale.labels], axis=1).astype(np.float64)
    several = counts.sum(axis=1) > 1
    return clustered.measure(c.fleiss(counts[several]), families[several], int(several.sum()))


def _over_pairs(columns: Sequence[Array], families: Codes, scale: Scale) -> Estimate:
    """The mean of Cohen's κ over pairs of two or more."""
    pairs = list(combinations(columns, 2))
    found = c.mean_of([_cohen(a, b, scale) for a, b in pairs], len(families))
    return clustered.measure(found, families, max(_both(a, b) for a, b in pairs))


def _pairs(items: Sequence[Item], given: Given, scale: Scale) -> list[tuple[Item, str, str]]:
    """The items that have both labels, the people's and the judge's."""
    both = ((item, label_of(item, scale), given[item.id]) for item in items)
    return [(item, people, judge) for item, people, judge in both if people is not None and judge is not None]


def _classes(items: Sequence[Item], given: Given, scale: Scale) -> dict[str, ClassFigures]:
    pairs = _pairs(items, given, scale)
    families = _families([item for item, _, _ in pairs])
    people, judge = np.array([p for _, p, _ in pairs]), np.array([j for _, _, j in pairs])
    same = (people == judge).astype(np.float64)

    def of(chosen: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], reason: str) -> Estimate:
        return clustered.share(same[chosen], families[chosen], reason)

    return {
        label: ClassFigures(
            people=int(np.sum(people == label)),
            judge=int(np.sum(judge == label)),
            recall=of(people == label, "people never gave this label"),
            precision=of(judge == label, "the judge never gave this label"),
        )
        for label in scale.labels
    }


def _confusion(items: Sequence[Item], given: Given, scale: Scale) -> Table:
    found = Counter((people, judge) for _, people, judge in _pairs(items, given, scale))
    lacking = Counter(label_of(item, scale) for item in items if given[item.id] is None)
    return Table(
        labels=list(scale.labels),
        table=[[found[people, judge] for judge in scale.labels] for people in scale.labels],
        unscored=[lacking[label] for label in scale.labels],
    )


def _coarse(what: LabelledSet, given: Given) -> Figures | None:
    """The figures on the coarser labels: each person's label is read so before the common one is found."""
    to = what.scale.coarse
    if not to:
        return None
    items = [
        item._replace(
            labels={name: to[x] for name, x in item.labels.items()},
            settled=None if item.settled is None else to[item.settled],
            published={name: to[x] for name, x in item.published.items()},
        )
        for item in what.items
    ]
    scale = Scale(tuple(dict.fromkeys(to.values())))
    return _figures(items, {k: None if x is None else to[x] for k, x in given.items()}, scale)


def _widest(items: Sequence[Item], given: Given, scale: Scale) -> list[str]:
    """The ids of the items on which judge and people are farthest apart; between labels without distances, those on
    which more of the people gave the common label first.
    """
    apart: list[tuple[float, int, str]] = []
    for n, item in enumerate(items):
        people, judge = common(item, scale), given[item.id]
        if people is None or judge is None or people == (own := scale.value(judge)):
            continue
        agreed = np.mean([scale.value(x) == people for x in item.labels.values()]) if item.labels else 0.0
        apart.append((-abs(people - own) if scale.numbers else -float(agreed), n, item.id))
    return [identity for _, _, identity in sorted(apart)[:WIDEST]]
