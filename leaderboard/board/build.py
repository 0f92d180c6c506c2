"""Submissions → the board: index.html, a page and a report for each, downloads, a Space's README."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from dataset_builder.release import Release
from helmbench_common.files import replaceable, replacing, write_whole
from helmbench_common.formats.inert import clip
from judge.replies.schema import RunError
from judge.report.page import TRANSCRIPTS, report
from leaderboard.board import downloads, gather, page, rows, shared
from leaderboard.verify.verify import verify

Progress = Callable[[str, str], None]  # gets `3 of 7`, and a submission with its outcome


def build(
    folder: Path,
    out: Path,
    releases: Sequence[Release],
    rejudged: Path | None = None,
    verify: gather.Verify = verify,
    progress: Progress = lambda count, outcome: None,
) -> rows.Board:
    """Writes the board, whole or not at all. `releases`: in any order. `progress` is called after each submission.

    Raises:
        RunError: no such folder, an `out` that isn't an earlier board, or a wrong list of re-judged runs.
        OSError: the disk.
    """
    _replaceable(out, folder)
    marks = gather.read_rejudged(rejudged, folder) if rejudged else {}
    total = len(gather.submissions(folder))
    newest_first = sorted(releases, key=lambda r: gather.version_key(r.manifest.version), reverse=True)
    found: list[rows.Entry | rows.Refused] = []
    contents: dict[str, shared.Content] = {}
    taken: set[str] = set()
    with replacing(out.resolve()) as staging:
        for number, checked in enumerate(gather.check(folder, newest_first, verify), start=1):
            entry = rows.entry(checked, marks.get(checked.name), taken)
            found.append(entry)
            progress(f"{number} of {total}", f"{clip(checked.name)}: {_outcome(checked)}")
            if isinstance(entry, rows.Entry):
                contents[entry.name] = shared.content(checked)
                _write_report(staging, entry, checked)
        shown = shared.flag([e for e in found if isinstance(e, rows.Entry)], contents)
        board = rows.board([shown.get(e.name, e) for e in found])
        texts = {e.page: page.submission_page(e, board) for e in board.entries} | {
            "index.html": page.index(board),
            downloads.JSON: downloads.as_json(board),
            downloads.CSV: downloads.as_csv(board),
            downloads.SPACE: downloads.as_space(),
        }
        for name, text in texts.items():
            (staging / name).write_text(text, encoding="utf-8")
    return board


def _write_report(staging: Path, entry: rows.Entry, checked: gather.Checked) -> None:
    verified, release = checked.verified, checked.release
    made = report(entry.card, verified.verdicts, verified.replies, release.rows, criteria=release.criteria)
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
    said = f"{verified.state}: {first.where}: {first.message}{f' (and {more} more)' if more else ''}"
    return " ".join(clip(said, 400).split())


def _replaceable(out: Path, submissions: Path) -> None:
    """Raises:
    RunError: `out` contains something other than a board, or the submissions.
    """
    here, there = Path(os.path.realpath(out)), Path(os.path.realpath(submissions))  # also for a loop of links
    if here == there or here in there.parents or there in here.parents:
        raise RunError(f"{out}: overlaps the submissions in {submissions}; expected another folder")
    if out.exists() and not replaceable(out, downloads.FORMAT, downloads.JSON, "format"):
        raise RunError(
            f"{out}: exists and is not a leaderboard; expected an empty folder or an earlier board; nothing was written"
        )
