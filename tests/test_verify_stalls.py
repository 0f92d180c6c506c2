"""Submissions made to keep `helmbench verify` busy: whatever they hold, it ends, in little memory, with its exit code
and no traceback.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from support.stalls import STALLS
from support.submission_runs import Opened, as_chatml, build, copied, judged_by_model, judged_offline

from dataset_builder.release import Release

TOGETHER = 6  # that one command reads
LIMIT_S, LIMIT_GB = 240, 3  # of processor time for all of them, far more than they take; of memory, libraries and all


@pytest.fixture(scope="module")
def small(small_content: Path, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """A release of seven scenarios."""
    return build(small_content, tmp_path_factory.mktemp("built") / "helmbench")


@pytest.fixture(scope="module")
def bases(small: Release, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Honest submissions; read-only by agreement."""
    home = tmp_path_factory.mktemp("bases")
    return {
        "judged": judged_by_model(home / "judged", small),
        "offline": judged_offline(home / "offline", small),
        "templated": judged_offline(home / "templated", small, form=as_chatml),
    }


def limited() -> None:
    """In the process that verifies, before it begins."""
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S))
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_GB * 2**30, LIMIT_GB * 2**30))


NAMES = list(STALLS)
ROUNDS = [NAMES[start : start + TOGETHER] for start in range(0, len(NAMES), TOGETHER)]


@pytest.mark.parametrize("names", ROUNDS, ids=lambda names: names[0])
def test_what_is_made_to_stall_is_soon_done_with(
    names: list[str], bases: dict[str, Path], small: Release, tmp_path: Path
) -> None:
    """Refused with a reason where it asks too much, else read to its end; one command reads several."""
    folders: list[Path] = []
    for n, name in enumerate(names):
        opened = Opened(copied(bases[STALLS[name][0]], tmp_path / str(n)), small)
        STALLS[name][1](opened)
        folders.append(opened.folder)
    command = [sys.executable, "-m", "helmbench.cli", "verify", *map(str, folders), "--dataset", str(small.path)]
    done = subprocess.run(
        [*command, "--json-file", str(tmp_path / "found.json")],
        capture_output=True,
        text=True,
        preexec_fn=limited,
        timeout=10 * LIMIT_S,
    )
    assert (done.stderr, done.returncode in (0, 1)) == ("", True)
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    seen = {name: {p["kind"] for p in one["problems"]} for name, one in zip(names, found, strict=True)}
    passed = [name for name in names if STALLS[name][2] and not STALLS[name][2] & seen[name]]
    assert passed == [], seen
