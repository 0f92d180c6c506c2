"""What every test stands on: a dataset built once from the real content, and caches that belong to one test."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from contents import small

from dataset_builder.composing.compose import compose
from dataset_builder.prompts import CONTENT
from dataset_builder.reading.load import load
from dataset_builder.release import Release, open_release
from dataset_builder.writing.write import write

ROOT = Path(__file__).resolve().parents[1]
# Files that take longest begin first, so that no core is left with one of them at the end (`--durations` says which).
LONGEST = (
    *("end_to_end", "survival", "board", "planted", "submission", "measure", "benchmarks", "kill", "resume"),
    "wheel",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order is a matter of time only: files stay whole, and no test knows which came before it."""
    ranks = {f"test_{name}.py": n for n, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path.name, len(ranks)))


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the real content built into it; read-only by agreement."""
    content, errors = load(CONTENT)
    assert content, errors.lines()
    out = tmp_path_factory.mktemp("dataset") / "helmbench"
    write(content, compose(content), out)
    return out


@pytest.fixture(scope="session", autouse=True)
def _lm_eval_alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Child processes get lm-eval without its own 13,000 task files, which it reads at every start for seven seconds.

    The code is the installed one, copied. A registered `helmbench` folder stays. Who needs lm-eval with all its tasks
    starts a child without PYTHONPATH.
    """
    spec = importlib.util.find_spec("lm_eval")
    assert spec
    assert spec.origin
    installed, site = Path(spec.origin).parent, tmp_path_factory.mktemp("site")

    def others(folder: str, names: list[str]) -> list[str]:
        tasks = installed / "tasks"
        return [n for n in names if n != "helmbench" and (tasks / n).is_dir()] if Path(folder) == tasks else []

    shutil.copytree(installed, site / "lm_eval", ignore=others, symlinks=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
        yield


@pytest.fixture
def release(dataset: Path) -> Release:
    """The built dataset, verified."""
    return open_release(dataset)


@pytest.fixture(scope="session")
def small_content(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven scenarios of the real content with all that they use and nothing else; read-only by agreement."""
    return small(tmp_path_factory.mktemp("small") / "content")


@pytest.fixture
def content_copy(small_content: Path, tmp_path: Path) -> Path:
    """A copy of the small content that a test may edit."""
    return Path(shutil.copytree(small_content, tmp_path / "content"))


@pytest.fixture(autouse=True)
def _own_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads another's caches, the home directory's, or a dataset that the shell points to."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "hf" / "datasets"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("HELMBENCH_DATASET", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
