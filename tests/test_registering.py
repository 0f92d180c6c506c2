"""Registering with the installed lm-eval, and taking it back, on a package folder of the test's own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from lm_eval_tasks import registering
from lm_eval_tasks.registering import MARK, Registration, RegistrationError

ROOT = Path(__file__).resolve().parents[1]
TASKS = ROOT / "lm_eval_tasks" / "helmbench"
SOURCES = {p.name: p.read_text(encoding="utf-8") for p in TASKS.glob("*yaml")}
NOBODY = 65534


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with a package named lm_eval, which a child process finds before the installed one."""
    (tmp_path / "lm_eval" / "tasks").mkdir(parents=True)
    (tmp_path / "lm_eval" / "__init__.py").write_text("")
    return tmp_path


@pytest.fixture
def folder(site: Path) -> Path:
    """Where the tasks go; not there yet."""
    return site / "lm_eval" / "tasks" / "helmbench"


def command(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "helmbench.cli", "tasks", *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": f"{site}{os.pathsep}{ROOT}"},
        cwd=site,
        timeout=60,
    )


def tree(root: Path) -> dict[str, str]:
    """Everything under a folder, links unfollowed: what it is, and what stands in it."""
    return {
        str(p.relative_to(root)): f"-> {os.readlink(p)}"
        if p.is_symlink()
        else p.read_text()
        if p.is_file()
        else "folder"
        for p in sorted(root.rglob("*"))
    }


def linked(folder: Path, clone: Path) -> None:
    """What the first release left: a link to each .yaml of a checkout."""
    folder.mkdir()
    for name in SOURCES:
        if name.endswith(".yaml"):
            (folder / name).symlink_to(clone / "lm_eval_tasks" / "helmbench" / name)


def test_every_yaml_is_copied(site: Path, folder: Path) -> None:
    """After registering, lm-eval's folder holds each of our YAML files, marked in the first line and else unchanged."""
    done = command(site, "--register")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"helmbench tasks registered in {folder.parent}\n"
    texts = {p.name: p.read_text(encoding="utf-8") for p in folder.iterdir()}
    assert all(MARK.match(text) and not (folder / name).is_symlink() for name, text in texts.items())
    assert {name: text.partition("\n")[2] for name, text in texts.items()} == SOURCES


def test_what_a_copy_includes_is_copied_too(folder: Path) -> None:
    """No copy points out of its folder, to a checkout that may go."""
    registering.register(folder)
    included = {
        yaml.safe_load(p.read_text(encoding="utf-8")).get("include", p.name) for p in folder.glob("helmbench*.yaml")
    }
    assert included <= {p.name for p in folder.iterdir()}
    assert str(ROOT) not in "".join(p.read_text(encoding="utf-8") for p in folder.iterdir())


def test_twice_is_the_same_as_once(folder: Path) -> None:
    """Registering again replaces the copies and fails on nothing."""
    registering.register(folder)
    once = tree(folder)
    assert registering.register(folder).state == "registered"
    assert tree(folder) == once
    assert len(once) == len(SOURCES)


def test_remove_leaves_nothing_behind(site: Path, folder: Path) -> None:
    """--remove undoes it wholly, and is fine where nothing was registered."""
    before = tree(site)
    registering.register(folder)
    for _ in range(2):
        done = command(site, "--remove")
        assert (done.returncode, done.stdout) == (0, f"helmbench tasks removed from {folder.parent}\n")
        assert not folder.exists()
        assert tree(site) == before


def test_foreign_files_are_left_alone(site: Path, folder: Path) -> None:
    """A helmbench folder that isn't made of our copies is not touched."""
    folder.mkdir()
    (folder / "theirs.yaml").write_text("task: theirs\n")
    done = command(site, "--register")
    assert done.returncode == 1
    assert "nothing was changed" in done.stderr
    assert [p.name for p in folder.iterdir()] == ["theirs.yaml"]


def folder_is_a_link(folder: Path, elsewhere: Path) -> None:
    """To a folder of links, which the first release emptied."""
    linked(elsewhere / "kept", elsewhere)
    folder.symlink_to(elsewhere / "kept")


