"""A target's valid input in a room of its own, changed, a command run on it, and all that may be wrong afterwards."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from fuzz.mutations import Change, apply

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 20  # without any work after which a command is hung, on a machine with other work
CPU = 20.0  # seconds of a processor that no command needs for files this small
MEGABYTES = 1500  # over what it begins with
DISK, FAULT = 3, 70
SECRET = "only the neighbour's"
# What moves a terminal's cursor, colours it or turns its direction.
UNSAFE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
OURS = re.compile(r'File "[^"]*?((?:helmbench_common|dataset_builder|judge|leaderboard|helmbench)/[^"]+)", line (\d+)')
Tree = dict[str, str]


class Target(NamedTuple):
    """What is fuzzed. `make` fills a room with valid input and earlier output. `files`: globs of what is changed in it,
    each as likely as the others. `commands`: as they are typed in the room. `outputs`: paths that a command may
    change. `writes`: the exit codes after which it may have. `settle`: what an attacker would do after a change.
    """

    make: Callable[[Path], None]
    files: tuple[str, ...]
    commands: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    writes: frozenset[int] = frozenset({0})
    settle: Callable[[Path], None] = lambda room: None


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    hung: bool
    cpu: float
    megabytes: int
    stdout: str
    stderr: str


class Defect(NamedTuple):
    """`kind` and `why` are the same for the same defect."""

    kind: str
    why: str
    command: str
    ended: Ended


class Worker:
    """A process that runs commands in forks of its own."""

    def __init__(self) -> None:
        path = os.pathsep.join([str(ROOT), str(ROOT / "scripts"), str(ROOT / "tests")])
        alone = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fuzz.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | alone | {"PYTHONPATH": path, "HF_HUB_OFFLINE": "1", "COLUMNS": "200"},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()

    def run(self, typed: str, home: Path, warm: bool = False) -> Ended:
        """`helmbench` with these words in `home`/room. `warm`: in the worker itself, which must trust the input."""
        own = {"HOME": "user", "TMPDIR": "tmp", "HF_HOME": "user/hf", "XDG_DATA_HOME": "user/data"}
        command = {
            **{"warm": warm, "arguments": typed.split(), "cwd": str(home / "room"), "seconds": SECONDS, "cpu": CPU},
            **{name: str(home / name) for name in ("stdout", "stderr")},
            "environment": {name: str(home / place) for name, place in own.items()},
        }
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        ended = json.loads(self.process.stdout.readline())
        said = [(home / name).read_text(encoding="utf-8", errors="replace") for name in ("stdout", "stderr")]
        return Ended(ended["code"], ended["hung"], ended["cpu"], ended["megabytes"], said[0], said[1])


def furnish(target: Target, home: Path) -> None:
    """A valid room below `home`, and neighbours that no command may touch."""
    for name in ("room", "user", "tmp", "neighbour"):
        (home / name).mkdir(parents=True)
    (home / "neighbour" / "notes.txt").write_text(SECRET)
    target.make(home / "room")


def copy(template: Path, home: Path) -> None:
    """A furnished home again, at another place."""
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(template, home, symlinks=True)


def warm(target: Target, template: Path, home: Path, worker: Worker) -> None:
    """Runs the first command on valid input in the worker itself, so that its forks needn't read what it keeps."""
    copy(template, home)
    ended = worker.run(target.commands[0], home, warm=True)
    assert ended.code in target.writes, ended


def attempt(
    target: Target, template: Path, home: Path, worker: Worker, made: Sequence[Change], choice: int
) -> Defect | None:
    """Copies the template, changes it, runs one of the commands; what is wrong afterwards, None where nothing is."""
    copy(template, home)
    room = home / "room"
    for change in made:
        found = (sorted(p for p in room.glob(pattern) if p.is_file()) for pattern in target.files)
        groups = [paths for paths in found if paths]
        apply(change, room, groups[change.file % len(groups)] if groups else [])
    with contextlib.suppress(Exception):  # an attacker's tools may break on what an attacker made
        target.settle(room)
    command = target.commands[choice % len(target.commands)]
    before = tree(home)
    ended = worker.run(command, home)
    return judged(target, f"helmbench {command}", ended, before, tree(home), home)


