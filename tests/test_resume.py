"""A run that is killed and started again with the same command pays for nothing twice."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from pathlib import Path

import pytest
import reference_server
from support.killing import AT_ONCE, begun, replied, runner_command

from dataset_builder.release import Release
from judge.replies.lm_eval_log import read_run
from judge.replies.script import live_turns


def asked(server: reference_server.Server) -> list[str]:
    """The conversations that the server was asked to answer, in order."""
    return [json.dumps(r["messages"], ensure_ascii=False) for r in server.requests]


@pytest.mark.soak(short=2, full=10)
def test_kills_cost_at_most_what_was_under_way(dataset: Path, tmp_path: Path, release: Release, rounds: int) -> None:
    """Killed at seeded points, singles and conversations: what was on disk is never asked again, the end is whole, and
    the finished run costs nothing again.
    """
    limit, rng = 10 * rounds, random.Random(6)
    with reference_server.start(faults={"slow": 1.0}, slow_seconds=0.02) as server:
        command = runner_command(tmp_path, server.url, limit, "helmbench_pillar1,helmbench_conversations")
        twice = 0
        for _ in range(rounds):
            before = len(server.requests)
            process = begun(command, dataset)
            point = before + rng.randint(8, 14)
            while len(server.requests) < point and process.poll() is None:
                time.sleep(0.005)
            process.kill()
            process.communicate()
            seen = asked(server)
            kept = replied(tmp_path, set(seen))
            assert len(set(seen)) - len(kept) <= AT_ONCE  # nothing but what was under way is lost
            again = Counter(seen[:before]).keys() & Counter(seen[before:]).keys()
            twice += len(again)
            assert len(again) <= AT_ONCE
        killed_at = len(server.requests)
        assert len(kept) > 2 * rounds  # else nothing was tested
        counts = []
        for _ in range(2):
            process = begun(command, dataset)
            _, said = process.communicate(timeout=240)
            assert process.returncode == 0, said[-2000:]
            counts.append(len(server.requests))
        assert counts[0] == counts[1] > killed_at
        assert not kept & set(asked(server)[killed_at:])
        total = Counter(asked(server))
    run = read_run(tmp_path / "out", release)
    assert len(run.replies) == 2 * limit
    assert all(text for r in run.replies for text in r.turns)
    needed = sum(live_turns(release.rows[r.id]) for r in run.replies)
    assert len(total) == needed
    assert twice <= total.total() - needed <= (rounds + 1) * AT_ONCE
