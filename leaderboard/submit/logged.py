"""What a runner logged beside the replies: each request as it was sent, and the settings that all of them share."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dataset_builder.release import Release
from helmbench_common import jsonl
from judge.replies import inspect_log
from judge.replies.lm_eval_log import read_results, samples_path
from judge.replies.recorded import BENCHMARK
from judge.replies.schema import Reply
from judge.replies.script import live_turns

Requests = dict[tuple[str, int], tuple[str, ...]]  # (id, repeat) → one text per live turn


@dataclass
class Logged:
    """A run's log. `settings`: generation arguments, the same for every request; `problems`: why it can't be
    submitted. The version of the runner that made it is known, of the other None.
    """

    task_version: str
    settings: dict[str, Any]
    requests: Requests
    lm_eval: str | None = None
    inspect: str | None = None
    problems: list[str] = field(default_factory=list[str])


def read_logged(path: Path, release: Release, replies: list[Reply]) -> Logged:
    """The benchmark's requests of a run, which was read and found whole, by its results file or its log of Inspect."""
    if path.suffix == inspect_log.SUFFIX:
        return _inspected(path, release)
    results = read_results(path)
    tasks = [name for name, own in results.tasks(path).items() if own.measures == BENCHMARK]
    versions = sorted({str(results.versions.get(name, "unknown")) for name in tasks})
    logged = Logged(", ".join(versions), {}, {}, lm_eval=str(results.lm_eval_version))
    repeats: dict[str, int] = {}
    for reply in replies:
        repeats[reply.id] = max(repeats.get(reply.id, 0), reply.repeat + 1)
    seen: dict[str, dict[str, Any]] = {}
    for name in tasks:
        for _, sample in jsonl.objects(samples_path(path, name)):
            _sample(sample, release, repeats, logged, seen)
    if len(seen) > 1:
        logged.problems.append(
            f"{path}: samples were asked with {len(seen)} different settings "
            f"({'; '.join(sorted(seen))[:300]}); expected one"
        )
    logged.settings = next(iter(seen.values()), {})
    return logged


def _inspected(path: Path, release: Release) -> Logged:
    made = inspect_log.made(path)
    logged = Logged(made.task_version, made.settings, {}, inspect=made.inspect)
    for identity, repeat, sent in inspect_log.requests(path):
        if len(sent) == live_turns(release.rows[identity]):
            logged.requests[identity, repeat] = sent
        else:
            logged.problems.append(f"sample {identity} repeat {repeat}: {len(sent)} requests of it are in the log")
    return logged


def _sample(
    sample: dict[str, Any], release: Release, repeats: dict[str, int], logged: Logged, seen: dict[str, dict[str, Any]]
) -> None:
    identity = str(sample["doc"]["id"])
    turns, given = live_turns(release.rows[identity]), sample.get("arguments")
    asked = [given.get(f"gen_args_{n}") for n in range(len(given))] if isinstance(given, dict) else []
    texts = [_text(a.get("arg_0")) if isinstance(a, dict) else None for a in asked]
    for a in asked:
        settings = a.get("arg_1") if isinstance(a, dict) else None
        if isinstance(settings, dict):
            kept = {
                k: v for k, v in settings.items() if k != "repeat"
            }  # which of a sample's repeats: ours, and never sent
            seen.setdefault(json.dumps(kept, sort_keys=True), kept)
    for repeat in range(repeats[identity]):
        # Without our layer lm-eval logs one request for all repeats.
        own = texts[repeat * turns : (repeat + 1) * turns] if len(texts) >= turns * repeats[identity] else texts[:turns]
        if len(own) != turns or None in own:
            logged.problems.append(
                f"sample {identity} repeat {repeat}: its requests are not in the log; expected {turns} as "
                "lm-eval 0.4.13 writes them"
            )
        else:
            logged.requests[identity, repeat] = tuple(str(t) for t in own)


def _text(argument: Any) -> str | None:
    """A logged prompt: a text, or the JSON of the messages, which lm-eval logs as a list of one."""
    if isinstance(argument, list) and len(argument) == 1:
        argument = argument[0]
    return argument if isinstance(argument, str) else None
