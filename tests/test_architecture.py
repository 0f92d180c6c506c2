"""The house: imports point one way, options end at the command, every module stands where a newcomer looks for it."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("dataset_builder", "corpora", "replies", "lm_eval_tasks", "judge", "leaderboard", "helmbench_cli")
MODULES = [p for package in PACKAGES for p in sorted((ROOT / package).rglob("*.py"))]
ROOMS = [p.parent for p in MODULES if p.name == "__init__.py"]
MOST = 7  # arguments of a public function
# A dotted name of ours, as a docstring writes it.
DOTTED = re.compile(rf"`({'|'.join(PACKAGES)})((?:\.(?!jsonl?\b|csv\b)\w+)+)")
FILE = re.compile(r"(?<![\w/.<-])((?:[\w.]+/)*\w+\.(?:py|md|yaml|csv|json))(?![\w/])")
# Files that runs, builds and users have, and this repository has not.
ELSEWHERE = re.compile(
    r"(MANIFEST|scorecard|calibration|rating_calibration|validation|croissant|labels|corpus|comparison|submission|spent|results\w*|leaderboard|"
    r"tokenizer|\w*\.samples)\.json|(eval|rejudged|about|mapping|helmbench)\.yaml|(labels|sheet|figures|table|leaderboard)\.csv|summary\.md"
)


def test_imports_point_one_way() -> None:
    """Between packages and inside them, without a ring: every contract of .importlinter is kept."""
    done = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_options_end_at_the_command(path: Path) -> None:
    """Nothing under helmbench_cli reads a namespace of options, or parses any."""
    names = {n.id for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.Name)}
    imported = {
        a.name
        for n in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(n, ast.Import)
        for a in n.names
    }
    assert "argparse" not in imported
    assert not names & {"options", "Namespace"}


@pytest.mark.parametrize(
    "path", [p for p in MODULES if p.parts[-2] != "helmbench_cli"], ids=lambda p: str(p.relative_to(ROOT))
)
def test_a_public_function_takes_few_arguments(path: Path) -> None:
    """At most seven; a command's are its options, and have a help text each."""
    long = [
        f"{node.name} ({count})"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")
        if (
            count := sum(
                a.arg not in ("self", "cls") for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            )
        )
        > MOST
    ]
    assert long == []


def test_functions_fit_on_a_screen() -> None:
    """The median is at most 8 lines and the 95th percentile at most 30, docstrings and signatures counted."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in MODULES)
    functions = (n for tree in trees for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    lines = sorted((n.end_lineno or n.lineno) - n.lineno + 1 for n in functions)
    assert lines[len(lines) // 2] <= 8
    assert lines[int(0.95 * len(lines))] <= 30


@pytest.mark.parametrize("room", ROOMS, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_room_says_what_stands_in_it(room: Path) -> None:
    """The package's docstring names every module and every room in it."""
    said = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8"))) or ""
    inside = [p.stem for p in room.glob("*.py")] + [p.name for p in room.iterdir() if (p / "__init__.py").is_file()]
    assert [name for name in sorted(inside) if not name.startswith("__") and not re.search(rf"\b{name}\b", said)] == []


@pytest.mark.parametrize(
    "path",
    [*MODULES, *sorted((ROOT / "scripts").glob("*.py")), *sorted((ROOT / "tests").rglob("*.py"))],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_what_a_docstring_names_is_there(path: Path) -> None:
    """A module or a name in it, by its dotted name; a file of this repository, by its path or its name."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    said = "\n".join(ast.get_docstring(n) or "" for n in ast.walk(tree) if isinstance(n, kinds))
    text = "\n".join(line for line in said.splitlines() if not line.strip().startswith("Example:"))
    gone = [f"{top}{rest}" for top, rest in DOTTED.findall(text) if not _there(f"{top}{rest}")]
    gone += [
        name for name in FILE.findall(text) if not ELSEWHERE.fullmatch(name.rpartition("/")[2]) and not _file(name)
    ]
    assert gone == []


def _there(dotted: str) -> bool:
    """Whether a dotted name is a module, or what stands in one."""
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


TRACKED = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.splitlines() or [
    str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if p.is_file()
]


def _file(name: str) -> bool:
    return any(f == name or f.endswith(f"/{name}") for f in TRACKED)


# Who may take a file's text apart without the readers of `dataset_builder/formats`, and why.
OWN_READERS = {
    "corpora/mask.py": "our own helplines, which are package data",
    "corpora/sharded/folder.py": "what another process of ours wrote",
    "judge/llm/answers.py": "a judge's answer, which is no file",
    "judge/llm/budget.py": "what we spent, in a file of ours",
    "judge/llm/engine.py": "a server's answer, which is no file",
    "judge/offline/model.py": "our own weights, which are package data",
    "judge/references.py": "our own figures, which are package data",
    "judge/rules/answers.py": "a model's reply, which is no file",
    "leaderboard/verify/bounds.py": "a request inside a submission, as text",
    "leaderboard/verify/prompts.py": "a request inside a submission, as text",
    "leaderboard/verify/reading.py": "submissions, stricter than any authored file",
    "lm_eval_tasks/helmbench/preflight.py": "a server's answer, which is no file",
    "lm_eval_tasks/helmbench/survive.py": "what an earlier run of ours kept",
    "lm_eval_tasks/helmbench/wire.py": "a server's answer, which is no file",
}
TAKING_APART = re.compile(r"\b(?:yaml\.(?:load|safe_load|compose)|csv\.(?:reader|DictReader)|json\.loads?)\b")


def test_files_are_taken_apart_in_one_room() -> None:
    """YAML, CSV and JSON that people write are read by `dataset_builder/formats`, which has the limits and names the
    line. Who reads otherwise says why, above; who no longer does is taken off the list.
    """
    code = {str(p.relative_to(ROOT)): ast.unparse(ast.parse(p.read_text(encoding="utf-8"))) for p in MODULES}
    reading = {name for name, text in code.items() if TAKING_APART.search(text) and "/formats/" not in name}
    assert reading - OWN_READERS.keys() == set()
    assert OWN_READERS.keys() - reading == set()
