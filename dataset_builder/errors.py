"""The exception that every refusal of something that somebody wrote is a kind of: all that is wrong, at once."""

from __future__ import annotations


class RefusedError(Exception):
    """All that its author can mend, one line for each, with file and line where there are any; nothing was written."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines
