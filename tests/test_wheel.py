"""The wheel is whole: installed into an environment of its own it builds, registers, runs and scores, with no checkout.

Installing a hundred dependencies would take minutes, so the environment reads the third-party packages of the one that
runs the tests. What belongs to this project it has from the wheel alone, and lm-eval is a copy of its own; a hook ends
any process of it that opens a file of the checkout.
"""

from __future__ import annotations

import ast
import io
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution, packages_distributions
from pathlib import Path
from typing import Any

import lm_eval
import pytest
import reference_server
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support.scores import scores

from dataset_builder.release import open_release

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES: list[str] = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
NAMES = [Path(package).name for package in PACKAGES]  # as they are imported
EXTRAS = {
    "api/helmbench/inspect": "inspect",
    "dataset_builder/corpora/cluster.py": "datatrove",
}  # whose imports come with an extra
THIRD_PARTY = Path(sysconfig.get_path("purelib"))
BUILD = ["helmbench", "build"]
SCORE = ["helmbench", "score"]
GUARD = """
import sys
def guard(event, arguments):
    if event in ("open", "os.listdir", "os.scandir") and str(arguments[0]).startswith({root!r}):
        if not str(arguments[0]).startswith({third_party!r}):
            raise RuntimeError(f"the checkout was read: {{arguments[0]}}")
sys.addaudithook(guard)
"""


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_set_up_runs_no_file_without_a_locked_hash(kind: str, tmp_path: Path) -> None:
    """An index that serves its own files under the locked names, or hides the wheels so that a build would fetch
    unlocked tools: `make setup` and the backends' script refuse, and none of the code runs.
    """
    mark = tmp_path / "ran"
    code = f"open({str(mark)!r}, 'w')"
    lock = (ROOT / "requirements-build.lock").read_text(encoding="utf-8")
    for name, version in re.findall(r"^(\S+)==(\S+)", lock, re.MULTILINE):
        page, stem = tmp_path / "simple" / name, f"{name.replace('-', '_')}-{version}"
        page.mkdir(parents=True)
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        if kind == "wheel":
            file = page / f"{stem}-py3-none-any.whl"
            with zipfile.ZipFile(file, "w") as archive:
                archive.writestr("own.pth", f"import os; {code}\n")
                archive.writestr(f"{stem}.dist-info/METADATA", metadata)
                archive.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
                archive.writestr(f"{stem}.dist-info/RECORD", "")
        else:
            file = page / f"{stem}.tar.gz"
            with tarfile.open(file, "w:gz") as archive:
                for path, text in (("setup.py", code), ("PKG-INFO", metadata)):
                    member = tarfile.TarInfo(f"{stem}/{path}")
                    member.size = len(text)
                    archive.addfile(member, io.BytesIO(text.encode()))
        (page / "index.html").write_text(f'<a href="{file.name}">{file.name}</a>', encoding="utf-8")
    index = {"PIP_INDEX_URL": (tmp_path / "simple").as_uri(), "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": ""}
    said = {"wheel": "DO NOT MATCH THE HASHES", "sdist": "No matching distribution found"}[kind]
    for command in (
        ["make", f"VENV={tmp_path / 'setup'}", f"{tmp_path / 'setup'}/.ready"],
        [str(ROOT / "scripts" / "make_backend_env.sh"), "hf", str(tmp_path / "hf")],
    ):
        done = subprocess.run(command, cwd=ROOT, env=os.environ | index, capture_output=True, text=True, timeout=300)
        assert done.returncode != 0
        assert said in done.stderr
        assert not mark.exists()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, as pip builds it from this folder."""
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT, timeout=120)
    return next(out.glob("*.whl"))


class Environment:
    """A virtual environment in an empty folder. `work`: where its commands run, outside of any checkout."""

    def __init__(self, root: Path, wheel: Path) -> None:
        self.bin, self.work = root / "env" / "bin", root / "work"
        self.work.mkdir()
        venv.create(root / "env", symlinks=True)
        pip = [sys.executable, "-m", "pip", "--python", str(self.bin / "python"), "--disable-pip-version-check"]
        install = [*pip, "install", "--quiet", "--no-compile", "--no-deps", "--no-index", str(wheel)]
        subprocess.run(install, check=True, capture_output=True, cwd=root, timeout=120)
        (self.site,) = (root / "env" / "lib").glob("python*/site-packages")
        # lm-eval's own 16,000 files of tasks would only be copied and indexed.
        source = Path(lm_eval.__file__).parent
        shutil.copytree(source, self.site / "lm_eval", ignore=lambda folder, names: _other_tasks(source, folder, names))
        # A line in a .pth goes behind this folder on sys.path, and the .pth files of that folder are not read.
        (self.site / "third_party.pth").write_text(f"{THIRD_PARTY}\n")
        guard = GUARD.format(root=f"{ROOT}{os.sep}", third_party=str(THIRD_PARTY))
        (self.site / "sitecustomize.py").write_text(guard)

    def run(self, *command: str, before: Path | None = None) -> subprocess.CompletedProcess[str]:
        """`before`: a folder that stands first on the path, as if its packages were run from there."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV", "HELMBENCH"))}
        kept |= {"PATH": f"{self.bin}{os.pathsep}/usr/bin{os.pathsep}/bin", "HF_HUB_OFFLINE": "1"}
        kept |= {"HF_HOME": str(self.work / "hf")} | ({"PYTHONPATH": str(before)} if before else {})
        program = [str(self.bin / command[0]), *command[1:]]
        return subprocess.run(program, capture_output=True, text=True, cwd=self.work, env=kept, timeout=300)

    def said(self, *command: str, before: Path | None = None) -> str:
        """What a command that has to go well printed."""
        done = self.run(*command, before=before)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
        return done.stdout


