"""Imports point one way: dataset_builder ← judge ← task ← scripts."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TASK = {"messages_task", "task", "metrics", "survive", "window", "wire"}
OURS = {
    "dataset_builder",
    "judge",
    "scripts",
    "demo",
    "reference_server",
    "reference_policies",
    "register_task",
    "scripted_judge",
    *TASK,
}
CORPUS = {f"dataset_builder.corpus.{name}" for name in ("folder", "labelled", "schema")}
ALLOWED: dict[str, set[str]] = {
    "dataset_builder": {"dataset_builder"},
    # The judge reads releases through one module, so that one place decides whether a build is whole and unedited.
    # A corpus is a release's messages of the user's own: read through as narrow a door, and its labels are written in
    # its own shapes.
    "judge": {"judge", "dataset_builder.jsonl", "dataset_builder.schema", "dataset_builder.release", *CORPUS},
    "lm_eval_tasks": {
        "judge",
        "corpora.labelled",
        "dataset_builder.jsonl",
        "dataset_builder.schema",
        "dataset_builder.release",
        "dataset_builder.composing.condition_text",
        *(TASK - {"messages_task"}),
    },
    "scripts": {"dataset_builder", "judge", "reference_server", "reference_policies", "scripted_judge", "demo"},
}


def imports(path: Path) -> set[str]:
    """Every module of ours that a file imports, by its dotted name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | (
                {f"{node.module}.{a.name}" for a in node.names}
                if node.module in ("dataset_builder", "judge")
                else set()
            )
    return {name for name in found if name.split(".")[0] in OURS} - {"dataset_builder", "judge"}


@pytest.mark.parametrize(
    "path",
    [p for folder in ALLOWED for p in sorted((ROOT / folder).rglob("*.py"))],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_imports_point_one_way(path: Path) -> None:
    """A file imports only what stands to its left in the pipeline."""
    allowed = ALLOWED[path.relative_to(ROOT).parts[0]]
    wrong = {name for name in imports(path) if not any(name == a or name.startswith(a + ".") for a in allowed)}
    assert wrong == set()


def test_schemas_are_leaves() -> None:
    """The shapes drag no code in: dataset_builder.schema imports nothing of ours, judge.schema only that."""
    assert imports(ROOT / "dataset_builder" / "schema.py") == set()
    assert imports(ROOT / "judge" / "schema.py") == {"dataset_builder.schema"}
