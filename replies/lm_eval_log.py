"""The files that lm-eval logs → a run. Nothing here judges."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from dataset_builder import jsonl
from dataset_builder.release import Release, canonical, prune
from dataset_builder.schema import Sample, Tier
from replies.errors import RunError
from replies.recorded import APPROPRIATENESS, BENCHMARK, TRIAGE, measured, measured_on, publishable
from replies.run import Run
from replies.schema import Model, Reply
from replies.script import live_turns

TASK = re.compile(r"helmbench_")


def read_run(folder: Path, release: Release, chosen: Path | None = None) -> Run:
    """The newest lm-eval run below `folder`, or the one whose results file is `chosen`, by its path or its name.

    Raises:
        RunError: no run, several models, a truncated or edited samples file, or a run of another dataset version.
    """
    logs = _results(folder)
    path = _chosen(folder, logs, chosen) if chosen else _newest(folder, logs)
    results = _json(path)
    tasks = {name: config for name, config in results.get("configs", {}).items() if TASK.match(name)}
    if not tasks:
        raise RunError(f"{path}: holds no helmbench task; expected a run of `lm_eval --tasks helmbench`")
    tiers: dict[bool, set[Tier]] = {True: set(), False: set()}  # of benchmark tasks, and of those over messages
    replies: dict[str, dict[tuple[str, int], Reply]] = {}
    for name, config in sorted(tasks.items()):
        measures, tier = measured_on(path, name, config.get("metadata") or {}, release)
        tiers[measures == BENCHMARK].add(tier)
        expected = results.get("n-samples", {}).get(name, {}).get("effective")
        _add_replies(replies.setdefault(measures, {}), _samples_path(path, name), measures, release, expected)
    for found in tiers.values():
        if len(found) > 1:
            raise RunError(f"{path}: tasks of tiers {sorted(found)} in one run; score one tier at a time")
    return Run(
        path=path.parent,
        model=_model(path, results, tasks),
        tier=next(iter(tiers[True]), None),
        replies=list(replies.get(BENCHMARK, {}).values()),
        limited=_limited(results, tasks),
        messages=list(replies.get(APPROPRIATENESS, {}).values()),
        triage={m.removeprefix(TRIAGE): list(own.values()) for m, own in replies.items() if m.startswith(TRIAGE)},
        messages_tier=next(iter(tiers[False]), None),
        results=path,
        others=tuple(p for p in logs if p.parent == path.parent and p != path),
    )


def _samples_path(results: Path, task: str) -> Path:
    return results.parent / f"samples_{task}_{results.stem.removeprefix('results_')}.jsonl"


def _add_replies(
    own: dict[tuple[str, int], Reply], path: Path, measures: str, release: Release, expected: int | None
) -> None:
    samples = release.rows if measures == BENCHMARK else release.messages
    for reply in _task_replies(path, release, samples, expected):
        if (reply.id, reply.repeat) in own:
            raise RunError(f"{path}: sample {reply.id} repeat {reply.repeat} stands twice in this run; expected once")
        own[reply.id, reply.repeat] = reply


def _limited(results: dict[str, Any], tasks: dict[str, Any]) -> bool:
    benchmark = {name for name, config in tasks.items() if measured(config.get("metadata") or {}) == BENCHMARK}
    counts = [n for name, n in results.get("n-samples", {}).items() if name in benchmark]
    # --samples leaves samples out, too
    return bool(results.get("config", {}).get("limit")) or any(n["effective"] < n["original"] for n in counts)


def _model(path: Path, results: dict[str, Any], tasks: dict[str, Any]) -> Model:
    run = results.get("config", {})
    arguments = publishable(run.get("model_args"))
    named = results.get("model_name") or arguments.get("model") or arguments.get("pretrained")
    conditions = [(c.get("metadata") or {}).get("condition") for c in tasks.values()]
    return Model(
        name=str(named or path.parent.name),
        backend=str(run.get("model", "unknown")),
        arguments=arguments,
        system_instruction=results.get("system_instruction"),
        condition=next((c for c in conditions if c), None),
    )


def _results(folder: Path) -> list[Path]:
    """Results files below a folder, the newest last: lm-eval puts the time into their names."""
    if not folder.is_dir():
        raise RunError(f"{folder}: no such folder; expected the --output_path of an lm_eval run")
    found = sorted(folder.rglob("results_*.json"), key=lambda p: p.stem)
    if not found:
        raise RunError(
            f"{folder}: holds no results_*.json; expected the --output_path of an lm_eval run with --log_samples"
        )
    return found


def _newest(folder: Path, found: list[Path]) -> Path:
    models = sorted({p.parent for p in found})
    if len(models) > 1:
        raise RunError(
            f"{folder}: holds runs of {len(models)} models ({', '.join(m.name for m in models)}); name one "
            "of these folders"
        )
    return found[-1]


def _chosen(folder: Path, found: list[Path], chosen: Path) -> Path:
    places = {place.resolve() for place in (chosen, folder / chosen)}
    named = [p for p in found if p.name == str(chosen) or p.resolve() in places]
    if len(named) != 1:
        known = ", ".join(str(p.relative_to(folder)) for p in found)
        raise RunError(f"--results {chosen}: is no results file below {folder}; expected one of {known}")
    return named[0]


def _task_replies(path: Path, release: Release, samples: Mapping[str, Sample], expected: int | None) -> Iterator[Reply]:
    if not path.is_file():
        raise RunError(f"{path}: missing; run lm_eval with --log_samples")
    seen = 0
    for number, sample in jsonl.objects(path, _damaged(path)):
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


def _damaged(path: Path) -> jsonl.Bad:
    def bad(number: int, why: ValueError) -> NoReturn:
        raise RunError(f"{path}:{number}: is not a JSON object; the file is truncated or damaged")

    return bad


def _sample_replies(path: Path, number: int, row: Sample, resps: Any, arguments: Any) -> Iterator[Reply]:
    """One request per live turn, branch after branch, one branch per repeat. Without our layer lm-eval logs [[r1 … rN]]
    for N repeats of one request. The third argument of each is how it ended.
    """
    turns = live_turns(row)
    if not isinstance(resps, list) or not resps or not all(isinstance(r, list) and r for r in resps):
        raise RunError(f"{path}:{number}: sample {row.id} has no resps; the run did not finish it")
    texts: list[list[str]] = [["" if t is None else jsonl.plain(str(t)) for t in r] for r in resps]
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
    return jsonl.plain(finish) if isinstance(finish, str) else None


def _json(path: Path) -> dict[str, Any]:
    try:
        results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise RunError(f"{path}: is not JSON ({error}); the run did not finish writing it") from None
    return results
