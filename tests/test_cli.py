"""`helmbench`: what every command has, and which error ends with which exit code."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
from helmbench.cli import app as commands
from helmbench.cli import common, root
from helmbench.cli.failures import exit_code
from helmbench.cli.root import ANY, MEANINGS, app, exits
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from judge.llm.errors import BudgetError, EngineError
from judge.replies.errors import RunError

ROOT = Path(__file__).resolve().parents[1]
# What the house promises (issues 13 and 14).
PROMISED = [
    "check",
    "new",
    "build",
    "stats",
    "book",
    "review",
    "corpus",
    "requests",
    "run",
    "score",
    "compare",
    "report",
    "calibrate",
    "agreement",
    "annotate",
    "ratings",
    "label",
    "validate",
    "verify",
    "submit",
    "board",
    "push",
    "tasks",
]


def leaves() -> Iterator[tuple[str, TyperCommand]]:
    """Every command by its whole name."""
    root = get_command(app)
    assert isinstance(root, TyperGroup)
    for name, command in root.commands.items():
        if isinstance(command, TyperGroup):
            for inner, own in command.commands.items():
                assert isinstance(own, TyperCommand)
                yield f"{name} {inner}", own
        else:
            assert isinstance(command, TyperCommand)
            yield name, command


LEAVES = dict(leaves())


def test_every_promised_command_is_there() -> None:
    """By its name, or the group of that name."""
    assert commands.main is not None  # importing it is what hangs every command from the root
    assert {*PROMISED} <= {name.split()[0] for name in LEAVES}


@pytest.mark.parametrize("name", LEAVES)
def test_a_command_says_what_it_does_with_an_example(name: str) -> None:
    """Its first line is a sentence, and the example is a call of this command whose options it has."""
    help_text = inspect.cleandoc(LEAVES[name].help or "")
    assert help_text.split("\n")[0].endswith((".", ":"))
    example = next(line for line in help_text.splitlines() if line.strip().startswith("Example: helmbench "))
    words = example.split()[2:]
    assert " ".join(words[: len(name.split())]) == name
    known = {o for p in LEAVES[name].params for o in p.opts}
    assert {w for w in words if w.startswith("--")} <= known


@pytest.mark.parametrize("name", LEAVES)
def test_every_option_has_a_help_text(name: str) -> None:
    """And every argument: `--help` leaves nobody guessing."""
    assert [p.name for p in LEAVES[name].params if not getattr(p, "help", None) and p.name != "help"] == []


@pytest.mark.parametrize("name", [n for n in LEAVES if n not in ("schema", "stats", "review", "push")])
def test_every_command_can_be_quiet(name: str) -> None:
    """Four print what they are called for: a schema, figures, a patch, a plan."""
    assert "--quiet" in {o for p in LEAVES[name].params for o in p.opts}


@pytest.mark.parametrize(
    "name",
    [
        "stats",
        "score",
        "compare",
        "appropriateness",
        "calibrate",
        "agreement",
        "validate",
        "ratings import",
        "verify",
        "tasks",
    ],
)
def test_what_prints_a_table_prints_json_too(name: str) -> None:
    """`--json` is a flag everywhere."""
    (flag,) = [p for p in LEAVES[name].params if "--json" in p.opts]
    assert getattr(flag, "is_flag", False)


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    """As the installed distribution says it."""
    assert commands.main(["--version"]) == 0
    assert capsys.readouterr().out == f"helmbench {version('helmbench')}\n"


@pytest.mark.parametrize("module", ["helmbench.cli"])
def test_the_first_releases_modules_are_the_command(module: str, tmp_path: Path) -> None:
    """Run from any directory, they know every command."""
    done = subprocess.run([sys.executable, "-m", module, "--help"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "score" in done.stdout
    assert "build" in done.stdout


def test_a_wrong_call_is_exit_code_2_and_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown command, an unknown option, a missing argument."""
    for words in (["nosuch"], ["score", "--nosuch"], ["verify"]):
        assert commands.main(words) == 2
        said = capsys.readouterr().err
        assert "Traceback" not in said
        assert "Error" in said


