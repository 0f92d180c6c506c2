"""Whatever somebody wrote, the command that reads it ends: no traceback, the file named, nothing written.

`pytest -n0 -v tests/test_broken_inputs.py` prints the table of them; broken_inputs.py says what each is.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from helmbench.cli.app import main
from support.broken_inputs import ALL, Broken, place, smaller, state
from support.contents import read

from dataset_builder.checking.safe_messaging import unsafe
from dataset_builder.reading.markdown import Errors, parse_attributes
from dataset_builder.stats.surface import ALARM, distribution, matches


@pytest.fixture(scope="module")
def tiny_content(small_content: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the small content what is read, so that each case takes a fifth of a second; read-only by agreement."""
    root = smaller(small_content, tmp_path_factory.mktemp("tiny") / "content")
    read(root)
    return root


@pytest.fixture(autouse=True)
def _no_hang() -> Iterator[None]:
    """What hangs fails after a minute: each of these takes a fraction of a second."""

    def stop(*_: object) -> None:
        raise AssertionError("did not end within a minute")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("broken", ALL, ids=str)
def test_a_broken_input_ends_its_command(
    broken: Broken,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """With the documented exit code and the file and line in a message that a terminal only prints; what was there
    stays as it was, and nothing is added.
    """
    if broken.command[0] == "board":
        monkeypatch.setenv("HELMBENCH_DATASET", str(request.getfixturevalue("small").path))
    monkeypatch.chdir(tmp_path)
    # A split is read after the content has been checked, which no part of one passes.
    content = request.getfixturevalue("small_content" if "--held-out" in broken.command else "tiny_content")
    made = place(content, tmp_path / "case")
    broken.make(made)
    before = state(made.root)
    code = main([word.format(content=made.content, root=made.root) for word in broken.command])
    said = "".join(capfd.readouterr())
    assert "Traceback" not in said, said
    assert code == broken.code, said
    for words in broken.says:
        assert words in said, said[:2_000]
    assert not [c for c in said if not (c.isprintable() or c == "\n")], ascii(said[:2_000])
    assert len(said) < 50_000
    assert state(made.root) == before


FILLS = ("1", "1,", "A'", "A ", "full ", "half a ", "2 of ", "box of ", ". ", "\n", " ", "-", "(", "a", "2 pills ")


def test_patterns_on_what_people_write_take_linear_time(small_content: Path) -> None:
    """50,000 characters of the same: what took the square of that took hours."""
    refused = read(small_content).refused
    for fill in FILLS:
        text = (fill * 50_000)[:50_000] + "x"
        assert isinstance([*unsafe(text, refused, "scenarios/P1-B1-S1.md")], list)
        assert distribution([text])["messages"] == 1
        assert matches(ALARM, [text]) == set()
        line = text.replace("\n", " ")
        assert parse_attributes(f"severity {line}", 1, Errors().at(Path("x.md")))["severity"] == line.strip()
