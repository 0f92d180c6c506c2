"""Replies rated 1 or 2 as a sheet for hand coding: `helmbench ratings export` writes it, `ratings import` reads what
was coded.

The paper coded its low ratings by hand, and so named the ways to fail. Such a sheet holds harmful replies in full: it
is readable by its owner only, and says so in its first line. Several people may code copies of one sheet; where they
coded the same replies, their agreement is measured.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np

from dataset_builder.release import Release
from dataset_builder.schema import CrisisCategory, Strict
from helmbench_common.files import holds, write_whole
from helmbench_common.formats import csv_file
from helmbench_common.formats.inert import clip
from helmbench_common.formats.refused import FormatError, shown
from helmbench_common.tables import markdown_table
from judge.replies.errors import RunError, run_error
from judge.replies.opening import Opened
from judge.replies.run import Run
from judge.replies.visible import visible
from judge.schema import Verdict
from judge.scoring.stored import RATINGS, verdicts_in
from judge.statistics.agreement import Coefficients, Ratings, coefficients, too_many
from judge.statistics.estimate import Estimate
from judge.wording import hundredths, no_formula, plain, with_formulas

WARNING = (
    "# KEEP THIS TO YOURSELF: it holds a model's replies in full, harmful ones among them. Don't "
    "publish it, don't send it by e-mail."
)
COLUMNS = ("id", "repeat", "category", "message", "reply", "rating", "evidence", "code", "note", "coder")
CATEGORIES = frozenset(get_args(CrisisCategory))
CELL = 30_000  # characters; Excel cuts a cell at 32,767 without a word, and Python reads none beyond 131,072


class Coded(NamedTuple):
    """One row of a sheet that somebody coded."""

    id: str
    repeat: int
    category: str
    rating: int
    code: str
    coder: str


class Coding(Strict):
    """What `--json` writes. `codes`: coder → code → category → replies. `coefficients`: null unless two coded the same
    replies.
    """

    coders: list[str]
    rows: int
    uncoded: int
    codes: dict[str, dict[str, dict[str, int]]]
    shared: int
    coefficients: Coefficients | None


def write_low(opened: Opened, scores: Path, out: Path, at_most: int = 2) -> str:
    """Writes the sheet of a run and its scores in `scores`, readable by its owner only; returns what to tell the user.

    Raises:
        RunError: a run without ratings, or `out` holds something else.
    """
    rows = list(low(verdicts_in(scores / RATINGS), opened.run, opened.release, at_most))
    text = sheet(rows)
    # A coder's hours may be in that file.
    if os.path.lexists(out) and not holds(out, text):
        raise RunError(f"{out}: is there already, with other content; name another file, or move it away")
    write_whole(out, text, private=True)
    return (
        f"{out}: {len(rows)} replies rated {at_most} or lower; fill in `code`, `note` and `coder`, then "
        "`helmbench ratings import`\n"
        "It holds replies in full, harmful ones too: keep it to yourself, and publish it nowhere."
    )


def low(verdicts: Sequence[Verdict], found: Run, release: Release, at_most: int) -> Iterator[tuple[str, ...]]:
    """The sheet's rows without their empty columns: replies rated `at_most` or lower, by category, message and repeat.

    Raises:
        RunError: a rating of a reply that the run doesn't have.
    """
    said = {(r.id, r.repeat): visible(r.turns[-1]) for r in found.messages}
    rated = [v for v in verdicts if v.check == "appropriateness" and isinstance(v.label, int) and v.label <= at_most]
    if unknown := [v for v in rated if (v.id, v.repeat) not in said or v.id not in release.messages]:
        raise RunError(
            f"{found.path}: {unknown[0].id} repeat {unknown[0].repeat} is rated and not in the run; score the run again"
        )
    for v in sorted(rated, key=lambda v: (release.messages[v.id].crisis_category, v.id, v.repeat)):
        message = release.messages[v.id]
        words = "\n\n".join(m.content for m in message.messages if m.role == "user" and m.content)
        yield (
            v.id,
            str(v.repeat),
            message.crisis_category,
            clip(words, CELL),
            clip(said[v.id, v.repeat], CELL),
            str(v.label),
            clip(" … ".join(v.evidence), CELL),
        )


def sheet(rows: Sequence[tuple[str, ...]]) -> str:
    """The CSV, with a byte order mark so that spreadsheets read it as UTF-8; no cell can be taken for a formula."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow([WARNING])
    writer.writerow(COLUMNS)
    writer.writerows([*map(no_formula, row), "", "", ""] for row in rows)
    return "\ufeff" + file.getvalue()


def coding(paths: Sequence[Path]) -> Coding:
    """What the sheets' coders wrote.

    Raises:
        RunError: damaged sheets or rows, a code without a coder, a reply coded twice by one person; all named at once.
            More coders or codes than can be compared.
    """
    problems: list[str] = []
    rows: list[Coded] = []
    seen: dict[tuple[str, str, int], str] = {}
    uncoded = 0
    for path in paths:
        for where, cells in _rows(path, problems):
            try:
                row = _row(cells)
            except ValueError as error:
                problems.append(f"{where}: {error}")
                continue
            if not row.code:
                uncoded += 1
            elif before := seen.get((row.coder, row.id, row.repeat)):
                problems.append(f"{where}: {row.id} repeat {row.repeat} was coded by {row.coder} already, at {before}")
            else:
                seen[row.coder, row.id, row.repeat] = where
                rows.append(row)
    if problems:
        raise run_error(problems)
    if not rows:
        raise RunError(f"{', '.join(map(str, paths))}: no row has a code; fill in the columns `code` and `coder`")
    if why := too_many(len({r.coder for r in rows}), len({r.code for r in rows})):
        raise RunError(f"{', '.join(map(str, paths))}: {why}")
    return _count(rows, uncoded)


