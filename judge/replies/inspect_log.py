"""An Inspect AI log (`LOG.eval`) → a run. Nothing here judges.

Inspect's own reader reads it; it is imported only when a log is opened, since other users may not have Inspect.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from dataset_builder.release import Release
from dataset_builder.schema import Sample
from helmbench_common import jsonl
from helmbench_common.formats.plain_file import opened
from helmbench_common.formats.refused import shown
from judge.replies.recorded import (
    APPROPRIATENESS,
    BENCHMARK,
    TALKS,
    TRIAGE,
    Recorded,
    measured_on,
    publishable,
    recorded,
)
from judge.replies.run import Run
from judge.replies.schema import MOST_REPEATS, Model, Reply, RunError
from judge.replies.script import first_request, live_turns
from judge.replies.talks import Talk, read_talk

SUFFIX = ".eval"
RECORDED = "helmbench"  # in the log's metadata: the task's record of itself
SCRIPT = "script"  # in a sample's metadata: the script after each live turn
TURNS, FINISHES = "helmbench:turns", "helmbench:finishes"  # in its store: each turn's reply, and how it ended
TALK = "helmbench:talk"  # in the store, and in the score's metadata, of a talk: its record
# In its score's metadata: the replies, the judge, and the lines of the judge's answers.
REPLY, GRADER, ANSWERS = "reply", "grader", "answers"
# Limits on a log's unpacked size, in bytes; far above any legitimate one, since Inspect holds a member and its objects
# in memory.
HEADERS, HEADER_BYTES = ("header.json", "_journal/start.json"), 64 * 2**20
MEMBER_BYTES = 256 * 2**20  # for a sample or any other member
RATIO = 1000  # unpacked to packed: deflate reaches about 1030 at most, on one repeated byte
RATIO_FROM = 16 * 2**20  # bytes below which the ratio isn't checked
MEMBERS = 2_000_000  # each sample is one, and so is each of its journal's lists
PLUMBING = {"max_retries", "max_connections", "timeout", "attempt_timeout"}  # settings that don't affect replies
HEAVY = {"events", "messages", "output", "attachments", "events_data", "model_usage", "timelines"}


def read_log(path: Path, release: Release) -> Run:
    """The run in a log. Samples that ended in an error count as asked and unanswered.

    Raises:
        RunError: not a HelmBench log, an unreadable one, or a run of another dataset version.
    """
    header = _header(path)
    metadata = (header.eval.metadata or {}).get(RECORDED)
    if not isinstance(metadata, dict):
        raise RunError(f"{path}: not a log of a helmbench task; expected one of `inspect eval helmbench/core`")
    own = recorded(path, header.eval.task, metadata)
    measures, tier = own.measures, measured_on(path, header.eval.task, own, release)
    talks = _talks(path, release) if measures == TALKS else []
    replies = [] if measures == TALKS else _replies(path, own, release)
    if not replies and not talks:
        raise RunError(f"{path}: contains no samples; the run stopped before the first was done")
    config = header.eval.config
    alone = {} if measures in (BENCHMARK, APPROPRIATENESS, TALKS) else {measures.removeprefix(TRIAGE): replies}
    return Run(
        path=path,
        model=_model(header, own),
        tier=tier if measures == BENCHMARK else None,
        replies=replies if measures == BENCHMARK else [],
        limited=config.limit is not None or config.sample_id is not None,
        messages=replies if measures == APPROPRIATENESS else [],
        triage=alone,
        messages_tier=None if measures in (BENCHMARK, TALKS) else tier,
        talks=talks,
    )


def _replies(path: Path, own: Recorded, release: Release) -> list[Reply]:
    """The reply of each sample, in each of its epochs."""
    rows: Any = release.rows if own.measures == BENCHMARK else release.messages
    found: dict[tuple[str, int], Reply] = {}
    for sample in _samples(path, HEAVY):
        reply = _reply(path, sample, rows)
        if own.measures == BENCHMARK and not (own.condition or own.system_instruction):
            _refuse_other_input(path, sample, rows[reply.id])
        if (reply.id, reply.repeat) in found:
            raise RunError(f"{path}: sample {reply.id} epoch {sample.epoch} appears twice in this log; expected once")
        found[reply.id, reply.repeat] = reply
    return list(found.values())


def _talks(path: Path, release: Release) -> list[Talk]:
    """The talks of a log; one that the run didn't finish counts as an error."""
    found: dict[tuple[str, int], Talk] = {}
    for s in _samples(path, HEAVY):
        kept = [score.metadata.get(TALK) for score in (s.scores or {}).values() if score.metadata]
        record = s.store.get(TALK) or next(filter(None, kept), None)
        lost = {"id": str(s.id), "user": "", "said": [], "turns": [], "finish": [], "state": "error"}
        why = _line(s.error.message) if s.error else "the run did not finish it"
        talk = read_talk(record or {**lost, "why": why}, f"{path}: sample {s.id}", release)
        if (talk.id, s.epoch - 1) in found:
            raise RunError(f"{path}: sample {talk.id} epoch {s.epoch} appears twice in this log; expected once")
        found[talk.id, s.epoch - 1] = talk.model_copy(update={"repeat": s.epoch - 1})
    return list(found.values())


