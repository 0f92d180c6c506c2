"""Whatever stands in the place of a file that a stranger hands over, the command that reads it ends soon, with a
documented exit code and a word about why; it writes nowhere else, and what was there before is whole where it fails.

A short look, the same in every run; `python tests/fuzz/longer.py --minutes 30` looks longer. What that finds becomes a
plain test where the subject's tests stand.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fuzz import mutations, rooms, targets
from fuzz.mutations import Change, changes
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

EXAMPLES = 3  # of each target
SHORT = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
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


@pytest.mark.parametrize("name", targets.NAMES)
def test_no_file_breaks_the_command_that_reads_it(
    name: str, ground: Path, worker: rooms.Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HELMBENCH_DATASET", str(ground / "dataset"))
    target = targets.targets(ground)[name]
    rooms.furnish(target, tmp_path / "template")

    @SHORT
    @given(changes(), st.integers(0, 999))
    def holds(made: list[Change], choice: int) -> None:
        found = rooms.attempt(target, tmp_path / "template", tmp_path / "home", worker, made, choice)
        assert found is None, (found, made)

    holds()


def test_every_target_is_named(ground: Path) -> None:
    """What `longer.py` and this file go through is all that there is."""
    assert sorted(targets.targets(ground)) == sorted(targets.NAMES)


def judged(ended: rooms.Ended, **after: str) -> str | None:
    """The kind of defect of a command that may write `out` when it succeeds, and found `out` and `mine` there."""
    before = {"room/out": "1 a", "room/mine": "2 b"}
    target = rooms.Target("t", "o", lambda room: None, (), (), outputs=("out",))
    changed = {f"room/{name}": what for name, what in after.items()}
    found = rooms.judged(target, "helmbench score run", ended, before, before | changed, Path("/home"))
    return found and found.kind


@pytest.mark.parametrize(
    ("ended", "after", "kind"),
    [
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
    ],
)
def test_what_a_command_did_wrong_is_seen(ended: rooms.Ended, after: dict[str, str], kind: str | None) -> None:
    assert judged(ended, **after) == kind


def test_what_takes_too_long_is_killed_and_says_where_it_stood(
    worker: rooms.Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading all content takes more than a twentieth of a second."""
    (tmp_path / "room").mkdir()
    monkeypatch.setattr(rooms, "CPU", 0.05)
    ended = worker.run(["check"], tmp_path)
    assert ended.hung
    assert "most recent call first" in ended.stderr


SAMPLE = {"a": [1, {"b": "text"}], "c": json.dumps({"label": "PASS"})}


@pytest.mark.parametrize("kind", [k for k in mutations.KINDS if k not in ("place", "name")])
@pytest.mark.parametrize("name", ["x.json", "x.jsonl", "x.yaml", "x.csv", "x.md"])
def test_a_change_changes_a_file_and_is_the_same_again(kind: str, name: str, tmp_path: Path) -> None:
    """Of twenty places in a file most are changed by it, and nothing else is."""
    texts = {"x.csv": "a,b\n1,2\n", "x.md": "---\nid: A\nlist: [a, b]\n---\n# PT1\n\nText.\n"}
    path, text = tmp_path / name, texts.get(name, json.dumps(SAMPLE))
    different = 0
    for n in range(20):
        made = []
        for _ in range(2):
            path.write_text(text)
            mutations.apply(Change(0, kind, n * 3000, n * 77, n * 5, True), tmp_path, [path])
            made.append(path.read_bytes())
        assert made[0] == made[1]
        different += made[0] != text.encode()
    assert different > 10
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("what", range(len(mutations.PLACES)), ids=mutations.PLACES)
def test_something_else_may_stand_in_a_files_place(what: int, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("{}")
    mutations.apply(Change(0, "place", 0, 0, what, False), tmp_path, [path])
    assert not path.is_file() or path.stat().st_size != 2


def test_what_was_made_huge_is_not_read_for_the_next_change(tmp_path: Path) -> None:
    """It takes no room on the disk, and would take all of the memory."""
    path = tmp_path / "x.json"
    path.write_text("{}")
    for change in (Change(0, "place", 0, 0, mutations.PLACES.index("huge"), False), Change(0, "value", 0, 0, 0, False)):
        mutations.apply(change, tmp_path, [path])
    assert path.stat().st_size == 3 * 2**30


def test_the_longer_run_ends_and_counts(tmp_path: Path) -> None:
    """As it is typed, at its smallest: a line for its target, one for all, exit code 0 or, with defects, 1."""
    longer = Path(__file__).parent / "fuzz" / "longer.py"
    done = subprocess.run(
        [sys.executable, str(longer), "--minutes", "0.02", "--only", "labels", "--kept", str(tmp_path / "kept")],
        capture_output=True,
        text=True,
    )
    assert "labels " in done.stdout, done.stderr
    assert "in all " in done.stdout
    assert done.returncode == (1 if (tmp_path / "kept").exists() else 0)
