"""Lists, registers and removes the lm-eval tasks, so that `lm_eval --tasks helmbench` works from any directory.

lm-eval 0.4.13 looks for tasks only in its package folder and in --include_path, so our YAML files are copied into
`lm_eval/tasks/helmbench/` of the installed lm-eval. They name classes in the installed package `lm_eval_tasks`, so the
copies don't depend on a checkout. The first line of each copy says that helmbench wrote it; a folder that holds
anything else is left unchanged.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, NamedTuple

from helmbench_common.errors import HelmbenchError
from helmbench_common.files import write_whole

TASKS = Path(__file__).with_name("helmbench")
MARK = re.compile(r"# Registered by helmbench (\S+)")


class RegistrationError(HelmbenchError):
    """The tasks can't be registered or removed; the message names the file. No foreign file was changed."""

    exit_code = 1


class Task(NamedTuple):
    """A name that `lm_eval --tasks` accepts. `members`: the tasks of a group."""

    name: str
    alias: str
    members: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        return f"group of {len(self.members)}" if self.members else "task"


class Registration(NamedTuple):
    """The content of our folder in lm-eval. `version`: the helmbench version that wrote it."""

    folder: Path
    state: Literal["absent", "registered", "outdated"]
    version: str | None = None

    @property
    def text(self) -> str:
        if self.state == "registered":
            return f"registered in {self.folder}"
        if self.state == "outdated":
            return (
                f"registered in {self.folder} by helmbench {self.version}, but its files differ from this version's: "
                "run `helmbench tasks --register`"
            )
        return (
            f"not registered with {self.folder.parent}: run `helmbench tasks --register`, or give lm_eval "
            f"--include_path {TASKS.parent}"
        )


def tasks() -> list[Task]:
    """Every group and task, groups first, by name."""
    from helmbench_common.formats import yaml_file

    read = [yaml_file.load(p, "a task").value for p in sorted(TASKS.glob("*.yaml"))]
    groups = [Task(r["group"], r["group_alias"], tuple(r["task"])) for r in read if "group" in r]
    return groups + [Task(r["task"], r["task_alias"]) for r in read if "group" not in r]


def place() -> Path:
    """Our folder in this Python's lm-eval; it may not exist yet.

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
        RegistrationError: it holds foreign files, or can't be read.
    """
    with _disk_errors(folder):
        copies = _copies(folder)
    marks = [mark[1] for text in copies.values() if (mark := MARK.match(text))]
    if not marks:
        return Registration(folder, "absent")
    return Registration(folder, "registered" if copies == _marked() else "outdated", marks[0])


def register(folder: Path) -> Registration:
    """Writes the copies, replacing any earlier registration.

    Raises:
        RegistrationError: the folder holds foreign files, or can't be written.
    """
    with _disk_errors(folder):
        earlier, wanted = _copies(folder), _marked()
        folder.mkdir(exist_ok=True)
        for name, text in wanted.items():
            write_whole(folder / name, text)
        for name in earlier.keys() - wanted.keys():
            (folder / name).unlink()
    return look(folder)


def remove(folder: Path) -> Registration:
    """Deletes the folder with the copies, if it exists.

    Raises:
        RegistrationError: the folder holds foreign files, or can't be deleted.
    """
    with _disk_errors(folder):
        _copies(folder)
        if folder.exists():
            shutil.rmtree(folder)
    return Registration(folder, "absent")


def listing(known: list[Task], found: Registration) -> str:
    """The tasks as a table, and where they are registered."""
    width = max(len(task.name) for task in known)
    lines = [f"{task.name:{width}}  {task.kind:13}  {task.alias}" for task in known]
    return "\n".join([f"{'name':{width}}  {'kind':13}  alias", *lines, "", found.text])


def plain(known: list[Task], found: Registration) -> dict[str, Any]:
    """The same as `listing`, as plain values for JSON."""
    return {
        "tasks": [{"name": t.name, "alias": t.alias, "members": list(t.members) or None} for t in known],
        "folder": str(found.folder),
        "state": found.state,
        "version": found.version,
        "include_path": str(TASKS.parent),
    }


def _marked() -> dict[str, str]:
    """File name → text to register: tasks, groups, and what they include (names that end in `yaml` without a dot)."""
    mark = f"# Registered by helmbench {version('helmbench')} (`helmbench tasks --register` overwrites this file)\n"
    return {path.name: mark + path.read_text(encoding="utf-8") for path in sorted(TASKS.glob("*yaml"))}


def _copies(folder: Path) -> dict[str, str]:
    """File name → text of the files that helmbench registered; ignores hidden files left by a killed process.

    Raises:
        RegistrationError: the folder is a link, or holds something else.
    """
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise _foreign(folder)
    copies = {}
    for path in sorted(folder.iterdir()) if folder.exists() else []:
        if path.name.startswith("."):
            continue
        if path.is_symlink() or not path.is_file():
            raise _foreign(path)
        copies[path.name] = path.read_text(encoding="utf-8", errors="replace")
        if not MARK.match(copies[path.name]):
            raise _foreign(path)
    return copies


def _foreign(path: Path) -> RegistrationError:
    return RegistrationError(
        f"{path}: not written by `helmbench tasks --register`; nothing was changed. Move it away, or give lm_eval "
        f"--include_path {TASKS.parent}"
    )


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RegistrationError(
            f"{folder}: {error.strerror}; can't register or remove the tasks there. Use a virtual environment, or give "
            f"lm_eval --include_path {TASKS.parent}"
        ) from None
