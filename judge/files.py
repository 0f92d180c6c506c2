"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Writes beside `path` and moves the finished file into place, so that an earlier one is never left half replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = path.with_name(f".{path.name}-{os.getpid()}")
    staged.write_text(text, encoding="utf-8")
    staged.replace(path)
