"""How far a reply travels from log to scorecard: the rooms (modules of ours) that its way enters, and the returns.

Usage: python tests/benchmarks/trip.py [--base REVISION]

The way is what the imports of its entrances reach. A *return* is an import of a room that was entered already: rooms
r, imports between them e, returns e − (r − 1); a straight line has none. Printed for the core (`judge.score` and the
reader of lm-eval's log), for the core with the offline judge, and, from git, for the first release, whose only way to
a scorecard was its command (`judge.pipeline`; what makes pages is left out there, as it is here).
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FIRST = "cec30ba"  # release 0.1.0 as it was measured from outside
PAGES = ("judge.report.page", "judge.report.summary")
Source = Callable[[str], str]  # a file's path → its text


def modules(names: list[str]) -> dict[str, str]:
    """Dotted names of Python files, packages' own files apart."""
    files = [n for n in names if n.endswith(".py") and not n.endswith("__init__.py")]
    return {n.removesuffix(".py").replace("/", "."): n for n in files}


def imported(text: str, known: dict[str, str]) -> set[str]:
    """The modules of `known` that a source imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{a.name}" for a in node.names)}
    return found & known.keys()


def way(entrances: tuple[str, ...], known: dict[str, str], read: Source) -> tuple[int, int]:
    """Rooms and returns of the way that begins at `entrances`."""
    rooms, left, imports = set(entrances), list(entrances), 0
    while left:
        room = left.pop()
        reached = imported(read(known[room]), known) - {room, *PAGES}
        imports += len(reached)
        left += reached - rooms
        rooms |= reached
    return len(rooms), imports - (len(rooms) - 1)


def git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description="Count the rooms that a reply enters on its way to a scorecard.")
    parser.add_argument("--base", default=FIRST, help="the revision to stand beside (default: the first release)")
    base = parser.parse_args().base
    here = modules(
        [
            str(p.relative_to(ROOT))
            for top in ("dataset_builder", "corpora", "replies", "judge")
            for p in (ROOT / top).rglob("*.py")
        ]
    )
    core = ("judge.score", "judge.replies.lm_eval_log")
    rows = [
        ("core", *way(core, here, lambda n: (ROOT / n).read_text(encoding="utf-8"))),
        (
            "core and offline judge",
            *way((*core, "judge.offline.reader"), here, lambda n: (ROOT / n).read_text(encoding="utf-8")),
        ),
    ]
    try:
        then = modules(git("ls-tree", "-r", "--name-only", base, "dataset_builder", "judge").splitlines())
        rows.append((f"{base}: judge.pipeline", *way(("judge.pipeline",), then, lambda n: git("show", f"{base}:{n}"))))
    except (subprocess.CalledProcessError, OSError):
        print(f"{base} is not in this checkout's history: nothing to stand beside")
    print(f"{'way':<26}{'rooms':>6}{'returns':>9}")
    for name, rooms, returns in rows:
        print(f"{name:<26}{rooms:>6}{returns:>9}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
