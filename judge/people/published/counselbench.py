"""CounselBench-Eval (izi-ano/CounselBench-Eval on the Hub): professionals' overall ratings, 1 to 5, of four responders'
answers to 100 questions of a public forum. Rows are answers in the order in which the file first names them, from 0.

The file has a line for each rating and doesn't name the raters: they are numbered as they stand. The set puts its
questions in no category, so every answer is rated by the protocol of messages that are no crisis.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from judge.people.published.files import at, found, items, one_of, read_table, text
from judge.people.published.types import RATING, Item, LabelledSet
from judge.schema import LabelledRows

REPOSITORY = "izi-ano/CounselBench-Eval"
COLUMNS = ("questionID", "questionTitle", "questionText", "responder", "response", "overall_score")
PROTOCOL = "no_crisis"
BREAK = re.compile(r"<\s*+br\s*+(?:/\s*+)?>", re.IGNORECASE)
NOTE = "every answer is rated by the protocol of messages that are no crisis: the set names no category"
Line = tuple[int, dict[str, str]]


def answers(folder: Path, rows: LabelledRows) -> LabelledSet:
    """Every answer with the overall ratings that it got.

    Raises:
        RunError: no such file, or rows that can't be read.
    """
    path = found(folder, "counselbench_eval.csv", REPOSITORY)[0]
    rated: dict[tuple[str, str], list[Line]] = {}
    for n, row in enumerate(read_table(path, COLUMNS)):
        rated.setdefault((row["questionID"], row["responder"]), []).append((n, row))

    def read(number: int, lines: list[Line]) -> Iterator[Item]:
        first, row = lines[0]
        where = at(path, first)
        scores = [_rating(line, at(path, n)) for n, line in lines if line["overall_score"]]
        if scores:
            yield Item(
                f"{text(row, 'questionID', where)}/{text(row, 'responder', where)}",
                (_question(row, where),),
                {f"rating {n}": score for n, score in enumerate(scores, start=1)},
                _lines(text(row, "response", where)),
                PROTOCOL,
                family=row["questionID"],
                groups=(row["responder"],),
            )

    made = items(list(rated.values()), rows, read)
    return LabelledSet("counselbench", rows, "rating", RATING, made, notes=(NOTE,))


def _question(row: dict[str, str], where: str) -> str:
    """The title, unless the question says it again, and the question; a few have a title only."""
    title, body = row["questionTitle"].strip(), row["questionText"].strip()
    whole = body if title and title in body else f"{title}\n\n{body}".strip()
    return _lines(text({"questionText": whole}, "questionText", where))


def _lines(words: str) -> str:
    return BREAK.sub("\n", words)


def _rating(row: dict[str, str], where: str) -> str:
    given = row["overall_score"].strip()
    return one_of(given.removesuffix(".0"), RATING.labels, "overall_score", where)
