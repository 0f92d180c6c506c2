"""A scored run with its log: each request as sent, the settings that all requests share, and whether the board accepts
the run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from dataset_builder.release import Release
from helmbench_common import jsonl
from helmbench_common.formats.plain_file import read_bytes
from judge.replies import inspect_log
from judge.replies.lm_eval_log import read_results, samples_path
from judge.replies.opening import SCORED, home_of, log_at, run_in
from judge.replies.recorded import BENCHMARK
from judge.replies.run import Run
from judge.replies.schema import RunError
from judge.replies.script import live_turns
from judge.schema import Scorecard, Verdict
from judge.scoring.stored import VERDICTS, Scoring, find, verdicts_in
from leaderboard.schema import ChatTemplate

NO_LOG = (
    "replies collected without a runner can be scored but not submitted: the board needs the log of lm-eval or of "
    "Inspect, which contains each request as it was sent"
)
LISTED = 20  # problems of the log that are listed
# The format in which our lm-eval task writes messages for a model without a chat template, as a template.
TRANSCRIPT = "{% for m in messages %}{{ m.role | capitalize }}: {{ m.content }}\n\n{% endfor %}Assistant:"
Requests = dict[tuple[str, int], tuple[str, ...]]  # (id, repeat) → one text per live turn


@dataclass
class Log:
    """A run's log. `settings`: generation arguments, the same for every request; `problems`: why it can't be
    submitted. Of `lm_eval` and `inspect` one is the runner's version, the other None.
    """

    task_version: str
    settings: dict[str, Any]
    requests: Requests
    lm_eval: str | None = None
    inspect: str | None = None
    template: ChatTemplate | None = None
    problems: list[str] = field(default_factory=list[str])


class ScoredRun(NamedTuple):
    """A run with everything that `helmbench score` wrote for it."""

    run: Run
    log: Log
    scoring: Scoring
    verdicts: list[Verdict]

    @property
    def card(self) -> Scorecard:
        return self.scoring.card


def read_scored(run_dir: Path, release: Release) -> ScoredRun:
    """The run, its log and its scores. `run_dir`: the run's folder, or that of its scores by one judge. If there are
    several results files, the scored one is taken.

    Raises:
        RunError: with every reason why this run can't be submitted.
    """
    home = home_of(run_dir)
    if run_dir.suffix == ".jsonl" or (home.suffix == SCORED and log_at(home) is None):
        raise RunError(f"{run_dir}: {NO_LOG}")
    problems: list[str] = []
    scoring, verdicts = None, list[Verdict]()
    try:
        scoring = find(run_dir)
        verdicts = verdicts_in(scoring.folder / VERDICTS)
    except RunError as error:
        problems.append(f"its scores can't be read: {error}")
    # The log may also contain replies to single messages, labels for them, and talks; the board covers the benchmark.
    run = replace(run_in(home, release, scoring.results if scoring else None), messages=[], triage={}, talks=[])
    if not run.replies:
        raise RunError(
            f"{run.path}: can't be submitted:\nit contains no benchmark task; run helmbench, helmbench_lite or "
            "helmbench_full"
        )
    log = _read_log(run, release)
    more = len(log.problems) - LISTED
    problems = [
        *_not_accepted(run, release),
        *log.problems[:LISTED],
        *([f"and {more} more"] if more > 0 else []),
        *problems,
    ]
    own, ours = scoring and scoring.card.dataset, release.manifest
    if own and own.score_hash != ours.score_hash:
        problems.append(f"it was scored on dataset {own.version}; score it again on {ours.version}")
    if problems or scoring is None:
        raise RunError("\n".join([f"{run.path}: can't be submitted:", *problems]))
    return ScoredRun(run, log, scoring, verdicts)


def _not_accepted(run: Run, release: Release) -> Iterator[str]:
    """What the board doesn't accept, whatever the replies are."""
    if run.tier == "detect":
        yield "tier detect has no composite to rank; submit a run of `helmbench`"
    elif run.limited:
        yield "it was made with --limit or --samples; a submission has every sample of its tier"
    elif missing := {r.id for r in release.rows.values() if run.tier in r.tiers} - run.ids:
        yield f"{len(missing)} samples of tier {run.tier} are missing, such as {min(missing)}; run the whole group"
    if run.model.system_instruction:
        yield "it was made with --system_instruction; the board compares models under the benchmark's own prompts"
    if run.model.condition:
        yield (
            f"it was made with its own system prompt ({run.model.condition.file}); the board compares models under the "
            "benchmark's own prompts"
        )


