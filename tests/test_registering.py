"""Registering the tasks with the installed lm-eval, and removing them, in a package folder of the test's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from helmbench.cli.app import main

from lm_eval_tasks import registering
from lm_eval_tasks.registering import MARK, RegistrationError

ROOT = Path(__file__).resolve().parents[1]
TASKS = ROOT / "lm_eval_tasks" / "helmbench"
SOURCES = {p.name: p.read_text(encoding="utf-8") for p in TASKS.glob("*yaml")}
NOBODY = 65534


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the tasks go, in a package named lm_eval; not there yet."""
    (tmp_path / "lm_eval" / "tasks").mkdir(parents=True)
    found = tmp_path / "lm_eval" / "tasks" / "helmbench"
    monkeypatch.setattr(registering, "place", lambda: found)
    return found


@pytest.fixture
def command(folder: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs `helmbench tasks` in this process: standard output, or `exit N` where it fails."""

    def run(*arguments: str) -> str:
        code = main(["tasks", *arguments])
        return f"exit {code}" if code else capsys.readouterr().out

    return run


def tree(root: Path) -> dict[str, bytes | str]:
    """Everything below a folder: bytes of files, targets of links."""
    return {
        str(p.relative_to(root)): os.readlink(p) if p.is_symlink() else p.read_bytes() if p.is_file() else "folder"
        for p in sorted(root.rglob("*"))
    }


def test_a_child_process_registers_lists_and_removes(tmp_path: Path) -> None:
    """The real command finds lm-eval's folder; every YAML file is copied there, marked in its first line."""
    (tmp_path / "lm_eval" / "tasks").mkdir(parents=True)
    (tmp_path / "lm_eval" / "__init__.py").write_text("")
    folder = tmp_path / "lm_eval" / "tasks" / "helmbench"
    done = subprocess.run(
        [sys.executable, "-m", "helmbench.cli", "tasks", "--register"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        cwd=tmp_path,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"helmbench tasks registered in {folder.parent}\n"
    texts = {p.name: p.read_text(encoding="utf-8") for p in folder.iterdir()}
    assert all(map(MARK.match, texts.values()))
    assert {name: text.partition("\n")[2] for name, text in texts.items()} == SOURCES
    included = {yaml.safe_load(text).get("include") for name, text in texts.items() if name.endswith(".yaml")}
    assert included - {None} <= texts.keys()
    assert str(ROOT) not in "".join(texts.values())


def test_the_command_lists_registers_and_removes(folder: Path, command: Callable[..., str]) -> None:
    """Each step twice gives the same; after --remove nothing is left."""
    before = tree(folder.parent)
    read = map(yaml.safe_load, (text for name, text in SOURCES.items() if name.endswith(".yaml")))
    names = {r["group"] if "group" in r else r["task"] for r in read}
    listed = command()
    assert {line.split()[0] for line in listed.splitlines() if line.startswith("helmbench")} == names
    assert f"not registered with {folder.parent}" in listed
    for _ in range(2):
        assert command("--register") == f"helmbench tasks registered in {folder.parent}\n"
        assert {p.name for p in folder.iterdir()} == SOURCES.keys()
    found = json.loads(command("--json"))
    assert (found["state"], found["folder"]) == ("registered", str(folder))
    assert {task["name"] for task in found["tasks"]} == names
    assert command("--quiet") == ""
    for _ in range(2):
        assert command("--remove") == f"helmbench tasks removed from {folder.parent}\n"
        assert tree(folder.parent) == before
    assert command("--register", "--remove") == "exit 2"
    assert not folder.exists()


def test_another_versions_copies_are_replaced(folder: Path) -> None:
    """Until then the listing says that they differ; a task that this version doesn't have goes."""
    registering.register(folder)
    text = (folder / "helmbench.yaml").read_text().replace("by helmbench ", "by helmbench 0.0.")
    for name in ("helmbench.yaml", "helmbench_retired.yaml"):
        (folder / name).write_text(text)
    (folder / ".helmbench.yaml-123").write_text("")  # left by a killed process
    found = registering.look(folder)
    assert (found.state, found.version) == ("outdated", version("helmbench"))
    assert "run `helmbench tasks --register`" in registering.listing(registering.tasks(), found)
    assert registering.register(folder).state == "registered"
    assert not (folder / "helmbench_retired.yaml").exists()


def test_foreign_files_are_left_alone(folder: Path, tmp_path: Path, command: Callable[..., str]) -> None:
    """Whatever else is there, registering, removing and listing change nothing and name it in one line."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "theirs.yaml").write_text("task: theirs\n")
    cases: dict[str, Callable[[], object]] = {
        "the folder is a link": lambda: folder.symlink_to(elsewhere),
        "the folder is a dangling link": lambda: folder.symlink_to(elsewhere / "gone"),
        "the folder is a file": lambda: folder.write_text("theirs\n"),
        "a link": lambda: (folder / "theirs.yaml").symlink_to(elsewhere / "theirs.yaml"),
        "a file in place of ours": lambda: (folder / "helmbench.yaml").write_text("task: theirs\n"),
        "bytes": lambda: (folder / "theirs.bin").write_bytes(b"\xff\xfe\n"),
        "a folder": lambda: (folder / "more").mkdir(),
    }
    for name, put in cases.items():
        if not name.startswith("the folder"):
            registering.register(folder)
        put()
        before = tree(tmp_path)
        for act in (registering.register, registering.remove, registering.look):
            with pytest.raises(RegistrationError, match=rf"^{folder}[^\n]*nothing was changed[^\n]*$"):
                act(folder)
        assert tree(tmp_path) == before, name
        tmp_path.joinpath("used").mkdir(exist_ok=True)
        folder.rename(tmp_path / "used" / name.replace(" ", "-"))
    folder.write_text("theirs\n")
    assert command("--register") == command("--remove") == "exit 1"


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Even root can't write there: the process runs as another user meanwhile."""
    folder.chmod(0o555)
    was_root = os.geteuid() == 0
    if was_root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if was_root:
            os.seteuid(0)
        folder.chmod(0o755)


def test_a_read_only_environment_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the folder, what is wrong, and --include_path; nothing changes."""
    with pytest.raises(RegistrationError, match=r"No such file or directory"):
        registering.register(Path("/nonexistent/tasks/helmbench"))
    with tempfile.TemporaryDirectory() as place:  # not below tmp_path, which other users can't read
        Path(place).chmod(0o755)
        monkeypatch.setattr(registering, "_marked", lambda: {"helmbench.yaml": "# Registered by helmbench 1\n"})
        folder = Path(place) / "tasks" / "helmbench"
        folder.parent.mkdir()
        said = rf"^{folder}[^\n]*Permission denied[^\n]*--include_path[^\n]*$"
        with read_only(folder.parent), pytest.raises(RegistrationError, match=said):
            registering.register(folder)
        registering.register(folder)
        before = tree(folder.parent)
        with read_only(folder), pytest.raises(RegistrationError, match=said):
            registering.remove(folder)
        assert tree(folder.parent) == before
