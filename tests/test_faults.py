"""The rows of the faults that tests/benchmarks/faults.py tells of: each ends in one line, and nothing is lost."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.faults import Client, Watch, disturb, last_line

ENDS = [
    ("judge", "disk full", 3, "No space left on device|File too large"),
    ("judge", "read-only", 3, "Permission denied"),
    ("judge", "two at once", 3, "another `helmbench run` is writing it"),
    ("judge", "Ctrl-C", 130, "stopped; run the same command again"),
    ("judge", "redirects", 3, "sends elsewhere"),
    ("judge", "Retry-After of years", 3, "and asks to wait"),
    ("judge", "key echoed", 3, "HTTP 401"),
    ("runner", "two at once", 1, "another run is writing the cache"),
    ("runner", "Ctrl-C", 130, "helmbench: stopped; run the same command again"),
    ("runner", "key echoed", 1, "answers no request: HTTP 401"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that may have become a small disk."""
    (where := tmp_path / "run").mkdir()
    yield where
    if where.is_mount():
        subprocess.run(["umount", str(where)], check=True)


@pytest.mark.parametrize(("client", "row", "code", "line"), ENDS, ids=[f"{c}, {r}" for c, r, *_ in ENDS])
def test_a_fault_ends_in_one_line_and_loses_nothing(
    dataset: Path, folder: Path, client: str, row: str, code: int, line: str
) -> None:
    """Its exit code is a documented one; the same command then gets what is missing, asks for nothing that is on the
    disk, and no file, message or command line holds the key.
    """
    watch = Watch()
    at, found = disturb(row, Client(client, folder, dataset, 60 if client == "judge" else 12))
    assert at.code == code
    assert any(said in last_line(at.printed, 500) for said in line.split("|"))
    assert (found.lost, found.twice, watch.keys(folder)) == (0, 0, 0)
    assert "TRACEBACK" not in found.note
