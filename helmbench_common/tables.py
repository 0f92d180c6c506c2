"""Tables, as text for terminals and as Markdown; pages show their cells as HTML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from helmbench_common.formats.inert import clip, inert

_VALUE = r"[-+−<>]?[\d.,]+(?: ?%)?"
_NUMBER = re.compile(rf"(?:{_VALUE}(?: (?:to|of) {_VALUE})?|–)(?: [(\[][^()\[\]]*[)\]])?")
# Characters that would end a Markdown cell, start an element or turn brackets into a link, with any preceding
# backslashes. The look-behind makes the match start at the first backslash of a run, so the time stays linear.
_MARKUP = re.compile(r"(?<!\\)(\\*+)(\||<(?=[A-Za-z/!?])|\](?=[(:]))")


class Cell(NamedTuple):
    """A value, with an interval or a count in small print. `look`: a CSS class. `shade`: 0 to 1, or none. `more`: lines
    that open from the value, on pages only.
    """

    value: str | int
    small: str = ""
    look: str = ""
    shade: float | None = None
    more: Sequence[str] = ()


Cells = Sequence[Cell | str | int]


class TableRow(NamedTuple):
    """`note` explains the row head, on pages only; `flag` is a remark. `link`: the link on the head. `look`: a CSS
    class.

    `examples`: ids of samples, for a last column on pages.
    """

    head: str
    cells: Cells
    note: str = ""
    flag: str = ""
    link: str = ""
    look: str = ""
    examples: Sequence[str] = ()

    @property
    def shown(self) -> list[Cell]:
        return [c if isinstance(c, Cell) else Cell(c) for c in self.cells]


class Table(NamedTuple):
    """`columns`: the first is for the row heads. `left`: columns that aren't numeric."""

    columns: Sequence[str]
    rows: list[TableRow]
    left: Sequence[str] = ()

    def markdown(self, title: str = "") -> str:
        """A Markdown table with its first column under `title`; "" without rows."""
        return markdown_table((title or self.columns[0], *self.columns[1:]), self._lines)

    def text(self) -> str:
        """Aligned text; "" without rows."""
        return columns(self.columns, self._lines) if self.rows else ""

    @property
    def _lines(self) -> list[list[str]]:
        heads = [f"{r.head} ({r.flag})" if r.flag else r.head for r in self.rows]
        cells = [[f"{c.value} ({c.small})" if c.small else str(c.value) for c in r.shown] for r in self.rows]
        return [[head, *own] for head, own in zip(heads, cells, strict=True)]


def columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Aligned text, one row per line, columns two spaces apart.

    A column is right-aligned if all its cells are numbers, such as `1,024`, `−0.5`, `12 %`, `4.0 to 8.1`,
    `12 (3–40)`, `0.71 (0.52 to 0.84)`, `–` or empty.
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