def folder_is_a_dangling_link(folder: Path, elsewhere: Path) -> None:
    folder.symlink_to(elsewhere / "gone")


def folder_is_a_file(folder: Path, elsewhere: Path) -> None:
    folder.write_text("theirs\n")


def link_to_elsewhere(folder: Path, elsewhere: Path) -> None:
    linked(folder, elsewhere)
    (elsewhere / "theirs.yaml").write_text("task: theirs\n")
    (folder / "theirs.yaml").symlink_to(elsewhere / "theirs.yaml")


def dangling_link_to_elsewhere(folder: Path, elsewhere: Path) -> None:
    registering.register(folder)
    (folder / "theirs.yaml").symlink_to(elsewhere / "theirs.yaml")


def link_to_us_by_another_name(folder: Path, elsewhere: Path) -> None:
    folder.mkdir()
    (folder / "mine.yaml").symlink_to(TASKS / "helmbench.yaml")


def file_of_the_same_name(folder: Path, elsewhere: Path) -> None:
    registering.register(folder)
    (folder / "helmbench.yaml").write_text("group: helmbench\ntask: [theirs]\n")


def file_of_bytes(folder: Path, elsewhere: Path) -> None:
    folder.mkdir()
    (folder / "theirs.bin").write_bytes(b"\xff\xfe\n")


def edited_copy(folder: Path, elsewhere: Path) -> None:
    registering.register(folder)
    with (folder / "helmbench_lite.yaml").open("a") as file:
        file.write("# mine\n")


def folder_inside(folder: Path, elsewhere: Path) -> None:
    registering.register(folder)
    (folder / "more").mkdir()


@pytest.mark.parametrize(
    "put",
    [
        folder_is_a_link,
        folder_is_a_dangling_link,
        folder_is_a_file,
        link_to_elsewhere,
        dangling_link_to_elsewhere,
        link_to_us_by_another_name,
        file_of_the_same_name,
        file_of_bytes,
        edited_copy,
        folder_inside,
    ],
)
def test_what_is_not_ours_is_never_touched(put: Callable[[Path, Path], None], folder: Path, tmp_path: Path) -> None:
    """Whatever else stands there, registering and removing change nothing and say so in one line that names it."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    put(folder, elsewhere)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}, sorted(tmp_path.rglob("*"))
    for act in (registering.register, registering.remove, registering.look):
        with pytest.raises(RegistrationError, match=rf"^{folder}[^\n]*nothing was changed[^\n]*$"):
            act(folder)
    assert ({p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}, sorted(tmp_path.rglob("*"))) == before


@pytest.mark.parametrize("put", [folder_is_a_dangling_link, edited_copy])
def test_the_command_says_it_in_one_line(put: Callable[[Path, Path], None], site: Path, folder: Path) -> None:
    """No traceback; the exit code is 1."""
    put(folder, site)
    for option in ("--register", "--remove"):
        done = command(site, option)
        assert done.returncode == 1
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("there", [True, False], ids=["checkout-there", "checkout-gone"])
@pytest.mark.parametrize("act", [registering.register, registering.remove])
def test_links_of_the_first_release_are_replaced(
    act: Callable[[Path], Registration], there: bool, folder: Path, tmp_path: Path
) -> None:
    """Whether the checkout that they point to is still there or not; what stands in it is not changed."""
    clone = tmp_path / "clone"
    shutil.copytree(TASKS, clone / "lm_eval_tasks" / "helmbench", ignore=shutil.ignore_patterns("__pycache__"))
    linked(folder, clone)
    if not there:
        clone.rename(tmp_path / "moved")
    kept = tree(clone if there else tmp_path / "moved")
    assert registering.look(folder) == Registration(folder, "outdated")
    assert act(folder).state == ("registered" if act is registering.register else "absent")
    assert not folder.exists() or {p.name for p in folder.iterdir() if not p.is_symlink()} == set(SOURCES)
    assert tree(clone if there else tmp_path / "moved") == kept


def test_what_a_killed_process_left_goes(folder: Path) -> None:
    """A half-written copy has a name that lm-eval doesn't read; the next registration clears it away."""
    folder.mkdir()
    (folder / ".helmbench.yaml-123").write_text("# Regis")
    (folder / "._helmbench_yaml-123").write_text("")
    assert registering.look(folder).state == "absent"
    registering.register(folder)
    assert {p.name for p in folder.iterdir()} == set(SOURCES)


