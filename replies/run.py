"""Reads what was replied: the files that lm-eval logged, or replies collected elsewhere. Nothing here judges."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from dataset_builder.release import Release, canonical, prune
from dataset_builder.schema import Sample, Tier
from replies.errors import RunError, run_error
from replies.schema import TRIAGE_PROMPTS, Model, Reply

TASK = re.compile(r"helmbench_")
SECRET_NAME = re.compile(
    r"key|token|secret|password|auth|header", re.IGNORECASE
)  # of arguments that are never published
BENCHMARK, APPROPRIATENESS, TRIAGE = (
    "benchmark",
    "appropriateness",
    "triage-",
)  # what a task's metadata says it measures; triage with its prompt
KINDS = (BENCHMARK, APPROPRIATENESS, *(f"{TRIAGE}{prompt}" for prompt in TRIAGE_PROMPTS))


@dataclass(frozen=True)
class Run:
    """Replies of one model on one release. `tier` is null for replies collected elsewhere, and where no benchmark task
    was run.

    `messages`: replies to messages that stand alone (appropriateness); `triage`: the labels that the model gave them,
    by prompt
    (`bare`, `guided`); `messages_tier` is of both.
    """

    path: Path
    model: Model
    tier: Tier | None
    replies: list[Reply]
    limited: bool
    messages: list[Reply] = field(default_factory=list[Reply])
    triage: dict[str, list[Reply]] = field(default_factory=dict[str, list[Reply]])
    messages_tier: Tier | None = None

    @property
    def ids(self) -> set[str]:
        return {r.id for r in self.replies}


def read_run(folder: Path, release: Release) -> Run:
    """The newest lm-eval run below `folder`.

    Raises:
        RunError: no run, several models, a truncated or edited samples file, or a run of another dataset version.
    """
    results_path = _newest_results(folder)
    results = _json(results_path)
    tasks = {name: config for name, config in results.get("configs", {}).items() if TASK.match(name)}
    if not tasks:
        raise RunError(f"{results_path}: holds no helmbench task; expected a run of `lm_eval --tasks helmbench`")
    tiers: dict[bool, set[Tier]] = {True: set(), False: set()}  # of benchmark tasks, and of those over messages
    replies: dict[str, dict[tuple[str, int], Reply]] = {}
    for name, config in sorted(tasks.items()):
        metadata = config.get("metadata") or {}
        measures = measured(config)
        if measures not in KINDS:
            raise RunError(f"{results_path}: task {name} measures '{measures}'; expected one of {', '.join(KINDS)}")
        _same_release(results_path, name, metadata, release, "score_hash" if measures == BENCHMARK else "messages_hash")
        tiers[measures == BENCHMARK].add(metadata["tier"])
        stamp = results_path.stem.removeprefix("results_")
        path = results_path.parent / f"samples_{name}_{stamp}.jsonl"
        expected = results.get("n-samples", {}).get(name, {}).get("effective")
        own = replies.setdefault(measures, {})
        for reply in _task_replies(
            path, release, release.rows if measures == BENCHMARK else release.messages, expected
        ):
            if (reply.id, reply.repeat) in own:
                raise RunError(
                    f"{path}: sample {reply.id} repeat {reply.repeat} stands twice in this run; expected once"
                )
            own[reply.id, reply.repeat] = reply
    for found in tiers.values():
        if len(found) > 1:
            raise RunError(f"{results_path}: tasks of tiers {sorted(found)} in one run; score one tier at a time")
    run = results.get("config", {})
    benchmark = {name for name, config in tasks.items() if measured(config) == BENCHMARK}
    counts = [n for name, n in results.get("n-samples", {}).items() if name in benchmark]
    limited = bool(run.get("limit")) or any(
        n["effective"] < n["original"] for n in counts
    )  # --samples leaves samples out, too
    arguments = _arguments(run.get("model_args"))
    model = Model(
        name=str(
            results.get("model_name")
            or arguments.get("model")
            or arguments.get("pretrained")
            or results_path.parent.name
        ),
        backend=str(run.get("model", "unknown")),
        arguments=arguments,
        system_instruction=results.get("system_instruction"),
        condition=next(
            (c["metadata"]["condition"] for c in tasks.values() if (c.get("metadata") or {}).get("condition")), None
        ),
    )
    return Run(
        path=results_path.parent,
        model=model,
        tier=next(iter(tiers[True]), None),
        replies=list(replies.get(BENCHMARK, {}).values()),
        limited=limited,
        messages=list(replies.get(APPROPRIATENESS, {}).values()),
        triage={
            measures.removeprefix(TRIAGE): list(own.values())
            for measures, own in replies.items()
            if measures.startswith(TRIAGE)
        },
        messages_tier=next(iter(tiers[False]), None),
    )


def measured(config: dict[str, Any]) -> str:
    """What a logged task measures: one of KINDS, where the log is ours."""
    return str((config.get("metadata") or {}).get("measures", BENCHMARK))


def read_replies(path: Path, release: Release) -> Run:
    """Replies collected without lm-eval: JSONL of {"id", "reply"}; conversations give {"id", "replies": [one per live
    turn]}.

    An id may be a sample's, or that of a message that stands alone: the reply is then one to be rated.

    Raises:
        RunError: unreadable lines, unknown ids, repeated ids, or the wrong number of turns; all are named at once.
    """
    if not path.is_file():
        raise RunError(f'{path}: no such file; expected JSONL with one {{"id", "reply"}} a line')
    problems: list[str] = []
    replies: dict[tuple[str, int], Reply] = {}
    for number, record in _lines(path, problems):
        identity, repeat = record.get("id"), record.get("repeat", 0)
        turns = record.get("replies", [record["reply"]] if "reply" in record else None)
        row = release.rows.get(str(identity)) or release.messages.get(str(identity))
        if row is None:
            problems.append(f"{path}:{number}: id {identity!r} is not in the dataset {release.manifest.version}")
        elif not isinstance(turns, list) or not all(isinstance(t, str) for t in turns):
            problems.append(
                f'{path}:{number}: {identity}: expected "reply": text, or "replies": [text, …] for a conversation'
            )
        elif len(turns) != live_turns(row):
            problems.append(
                f"{path}:{number}: {identity}: has {len(turns)} replies, expected {live_turns(row)}, one per live turn"
            )
        elif not isinstance(repeat, int) or repeat < 0 or (row.id, repeat) in replies:
            problems.append(
                f"{path}:{number}: {identity} repeat {repeat!r}: expected a whole number from 0, and each "
                "sample once per repeat"
            )
        elif (finish := _finishes(record.get("finish"), len(turns))) is None:
            problems.append(
                f'{path}:{number}: {identity}: expected "finish": a word for the last reply, or a list with '
                "one per reply"
            )
        else:
            replies[row.id, repeat] = Reply(id=row.id, repeat=repeat, turns=tuple(turns), finish=finish)
    if problems:
        raise run_error(problems)
    if not replies:
        raise RunError(f'{path}: is empty; expected one {{"id", "reply"}} a line')
    rated = [r for r in replies.values() if r.id in release.messages]
    scored = [r for r in replies.values() if r.id in release.rows]
    tier, messages_tier = _tier_of(scored, release.rows), _tier_of(rated, release.messages)
    return Run(
        path,
        Model(name=path.stem, backend="collected elsewhere"),
        tier,
        scored,
        False,
        messages=rated,
        messages_tier=messages_tier,
    )


def _finishes(given: Any, turns: int) -> tuple[str | None, ...] | None:
    """One finish reason per turn, () where none is given, or None where what is given is neither a word nor a list of
    them.
    """
    if given is None:
        return ()
    words = [None] * (turns - 1) + [given] if isinstance(given, str) else given
    return (
        tuple(words)
        if isinstance(words, list) and len(words) == turns and all(isinstance(w, str | None) for w in words)
        else None
    )


def live_turns(row: Sample) -> int:
    """How many replies a sample asks of the model: every live turn in its script, and the one after its end."""
    return sum(m.content is None for m in row.messages) + 1


def _tier_of(replies: list[Reply], samples: Mapping[str, Sample]) -> Tier | None:
    ids = {r.id for r in replies}
    tiers: tuple[Tier, ...] = ("lite", "core", "full")
    return next((t for t in tiers if ids == {s.id for s in samples.values() if t in s.tiers}), None)


def _newest_results(folder: Path) -> Path:
    if not folder.is_dir():
        raise RunError(f"{folder}: no such folder; expected the --output_path of an lm_eval run")
    found = sorted(folder.rglob("results_*.json"), key=lambda p: p.stem)
    if not found:
        raise RunError(
            f"{folder}: holds no results_*.json; expected the --output_path of an lm_eval run with --log_samples"
        )
    models = sorted({p.parent for p in found})
    if len(models) > 1:
        raise RunError(
            f"{folder}: holds runs of {len(models)} models ({', '.join(m.name for m in models)}); name one "
            "of these folders"
        )
    return found[-1]


def _same_release(
    path: Path, task: str, metadata: dict[str, Any], release: Release, name: Literal["score_hash", "messages_hash"]
) -> None:
    found, expected = (
        metadata.get(name),
        release.messages_hash if name == "messages_hash" else release.manifest.score_hash,
    )
    if not found:
        raise RunError(f"{path}: task {task} records no dataset {name}; expected a run of this project's task")
    if name == "messages_hash":
        _same_messages(path, task, metadata, release)
    if found != expected:
        raise RunError(
            f"{path}: task {task} ran on dataset {metadata.get('dataset_version')} ({name} {found[:12]}…), "
            f"the one in {release.path} is "
            f"{release.manifest.version} ({expected[:12]}…); name that run's dataset with --dataset"
        )


def _same_messages(path: Path, task: str, metadata: dict[str, Any], release: Release) -> None:
    """A run on a corpus is judged on that corpus, and no other run is."""
    asked, given = metadata.get("messages_source"), release.own
    if asked and not given:
        raise RunError(f"{path}: task {task} ran on {asked}; name its folder with --messages FOLDER")
    if given and not asked:
        raise RunError(
            f"{path}: task {task} ran on the dataset's own messages, not on {given.source}; leave out --messages"
        )
    if given and metadata["messages_hash"] != given.messages_hash:
        raise RunError(
            f"{path}: task {task} ran on {asked} (messages_hash {metadata['messages_hash'][:12]}…), "
            f"--messages names {given.source} "
            f"({given.messages_hash[:12]}…); name that run's corpus, with the labels that it had then, and "
            "its dataset with --dataset"
        )


def _task_replies(path: Path, release: Release, samples: Mapping[str, Sample], expected: int | None) -> Iterator[Reply]:
    if not path.is_file():
        raise RunError(f"{path}: missing; run lm_eval with --log_samples")
    seen = 0
    for number, sample in _lines(path):
        doc = sample.get("doc") or {}
        row = samples.get(str(doc.get("id")))
        if row is None:
            raise RunError(
                f"{path}:{number}: sample {doc.get('id')!r} is not in the dataset {release.manifest.version}"
            )
        if canonical(type(row).model_validate(prune(doc)).model_dump(mode="json")) != canonical(
            row.model_dump(mode="json")
        ):
            raise RunError(
                f"{path}:{number}: sample {row.id} differs from the dataset's; the log was edited or comes "
                "from another build"
            )
        seen += 1
        yield from _sample_replies(path, number, row, sample.get("resps"), sample.get("arguments"))
    if expected is not None and seen != expected:
        raise RunError(f"{path}: holds {seen} samples, the run's results say {expected}; the file is truncated")


def _sample_replies(path: Path, number: int, row: Sample, resps: Any, arguments: Any) -> Iterator[Reply]:
    """One request per live turn, branch after branch, one branch per repeat. Without our layer lm-eval logs [[r1 … rN]]
    for N
    repeats of one request. The third argument of each is how it ended."""
    turns = live_turns(row)
    if not isinstance(resps, list) or not resps or not all(isinstance(r, list) and r for r in resps):
        raise RunError(f"{path}:{number}: sample {row.id} has no resps; the run did not finish it")
    texts: list[list[str]] = [["" if t is None else str(t) for t in r] for r in resps]
    if turns == 1 and len(texts) == 1 and len(texts[0]) > 1:
        for repeat, text in enumerate(texts[0]):
            yield Reply(id=row.id, repeat=repeat, turns=(text,))
        return
    if len(texts) % turns:
        raise RunError(
            f"{path}:{number}: conversation {row.id} has {len(texts)} logged turns, expected a multiple of {turns}"
        )
    finish = [_finish(arguments, n) for n in range(len(texts))]
    for repeat in range(len(texts) // turns):
        branch = slice(repeat * turns, (repeat + 1) * turns)
        kept = tuple(finish[branch])
        yield Reply(
            id=row.id, repeat=repeat, turns=tuple(t[0] for t in texts[branch]), finish=kept if any(kept) else ()
        )


def _finish(arguments: Any, request: int) -> str | None:
    """How the n-th request of a sample ended, where the task logged it."""
    given = arguments.get(f"gen_args_{request}") if isinstance(arguments, dict) else None
    note = given.get("arg_2") if isinstance(given, dict) else None
    finish = note.get("finish") if isinstance(note, dict) else None
    return finish if isinstance(finish, str) else None


def _arguments(value: Any) -> dict[str, Any]:
    """The model's arguments as far as they may be published: plain values, nothing that names or holds a secret."""
    given = value if isinstance(value, dict) else dict(p.split("=", 1) for p in str(value or "").split(",") if "=" in p)
    plain = {str(k): v for k, v in given.items() if isinstance(v, str | int | float | bool | None)}
    kept = {k: v for k, v in plain.items() if not SECRET_NAME.search(k)}
    return {k: re.sub(r"//[^/@\s]*@", "//", v) if isinstance(v, str) else v for k, v in kept.items()}


def _json(path: Path) -> dict[str, Any]:
    try:
        results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise RunError(f"{path}: is not JSON ({error}); the run did not finish writing it") from None
    return results


def _lines(path: Path, problems: list[str] | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSONL file with their line numbers. A line that is none is added to `problems`, or an error at
    once.
    """
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                record = str(error)
            if isinstance(record, dict):
                yield number, record
                continue
            what = f"{path}:{number}: is not a JSON object; the file is truncated or damaged"
            if problems is None:
                raise RunError(what)
            problems.append(what)
