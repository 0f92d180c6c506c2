"""Implements `helmbench read`: puts a question about each of somebody's replies to a judge, and counts the labels by
system. A reading is one judge's label of one case, stored by id.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from scipy.stats import spearmanr

from dataset_builder.release import Release
from dataset_builder.schema import CriterionRow, Strict
from helmbench_common import jsonl
from helmbench_common.files import write_whole
from helmbench_common.hashing import digest
from helmbench_common.pages import environment, inlined
from helmbench_common.tables import Cell, Table, TableRow
from judge.agreement.cases import read_cases
from judge.agreement.published.labeled_set import ANSWER, HALVES, REFUSAL, Item, LabeledSet, Scale
from judge.agreement.published.sets import SETS, read_set
from judge.agreement.validation import asked_by, asking, judged
from judge.llm.asking import Asker, announce
from judge.llm.questions import roles
from judge.panel import base, majority, median
from judge.schema import OUTCOMES, RATINGS, VERDICTS, LabelKind, LabelledRows, finds_harm
from judge.statistics import coefficients as c
from judge.statistics.estimate import Estimate
from judge.wording import NONE, coefficient, coefficient_cell, hundredths, limits, percent

TEMPLATES = Path(__file__).with_name("templates")
RANKED = 0.8  # share of a system's cases that must be read before it is ranked: what a judge leaves isn't random
BAD = {"FAIL", "1", "2", "ignored"}  # labels whose replies the page withholds


class Reading(Strict):
    """A line of `readings.jsonl`, which `helmbench agreement` reads too. `label` is null where `unscored` says why.

    `criterion`: the criterion, or the category whose protocol rates the reply. `question_hash`: of its text;
    `prompt_hash`: of the prompt around it; `case_hash`: of the conversation and the reply. `quotes`: what the judge
    quoted from the reply.
    """

    id: str
    system: str
    family: str
    kind: LabelKind
    criterion: str
    rater: str
    label: str | None
    unscored: str | None
    by_rule: bool
    quotes: list[str]
    prompt_hash: str | None
    question_hash: str | None
    case_hash: str


class SystemRow(Strict):
    """One system's replies to one question. `labels`: the share of each label among the replies that were read.

    `score`: the share of the best label, or the mean of numbers, with `low_bound` and `high_bound` if all unread
    replies had the worst or the best label. `people`: the same from people's labels. `rank` is null below 80 % read.
    """

    question: str
    system: str
    cases: int
    families: int
    unscored: int
    labels: dict[str, Estimate]
    score: Estimate
    low_bound: float
    high_bound: float
    people: Estimate | None
    rank: int | None


class ReadTable(Strict):
    """`table.json`: what was read, by whom, and a row for each question and system. It holds no text.

    `source`: repository and commit, or a hash of what was read. `spearman`: rank correlation of systems by judge and by
    people, for each question with three or more systems that people labeled.
    """

    format: Literal["helmbench-readings-1"] = "helmbench-readings-1"
    set: str
    source: str
    rows: LabelledRows
    judges: list[str]
    dataset: str
    questions: dict[str, str]
    systems: list[SystemRow]
    spearman: dict[str, Estimate]
    notes: list[str]


def read_source(name: str, source: str | None, rows: LabelledRows, release: Release) -> LabeledSet:
    """Cases of a published set, of a mapping file, or of whatever `helmbench annotate export` reads."""
    if name in SETS or name.endswith((".yaml", ".yml")):
        return read_set(name, source, rows, release)
    found = read_cases(Path(name), release).cases
    items = [
        Item(f"{k.id} {k.criterion}", k.said, {}, k.reply, k.criterion, k.family, system=k.system, country=k.country)
        for k in found
    ][HALVES[rows]]
    known = digest([_hash(item) for item in items])[:16]
    return LabeledSet(Path(name).stem, rows, "criterion", Scale(VERDICTS), tuple(items), source=known, shown=True)


def sampled(what: LabeledSet, size: int | None, seed: int) -> LabeledSet:
    """At most `size` cases of each system and question, drawn with the seed."""
    if size is None:
        return what
    groups: dict[tuple[str, str], list[Item]] = {}
    for item in what.items:
        groups.setdefault((item.system, item.by), []).append(item)
    kept = {
        item.id
        for key, own in groups.items()
        for item in random.Random(f"{seed} {key}").sample(own, min(size, len(own)))
    }
    return what._replace(items=tuple(item for item in what.items if item.id in kept))


def read(what: LabeledSet, release: Release, names: Sequence[str], asker: Asker) -> list[list[Reading]]:
    """Each judge's readings of every case, in order; asks for missing ones if the asker has an endpoint."""
    release = asking(what, release)
    hashes = asked_by(what.kind, {item.by for item in what.items}, release)
    if asker.endpoint is not None:
        announce(len(what.items), f"set {what.name}", asker.endpoint.base_url)
    names = names[:1] if what.kind == "refusal" else list(dict.fromkeys(names))  # a rule that all judges share
    return [_readings(what, release, name, asker, hashes) for name in names]


