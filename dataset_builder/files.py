"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, text: str, private: bool = False) -> None:
    """Writes beside `path` and moves the finished file into place, so that an earlier one is never left half replaced.

    `private`: nobody but its owner may read it, from the first byte on.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = path.with_name(f".{path.name}-{os.getpid()}")
    if private:
        staged.unlink(missing_ok=True)  # one that a killed process of this number left would keep its own mode
        staged.touch(mode=0o600)
    staged.write_text(text, encoding="utf-8")
    staged.replace(path)
