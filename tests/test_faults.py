"""A full disk, a second run beside the first and Ctrl-C: each ends in one line, and the same command then asks for
nothing that was answered.
"""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.judge_server import JudgeServer, Said, said
from support.killing import SECRET, asked, begun, judge_command, replied, replies_file, runner_command

from dataset_builder.release import Release
from judge.llm.batch import Replies, read

QUESTIONS, SAMPLES = 60, 12


class Client:
    """One command in one folder, asking one server that takes its time."""

    def __init__(self, name: str, folder: Path, release: Release) -> None:
        self.name, self.folder, self.release = name, folder, release
        self.wait, self.padding = 0.1, 0
        self.requests: list[str] = []
        self.server = JudgeServer(self._answer)
        if name == "judge":
            self.replies = replies_file(release, folder / "r.jsonl", QUESTIONS)
            self.command = [sys.executable, "-m", "helmbench.cli"]
            self.command += judge_command(self.replies, release.path, self.server.url)
        else:
            self.command = runner_command(folder, self.server.url, SAMPLES, "helmbench_pillar4")

    def _answer(self, body: dict[str, Any], _: int) -> Said:
        self.requests.append(json.dumps(body["messages"], ensure_ascii=False))
        form = body.get("response_format", {}).get("json_schema", {}).get("schema")
        labels = form["properties"]["label"]["enum"] if form else [""]
        answer = json.dumps({"label": labels[0], "quotes": []}) + " " * self.padding
        return said(answer)._replace(wait=self.wait)

    def start(self, before: Callable[[], object] | None = None) -> subprocess.Popen[str]:
        return begun(self.command, self.release.path, before)

    def under_way(self, requests: int, before: Callable[[], object] | None = None) -> subprocess.Popen[str]:
        """Started, and so many requests later."""
        process = self.start(before)
        while len(self.requests) < requests and process.poll() is None:
            time.sleep(0.01)
        return process

    def done(self) -> set[str]:
        """The conversations that have their answer on the disk."""
        if self.name == "runner":
            return replied(self.folder, self.requests)
        replies = Replies(self.folder / "r.scored" / "judge" / "judge-1")
        wanted = {json.dumps(r.body["messages"], ensure_ascii=False): r for r in asked(self.replies, self.release)}
        return {text for text, r in wanted.items() if not read(replies.of(r.custom_id), r).missing}


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, printed = process.communicate(timeout=300)
    return process.returncode, printed


def disk_full(client: Client) -> tuple[int, str]:
    """The file of answers has room for a few: it may not grow beyond a limit, and blank lines fill it up to there."""
    client.wait, most = 0, 2**21  # the questions need less

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))

    log = client.folder / "r.scored" / "judge" / "judge-1" / "replies.jsonl"
    log.parent.mkdir(parents=True)
    log.write_bytes((b" " * 2**14 + b"\n") * ((most - 8_000) // 2**14))
    return ended(client.start(limited))


def cache_full(client: Client) -> tuple[int, str]:
    """Room for lm-eval's cache with a few replies."""
    client.wait, client.padding, room = 0, 4_000, 40_000
    return ended(client.start(lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))))


def two_at_once(client: Client) -> tuple[int, str]:
    """The end of the second."""
    first = client.under_way(2)
    first.send_signal(signal.SIGSTOP)  # it holds what it holds, however long the second takes to start
    second = ended(client.start())
    first.send_signal(signal.SIGCONT)
    ended(first)
    return second


def ctrl_c(client: Client) -> tuple[int, str]:
    """As somebody at a terminal types it; a shell's background job inherits that it is ignored."""
    process = client.under_way(10, lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    process.send_signal(signal.SIGINT)
    return ended(process)


ENDS: list[tuple[str, Callable[[Client], tuple[int, str]], int, str]] = [
    ("judge", disk_full, 3, "/judge-1/replies.jsonl: File too large"),
    ("judge", two_at_once, 3, "another `helmbench judge` is writing it"),
    ("judge", ctrl_c, 130, "stopped; run the same command again"),
    ("runner", cache_full, 1, "cache_rank0.db can't be written (disk I/O error); is the disk full?"),
    ("runner", two_at_once, 1, "another run is writing the cache"),
    ("runner", ctrl_c, 130, "helmbench: stopped; run the same command again"),
]


@pytest.mark.parametrize(("name", "disturb", "code", "line"), ENDS, ids=[f"{c}-{f.__name__}" for c, f, *_ in ENDS])
def test_a_fault_ends_in_one_line_and_loses_nothing(
    small: Release, tmp_path: Path, name: str, disturb: Callable[[Client], tuple[int, str]], code: int, line: str
) -> None:
    """Its exit code is a documented one, and no file or message holds the key."""
    client = Client(name, tmp_path, small)
    found, printed = disturb(client)
    assert (found, line in printed.strip().splitlines()[-1]) == (code, True), printed
    done, before = client.done(), len(client.requests)
    client.wait = 0
    again, more = ended(client.start())
    assert again == 0, more
    assert not done & set(client.requests[before:])
    assert len(client.done()) == len(set(client.requests)) >= (SAMPLES if name == "runner" else QUESTIONS)
    assert 0 < len(done) < len(client.done()) or disturb is two_at_once
    assert "Traceback" not in printed + more
    assert SECRET not in printed + more
    assert all(SECRET.encode() not in p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
