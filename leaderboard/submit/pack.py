"""A scored run → a submission's folder: `submission.json`, `responses.jsonl.gz`, `verdicts.jsonl` and `SHA256SUMS`,
verified before it is there.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from dataset_builder.release import Release
from helmbench_common import jsonl
from helmbench_common.files import write_whole
from judge.replies.run import Run
from judge.replies.schema import RunError
from leaderboard.public import public_verdicts
from leaderboard.schema import NAME, RESPONSES, SUBMISSION, VERDICTS, Response, Verified
from leaderboard.submit import answers
from leaderboard.submit.about import About
from leaderboard.submit.document import document, published
from leaderboard.submit.logged import Requests
from leaderboard.submit.ready import read_ready
from leaderboard.verify import files
from leaderboard.verify.verify import verify


class Made(NamedTuple):
    """Where the submission is, what verifying it came to, and what was taken, left out or shortened."""

    folder: Path
    verified: Verified
    notes: list[str]


def make(
    run_dir: Path,
    release: Release,
    about: About,
    out: Path,
    name: str | None = None,
    calibrations: Sequence[Path] = (),
) -> Made:
    """Writes `out`/<version>/<org>__<model>/<run>/. `name`: the run's, else from its replies.

    Raises:
        RunError: what can't be submitted, with every reason; nothing is written then.
    """
    ready = read_ready(run_dir, release)
    responses = list(_responses(ready.run, ready.logged.requests))
    lines = [jsonl.line(r).encode() for r in responses]
    folder = _place(out, release, about, name or hashlib.sha256(b"".join(lines)).hexdigest()[:12])
    replies = [r.reply() for r in responses]
    own = published(ready.run.model.arguments)
    with _staged(folder) as staged:
        packed = answers.pack(replace(ready.run, replies=replies), ready.card.judge, release, calibrations)
        for file, own_lines in {RESPONSES: lines, **packed.files}.items():
            files.pack(staged / file, own_lines)
        ordered = sorted(ready.verdicts, key=lambda v: (v.id, v.repeat, v.index))
        write_whole(staged / VERDICTS, jsonl.lines(public_verdicts(ordered, replies)))
        submission = document(ready, packed.judge, about, release, own.arguments)
        write_whole(staged / SUBMISSION, submission.model_dump_json(indent=1) + "\n")
        files.sign(staged)
        verified = verify(staged, release)
        if verified.problems:
            wrong = [f"{p.kind}: {p.where}: {p.message}" for p in verified.problems]
            raise RunError("\n".join([f"{run_dir}: can't be submitted:", *wrong]))
        _move(staged, folder)
    taken = [f"took the scores in {ready.scoring.folder}, {ready.scoring.told}"]
    return Made(folder, replace(verified, path=str(folder)), [*taken, *own.notes])


def _place(out: Path, release: Release, about: About, run: str) -> Path:
    if not NAME.fullmatch(run):
        raise RunError(
            f"--run {run}: expected letters, digits, '.', '_' and '-', at most 96, beginning with a letter or digit"
        )
    return out / release.manifest.version / f"{about.model.organization}__{about.model.name}" / run


@contextmanager
def _staged(folder: Path) -> Iterator[Path]:
    """An empty folder beside `folder` to write into; gone afterwards, with the folders above that stayed empty."""
    staged = folder.with_name(f".{folder.name}-staged")
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir(parents=True)
    try:
        yield staged
    finally:
        shutil.rmtree(staged, ignore_errors=True)
        for parent in (folder.parent, folder.parent.parent):
            if parent.is_dir() and not any(parent.iterdir()):
                parent.rmdir()


def _move(staged: Path, folder: Path) -> None:
    if folder.exists():
        if any(
            not (folder / p.name).is_file() or files.sha256(p) != files.sha256(folder / p.name)
            for p in staged.iterdir()
        ):
            raise RunError(f"{folder}: is there already, with other content; remove it, or name this one with --run")
        return
    staged.rename(folder)


def _responses(run: Run, requests: Requests) -> Iterator[Response]:
    """One per sample and repeat, in order of id. Halves of characters, which JSON can't carry, become U+FFFD, as for
    the judge.
    """
    for reply in sorted(run.replies, key=lambda r: (r.id, r.repeat)):
        sent = tuple(jsonl.plain(text) for text in requests[reply.id, reply.repeat])
        yield Response(
            id=reply.id,
            repeat=reply.repeat,
            prompt_sha256=hashlib.sha256(sent[0].encode()).hexdigest(),
            requests=sent,
            turns=tuple(jsonl.plain(t) for t in reply.turns),
            finish=tuple(None if f is None else jsonl.plain(f) for f in reply.finish),
        )
