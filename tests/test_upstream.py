"""What lm-eval's contribution guide and its CI ask of a task folder, as far as it can be asked here.

The tests on task objects follow its own test of tasks, which it runs on every task that a pull request touches.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest
import yaml
from lm_eval.tasks import TaskManager

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "lm_eval_tasks" / "helmbench"
README = (FOLDER / "README.md").read_text(encoding="utf-8")
TEXTS = sorted(p for p in FOLDER.iterdir() if p.is_file())
LIMIT = 4
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def declared(key: str) -> set[str]:
    """The names of all tasks or groups that the folder's YAML files declare."""
    found = [re.search(rf"^{key}: (\S+)$", p.read_text(encoding="utf-8"), re.MULTILINE) for p in FOLDER.glob("*.yaml")]
    return {m[1] for m in found if m}


def test_readme_has_what_the_guide_asks_for() -> None:
    """The headings of lm-eval's template; every group and task where the guide wants it and no other; the version in
    the changelog.
    """
    wanted = {"Paper", "Citation", "Groups, Tags, and Tasks", "Groups", "Tags", "Tasks", "Checklist", "Changelog"}
    assert wanted - set(re.findall(r"^###+ (.*)$", README, re.MULTILINE)) == set()
    groups, _, tasks = README[README.index("#### Groups") : README.index("#### Metrics")].partition("#### Tasks")
    assert set(re.findall(r"`(helmbench\w*)`", groups)) == declared("group")
    assert set(re.findall(r"`(helmbench\w*)`", tasks)) == declared("task")
    version = re.search(r"version: (\S+)", (FOLDER / "_helmbench_yaml").read_text(encoding="utf-8"))
    assert version
    assert f"version {version[1]}:" in README[README.index("### Changelog") :]
    assert {
        yaml.safe_load(p.read_text(encoding="utf-8")).get("metadata", {}).get("version", float(version[1]))
        for p in FOLDER.glob("*.yaml")
    } == {float(version[1])}


def test_files_pass_the_text_hooks() -> None:
    """As its pre-commit hooks: UTF-8, LF, one newline at the end, no blanks at line ends, no private key, < 500 kB."""
    for path in TEXTS:
        text = path.read_bytes().decode("utf-8")
        assert len(text) < 500_000, path
        assert text.endswith("\n"), path
        assert not text.endswith("\n\n"), path
        assert not text.startswith("\ufeff"), path
        assert [line for line in text.split("\n") if line != line.rstrip()] == [], path
        assert "PRIVATE KEY" not in text, path


@pytest.mark.soak(short=0, full=1)
def test_lm_eval_validates_every_name(tmp_path: Path) -> None:
    """`lm_eval validate`, which its guide names, knows all groups and tasks."""
    names = ",".join(sorted(declared("group") | declared("task")))
    command = [sys.executable, "-m", "lm_eval", "validate", "--tasks", names]
    command += ["--include_path", str(ROOT / "lm_eval_tasks")]
    # Among all of lm-eval's own tasks, with which a name of ours could clash.
    whole = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=whole, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert "not found" not in (done.stdout + done.stderr).lower()


def test_task_objects_do_what_its_ci_asks(dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading again, splits, texts without blanks at the end, requests: the calls of its own test of tasks, in its
    order.
    """
    monkeypatch.setenv("HELMBENCH_DATASET", str(dataset))
    manager = TaskManager(include_path=str(ROOT / "lm_eval_tasks"), include_defaults=False)
    loaded = manager.load(sorted(n for n in declared("task") if n.endswith("_lite")))["tasks"]
    assert loaded
    for name, task in loaded.items():
        task.download()
        assert task.dataset is not None
        assert (task.has_training_docs(), task.has_validation_docs(), task.has_test_docs()) == (False, False, True)
        assert task.config.test_split == "test"
        assert not task.should_decontaminate()
        docs = list(islice(task.test_docs(), LIMIT))
        texts = [task.doc_to_text(doc) for doc in docs]
        assert all(isinstance(text, str) and text and not text[-1].isspace() for text in texts), name
        assert all(isinstance(task.doc_to_target(doc), str) for doc in docs), name
        task.build_all_requests(rank=1, limit=LIMIT, world_size=1)
        assert task.instances, name
        assert all(task.construct_requests(doc=doc, ctx=task.doc_to_text(doc)) for doc in docs), name