def graded(path: Path) -> tuple[str | None, list[dict[str, Any]]]:
    """The language model that judged during the run, and the lines of its answers, in the batch format; None if only
    rules and the offline judge did.

    Raises:
        RunError: the log is unreadable, or its lines are invalid.
    """
    grader: str | None = None
    lines: list[dict[str, Any]] = []
    if GRADER not in (_header(path).eval.model_roles or {}):
        return None, lines  # skips the samples, which may be large
    for sample in _samples(path, HEAVY | {"store"}):
        for score in (sample.scores or {}).values():
            found = score.metadata or {}
            if isinstance(found.get(GRADER), str):
                grader = found[GRADER]
                lines += _answers(path, sample, found.get(ANSWERS))
    return grader, lines


def _answers(path: Path, sample: Any, given: Any) -> list[dict[str, Any]]:
    """The lines of a grader's answers.

    Raises:
        RunError: the lines are invalid.
    """
    lines = given or []
    if not isinstance(lines, list) or not all(isinstance(x, dict) for x in lines):
        raise RunError(f"{path}: sample {sample.id} has answers that are no lines of a batch; the log was edited")
    return lines


def first_inputs(path: Path, most: int) -> Iterator[tuple[str, list[str]]]:
    """The texts of the first request of a few samples, with the sample id."""
    for number, sample in enumerate(_samples(path, HEAVY | {"scores", "store"})):
        if number == most:
            return
        yield str(sample.id), [m.text for m in sample.input] if isinstance(sample.input, list) else [sample.input]


def requests(path: Path) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """Id, repeat, and each request of a sample: the JSON of its messages, one text per live turn. The grader's
    requests, and requests that a provider didn't answer, are left out.
    """
    for sample in _samples(path, {"messages", "store", "scores"}):
        asked = [e for e in sample.events if e.event == "model" and e.role is None and e.error is None]
        texts = (json.dumps([{"role": m.role, "content": m.text} for m in e.input], ensure_ascii=False) for e in asked)
        yield str(sample.id), sample.epoch - 1, tuple(texts)


class Made(NamedTuple):
    """How a log was made. `settings`: generation settings shared by all requests."""

    inspect: str
    task_version: str
    settings: dict[str, Any]


def made(path: Path) -> Made:
    """The versions and settings recorded in a log."""
    header = _header(path)
    given = header.eval.model_generate_config.model_dump(exclude_none=True)
    settings = {**header.plan.config.model_dump(exclude_none=True), **given}
    kept = {k: v for k, v in settings.items() if k not in PLUMBING}
    return Made(str(header.eval.packages.get("inspect_ai", "unknown")), str(header.eval.task_version), kept)


def _header(path: Path) -> Any:
    log = _inspect()
    if not path.is_file():
        raise RunError(f"{path}: no such file; expected a log of `inspect eval helmbench/core`")
    _refuse_bomb(path)
    try:
        return log.read_eval_log(str(path), header_only=True)
    except Exception as error:  # the library raises whatever its zip, JSON and schema readers raise
        raise RunError(f"{path}: can't be read as a log of Inspect ({_short(error)})") from None


def _samples(path: Path, leaving: set[str]) -> Iterator[Any]:
    log = _inspect()
    _refuse_bomb(path)
    try:
        yield from log.read_eval_log_samples(
            str(path), all_samples_required=False, resolve_attachments=True, exclude_fields=leaving
        )
    except RunError:
        raise
    except Exception as error:
        raise RunError(f"{path}: contains a sample that can't be read ({_short(error)})") from None


def _refuse_bomb(path: Path) -> None:
    """Checks the size of a log's members before Inspect, which has no limits, unpacks any; cached while the file is
    unchanged.

    Raises:
        RunError: a member, or their number, exceeds the limits or the size in the directory; or the file is unreadable.
    """
    try:
        status = path.stat()
        _measure(path, status.st_ino, status.st_size, status.st_mtime_ns)
    except RunError:
        raise
    except Exception as error:  # whatever `zipfile` and its decompressors raise
        raise RunError(f"{path}: can't be read as a log of Inspect ({_short(error)})") from None


@lru_cache(maxsize=16)
def _measure(path: Path, *_: int) -> None:
    """Unpacks every member up to its limit. The numbers identify the file's state, for the cache."""
    with opened(path) as file, zipfile.ZipFile(file) as archive:
        infos = archive.infolist()
        _refuse_large(path, infos)
        for info in infos:
            _refuse_longer(path, archive, info)