def _read_log(run: Run, release: Release) -> Log:
    """The benchmark's requests of a complete run."""
    path = run.file
    if path.suffix == inspect_log.SUFFIX:
        made = inspect_log.made(path)
        log = Log(made.task_version, made.settings, {}, inspect=made.inspect)
        for identity, repeat, sent in inspect_log.requests(path):
            if len(sent) == live_turns(release.rows[identity]):
                log.requests[identity, repeat] = sent
            else:
                log.problems.append(f"sample {identity} repeat {repeat}: {len(sent)} requests of it are in the log")
        return log
    results = read_results(path)
    tasks = [name for name, own in results.tasks(path).items() if own.measures == BENCHMARK]
    versions = sorted({str(results.versions.get(name, "unknown")) for name in tasks})
    log = Log(", ".join(versions), {}, {}, lm_eval=str(results.lm_eval_version))
    repeats: dict[str, int] = {}
    for reply in run.replies:
        repeats[reply.id] = max(repeats.get(reply.id, 0), reply.repeat + 1)
    seen: dict[str, dict[str, Any]] = {}
    for name in tasks:
        for _, sample in jsonl.objects(samples_path(path, name)):
            _add_sample(sample, release, repeats, log, seen)
    if len(seen) > 1:
        log.problems.append(
            f"{path}: samples were run with {len(seen)} different settings ({'; '.join(sorted(seen))[:300]}); "
            "expected the same for all"
        )
    log.settings = next(iter(seen.values()), {})
    if not all(sent[0].startswith('[{"') for sent in log.requests.values()):
        log.template = _template(path, run)
    return log


def _template(path: Path, run: Run) -> ChatTemplate:
    """The chat template that lm-eval logged. Days: those of the run, and one before and after for time zones."""
    logged = jsonl.loads(read_bytes(path, "the results that lm_eval wrote"))
    text = logged.get("chat_template") or TRANSCRIPT
    tokens = {name: logged.get(f"tokenizer_{name}") for name in ("bos_token", "eos_token", "pad_token")}
    variables = {name: own[0] for name, own in tokens.items() if isinstance(own, list) and own and own[0]}
    given = logged.get("config", {}).get("model_args")
    if isinstance(given, dict) and isinstance(given.get("chat_template_args"), dict):
        variables |= given["chat_template_args"]
    thinking = run.model.arguments.get("enable_thinking", True if run.model.backend == "vllm" else None)
    if thinking is not None:
        variables["enable_thinking"] = str(thinking).lower() == "true"
    days: list[date] = []
    if "strftime_now" in text:
        start = float(logged.get("date") or 0)
        end = start + float(logged.get("total_evaluation_time_seconds") or 0)
        first, last = (date.fromtimestamp(t) + timedelta(n) for t, n in ((start, -1), (end, 1)))
        days = [first + timedelta(n) for n in range(min(16, (last - first).days + 1))]
    return ChatTemplate(text=text, variables=variables, days=days)


def _add_sample(
    sample: dict[str, Any], release: Release, repeats: dict[str, int], log: Log, seen: dict[str, dict[str, Any]]
) -> None:
    identity = str(sample["doc"]["id"])
    turns, given = live_turns(release.rows[identity]), sample.get("arguments")
    asked = [given.get(f"gen_args_{n}") for n in range(len(given))] if isinstance(given, dict) else []
    texts = [_text(a.get("arg_0")) if isinstance(a, dict) else None for a in asked]
    for a in asked:
        settings = a.get("arg_1") if isinstance(a, dict) else None
        if isinstance(settings, dict):
            kept = {k: v for k, v in settings.items() if k != "repeat"}  # our setting, never sent
            seen.setdefault(json.dumps(kept, sort_keys=True), kept)
    for repeat in range(repeats[identity]):
        # Without our layer lm-eval logs one request for all repeats.
        own = texts[repeat * turns : (repeat + 1) * turns] if len(texts) >= turns * repeats[identity] else texts[:turns]
        if len(own) != turns or None in own:
            log.problems.append(
                f"sample {identity} repeat {repeat}: its requests aren't in the log; expected {turns} as "
                "lm-eval 0.4.13 writes them"
            )
        else:
            log.requests[identity, repeat] = tuple(str(t) for t in own)


def _text(argument: Any) -> str | None:
    """A logged prompt: text, or the JSON of the messages, which lm-eval logs as a list of one."""
    if isinstance(argument, list) and len(argument) == 1:
        argument = argument[0]
    return argument if isinstance(argument, str) else None