@pytest.mark.parametrize(
    ("error", "code"),
    [(RunError("a"), 2), (ValueError("b"), 2), (EngineError("c"), 3), (OSError("d"), 3), (BudgetError("e"), 4)],
)
def test_an_error_is_one_message_and_its_code(error: Exception, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    """The codes that the first release had."""
    assert exit_code(error) == code
    assert capsys.readouterr().err == f"{error}\n"


def test_what_the_disk_refuses_is_said_as_what_is_wrong_with_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    """The file first, and no number that nobody knows."""
    assert exit_code(OSError(28, "No space left on device", "out/a\nb")) == 3
    assert capsys.readouterr().err == "out/a[U+000A]b: No space left on device\n"


def test_a_fault_of_ours_keeps_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """What no user can mend is not made to look like bad input, nor like a gate that is shut."""
    with pytest.raises(ZeroDivisionError) as raised:
        raise ZeroDivisionError("ours")
    assert exit_code(raised.value) == 70
    said = capsys.readouterr().err
    assert said.startswith("Traceback")
    assert said.endswith("ZeroDivisionError: ours\n")


CODES = {name: value for name, value in vars(root).items() if name.isupper() and isinstance(value, int)}
DOCUMENTED = {
    int(code): (means, where)
    for code, means, where in re.findall(
        r"(?m)^\| (\d+) \| (.+?) \| (.+?) \|$", (ROOT / "docs" / "comparing.md").read_text(encoding="utf-8")
    )
}


HOSTILE = "a\x1b[31mb\u202ec"  # would colour what follows, and turn it round


@pytest.mark.parametrize(
    "arguments",
    [
        ["score", "--replies", f"{HOSTILE}.jsonl"],
        ["check", "--content", HOSTILE],
        ["corpus", f"{HOSTILE}.yaml", "--out", "out"],
        ["verify", HOSTILE],
        ["compare", HOSTILE, HOSTILE],
        ["report", HOSTILE],
    ],
    ids=lambda a: a[0],
)
def test_a_terminal_obeys_no_file_name(
    arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name with controls in it is spelt out, whichever command says it."""
    monkeypatch.chdir(tmp_path)
    assert commands.main(arguments) != 0
    shown = "".join(capsys.readouterr())
    assert "a[U+001B][31mb[U+202E]c" in shown
    assert not {"\x1b", "\u202e"} & set(shown)


def test_json_keeps_what_a_terminal_would_obey_as_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    """The value is what it was, and no control character stands in the document."""
    common.figures({HOSTILE: HOSTILE}, "", as_json=True)
    shown = capsys.readouterr().out
    assert json.loads(shown) == {HOSTILE: HOSTILE}
    assert shown.isascii()


def test_exit_codes_are_distinct_and_documented_in_one_place() -> None:
    """Every constant of the root is another code, with a meaning; docs/comparing.md says the same of each."""
    assert len(CODES) == len({*CODES.values()})
    assert {*CODES.values()} == MEANINGS.keys()
    assert {code: means for code, (means, _) in DOCUMENTED.items()} == MEANINGS
    tables = [
        p.name for p in sorted((ROOT / "docs").glob("*.md")) if re.search(r"(?m)^\| 130 \|", p.read_text("utf-8"))
    ]
    assert tables == ["comparing.md"]


@pytest.mark.parametrize("name", LEAVES)
def test_every_help_ends_with_the_commands_exit_codes(name: str) -> None:
    """Those of any command, and those that docs/comparing.md names it for."""
    own = [code for code, (_, where) in DOCUMENTED.items() if f"`{name}`" in where]
    assert LEAVES[name].epilog == exits(*own)
    assert [code for code, (_, where) in DOCUMENTED.items() if where == "any command"] == [*ANY]
    named = {word for _, where in DOCUMENTED.values() for word in re.findall("`(.+?)`", where)}
    assert named <= LEAVES.keys()


@pytest.mark.parametrize("name", LEAVES)
def test_a_command_ends_with_no_code_that_its_help_lacks(name: str) -> None:
    """What its body returns or ends with; and with --max-cost, its code."""
    callback = LEAVES[name].callback
    assert callback
    body = inspect.getsource(inspect.unwrap(callback))
    used = {code for word, code in CODES.items() if re.search(rf"\b{word}\b", body)}
    used |= {root.SHUT} if "refusing()" in body else set()
    used |= {root.UNANSWERED} if "_say_unanswered(" in body else set()
    if any("--max-cost" in p.opts for p in LEAVES[name].params):
        used.add(root.CAPPED)
    own = {code for code, (_, where) in DOCUMENTED.items() if f"`{name}`" in where}
    # The tasks' own error is one of `helmbench.cli.failures`.
    assert own - ({root.SHUT} if name == "tasks" else set()) <= used <= own | {*ANY}


def test_json_leaves_alone_and_quiet_says_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """`--json` prints JSON and no table; `--quiet` prints nothing; both print the JSON."""
    labels = [tmp_path / n for n in ("ana.jsonl", "ben.jsonl")]
    for path in labels:
        path.write_text('{"id": "a", "label": "PASS"}\n{"id": "b", "label": "FAIL"}\n', encoding="utf-8")
    words = ["agreement", *map(str, labels)]
    assert commands.main([*words, "--json"]) == 0
    printed = capsys.readouterr().out
    assert json.loads(printed)["overall"]["raters"] == ["ana", "ben"]
    assert commands.main([*words, "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    assert commands.main([*words, "--quiet", "--json"]) == 0
    assert capsys.readouterr().out == printed


def test_what_a_model_is_called_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    """Escape sequences, a turned direction and halves of characters are spelt out, and JSON stays JSON."""
    from helmbench.cli.common import figures, note, say

    name = "m\x1b[2J\u202e\ud800\x9b\r–é\t|"
    shown = "m[U+001B][2J[U+202E][U+D800][U+009B][U+000D]–é\t|"
    say(name)
    note(name)
    assert capsys.readouterr() == (f"{shown}\n", f"{shown}\n")
    figures({"name": name}, "", as_json=True)
    assert json.loads(capsys.readouterr().out) == {"name": name}