def judged(target: Target, command: str, ended: Ended, before: Tree, after: Tree, home: Path) -> Defect | None:
    """The gravest thing that is wrong with how a command ended."""
    last = _last(ended.stderr)
    changed = sorted(k for k in before.keys() | after.keys() if before.get(k) != after.get(k))
    own = [f"room/{name}" for name in target.outputs]
    outside = [name for name in changed if not any(f"{name}/".startswith(f"{o}/") for o in own)]
    problems: dict[str, object] = {
        "hang": ended.hung and _stack(ended.stderr),
        "killed": ended.code < 0 and f"signal {-ended.code}",
        "traceback": "Traceback (most recent" in ended.stderr and f"{last} {_raised(ended.stderr)}",
        "fault": ended.code == FAULT and last,
        "code": ended.code not in codes(command) and f"{ended.code}: {last}",
        "outside": outside and f"{ended.code}: {', '.join(outside[:3])}",
        "not intact": not outside and ended.code not in target.writes and changed and f"{ended.code}: {changed[:3]}",
        "memory": ended.megabytes > MEGABYTES and "megabytes",
        "silent": ended.code and not (ended.stderr + ended.stdout).strip() and f"{ended.code}",
        "terminal": (found := UNSAFE.search(ended.stderr + ended.stdout)) and repr(found[0]),
        "warning": "Warning: " in ended.stderr and next(x for x in ended.stderr.splitlines() if "Warning: " in x),
        "disk": ended.code == DISK and last,
    }
    for kind, why in problems.items():
        if why:
            return Defect(kind, _general(str(why), home), command, ended)
    return None


def codes(command: str) -> set[int]:
    """The exit codes that docs/comparing.md names for a command."""
    words = command.split()[1:3]
    names = {words[0], " ".join(words)}
    rows = re.findall(r"^\| (\d+) \|[^|]+\| (.+) \|$", (ROOT / "docs" / "comparing.md").read_text(), re.MULTILINE)
    own = {int(code) for code, where in rows if where == "any command" or names & set(re.findall(r"`([^`]+)`", where))}
    return own - {FAULT}


def tree(home: Path) -> Tree:
    """Every path below a home with its kind, size and hash; what the worker writes is left out."""
    found: Tree = {}
    for folder, folders, names in os.walk(home):
        for name in (*folders, *names):
            path = os.path.join(folder, name)
            key = os.path.relpath(path, home)
            if key not in ("stdout", "stderr"):
                found[key] = _described(path)
    return found


def _described(path: str) -> str:
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        return f"link to {os.readlink(path)}"
    if not stat.S_ISREG(status.st_mode):
        return f"kind {stat.S_IFMT(status.st_mode):o}"
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read(2**26)).hexdigest()
    return f"{status.st_size} {digest}"


def _last(stderr: str) -> str:
    lines = [x for x in stderr.splitlines() if x.strip()]
    return lines[-1][:300] if lines else ""


def _raised(stderr: str) -> str:
    """Where in our code it was raised."""
    ours = OURS.findall(stderr)
    return f"({ours[-1][0]}:{ours[-1][1]})" if ours else ""


def _stack(stderr: str) -> str:
    """The innermost line of ours in the stack of a command that hangs."""
    ours = OURS.findall(stderr)
    return f"{ours[0][0]}:{ours[0][1]}" if ours else "nowhere of ours"


def _general(why: str, home: Path) -> str:
    """Without what differs from one example of a defect to the next."""
    return re.sub(r"\d{2,}|[0-9a-f]{8,}", "N", re.sub(r"'[^'\\]*'|\"[^\"]*\"", "'…'", why.replace(str(home), "")))[:200]
