"""Replies with low ratings as a sheet for hand coding: `helmbench ratings export` writes it, `ratings import` reads the
codes.

The paper coded its low ratings by hand and derived its failure modes from the codes. A sheet contains full replies,
including harmful ones: only its owner can read the file, and its first line says so. Several people may code copies of
one sheet; agreement is measured on the replies that they share.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field, ValidationError, model_validator

from dataset_builder.release import Release
from dataset_builder.schema import CrisisCategory, Strict
from helmbench_common import jsonl
from helmbench_common.formats import csv_file
from helmbench_common.formats.inert import clip
from helmbench_common.formats.refused import FormatError, shown
from judge.agreement.labels import Item, LabelTable, reply_key, write_once
from judge.agreement.tables import NAMES, blocks, table
from judge.replies.opening import Opened
from judge.replies.run import Run
from judge.replies.schema import RunError, run_error
from judge.replies.script import visible
from judge.schema import Verdict
from judge.scoring.stored import RATINGS, verdicts_in
from judge.statistics.agreement import Coefficients, coefficients
from judge.wording import coefficient, no_formula, plain, with_formulas

WARNING = "# CONFIDENTIAL: this sheet holds a model's full replies, harmful ones included. Don't publish or e-mail it."
COLUMNS = ("id", "repeat", "category", "message", "reply", "rating", "evidence", "code", "note", "coder")
OPTIONAL = ("message", "reply", "evidence", "note")
SHOWN = ("raw", "cohen", "alpha_nominal")  # coefficients
CELL = 30_000  # characters; Excel silently cuts a cell at 32,767


def _one_line(cell: str) -> str:
    return " ".join(cell.lstrip("'").split())


class CodedReply(BaseModel):
    """One row of a sheet; `code` is empty if the row isn't coded."""

    id: Annotated[str, AfterValidator(with_formulas)] = Field(min_length=1)
    repeat: int = Field(ge=0)
    category: CrisisCategory
    rating: int = Field(ge=1, le=5)
    code: Annotated[str, AfterValidator(lambda cell: _one_line(cell).lower().replace(" ", "_"))]
    coder: Annotated[str, AfterValidator(_one_line)]

    @model_validator(mode="after")
    def _signed(self) -> CodedReply:
        if self.code and not self.coder:
            raise ValueError("a code without a coder; fill in `coder`")
        return self


class Coding(Strict):
    """Output of `--json`. `codes`: coder → code → category → replies. `coefficients`: null unless two people coded the
    same replies.
    """

    coders: list[str]
    rows: int
    uncoded: int
    codes: dict[str, dict[str, dict[str, int]]]
    shared: int
    coefficients: Coefficients | None


def write_low(opened: Opened, scores: Path, out: Path, at_most: int) -> str:
    """Writes the sheet of a run scored in `scores`, readable only by its owner; returns a message for the user."""
    rows = list(low(verdicts_in(scores / RATINGS), opened.run, opened.release, at_most))
    text = sheet(rows)
    write_once(out, text, private=True)
    return (
        f"{out}: {len(rows)} replies rated {at_most} or lower; fill in `code`, `note` and `coder`, then run "
        "`helmbench ratings import`\nIt holds full replies, harmful ones included: keep it private."
    )


def low(verdicts: Sequence[Verdict], found: Run, release: Release, at_most: int) -> Iterator[tuple[str, ...]]:
    """The pre-filled columns of the sheet's rows: replies rated `at_most` or lower, by category, message and repeat."""
    said = {(r.id, r.repeat): visible(r.turns[-1]) for r in found.messages}
    rated = [v for v in verdicts if v.check == "appropriateness" and isinstance(v.label, int) and v.label <= at_most]
    if unknown := [v for v in rated if (v.id, v.repeat) not in said or v.id not in release.messages]:
        reply = f"{unknown[0].id} repeat {unknown[0].repeat}"
        raise RunError(f"{found.path}: {reply} has a rating but is not in the run; score the run again")
    for v in sorted(rated, key=lambda v: (release.messages[v.id].crisis_category, v.id, v.repeat)):
        message = release.messages[v.id]
        words = "\n\n".join(m.content for m in message.messages if m.role == "user" and m.content)
        long = (clip(text, CELL) for text in (words, said[v.id, v.repeat]))
        evidence = clip(" … ".join(v.evidence), CELL)
        yield (v.id, str(v.repeat), message.crisis_category, *long, str(v.label), evidence)


