"""Reads raters' label files into one table and measures how well the raters agree. Input: JSONL or CSV, one rater per
file or with a `rater` column, or the verdicts of a run.

Every error names its file and line. Missing labels (empty, null, unscored) stay missing.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError

from dataset_builder.schema import CalibrationRow, Strict
from helmbench_common import jsonl
from helmbench_common.files import holds, write_whole
from helmbench_common.formats import csv_file
from helmbench_common.formats.refused import FormatError, shown
from judge.replies.schema import RunError, run_error
from judge.schema import OUTCOMES, RATINGS, VERDICTS, Verdict
from judge.statistics.agreement import Agreement, Readings, agreement, too_many

AUTHORS = "calibration"  # instead of a file: the dataset's own replies, or their authors' labels
NAMES = {name.casefold(): name for name in (*VERDICTS, *OUTCOMES)}


class Item(NamedTuple):
    """The labeled unit: a reply, plus a criterion if the labels cover several."""

    id: str
    criterion: str


class Entry(NamedTuple):
    """One label in a file. `criterion` is None where the file has none."""

    rater: str
    id: str
    criterion: str | None
    label: str | None
    where: str


@dataclass(frozen=True)
class LabelTable:
    """Labels by rater and item; items that a rater saw but didn't label are absent."""

    labels: dict[str, dict[Item, str]]
    items: tuple[Item, ...]

    @property
    def raters(self) -> tuple[str, ...]:
        return tuple(self.labels)

    @property
    def criteria(self) -> list[str]:
        return sorted({item.criterion for item in self.items} - {""})

    def readings(self, criterion: str | None = None, order: tuple[str, ...] | None = None) -> Readings:
        """The labels of one criterion's items, or of all, on their scale."""
        items = [i for i in self.items if criterion in (None, i.criterion)]
        used = {own[i] for own in self.labels.values() for i in items if i in own}
        # A criterion's scale is the full scale: labels that don't occur there were still available.
        kin = used if criterion is None else {label for own in self.labels.values() for label in own.values()}
        names, ordered = scale(kin if scale(kin)[1] else used, order)
        if why := too_many(len(self.labels), len(names)):
            raise RunError(f"the labels: {why}")
        return Readings.of({rater: [own.get(i) for i in items] for rater, own in self.labels.items()}, names, ordered)


class AgreementReport(Strict):
    """Output of `--json`: agreement over all items, and by criterion."""

    format: Literal["helmbench-agreement-1"] = "helmbench-agreement-1"
    overall: Agreement
    criteria: dict[str, Agreement]


def agreement_report(table: LabelTable, order: tuple[str, ...] | None = None) -> AgreementReport:
    return AgreementReport(
        overall=agreement(table.readings(None, order)),
        criteria={name: agreement(table.readings(name, order)) for name in table.criteria},
    )


def scale(used: set[str], order: tuple[str, ...] | None = None) -> tuple[tuple[str, ...], bool]:
    """The possible labels, lowest first, and whether they are ordered.

    Known scales are complete even if some labels don't occur: FAIL, PARTIAL, PASS; ignored, attentive, flagged; 1 to 5,
    or whole numbers from the lowest to the highest that occur. Other labels are unordered unless `order` is given.
    """
    if order is not None:
        if len(set(order)) < len(order):
            raise RunError(f"--order {','.join(order)}: expected each label once")
        if unknown := sorted(used - {*order}):
            raise RunError(f"--order: missing {', '.join(unknown)}; expected every label that occurs, lowest first")
        return order, True
    for known in (VERDICTS, OUTCOMES, RATINGS):
        if used and used <= {*known}:
            return known, True
    if used and all(re.fullmatch(r"-?[0-9]{1,18}", label) for label in used):
        numbers = sorted(int(label) for label in used)
        between = numbers[-1] - numbers[0] < 100
        return tuple(str(n) for n in (range(numbers[0], numbers[-1] + 1) if between else numbers)), between
    return tuple(sorted(used)), False


def are_authors(path: Path) -> bool:
    """Whether the path is the word `calibration` rather than a file or folder of rows with that name. (`helmbench
    calibrate` stores its answers in a folder called calibration, without rows.)
    """
    return str(path) == AUTHORS and not path.is_file() and not any(path.glob("*.jsonl"))


