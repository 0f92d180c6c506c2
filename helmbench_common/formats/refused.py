"""What every reader says of a file that it can't read: the file, the line, what is wrong and what was expected."""

from __future__ import annotations

from pathlib import Path

from helmbench_common.errors import HelmbenchError
from helmbench_common.formats.inert import inert


class FormatError(HelmbenchError, ValueError):
    """`path:line: what is wrong; what was expected`. `line` is None where no line can be named, as in a folder."""

    def __init__(self, path: Path | str, line: int | None, message: str) -> None:
        where = f"{shown(path)}:{line}" if line is not None else shown(path)
        super().__init__(f"{where}: {message}")
        self.path, self.line, self.message = path, line, message


def shown(name: Path | str) -> str:
    """A name as a message may hold it: on one line, and with nothing that a terminal would obey."""
    return inert(str(name)).replace("\n", "[U+000A]").replace("\t", "[U+0009]")
