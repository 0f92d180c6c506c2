"""Imports point one way, and a module that a docstring names exists."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("helmbench_common", "dataset_builder", "lm_eval_tasks", "judge", "leaderboard", "helmbench")
MODULES = [p for top in (*PACKAGES[:-1], "api/helmbench") for p in sorted((ROOT / top).rglob("*.py"))]
DOTTED = re.compile(rf"`({'|'.join(PACKAGES)})((?:\.(?!jsonl?\b|csv\b|py\b)\w+)+)`")


def test_imports_point_one_way() -> None:
    """Every contract of .importlinter holds: between packages and inside them, without a cycle."""
    done = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout


def test_names_in_docstrings_exist() -> None:
    """`package.module.name` in a docstring is a module, or a name in one."""
    gone = []
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                names = (f"{top}{rest}" for top, rest in DOTTED.findall(ast.get_docstring(node) or ""))
                gone += [f"{path.relative_to(ROOT)}: {name}" for name in names if not _exists(name)]
    assert gone == []


def _exists(dotted: str) -> bool:
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            if not hasattr(found, name):
                return False
            found = getattr(found, name)
        return True
    return False
