"""Submissions → the board: index.html, a page and a report for each, downloads, a Space's README."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from dataset_builder.release import Release
from helmbench_common.files import replaceable, replacing, write_whole
from helmbench_common.formats.inert import clip
from helmbench_common.hashing import digest
from judge.replies.schema import RunError
from judge.report.page import TRANSCRIPTS, report
from leaderboard.board import downloads, gather, page, rows
from leaderboard.verify.coverage import free_text
from leaderboard.verify.verify import verify

Progress = Callable[[str, str], None]  # gets `3 of 7`, and a submission with its outcome
Replies = dict[str, frozenset[tuple[str, ...]]]  # by submission
SHARE, LEAST = 0.1, 5  # flag from this share of the smaller submission's replies, and this many replies


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
    replies: Replies = {}
    taken: set[str] = set()
    with replacing(out.resolve()) as staging:
        for number, checked in enumerate(gather.check(folder, newest_first, verify), start=1):
            entry = rows.entry(checked, marks.get(checked.name), taken)
            found.append(entry)
            progress(f"{number} of {total}", f"{clip(checked.name)}: {_outcome(checked)}")
            if isinstance(entry, rows.Entry):
                replies[entry.name] = own_replies(checked)
                _write_report(staging, entry, checked)
        shown = flag_shared_replies([e for e in found if isinstance(e, rows.Entry)], replies)
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


def own_replies(checked: gather.Checked) -> frozenset[tuple[str, ...]]:
    """(hash, sample) of the replies that only one sample got. A canned reply to many samples identifies no run."""
    samples: dict[str, set[str]] = defaultdict(set)
    for reply, said in free_text(checked.verified.replies, checked.release):
        samples[digest(said)].add(reply.id)
    return frozenset((said, *ids) for said, ids in samples.items() if len(ids) == 1)


def flag_shared_replies(entries: Iterable[rows.Entry], replies: Replies) -> dict[str, rows.Entry]:
    """The entries by name, flagged if they share replies with another model: one model under two names, one run
    submitted twice, or copied replies. `replies`: `own_replies` of each.
    """
    found = {e.name: e for e in entries}
    holders: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name in sorted(found):
        for reply in replies[name]:
            holders[reply].append(name)
    common = Counter(pair for names in holders.values() for pair in combinations(names, 2))
    shares: dict[str, dict[str, float]] = defaultdict(dict)
    for (a, b), shared in common.items():
        one, other = found[a].model, found[b].model
        share = shared / min(len(replies[a]), len(replies[b]))
        if one.casefold() != other.casefold() and shared >= LEAST and share >= SHARE:
            shares[a][other] = max(share, shares[a].get(other, 0))
            shares[b][one] = max(share, shares[b].get(one, 0))
    return {name: replace(e, flags=(*e.flags, *_shared(shares.get(name, {})))) for name, e in found.items()}


def _shared(shares: dict[str, float]) -> list[str]:
    """The flag for replies shared with other models, by model."""
    if not shares:
        return []
    most, names = max(shares.values()), ", ".join(sorted(shares))
    if len(shares) == 1:
        return [f"{most:.0%} of the replies are identical to those of {names}"]
    return [f"replies identical to those of {len(shares)} other models: up to {most:.0%}, of {names}"]
