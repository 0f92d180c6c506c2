"""Replies collected without lm-eval: JSONL with one sample in one repeat a line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dataset_builder.release import Release
from dataset_builder.schema import Sample, Tier
from helmbench_common import jsonl
from judge.replies.errors import RunError, run_error
from judge.replies.run import Run
from judge.replies.schema import MOST_REPEATS, Model, Reply
from judge.replies.script import live_turns


def read_replies(path: Path, release: Release) -> Run:
    """Replies collected without lm-eval: JSONL of {"id", "reply"}; conversations give {"id", "replies": [one per live
    turn]}.

    An id may be a sample's, or that of a message that stands alone: the reply is then one to be rated.

    Raises:
        RunError: unreadable lines, unknown ids, repeated ids, or the wrong number of turns; all are named at once.
    """
    problems: list[str] = []
    damaged = "is not a JSON object; the file is truncated or damaged"
    lines = jsonl.objects(path, lambda n, _: problems.append(f"{path}:{n}: {damaged}"))
    try:
        return collected(lines, path, path.stem, release, problems)
    except OSError as error:
        raise RunError(
            f'{path}: {str(error.strerror).lower()}; expected JSONL with one {{"id", "reply"}} a line'
        ) from None


def collected(
    records: Iterable[tuple[int, dict[str, Any]]], path: Path, model: str, release: Release, problems: list[str]
) -> Run:
    """A run of numbered records. `problems`: where reading `records` adds what is wrong with them.

    Raises:
        RunError: as `read_replies`.
    """
    replies: dict[tuple[str, int], Reply] = {}
    for number, record in records:
        try:
            reply = _reply(record, release)
            if (reply.id, reply.repeat) in replies:
                raise ValueError(_repeat(reply.id, reply.repeat))
            replies[reply.id, reply.repeat] = reply
        except ValueError as error:
            problems.append(f"{path}:{number}: {error}")
    if problems:
        raise run_error(problems)
    if not replies:
        raise RunError(f'{path}: is empty; expected one {{"id", "reply"}} a line')
    rated = [r for r in replies.values() if r.id in release.messages]
    scored = [r for r in replies.values() if r.id in release.rows]
    return Run(
        path,
        Model(name=model, backend="collected elsewhere"),
        _tier_of(scored, release.rows),
        scored,
        False,
        messages=rated,
        messages_tier=_tier_of(rated, release.messages),
    )


def _reply(record: dict[str, Any], release: Release) -> Reply:
    """Raises: ValueError: a line that is of no sample, or not what its sample asks for."""
    identity, repeat = record.get("id"), record.get("repeat", 0)
    turns = record.get("replies", [record["reply"]] if "reply" in record else None)
    row = release.rows.get(str(identity)) or release.messages.get(str(identity))
    if row is None:
        raise ValueError(f"id {identity!r} is not in the dataset {release.manifest.version}")
    if not isinstance(turns, list) or not all(isinstance(t, str) for t in turns):
        raise ValueError(f'{identity}: expected "reply": text, or "replies": [text, …] for a conversation')
    if len(turns) != live_turns(row):
        raise ValueError(f"{identity}: has {len(turns)} replies, expected {live_turns(row)}, one per live turn")
    if not isinstance(repeat, int) or not 0 <= repeat < MOST_REPEATS:
        raise ValueError(_repeat(str(identity), repeat))
    finish = _finishes(record.get("finish"), len(turns))
    if finish is None:
        raise ValueError(f'{identity}: expected "finish": a word for the last reply, or a list with one per reply')
    return Reply(id=row.id, repeat=repeat, turns=tuple(map(jsonl.plain, turns)), finish=finish)


def _repeat(identity: str, repeat: Any) -> str:
    return f"{identity} repeat {repeat!r}: expected a whole number from 0, and each sample once per repeat"


def _finishes(given: Any, turns: int) -> tuple[str | None, ...] | None:
    """One finish reason per turn, () where none is given, or None where what is given is neither a word nor a list of
    them.
    """
    if given is None:
        return ()
    words = [None] * (turns - 1) + [given] if isinstance(given, str) else given
    return (
        tuple(w and jsonl.plain(w) for w in words)
        if isinstance(words, list) and len(words) == turns and all(isinstance(w, str | None) for w in words)
        else None
    )


def _tier_of(replies: list[Reply], samples: Mapping[str, Sample]) -> Tier | None:
    ids = {r.id for r in replies}
    tiers: tuple[Tier, ...] = ("lite", "core", "full")
    return next((t for t in tiers if ids == {s.id for s in samples.values() if t in s.tiers}), None)
