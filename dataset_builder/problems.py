"""What is wrong with something that somebody wrote, all of it at once: the exception that every refusal is a kind of."""

from __future__ import annotations


class Problems(Exception):
    """All that its author can mend, one line for each, with file and line where there are any; nothing was written."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines
