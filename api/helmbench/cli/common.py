"""What every command shares: the root command, exit codes, output, and how errors end a command."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from helmbench_common.errors import HelmbenchError, RefusedError
from helmbench_common.files import write_whole
from helmbench_common.formats.inert import escaped, inert
from helmbench_common.formats.refused import shown

OK, FAILED, BAD_INPUT, UNREACHABLE, CAPPED, UNANSWERED, FAULT, STOPPED = 0, 1, 2, 3, 4, 5, 70, 130
MEANINGS = {
    OK: "success",
    FAILED: "a check failed",
    BAD_INPUT: "bad input",
    UNREACHABLE: "a file or the judge endpoint can't be used",
    CAPPED: "stopped before exceeding --max-cost",
    UNANSWERED: "too many replies or answers are missing to trust the figures",
    FAULT: "a bug in helmbench",
    STOPPED: "stopped by Ctrl-C",
}
ANY = (OK, BAD_INPUT, UNREACHABLE, FAULT, STOPPED)  # that every command can end with
AGAIN = "stopped; run the same command again to continue where it stopped"

# The panels of `helmbench --help`.
CONTENT, RUNS, PEOPLE, BOARD = "Dataset", "Run and score", "Judges and human labels", "Submissions and leaderboard"


def exits(*own: int, failed: str = "") -> str:
    """The last line of a command's help: every exit code it can end with. `failed`: what its exit code 1 means."""
    codes = sorted({*ANY, *own, *([FAILED] if failed else [])})
    meanings = MEANINGS | ({FAILED: failed} if failed else {})
    if CAPPED not in own:  # a command that asks no judge
        meanings[UNREACHABLE] = "a file can't be read or written"
    return "Exit codes: " + "; ".join(f"{code} {meanings[code]}" for code in codes) + "."


app = typer.Typer(
    name="helmbench",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="`helmbench COMMAND --help` shows a command's options, an example and its exit codes.",
)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        sys.stdout.write(f"helmbench {version('helmbench')}\n")
        raise typer.Exit


@app.callback()
def _root(
    show: Annotated[
        bool,
        typer.Option("--version", metavar="", callback=_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Measure how language models treat people in distress.

    Typical order: build the dataset, run a model with lm_eval or Inspect, then score, report and compare.
    """


def say(text: str, quiet: bool = False) -> None:
    """Prints a command's result; control characters in names and replies are spelled out."""
    if not quiet:
        sys.stdout.write(inert(text.rstrip("\n")) + "\n")


def wrong(text: str) -> None:
    """Prints an error or a next step to standard error, as inert as `say`; nothing if `text` is empty."""
    if text:
        sys.stderr.write(inert(text) + "\n")


def note(text: str, quiet: bool = False) -> None:
    """Prints to standard error which input was used; nothing if `text` is empty."""
    if not quiet:
        wrong(text)


def figures(value: Any, text: str, *, as_json: bool, quiet: bool = False, file: Path | None = None) -> None:
    """Prints a table, or the same figures as JSON, and writes the JSON to `file`. `value`: plain values.

    JSON that was asked for is printed even with `quiet`.
    """
    document = json.dumps(value, indent=2, ensure_ascii=False)
    if file is not None:
        write_whole(file, document + "\n")
    if as_json:
        say(escaped(document))
    else:
        say(text, quiet)


def reason(error: BaseException) -> str:
    """An error's message; of a system error the file and what is wrong with it."""
    if isinstance(error, OSError) and isinstance(error.filename, str | bytes) and error.strerror:
        return f"{shown(os.fsdecode(error.filename))}: {error.strerror}"
    return str(error)


@contextmanager
def ending(code: int, *kinds: type[Exception], last: str = "") -> Iterator[None]:
    """Ends the command with `code` if one of `kinds` is raised, after printing its message and `last`."""
    try:
        yield
    except kinds as error:
        wrong("\n".join(text for text in (reason(error), last) if text))
        raise typer.Exit(code) from None


@contextmanager
def refusing() -> Iterator[None]:
    """Ends a command that writes content, a build or a corpus: 1 with every problem, 2 if it can't write."""
    try:
        with ending(BAD_INPUT, OSError):
            yield
    except RefusedError as error:
        count = f"{error.count:,} error{'s' if error.count != 1 else ''}"
        wrong("\n".join([*error.lines, f"{count}; nothing was written"]))
        raise typer.Exit(FAILED) from None


def exit_code(error: BaseException) -> int:
    """Prints the error's message and returns the exit code; an unexpected error prints its traceback."""
    if isinstance(error, KeyboardInterrupt):
        wrong(AGAIN)
        return STOPPED
    if isinstance(error, HelmbenchError | ValueError | OSError):
        wrong(reason(error))
        if isinstance(error, HelmbenchError):
            return error.exit_code
        return BAD_INPUT if isinstance(error, ValueError) else UNREACHABLE
    traceback.print_exception(error)
    return FAULT
