"""What every reader says of a file that it can't read: the file, the line, what is wrong and what was expected."""

from __future__ import annotations

from pathlib import Path


class FormatError(ValueError):
    """`path:line: what is wrong; what was expected`. `line` is None where no line can be named, as in a folder."""

    def __init__(self, path: Path | str, line: int | None, message: str) -> None:
        where = f"{shown(path)}:{line}" if line is not None else shown(path)
        super().__init__(f"{where}: {message}")
        self.path, self.line, self.message = path, line, message


def shown(name: Path | str) -> str:
    """A name as a terminal may show it: what would move its cursor, colour it, break the line or turn its direction is
    written as an escape, and so is what can't be encoded.
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in str(name))


def printable(text: str) -> str:
    """A text of several lines as a terminal may show it: each line is `shown`."""
    return "\n".join(map(shown, text.split("\n")))
