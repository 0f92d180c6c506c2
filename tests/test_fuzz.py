"""Whatever is in a foreign file, the command that reads it ends soon, with a documented exit code and an error text; it
writes nowhere else, and earlier output stays whole if it fails.

`make soak` tries 300 examples of each target, the same in every run. What it finds becomes a plain test of its subject
(test_broken_inputs.py has the kinds that it found).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fuzz import rooms, targets
from fuzz.mutations import Change, changes
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

OK = rooms.Ended(0, False, 0.1, 1, "said", "")


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What the targets share; nothing in it may change."""
    place = tmp_path_factory.mktemp("ground")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HELMBENCH_DATASET", "set by lay")
        targets.lay(place)
        before = rooms.tree(place)
        yield place
        assert rooms.tree(place) == before


@pytest.fixture(scope="module")
def worker(ground: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[rooms.Worker]:
    home, first = tmp_path_factory.mktemp("warm"), targets.targets(ground)["runs"]
    with rooms.Worker() as process:
        rooms.furnish(first, home / "template")
        rooms.warm(first, home / "template", home / "home", process)
        yield process


@pytest.mark.soak(short=0, full=300)
@pytest.mark.parametrize("name", targets.NAMES)
def test_no_file_breaks_the_command_that_reads_it(
    name: str, ground: Path, worker: rooms.Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rounds: int
) -> None:
    monkeypatch.setenv("HELMBENCH_DATASET", str(ground / "dataset"))
    found = targets.targets(ground)
    rooms.furnish(found[name], tmp_path / "template")

    @settings(
        max_examples=rounds,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(changes(), st.integers(0, 999))
    def holds(made: list[Change], choice: int) -> None:
        defect = rooms.attempt(found[name], tmp_path / "template", tmp_path / "home", worker, made, choice)
        assert defect is None, (defect, made)

    holds()


def judged(ended: rooms.Ended, **after: str) -> str | None:
    """The kind of defect of a command that may write `out` when it succeeds, and found `out` and `mine` there."""
    before = {"room/out": "1 a", "room/mine": "2 b"}
    target = rooms.Target(lambda room: None, (), (), outputs=("out",))
    changed = {f"room/{name}": what for name, what in after.items()}
    found = rooms.judged(target, "helmbench score run", ended, before, before | changed, Path("/home"))
    return found and found.kind


def test_what_a_command_did_wrong_is_seen() -> None:
    cases: list[tuple[rooms.Ended, dict[str, str], str | None]] = [
        (OK, {"out": "3 c"}, None),
        (OK._replace(code=2, stderr="run: is none"), {}, None),
        (OK, {"mine": "3 c"}, "outside"),
        (OK._replace(code=2, stderr="why"), {"out": "3 c"}, "not intact"),
        (OK._replace(code=2, stderr="Traceback (most recent call last):\nKeyError: 'x'"), {}, "traceback"),
        (OK._replace(code=70, stderr="x"), {}, "fault"),
        (OK._replace(code=1, stderr="a gate that `score` has not"), {}, "code"),
        (OK._replace(code=-11), {}, "killed"),
        (OK._replace(hung=True, code=-9), {}, "hang"),
        (OK._replace(megabytes=9000), {}, "memory"),
        (OK._replace(stdout="\x1b[2J"), {}, "terminal"),
        (OK._replace(code=2, stdout=""), {}, "silent"),
        (OK._replace(code=3, stderr="[Errno 21]"), {}, "disk"),
        (OK._replace(stderr="x.py:1: RuntimeWarning: overflow"), {}, "warning"),
    ]
    assert [judged(ended, **after) for ended, after, _ in cases] == [kind for _, _, kind in cases]


@pytest.mark.soak(short=0, full=1)
def test_what_takes_too_long_is_killed_and_says_where_it_stood(
    worker: rooms.Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading all content takes more than a twentieth of a second."""
    (tmp_path / "room").mkdir()
    monkeypatch.setattr(rooms, "CPU", 0.05)
    ended = worker.run("check", tmp_path)
    assert ended.hung
    assert "most recent call first" in ended.stderr
