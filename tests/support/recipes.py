"""Reads the commands of docs/running.md, so that tests run what the page shows, with their own names and sizes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "running.md"
BLOCK = re.compile(r"^```sh ([\w-]+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def names() -> list[str]:
    return [name for name, _ in BLOCK.findall(PAGE.read_text(encoding="utf-8"))]


def recipe(name: str) -> list[list[str]]:
    """A block's commands as argument lists, without comments; lines that end in a backslash are joined."""
    blocks: dict[str, str] = dict(BLOCK.findall(PAGE.read_text(encoding="utf-8")))
    lines = blocks[name].replace("\\\n", " ").splitlines()
    return [words for words in (shlex.split(line, comments=True) for line in lines) if words]


def filled(command: list[str], values: dict[str, str], *more: str) -> list[str]:
    """The command with each key of `values` replaced everywhere, and `more` arguments at its end.

    Raises:
        AssertionError: a key isn't in it: the page changed, and the test would run something else.
    """
    for key in values:
        assert any(key in word for word in command), f"{key!r} is not in {shlex.join(command)}"
    # One pass: replacements aren't searched again.
    pattern = re.compile("|".join(re.escape(key) for key in sorted(values, key=len, reverse=True)))
    return (
        [*(pattern.sub(lambda found: values[found[0]], word) for word in command), *more]
        if values
        else [*command, *more]
    )


def with_option(command: list[str], option: str, value: str) -> list[str]:
    """The command with another value for an option that it has: lm-eval would add a second `--tasks` to the first."""
    at = command.index(option)
    return [*command[: at + 1], value, *command[at + 2 :]]