def _readings(what: LabeledSet, release: Release, name: str, asker: Asker, hashes: Mapping[str, str]) -> list[Reading]:
    identity, (labels,) = judged(what, release, name, asker)
    return [
        Reading(
            id=item.id.removesuffix(f" {item.by}"),  # as `helmbench annotate` names cases of several criteria
            system=item.system,
            family=item.family,
            kind=what.kind,
            criterion=item.by,
            rater=identity.name,
            label=(own := labels[item.id]).label,
            unscored=own.unscored,
            by_rule=own.by_rule,
            quotes=list(own.quotes),
            prompt_hash=identity.prompt_hash,
            question_hash=hashes.get(item.by or "taxonomy"),
            case_hash=_hash(item),
        )
        for item in what.items
    ]


def _hash(item: Item) -> str:
    return digest([list(item.said), item.reply])[:16]


def decided(what: LabeledSet, release: Release, readings: Sequence[Sequence[Reading]]) -> list[str | None]:
    """The label of each case: the judge's, or what a panel decides: the majority, for numbers the median."""
    found: list[str | None] = []
    for item, *given in zip(what.items, *readings, strict=True):
        labels, scale = [r.label for r in given], _scale(what, item, release)
        found.append(labels[0] if len(labels) == 1 else median(labels) if _numbers(scale) else majority(labels, scale))
    return [None if label is None else base(label) for label in found]


def _scale(what: LabeledSet, item: Item, release: Release) -> tuple[str, ...]:
    """The labels that a judge can give, worst first; ways to fail count as FAIL."""
    if what.question is not None and item.by == what.question.criterion:
        return what.question.labels
    if what.kind == "criterion":
        return OUTCOMES if release.criteria[item.by].kind == "graded" else VERDICTS
    return {"rating": RATINGS, "category": tuple(release.taxonomy)}.get(what.kind, (REFUSAL, ANSWER))


def _numbers(scale: Sequence[str]) -> bool:
    return all(label.isdecimal() for label in scale)


def tabulated(what: LabeledSet, release: Release, readings: Sequence[Sequence[Reading]]) -> ReadTable:
    """The table of systems by question."""
    release = asking(what, release)
    labels = decided(what, release, readings)
    groups: dict[tuple[str, str], list[int]] = {}
    for n, item in enumerate(what.items):
        groups.setdefault((item.by, item.system), []).append(n)
    rows = [
        _row(what, _scale(what, what.items[own[0]], release), [(what.items[n], labels[n]) for n in own])
        for own in groups.values()
    ]
    ranked = _ranked(rows)
    return ReadTable(
        set=what.name,
        source=what.source,
        rows=what.rows,
        judges=[own[0].rater for own in readings if own],
        dataset=release.manifest.version,
        questions=asked_by(what.kind, {item.by for item in what.items}, release),
        systems=ranked,
        spearman=_spearman(ranked),
        notes=list(what.notes),
    )


