"""lm_eval_tasks/README.md lists every lm-eval internal that the tasks use; its names and tests exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import lm_eval

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "lm_eval_tasks" / "README.md").read_text(encoding="utf-8")
INSTALLED = Path(lm_eval.__file__).parent.parent
MODULES = sorted((ROOT / "lm_eval_tasks").rglob("*.py"))
MODELS = ("model", "self._model")  # what the modules call one of lm-eval's models


class Part(NamedTuple):
    owner: str
    names: tuple[str, ...]
    where: tuple[str, ...]
    tests: tuple[str, ...]


def parts() -> list[Part]:
    """The rows of the table."""
    rows = [line.strip("|").split(" | ") for line in PAGE.splitlines() if line.startswith("| `")]
    ticked = [[tuple(re.findall(r"`([^`]+)`", cell)) for cell in row] for row in rows]
    return [Part(owner[0], names, where, tests) for owner, names, where, _, tests in ticked]


PARTS = parts()


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def definition(owner: str) -> ast.AST:
    """The module, class or function of that dotted name, read and not imported: torch and vLLM aren't here.

    Raises:
        StopIteration: there is none.
    """
    names = owner.split(".")
    for cut in range(len(names), 0, -1):
        path = INSTALLED.joinpath(*names[:cut])
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if file.is_file():
            return inside(parsed(file), names[cut:])
    raise StopIteration(owner)


def inside(node: ast.AST, names: list[str]) -> ast.AST:
    """The definition at the end of a path of names, each within the one before.

    Raises:
        StopIteration: there is none.
    """
    for name in names:
        node = next(n for n in ast.iter_child_nodes(node) if getattr(n, "name", None) == name)
    return node


def names_in(node: ast.AST) -> set[str]:
    """What a module or class defines or sets on itself; of a function whatever it names, and its keys."""
    if isinstance(node, ast.FunctionDef):
        inner = list(ast.walk(node))
        texts = {n.value for n in inner if isinstance(n, ast.Constant) and isinstance(n.value, str)}
        return (
            texts
            | {n.arg for n in inner if isinstance(n, ast.arg)}
            | {n.attr for n in inner if isinstance(n, ast.Attribute)}
            | {n.id for n in inner if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        )
    bodies = [n for child in ast.iter_child_nodes(node) for n in (child, *ast.iter_child_nodes(child))]
    named = {str(n.name) for n in bodies if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    named |= {n.id for n in bodies if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return named | {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}


def test_every_name_on_the_page_is_in_the_installed_lm_eval() -> None:
    """A name that moved or went would stop the task in the middle of a run."""
    gone = {part.owner: missing for part in PARTS if (missing := set(part.names) - names_in(definition(part.owner)))}
    assert gone == {}


def test_every_test_and_module_on_the_page_exists() -> None:
    """File, class and function are there; a bare module name is one of lm_eval_tasks/helmbench."""
    for test in sorted({t for p in PARTS for t in p.tests}):
        path, *names = test.split("::")
        assert names[-1].startswith("test_")
        assert isinstance(inside(parsed(ROOT / path), names), ast.FunctionDef), test
    folders = (ROOT, ROOT / "lm_eval_tasks/helmbench")
    assert [w for p in PARTS for w in p.where if not any((f / w).is_file() for f in folders)] == []


def touched(path: Path) -> set[str]:
    """What a module reads or sets of a model of lm-eval's, and each underscored name that isn't of this project."""
    found = set()
    for node in ast.walk(parsed(path)):
        match node:
            case ast.Attribute(value=of, attr=name) if ast.unparse(of) in MODELS or name.startswith("_"):
                found.add(name)
            case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[of, ast.Constant(value=str(name)), *_]):
                found |= {name} if ast.unparse(of) in MODELS else set()
    return found


def own() -> set[str]:
    """Every name that the modules themselves define or set on their objects."""
    nodes = [node for path in MODULES for node in ast.walk(parsed(path))]
    defined = {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    stored = [n for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)]
    return defined | {n.attr for n in stored if ast.unparse(n.value) == "self"}


def test_nothing_private_is_used_unlisted() -> None:
    """Whoever reaches further into lm-eval adds a row, with the test that fails when it breaks."""
    listed = {name for part in PARTS for name in part.names} | own()
    listed |= {"_getframe", "__name__", "__self__", "__init__"}  # of Python
    paths = [p for p in MODULES if p.parent.name == "helmbench"]
    assert {p.name: unlisted for p in paths if (unlisted := touched(p) - listed)} == {}
