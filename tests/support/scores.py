"""Where the scores of a run stand."""

from __future__ import annotations

from pathlib import Path


def scores(home: Path) -> Path:
    """Their folder, in the home of a run that one judge has scored."""
    (found,) = (home / "scores").iterdir()
    return found