def read_labels(
    paths: list[Path], ways: bool = False, least: int = 2, authors: Iterable[CalibrationRow] = ()
) -> LabelTable:
    """The labels of at least `least` raters. Without `ways`, FAIL-misses counts as FAIL. `authors`: the rows that the
    word `calibration` refers to; only rows that another rater labeled count.

    Files without a `criterion` column take the criterion from files that have one, if the id has only one there.
    """
    problems: list[str] = []
    entries = [
        entry
        for path, name in zip(paths, _names(paths), strict=True)
        if not are_authors(path)
        for entry in _entries(path, name, problems)
    ]
    if any(map(are_authors, paths)):
        asked = {e.id for e in entries}
        entries += [
            Entry("authors", row.id, row.criterion, row.label, f"{AUTHORS}, {row.id}")
            for row in authors
            if row.id in asked
        ]
    criteria: dict[str, set[str]] = {}
    for e in entries:
        if e.criterion is not None:
            criteria.setdefault(e.id, set()).add(e.criterion)
    labels: dict[str, dict[Item, str]] = {}
    seen: dict[tuple[str, Item], Entry] = {}
    for e in entries:
        known = sorted(criteria.get(e.id, {""}))
        if e.criterion is None and len(known) > 1:
            problems.append(
                f"{e.where}: {e.id} has labels for {', '.join(known)} in other files; expected a `criterion` here too"
            )
            continue
        item = Item(e.id, known[0] if e.criterion is None else e.criterion)
        before = seen.setdefault((e.rater, item), e)
        if before is not e:
            of = f" ({item.criterion})" if item.criterion else ""
            problems.append(f"{e.where}: {e.rater} already labeled {e.id}{of}, at {before.where}")
        own = labels.setdefault(e.rater, {})
        if e.label is not None:
            own[item] = e.label if ways or not e.label.startswith("FAIL-") else "FAIL"
    files = ", ".join(map(str, paths))
    if not problems and len(labels) < least:
        found = f"labels of {next(iter(labels))} only" if labels else "no labels"
        problems.append(f"{files}: {found}; expected two raters or more: several files, or a `rater` column")
    if why := too_many(len(labels)):
        problems.append(f"{files}: {why}")
    if problems:
        raise run_error(problems)
    return LabelTable(labels, tuple(sorted({item for _, item in seen})))


def records(path: Path, problems: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSONL file, or the rows of a CSV with a header, with their line numbers; invalid lines are
    reported in `problems`.
    """
    name = shown(path)
    try:
        text = csv_file.load(path, "JSONL or CSV")
        if not text.strip():
            problems.append(f"{name}:1: empty file; expected one label per line")
        elif path.suffix.lower() == ".csv":
            yield from csv_file.records(text, path, lambda n, why: problems.append(f"{name}:{n}: {why}"))
        else:
            damaged = "not a JSON object; expected JSON lines, or a file named .csv"
            yield from jsonl.objects_in(text.split("\n"), path, lambda n, _: problems.append(f"{name}:{n}: {damaged}"))
    except FormatError as error:
        problems.append(str(error))


def write_once(out: Path, text: str, private: bool = False) -> None:
    """Writes a file unless it exists with other content, which may be hours of a person's work."""
    if os.path.lexists(out) and not holds(out, text):
        raise RunError(f"{out}: already exists with other content; choose another file, or move it away")
    write_whole(out, text, private=private)


def _names(paths: list[Path]) -> list[str]:
    """Default rater names: the file's name (for a run's verdicts, its folder's), with as many parent folders as needed
    to make it unique.
    """
    real = [Path(os.path.realpath(p)) for p in paths]  # Path.resolve fails on a link loop
    whole = [
        (place.parent if p.name in ("verdicts.jsonl", "ratings.jsonl") else place.with_suffix("")).parts
        for p, place in zip(paths, real, strict=True)
    ]
    for depth in range(1, 1 + max(map(len, whole), default=1)):
        names = ["/".join(parts[-depth:]) for parts in whole]
        if len(set(names)) == len(names):
            return names
    return [f"{p.stem}.{n}" for n, p in enumerate(paths, start=1)]  # the same file twice


def _entries(path: Path, name: str, problems: list[str]) -> Iterator[Entry]:
    answered: set[Entry] = set()
    for number, record in records(path, problems):
        where = f"{path}:{number}"
        identity = str(record.get("id") or "").strip()  # spreadsheets save numeric ids as numbers
        if not identity or "label" not in record:
            problems.append(f'{where}: no {"`label`" if identity else "`id`"}; expected at least "id" and "label"')
            continue
        verdict = "check" in record and "unscored" in record
        try:
            if verdict:
                # A graded check was labeled by its outcome; the points depend on the message.
                v = Verdict.model_validate(record)
                label, asked = v.outcome or v.label, v.criterion or f"{v.check} {v.behavior}"
                key = reply_key(v.id, v.repeat, v.turn)
                entry = Entry(name, key, asked, None if label is None else str(label), where)
            else:
                rater, criterion = (str(record.get(field) or "").strip() for field in ("rater", "criterion"))
                entry = Entry(rater or name, identity, criterion or None, _label(record["label"]), where)
        except ValidationError as error:
            field, why = jsonl.first_problem(error)
            problems.append(f"{where}: {identity}: {field}: {why}; expected a line of a run's verdicts")
        except ValueError as error:
            problems.append(f"{where}: {identity}: {error}")
        else:
            # Two behaviors may ask the same about one reply: one question, one label.
            same = entry._replace(where="")
            if not verdict or same not in answered:
                yield entry
            answered.add(same)


def reply_key(sample: str, repeat: int, turn: int) -> str:
    """The id of one reply of a run in label files: the sample id, plus the repeat and the turn if there are several."""
    return sample + (f"#repeat-{repeat}" if repeat else "") + (f"#turn-{turn}" if turn > 0 else "")


def _label(value: object) -> str | None:
    """The label as text; known names in their canonical spelling, whole numbers without a decimal point.

    Raises:
        ValueError: a list, an object, or not a finite number.
    """
    if value is None:
        return None
    if not isinstance(value, str | int | float) or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(f"label is {json.dumps(value)}; expected a text, a number, or null where it is missing")
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()
    name, dash, way = text.partition("-")
    known = NAMES.get(name.casefold())
    if known == "FAIL" and dash:
        return f"FAIL-{way}"
    return known if known and not dash else text or None
