"""lm-eval's log files → a run. Nothing here judges."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from pydantic import BaseModel, Field, ValidationError

from dataset_builder.release import Release, prune
from dataset_builder.schema import Sample, Tier
from helmbench_common import jsonl
from helmbench_common.formats.plain_file import read_bytes
from helmbench_common.formats.refused import FormatError, shown
from helmbench_common.hashing import canonical
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
from judge.replies.schema import Model, Reply, RunError
from judge.replies.script import live_turns
from judge.replies.talks import Talk, read_talk

TASK = re.compile(r"helmbench_")


class Counts(BaseModel):
    """How many samples a task has, and how many of them were run."""

    original: int
    effective: int


class Settings(BaseModel):
    """How lm_eval was called."""

    model: str = "unknown"
    model_args: Any = None
    limit: Any = None


class Results(BaseModel):
    """The fields read from an lm-eval results file."""

    configs: dict[str, dict[str, Any]] = {}
    counts: dict[str, Counts] = Field({}, alias="n-samples")
    versions: dict[str, Any] = {}
    config: Settings = Settings()
    model_name: str | None = None
    system_instruction: str | None = None
    lm_eval_version: Any = "unknown"

    def tasks(self, path: Path) -> dict[str, Recorded]:
        """What each HelmBench task recorded about itself.

        Raises:
            RunError: metadata that no HelmBench task writes.
        """
        found = sorted((name, config.get("metadata")) for name, config in self.configs.items() if TASK.match(name))
        return {name: recorded(path, name, metadata) for name, metadata in found}


def read_results(path: Path) -> Results:
    """A results file.

    Raises:
        RunError: the file is unreadable, or isn't in lm-eval's format.
    """
    try:
        return Results.model_validate(jsonl.loads(read_bytes(path, "the results that lm_eval wrote")))
    except FormatError as error:
        raise RunError(str(error)) from None
    except ValidationError as error:
        raise RunError(f"{shown(path)}: {': '.join(jsonl.first_problem(error))}; the file was edited") from None
    except ValueError as error:
        raise RunError(f"{shown(path)}: {error}; the run did not finish writing it") from None


def read_run(folder: Path, release: Release, chosen: Path | None = None) -> Run:
    """The newest lm-eval run below `folder`, or the one whose results file is `chosen`, by its path or its name.

    Raises:
        RunError: no run, several models, a truncated or edited samples file, or a run of another dataset version.
    """
    logs = _results(folder)
    path = _chosen(folder, logs, chosen) if chosen else _newest(folder, logs)
    results = read_results(path)
    tasks = results.tasks(path)
    if not tasks:
        raise RunError(f"{shown(path)}: contains no helmbench task; expected a run of `lm_eval --tasks helmbench`")
    tiers: dict[bool, set[Tier]] = {True: set(), False: set()}  # of benchmark tasks, and of tasks over messages
    replies: dict[str, dict[tuple[str, int], Reply]] = {}
    talks: list[Talk] = []
    for name, own in tasks.items():
        if own.measures == TALKS:
            measured_on(path, name, own, release)
            talks += _talks(samples_path(path, name), release)
            continue
        tiers[own.measures == BENCHMARK].add(measured_on(path, name, own, release))
        expected = results.counts[name].effective if name in results.counts else None
        _add_replies(replies.setdefault(own.measures, {}), samples_path(path, name), own.measures, release, expected)
    for found in tiers.values():
        if len(found) > 1:
            raise RunError(f"{shown(path)}: tasks of tiers {sorted(found)} in one run; score one tier at a time")
    return Run(
        path=path.parent,
        model=_model(path, results, tasks),
        tier=next(iter(tiers[True]), None),
        replies=list(replies.get(BENCHMARK, {}).values()),
        limited=_limited(results, tasks),
        messages=list(replies.get(APPROPRIATENESS, {}).values()),
        triage={m.removeprefix(TRIAGE): list(own.values()) for m, own in replies.items() if m.startswith(TRIAGE)},
        messages_tier=next(iter(tiers[False]), None),
        talks=talks,
        results=path,
        others=tuple(p for p in logs if p.parent == path.parent and p != path),
    )


def samples_path(results: Path, task: str) -> Path:
    """A task's samples file, next to the results."""
    return results.parent / f"samples_{task}_{results.stem.removeprefix('results_')}.jsonl"


def _add_replies(
    own: dict[tuple[str, int], Reply], path: Path, measures: str, release: Release, expected: int | None
) -> None:
    samples = release.rows if measures == BENCHMARK else release.messages
    for reply in _task_replies(path, release, samples, expected):
        if (reply.id, reply.repeat) in own:
            raise RunError(
                f"{shown(path)}: sample {reply.id} repeat {reply.repeat} appears twice in this run; expected once"
            )
        own[reply.id, reply.repeat] = reply


def _talks(path: Path, release: Release) -> list[Talk]:
    """The talks of a samples file: the first request of each branch has the record."""
    if not path.exists():
        raise RunError(f"{shown(path)}: missing; run lm_eval with --log_samples")
    found = []
    for number, line in _logged(path):
        asked = line.get("arguments")
        requests = [v for v in asked.values() if isinstance(v, dict)] if isinstance(asked, dict) else []
        own = [request["arg_3"] for request in requests if "arg_3" in request]
        if not own:
            raise RunError(f"{shown(path)}:{number}: has no talk; the run did not finish it")
        found += [read_talk(record, f"{shown(path)}:{number}", release) for record in own]
    return found


def _limited(results: Results, tasks: dict[str, Recorded]) -> bool:
    counts = [n for name, n in results.counts.items() if name in tasks and tasks[name].measures == BENCHMARK]
    # --samples also leaves samples out
    return bool(results.config.limit) or any(n.effective < n.original for n in counts)