def sheet(rows: Sequence[tuple[str, ...]]) -> str:
    """The CSV, with a byte order mark so that spreadsheets read it as UTF-8; no cell is interpreted as a formula."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow([WARNING])
    writer.writerow(COLUMNS)
    writer.writerows([*map(no_formula, row), "", "", ""] for row in rows)
    return "\ufeff" + file.getvalue()


def coding(paths: Sequence[Path]) -> Coding:
    """The codes in the sheets, and how well coders agree."""
    problems: list[str] = []
    labels: dict[str, dict[Item, str]] = {}
    counts: Counter[tuple[str, str, str]] = Counter()  # of coder, code and category
    seen: dict[tuple[str, Item], str] = {}
    uncoded = 0
    for path in paths:
        for where, cells in _rows(path, problems):
            try:
                row = CodedReply.model_validate(cells)
            except ValidationError as error:
                field, why = jsonl.first_problem(error)
                problems.append(f"{where}: {f'{field} is {cells[field][:40]!r}: ' if field in cells else ''}{why}")
                continue
            item = Item(reply_key(row.id, row.repeat, -1), "")
            if not row.code:
                uncoded += 1
            elif before := seen.get((row.coder, item)):
                problems.append(f"{where}: {row.coder} already coded {row.id} repeat {row.repeat}, at {before}")
            else:
                seen[row.coder, item] = where
                labels.setdefault(row.coder, {})[item] = row.code
                counts[row.coder, row.code, row.category] += 1
    if problems:
        raise run_error(problems)
    if not labels:
        files = ", ".join(map(str, paths))
        raise RunError(f"{files}: no row has a code; fill in the columns `code` and `coder`")
    codes: dict[str, dict[str, dict[str, int]]] = {}
    for (coder, code, category), n in sorted(counts.items()):
        codes.setdefault(coder, {}).setdefault(code, {})[category] = n
    own = LabelTable({coder: labels[coder] for coder in codes}, tuple({item for _, item in seen})).readings()
    found = coefficients(own) if own.shared else None
    return Coding(coders=[*codes], rows=len(seen), uncoded=uncoded, codes=codes, shared=own.shared, coefficients=found)


def _rows(path: Path, problems: list[str]) -> Iterator[tuple[str, dict[str, str]]]:
    name, header = shown(path), f"expected the header {', '.join(COLUMNS)}"
    try:
        text = csv_file.load(path, "a sheet of `helmbench ratings export`")
        if not text.strip():
            problems.append(f"{name}:1: is empty; {header}")
        for line, row in csv_file.records(text, path, lambda n, why: problems.append(f"{name}:{n}: {why}"), "#"):
            cells = {column.lower(): cell.strip() for column, cell in row.items()}
            if missing := [c for c in COLUMNS if c not in cells and c not in OPTIONAL]:
                return problems.append(f"{name}: no column {', '.join(missing)}; {header}")
            yield f"{name}:{line}", cells
    except FormatError as error:
        problems.append(str(error))


def text(c: Coding) -> str:
    """Counts by coder, code and category, and agreement where it can be measured."""
    given = [(f"{coder}: {code}", by) for coder, codes in c.codes.items() for code, by in codes.items()]
    categories = sorted({category for _, by in given for category in by})
    rows = [[name, sum(by.values()), *(by.get(k, 0) for k in categories)] for name, by in given]
    if c.coefficients:
        figures = (f"{NAMES[key]} {coefficient(getattr(c.coefficients, key))}" for key in SHOWN)
        agreement = f"agreement on {c.shared} replies that two or more coded: {', '.join(figures)}"
    elif len(c.coders) > 1:
        agreement = "agreement: no reply was coded by two people"
    else:
        agreement = "agreement: one coder; have a second person code a copy of the sheet"
    return blocks(
        table(["coder: code", "replies", *map(plain, categories)], rows),
        f"{c.rows} rows coded by {len(c.coders)}, {c.uncoded} without a code",
        agreement,
    )
