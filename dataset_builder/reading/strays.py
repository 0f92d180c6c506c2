"""Which files in a content folder are read. Any other file is an error, and so is a link out of the folder.

Otherwise a scenario saved as `.txt`, or a copy kept as `.md.bak`, would be silently ignored. Editor and system files
(`.DS_Store`, `._NAME`, `.NAME.swp`, `Thumbs.db`, `desktop.ini`) are skipped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from dataset_builder.reading.markdown import Errors

SYSTEM = frozenset({"Thumbs.db", "desktop.ini"})
TEXTS, ROWS = "*.md", "*.jsonl"
# Folder → patterns of files that commands or people read.
READ: dict[str, tuple[str, ...]] = {
    "": (
        *("README.md", "TEMPLATE.md", "voices.md", "helplines.csv", "benchmark.yaml", "scoring.yaml"),
        *("baselines.yaml", "allowed_amounts.yaml", "refused_terms.yaml"),
    ),
    **dict.fromkeys(("scenarios", "conversations", "conditions", "personas", "criteria"), (TEXTS,)),
    **dict.fromkeys(("prompts", "protocols", "taxonomy", "parts", "talk_criteria"), (TEXTS,)),
    **dict.fromkeys(("calibration", "calibration/readings"), (ROWS,)),
    **dict.fromkeys(("rating_calibration", "rating_calibration/readings"), (ROWS,)),
    "readings": ("README.md", "first.jsonl", "whole.jsonl"),
}


def unasked(path: Path) -> bool:
    """Whether a file belongs to the system or an editor."""
    return path.name.startswith(".") or path.name in SYSTEM


def authored(folder: Path, pattern: str) -> list[Path]:
    """The files in a folder that are read, sorted."""
    return sorted(path for path in folder.glob(pattern) if not unasked(path))


def strays(root: Path, errors: Errors, *folders: str) -> None:
    """Adds an error for each file under `root`, or under the given `folders`, that nothing reads."""
    for path in [path for folder in folders or ("",) for path in _entries(root, folder) if not path.is_dir()]:
        folder, _, name = path.relative_to(root).as_posix().rpartition("/")
        names = READ.get(folder)
        if names is None:
            where = ", ".join(f"{known}/" for known in READ if known)
            errors.add(path, 1, f"isn't read; expected it in one of {where} or outside the content")
        elif not any(fnmatchcase(name, known) for known in names):
            only = ", ".join(names).replace("*", "NAME")
            home = f"{folder}/" if folder else "the content folder itself"
            errors.add(path, 1, f"isn't read; in {home} only {only} is: rename it, or keep it outside the content")


def links(root: Path, errors: Errors) -> None:
    """Adds an error for each link under `root` that leads out of it, or nowhere."""
    home = os.path.realpath(root)
    for path in _entries(root):
        if not path.is_symlink():
            continue
        if not path.exists():
            errors.add(path, 1, "is a link to nothing; expected the file itself")
        elif not Path(os.path.realpath(path)).is_relative_to(home):
            errors.add(path, 1, "is a link out of the content folder; expected the file itself")


def _entries(root: Path, folder: str = "") -> Iterator[Path]:
    """Every entry under a folder that a person created, sorted."""
    for path in sorted((root / folder).rglob("*")):
        inside = path.relative_to(root).parts
        if not unasked(path) and not any(part.startswith((".", "__")) for part in inside):
            yield path
