"""Whatever is in a foreign file, the command that reads it ends soon, with a documented exit code and an error text; it
writes nowhere else, and earlier output stays whole if it fails.

`make soak` tries 300 examples of each target, the same in every run. What it finds becomes a plain test of its subject
(test_broken_inputs.py has the kinds that it found).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from helmbench.cli.app import main
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from support.fuzz_targets import MOST, NAMES, Target, lay, targets

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 30  # for one command
DISK, FAULT = 3, 70
# What moves a terminal's cursor, colors it or turns its direction.
UNSAFE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
DIGITS = "9" * 5000  # more than Python turns into a number
# fmt: off
TOKENS = (
    b"\x00", b"\xef\xbb\xbf", b"\xff\xfe", b"\xed\xa0\x80", b"\xc3", b"\r\n", b"\r", b"\n", b"\x1b[2J", b"\xe2\x80\xae",
    b"\xc2\xb2", b"\xcc\x81" * 2000, b" " * 100_000, b"a-" * 20_000, b"1e999", DIGITS.encode(), b"NaN", b"0x1F",
    b"[" * 50_000, b'{"a":' * 50_000, b"- " * 3000, b"&a [*a, *a]", b"<<: *a", b"---\n", b"\n# PT1\n", b"\n## x\n",
    b'"', b"1:30", b"'", b",", b";", b":", b"{}", b"null", b"\\ud800", b"\\u0000", b"../escaped", b"/etc/passwd",
    b"=1+1", b"</script><b>", b"2026-13-45", b"PK\x03\x04",
)
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1, 3, 0.5, 1e308, float("nan"), float("inf"), 10**400, "", " ", "a", "\0", "\x1b[2J", "\u202e",
    "²", "a\nb", "../escaped", "/etc/passwd", ".", "PASS", "FAIL-misses", "1", "2026-13-45", "no", "a" * 200_000,
    "a-" * 20_000, "\u0301" * 5000, DIGITS, [], {}, [[]], [None], [{}], {"a": 1}, {"": None}, [0] * 50_000,
    [{}] * 20_000,
)
# fmt: on
PLACES = ("folder", "pipe", "/dev/zero", "nowhere", ".", "empty", "gone", "huge")


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What the targets share; nothing in it may change."""
    place = tmp_path_factory.mktemp("ground")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HELMBENCH_DATASET", "set by lay")
        lay(place)
        before = state(place)
        yield place
        assert state(place) == before


