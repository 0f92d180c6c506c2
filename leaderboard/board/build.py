"""Submissions → the board: index.html, a page and a report for each, leaderboard.json and leaderboard.csv."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from dataset_builder.release import Release
from helmbench_common.files import replacing, write_whole
from helmbench_common.formats import json_file
from helmbench_common.formats.inert import clip
from judge.replies.schema import RunError
from judge.report.page import TRANSCRIPTS, report
from leaderboard.board import downloads, gather, page, rows, twins
from leaderboard.verify.verify import verify


class Step(NamedTuple):
    """One submission has been verified: the `number`-th of `total`, and what it came to, in one line that can't steer a
    terminal.
    """

    number: int
    total: int
    name: str
    outcome: str


Told = Callable[[Step], None]


def build(
    folder: Path,
    out: Path,
    releases: Sequence[Release],
    rejudged: Path | None = None,
    verify: gather.Verify = verify,
    told: Told = lambda step: None,
) -> rows.Board:
    """Writes the board, whole or not at all. `releases`: in any order. `told` is called after each submission.

    Raises:
        RunError: no such folder, an `out` that is not ours to replace, or a wrong list of what was judged again.
        OSError: the disk.
    """
    _replaceable(out, folder)
    marks = gather.read_rejudged(rejudged, folder) if rejudged else {}
    total = len(gather.submissions(folder))
    found: list[rows.Entry | rows.Refused] = []
    words: dict[str, frozenset[bytes]] = {}
    taken: set[str] = set()
    with replacing(out.resolve()) as staging:
        for number, checked in enumerate(gather.check(folder, gather.newest_first(releases), verify), start=1):
            entry = rows.entry(checked, marks.get(checked.name), taken)
            found.append(entry)
            told(Step(number, total, clip(checked.name), _outcome(checked)))
            if isinstance(entry, rows.Entry):
                words[entry.name] = twins.own_words(checked.verified, checked.release)
                _write_report(staging, entry, checked)
        shown = twins.flagged([e for e in found if isinstance(e, rows.Entry)], words)
        board = rows.board([shown.get(e.name, e) for e in found])
        _write_pages(staging, board)
    return board


def _write_pages(staging: Path, board: rows.Board) -> None:
    for entry in board.entries:
        (staging / entry.page).write_text(page.submission_page(entry, board), encoding="utf-8")
    (staging / "index.html").write_text(page.index(board), encoding="utf-8")
    (staging / downloads.JSON).write_text(downloads.as_json(board), encoding="utf-8")
    (staging / downloads.CSV).write_text(downloads.as_csv(board), encoding="utf-8")


def _write_report(staging: Path, entry: rows.Entry, checked: gather.Checked) -> None:
    made = report(
        entry.card,
        checked.verified.verdicts,
        checked.verified.replies,
        checked.release.rows,
        criteria=checked.release.criteria,
    )
    path = staging / entry.report
    path.parent.mkdir(parents=True)
    path.write_text(made.page, encoding="utf-8")
    write_whole(path.with_name(TRANSCRIPTS), made.transcripts)


def _outcome(checked: gather.Checked) -> str:
    """`verified`, `demo`, or `refused` with the first reason."""
    verified = checked.verified
    if not verified.problems:
        return verified.state
    first, more = verified.problems[0], len(verified.problems) - 1
    return " ".join(
        clip(f"{verified.state}: {first.where}: {first.message}{f' (and {more} more)' if more else ''}", 400).split()
    )


def _replaceable(out: Path, submissions: Path) -> None:
    """Raises:
    RunError: `out` holds something else than a board, or the submissions themselves.
    """
    here, there = Path(os.path.realpath(out)), Path(os.path.realpath(submissions))  # a ring of links is one, too
    if here == there or here in there.parents or there in here.parents:
        raise RunError(f"{out}: holds or stands among the submissions of {submissions}; expected a folder beside them")
    if not out.exists():
        return
    try:
        ours = out.is_dir() and (
            not any(out.iterdir())
            or json_file.load(out / downloads.JSON, "an earlier board")["format"]
            in (downloads.FORMAT, *downloads.EARLIER)
        )
    except (OSError, ValueError, LookupError, TypeError):
        ours = False
    if not ours:
        raise RunError(
            f"{out}: exists and is not a leaderboard; expected an empty folder or an earlier board; nothing was written"
        )
