"""Text tables for the terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NUMBER = re.compile(r"(?:[-+−<]?[\d.,]+(?: ?%)?|–)(?: \([^()]*\))?")


def columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Aligned text, one row per line, columns two spaces apart.

    A column is right-aligned if all its cells are numbers, such as `1,024`, `−0.5`, `12 %`, `12 (3–40)`, `–` or empty.
    """
    lines = [[" ".join(cell.split()) for cell in row] for row in (header, *rows)]
    padded = []
    for head, *cells in zip(*lines, strict=True):
        width = max(map(len, (head, *cells)))
        right = any(cells) and all(not cell or _NUMBER.fullmatch(cell) for cell in cells)
        padded.append([cell.rjust(width) if right else cell.ljust(width) for cell in (head, *cells)])
    return "\n".join("  ".join(row).rstrip() for row in zip(*padded, strict=True))