def _rows(path: Path, problems: list[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """A sheet's rows with their place."""
    name, names = shown(path), list[str]()
    try:
        text = csv_file.load(path, "a sheet of `helmbench ratings export`")
        for line, cells in csv_file.rows(text, path, comment="#"):
            if not names:
                names = [c.strip().lower() for c in cells]
                if why := _misnamed(names):
                    problems.append(f"{name}:{line}: {why}")
                    return
            elif len(cells) != len(names):
                problems.append(f"{name}:{line}: has {len(cells)} cells, the header {len(names)}")
            else:
                yield f"{name}:{line}", dict(zip(names, (c.strip() for c in cells), strict=True))
        if not names:
            problems.append(f"{name}:1: is empty; expected the header {', '.join(COLUMNS)}")
    except FormatError as error:
        problems.append(str(error))


def _misnamed(names: list[str]) -> str | None:
    """What is wrong with a sheet's header."""
    lacking = [c for c in COLUMNS if c not in names and c not in ("message", "reply", "evidence", "note")]
    if lacking:
        return f"has no column {', '.join(lacking)}; expected the header {', '.join(COLUMNS)}"
    twice = sorted(c for c in COLUMNS if names.count(c) > 1)
    return f"column '{twice[0]}' stands twice" if twice else None


def _row(cells: dict[str, str]) -> Coded:
    """Raises: ValueError: a cell that the sheet didn't have so, or a code without a coder."""
    code, coder = (" ".join(cells[name].lstrip("'").split()) for name in ("code", "coder"))
    if not cells["id"]:
        raise ValueError("has no id")
    if not re.fullmatch(r"[0-9]{1,9}", cells["repeat"]):
        raise ValueError(f"repeat is {cells['repeat']!r}; expected a whole number from 0")
    if cells["category"] not in CATEGORIES:
        raise ValueError(f"category is {cells['category']!r}; expected one of {', '.join(sorted(CATEGORIES))}")
    if cells["rating"] not in ("1", "2", "3", "4", "5"):
        raise ValueError(f"rating is {cells['rating']!r}; expected 1 to 5")
    if code and not coder:
        raise ValueError("has a code and no coder; fill in `coder`")
    return Coded(
        with_formulas(cells["id"]),
        int(cells["repeat"]),
        cells["category"],
        int(cells["rating"]),
        code.lower().replace(" ", "_"),
        coder,
    )


def _count(rows: Sequence[Coded], uncoded: int) -> Coding:
    coders = sorted({r.coder for r in rows})
    counts = Counter((r.coder, r.code, r.category) for r in rows)
    codes: dict[str, dict[str, dict[str, int]]] = {}
    for (coder, code, category), n in sorted(counts.items()):
        codes.setdefault(coder, {}).setdefault(code, {})[category] = n
    replies = sorted({(r.id, r.repeat) for r in rows})
    labels = sorted({r.code for r in rows})
    given = np.full((len(replies), len(coders)), -1, dtype=np.int64)
    place, column, code_of = ({x: n for n, x in enumerate(own)} for own in (replies, coders, labels))
    for r in rows:
        given[place[r.id, r.repeat], column[r.coder]] = code_of[r.code]
    shared = int(((given >= 0).sum(axis=1) > 1).sum())
    found = coefficients(Ratings(given, tuple(labels), tuple(coders))) if shared else None
    return Coding(coders=coders, rows=len(rows), uncoded=uncoded, codes=codes, shared=shared, coefficients=found)


def text(c: Coding) -> str:
    """Counts by coder, code and category, and agreement where it can be measured."""
    categories = sorted({category for codes in c.codes.values() for by in codes.values() for category in by})
    given = [(coder, code, by) for coder, codes in c.codes.items() for code, by in codes.items()]
    rows = [
        (f"{coder}: {code}", str(sum(by.values())), *(str(by.get(category, 0)) for category in categories))
        for coder, code, by in given
    ]
    parts = [
        markdown_table(("coder: code", "replies", *map(plain, categories)), rows),
        f"{c.rows} rows coded by {len(c.coders)}, {c.uncoded} without a code",
    ]
    if c.coefficients is None:
        alone = (
            "no reply was coded by two people"
            if len(c.coders) > 1
            else "a single coder; have somebody else code a copy of the sheet"
        )
        parts.append(f"agreement: {alone}")
    else:
        named = {
            "raw agreement": c.coefficients.raw,
            "Cohen's κ": c.coefficients.cohen,
            "Krippendorff's α": c.coefficients.alpha_nominal,
        }
        said = ", ".join(f"{name} {_estimate(found)}" for name, found in named.items())
        parts.append(f"agreement on {c.shared} replies that two or more coded: {said}")
    return "\n\n".join(parts)


def _estimate(found: Estimate) -> str:
    return hundredths(found.value) + (
        "" if found.low is None else f" [{hundredths(found.low)}, {hundredths(found.high)}]"
    )
