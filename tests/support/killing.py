"""Runs that tests kill or disturb: starts the judge's and the runner's commands, and reads what is on disk."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from lm_eval.api.model import hash_args
from lm_eval.models.api_models import JsonChatStr

from dataset_builder.prompts import installed
from dataset_builder.release import Release
from judge.llm.questions import JudgeRequest, prompt_hash
from judge.llm.reader import questions
from judge.replies.opening import read_replies
from judge.verdicts import JudgeIdentity

ROOT = Path(__file__).resolve().parents[2]
SECRET = "sk-killed-secret-0123456789"
# Forks the real command from one process that has imported it and read the dataset, so that 50 starts do that once.
STARTER = """
import json, os, signal, sys
from dataset_builder.release import open_release
from judge import pipeline
from judge.replies import opening
from helmbench.cli.app import main
from helmbench_common.http import retry
retry.BACKOFF = 0.001
release = open_release(sys.argv[1])
release.rows, release.criteria, release.helplines
opening.open_release = lambda folder: release
for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        # A test run in the background of a shell inherits that Ctrl-C is ignored; a person at a terminal doesn't.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os._exit(main(json.loads(line)))
    print(pid, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
AT_ONCE = 4  # the runner's requests
SETTINGS: dict[str, Any] = {"until": [], "max_gen_toks": 1024, "temperature": 0.0}
# lm-eval's command line without its 14,683 built-in tasks, which take longer to parse than these runs.
RUN = """
import json, sys
from lm_eval import simple_evaluate
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager
arguments, tasks, cache, out, limit, root, metadata = sys.argv[1:]
tracker = EvaluationTracker(output_path=out)
results = simple_evaluate(
    model="local-chat-completions", model_args=arguments, tasks=tasks.split(","), limit=int(limit), use_cache=cache,
    apply_chat_template=True, log_samples=True, evaluation_tracker=tracker, bootstrap_iters=0,
    task_manager=TaskManager(include_path=root, include_defaults=False, metadata=json.loads(metadata)),
)
samples = results.pop("samples")
tracker.save_results_aggregated(results=results, samples=samples)
for task, logged in samples.items():
    tracker.save_results_samples(task_name=task, samples=logged)
"""


class Starter:
    """Runs each `helmbench …` in a new process."""

    def __init__(self, log: Path, dataset: Path) -> None:
        self.log = log.open("wb")
        environment = os.environ | {"OPENAI_API_KEY": SECRET, "PYTHONPATH": os.pathsep.join(sys.path)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", STARTER, str(dataset)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env=environment,
        )

    def start(self, *arguments: str | Path) -> int:
        assert self.process.stdin
        self.process.stdin.write(json.dumps([str(a) for a in arguments]) + "\n")
        self.process.stdin.flush()
        return self.wait()

    def wait(self) -> int:
        """The next number that the process prints: a pid, then its exit code, -9 if it was killed."""
        assert self.process.stdout
        for line in self.process.stdout:
            if line.strip().lstrip("-").isdecimal():
                return int(line)
        raise AssertionError(self.log)

    def close(self) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.log.close()


def judge_command(replies: Path, dataset: Path, url: str, concurrency: int = AT_ONCE) -> list[str]:
    """The words of `helmbench judge` about a file of replies."""
    words = ["judge", "--replies", replies, "--dataset", dataset, "--model", "judge-1"]
    return [*map(str, words), "--base-url", url, "--concurrency", str(concurrency)]


def runner_command(
    folder: Path, url: str, limit: int, tasks: str, *more: str, metadata: dict[str, str] | None = None
) -> list[str]:
    """lm-eval's run of tasks with a cache, always the same; `more`: model arguments."""
    arguments = ",".join(
        ["model=faulty", f"base_url={url}/chat/completions", f"num_concurrent={AT_ONCE}", "max_retries=2", *more]
    )
    places = folder / "cache", folder / "out", limit, ROOT / "lm_eval_tasks"
    words = [arguments, tasks, *places, json.dumps(metadata)]
    return [sys.executable, "-c", RUN, *map(str, words)]


def begun(command: Sequence[str], dataset: Path, before: Callable[[], object] | None = None) -> subprocess.Popen[str]:
    """A command in a process of its own; `before` is called in it."""
    own = {"HELMBENCH_DATASET": str(dataset), "HF_HUB_OFFLINE": "1", "OPENAI_API_KEY": SECRET}
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=os.environ | own,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=before,
    )


def replied(folder: Path, prompts: Iterable[str]) -> set[str]:
    """The conversations whose reply is in lm-eval's cache, read as any other program would read it."""
    path = folder / "cache_rank0.db"
    if not path.is_file():
        return set()
    with sqlite3.connect(path) as db:
        keys = {row[0] for row in db.execute("SELECT key FROM unnamed")}
    return {p for p in prompts if hash_args("generate_until", (JsonChatStr(p), SETTINGS)) in keys}


def replies_file(release: Release, path: Path, enough: int) -> Path:
    """Replies without a runner's log that no rule decides, with `enough` different questions."""
    lines, checks = list[str](), 0
    for row in release.rows.values():
        read = [
            c for c in row.evaluation if c.check == "graded" or (c.check == "criterion" and c.decided_by == "judge")
        ]
        if len(read) == len(row.evaluation) and all(m.content is not None for m in row.messages):
            said = f"Thank you for telling me, number {len(lines)}. Shall we look at this together?"
            lines.append(json.dumps({"id": row.id, "reply": said}))
            checks += len(read)
        if checks >= enough:
            path.write_text("\n".join(lines) + "\n")
            return path
    raise AssertionError(f"{checks} questions")


def asked(path: Path, release: Release) -> list[JudgeRequest]:
    """A judge's questions about such a file, each once."""
    identity = JudgeIdentity("judge-1", prompt_hash(installed()))
    return list({r.custom_id: r for r in questions(read_replies(path, release), release, identity)}.values())
