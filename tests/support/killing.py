"""Runs that tests and benchmarks kill: starts the judge's command quickly and often, and makes the replies to judge."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from dataset_builder.prompts import installed
from dataset_builder.release import Release
from judge.llm.questions import JudgeRequest, prompt_hash
from judge.llm.reader import questions
from judge.replies.opening import read_replies
from judge.verdicts import JudgeIdentity

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
        return self._number()

    def wait(self) -> int:
        """The exit code; -9 for a process that was killed."""
        return self._number()

    def _number(self) -> int:
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


def replies_file(release: Release, path: Path, enough: int) -> Path:
    """Replies without a runner's log that no rule decides, with `enough` different questions."""
    lines, checks = list[str](), 0
    for row in release.rows.values():
        read = [
            c for c in row.evaluation if c.check == "graded" or (c.check == "criterion" and c.decided_by == "judge")
        ]
        if len(read) == len(row.evaluation) and all(m.content is not None for m in row.messages):
            lines.append(
                json.dumps(
                    {
                        "id": row.id,
                        "reply": f"Thank you for telling me, number {len(lines)}. Shall we look at this together?",
                    }
                )
            )
            checks += len(read)
        if checks >= enough:
            path.write_text("\n".join(lines) + "\n")
            return path
    raise AssertionError(f"{checks} questions")


def asked(path: Path, release: Release) -> list[JudgeRequest]:
    """A judge's questions about such a file, each once."""
    run = read_replies(path, release)
    return list(
        {r.custom_id: r for r in questions(run, release, JudgeIdentity("judge-1", prompt_hash(installed())))}.values()
    )
