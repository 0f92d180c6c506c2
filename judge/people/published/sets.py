"""A set by its name, or by the mapping file of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from dataset_builder.release import Release
from judge.people.published import bhh, counselbench, own, psychosis, vera_mh, xstest
from judge.people.published.types import LabelledSet
from judge.replies.errors import RunError
from judge.schema import LabelledRows

SETS: Mapping[str, Callable[[Path, LabelledRows], LabelledSet]] = {
    "bhh-ratings": bhh.ratings,
    "bhh-messages": bhh.messages,
    "xstest": xstest.replies,
    "psychosis": psychosis.replies,
    "vera-mh": vera_mh.conversations,
    "counselbench": counselbench.answers,
}


def read_set(name: str, folder: Path, rows: LabelledRows, release: Release) -> LabelledSet:
    """The labelled items of a set's half, in the set's own order. `name`: of `SETS`, or the path of a mapping file.

    Raises:
        RunError: no such set, or rows that can't be read.
    """
    if name in SETS:
        return SETS[name](folder, rows)
    if name.endswith((".yaml", ".yml")):
        return own.read(Path(name), folder, rows, release)
    raise RunError(f"--set {name}: no such set; expected one of {', '.join(SETS)}, or a mapping file (.yaml)")
