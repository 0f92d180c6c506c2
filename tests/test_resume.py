"""A run that is killed and started again with the same command pays for nothing twice."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import reference_server
from lm_eval.api.model import hash_args
from lm_eval.models.api_models import JsonChatStr

from dataset_builder.release import Release
from judge.replies.lm_eval_log import read_run
from judge.replies.script import live_turns

ROOT = Path(__file__).resolve().parents[1]
AT_ONCE = 4
SETTINGS: dict[str, Any] = {"until": [], "max_gen_toks": 1024, "temperature": 0.0}
# The command line's own functions without the 14,683 built-in tasks, whose parsing takes longer than the runs of this
# test.
RUN = """
import sys
from lm_eval import simple_evaluate
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager
arguments, tasks, cache, out, limit, root = sys.argv[1:]
tracker = EvaluationTracker(output_path=out)
results = simple_evaluate(
    model="local-chat-completions", model_args=arguments, tasks=tasks.split(","), limit=int(limit), use_cache=cache,
    apply_chat_template=True, log_samples=True, evaluation_tracker=tracker, bootstrap_iters=0,
    task_manager=TaskManager(include_path=root, include_defaults=False),
)
samples = results.pop("samples")
tracker.save_results_aggregated(results=results, samples=samples)
for task, logged in samples.items():
    tracker.save_results_samples(task_name=task, samples=logged)
"""


def start(
    server: reference_server.Server, dataset: Path, folder: Path, limit: int, tasks: str
) -> subprocess.Popen[str]:
    """The command that is killed and run again, always the same."""
    arguments = f"model=faulty,base_url={server.url}/chat/completions,num_concurrent={AT_ONCE}"
    command = [
        sys.executable,
        "-c",
        RUN,
        arguments,
        tasks,
        str(folder / "cache"),
        str(folder / "out"),
        str(limit),
        str(ROOT / "lm_eval_tasks"),
    ]
    environment = os.environ | {"HELMBENCH_DATASET": str(dataset), "HF_HUB_OFFLINE": "1"}
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def asked(server: reference_server.Server) -> list[str]:
    """The conversations that the server was asked to answer, in order."""
    return [json.dumps(r["messages"], ensure_ascii=False) for r in server.requests]


def finished(folder: Path, prompts: set[str]) -> set[str]:
    """Those whose reply is on disk, read as any other program would read it."""
    path = folder / "cache_rank0.db"
    if not path.is_file():
        return set()
    with sqlite3.connect(path) as db:
        keys = {row[0] for row in db.execute("SELECT key FROM unnamed")}
    return {p for p in prompts if hash_args("generate_until", (JsonChatStr(p), SETTINGS)) in keys}


@pytest.mark.soak(short=3, full=10)
def test_kills_cost_at_most_what_was_under_way(dataset: Path, tmp_path: Path, release: Release, rounds: int) -> None:
    """Killed at seeded points, singles and conversations: what was on disk is never asked again, and the end is
    whole.
    """
    limit, tasks = 30, "helmbench_pillar1,helmbench_conversations"
    rng = random.Random(6)
    with reference_server.start(faults={"slow": 1.0}, slow_seconds=0.05) as server:
        twice = 0
        for _ in range(rounds):
            before = len(server.requests)
            process = start(server, dataset, tmp_path, limit, tasks)
            point = before + rng.randint(3, 14)
            while len(server.requests) < point and process.poll() is None:
                time.sleep(0.005)
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            seen = asked(server)
            kept = finished(tmp_path, set(seen))
            assert len(set(seen)) - len(kept) <= AT_ONCE  # nothing but what was under way is lost
            again = Counter(seen[:before]).keys() & Counter(seen[before:]).keys()
            twice += len(again)
            assert len(again) <= AT_ONCE
        killed_at = len(server.requests)
        kept = finished(tmp_path, set(asked(server)))
        assert len(kept) > 2 * rounds  # else nothing was tested
        process = start(server, dataset, tmp_path, limit, tasks)
        _, said = process.communicate(timeout=240)
        assert process.returncode == 0, said[-2000:]
        assert not kept & set(asked(server)[killed_at:])
        total = Counter(asked(server))
    run = read_run(tmp_path / "out", release)
    assert len(run.replies) == 2 * limit
    assert all(run_text for r in run.replies for run_text in r.turns)
    needed = sum(live_turns(release.rows[r.id]) for r in run.replies)
    assert len(total) == needed
    assert total.total() - needed <= 11 * AT_ONCE
    assert total.total() - needed >= twice


def test_a_finished_run_costs_nothing_again(dataset: Path, tmp_path: Path) -> None:
    """The same command twice: the second asks nothing."""
    with reference_server.start(faults={}) as server:
        counts = []
        for _ in range(2):
            process = start(server, dataset, tmp_path, 5, "helmbench_pillar4_lite,helmbench_conversations_lite")
            _, said = process.communicate(timeout=240)
            assert process.returncode == 0, said[-2000:]
            counts.append(len(server.requests))
    assert counts[0] == counts[1] > 10