@pytest.mark.soak(short=0, full=300)
@pytest.mark.parametrize("name", NAMES)
def test_no_file_breaks_the_command_that_reads_it(
    name: str,
    ground: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    rounds: int,
) -> None:
    monkeypatch.setenv("HELMBENCH_DATASET", str(ground / "dataset"))
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    target, home = targets(ground)[name], tmp_path / "home"
    (tmp_path / "valid").mkdir()
    target.make(tmp_path / "valid")

    @settings(
        max_examples=rounds,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        shutil.rmtree(home, ignore_errors=True)
        room = home / "room"
        shutil.copytree(tmp_path / "valid", room, symlinks=True)
        for _ in range(data.draw(st.integers(1, 3))):
            found = (sorted(p for p in room.glob(pattern) if p.is_file()) for pattern in target.files)
            if groups := [paths for paths in found if paths]:
                changed(data.draw(st.sampled_from(data.draw(st.sampled_from(groups)))), data)
        with contextlib.suppress(Exception):  # an attacker's tools may break on what an attacker made
            target.settle(room)
        before, command = state(home), data.draw(st.sampled_from(target.commands))
        monkeypatch.chdir(room)
        code = run(command)
        said = "".join(capfd.readouterr())
        wrong = problem(target, command, code, said, changes(before, state(home), room))
        assert not wrong, f"helmbench {command}: {wrong} (exit code {code})\n{said[:2000]}"

    holds()


def run(command: str) -> int:
    def stop(*_: object) -> None:
        raise TimeoutError(f"no end within {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        return main(command.split())
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def state(root: Path) -> dict[str, Any]:
    """Everything below a folder: its mode, its size, and its content or link target."""
    found: dict[str, Any] = {}
    for folder, folders, files in os.walk(root):
        for path in (Path(folder, name) for name in (*folders, *files)):
            own = path.lstat()
            content: str | bytes = os.readlink(path) if path.is_symlink() else b""
            if path.is_file() and own.st_size <= MOST:
                content = path.read_bytes()
            found[str(path)] = own.st_mode, path.is_dir() or own.st_size, content
    return found


def changes(before: dict[str, Any], after: dict[str, Any], room: Path) -> list[str]:
    """The paths that differ, from the room's folder."""
    return sorted(os.path.relpath(k, room) for k in before.keys() | after.keys() if before.get(k) != after.get(k))


def problem(target: Target, command: str, code: int, said: str, changed: list[str]) -> str:
    """What is wrong with how a command ended; empty if nothing is."""
    own = [name for name in changed if any(f"{name}/".startswith(f"{o}/") for o in target.outputs)]
    problems = {
        "a traceback": "Traceback (most recent" in said or code == FAULT,
        "the code is not documented": code not in codes(command),
        f"changed {changed[:3]}": len(own) < len(changed),
        f"failed and changed {own[:3]}": code not in target.writes and own,
        "says nothing": code and not said.strip(),
        "writes to the terminal": UNSAFE.search(said),
        "a warning": "Warning: " in said,
        "calls bad input a fault of the disk": code == DISK,
    }
    return next((what for what, wrong in problems.items() if wrong), "")


def codes(command: str) -> set[int]:
    """The exit codes that docs/comparing.md names for a command."""
    words = command.split()[:2]
    names = {words[0], " ".join(words)}
    rows = re.findall(r"^\| (\d+) \|[^|]+\| (.+) \|$", (ROOT / "docs" / "comparing.md").read_text(), re.MULTILINE)
    return {int(code) for code, where in rows if where == "any command" or names & {*re.findall(r"`([^`]+)`", where)}}


def changed(path: Path, data: st.DataObject) -> None:
    """One change of one file: of its bytes, of a value in it, or of what it is."""
    kind = data.draw(st.sampled_from(("value",) * 4 + ("splice",) * 3 + ("cut", "line", "place")))
    if kind == "place":
        placed(path, data.draw(st.sampled_from(PLACES)))
        return
    if path.is_symlink() or path.stat().st_size > MOST:
        return
    raw = path.read_bytes()
    start = data.draw(st.integers(0, len(raw)))
    if kind == "value" and (made := valued(raw, path.suffix, data)) is not None:
        raw = made
    elif kind == "cut":
        raw = raw[:start]
    elif kind == "line":
        lines = raw.splitlines(keepends=True)
        at = data.draw(st.integers(0, max(0, len(lines) - 1)))
        raw = b"".join([*lines[:at], *(lines[at : at + 1] * data.draw(st.sampled_from((0, 2)))), *lines[at + 1 :]])
    else:
        end = start + data.draw(st.integers(0, 64))
        raw = raw[:start] + data.draw(st.sampled_from(TOKENS)) + raw[end:]
    path.write_bytes(raw)


def valued(raw: bytes, suffix: str, data: st.DataObject) -> bytes | None:
    """Another value, or none, somewhere in JSON, YAML, a line of JSONL or the front matter of Markdown; None for other
    files.
    """
    head, tail = b"", b""
    load: Callable[[bytes], Any] = json.loads if suffix.startswith(".json") else yaml.safe_load
    dump: Callable[[Any], str] = json.dumps if suffix.startswith(".json") else yaml.safe_dump
    if suffix == ".jsonl" and (lines := raw.splitlines(keepends=True)):
        at = data.draw(st.integers(0, len(lines) - 1))
        head, raw, tail = b"".join(lines[:at]), lines[at], b"".join([b"\n", *lines[at + 1 :]])
    elif suffix == ".md" and raw.startswith(b"---\n"):
        front, mark, rest = raw[4:].partition(b"\n---\n")
        head, raw, tail = b"---\n", front, mark + rest
    elif suffix not in (".json", ".yaml"):
        return None
    try:
        whole = {"": load(raw)}
        holder, key = data.draw(st.sampled_from([*places(whole)]))
        if data.draw(st.integers(0, 3)):
            holder[key] = data.draw(st.sampled_from(VALUES))
        else:
            del holder[key]
        made = dump(whole.get("")).encode("utf-8", "surrogatepass")
    except (ValueError, yaml.YAMLError, RecursionError):  # an earlier change broke it
        return None
    return head + made + tail


def places(found: Any) -> Iterator[tuple[Any, Any]]:
    """Every value below, as what holds it and its key."""
    for key in [*found] if isinstance(found, dict) else range(min(len(found), 40)):
        yield found, key
        if isinstance(found[key], dict | list):
            yield from places(found[key])


def placed(path: Path, what: str) -> None:
    """Something else than a file under its name."""
    path.unlink()
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "empty":
        path.touch()
    elif what == "huge":
        with path.open("wb") as file:
            file.truncate(3 * 2**30)  # takes no room on the disk
    elif what != "gone":
        path.symlink_to(what)


def test_what_a_command_did_wrong_is_seen() -> None:
    target = Target(lambda room: None, (), (), outputs=("out",))
    cases: list[tuple[int, str, list[str], str]] = [
        (0, "said", ["out/a"], ""),
        (2, "run: is none", [], ""),
        (0, "said", ["mine"], "changed ['mine']"),
        (2, "why", ["out"], "failed and changed ['out']"),
        (2, "Traceback (most recent call last):\nKeyError: 'x'", [], "a traceback"),
        (1, "a gate that `score` has not", [], "the code is not documented"),
        (0, "\x1b[2J", [], "writes to the terminal"),
        (2, "", [], "says nothing"),
        (3, "[Errno 21]", [], "calls bad input a fault of the disk"),
    ]
    for code, said, found, what in cases:
        assert problem(target, "score run", code, said, found) == what
