"""What every test stands on: a dataset built once from the real content, and caches that belong to one test."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dataset_builder.compose import compose
from dataset_builder.load import CONTENT, load
from dataset_builder.release import Release, open_release
from dataset_builder.write import write

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the real content built into it; read-only by agreement."""
    content, errors = load(CONTENT)
    assert content, errors.lines()
    out = tmp_path_factory.mktemp("dataset") / "helmbench"
    write(content, compose(content), out)
    return out


@pytest.fixture
def release(dataset: Path) -> Release:
    """The built dataset, verified."""
    return open_release(dataset)


@pytest.fixture
def content_copy(tmp_path: Path) -> Path:
    """A copy of the content that a test may edit."""
    return Path(shutil.copytree(CONTENT, tmp_path / "content"))


@pytest.fixture(autouse=True)
def _own_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads another's caches, the home directory's, or a dataset that the shell points to."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "hf" / "datasets"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("HELMBENCH_DATASET", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
