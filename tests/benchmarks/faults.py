"""What faults cost: runs killed and disturbed, against servers that fail, each gone on with until it is done.

Usage: python tests/benchmarks/faults.py [--judge-kills 50] [--runner-kills 10] [--questions 1000] [--samples 30]
[--rows NAME …] [--clients judge runner]

First `helmbench run` is killed (SIGKILL) at so many moments and `lm_eval` at so many, while the server fails in a third
of the first two attempts of each question, in every way of FAULTS, and repeats the key in each. Then each row of ROWS
happens to each client once, and the same command is given again to a server that is well. Printed are

  lost   questions without an answer in the end, and answers that were on the disk and are no more
  twice  questions asked again whose answer was on the disk, and at each kill those answered and not yet on the disk
         beyond what was under way
  keys   places where the key was found: every file, all that was printed, every process's command line

and for each row the exit code and the last line of the command that it happened to. 1 where anything was lost, paid
twice, or a key was found. A full disk is a small tmpfs where this machine may mount one, else a limit on every file's
size.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "scripts")]

from lm_eval.api.model import hash_args  # noqa: E402
from lm_eval.models.api_models import JsonChatStr  # noqa: E402
from support.judge_server import JudgeServer, Said, failed, said  # noqa: E402
from support.killing import SECRET, Starter, asked, replies_file  # noqa: E402
from test_resume import AT_ONCE, RUN, SETTINGS  # noqa: E402

from dataset_builder.release import Release, open_release  # noqa: E402
from judge.llm import batch  # noqa: E402
from judge.llm.batch import Replies  # noqa: E402
from judge.replies.lm_eval_log import read_run  # noqa: E402
from lm_eval_tasks.helmbench.cache import FAILED  # noqa: E402

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
NEVER = 3600.0  # seconds: longer than any client waits
JUDGING = 8  # questions at once


def good(body: dict[str, Any]) -> Said:
    """An answer that depends on the question alone: a label for a judge, else a reply."""
    number = int(hashlib.sha256(json.dumps(body["messages"]).encode()).hexdigest()[:8], 16)
    if "response_format" not in body:
        return said(f"I'm glad that you told me this, number {number}.")
    labels = body["response_format"]["json_schema"]["schema"]["properties"]["label"]["enum"]
    return said(json.dumps({"label": labels[number % len(labels)], "quotes": []}))


def fault(kind: str, answer: Said) -> Said:
    """One way to fail; wherever a server can put it, with the key."""
    echo = f"Incorrect API key provided: {SECRET}"
    gone = {
        "429": failed(429, echo, SECRET, retry_after_ms="3"),
        "500": failed(500, echo, SECRET),
        "504": failed(504, echo),
        "timeout": answer._replace(wait=2.5),
        "truncated": answer._replace(cut=True),
        "sent twice": answer._replace(copies=2),
        "broken JSON": Said(200, {"x-request-id": SECRET}, answer.body[:-9]),
        "page": Said(200, {"Set-Cookie": f"{SECRET}=\x01"}, f"<html>{SECRET}</html>".encode()),
        "200 with an error": Said(200, {}, json.dumps({"error": {"message": echo, "code": 429}}).encode()),
        "reset": answer._replace(reset=True),
        "hang up": answer._replace(raw=lambda: []),
        "broken chunk": answer._replace(raw=lambda: [HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"]),
        "endless": answer._replace(raw=lambda: itertools.chain([HEAD + b"\r\n"], itertools.repeat(b" " * 65536))),
    }
    return gone[kind]


FAULTS = ("429", "500", "504", "timeout", "truncated", "sent twice", "broken JSON", "page", "200 with an error",
          "reset", "hang up", "broken chunk", "endless")  # fmt: skip


def stormy(body: dict[str, Any], attempt: int) -> Said:
    """Good answers behind faults fixed by question and attempt; from the third attempt on all goes well."""
    drawn = random.Random(f"{json.dumps(body['messages'])}:{attempt}")
    if attempt > 2 or drawn.random() > 1 / 3:
        return good(body)
    return fault(drawn.choices(FAULTS, [9 if f not in ("timeout", "endless") else 1 for f in FAULTS])[0], good(body))


class Counting(JudgeServer):
    """Knows what it has answered well, and what it was asked, by conversation."""

    def __init__(self, script: Callable[[dict[str, Any], int], Said]) -> None:
        self.answered: set[str] = set()
        self.requests: list[str] = []
        self.tries: Counter[str] = Counter()
        self.plan = script
        super().__init__(self._answer)

    def _answer(self, body: dict[str, Any], _: int) -> Said:
        conversation = json.dumps(body["messages"], ensure_ascii=False)
        with self.change:
            self.requests.append(conversation)
            self.tries[conversation] += 1
            attempt = self.tries[conversation]
        answer = self.plan(body, attempt)
        if answer == good(body):
            self.answered.add(conversation)
        return answer


class Watch:
    """Looks for the key on every command line of the machine, while something runs."""

    def __init__(self) -> None:
        self.found: set[str] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(0.1):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):
                    if SECRET.encode() in path.read_bytes():
                        self.found.add(str(path))

    def keys(self, *folders: Path) -> int:
        """Command lines and files that hold it."""
        self._over.set()
        self._thread.join()
        files = (p for folder in folders for p in folder.rglob("*") if p.is_file())
        return len(self.found) + sum(SECRET.encode() in p.read_bytes() for p in files)


class Figures(NamedTuple):
    """What came of a disturbed run."""

    lost: int
    twice: int
    note: str


# --- killed
# -----------------------------------------------------------------------------------------------------------------


def answered_on_disk(log: Path, wanted: dict[str, Any]) -> set[str]:
    """The conversations of a judge that have their answer on the disk."""
    if not log.exists():
        return set()
    replies = Replies(log.parent)
    return {said for said, r in wanted.items() if not batch.read(replies.of(r.custom_id), r).missing}


def replied_on_disk(folder: Path, requests: Iterable[str]) -> set[str]:
    """The conversations that have their reply in lm-eval's cache. It keeps an empty text for those that failed, too."""
    path = folder / "cache_rank0.db"
    if not path.is_file():
        return set()
    with closing(sqlite3.connect(path)) as db, suppress(sqlite3.OperationalError):  # killed before its first table
        keys = {row[0] for row in db.execute("SELECT key FROM unnamed")}
        kept = keys - {key.removeprefix(FAILED) for key in keys if key.startswith(FAILED)}
        return {r for r in requests if hash_args("generate_until", (JsonChatStr(r), SETTINGS)) in kept}
    return set()


