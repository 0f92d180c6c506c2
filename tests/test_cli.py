"""`helmbench`: what every command's help says, how output is printed, and which error ends with which exit code."""

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
from helmbench.cli import common
from helmbench.cli.common import ANY, MEANINGS, app, exit_code
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from judge.llm.errors import BudgetError, EngineError
from judge.replies.schema import RunError

ROOT = Path(__file__).resolve().parents[1]
PROMISED = {
    *("check", "new", "build", "stats", "book", "review", "corpus", "push"),
    *("calibrate", "validate", "read", "field", "agreement", "label", "annotate", "ratings"),
    *("audit", "requests", "judge", "score", "report", "compare", "appropriateness", "schema", "tasks"),
    *("submit", "verify", "board", "export"),
}
# They print what they are called for: figures, a patch, a plan, a schema.
NEVER_QUIET = ("schema", "stats", "review", "push", "field list", "field show", "field fetch")
TABLES = (
    "stats",
    "score",
    "compare",
    "appropriateness",
    "calibrate",
    "agreement",
    "validate",
    "read",
    "verify",
    "tasks",
)
HOSTILE = "a\x1b[31mb\u202ec"  # would color what follows, and reverse it


def leaves() -> Iterator[tuple[str, TyperCommand]]:
    """Every command by its full name."""
    root = get_command(app)
    assert isinstance(root, TyperGroup)
    for name, command in root.commands.items():
        if command.hidden:
            continue
        inner = command.commands if isinstance(command, TyperGroup) else {}
        for own, leaf in inner.items() or [("", command)]:
            assert isinstance(leaf, TyperCommand)
            yield f"{name} {own}".strip(), leaf


LEAVES = dict(leaves())


def test_every_command_has_a_summary_an_example_and_help_for_every_option() -> None:
    """One sentence; an example with options that exist; and --quiet, or a table's --json."""
    assert {name.split()[0] for name in LEAVES} == PROMISED
    problems = []
    for name, command in LEAVES.items():
        summary, *_, example = inspect.cleandoc(command.help or "").split("\n\n")
        options = {o for p in command.params for o in p.opts}
        if not re.fullmatch(r"[A-Z][^.]*(\.json)?\.", summary) or len(summary) > 100:
            problems.append(f"{name}: summary isn't one short sentence: {summary}")
        if not example.startswith(f"Example: helmbench {name}"):
            problems.append(f"{name}: no example")
        problems += [f"{name}: example has {w}" for w in example.split() if w.startswith("--") and w not in options]
        problems += [f"{name}: no help for {p.name}" for p in command.params if not getattr(p, "help", "")]
        if name not in NEVER_QUIET and "--quiet" not in options:
            problems.append(f"{name}: no --quiet")
        if name in (*TABLES, "ratings import") and "--json" not in options:
            problems.append(f"{name}: no --json")
    assert problems == []


def test_the_documented_exit_codes_are_those_of_the_help_and_the_code() -> None:
    """One table in the docs names every code, its meaning, and the commands that end with it."""
    codes = {name: value for name, value in vars(common).items() if name.isupper() and type(value) is int}
    tables = [text for p in (ROOT / "docs").rglob("*.md") if "\n| 130 |" in (text := p.read_text(encoding="utf-8"))]
    assert len(tables) == 1
    documented = {
        int(code): (means, where)
        for code, means, where in re.findall(r"(?m)^\| (\d+) \| (.+?) \| (.+?) \|$", tables[0])
    }
    assert {code: means for code, (means, _) in documented.items()} == MEANINGS
    assert {*codes.values()} == MEANINGS.keys()
    assert [code for code, (_, where) in documented.items() if where == "any command"] == [*ANY]
    problems = []
    for name, command in LEAVES.items():
        own = {code for code, (_, where) in documented.items() if f"`{name}`" in where}
        said = {int(code) for code in re.findall(r"(?:: |; )(\d+) ", command.epilog or "")}
        if said != own | {*ANY}:
            problems.append(f"{name}: help names {said}, the docs {own}")
        assert command.callback
        body = inspect.getsource(inspect.unwrap(command.callback))
        used = {value for word, value in codes.items() if re.search(rf"\b{word}\b", body)}
        used |= {common.FAILED} if "refusing()" in body else set()
        used |= {common.UNANSWERED} if "_say_unanswered(" in body else set()
        used |= {common.CAPPED} if any("--max-cost" in p.opts for p in command.params) else set()
        # `tasks` ends with the exit code of its own error.
        if not own - ({common.FAILED} if name == "tasks" else set()) <= used <= own | {*ANY}:
            problems.append(f"{name}: the code uses {used}, the docs name {own}")
    assert problems == []


