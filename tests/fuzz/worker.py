"""Runs commands of `helmbench` in-process, each in a fork of its own that is killed when it takes too long: a hang in C
code is one, too. Speaks JSON lines: a command in, what became of it out. Imports what commands need before it forks.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import json
import os
import resource
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any, NoReturn

MEMORY = 6 * 2**30  # bytes of address space: what takes all is a defect, and must not take the machine with it
FILE = 2**30  # bytes of a file that is written
# fmt: off
NEEDED = [
    "judge.pipeline", "judge.report.comparison", "judge.report.ratings_table", "judge.report.junit",
    "judge.agreement.annotate", "judge.agreement.calibrate", "judge.agreement.coding", "judge.agreement.labels",
    "judge.agreement.corpus_labels", "judge.agreement.published.sets", "judge.scoring.held_out",
    "dataset_builder.corpora.build", "dataset_builder.corpora.labelled", "leaderboard.verify.findings",
    "leaderboard.verify.verify", "leaderboard.board.build", "leaderboard.submit.pack", "leaderboard.exports.export",
    "dataset_builder.reading.opening", "dataset_builder.writing.write", "dataset_builder.book.review",
    "dataset_builder.stats.coverage", "dataset_builder.checking.checks", "datasets", "py3langid.langid", "phonenumbers",
    "inspect_ai.log",
]
# fmt: on


def serve() -> None:
    """Reads commands until there are no more."""
    from helmbench.cli.app import main

    for name in NEEDED:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
    for line in sys.stdin:
        command = json.loads(line)
        # What a valid command reads once and keeps, as the tables of languages, is then read for all forks.
        ended = _warm(main, command) if command["warm"] else _run(main, command)
        sys.stdout.write(json.dumps(ended) + "\n")
        sys.stdout.flush()


def _warm(main: Any, command: dict[str, Any]) -> dict[str, Any]:
    there = os.getcwd()
    with (
        open(command["stdout"], "w", encoding="utf-8") as out,
        open(command["stderr"], "w", encoding="utf-8") as error,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(error),
    ):
        os.chdir(command["cwd"])
        code = main(command["arguments"])
    os.chdir(there)
    return {"code": code, "hung": False, "cpu": 0, "megabytes": 0}


def _run(main: Any, command: dict[str, Any]) -> dict[str, Any]:
    child = os.fork()
    if not child:
        _child(main, command)
    busy, before, hung = time.monotonic(), 0.0, False
    while True:
        done, status, used = os.wait4(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.003)
        if (now := _used(child)) != before:
            busy, before = time.monotonic(), now
        if not hung and (time.monotonic() - busy > command["seconds"] or now > command["cpu"]):
            hung = True
            os.kill(child, signal.SIGUSR1)  # it says where it stands
            time.sleep(0.5)
            os.killpg(child, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # whom it left behind
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "code": os.waitstatus_to_exitcode(status),
        "hung": hung,
        "cpu": used.ru_utime + used.ru_stime,
        "megabytes": max(0, used.ru_maxrss - own) // 1024,
    }


def _used(child: int) -> float:
    """Seconds of a processor that a child has used."""
    fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _child(main: Any, command: dict[str, Any]) -> NoReturn:
    os.setsid()
    os.chdir(command["cwd"])
    os.environ.update(command["environment"])
    for number, name in ((1, "stdout"), (2, "stderr")):
        file = os.open(command[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(file, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE, FILE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)
    sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
    code = 1
    try:
        code = main(command["arguments"])
    except SystemExit as exit_:
        code = exit_.code if isinstance(exit_.code, int) else 1
    except BaseException:
        traceback.print_exc()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        os.write(2, traceback.format_exc().encode())
        code = 1
    os._exit(code)


if __name__ == "__main__":
    serve()