def _model(path: Path, results: Results, tasks: dict[str, Recorded]) -> Model:
    arguments = publishable(results.config.model_args)
    named = results.model_name or arguments.get("model") or arguments.get("pretrained")
    return Model(
        name=str(named or path.parent.name),
        backend=results.config.model,
        arguments=arguments,
        system_instruction=results.system_instruction,
        condition=next((own.condition for own in tasks.values() if own.condition), None),
    )


def _results(folder: Path) -> list[Path]:
    """Results files below a folder, the newest last: lm-eval puts the time in their names."""
    if not folder.is_dir():
        raise RunError(f"{shown(folder)}: no such folder; expected the --output_path of an lm_eval run")
    found = sorted(folder.rglob("results_*.json"), key=lambda p: p.stem)
    if not found:
        raise RunError(
            f"{shown(folder)}: no results_*.json found; expected the --output_path of an lm_eval run with --log_samples"
        )
    return found


def _newest(folder: Path, found: list[Path]) -> Path:
    models = sorted({p.parent for p in found})
    if len(models) > 1:
        raise RunError(
            f"{shown(folder)}: holds runs of {len(models)} models ({', '.join(shown(m.name) for m in models)}); name "
            "one of these folders"
        )
    return found[-1]


def _chosen(folder: Path, found: list[Path], chosen: Path) -> Path:
    places = {os.path.realpath(place) for place in (chosen, folder / chosen)}  # Path.resolve fails on a link loop
    named = [p for p in found if p.name == str(chosen) or os.path.realpath(p) in places]
    if len(named) != 1:
        known = ", ".join(shown(p.relative_to(folder)) for p in found)
        raise RunError(f"--results {shown(chosen)}: not a results file of {shown(folder)}; expected one of {known}")
    return named[0]


def _task_replies(path: Path, release: Release, samples: Mapping[str, Sample], expected: int | None) -> Iterator[Reply]:
    if not path.exists():
        raise RunError(f"{shown(path)}: missing; run lm_eval with --log_samples")
    seen = 0
    for number, sample in _logged(path):
        doc = sample.get("doc")
        identity = doc.get("id") if isinstance(doc, dict) else None
        row = samples.get(identity) if isinstance(identity, str) else None
        if row is None:
            named = f"{identity!r:.80}"
            raise RunError(f"{shown(path)}:{number}: sample {named} is not in the dataset {release.manifest.version}")
        if not _same(doc, row):
            raise RunError(
                f"{shown(path)}:{number}: sample {row.id} differs from the dataset's; the log was edited or comes "
                "from another build"
            )
        seen += 1
        yield from _sample_replies(path, number, row, sample.get("resps"), sample.get("arguments"))
    if expected is not None and seen != expected:
        raise RunError(f"{shown(path)}: has {seen} samples, but the results report {expected}; the file is truncated")


def _same(doc: Any, row: Sample) -> bool:
    """Whether a logged record is the dataset's sample, ignoring columns without a value."""
    try:
        found = type(row).model_validate(prune(doc)).model_dump(mode="json")
    except (AttributeError, KeyError, TypeError, ValueError):  # `prune` expects parquet records
        return False
    return canonical(found) == canonical(row.model_dump(mode="json"))


def _logged(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        yield from jsonl.objects(path, _damaged(path))
    except OSError as error:
        raise RunError(
            f"{shown(path)}: {str(error.strerror).lower()}; expected the samples that lm_eval logged"
        ) from None


def _damaged(path: Path) -> jsonl.Bad:
    def bad(number: int, why: ValueError) -> NoReturn:
        raise RunError(f"{shown(path)}:{number}: not a JSON object; the file is truncated or damaged")

    return bad


def _sample_replies(path: Path, number: int, row: Sample, resps: Any, arguments: Any) -> Iterator[Reply]:
    """One request per live turn, branch after branch, one branch per repeat. Without HelmBench's layer, lm-eval logs
    [[r1 … rN]] for N repeats of one request. The third argument of each says how it ended.
    """
    turns = live_turns(row)
    if not isinstance(resps, list) or not resps or not all(isinstance(r, list) and r for r in resps):
        raise RunError(f"{shown(path)}:{number}: sample {row.id} has no resps; the run did not finish it")
    texts: list[list[str]] = [["" if t is None else jsonl.plain(str(t)) for t in r] for r in resps]
    if turns == 1 and len(texts) == 1 and len(texts[0]) > 1:
        for repeat, text in enumerate(texts[0]):
            yield Reply(id=row.id, repeat=repeat, turns=(text,))
        return
    if len(texts) % turns:
        raise RunError(
            f"{shown(path)}:{number}: conversation {row.id} has {len(texts)} logged turns, expected a multiple of "
            f"{turns}"
        )
    finish = [_finish(arguments, n) for n in range(len(texts))]
    for repeat in range(len(texts) // turns):
        branch = slice(repeat * turns, (repeat + 1) * turns)
        kept = tuple(finish[branch])
        yield Reply(
            id=row.id, repeat=repeat, turns=tuple(t[0] for t in texts[branch]), finish=kept if any(kept) else ()
        )


def _finish(arguments: Any, request: int) -> str | None:
    """How a sample's n-th request ended, if the task logged it."""
    given = arguments.get(f"gen_args_{request}") if isinstance(arguments, dict) else None
    note = given.get("arg_2") if isinstance(given, dict) else None
    finish = note.get("finish") if isinstance(note, dict) else None
    return jsonl.plain(finish) if isinstance(finish, str) else None
