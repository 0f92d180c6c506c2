"""Submissions → the board: index.html, a page and a report for each, leaderboard.json and leaderboard.csv.

Usage: python scripts/build_leaderboard.py SUBMISSIONS_DIR --out board/ [--dataset DIR …] [--rejudged FILE]
Every submission is verified again. Exit code 1: some are refused (the board is built, and lists them); 2: no board
could be built.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from dataset_builder.files import replacing
from dataset_builder.release import Release, ReleaseError, open_release
from judge.report.page import SAMPLES, report
from judge.wording import clip
from leaderboard.board import downloads, gather, page, rows
from leaderboard.verify.verify import verify
from replies.errors import RunError


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description="Verify submissions and build the static board from those that hold.")
    parser.add_argument("submissions", type=Path, help="folder with submissions below it")
    parser.add_argument(
        "--out", type=Path, required=True, help="folder of the board; an earlier board there is replaced"
    )
    parser.add_argument(
        "--dataset",
        type=Path,
        action="append",
        help="a built dataset (default: as for the judge); once for each version whose runs are to be shown",
    )
    parser.add_argument(
        "--rejudged",
        type=Path,
        metavar="FILE",
        help="YAML list of the runs that a maintainer judged again (docs/leaderboard.md)",
    )
    options = parser.parse_args(arguments)
    try:
        releases = gather.newest_first([open_release(folder) for folder in options.dataset or [None]])
        board = build(options.submissions, options.out, releases, options.rejudged)
    except (ReleaseError, RunError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    demos = sum(e.demo for e in board.entries)
    print(
        f"{options.out / 'index.html'}: {len(board.entries) - demos} verified, {demos} demos, "
        f"{len(board.refused)} refused"
    )
    return 1 if board.refused else 0


def build(
    folder: Path, out: Path, releases: list[Release], rejudged: Path | None = None, verify: gather.Verify = verify
) -> rows.Board:
    """Writes the board, whole or not at all. `releases`: the newest first.

    Raises:
        RunError: no such folder, an `out` that is not ours to replace, or a wrong list of what was judged again.
            OSError: the disk.
    """
    _replaceable(out, folder)
    marks = gather.read_rejudged(rejudged, folder) if rejudged else {}
    total, started = len(gather.submissions(folder)), time.monotonic()
    found: list[rows.Entry | rows.Refused] = []
    taken: set[str] = set()
    with replacing(out.resolve()) as staging:
        for number, checked in enumerate(gather.check(folder, releases, verify), start=1):
            entry = rows.entry(checked, marks.get(checked.name), taken)
            found.append(entry)
            print(
                f"{number} of {total}, {time.monotonic() - started:.0f} s: {clip(checked.name)}: {_outcome(checked)}",
                flush=True,
            )
            if isinstance(entry, rows.Entry):
                _write_report(staging, entry, checked)
        board = rows.board(found)
        for entry in board.entries:
            (staging / entry.page).write_text(page.submission_page(entry, board), encoding="utf-8")
        (staging / "index.html").write_text(page.index(board), encoding="utf-8")
        (staging / downloads.JSON).write_text(downloads.as_json(board), encoding="utf-8")
        (staging / downloads.CSV).write_text(downloads.as_csv(board), encoding="utf-8")
    return board


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
    if made.samples is not None:
        path.with_name(SAMPLES).write_text(made.samples, encoding="utf-8")


def _outcome(checked: gather.Checked) -> str:
    """`verified`, `demo`, or `refused` with the first reason; one line that can't steer a terminal."""
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
    here, there = out.resolve(), submissions.resolve()
    if here == there or here in there.parents or there in here.parents:
        raise RunError(f"{out}: holds or stands among the submissions of {submissions}; expected a folder beside them")
    if not out.exists():
        return
    try:
        ours = out.is_dir() and (
            not any(out.iterdir()) or json.loads((out / downloads.JSON).read_bytes())["format"] == downloads.FORMAT
        )
    except (OSError, ValueError, LookupError, TypeError):
        ours = False
    if not ours:
        raise RunError(
            f"{out}: exists and is no leaderboard; expected an empty or earlier board's folder, so nothing was written"
        )


if __name__ == "__main__":
    sys.exit(main())