def test_help_starts_fast(tmp_path: Path) -> None:
    """From any directory, and without the libraries that take long to import."""
    code = (
        "import json, sys; from helmbench.cli.app import main\n"
        "for name in ['', *json.loads(sys.argv[1])]: main([*name.split(), '--help'])\n"
        "slow = ('numpy', 'scipy', 'pyarrow', 'pandas', 'datasets', 'aiohttp', 'jinja2', 'sklearn', 'lm_eval')\n"
        "print([m for m in slow if m in sys.modules])"
    )
    command = [sys.executable, "-c", code, json.dumps(sorted(LEAVES))]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("[]\n")
    assert "Submissions and leaderboard" in done.stdout


def test_modules_that_run() -> None:
    """`python -m helmbench.cli` is the command; two old names print the command that replaced them."""
    for module, words, code, printed in (
        ("helmbench.cli", ["--version"], 0, f"helmbench {version('helmbench')}"),
        ("judge", ["score", "runs/NAME"], 2, "python -m judge is now: helmbench score"),
        ("dataset_builder", [], 2, "python -m dataset_builder is now: helmbench --help"),
    ):
        done = subprocess.run([sys.executable, "-m", module, *words], capture_output=True, text=True)
        assert (done.returncode, done.stdout + done.stderr) == (code, printed + "\n")


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    """As the installed distribution says it."""
    assert commands.main(["--version"]) == 0
    assert capsys.readouterr().out == f"helmbench {version('helmbench')}\n"


def test_a_wrong_call_is_exit_code_2_and_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown command, an unknown option, a missing argument, two options that exclude each other."""
    for words in (["nosuch"], ["score", "--nosuch"], ["verify"], ["tasks", "--register", "--remove"], ["score"]):
        assert commands.main(words) == 2
        said = capsys.readouterr().err
        assert said
        assert "Traceback" not in said


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (RunError("a"), 2, "a"),
        (ValueError("b"), 2, "b"),
        (EngineError("c"), 3, "c"),
        (OSError("d"), 3, "d"),
        (OSError(28, "No space left on device", "out/a\nb"), 3, "out/a[U+000A]b: No space left on device"),
        (BudgetError("e"), 4, "e"),
        (KeyboardInterrupt(), 130, common.AGAIN),
    ],
)
def test_an_error_is_one_message_and_its_code(
    error: BaseException, code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A system error names the file first, and no number."""
    assert exit_code(error) == code
    assert capsys.readouterr().err == f"{message}\n"


def test_a_bug_keeps_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """It doesn't look like bad input or a failed gate."""
    with pytest.raises(ZeroDivisionError) as raised:
        raise ZeroDivisionError("a bug")
    assert exit_code(raised.value) == 70
    said = capsys.readouterr().err
    assert said.startswith("Traceback")
    assert said.endswith("ZeroDivisionError: a bug\n")


def test_control_characters_in_file_names_are_spelled_out(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever command prints the name."""
    monkeypatch.chdir(tmp_path)
    for arguments in (
        ["score", "--replies", f"{HOSTILE}.jsonl"],
        ["check", "--content", HOSTILE],
        ["corpus", f"{HOSTILE}.yaml", "--out", "out"],
        ["verify", HOSTILE],
        ["compare", HOSTILE, HOSTILE],
        ["report", HOSTILE],
    ):
        assert commands.main(arguments) != 0
        shown = "".join(capsys.readouterr())
        assert "a[U+001B][31mb[U+202E]c" in shown, arguments
        assert not {"\x1b", "\u202e"} & set(shown)


def test_control_characters_in_output_are_spelled_out_and_json_escapes_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Escape sequences, reversed direction and halves of characters; JSON keeps the value."""
    name = "m\x1b[2J\u202e\ud800\x9b\r–é\t|"
    shown = "m[U+001B][2J[U+202E][U+D800][U+009B][U+000D]–é\t|"
    common.say(name)
    common.note(name)
    assert capsys.readouterr() == (f"{shown}\n", f"{shown}\n")
    common.figures({name: name}, "", as_json=True)
    printed = capsys.readouterr().out
    assert json.loads(printed) == {name: name}
    assert not {"\x1b", "\u202e", "\x9b"} & set(printed)


def test_json_and_quiet(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
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
