"""Measures the offline judge on real replies, by question → judge/offline/measured.json, which determines what it may
decide in a run. Figures only; no text of any set.

SETS contains checkouts of the published sets (docs/judge-quality.md): their odd rows show how far its ratings and its
verdicts on delusions agree with people. READINGS contains real replies that readers labeled by our other criteria:
{"id", "said", "reply", "labels": {criterion: {reader: label}}}. Both stay outside this repository. Run it after
scripts/train_offline.py; then `make generated` and `make validations`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from harness import run
from make_validations import FOLDERS

from dataset_builder.release import Release, open_release
from helmbench_common.files import write_whole
from helmbench_common.jsonl import objects
from judge.agreement.published.labeled_set import Item, LabeledSet, Scale
from judge.agreement.published.sets import read_set
from judge.agreement.tables import table
from judge.agreement.validation import Source, measured
from judge.offline import judge as offline
from judge.offline.model import FEWEST, LEAST, MEASURED, OTHERS, measured_as, questions, reads
from judge.replies.script import visible
from judge.schema import OUTCOMES, VERDICTS
from judge.statistics.estimate import Estimate
from judge.wording import percent

PEOPLE = ("bhh-ratings", "psychosis")


class Labelled(NamedTuple):
    """The real replies of one question. `by`: who labeled them."""

    by: str
    what: LabeledSet


def main(sets: Path, readings: Path, dataset: Path | None = None, out: Path = MEASURED) -> None:
    """Measure the offline judge on real replies. SETS: checkouts; READINGS: labeled replies, JSONL."""
    release = open_release(dataset)
    found = {**_read_by(readings, release), **_people(sets, release)}
    names = sorted({measured_as(name) for name in questions()})
    figures = {name: _figures(found[name]) if name in found else None for name in names}
    asked = {"least": LEAST, "fewest": FEWEST, "others": OTHERS}
    stored = {"judge": offline.NAME, "asked": asked, "questions": {k: v or {} for k, v in figures.items()}}
    write_whole(out, json.dumps(stored, indent=1, ensure_ascii=False) + "\n")
    print(_table(figures))


def _people(sets: Path, release: Release) -> dict[str, Labelled]:
    """Ratings, and replies to delusions, with people's labels."""
    read = {name: read_set(name, sets / FOLDERS[name], "odd", release) for name in PEOPLE}
    return {
        measured_as(_question(what.items[0], what)): Labelled(f"people ({name})", what) for name, what in read.items()
    }


def _read_by(path: Path, release: Release) -> dict[str, Labelled]:
    """Real replies with readers' labels, by criterion."""
    found: dict[str, list[Item]] = {}
    for number, row in objects(path):
        for name, labels in row["labels"].items():
            if name not in release.criteria:
                raise ValueError(f"{path}:{number}: '{name}' is no criterion of the dataset")
            plain = {reader: label.partition("-")[0] for reader, label in labels.items()}
            found.setdefault(name, []).append(
                Item(row["id"], tuple(row["said"]), plain, row["reply"], name, family=row["said"][-1])
            )
    sets = {}
    for name, items in found.items():
        scale = Scale(OUTCOMES if release.criteria[name].kind == "graded" else VERDICTS)
        what = LabeledSet(name, "odd", "criterion", scale, tuple(items))
        sets[name] = Labelled("readers (language models)", what)
    return sets


def _figures(labelled: Labelled) -> dict[str, Any]:
    """One question's figures, as stored."""
    answers = {
        item.id: offline.unguarded(_question(item, labelled.what), item.said[-1], visible(item.reply)).answer
        for item in labelled.what.items
    }
    found = measured(labelled.what, [answers], Source(offline.NAME, None, ""))
    given = [sum(row) for row in found.confusion.table]
    return {
        "by": labelled.by,
        "replies": found.items,
        "decided": found.decided,
        "others": sum(given) - max(given),
        "kappa": _rounded(found.kappa.value),
        "low": _rounded(found.kappa.low),
        "high": _rounded(found.kappa.high),
        "among_them": _rounded(found.people.value),
    }


def _question(item: Item, what: LabeledSet) -> str:
    return offline.rating_question(item.by) if what.kind == "rating" else item.by


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _table(figures: dict[str, dict[str, Any] | None]) -> str:
    head = ("question", "labels by", "replies", "decides", "not the most common", "κ of these", "among them")
    rows: list[list[object]] = []
    for name, own in figures.items():
        if own:
            kappa, them = Estimate(value=own["kappa"], low=own["low"], high=own["high"]), own["among_them"]
            decides = percent(own["decided"] / own["replies"])
            counts = [own["by"], own["replies"], decides, own["others"], kappa, Estimate(value=them)]
            rows.append([name, *counts, "yes" if reads(own) else "no"])
        else:
            rows.append([name, "nobody", 0, *[None] * 4, "no"])
    return table([*head, "may decide"], rows)


if __name__ == "__main__":
    run(main)