def _other_tasks(source: Path, folder: str, names: list[str]) -> set[str]:
    return {n for n in names if Path(folder) == source / "tasks" and (source / "tasks" / n).is_dir()}


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """The installed wheel, with the dataset built in `work` by its own command; the shared lm-eval stays as it was."""
    shared = Path(lm_eval.__file__).parent / "tasks" / "helmbench"
    before = sorted((p.name, p.lstat().st_mtime_ns) for p in shared.iterdir()) if shared.is_dir() else None
    made = Environment(tmp_path_factory.mktemp("installed"), wheel)
    made.said(*BUILD)
    yield made
    after = sorted((p.name, p.lstat().st_mtime_ns) for p in shared.iterdir()) if shared.is_dir() else None
    assert after == before


def test_the_wheel_holds_every_file_of_its_packages(wheel: Path) -> None:
    """Content, prompts, tasks, templates, calibrations and references, and nothing that isn't in the folders; but for
    the offline judge's training rows, which nothing reads at run time.
    """
    held = {n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n}
    there = {
        p.relative_to((ROOT / package).parent).as_posix()
        for package in PACKAGES
        for p in (ROOT / package).rglob("*")
        if p.is_file() and "__pycache__" not in p.parts and "training" not in p.parts
    }
    assert held == there
    assert {Path(n).suffix for n in held} >= {".md", ".yaml", ".csv", ".jsonl", ".json", ".j2", ".css", ".js", ".py"}


def test_every_third_party_import_comes_with_the_wheel() -> None:
    """What the packages import is required by the wheel, or by what it requires, and not only by the tests."""
    providers = packages_distributions()
    files = {p for package in PACKAGES for p in (ROOT / package).rglob("*.py")}
    own = {extra: {p for p in files if p.is_relative_to(ROOT / place)} for place, extra in EXTRAS.items()}
    own[""] = files - set().union(*own.values())
    for extra, paths in own.items():
        required = _required("helmbench", extra)
        foreign = {m for p in paths for m in _imported(p)} - set(NAMES) - sys.stdlib_module_names
        assert {m for m in foreign if not {canonicalize_name(d) for d in providers.get(m, [m])} & required} == set()


def _required(name: str, extra: str) -> set[str]:
    """A distribution's requirements with one of its extras, and theirs, as installed here."""
    seen: set[tuple[str, frozenset[str]]] = set()
    todo = [(canonicalize_name(name), frozenset({"", extra}))]
    while todo:
        if (wanted := todo.pop()) in seen:
            continue
        seen.add(wanted)
        for needed in map(Requirement, distribution(wanted[0]).requires or []):
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in wanted[1]):
                todo.append((canonicalize_name(needed.name), frozenset(needed.extras) | {""}))
    return {str(found) for found, _ in seen}


def _imported(path: Path) -> set[str]:
    """The top-level names of a file's absolute imports, but for those that it can do without: `except ImportError`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tries = [n for n in ast.walk(tree) if isinstance(n, ast.Try) and "ImportError" in map(ast.unparse, _caught(n))]
    optional = {child for n in tries for part in n.body for child in ast.walk(part)}
    found = set()
    for node in (n for n in ast.walk(tree) if n not in optional):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


def _caught(node: ast.Try) -> list[ast.expr]:
    return [handler.type for handler in node.handlers if handler.type]


def test_all_of_ours_comes_from_the_wheel(environment: Environment) -> None:
    """Each package of ours, and lm-eval, is the environment's; neither checkout nor scripts are on the path."""
    code = (
        "import importlib, importlib.metadata, importlib.util, json, sys\n"
        f"files = {{n: importlib.import_module(n).__file__ for n in {[*NAMES, 'lm_eval']}}}\n"
        "there = [n for n in ('demo', 'reference_server', 'conftest') if importlib.util.find_spec(n)]\n"
        "from importlib.metadata import distribution\n"
        "print(json.dumps([files, sys.path, there, str(distribution('helmbench').locate_file(''))]))"
    )
    files, path, there, where = json.loads(environment.said("python", "-c", code))
    assert all(Path(file).is_relative_to(environment.site) for file in files.values())
    assert [p for p in path if Path(p).is_relative_to(ROOT) and Path(p) != THIRD_PARTY] == []
    assert there == []
    assert Path(where) == environment.site
    done = environment.run("python", "-c", f"open({str(ROOT / 'pyproject.toml')!r})")
    assert "the checkout was read" in done.stderr  # the guard works


