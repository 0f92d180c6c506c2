"""Text tables for terminals and Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence

from helmbench_common.formats.inert import clip, inert

_VALUE = r"[-+−<>]?[\d.,]+(?: ?%)?"
_NUMBER = re.compile(rf"(?:{_VALUE}(?: (?:to|of) {_VALUE})?|–)(?: [(\[][^()\[\]]*[)\]])?")
# Characters that would end a Markdown cell, start an element or turn brackets into a link, with any preceding
# backslashes. The look-behind makes the match start at the first backslash of a run, so the time stays linear.
_MARKUP = re.compile(r"(?<!\\)(\\*+)(\||<(?=[A-Za-z/!?])|\](?=[(:]))")


def columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Aligned text, one row per line, columns two spaces apart.

    A column is right-aligned if all its cells are numbers, such as `1,024`, `−0.5`, `12 %`, `4.0 to 8.1`,
    `12 (3–40)`, `0.71 [0.52, 0.84]`, `–` or empty.
    """
    lines = [[clip(" ".join(cell.split())) for cell in row] for row in (header, *rows)]
    return "\n".join("  ".join(line).rstrip() for line in _padded(lines, _numeric(lines)))


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table that also lines up as plain text; "" if there are no rows."""
    if not rows:
        return ""
    lines = [[one_line(clip(cell)) for cell in row] for row in (header, *rows)]
    numeric = _numeric(lines)
    head, *body = [f"| {' | '.join(line)} |" for line in _padded(lines, numeric)]
    widths = [len(cell) + 1 for cell in _padded(lines, numeric)[0]]
    rule = [f"{'-' * w}:" if right else f":{'-' * w}" for w, right in zip(widths, numeric, strict=True)]
    return "\n".join([head, f"|{'|'.join(rule)}|", *body])


def one_line(text: str) -> str:
    """Untrusted text as one line of Markdown without markup or control characters."""
    return _MARKUP.sub(r"\1\1\\\2", " ".join(inert(text).split()))


def _numeric(lines: Sequence[Sequence[str]]) -> list[bool]:
    """For each column, whether all cells below the header are numbers or empty, and at least one isn't empty."""
    cells_by_column = [cells for _, *cells in zip(*lines, strict=True)]
    return [any(cells) and all(not c or _NUMBER.fullmatch(c) for c in cells) for cells in cells_by_column]


def _padded(lines: Sequence[Sequence[str]], right: Sequence[bool]) -> list[list[str]]:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        [c.rjust(w) if flush else c.ljust(w) for c, w, flush in zip(line, widths, right, strict=True)] for line in lines
    ]
