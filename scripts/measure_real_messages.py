"""Measures how real messages read: public sets → dataset_builder/stats/real_messages.yaml. No text of any set.

Run it when a feature of dataset_builder/stats/surface.py changes. The checkouts stay outside this repository.
"""

from __future__ import annotations

import csv
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from harness import run

from dataset_builder.stats.surface import REAL_MESSAGES, distribution
from judge.agreement.published.labeled_set import items
from judge.agreement.published.sets import bhh_messages
from judge.replies.schema import RunError

HEAD = """\
# Figures of public sets of real messages; no text of them is here. Made by scripts/measure_real_messages.py.
# A list is lower quartile, median, upper quartile; a single figure the share of messages in per cent.
"""
GONE = {"", "[removed]", "[deleted]", "nan"}  # what the sets contain in place of a deleted post


class Source(NamedTuple):
    """`rows`: what a message is, in words; `read`: the messages in a checkout."""

    name: str
    repository: str
    licence: str
    rows: str
    read: Callable[[Path], Iterator[str]]


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
    for item in items(*bhh_messages(folder), "odd"):
        yield from item.said


SOURCES = (
    Source(
        "counsel-chat",
        "nbertagnolli/counsel-chat",
        "MIT",
        "questions to counsellors: questionText, each once",
        columns("questionText", "data/20200325_counsel_chat.csv"),
    ),
    Source(
        "sdcnl",
        "ayaanzhaque/SDCNL",
        "none stated",
        "posts in two forums, on suicide and on depression: selftext of the training set, without titles, each once",
        columns("selftext", "data/training-set.csv"),
    ),
    Source(
        "bhh-odd",
        "ellisalicante/LLMs-Mental-Health-Crisis",
        "CC BY-NC 4.0 on the Hub, none stated in the repository",
        "what people wrote about their state, with and without a crisis: the odd rows, each once",
        odd_half,
    ),
    Source(
        "banking77",
        "PolyAI-LDN/task-specific-datasets",
        "CC BY 4.0",
        "requests to a bank's service: banking_data, both files, each once",
        columns("text", "banking_data/train.csv", "banking_data/test.csv"),
    ),
)


def measured(source: Source, sets: Path) -> dict[str, Any]:
    """One set's source and figures, as written to the file.

    Raises:
        OSError, KeyError, RunError: no checkout, or one of another set.
    """
    folder = sets / source.repository.rpartition("/")[2]
    texts = dict.fromkeys(text.strip() for text in source.read(folder))
    done = subprocess.run(
        ["git", "-C", str(folder), "log", "-1", "--format=%H %cs"], capture_output=True, text=True, check=True
    )
    commit, date = done.stdout.split()
    return {
        "set": source.name,
        "source": f"https://github.com/{source.repository}",
        "commit": commit,
        "date": date,
        "licence": source.licence,
        "rows": source.rows,
        "figures": distribution(text for text in texts if text.lower() not in GONE),
    }


def main(sets: Path, out: Path = REAL_MESSAGES) -> None:
    """Measure how real messages read, and keep the figures. SETS: a folder with a checkout of each set's repository."""
    csv.field_size_limit(10_000_000)
    found = []
    for source in SOURCES:
        try:
            found.append(measured(source, sets))
        except (OSError, KeyError, RunError, subprocess.CalledProcessError) as error:
            raise RunError(
                f"{source.name}: can't be read ({error}); expected a checkout of {source.repository}"
            ) from None
    text = yaml.safe_dump(found, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None)
    out.write_text(HEAD + text, encoding="utf-8")


if __name__ == "__main__":
    run(main)
