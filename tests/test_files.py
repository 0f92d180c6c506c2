"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from helmbench_common.files import write_whole


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


def test_a_link_under_the_name_of_a_half_written_file_is_not_followed(tmp_path: Path) -> None:
    """Whoever sent a folder can't know the process's number, but may lay a link for each."""
    (tmp_path / "mine").write_text("whole")
    (tmp_path / f".labels.json-{os.getpid()}").symlink_to(tmp_path / "mine")
    write_whole(tmp_path / "labels.json", "{}")
    assert ((tmp_path / "mine").read_text(), (tmp_path / "labels.json").read_text()) == ("whole", "{}")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["labels.json", "mine"]
