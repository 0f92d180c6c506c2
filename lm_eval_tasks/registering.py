"""Lets `lm_eval --tasks helmbench` find the tasks from any directory: lists, registers and removes them.

lm-eval 0.4.13 looks for tasks only in its own folder and in --include_path. So copies of our YAML files go into
`lm_eval/tasks/helmbench/` of the installed lm-eval. Their classes come from the installed package `lm_eval_tasks`, so
that nothing there points to a checkout. Each copy says in its first line who wrote it, and carries the hash of the
rest: what has no such line, or was edited since, is somebody else's and is never changed.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, NamedTuple

from helmbench_common.errors import HelmbenchError
from helmbench_common.files import write_whole

TASKS = Path(__file__).with_name("helmbench")
MARK = re.compile(r"# Registered by helmbench (\S+) \(sha256 ([0-9a-f]{16})\).*\n")


class RegistrationError(HelmbenchError):
    """The tasks can't be registered or removed; the message names the file. Nothing of anyone else's was changed."""

    exit_code = 1


class Task(NamedTuple):
    """One name that `lm_eval --tasks` knows. `members`: of a group, the tasks in it."""

    name: str
    alias: str
    members: tuple[str, ...] = ()


class Registration(NamedTuple):
    """What stands in lm-eval's folder. `state`: `absent`, `registered` as this package would write it, or `outdated`.

    `version`: of the helmbench that wrote the copies; None where there is none, or links of the first release.
    """

    folder: Path
    state: Literal["absent", "registered", "outdated"]
    version: str | None = None


def tasks() -> list[Task]:
    """Every group and task, groups first, by name."""
    from helmbench_common.formats import yaml_file

    read = [yaml_file.load(p, "a task").value for p in sorted(TASKS.glob("*.yaml"))]
    groups = [Task(r["group"], r["group_alias"], tuple(r["task"])) for r in read if "group" in r]
    return groups + [Task(r["task"], r["task_alias"]) for r in read if "group" not in r]


def place() -> Path:
    """The folder that is ours in the lm-eval of this Python, whether it is there or not.

    Raises:
        RegistrationError: lm-eval is not installed.
    """
    spec = importlib.util.find_spec("lm_eval")
    if spec is None or spec.origin is None:
        raise RegistrationError("lm-eval is not installed in this Python; run `make setup` first")
    return Path(spec.origin).parent / "tasks" / "helmbench"


def look(folder: Path) -> Registration:
    """What is registered in `folder`.

    Raises:
        RegistrationError: something there is not ours, or can't be read.
    """
    with _one_line(folder), _alone(folder.parent):
        found = [path for path in _ours(folder) if not _is_staged(path)]
        wanted = _texts()
        if not found:
            return Registration(folder, "absent")
        if any(path.is_symlink() for path in found):
            return Registration(folder, "outdated")
        read = {path.name: path.read_text(encoding="utf-8") for path in found}
        said = next(match[1] for text in read.values() if (match := MARK.match(text)))
        return Registration(folder, "registered" if read == wanted else "outdated", said)


def register(folder: Path) -> Registration:
    """Writes the copies, in the place of an earlier registration's.

    Raises:
        RegistrationError: something there is not ours, or the folder can't be written.
    """
    with _one_line(folder), _alone(folder.parent):
        earlier, wanted = _ours(folder), _texts()
        folder.mkdir(exist_ok=True)
        for name, text in wanted.items():
            write_whole(folder / name, text)
        for path in earlier:
            if path.name not in wanted:
                path.unlink()
    return Registration(folder, "registered", version("helmbench"))


def remove(folder: Path) -> Registration:
    """Deletes the copies, or an earlier release's links, and their folder. Fine where nothing is registered.

    Raises:
        RegistrationError: something there is not ours, or the folder can't be written.
    """
    with _one_line(folder), _alone(folder.parent):
        for path in _ours(folder):
            path.unlink()
        with suppress(FileNotFoundError):
            folder.rmdir()
    return Registration(folder, "absent")


def listing(known: list[Task], found: Registration) -> str:
    """The tasks as a table, and whether and where they are registered."""
    width = max(len(task.name) for task in known)
    lines = [f"{task.name:{width}}  {_kind(task):13}  {task.alias}" for task in known]
    return "\n".join([f"{'name':{width}}  {'kind':13}  alias", *lines, "", _where(found)])


def plain(known: list[Task], found: Registration) -> dict[str, Any]:
    """The same as `listing`, as plain values for JSON."""
    rows = [{"name": t.name, "alias": t.alias, "members": list(t.members) or None} for t in known]
    return {
        "tasks": rows,
        "folder": str(found.folder),
        "state": found.state,
        "version": found.version,
        "include_path": str(TASKS.parent),
    }


def _kind(task: Task) -> str:
    return f"group of {len(task.members)}" if task.members else "task"


def _where(found: Registration) -> str:
    if found.state == "absent":
        return (
            f"not registered with {found.folder.parent}: run `helmbench tasks --register`, or give lm_eval "
            f"--include_path {TASKS.parent}"
        )
    if found.state == "outdated":
        writer = f"helmbench {found.version}" if found.version else "an earlier release, as links"
        return f"registered in {found.folder} by {writer}, not as this one has them: run `helmbench tasks --register`"
    return f"registered in {found.folder}"


def _texts() -> dict[str, str]:
    """File name → marked text: the tasks and groups, and what they include, whose names end in `yaml` without a dot."""
    ours = version("helmbench")
    texts = {}
    for path in sorted(TASKS.glob("*yaml")):
        text = path.read_text(encoding="utf-8")
        texts[path.name] = (
            f"# Registered by helmbench {ours} (sha256 {_digest(text)}): `helmbench tasks --register` replaces this "
            f"file, `helmbench tasks --remove` deletes it.\n{text}"
        )
    return texts


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _ours(folder: Path) -> list[Path]:
    """Everything in `folder`; nothing where there is no folder.

    Raises:
        RegistrationError: it isn't a folder of its own, or holds what isn't ours.
    """
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise _foreign(folder, "is a link" if folder.is_symlink() else "is no folder")
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    for path in found:
        if why := _not_ours(path):
            raise _foreign(path, why)
    return found


def _foreign(path: Path, why: str) -> RegistrationError:
    return RegistrationError(
        f"{path}: {why}, so it is not helmbench's; nothing was changed. Move it away, or give lm_eval --include_path "
        f"{TASKS.parent}"
    )


def _not_ours(path: Path) -> str | None:
    """Why a file isn't one that any helmbench wrote there, or None for one that is."""
    if path.is_symlink():
        # The first release registered links into a checkout, which may have gone since.
        old = path.suffix == ".yaml" and Path(os.readlink(path)).parts[-3:] == ("lm_eval_tasks", "helmbench", path.name)
        return None if old else "is a link that helmbench didn't make"
    if not path.is_file():
        return "is no file"
    if _is_staged(path):
        return None
    text = path.read_bytes().decode("utf-8", errors="replace")
    mark = MARK.match(text)
    if mark is None:
        return "doesn't begin with helmbench's line"
    return None if _digest(text[mark.end() :]) == mark[2] else "was edited since it was registered"


def _is_staged(path: Path) -> bool:
    """What `write_whole` leaves where its process is killed."""
    return not path.is_symlink() and re.fullmatch(r"\.\w+(\.yaml|_yaml)-\d+", path.name) is not None


@contextmanager
def _alone(tasks_folder: Path) -> Iterator[None]:
    """One process at a time. The lock is on the folder itself, so that no file of ours is left beside lm-eval's."""
    handle = os.open(tasks_folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # network file systems may lock no folder; then the last one wins
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def _one_line(folder: Path) -> Iterator[None]:
    """What the disk refuses, in one line."""
    try:
        yield
    except OSError as error:
        raise RegistrationError(
            f"{error.filename or folder}: {error.strerror}; the tasks can't be registered or removed there. Use an "
            f"environment of your own, or give lm_eval --include_path {TASKS.parent}"
        ) from None