def test_a_task_that_is_gone_is_unregistered(folder: Path) -> None:
    """What another version registered and this one hasn't goes, and until then the registration is outdated."""
    registering.register(folder)
    text = (folder / "helmbench.yaml").read_text().replace("by helmbench ", "by helmbench 0.0.")
    for name in ("helmbench.yaml", "helmbench_retired.yaml"):
        (folder / name).write_text(text)
    found = registering.look(folder)
    assert found.state == "outdated"
    assert found.version is not None
    assert "run `helmbench tasks --register`" in registering.listing(registering.tasks(), found)
    assert registering.register(folder).state == "registered"
    assert not (folder / "helmbench_retired.yaml").exists()


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Nobody may write there, root neither: the process is nobody meanwhile."""
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


@pytest.mark.parametrize("registered", [True, False], ids=["registered-before", "nothing-there"])
def test_a_read_only_environment_is_one_line(registered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the folder, what is wrong, and the way without registering; nothing changes."""
    # Not below tmp_path, into which nobody but its owner can look.
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        source = shutil.copytree(TASKS, Path(place) / "lm_eval_tasks" / "helmbench")
        monkeypatch.setattr(registering, "TASKS", source)
        folder = Path(place) / "tasks" / "helmbench"
        folder.parent.mkdir()
        if registered:
            registering.register(folder)
        before = tree(folder.parent)
        with read_only(folder if registered else folder.parent):
            act = registering.remove if registered else registering.register
            with pytest.raises(
                RegistrationError, match=rf"^{folder}[^\n]*Permission denied[^\n]*--include_path[^\n]*$"
            ):
                act(folder)
        assert tree(folder.parent) == before


def test_processes_at_once_do_not_meet(site: Path, folder: Path) -> None:
    """Six at once, some registering and some removing: each is done, and what stands there is one of the two."""
    code = (
        "import sys; from pathlib import Path; from lm_eval_tasks import registering as r\n"
        "for _ in range(20): (r.register if sys.argv[2] == 'register' else r.remove)(Path(sys.argv[1]))"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", code, str(folder), how], cwd=ROOT, stderr=subprocess.PIPE, text=True)
        for how in ("register", "remove") * 3
    ]
    said = [(child.communicate(timeout=120)[1], child.returncode) for child in children]
    assert said == [("", 0)] * 6
    assert not folder.exists() or {p.name for p in folder.iterdir()} == set(SOURCES)
    assert [p.name for p in folder.parent.iterdir() if p != folder] == []


def test_without_lm_eval(site: Path) -> None:
    """One line says what is missing: the package, or its folder of tasks."""
    (site / "lm_eval" / "tasks").rmdir()
    done = command(site, "--register")
    assert done.returncode == 1
    assert "lm_eval/tasks: No such file or directory" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_command_lists_tasks_and_place(site: Path, folder: Path) -> None:
    """By default every name that lm_eval takes, and how things stand; --json the same as values; --quiet nothing."""
    names = {(r.get("task_alias") and r["task"]) or r["group"] for r in map(yaml.safe_load, _leaves().values())}
    listed = command(site)
    assert listed.returncode == 0
    assert {line.split()[0] for line in listed.stdout.splitlines() if line.startswith("helmbench")} == names
    assert f"not registered with {folder.parent}" in listed.stdout
    registering.register(folder)
    found = json.loads(command(site, "--json").stdout)
    assert (found["state"], found["folder"]) == ("registered", str(folder))
    assert {task["name"] for task in found["tasks"]} == names
    assert command(site, "--quiet").stdout == ""


def test_both_at_once_is_refused(site: Path, folder: Path) -> None:
    """--register with --remove is bad input, and does neither."""
    done = command(site, "--register", "--remove")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert not folder.exists()


def _leaves() -> dict[str, str]:
    return {name: text for name, text in SOURCES.items() if name.endswith(".yaml")}