def test_inspect_finds_the_tasks(environment: Environment) -> None:
    """By the package's entry point, also from a folder that holds a built dataset of the same name."""
    code = (
        "from inspect_ai._util.registry import registry_lookup\n"
        "print(all(registry_lookup('task', f'helmbench/{n}') for n in ('core', 'lite', 'full', 'pillar1', 'triage')))"
    )
    assert (environment.work / "helmbench" / "MANIFEST.json").is_file()
    assert environment.said("python", "-c", code).strip() == "True"


def test_a_dataset_is_named_by_its_path(environment: Environment) -> None:
    """Without a build here, the error names the places that a user can fill, not site-packages. The absolute path loads
    from every directory.
    """
    code = (
        "import os, sys; os.chdir('/'); from datasets import load_dataset\n"
        "print(len(load_dataset(sys.argv[1], 'pillar1', split='test')))\n"
        "from dataset_builder.release import open_release; open_release()"
    )
    done = environment.run("python", "-c", code, str(environment.work / "helmbench"))
    assert done.stdout == f"{open_release(environment.work / 'helmbench').manifest.rows['pillar1']}\n"
    assert "ReleaseError: helmbench: no dataset found" in done.stderr


def test_a_new_scenario_is_the_users_own(environment: Environment) -> None:
    """Never among the installed package's files; in a folder of theirs the template is copied, and checked."""
    refused = environment.run("helmbench", "new", "scenario", "P1-B1")
    assert refused.returncode == 1
    assert "is the installed package's content; name your own folder with --content" in refused.stderr
    assert environment.run("helmbench", "new", "scenario", "P1-B1", "--content", "ours").returncode == 0
    found = environment.run("helmbench", "check", "--content", "ours")
    assert found.returncode == 1
    assert found.stderr.startswith("ours/scenarios/P1-B1-S900.md:3: ")


def test_from_wheel_to_scorecard(environment: Environment) -> None:
    """Build, register, generate and score, each by the installed command and from another directory."""
    out = environment.said("helmbench", "tasks", "--register")
    assert str(environment.site / "lm_eval" / "tasks") in out
    with reference_server.start() as server:
        address = f"model=keyword,base_url={server.url}/chat/completions,num_concurrent=8"
        ask = ["--model", "local-chat-completions", "--model_args", address, "--apply_chat_template", "--log_samples"]
        lite = ["--tasks", "helmbench_lite", "--limit", "2", "--output_path", "runs"]
        environment.said("python", "-m", "lm_eval", "run", *ask, *lite)
    environment.said(*SCORE, "runs/keyword")
    card: dict[str, Any] = json.loads((scores(environment.work / "runs" / "keyword") / "scorecard.json").read_text())
    assert card["model"]["name"] == "keyword"
    assert card["dataset"]["score_hash"] == open_release(environment.work / "helmbench").manifest.score_hash
    assert (scores(environment.work / "runs" / "keyword") / "report.html").is_file()


def test_registration_survives_the_checkout(environment: Environment, tmp_path: Path) -> None:
    """What was registered from a checkout loads, from the installed package, when nothing is left at that path."""
    environment.said("helmbench", "tasks", "--remove")
    clone = tmp_path / "clone"
    for package in PACKAGES:
        shutil.copytree(ROOT / package, clone / package, ignore=shutil.ignore_patterns("__pycache__"))
    environment.said("python", "-m", "helmbench.cli", "tasks", "--register", before=clone)
    shutil.rmtree(clone)
    code = (
        "import json, sys; from lm_eval.tasks import TaskManager\n"
        "tasks = TaskManager().load(['helmbench_lite'])['tasks'].values()\n"
        "print(json.dumps([[len(t.test_docs()), sys.modules[type(t).__module__].__file__] for t in tasks]))"
    )
    loaded = json.loads(environment.said("python", "-c", code).splitlines()[-1])
    assert len(loaded) == 5
    assert all(samples > 0 and Path(file).is_relative_to(environment.site) for samples, file in loaded)
