"""A scored run → a submission's folder, verified before it is moved into place."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PureWindowsPath
from typing import Any, NamedTuple

from pydantic import ValidationError

from dataset_builder.release import Release
from helmbench_common import jsonl
from helmbench_common.files import replacing, write_whole
from judge.replies.run import Run
from judge.replies.schema import RunError
from leaderboard import secrets
from leaderboard.public import ABSOLUTE, public_verdicts
from leaderboard.schema import (
    NAME,
    NAMED,
    RESPONSES,
    SUBMISSION,
    SUMS,
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
from leaderboard.submit.run import Requests, ScoredRun, read_scored
from leaderboard.verify import files
from leaderboard.verify.findings import line
from leaderboard.verify.recompute import headline
from leaderboard.verify.verify import verify

ADDRESS = re.compile(r"(https?://)([^/?#]*)", re.IGNORECASE)
USER = re.compile(r"^[^\s/:@]+:[^\s/@]+@")  # a name and password before an address without `https://`
Plain = str | int | float | bool | None
PUBLIC = (
    "submission.json, verdicts.jsonl and SHA256SUMS can be public; the .jsonl.gz files contain every reply and are for "
    "verifiers only"
)


class Made(NamedTuple):
    """Where the submission is, the result of verifying it, and notes on what was left out or shortened."""

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
    """Writes `out`/<version>/<org>__<model>/<run>/. `name`: the run's; default: a hash of its replies.

    Raises:
        RunError: every reason why it can't be submitted; nothing is written then.
    """
    scored = read_scored(run_dir, release)
    responses = list(_responses(scored.run, scored.log.requests))
    lines = [jsonl.line(r).encode() for r in responses]
    folder = _place(out, release, about, name or hashlib.sha256(b"".join(lines)).hexdigest()[:12])
    replies = [r.reply() for r in responses]
    arguments, notes = published(scored.run.model.arguments)
    with tempfile.TemporaryDirectory() as home:
        staged = Path(home, folder.parent.name, folder.name)  # verifying compares the parent's name with the model
        staged.mkdir(parents=True)
        run = replace(scored.run, replies=replies)
        judge, of_judge = answers.pack(run, scored.card.judge, release, calibrations)
        for file, own_lines in {RESPONSES: lines, **of_judge}.items():
            files.pack(staged / file, own_lines)
        ordered = sorted(scored.verdicts, key=lambda v: (v.id, v.repeat, v.index))
        write_whole(staged / VERDICTS, jsonl.lines(public_verdicts(ordered, replies, release.criteria)))
        submission = _document(scored, judge, about, release, arguments)
        write_whole(staged / SUBMISSION, submission.model_dump_json(indent=1) + "\n")
        files.sign(staged)
        verified = verify(staged, release)
        if verified.problems:
            wrong = [f"{p.kind}: {p.where}: {p.message}" for p in verified.problems]
            raise RunError("\n".join([f"{run_dir}: can't be submitted:", *wrong]))
        if not folder.exists():
            with replacing(folder) as final:
                shutil.copytree(staged, final, dirs_exist_ok=True)
        elif not (sums := folder / SUMS).is_file() or sums.read_bytes() != (staged / SUMS).read_bytes():
            raise RunError(f"{folder}: already exists with different content; remove it, or name this one with --run")
    taken = [f"using the scores in {scored.scoring.folder}, {scored.scoring.told}"]
    return Made(folder, replace(verified, path=str(folder)), [*taken, *notes])


def _place(out: Path, release: Release, about: About, run: str) -> Path:
    if not NAME.fullmatch(run):
        raise RunError(f"--run {run}: expected {NAMED}")
    return out / release.manifest.version / f"{about.model.organization}__{about.model.name}" / run


def _responses(run: Run, requests: Requests) -> Iterator[Response]:
    """One per sample and repeat, in order of id. Lone surrogates become U+FFFD, as for the judge."""
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


def _document(
    scored: ScoredRun, judge: SubmittedJudge, about: About, release: Release, arguments: dict[str, Plain]
) -> Submission:
    """Raises:
    RunError: values that the format doesn't accept; all are named.
    """
    run, log = scored.run, scored.log
    assert run.tier is not None  # every log of a benchmark task names it
    try:
        return Submission(
            submitted=about.submitted,
            contact=about.contact,
            model=about.model,
            dataset=Pinned(
                version=release.manifest.version,
                score_hash=release.manifest.score_hash,
                tier=run.tier,
                samples=len(run.ids),
                commit=about.commit,
            ),
            generation=Generation(
                backend=run.model.backend,
                arguments=arguments,
                generation_kwargs={k: _setting(v) for k, v in log.settings.items()},
                system_prompt_sha256=None,
                lm_eval=log.lm_eval,
                inspect=log.inspect,
                task_version=log.task_version,
                template=log.template,
                repeats=max(r.repeat for r in run.replies) + 1,
            ),
            judge=judge,
            declaration=about.declaration,
            scores=headline(scored.card),
        )
    except ValidationError as error:
        raise RunError("\n".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())) from None


def _setting(value: Any) -> Any:
    """A plain value or list of strings as it is, anything else as JSON."""
    texts = isinstance(value, list) and all(isinstance(v, str) for v in value)
    return value if isinstance(value, str | int | float | bool | None) or texts else json.dumps(value)


def published(arguments: dict[str, Plain]) -> tuple[dict[str, Plain], list[str]]:
    """The run's arguments as they may be published, and notes on what was left out or shortened.

    A path keeps its last part, an address its host: a key may be in any other part of it.
    """
    found: dict[str, Plain] = {}
    notes: list[str] = []
    for name, value in arguments.items():
        if secrets.named_like(name):
            notes.append(f"generation.arguments.{name}: left out, a name under which keys are passed")
            continue
        found[name] = short = _short(value) if isinstance(value, str) else value
        if short != value:
            notes.append(f"generation.arguments.{name}: shortened to {short}")
    return found, notes


def _short(value: str) -> str:
    if address := ADDRESS.match(value):
        return f"{address[1]}{address[2].rpartition('@')[2]}"
    value = USER.sub("", value)
    return PureWindowsPath(value).name if ABSOLUTE.search(value) else value


def summary(made: Made) -> str:
    """What was packed, its state, and what to do next, for a terminal."""
    sizes = [f"  {p.name:<16}{p.stat().st_size:>12,} bytes" for p in sorted(made.folder.iterdir())]
    flags = [f"flag: {line(p)}" for p in made.verified.flags]
    return "\n".join(
        [
            f"{made.folder}: {made.verified.state}",
            *sizes,
            PUBLIC,
            *made.notes,
            *flags,
            f"next: helmbench verify {made.folder}",
        ]
    )
