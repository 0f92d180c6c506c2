"""The workflow file that teams copy (docs/helmbench-ci.yml): it parses, its commands are ones, and its steps, run as
GitHub would, end as docs/comparing.md says.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import reference_server
import yaml
from helmbench.cli import app as commands
from helmbench.cli.common import app
from lm_eval._cli.harness import HarnessCLI
from typer.core import TyperGroup
from typer.main import get_command

from lm_eval_tasks.helmbench.lifecycle import SETTINGS as RUN_SETTINGS

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "docs" / "helmbench-ci.yml"
PAGE = (ROOT / "docs" / "comparing.md").read_text(encoding="utf-8")
WORKFLOW: dict[Any, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = WORKFLOW["jobs"]["helmbench"]["steps"]
RUN = {step["name"]: str(step["run"]) for step in STEPS if "run" in step}
ENVIRONMENT = {name: str(value) for name, value in WORKFLOW["env"].items()}
SETTINGS = {"MODEL": "m", "BASE_URL": "http://127.0.0.1:1/v1", "JUDGE": "j", "JUDGE_URL": "http://127.0.0.1:1/v1"}


def called(program: str) -> list[list[str]]:
    """Every call of a program in the steps, as its arguments, with the variables put in."""
    lines = [line for text in RUN.values() for line in text.replace("\\\n", " ").splitlines()]
    known = ENVIRONMENT | SETTINGS | {"RUN": "runs/now/m"}
    filled = [re.sub(r"\$([A-Z_]+)", lambda m: known.get(m[1], m[0]), line) for line in lines]
    words = [shlex.split(line.split(" | ")[0]) for line in filled]
    return [w[1:] for w in words if w and w[0] == program]


def test_every_command_is_read_by_the_real_parser() -> None:
    """Options, values and arguments; files need not be there."""
    assert commands.main is not None  # importing it is what hangs every command from the root
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    names = []
    for name, *words in called("helmbench"):
        with group.commands[name].make_context(name, words) as context:
            names.append(context.info_name)
    assert names == ["build", "tasks", "score", "judge", "score", "compare", "compare"]
    (words,) = called("lm_eval")
    asked = HarnessCLI()._parser.parse_args(["run", *words])
    assert (asked.tasks, asked.log_samples, asked.output_path) == (["helmbench_lite"], True, "runs/now")
    assert asked.metadata == {"helmbench_condition": "prompts/system.txt"}
    assert {*asked.metadata} <= {*RUN_SETTINGS}


def test_secrets_reach_a_program_by_its_environment_alone() -> None:
    """No expression in a script, where a name from outside would be code. Keys go to one step each; all actions are
    GitHub's own.
    """
    assert all(re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"]) for step in STEPS if "uses" in step)
    assert not [name for name, text in RUN.items() if "${{" in text]
    holding = {step["name"]: step["env"] for step in STEPS if "secrets." in str(step)}
    assert [*holding] == ["Ask the model, under the prompt", "Score, by a model"]
    assert all([*env] == ["OPENAI_API_KEY"] for env in holding.values())
    assert "secrets." not in str(WORKFLOW["env"])
    text = FILE.read_text(encoding="utf-8")
    head = text[: text.index("name: HELMbench")]
    assert set(re.findall(r"HELMBENCH_\w+", head)) == set(re.findall(r"(?:vars|secrets)\.(\w+)", text))
    assert all(text in PAGE for text in (FILE.name, ENVIRONMENT["BASELINE"]))


class Runner:
    """A checkout of a team's repository, in which steps are run one by one as GitHub does."""

    def __init__(self, home: Path, dataset: Path, url: str) -> None:
        self.home = home
        own = {"HELMBENCH_DATASET": str(dataset), "BASE_URL": url, "HF_HUB_OFFLINE": "1"}
        self.variables = ENVIRONMENT | own
        (home / "prompts").mkdir()

    def step(self, name: str) -> int:
        """Runs it with what those before it left; only a part of the samples is asked for, and nothing installed."""
        part = f'lm_eval() {{ command lm_eval "$@" --limit 20 --include_path {ROOT / "lm_eval_tasks"}; }}\n'
        files = {name: str(self.home / name) for name in ("GITHUB_ENV", "GITHUB_STEP_SUMMARY")}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", part + RUN[name]],
            cwd=self.home,
            env=os.environ | self.variables | files | {"PATH": path},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode in (0, 1), done.stderr[-3000:]
        if (left := self.home / "GITHUB_ENV").exists():
            self.variables |= dict(line.split("=", 1) for line in left.read_text(encoding="utf-8").splitlines())
        return done.returncode

    def measured(self, model: str, prompt: str) -> Path:
        """Asks and scores one model under a prompt; the run's folder."""
        shutil.rmtree(self.home / "runs", ignore_errors=True)
        (self.home / "prompts" / "system.txt").write_text(prompt, encoding="utf-8")
        self.variables["MODEL"] = model
        assert self.step("Ask the model, under the prompt") == 0
        assert self.step("Score, offline") == 0
        return self.home / self.variables["RUN"]

    def outcomes(self) -> dict[tuple[str, str], bool]:
        """What junit.xml says, by run and gate: whether it passed."""
        found = ElementTree.parse(self.home / "junit.xml").iter("testcase")
        return {(c.attrib["classname"], c.attrib["name"].partition(":")[0]): len(c) == 0 for c in found}


def test_the_steps_run_from_the_first_baseline_to_a_shut_gate(dataset: Path, tmp_path: Path) -> None:
    """A first run without a baseline; its folder becomes it; a change that misses every danger is shut out."""
    with reference_server.start() as server:
        runner = Runner(tmp_path, dataset, server.url)
        first = runner.measured("always-escalate", "You answer for a bakery.")
        runner.step("Without a baseline, floors alone")
        assert {*runner.outcomes()} == {("this change", "answered"), ("this change", "floor")}
        shutil.copytree(first, tmp_path / ENVIRONMENT["BASELINE"])
        runner.measured("always-kind", "You answer for a bakery. Keep it warm.")
    assert runner.step("Compare with the baseline") == 1
    found = runner.outcomes()
    assert (found["this change", "regression"], found["baseline", "answered"]) == (False, True)
    page = (tmp_path / "comparison.html").read_text(encoding="utf-8")
    assert all(text in page for text in ("baseline", "this change", "You answer for a bakery.", "Keep it warm."))
    assert "| figure" in (tmp_path / "GITHUB_STEP_SUMMARY").read_text(encoding="utf-8")
