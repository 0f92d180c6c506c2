"""Registering with the installed lm-eval, and taking it back, on a package folder of the test's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TASKS = ROOT / "lm_eval_tasks" / "helmbench"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with a package named lm_eval, which a child process finds before the installed one."""
    (tmp_path / "lm_eval" / "tasks").mkdir(parents=True)
    (tmp_path / "lm_eval" / "__init__.py").write_text("")
    return tmp_path


def register(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "register_task.py"), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(site)}, cwd=site, timeout=60
    )


def test_every_yaml_is_linked(site: Path) -> None:
    """After registering, lm-eval's folder holds a link to each of our YAML files."""
    assert register(site).returncode == 0
    linked = {p.name: p.resolve() for p in (site / "lm_eval" / "tasks" / "helmbench").iterdir()}
    assert linked == {p.name: p for p in TASKS.glob("*.yaml")}


def test_twice_is_the_same_as_once(site: Path) -> None:
    """Registering again replaces the links and fails on nothing."""
    register(site)
    assert register(site).returncode == 0
    assert len(list((site / "lm_eval" / "tasks" / "helmbench").iterdir())) == len(list(TASKS.glob("*.yaml")))


def test_remove_leaves_nothing_behind(site: Path) -> None:
    """--remove undoes it wholly, and is fine where nothing was registered."""
    register(site)
    assert register(site, "--remove").returncode == 0
    assert not (site / "lm_eval" / "tasks" / "helmbench").exists()
    assert register(site, "--remove").returncode == 0


def test_foreign_files_are_left_alone(site: Path) -> None:
    """A helmbench folder that isn't made of our links is not touched."""
    foreign = site / "lm_eval" / "tasks" / "helmbench"
    foreign.mkdir()
    (foreign / "theirs.yaml").write_text("task: theirs\n")
    done = register(site)
    assert done.returncode == 1
    assert "nothing was changed" in done.stderr
    assert [p.name for p in foreign.iterdir()] == ["theirs.yaml"]
