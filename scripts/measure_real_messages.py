"""Measures how real messages read: public sets → dataset_builder/stats/real_messages.yaml. No text of any set.

Run it when a feature of dataset_builder/stats/surface.py changes. The checkouts stay outside this repository.
"""

from __future__ import annotations

import csv
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml
from harness import run

from dataset_builder.corpora.read import select
from dataset_builder.stats.surface import REAL_MESSAGES, distribution, known_sets
from helmbench_common.errors import RefusedError
from judge.agreement.published.sets import load_set
from judge.replies.schema import RunError

HEAD = """\
# Figures of public sets of real messages; no text of them is here. Made by scripts/measure_real_messages.py.
# A list is lower quartile, median, upper quartile; a single figure the share of messages in per cent.
"""
GONE = {"", "[removed]", "[deleted]", "nan"}  # what the sets contain in place of a deleted post


def columns(column: str, *files: str) -> Callable[[Path], Iterator[str]]:
    """Reads one column of CSV files."""

    def read(folder: Path) -> Iterator[str]:
        for name in files:
            with (folder / name).open(encoding="utf-8", newline="") as file:
                for row in csv.DictReader(file):
                    yield row[column] or ""

    return read


def odd_half(folder: Path) -> Iterator[str]:
    """Messages that people labeled; the even half is reserved for one measurement and stays unread."""
    (source,) = load_set("bhh-messages").recipe.sources
    for _, row in select(str(source.query), source.name, folder):
        if row["row"] % 2:
            yield row["message"]


# How to read a checkout of each set in the file, which says what its messages are.
READ: dict[str, Callable[[Path], Iterator[str]]] = {
    "counsel-chat": columns("questionText", "data/20200325_counsel_chat.csv"),
    "sdcnl": columns("selftext", "data/training-set.csv"),
    "bhh-odd": odd_half,
    "banking77": columns("text", "banking_data/train.csv", "banking_data/test.csv"),
}


def measured(one: dict[str, Any], sets: Path) -> dict[str, Any]:
    """A set's entry with the figures of its checkout.

    Raises:
        OSError, KeyError, RefusedError: no checkout, or one of another set.
    """
    folder = sets / one["source"].rpartition("/")[2]
    texts = dict.fromkeys(text.strip() for text in READ[one["set"]](folder))
    log = ["git", "-C", str(folder), "log", "-1", "--format=%H %cs"]
    commit, date = subprocess.run(log, capture_output=True, text=True, check=True).stdout.split()
    figures = distribution(text for text in texts if text.lower() not in GONE)
    return one | {"commit": commit, "date": date, "figures": figures}


def main(sets: Path, out: Path = REAL_MESSAGES) -> None:
    """Measure how real messages read, and keep the figures. SETS: a folder with a checkout of each set's repository."""
    csv.field_size_limit(10_000_000)
    found = []
    for one in known_sets():
        try:
            found.append(measured(one, sets))
        except (OSError, KeyError, RefusedError, subprocess.CalledProcessError) as error:
            raise RunError(f"{one['set']}: can't be read ({error}); expected a checkout of {one['source']}") from None
    text = yaml.safe_dump(found, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None)
    out.write_text(HEAD + text, encoding="utf-8")


if __name__ == "__main__":
    run(main)
