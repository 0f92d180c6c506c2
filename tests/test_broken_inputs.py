"""Whatever somebody wrote, the command that reads it ends: no traceback, the file named, nothing written.

`pytest -n0 -v tests/test_broken_inputs.py` prints the table of them; broken_inputs.py says what each is.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from broken_inputs import ALL, Broken, place, state

from dataset_builder.composing.compose import compose
from dataset_builder.reading.load import load
from dataset_builder.writing.write import write
from helmbench_cli.app import main


@pytest.fixture(scope="module")
def small_dataset(small_content: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small content, built; read-only by agreement."""
    content, errors = load(small_content)
    assert content, errors.lines()
    out = tmp_path_factory.mktemp("built") / "helmbench"
    write(content, compose(content), out)
    return out


def test_there_are_many_of_every_kind() -> None:
    """Each is named once."""
    names = [str(broken) for broken in ALL]
    assert len(names) == len({*names})
    assert len(names) >= 60


@pytest.mark.parametrize("broken", ALL, ids=str)
def test_a_broken_input_ends_its_command(
    broken: Broken,
    small_content: Path,
    small_dataset: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """With the documented exit code and the file and line in a message that a terminal only prints; what was there
    stays as it was, and nothing is added.
    """
    monkeypatch.setenv("HELMBENCH_DATASET", str(small_dataset))
    monkeypatch.chdir(tmp_path)
    made = place(small_content, tmp_path / "case")
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
