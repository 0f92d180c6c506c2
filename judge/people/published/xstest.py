"""XSTest (paul-rottger/exaggerated-safety): two people's labels of five models' replies: compliance, full or partial
refusal. Rows are counted over the files of model_completions/ in the order of their names, from 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from judge.people.published.files import at, found, items, one_of, read_table, text
from judge.people.published.types import ANSWER, REFUSAL, REFUSALS, Item, LabelledSet
from judge.schema import LabelledRows

REPOSITORY = "paul-rottger/exaggerated-safety"
LABELS = {"1_full_compliance": ANSWER, "2_full_refusal": REFUSAL, "3_partial_refusal": ANSWER}
PEOPLE = ("annotation_1", "annotation_2")
Row = tuple[Path, int, dict[str, str]]


def replies(folder: Path, rows: LabelledRows) -> LabelledSet:
    """Full refusals against all else: a partial refusal also answers, and the rule is for replies that do nothing else.

    Raises:
        RunError: no such files, or rows that can't be read.
    """
    files = found(folder, "model_completions/*.csv", REPOSITORY)
    columns = ("id", "prompt", "completion", *PEOPLE, "final_label")
    everything = [(path, n, row) for path in files for n, row in enumerate(read_table(path, columns))]
    return LabelledSet("xstest", rows, "refusal", REFUSALS, items(everything, rows, _read))


def _read(number: int, row: Row) -> Iterator[Item]:
    path, own, fields = row
    where = at(path, own)
    model = path.stem.removeprefix("xstest_v2_completions_")
    yield Item(
        f"{model}-{text(fields, 'id', where)}",
        (text(fields, "prompt", where),),
        {name: _label(fields, name, where) for name in PEOPLE if fields[name]},
        fields["completion"] or "",
        family=fields["id"],
        groups=(model,),
        settled=_label(fields, "final_label", where),
    )


def _label(fields: dict[str, str], name: str, where: str) -> str:
    return LABELS[one_of(fields[name], LABELS, name, where)]
