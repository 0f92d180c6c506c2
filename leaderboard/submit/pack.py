"""A scored run → a submission's folder: `submission.json`, `responses.zip`, `verdicts.jsonl` and `SHA256SUMS`, verified
before it is there.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PureWindowsPath
from typing import Any, NamedTuple

from pydantic import ValidationError

from dataset_builder.files import write_whole
from dataset_builder.release import Release
from judge.schema import Scorecard, Verdict
from leaderboard import archive
from leaderboard.public import ABSOLUTE, public_verdicts
from leaderboard.schema import (
    ARCHIVE,
    NAME,
    SUBMISSION,
    VERDICTS,
    Generation,
    Pinned,
    Response,
    Submission,
    SubmittedJudge,
    Verified,
)
from leaderboard.submit import answers
from leaderboard.submit.about import About
from leaderboard.submit.logged import Logged, Requests, read_logged
from leaderboard.verify import files
from leaderboard.verify.recompute import headline
from leaderboard.verify.verify import verify
from replies.errors import RunError
from replies.lm_eval_log import read_run
from replies.run import Run
from replies.visible import SURROGATES

NO_LOG = (
    "replies that were collected without lm-eval can be scored and not submitted: the board needs "
    "lm-eval's log, which holds each request as it was sent"
)


class Made(NamedTuple):
    """Where the submission is, what verifying it came to, and what was left out or shortened."""

    folder: Path
    verified: Verified
    notes: list[str]


class _Scored(NamedTuple):
    """A run with all that `judge score` wrote beside it."""

    run: Run
    logged: Logged
    card: Scorecard
    verdicts: list[Verdict]


def make(
    run_dir: Path,
    release: Release,
    about: About,
    out: Path,
    submitted: str,
    commit: str | None = None,
    name: str | None = None,
    calibrations: Sequence[Path] = (),
) -> Made:
    """Writes `out`/<version>/<org>__<model>/<run>/. `submitted`: the day, as 2026-11-22; `name`: the run's, else from
    its replies.

    Raises:
        RunError: what can't be submitted, with every reason; nothing is written then.
    """
    scored = _read(run_dir, release)
    notes: list[str] = []
    responses = list(_responses(scored.run, scored.logged.requests))
    lines = [(r.model_dump_json() + "\n").encode() for r in responses]
    run_name = name or hashlib.sha256(b"".join(lines)).hexdigest()[:12]
    if not NAME.fullmatch(run_name):
        raise RunError(
            f"--run {run_name}: expected letters, digits, '.', '_' and '-', at most 96, beginning with a "
            "letter or digit"
        )
    folder = out / release.manifest.version / f"{about.model.organization}__{about.model.name}" / run_name
    replies = [r.reply() for r in responses]
    staged = folder.with_name(f".{run_name}-staged")
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir(parents=True)
    try:
        packed = answers.pack(replace(scored.run, replies=replies), scored.card.judge, release, calibrations)
        archive.write(staged / ARCHIVE, {archive.RESPONSES: lines, **packed.members})
        ordered = sorted(scored.verdicts, key=lambda v: (v.id, v.repeat, v.index))
        write_whole(staged / VERDICTS, "".join(v.model_dump_json() + "\n" for v in public_verdicts(ordered, replies)))
        submission = _submission(scored, packed.judge, about, release, submitted, commit, notes)
        write_whole(staged / SUBMISSION, submission.model_dump_json(indent=1) + "\n")
        files.sign(staged)
        verified = verify(staged, release)
        if verified.problems:
            raise RunError(
                "\n".join(
                    [
                        f"{run_dir}: can't be submitted:",
                        *(f"{p.kind}: {p.where}: {p.message}" for p in verified.problems),
                    ]
                )
            )
        _place(staged, folder)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
        for parent in (folder.parent, folder.parent.parent):
            if parent.is_dir() and not any(parent.iterdir()):
                parent.rmdir()
    return Made(folder, replace(verified, path=str(folder)), notes)


def _place(staged: Path, folder: Path) -> None:
    if folder.exists():
        if any(
            not (folder / p.name).is_file() or files.sha256(p) != files.sha256(folder / p.name)
            for p in staged.iterdir()
        ):
            raise RunError(f"{folder}: is there already, with other content; remove it, or name this one with --run")
        return
    staged.rename(folder)


def _read(run_dir: Path, release: Release) -> _Scored:
    """The run, its log and its scorecard.

    Raises:
        RunError: with every reason why this run can't be submitted.
    """
    if run_dir.is_file() or run_dir.suffix == ".scored":
        raise RunError(f"{run_dir}: {NO_LOG}")
    # Replies to messages that stand alone, and labels for them, may stand in the same log; the board is of the
    # benchmark.
    run = replace(read_run(run_dir, release), messages=[], triage={})
    if not run.replies:
        raise RunError(
            f"{run.path}: can't be submitted:\nit holds no benchmark task; run one of helmbench, "
            "helmbench_lite, helmbench_full"
        )
    problems: list[str] = []
    if run.limited:
        problems.append("it was made with --limit or --samples; a submission holds every sample of its tier")
    elif lacking := {r.id for r in release.rows.values() if run.tier in r.tiers} - run.ids:
        problems.append(
            f"it lacks {len(lacking)} samples of tier {run.tier}, such as {min(lacking)}; run the whole group"
        )
    if run.model.system_instruction:
        problems.append(
            "it was made with --system_instruction; the board compares models under the benchmark's own prompts"
        )
    if run.model.condition:
        problems.append(
            f"it was made with a system prompt of its own ({run.model.condition.file}); the board compares "
            "models under the benchmark's own prompts"
        )
    logged = read_logged(run.path, release, run.replies)
    problems += logged.problems[:20] + ([f"and {len(logged.problems) - 20} more"] if len(logged.problems) > 20 else [])
    card, verdicts = _scores(run.path, release, problems)
    if problems or card is None:
        raise RunError("\n".join([f"{run.path}: can't be submitted:", *problems]))
    return _Scored(run, logged, card, verdicts)


def _scores(home: Path, release: Release, problems: list[str]) -> tuple[Scorecard | None, list[Verdict]]:
    if not ((home / "scorecard.json").is_file() and (home / "verdicts.jsonl").is_file()):
        problems.append("it is not scored (no scorecard.json or verdicts.jsonl); score it with `python -m judge score`")
        return None, []
    try:
        card = Scorecard.model_validate_json((home / "scorecard.json").read_bytes())
        verdicts = [Verdict.model_validate_json(line) for line in (home / "verdicts.jsonl").read_bytes().splitlines()]
    except ValidationError as error:
        problems.append(
            f"its scorecard.json or verdicts.jsonl can't be read ({error.errors()[0]['msg']}); score it again"
        )
        return None, []
    if card.dataset.score_hash != release.manifest.score_hash:
        problems.append(
            f"it was scored on dataset {card.dataset.version}; score it again on {release.manifest.version}"
        )
    return card, verdicts


def _responses(run: Run, requests: Requests) -> Iterator[Response]:
    """One per sample and repeat, in order of id. Halves of characters, which JSON can't carry, become U+FFFD, as for
    the judge.
    """
    for reply in sorted(run.replies, key=lambda r: (r.id, r.repeat)):
        sent = tuple(_whole(text) for text in requests[reply.id, reply.repeat])
        turns, finish = (
            tuple(_whole(t) for t in reply.turns),
            tuple(None if f is None else _whole(f) for f in reply.finish),
        )
        prompt = hashlib.sha256(sent[0].encode()).hexdigest()
        yield Response(
            id=reply.id, repeat=reply.repeat, prompt_sha256=prompt, requests=sent, turns=turns, finish=finish
        )


def _whole(text: str) -> str:
    return SURROGATES.sub("\ufffd", text)


def _submission(
    scored: _Scored,
    judge: SubmittedJudge,
    about: About,
    release: Release,
    submitted: str,
    commit: str | None,
    notes: list[str],
) -> Submission:
    run, logged = scored.run, scored.logged
    assert run.tier is not None  # read_run gives one to every run of lm-eval's
    arguments = {key: _short(key, value, notes) for key, value in run.model.arguments.items()}
    settings = {
        k: v if isinstance(v, str | int | float | bool | None) or _texts(v) else json.dumps(v)
        for k, v in logged.settings.items()
    }
    try:
        return Submission(
            submitted=submitted,
            contact=about.contact,
            model=about.model,
            dataset=Pinned(
                version=release.manifest.version,
                score_hash=release.manifest.score_hash,
                tier=run.tier,
                samples=len(run.ids),
                commit=commit,
            ),
            generation=Generation(
                backend=run.model.backend,
                arguments=arguments,
                generation_kwargs=settings,
                system_prompt_sha256=None,
                lm_eval=logged.lm_eval,
                task_version=logged.task_version,
                repeats=max(r.repeat for r in run.replies) + 1,
            ),
            judge=judge,
            declaration=about.declaration,
            scores=headline(scored.card),
        )
    except ValidationError as error:
        raise RunError("\n".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())) from None


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in value)


def _short(key: str, value: str | int | float | bool | None, notes: list[str]) -> str | int | float | bool | None:
    """An argument as it may be published: of a path its last part, of an address nothing behind its `?`."""
    if not isinstance(value, str):
        return value
    short = value.partition("?")[0] if re.match(r"https?://", value) else value
    if ABSOLUTE.search(short) and not re.match(r"https?://", short):
        short = PureWindowsPath(short).name
    if short != value:
        notes.append(f"generation.arguments.{key}: shortened to {short}")
    return short
