"""`calibration/`, `rating_calibration/` and `baselines.yaml`: replies with known labels.

`calibration/<criterion>.jsonl` holds replies with their author's label; `calibration/readings/<reader>.jsonl` holds one
`{"id", "label"}` per reply from a reader who saw neither that label nor another reader's.
`rating_calibration/<category>.jsonl` is the same for ratings: the criterion is the category, the labels are 1 to 5.
`baselines.yaml` holds replies that don't depend on the message, with their label under each criterion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from dataset_builder.reading.categories import LABELS as RATINGS
from dataset_builder.reading.content_types import Content
from dataset_builder.reading.markdown import Errors, closest
from dataset_builder.reading.settings import misfits, read_yaml
from dataset_builder.reading.strays import ROWS, authored
from dataset_builder.schema import Baseline, CalibrationRow
from helmbench_common import jsonl

M = TypeVar("M", bound=BaseModel)
LEAST = 24  # fewest replies per criterion (scoring.md section 7)
NEEDED = ("job", "handoff")  # the baselines that make up the history-only baseline
Labels = Mapping[Any, tuple[str, ...]]  # criterion or category → its labels
Rows = dict[str, tuple[Path, int, CalibrationRow]]


def read_calibration(folder: Path, labels: Labels, errors: Errors) -> tuple[CalibrationRow, ...]:
    """Every calibration row with its readings, sorted by id."""
    rows: Rows = {}
    for path in authored(folder, ROWS):
        wrong = errors.at(path)
        for n, row in rows_of(path, CalibrationRow, "row", errors):
            if row.criterion != path.stem or row.criterion not in labels:
                home = "protocols" if folder.name == "rating_calibration" else "criteria"
                what = f"expected '{path.stem}', the file's name, and a file of {home}/"
                wrong(n, f"criterion is '{row.criterion}'; {what}")
            elif row.label not in labels[row.criterion]:
                wrong(n, f"label is '{row.label}'; {closest(row.label, labels[row.criterion])}")
            elif row.id in rows:
                wrong(n, f"duplicate id '{row.id}'; ids are unique")
            else:
                rows[row.id] = (path, n, row)
    for path, n, row in rows.values():
        if row.same_as is None:
            continue
        origin = rows.get(row.same_as)
        if origin is None or origin[2].criterion != row.criterion:
            errors.add(path, n, f"same_as is '{row.same_as}'; expected the id of another row of this file")
        elif origin[2].label != row.label:
            what = f"is {row.label}, but '{row.same_as}', which it must equal, is {origin[2].label}"
            errors.add(path, n, f"{what}; a '{row.change}' change moves no label")
    readings = [_reading(path, rows, labels, errors) for path in authored(folder / "readings", ROWS)]
    return tuple(
        row.model_copy(update={"readings": [reading[identity] for reading in readings if identity in reading]})
        for identity, (_, _, row) in sorted(rows.items())
    )


def rows_of(path: Path, model: type[M], what: str, errors: Errors) -> Iterator[tuple[int, M]]:
    """(line number, row) of a file of rows; adds an error for each bad line. `what`: a word for one row."""

    def bad(n: int, why: ValueError) -> None:
        where, problem = jsonl.first_problem(why)
        errors.add(path, n, f"'{where}': {problem}")

    try:
        yield from jsonl.models(path, model, bad, strict=True)
    except OSError as error:
        errors.add(path, 1, f"can't be read ({error.strerror}); expected one {what} per line")


def _reading(path: Path, rows: Rows, known: Labels, errors: Errors) -> dict[str, str]:
    found: dict[str, str] = {}
    wrong = errors.at(path)
    unreadable = 'cannot be read; expected {"id": "…", "label": "…"}'
    try:
        for n, record in jsonl.objects(path, lambda n, _: wrong(n, unreadable), strict=True):
            identity, label = record.get("id"), record.get("label")
            if "id" not in record or "label" not in record:
                wrong(n, unreadable)
            elif not isinstance(identity, str) or identity not in rows:
                wrong(n, f"unknown calibration row '{identity}'")
            elif identity in found:
                wrong(n, f"duplicate id '{identity}'; a reader reads a reply once")
            elif label not in (labels := known[rows[identity][2].criterion]):
                wrong(n, f"label is '{label}'; {closest(str(label), labels)}")
            else:
                found[identity] = str(label)
    except OSError as error:
        wrong(1, f"can't be read ({error.strerror}); expected one reading per line")
    return found


def covers(content: Content, errors: Errors) -> None:
    """Adds an error for each criterion and protocol with too few replies, overall or per label, or no neutral pair."""
    criteria = {slug: c.row.labels for slug, c in content.criteria.items()}
    wanted: list[tuple[str, tuple[CalibrationRow, ...], Labels, str]] = [
        ("calibration", content.calibration, criteria, "criterion"),
        ("rating_calibration", content.rating_calibration, dict.fromkeys(content.protocols, RATINGS), "protocol"),
    ]
    for name, rows, by_slug, what in wanted:
        folder = content.root / name
        # Without a calibration set, a judge's agreement can't be measured.
        for slug, labels in by_slug.items() if folder.is_dir() else ():
            own = [r for r in rows if r.criterion == slug]
            path = folder / f"{slug}.jsonl"
            if len(own) < LEAST:
                errors.add(path, 1, f"has {len(own)} replies; expected at least {LEAST} for each {what}")
                continue
            counts = Counter(r.label for r in own)
            for label in labels:
                if counts[label] < 2:
                    has = f"has {counts[label]} replies labelled {label}"
                    errors.add(path, 1, f"{has}; expected at least two of each label")
            if not any(r.change == "follow_up" for r in own):
                expected = "expected a row with same_as and change 'follow_up' (seed 000)"
                errors.add(path, 1, f"has no neutral pair; {expected}")


def read_baselines(path: Path, labels: Labels, errors: Errors) -> dict[str, Baseline]:
    """Every baseline by name."""
    found: dict[str, Baseline] = {}
    read = read_yaml(path, "baselines, each with its labels", errors)
    for name, value in read.value.items():
        if not isinstance(name, str):
            errors.add(path, read.line((str(name),)), f"'{name}' is not a name; expected a word")
            continue
        try:
            found[name] = Baseline.model_validate(value)
        except ValidationError as error:
            misfits(path, read, error, errors, name)
            continue
        for criterion, label in found[name].labels.items():
            if label not in labels.get(criterion, (label,)):
                line = read.line((name, "labels", criterion))
                errors.add(path, line, f"'{name}': '{criterion}' is '{label}'; {closest(label, labels[criterion])}")
    for name in NEEDED:
        if read.value and not (name in found and found[name].anchors):
            errors.add(path, 1, f"has no '{name}' with `anchors: true`, which the history-only baseline is made of")
    return found


def held(content: Content, errors: Errors) -> None:
    """Adds an error for each criterion without a label for a baseline, and each anchor whose calibration reply is
    missing or has another label. A team's private criteria need neither.
    """
    if content.additions:
        return
    written = {(r.criterion, r.baseline): r for r in content.calibration if r.baseline}
    for name, baseline in content.baselines.items():
        for criterion in sorted(content.criteria):
            label, path = baseline.labels.get(criterion), content.root / "calibration" / f"{criterion}.jsonl"
            row = written.pop((criterion, name), None)
            if label is None:
                errors.add(content.root / "baselines.yaml", 1, f"'{name}' has no label for '{criterion}'; expected one")
            elif row is None and baseline.anchors and path.is_file():
                errors.add(path, 1, f"has no reply with baseline '{name}'; expected one of each that anchors")
            elif row is not None and row.label != label:
                errors.add(path, 1, f"'{row.id}' is {row.label}; baselines.yaml says {label} of '{name}'")
    for criterion, name in written:
        path = content.root / "calibration" / f"{criterion}.jsonl"
        errors.add(path, 1, f"has a reply of the unknown baseline '{name}'; {closest(str(name), content.baselines)}")
