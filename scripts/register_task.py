"""Lets `lm_eval --tasks helmbench` find the tasks from any directory. Usage: python scripts/register_task.py [--remove]
[--quiet]

lm-eval 0.4.13 looks for tasks only in its own folder and in --include_path. This links our YAML files (a link to the
folder would not be followed) into `lm_eval/tasks/helmbench/` of the installed lm-eval; --remove takes them away again.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path

TASKS = Path(__file__).resolve().parents[1] / "lm_eval_tasks" / "helmbench"


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code: 0 done, 1 lm-eval is missing or holds a helmbench of its own."""
    parser = argparse.ArgumentParser(
        description="Register the HELMbench tasks with the installed lm-eval, or remove them."
    )
    parser.add_argument("--remove", action="store_true", help="take the links away again")
    parser.add_argument("--quiet", action="store_true", help="say nothing unless something is wrong")
    options = parser.parse_args(arguments)
    spec = importlib.util.find_spec("lm_eval")
    if spec is None or spec.origin is None:
        print("lm-eval is not installed in this Python; run `make setup` first", file=sys.stderr)
        return 1
    folder = Path(spec.origin).parent / "tasks" / "helmbench"
    if folder.is_dir() and any(not p.is_symlink() for p in folder.iterdir()):
        print(f"{folder}: holds files that are not our links; nothing was changed", file=sys.stderr)
        return 1
    remove(folder)
    if not options.remove:
        folder.mkdir(parents=True)
        for source in sorted(TASKS.glob("*.yaml")):
            (folder / source.name).symlink_to(source)
    if not options.quiet:
        print(f"helmbench tasks {'removed from' if options.remove else 'registered in'} {folder.parent}")
    return 0


def remove(folder: Path) -> None:
    """Deletes the links of an earlier registration and their folder."""
    if folder.is_dir():
        for link in folder.iterdir():
            link.unlink()
        folder.rmdir()


if __name__ == "__main__":
    sys.exit(main())
