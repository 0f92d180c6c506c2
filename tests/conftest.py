"""Fixtures for all tests: a dataset built once from the real content, and separate caches for each test."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from support import contents
from support.browser import CHROMIUM, DRIVER, Browser, driven
from support.judge_server import JudgeServer, Script, Serve, stopped_at_the_end
from support.submission_runs import build, judged_by_model

from dataset_builder.prompts import CONTENT
from dataset_builder.reading.content_types import Content
from dataset_builder.release import Release, open_release
from helmbench_common.http import retry

ROOT = Path(__file__).resolve().parents[1]


def pytest_xdist_auto_num_workers() -> int:
    """Half as many again as there are cores: many tests wait for a server, a browser or a child process."""
    return len(os.sched_getaffinity(0)) * 3 // 2


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="run the tests marked `soak`, and only those, at full size")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With --soak, keeps only marked tests; without it, deselects those without a short form."""

    def wanted(item: pytest.Item) -> bool:
        marker = item.get_closest_marker("soak")
        return marker is not None if config.getoption("soak") else marker is None or bool(marker.kwargs["short"])

    config.hook.pytest_deselected(items=[i for i in items if not wanted(i)])
    items[:] = [i for i in items if wanted(i)]


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> int:
    """How much a test marked `soak(short=…, full=…)` does: `full` with --soak, otherwise `short`."""
    marker = request.node.get_closest_marker("soak")
    return int(marker.kwargs["full" if request.config.getoption("soak") else "short"])


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the built real content; tests must not change it."""
    shared = (
        tmp_path_factory.getbasetemp().parent
        if os.environ.get("PYTEST_XDIST_WORKER")
        else tmp_path_factory.getbasetemp()
    )
    out = shared / "dataset" / "helmbench"
    with FileLock(shared / "dataset.lock"):  # one build for all workers
        if not out.exists():
            build(CONTENT, out)
    return out


@pytest.fixture(scope="session", autouse=True)
def _lm_eval_alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Child processes get lm-eval without its 13,000 task files, which take seven seconds to read at every start.

    The code is a copy of the installed lm-eval. A registered `helmbench` folder stays. A test that needs all of
    lm-eval's tasks starts a child without PYTHONPATH.
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


@pytest.fixture(scope="session")
def release(dataset: Path) -> Release:
    """The built dataset, opened once; tests must not change it."""
    return open_release(dataset)


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Starts loopback judges that end with the test; the client's waits between tries are cut to nothing."""
    monkeypatch.setattr(retry, "BACKOFF", 0.001)
    with stopped_at_the_end() as started:

        def start(script: Script, together: int = 1) -> JudgeServer:
            started.append(JudgeServer(script, together))
            return started[-1]

        yield start


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One headless Chromium for the tests of a module."""
    if not (CHROMIUM and DRIVER):
        pytest.skip("no Chromium with chromedriver on this machine (Debian: chromium, chromium-driver)")
    with driven(tmp_path_factory.mktemp("profile")) as one:
        yield one


@pytest.fixture(scope="session")
def shipped() -> Content:
    """The content of this repository, read once; tests must not change it."""
    return contents.read()


@pytest.fixture(scope="session")
def small_content(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven scenarios of the real content with only what they use; tests must not change it."""
    return contents.small(tmp_path_factory.mktemp("small") / "content")


@pytest.fixture(scope="session")
def small(small_content: Path, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """A release of the small content, which a submission of it is verified against in a fifth of a second."""
    return build(small_content, tmp_path_factory.mktemp("built") / "helmbench")


@pytest.fixture(scope="session")
def judged(small: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A submission of the small content, judged by a language model; tests must not change it."""
    return judged_by_model(tmp_path_factory.mktemp("judged"), small)


@pytest.fixture
def content_copy(small_content: Path, tmp_path: Path) -> Path:
    """A copy of the small content that a test may edit."""
    return Path(shutil.copytree(small_content, tmp_path / "content"))


@pytest.fixture(autouse=True)
def _own_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps each test from reading another's caches, the home directory's, or a dataset that the shell names."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "hf" / "datasets"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("HELMBENCH_DATASET", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
