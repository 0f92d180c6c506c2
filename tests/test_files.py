"""Files that are there whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dataset_builder.files import write_whole


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