def kill_judge(folder: Path, dataset: Path, kills: int, questions: int) -> Figures:
    """`helmbench run`, killed and gone on with."""
    release = open_release(dataset)
    path = replies_file(release, folder / "killed.jsonl", questions)
    log = folder / "killed.scored" / "judge" / "judge-1" / "replies.jsonl"
    wanted = {json.dumps(r.body["messages"], ensure_ascii=False): r for r in asked(path, release)}
    server, drawn, kept = Counting(stormy), random.Random(19), b""
    starter = Starter(folder / "stderr.log", dataset)
    command = ["run", "--replies", str(path), "--dataset", str(dataset), "--model", "judge-1"]
    command += ["--base-url", server.url, "--concurrency", str(JUDGING), "--timeout", "2"]
    command += ["--max-cost", "1000", "--price-in", "1", "--price-out", "1"]
    known: set[str] = set()
    lost = twice = most = done_kills = 0
    for _ in range(kills):
        before, more = len(server.requests), drawn.randint(1, max(2, questions // kills))
        pid = starter.start(*command)
        with server.change:
            server.change.wait_for(lambda: len(server.requests) >= before + more, timeout=60)  # noqa: B023
        time.sleep(drawn.uniform(0, 0.02))
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        done_kills += starter.wait() == -signal.SIGKILL
        now = log.read_bytes() if log.exists() else b""
        lost += not now.startswith(kept)
        kept = now[: now.rfind(b"\n") + 1]
        done = answered_on_disk(log, wanted)
        under_way = len(server.answered - done)
        most, twice = max(most, under_way), twice + max(0, under_way - JUDGING)
        server.answered &= done  # what wasn't on the disk will be asked again, and rightly
        twice += _asked_again(server, before, known)
        known = done
    before = len(server.requests)
    starter.start(*command)
    code = starter.wait()
    twice += _asked_again(server, before, known)
    starter.close()
    lost += len(wanted) - len(answered_on_disk(log, wanted))
    note = f"{done_kills} kills, {len(wanted):,} questions, {len(server.requests):,} requests, then exit {code}"
    return Figures(lost, twice, f"{note}; at most {most} answered and not on the disk ({JUDGING} at once)")


def _asked_again(server: Counting, since: int, done: Iterable[str]) -> int:
    return len(set(server.requests[since:]) & set(done))


def kill_runner(folder: Path, dataset: Path, kills: int, samples: int) -> Figures:
    """`lm_eval --use_cache`, killed and gone on with: single messages and conversations."""
    server, drawn = Counting(stormy), random.Random(6)
    tasks, release = "helmbench_pillar1,helmbench_conversations", open_release(dataset)
    arguments = f"model=model-1,base_url={server.url}/chat/completions,num_concurrent={AT_ONCE},timeout=2,max_retries=5"
    command = [sys.executable, "-c", RUN, arguments, tasks, str(folder / "cache"), str(folder / "out"), str(samples)]
    command.append(str(ROOT / "lm_eval_tasks"))
    lost = twice = most = done_kills = 0
    done: set[str] = set()
    with (folder / "stderr.log").open("ab") as log:
        for killing in [*[True] * kills, False]:
            before = len(server.requests)
            process = subprocess.Popen(command, cwd=folder, env=environment(dataset), stdout=log, stderr=log)
            point = before + drawn.randint(3, 14)
            while killing and len(server.requests) < point and process.poll() is None:
                time.sleep(0.005)
            if killing:
                done_kills += process.poll() is None
                process.kill()
            code = process.wait(timeout=600)
            lost += len(done - (now := replied_on_disk(folder, server.requests)))
            twice += _asked_again(server, before, done)
            under_way = len(server.answered - now) if killing else 0
            most, twice = max(most, under_way), twice + max(0, under_way - AT_ONCE)
            server.answered &= now
            done = now
    run = read_run(folder / "out", release)
    lost += sum(not all(r.turns) for r in run.replies) + 2 * samples - len(run.replies)
    note = f"{done_kills} kills, {2 * samples} samples, {len(server.requests):,} requests, then exit {code}"
    return Figures(lost, twice, f"{note}; at most {most} answered and not on the disk ({AT_ONCE} at once)")


def environment(dataset: Path) -> dict[str, str]:
    """What a command gets: the key, and no network but the loopback."""
    known = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    more = {"HELMBENCH_DATASET": str(dataset), "HF_HUB_OFFLINE": "1", "OPENAI_API_KEY": SECRET}
    return known | more | {"PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(ROOT)])}


# --- disturbed once
# -----------------------------------------------------------------------------------------------------------------


@dataclass
class Client:
    """One command in one folder, asking one server. `samples`: how much it has to ask."""

    name: str
    folder: Path
    dataset: Path
    samples: int
    server: Counting = field(default_factory=lambda: Counting(lambda body, attempt: good(body)))

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.name == "judge":
            self.wanted = asked(replies_file(self.release, self.folder / "r.jsonl", self.samples), self.release)

    @property
    def release(self) -> Release:
        return open_release(self.dataset)

    def command(self) -> list[str]:
        if self.name == "judge":
            more = ["--concurrency", "4", "--timeout", "1", "--max-retries", "2", "--base-url", self.server.url]
            where = ["--replies", str(self.folder / "r.jsonl"), "--dataset", str(self.dataset), "--model", "judge-1"]
            return [sys.executable, "-m", "helmbench.cli", "run", *where, *more]
        arguments = f"model=m,base_url={self.server.url}/chat/completions,num_concurrent=4,timeout=1,max_retries=2"
        return [
            *(sys.executable, "-m", "lm_eval", "run", "--model", "local-chat-completions", "--model_args", arguments),
            *("--tasks", "helmbench_pillar4", "--limit", str(self.samples), "--apply_chat_template", "--log_samples"),
            *("--metadata", '{"helmbench_patience": 2}', "--include_path", str(ROOT / "lm_eval_tasks")),
            *("--output_path", str(self.folder / "out"), "--use_cache", str(self.folder / "cache")),
        ]

    def room(self) -> int:
        """Bytes of a disk that some of the answers fit on, beside the questions."""
        if self.name == "runner":
            return 65536
        questions = sum(len(batch.request_line(r).encode()) for r in self.wanted)
        return questions + (self.folder / "r.jsonl").stat().st_size + 8192 + 100 * len(self.wanted)

    def start(self, before: Callable[[], None] | None = None, prefix: Iterable[str] = ()) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*prefix, *self.command()],
            cwd=ROOT,
            env=environment(self.dataset),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=before,
        )

    def done(self) -> set[str]:
        """The conversations that have their answer on the disk."""
        if self.name == "runner":
            return replied_on_disk(self.folder, self.server.requests)
        wanted = {json.dumps(r.body["messages"], ensure_ascii=False): r for r in self.wanted}
        return answered_on_disk(self.folder / "r.scored" / "judge" / "judge-1" / "replies.jsonl", wanted)

    def whole(self) -> int:
        """How many have theirs in the end."""
        if self.name == "judge":
            return len(self.done())
        return sum(all(r.turns) for r in read_run(self.folder / "out", self.release).replies)

    @property
    def all(self) -> int:
        return len(self.wanted) if self.name == "judge" else self.samples


class Ended(NamedTuple):
    """How a command ended: its code and all that it printed."""

    code: int
    printed: str


Row = Callable[[Client], Ended]


def ended(process: subprocess.Popen[str]) -> Ended:
    out, err = process.communicate(timeout=300)
    return Ended(process.returncode, out + err)


def every_third(answer: Callable[[dict[str, Any]], Said]) -> Row:
    """A row in which one question in three is always answered so, and the rest well."""

    def row(client: Client) -> Ended:
        def plan(body: dict[str, Any], attempt: int) -> Said:
            number = int(hashlib.sha256(str(body["messages"]).encode()).hexdigest(), 16)
            return answer(body) if number % 3 == 0 else good(body)

        client.server.plan = plan
        return ended(client.start())

    return row


def all_alike(answer: Said) -> Row:
    """A row in which every question is answered so."""

    def row(client: Client) -> Ended:
        client.server.plan = lambda body, attempt: answer
        return ended(client.start())

    return row


def disk_full(client: Client) -> Ended:
    """The disk has room for a part of the answers."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={client.room()}", "tmpfs", str(client.folder)]
    mounted = subprocess.run(mount, capture_output=True)
    if mounted.returncode == 0:
        client.__post_init__()  # its files, on the small disk
        try:
            return ended(client.start())
        finally:
            subprocess.run(["mount", "-o", "remount,size=100m", str(client.folder)], check=True)
    return ended(client.start(lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (65536, resource.RLIM_INFINITY))))


def read_only(client: Client) -> Ended:
    """Nothing can be written."""
    ours = [client.folder, *(p for p in client.folder.rglob("*") if p.is_dir())]
    for folder in ours:
        folder.chmod(0o555)
    root = os.geteuid() == 0
    drop = ["setpriv", "--inh-caps=-all", "--bounding-set=-all"] if root and shutil.which("setpriv") else []
    try:
        return ended(client.start(prefix=drop))
    finally:
        for folder in ours:
            folder.chmod(0o755)


def two_at_once(client: Client) -> Ended:
    """The same command twice, side by side; what is shown is the second's end."""
    client.server.plan = lambda body, attempt: good(body)._replace(wait=0.1)
    first = client.start()
    _until(client, 2, first)
    first.send_signal(signal.SIGSTOP)  # it holds what it holds, however long the second takes to start
    second = ended(client.start())
    first.send_signal(signal.SIGCONT)
    ended(first)
    return second


def ctrl_c(client: Client) -> Ended:
    """As somebody at a terminal types it."""
    client.server.plan = lambda body, attempt: good(body)._replace(wait=0.1)
    process = client.start(_hears_ctrl_c)
    _until(client, 10, process)
    process.send_signal(signal.SIGINT)
    return ended(process)


def _hears_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job inherits that it is ignored


def _until(client: Client, requests: int, process: subprocess.Popen[str]) -> None:
    while len(client.server.requests) < requests and process.poll() is None:
        time.sleep(0.01)


def long_answer(body: dict[str, Any]) -> Said:
    """10 MB of text, in the shape that was asked for."""
    return said("x" * 10_000_000)


AWAY = Said(307, {"Location": f"http://127.0.0.2:9/{SECRET}"}, b"")
ROWS: dict[str, Row] = {
    "disk full": disk_full,
    "read-only": read_only,
    "two at once": two_at_once,
    "Ctrl-C": ctrl_c,
    "hung server": all_alike(Said(200, {}, b"", wait=NEVER)),
    "10 MB answers": every_third(long_answer),
    "endless answers": every_third(lambda body: fault("endless", good(body))),
    "broken chunks": every_third(lambda body: fault("broken chunk", good(body))),
    "200 with an error": every_third(lambda body: fault("200 with an error", good(body))),
    "redirects": all_alike(AWAY),
    "some redirects": every_third(lambda body: AWAY),
    "Retry-After of years": all_alike(failed(429, SECRET, Retry_After="315360000")),
    "key echoed": all_alike(failed(401, f"Incorrect API key provided: {SECRET}", SECRET)),
}


def disturb(name: str, client: Client) -> tuple[Ended, Figures]:
    """One row, and then the same command with a server that is well."""
    at = ROWS[name](client)
    done, before = client.done(), len(client.server.requests)
    client.server.plan = lambda body, attempt: good(body)
    after = ended(client.start())
    (client.folder / "printed.txt").write_text(at.printed + after.printed, encoding="utf-8")
    lost, twice = client.all - client.whole(), _asked_again(client.server, before, done)
    traceback = ", TRACEBACK" if "Traceback (most recent call last)" in at.printed + after.printed else ""
    return at, Figures(lost, twice, f"{len(done)} of {client.all} kept, then exit {after.code}{traceback}")


def last_line(printed: str, most: int = 150) -> str:
    """The last line that says something."""
    lines = [line.strip() for line in printed.replace("\r", "\n").splitlines() if line.strip()]
    return (lines[-1] if lines else "")[:most]


@contextmanager
def folder_for_runs() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    try:
        yield folder
    finally:
        for mounted in (p for p in folder.iterdir() if p.is_mount()):
            subprocess.run(["umount", str(mounted)], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    """Prints every figure; 1 where one isn't 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--judge-kills", type=int, default=50)
    parser.add_argument("--runner-kills", type=int, default=10)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--samples", type=int, default=30)
    parser.add_argument("--rows", nargs="*", choices=ROWS, default=list(ROWS))
    parser.add_argument("--clients", nargs="*", choices=("judge", "runner"), default=["judge", "runner"])
    parser.add_argument("--dataset", type=Path, default=ROOT / "helmbench")
    args = parser.parse_args()
    os.environ["OPENAI_API_KEY"] = SECRET
    total, dataset = Counter[str](), args.dataset.resolve()

    def show(name: str, found: Figures, keys: int, line: str = "") -> None:
        total.update(lost=found.lost, twice=found.twice, keys=keys)
        print(f"{name:<30} lost {found.lost}  twice {found.twice}  keys {keys}  {found.note}", flush=True)
        if line:
            print(f"{'':<30} {line}", flush=True)

    with folder_for_runs() as folder:
        for name, kill, kills, size in (
            ("judge", kill_judge, args.judge_kills, args.questions),
            ("runner", kill_runner, args.runner_kills, args.samples),
        ):
            if kills and name in args.clients:
                (where := folder / f"killed-{name}").mkdir()
                watch = Watch()
                found = kill(where, dataset, kills, size)
                show(f"{name} killed", found, watch.keys(where))
        for name in args.rows:
            for of in args.clients:
                where = folder / f"{of}-{name.replace(' ', '-')}"
                watch, client = Watch(), Client(of, where, dataset, 120 if of == "judge" else 24)
                at, found = disturb(name, client)
                show(f"{of}: {name}", found, watch.keys(where), f"exit {at.code}: {last_line(at.printed)}")
    print(f"in all: lost {total['lost']}, paid twice {total['twice']}, keys found {total['keys']}")
    return int(total.total() > 0)


if __name__ == "__main__":
    sys.exit(main())
