"""Reads `calibration/` and `rating_calibration/`: replies written to be judged or rated, and what blind readers said of
them.

`calibration/<criterion>.jsonl` holds the replies with their author's label; `calibration/readings/<reader>.jsonl` holds
one `{"id", "label"}` per reply by somebody who saw neither that label nor another reader's.
`rating_calibration/<category>.jsonl` is the same for ratings: its criterion is the category, and its labels are those
of protocols.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from dataset_builder.reading.content_types import Content
from dataset_builder.reading.markdown import Errors, closest
from dataset_builder.reading.protocols import LABELS as RATINGS
from dataset_builder.reading.strays import ROWS, authored
from dataset_builder.schema import CalibrationRow
from helmbench_common import jsonl

LEAST = 24  # replies for each criterion (scoring.md section 7)


def read_calibration(folder: Path, labels: Mapping[str, tuple[str, ...]], errors: Errors) -> tuple[CalibrationRow, ...]:
    """Every calibration row with its readings, sorted by id. `labels`: criterion, or category → the labels that it
    gives.
    """
    rows: dict[str, tuple[Path, int, CalibrationRow]] = {}
    for path in authored(folder, ROWS):
        for n, row in _rows(path, errors):
            if not _known(row, path, n, labels, errors):
                continue
            if row.id in rows:
                errors.add(path, n, f"id '{row.id}' is given twice; ids are unique")
            else:
                rows[row.id] = (path, n, row)
    _origins(rows, errors)
    readings = [_reading(path, rows, labels, errors) for path in authored(folder / "readings", ROWS)]
    return tuple(
        row.model_copy(update={"readings": [reading[identity] for reading in readings if identity in reading]})
        for identity, (_, _, row) in sorted(rows.items())
    )


def _rows(path: Path, errors: Errors) -> Iterator[tuple[int, CalibrationRow]]:
    try:
        yield from jsonl.models(path, CalibrationRow, _bad(path, errors), strict=True)
    except OSError as error:
        errors.add(path, 1, f"can't be read ({error.strerror}); expected one row per line")


def _bad(path: Path, errors: Errors) -> jsonl.Bad:
    def bad(n: int, why: ValueError) -> None:
        where, what = jsonl.first_problem(why)
        errors.add(path, n, f"'{where}': {what}")

    return bad


def _known(row: CalibrationRow, path: Path, n: int, labels: Mapping[str, tuple[str, ...]], errors: Errors) -> bool:
    if row.criterion != path.stem or row.criterion not in labels:
        home = "protocols" if path.parent.name == "rating_calibration" else "criteria"
        errors.add(
            path, n, f"criterion is '{row.criterion}'; expected '{path.stem}', the file's name, and a file of {home}/"
        )
        return False
    if row.label not in labels[row.criterion]:
        errors.add(path, n, f"label is '{row.label}'; {closest(row.label, labels[row.criterion])}")
    return True


def _origins(rows: dict[str, tuple[Path, int, CalibrationRow]], errors: Errors) -> None:
    for path, n, row in rows.values():
        if row.same_as is None:
            continue
        origin = rows.get(row.same_as)
        if origin is None or origin[2].criterion != row.criterion:
            errors.add(path, n, f"same_as is '{row.same_as}'; expected the id of another row of this file")
        elif origin[2].label != row.label:
            errors.add(
                path,
                n,
                f"is {row.label} while '{row.same_as}', which it must equal, is {origin[2].label}; a "
                f"'{row.change}' change moves no label",
            )


def covers(content: Content, errors: Errors) -> None:
    """Adds an error for every criterion and protocol that too few replies stand for: of some label, or without a
    neutral pair.
    """
    _enough(
        content.root / "calibration",
        content.calibration,
        {slug: c.row.labels for slug, c in content.criteria.items()},
        errors,
    )
    _enough(
        content.root / "rating_calibration",
        content.rating_calibration,
        dict.fromkeys(content.protocols, RATINGS),
        errors,
    )


def _enough(
    folder: Path, rows: tuple[CalibrationRow, ...], wanted: Mapping[str, tuple[str, ...]], errors: Errors
) -> None:
    if not folder.is_dir():
        return  # a team's content without a calibration set of its own: no judge's agreement can be measured on it
    for slug, labels in wanted.items():
        own = [r for r in rows if r.criterion == slug]
        path = folder / f"{slug}.jsonl"
        if len(own) < LEAST:
            errors.add(
                path,
                1,
                f"has {len(own)} replies; expected at least {LEAST} for each "
                f"{'criterion' if folder.name == 'calibration' else 'protocol'}",
            )
            continue
        counts = Counter(r.label for r in own)
        for label in labels:
            if counts[label] < 2:
                errors.add(
                    path, 1, f"has {counts[label]} replies labelled {label}; expected at least two of each label"
                )
        if not any(r.change == "follow_up" for r in own):
            errors.add(path, 1, "has no neutral pair; expected a row with same_as and change 'follow_up' (seed 000)")


def _readings(path: Path, bad: jsonl.Bad, errors: Errors) -> Iterator[tuple[int, dict[str, object]]]:
    try:
        yield from jsonl.objects(path, bad, strict=True)
    except OSError as error:
        errors.add(path, 1, f"can't be read ({error.strerror}); expected one reading per line")


def _reading(
    path: Path, rows: dict[str, tuple[Path, int, CalibrationRow]], known: Mapping[str, tuple[str, ...]], errors: Errors
) -> dict[str, str]:
    found: dict[str, str] = {}
    unreadable = 'cannot be read; expected {"id": "…", "label": "…"}'
    for n, record in _readings(path, lambda n, _: errors.add(path, n, unreadable), errors):
        if "id" not in record or "label" not in record:
            errors.add(path, n, unreadable)
            continue
        identity, label = record["id"], record["label"]
        if not isinstance(identity, str) or identity not in rows:
            errors.add(path, n, f"id '{identity}' is of no calibration row")
            continue
        if identity in found:
            errors.add(path, n, f"id '{identity}' is given twice; a reader reads a reply once")
        labels = known[rows[identity][2].criterion]
        if label not in labels:
            errors.add(path, n, f"label is '{label}'; {closest(str(label), labels)}")
            continue
        found[identity] = str(label)
    return found