def _row(what: LabeledSet, scale: Sequence[str], own: Sequence[tuple[Item, str | None]]) -> SystemRow:
    """One system's row, from its cases with the judge's labels. `scale`: the labels that a judge can give."""
    numbers = _numbers(scale)
    low, high = (float(scale[0]), float(scale[-1])) if numbers else (0.0, 1.0)
    kin = np.unique([item.family or item.id for item, _ in own], return_inverse=True)[1]

    def figure(labels: Sequence[str | None], best: str) -> Estimate:
        points = [float(label) if numbers else float(label == best) for label in labels if label is not None]
        clusters = kin[[label is not None for label in labels]]
        return c.mean(np.array(points), clusters, low, high) if numbers else c.share(np.array(points), clusters)

    given = [label for _, label in own]
    read = [label for label in given if label is not None]
    score, missing = figure(given, scale[-1]), len(given) - len(read)
    total = (score.value or 0.0) * len(read)
    people = [what.scale.common(item) for item, _ in own]
    inside = kin[[label is not None for label in given]]
    return SystemRow(
        question=own[0][0].by,
        system=own[0][0].system,
        cases=len(own),
        families=int(kin.max()) + 1,
        unscored=missing,
        labels={x: c.share(np.array([float(label == x) for label in read]), inside) for x in scale},
        score=score,
        low_bound=(total + missing * low) / len(own),
        high_bound=(total + missing * high) / len(own),
        people=figure(people, what.scale.labels[-1]) if any(people) else None,
        rank=None,
    )


def _ranked(rows: Sequence[SystemRow]) -> list[SystemRow]:
    """By question, then by score; systems of which too little was read come last, without a rank."""
    found: list[SystemRow] = []
    for question in dict.fromkeys(row.question for row in rows):
        own = [row for row in rows if row.question == question]
        read = [row for row in own if row.score.value is not None and row.cases - row.unscored >= RANKED * row.cases]
        read.sort(key=lambda row: -(row.score.value or 0.0))
        found += [row.model_copy(update={"rank": n}) for n, row in enumerate(read, start=1)]
        found += sorted((row for row in own if row not in read), key=lambda row: row.system)
    return found


def _spearman(rows: Sequence[SystemRow]) -> dict[str, Estimate]:
    """Spearman's ρ of the systems' scores by judge and by people; 95 % interval by Fisher's z, SE 1.03/√(n − 3)
    (Fieller, Hartley and Pearson 1957), from four systems on.
    """
    found = {}
    for question in dict.fromkeys(row.question for row in rows):
        both = [
            (row.score.value, row.people.value) for row in rows if row.question == question and row.rank and row.people
        ]
        if len(both) < 3:
            continue
        if any(len(set(own)) == 1 for own in zip(*both, strict=True)):
            found[question] = Estimate(value=None, n=len(both), reason="all systems have one score")
            continue
        value = float(spearmanr(*zip(*both, strict=True)).statistic)
        if len(both) < 4 or abs(value) == 1:
            found[question] = Estimate(value=value, n=len(both), reason="too few systems for an interval")
        else:
            half = 1.96 * 1.03 / np.sqrt(len(both) - 3)
            low, high = np.tanh(np.arctanh(value) - half), np.tanh(np.arctanh(value) + half)
            found[question] = Estimate(value=value, low=float(low), high=float(high), n=len(both))
    return found


