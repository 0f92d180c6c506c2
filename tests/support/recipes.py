"""The commands of docs/running.md, read from that page: what the tests run is what the page says, with names and sizes
put in.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "running.md"
BLOCK = re.compile(r"^```sh ([\w-]+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def names() -> list[str]:
    return [name for name, _ in BLOCK.findall(PAGE.read_text(encoding="utf-8"))]


def recipe(name: str) -> list[list[str]]:
    """A block's commands as argument lists; comments are left out, lines that end in a backslash are joined."""
    blocks: dict[str, str] = dict(BLOCK.findall(PAGE.read_text(encoding="utf-8")))
    lines = blocks[name].replace("\\\n", " ").splitlines()
    return [words for words in (shlex.split(line, comments=True) for line in lines) if words]


def filled(command: list[str], values: dict[str, str], *more: str) -> list[str]:
    """The command with each key of `values` replaced wherever it stands, and with more arguments at its end.

    Raises:
        AssertionError: a key does not stand in it: the page was changed and the test would run something else.
    """
    for key in values:
        assert any(key in word for word in command), f"{key!r} is not in {shlex.join(command)}"
    # One pass: what is put in is never searched again.
    pattern = re.compile("|".join(re.escape(key) for key in sorted(values, key=len, reverse=True)))
    return (
        [*(pattern.sub(lambda found: values[found[0]], word) for word in command), *more]
        if values
        else [*command, *more]
    )


def with_option(command: list[str], option: str, value: str) -> list[str]:
    """The command with another value of an option that stands in it: lm-eval would add a second `--tasks` to the
    first.
    """
    at = command.index(option)
    return [*command[: at + 1], value, *command[at + 2 :]]
