"""The error that every format reader raises."""

from __future__ import annotations

from pathlib import Path

from helmbench_common.errors import HelmbenchError
from helmbench_common.formats.inert import inert


class FormatError(HelmbenchError, ValueError):
    """`path:line: what is wrong; what was expected`. `line` is None if no line can be named."""

    def __init__(self, path: Path | str, line: int | None, message: str) -> None:
        super().__init__(f"{shown(path)}:{line}: {message}" if line is not None else f"{shown(path)}: {message}")
        self.path, self.line, self.message = path, line, message


def shown(name: Path | str) -> str:
    """A name on one line, without control characters."""
    return inert(str(name)).replace("\n", "[U+000A]").replace("\t", "[U+0009]")