def table(found: ReadTable) -> str:
    """The tables of `helmbench read`, one for each question."""
    said = [f"# {found.set}, rows {found.rows}, read by {', '.join(found.judges)}"]
    for question in dict.fromkeys(row.question for row in found.systems):
        own = [row for row in found.systems if row.question == question]
        labels = list(own[0].labels)
        numbers = _numbers(labels)
        show = coefficient_cell if numbers else _share_cell
        people = any(row.people for row in own)
        best = "mean" if numbers else labels[-1]
        shares = labels if numbers else labels[:-1]
        head = [
            question or "system",
            "rank",
            "cases",
            "families",
            "unread",
            best,
            *(["people"] if people else []),
            "bounds",
            *shares,
        ]
        rows = [
            TableRow(
                row.system or "all",
                [
                    row.rank or NONE,
                    row.cases,
                    row.families,
                    row.unscored,
                    show(row.score),
                    *([show(row.people)] if people else []),
                    _bounds(row, numbers),
                    *(percent(row.labels[x].value) for x in shares),
                ],
            )
            for row in own
        ]
        said.append(Table(head, rows).text())
        if question in found.spearman:
            said.append(
                f"Rank correlation of systems, judge with people: Spearman's ρ {coefficient(found.spearman[question])}"
            )
    said += [f"- {note}" for note in found.notes]
    said.append(
        "95 % intervals in parentheses; replies to one message count as one observation. Bounds: the figure if every "
        "unread reply had the worst label, or the best. A system of which less than 80 % was read has no rank."
    )
    return "\n\n".join(said)


def _share_cell(m: Estimate | None) -> Cell:
    if m is None or m.value is None:
        return Cell(NONE)
    return Cell(percent(m.value), limits(m.low, m.high))


def _bounds(row: SystemRow, numbers: bool) -> str:
    if not row.unscored:
        return NONE
    if numbers:
        return f"{hundredths(row.low_bound)} to {hundredths(row.high_bound)}"
    return limits(row.low_bound, row.high_bound)


def write(
    found: ReadTable,
    what: LabeledSet,
    readings: Sequence[Sequence[Reading]],
    out: Path,
    criteria: Mapping[str, CriterionRow],
    show_withheld: bool,
) -> None:
    """Writes readings.jsonl, people.jsonl, table.json and page.html into `out`, which git ignores."""
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / ".gitignore", "*\n")
    write_whole(out / "readings.jsonl", jsonl.lines([r for own in readings for r in own]))
    people = [
        {"id": i.id, "criterion": i.by, "rater": who, "label": label}
        for i in what.items
        for who, label in i.labels.items()
    ]
    if people:
        write_whole(out / "people.jsonl", jsonl.lines(people))
    write_whole(out / "table.json", found.model_dump_json(indent=2) + "\n")
    write_whole(out / "page.html", page(found, what, readings, criteria, show_withheld))


def page(
    found: ReadTable,
    what: LabeledSet,
    readings: Sequence[Sequence[Reading]],
    criteria: Mapping[str, CriterionRow],
    show_withheld: bool,
) -> str:
    """The table, a dot plot with intervals, and the cases that may be shown, the worst first. Withholds a reply that
    fails, or is unread, by a question that could find harm: one of ours that can't is known by its incidents.
    """
    cases = []
    for item, *own in zip(what.items, *readings, strict=True):
        bad = any(r.label is not None and base(r.label) in BAD for r in own)
        criterion = criteria.get(item.by) if what.kind == "criterion" else None
        unread = criterion is not None and any(r.label is None for r in own)
        hidden = not show_withheld and finds_harm(criterion) and (bad or unread)
        cases.append({"item": item, "readings": own, "bad": bad, "hidden": hidden, "turns": roles(item.said)})
    cases.sort(key=lambda case: not case["bad"])
    questions = [
        {
            "name": question or "category",
            "rows": (own := [row for row in found.systems if row.question == question]),
            "top": max((float(x) for x in own[0].labels), default=1.0) if _numbers(list(own[0].labels)) else 1.0,
            "numbers": _numbers(list(own[0].labels)),
        }
        for question in dict.fromkeys(row.question for row in found.systems)
    ]
    return (
        environment(TEMPLATES)
        .get_template("reading.html.j2")
        .render(
            found=found,
            questions=questions,
            cases=cases if what.shown else [],
            count=len(what.items),
            percent=percent,
            hundredths=hundredths,
            **inlined(TEMPLATES / "reading.css", TEMPLATES / "reading.js"),
        )
    )
