"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helmbench.cli.common import reason

from helmbench_common.files import replacing, write_whole


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    """A folder stands in its place, or the text breaks off: what was there is whole, and no piece lies beside it."""
    (tmp_path / "labels.json").mkdir()
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path / "labels.json", "{}")

    def broken() -> Iterator[str]:
        yield "half"
        raise ValueError("no more")

    (tmp_path / "page.html").write_text("whole")
    with pytest.raises(ValueError, match="no more"):
        write_whole(tmp_path / "page.html", broken())
    assert (tmp_path / "page.html").read_text() == "whole"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["labels.json", "page.html"]


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder in which no file may have more than 4 KB."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    yield tmp_path
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_disk_names_the_file(full_disk: Path) -> None:
    """The file or folder as it is called when whole, in a text or a table; nothing is left."""
    with pytest.raises(OSError, match="File too large") as text:
        write_whole(full_disk / "page.html", "x" * 5_000)
    with pytest.raises(OSError, match="File too large") as table, replacing(full_disk / "ds") as folder:
        pq.write_table(pa.table({"n": np.random.default_rng(1).integers(2**60, size=5_000)}), folder / "rows.parquet")
    assert [reason(e.value) for e in (text, table)] == [
        f"{full_disk}/page.html: File too large",
        f"{full_disk}/ds: Error writing bytes to file. Detail: [errno 27] File too large",
    ]
    assert not [*full_disk.iterdir()]


def test_a_link_under_the_name_of_a_half_written_file_is_not_followed(tmp_path: Path) -> None:
    """Whoever sent a folder can't know the process's number, but may lay a link for each."""
    (tmp_path / "mine").write_text("whole")
    (tmp_path / f".labels.json-{os.getpid()}").symlink_to(tmp_path / "mine")
    write_whole(tmp_path / "labels.json", "{}")
    assert ((tmp_path / "mine").read_text(), (tmp_path / "labels.json").read_text()) == ("whole", "{}")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["labels.json", "mine"]


FILLING = """
import sys
from pathlib import Path
from helmbench_common.files import replacing
with replacing(Path(sys.argv[1])) as folder:
    (folder / "half").touch()
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_the_next_build_removes_what_killed_builds_left_and_nothing_else(tmp_path: Path) -> None:
    """A running build of the same folder keeps its files, and so do other folders with such names."""
    out, others = tmp_path / "ds", [".ds-settings", ".ds-2-abcdefgh.partial", ".other-abcdefgh.partial"]
    for name in others:
        (tmp_path / name).mkdir()
    (tmp_path / ".ds-abcdefgh.partial").symlink_to(tmp_path / ".ds-settings")

    def filling() -> tuple[subprocess.Popen[str], Path]:
        words = [sys.executable, "-c", FILLING, str(out)]
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout
        return process, Path(process.stdout.readline().strip())

    (killed, left), (running, kept) = filling(), filling()
    killed.kill()
    killed.communicate()
    assert (left / "half").exists()
    with replacing(out) as folder:
        (folder / "whole").touch()
        assert (left.exists(), (kept / "half").exists()) == (False, True)
    assert [p.name for p in out.iterdir()] == ["whole"]
    running.communicate("")
    assert [p.name for p in out.iterdir()] == ["half"], "the last to end is the one that stays"
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([".ds-abcdefgh.partial", *others, "ds"])
