"""The live engine killed at seeded moments against a faulty judge: nothing is lost or answered twice, the verdicts
are the same.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helmbench.cli.common import UNANSWERED
from support.judge_server import JudgeServer, Said, Serve, by_hash, said
from support.killing import AT_ONCE, SECRET, Starter, asked, begun, judge_command, replies_file
from support.scores import scores

from dataset_builder.release import Release, open_release
from judge.llm import batch
from judge.llm.batch import ASKS, Replies
from judge.llm.budget import worst_case
from judge.llm.questions import JudgeRequest


@pytest.fixture
def starter(tmp_path: Path, dataset: Path) -> Iterator[Starter]:
    started = Starter(tmp_path / "stderr.log", dataset)
    yield started
    started.close()


def decided(path: Path) -> list[dict[str, Any]]:
    """The verdicts of a file. Which of three unreadable answers came first depends on the attempts that a kill cost,
    and so does what was wrong with it.
    """
    verdicts = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [v | {"evidence": []} if v["unscored"] == "unparsable" else v for v in verdicts]


@pytest.mark.soak(short=3, full=50)
def test_killed_at_many_moments_nothing_is_lost_or_asked_of_the_disk_twice(
    dataset: Path, tmp_path: Path, starter: Starter, rounds: int
) -> None:
    """SIGKILL at seeded moments, then Ctrl-C; every durable line stays, every question has one answer, and the verdicts
    are an undisturbed run's.
    """
    release, most = open_release(dataset), 200 + 16 * rounds
    path = replies_file(release, tmp_path / "killed.jsonl", most)
    calm = Path(shutil.copy(path, tmp_path / "calm.jsonl"))
    log = tmp_path / "killed.scored" / "judge" / "judge-1" / "replies.jsonl"
    drawn, kept, faulty = random.Random(50), b"", JudgeServer(by_hash)
    for sign in [*[signal.SIGKILL] * rounds, signal.SIGINT]:
        before, more = faulty.total, drawn.randint(1, 14)
        pid = starter.start(*judge_command(path, dataset, faulty.url, 8))
        with faulty.change:
            assert faulty.change.wait_for(lambda: faulty.total >= before + more, timeout=60), (  # noqa: B023
                "the run ended before it was killed"
            )
        time.sleep(drawn.uniform(0, 0.02))
        os.kill(pid, sign)
        assert starter.wait() == (-signal.SIGKILL if sign == signal.SIGKILL else 130)
        now = log.read_bytes() if log.exists() else b""
        assert now.startswith(kept), "a line that was on the disk is gone"
        kept = now[: now.rfind(b"\n") + 1]
    told = (tmp_path / "stderr.log").read_text()
    assert told.splitlines()[-1] == "stopped; run the same command again to continue where it stopped"
    assert "Traceback" not in told
    assert now == kept, "Ctrl-C leaves whole lines"
    starter.start(*judge_command(path, dataset, faulty.url, 8))
    assert starter.wait() == 0
    assert log.read_bytes().startswith(kept)
    starter.start(*judge_command(calm, dataset, JudgeServer(by_hash).url, 8))
    assert starter.wait() == 0

    replies, wanted = Replies(log.parent), asked(path, release)
    assert len(wanted) >= most
    counts = Counter(_answers(replies, request) for request in wanted)
    assert [c for c in counts if c != (0, ASKS) and not (c[0] == 1 and c[1] < ASKS)] == [], "lost, or answered twice"
    assert counts[0, ASKS] > 3, "some answers are never readable"
    ids = [json.loads(line)["id"] for line in log.read_text().splitlines()]
    assert len(ids) == len(set(ids))

    for replies_path in (path, calm):
        starter.start("score", "--replies", replies_path, "--dataset", dataset, "--judge", "judge-1")
        assert starter.wait() == UNANSWERED, starter.log  # more is never readable than a run may leave
    verdicts = [decided(scores(tmp_path / f"{name}.scored") / "verdicts.jsonl") for name in ("killed", "calm")]
    assert [pair for pair in zip(*verdicts, strict=True) if pair[0] != pair[1]] == []
    assert {"judge_refused", "unparsable"} <= {v["unscored"] for v in verdicts[0]}
    assert all(SECRET.encode() not in p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())


def test_a_kill_costs_what_was_in_flight(small: Release, tmp_path: Path, serve: Serve) -> None:
    """The ledger has what the answers used, and the worst case of the requests without one, to the token."""
    answered, numbers, waiting = 10, itertools.count(), list[dict[str, Any]]()

    def script(body: dict[str, Any], _: int) -> Said:
        labels = body["response_format"]["json_schema"]["schema"]["properties"]["label"]["enum"]
        answer = said(json.dumps({"label": labels[0], "quotes": []}), usage=(100, 10))
        if next(numbers) < answered:
            return answer
        waiting.append(body)
        return answer._replace(wait=60)

    path = replies_file(small, tmp_path / "r.jsonl", 60)
    prices = ["--price-in", "1", "--price-out", "1", "--max-cost", "1000"]
    process = begun(
        [sys.executable, "-m", "helmbench.cli", *judge_command(path, small.path, serve(script).url), *prices],
        small.path,
    )
    ledger = tmp_path / "r.scored" / "judge" / "judge-1" / "spent.json"
    while len(waiting) < AT_ONCE and process.poll() is None:
        time.sleep(0.01)
    process.kill()
    process.communicate()
    worst = [worst_case(body, json.dumps(body, ensure_ascii=False).encode()) for body in waiting]
    assert len(worst) == AT_ONCE
    assert json.loads(ledger.read_text()) == {
        "prompt_tokens": 100 * answered + sum(w.prompt for w in worst),
        "completion_tokens": 10 * answered + sum(w.completion for w in worst),
    }


def _answers(replies: Replies, request: JudgeRequest) -> tuple[int, int]:
    """(lines with a readable answer or a refusal, lines that can't be read) of one question; lines of wire faults are
    no answers.
    """
    found = [batch.read([record], request) for record in replies.of(request.custom_id)]
    return sum(not f.missing for f in found), sum(f.missing and f.asks for f in found)
