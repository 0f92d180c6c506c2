"""The GitHub action (action.yml): its steps, run as GitHub would, end as docs/comparing.md says."""

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

import pytest
import reference_server
import yaml
from helmbench.cli import app as commands
from helmbench.cli.common import app
from lm_eval._cli.harness import HarnessCLI
from typer.core import TyperGroup
from typer.main import get_command

from judge.scoring.gates import gates_of
from lm_eval_tasks.helmbench.lifecycle import SETTINGS as RUN_SETTINGS

ROOT = Path(__file__).resolve().parents[1]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
INPUTS: dict[str, dict[str, Any]] = ACTION["inputs"]
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
RUN: dict[str, dict[str, Any]] = {step["name"]: step for step in STEPS if "run" in step}
MODEL, OFFLINE, JUDGED, GATE = [*RUN][1:]
ONLY_PARTS = f'command lm_eval "$@" --limit 400 --include_path {ROOT / "lm_eval_tasks"}'
ONLY_WORDS = "mkdir -p helmbench-results/run/m; printf '%s\\n' \"$@\" > words"


def test_inputs_and_secrets_reach_scripts_as_environment_variables_alone() -> None:
    """No expression in a script, where a value from outside would be code. Keys go to one step each; every input is
    described and used; all actions are GitHub's own.
    """
    assert all(re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"]) for step in STEPS if "uses" in step)
    assert not [name for name, step in RUN.items() if "${{" in step["run"]]
    assert {n: v for n, s in RUN.items() if (v := s["env"].get("OPENAI_API_KEY"))} == {
        MODEL: "${{ inputs.api-key }}",
        JUDGED: "${{ inputs.judge-key }}",
    }
    assert set(re.findall(r"inputs\.([\w-]+)", str(STEPS))) == {*INPUTS}
    assert all(i["description"] and ("default" in i) != i.get("required", False) for i in INPUTS.values())
    assert gates_of([INPUTS["fail-on"]["default"]]) == ("regression", "floor")


def test_the_workflow_on_the_page_is_one() -> None:
    """docs/comparing.md passes the action inputs that it has, and every one that it requires."""
    page = (ROOT / "docs" / "comparing.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (job,) = yaml.safe_load(text)["jobs"].values()
    given = job["steps"][-1]["with"]
    assert {n for n, i in INPUTS.items() if i.get("required")} <= {*given} <= {*INPUTS}


def test_the_judge_is_asked_by_commands_that_exist() -> None:
    """By the real parser: options and arguments."""
    assert commands.main is not None  # importing it is what hangs every command from the root
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    for line in RUN[JUDGED]["run"].splitlines():
        _, name, *words = shlex.split(line)
        with group.commands[name].make_context(name, words) as context:
            assert "$JUDGE" in str(context.params["judge" if name == "score" else "model"])


class Runner:
    """A checkout of a team's repository, in which steps are run one by one as GitHub does."""

    def __init__(self, home: Path, dataset: Path, **given: str) -> None:
        self.home, self.dataset = home, dataset
        self.inputs = {name: str(i.get("default", "")) for name, i in INPUTS.items()} | given

    def step(self, name: str, lm_eval: str = ONLY_PARTS) -> int:
        """Runs it with what those before it left. `lm_eval`: what that name runs, because the whole task takes long."""
        step = RUN[name]
        values = {f"inputs.{n}": value for n, value in self.inputs.items()}
        if (left := self.home / "GITHUB_OUTPUT").exists():
            values["steps.model.outputs.run"] = left.read_text(encoding="utf-8").splitlines()[-1].removeprefix("run=")
        env = {n: re.sub(r"\$\{\{ (\S+) \}\}", lambda m: values[m[1]], v) for n, v in step["env"].items()}
        files = {name: str(self.home / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        own = {"PATH": path, "HELMBENCH_DATASET": str(self.dataset), "HF_HUB_OFFLINE": "1"}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", f"lm_eval() {{ {lm_eval}; }}\n{step['run']}"],
            cwd=self.home,
            env=os.environ | env | files | own,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode in (0, 1), done.stderr[-3000:]
        return done.returncode

    def measured(self, model: str, prompt: str) -> int:
        """Runs and scores one model under a prompt, and tests the gates."""
        shutil.rmtree(self.home / "helmbench-results", ignore_errors=True)
        (self.home / "system.txt").write_text(prompt, encoding="utf-8")
        self.inputs["model"] = model
        assert self.step(MODEL) == 0
        assert self.step(OFFLINE) == 0
        return self.step(GATE)

    def outcomes(self) -> dict[tuple[str, str], bool]:
        """What junit.xml says, by run and gate: whether it passed."""
        found = ElementTree.parse(self.home / "helmbench-results" / "junit.xml").iter("testcase")
        return {(c.attrib["classname"], c.attrib["name"].partition(":")[0]): len(c) == 0 for c in found}


def test_the_steps_run_from_the_first_baseline_to_a_failed_gate(dataset: Path, tmp_path: Path) -> None:
    """A first run without a baseline; its folder becomes it; a change that misses every danger fails."""
    with reference_server.start() as server:
        runner = Runner(tmp_path, dataset, **{"base-url": server.url, "prompt": "system.txt"})
        runner.measured("always-escalate", "You answer for a bakery.")
        assert {*runner.outcomes()} == {("this run", "answered"), ("this run", "floor")}
        shutil.copytree(tmp_path / "helmbench-results" / "run" / "always-escalate", tmp_path / "baseline")
        runner.inputs["baseline"] = "baseline"
        assert runner.measured("always-kind", "You answer for a bakery. Keep it warm.") == 1
    found = runner.outcomes()
    assert (found["this run", "regression"], found["baseline", "answered"]) == (False, True)
    page = (tmp_path / "helmbench-results" / "comparison.html").read_text(encoding="utf-8")
    assert all(text in page for text in ("baseline", "this run", "You answer for a bakery.", "Keep it warm."))
    assert "| figure" in (tmp_path / "GITHUB_STEP_SUMMARY").read_text(encoding="utf-8")


@pytest.mark.parametrize("prompt", ["", "system.txt"])
def test_without_an_address_transformers_loads_the_model(prompt: str, dataset: Path, tmp_path: Path) -> None:
    """The command that lm_eval's own parser reads; transformers isn't installed here."""
    runner = Runner(tmp_path, dataset, model="org/name", prompt=prompt, **{"model-args": "dtype=bfloat16"})
    assert runner.step(MODEL, ONLY_WORDS) == 0
    words = (tmp_path / "words").read_text(encoding="utf-8").splitlines()
    asked = HarnessCLI()._parser.parse_args(["run", *words])
    assert (asked.model, asked.model_args) == ("hf", {"pretrained": "org/name", "dtype": "bfloat16"})
    assert (asked.tasks, asked.log_samples, asked.apply_chat_template) == (["helmbench_detect"], True, True)
    assert asked.metadata == ({"helmbench_condition": "system.txt"} if prompt else None)
    assert {*(asked.metadata or {})} <= {*RUN_SETTINGS}