def _refuse_large(path: Path, infos: list[zipfile.ZipInfo]) -> None:
    if len(infos) > MEMBERS:
        raise RunError(f"{path}: holds {len(infos):,} members; expected a log of Inspect, with {MEMBERS:,} at most")
    for info in infos:
        most = HEADER_BYTES if info.filename in HEADERS else MEMBER_BYTES
        most = min(most, max(RATIO_FROM, RATIO * info.compress_size))
        if info.file_size > most:
            named, sizes = shown(info.filename)[:80], f"{info.compress_size:,} bytes to {info.file_size:,}"
            raise RunError(
                f"{path}: its member {named} unpacks from {sizes}; expected a log of Inspect, {most:,} at most"
            )


def _refuse_longer(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
    """Unpacks a member in chunks, up to one byte more than the directory says: Inspect unpacks without a limit."""
    said = info.file_size
    info.file_size += 1  # otherwise `zipfile` stops at the listed size
    with archive.open(info) as member:
        if sum(map(len, iter(lambda: member.read(2**20), b""))) != said:
            raise RunError(f"{path}: its member {shown(info.filename)[:80]} is not of the {said:,} bytes that it says")


def _inspect() -> Any:
    try:
        import inspect_ai.log as log
    except ImportError:
        raise RunError("reading logs of Inspect needs inspect-ai: pip install '.[inspect]' in the checkout") from None
    return log


def _short(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def _reply(path: Path, sample: Any, rows: Any) -> Reply:
    row = rows.get(str(sample.id))
    if row is None:
        raise RunError(f"{path}: sample {sample.id!r:.80} is not in the dataset")
    if not 1 <= sample.epoch <= MOST_REPEATS:
        raise RunError(f"{path}: sample {row.id} is of epoch {sample.epoch}; expected 1 to {MOST_REPEATS:,}")
    wanted = live_turns(row)
    given, ends = _said(sample)
    if not _texts(given, str) or not _texts(ends, str | None) or len(given) != len(ends) or len(given) > wanted:
        raise RunError(f"{path}: sample {row.id} has other replies than texts; expected {wanted}, one per live turn")
    why = f"error: {_line(sample.error.message)}" if sample.error else "error: the run did not finish it"
    return played(row, sample.epoch, given, ends, why)


def played(row: Sample, epoch: int, given: Sequence[str], ends: Sequence[str | None], why: str) -> Reply:
    """The replies on a sample, and how each turn ended; `why`: the ending of turns that never took place. Inspect
    counts epochs from 1.
    """
    lacking = live_turns(row) - len(given)
    return Reply(
        id=row.id,
        repeat=epoch - 1,
        turns=tuple(map(jsonl.plain, [*given, *[""] * lacking])),
        finish=tuple(e if e is None else jsonl.plain(e) for e in [*ends, *[why] * lacking]),
    )


def _texts(given: Any, kind: Any) -> bool:
    return isinstance(given, list) and all(isinstance(t, kind) for t in given)


def _said(sample: Any) -> tuple[Any, Any]:
    """The reply at each live turn, and how it ended. After a kill, `inspect eval-retry` restores completed samples
    without their store; then the scorer's copy is read.
    """
    if TURNS in sample.store:
        return sample.store[TURNS], sample.store.get(FINISHES)
    for score in (sample.scores or {}).values():
        if isinstance(reply := (score.metadata or {}).get(REPLY), dict):
            return reply.get("turns"), reply.get("finish")
    return [], []


def _line(text: str) -> str:
    return " ".join(text.split())[:200]


def _refuse_other_input(path: Path, sample: Any, row: Sample) -> None:
    """Raises:
    RunError: a sample's first request isn't the dataset's; the log was edited, or comes from another build.
    """
    asked = [{"role": m.role, "content": m.text} for m in sample.input] if isinstance(sample.input, list) else []
    if asked != first_request(row.model_dump(by_alias=True)):
        raise RunError(
            f"{path}: sample {row.id} differs from the dataset's; the log was edited or comes from another build"
        )


def _model(header: Any, own: Recorded) -> Model:
    """`openai-api/local/NAME` is NAME on `openai-api/local`; every other provider has one part."""
    parts = header.eval.model.split("/")
    provider = parts[: 2 if parts[0] == "openai-api" and len(parts) > 2 else 1]
    arguments = {"base_url": header.eval.model_base_url} if header.eval.model_base_url else {}
    return Model(
        name="/".join(parts[len(provider) :]) or header.eval.model,
        backend=f"inspect {'/'.join(provider)}",
        arguments=publishable({**arguments, **header.eval.model_args}),
        system_instruction=own.system_instruction,
        condition=own.condition,
    )
