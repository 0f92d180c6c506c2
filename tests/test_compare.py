"""Comparing runs: paired differences, ranks that admit what can't be told, gates with exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import make_references
import pytest

from dataset_builder.release import Release, open_release
from judge.scoring.breakdown import holm
from judge.scoring.compare import ScoredRun, compare, read
from replies.errors import RunError


@pytest.fixture(scope="module")
def runs(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three policies, scored on the lite tier by the real command."""
    root = tmp_path_factory.mktemp("runs")
    release = open_release(dataset)
    for policy in ("always-escalate", "always-kind", "keyword"):
        lines = [
            json.dumps({"id": r.id, "replies": list(make_references.play(policy, r))})
            for r in release.rows.values()
            if "lite" in r.tiers
        ]
        (root / f"{policy}.jsonl").write_text("\n".join(lines) + "\n")
        done = judge("score", "--replies", f"{policy}.jsonl", "--out", policy, "--dataset", dataset, cwd=root)
        assert done.returncode == 0, done.stderr
    return root


def judge(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "judge", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=os.environ,
        timeout=120,
    )


def three(runs: Path, release: Release) -> list[ScoredRun]:
    return [read(runs / name, release) for name in ("always-escalate", "always-kind", "keyword")]


def test_a_run_differs_from_itself_by_nothing(runs: Path, release: Release) -> None:
    """Same run twice: every difference is exactly 0 with an interval of no width, none stands out, both may be
    first.
    """
    run = read(runs / "keyword", release)
    found = compare([run, run])
    assert {(d.difference.value, d.difference.low, d.difference.high, d.found) for d in found.differences} == {
        (0.0, 0.0, 0.0, False)
    }
    assert [(r.run, r.best, r.worst) for r in found.ranks] == [("keyword (1)", 1, 2), ("keyword (2)", 1, 2)]
    assert found.samples == []


def test_differences_are_the_figures_subtracted(runs: Path, release: Release) -> None:
    """always-kind misses every crisis and spares every control: 100 points of sensitivity lost, 100 of specificity
    won.
    """
    found = {d.figure: d for d in compare(three(runs, release)[:2]).differences}
    assert (found["sensitivity"].difference.value, found["specificity"].difference.value) == (-100, 100)
    assert found["sensitivity"].found
    assert found["P1-B1"].difference.value == pytest.approx(found["P1-B1"].value - found["P1-B1"].baseline)
    assert found["composite"].difference.value == pytest.approx(found["composite"].value - found["composite"].baseline)


def test_samples_that_differ_most_are_the_heaviest(runs: Path, release: Release) -> None:
    """Listed samples differ, and none left out differs by more."""
    found = compare(three(runs, release)[:2], samples=5).samples
    assert len(found) == 5
    assert all(s.baseline != s.value for s in found)
    assert [abs(s.value - s.baseline) * s.weight for s in found] == sorted(
        (abs(s.value - s.baseline) * s.weight for s in found), reverse=True
    )


@pytest.mark.parametrize(("gate", "code"), [("regression", 1), (None, 0)])
def test_regression_gate_is_an_exit_code(runs: Path, dataset: Path, gate: str | None, code: int) -> None:
    """A sure loss against the baseline exits 1 with the gate and 0 without; the reason is printed."""
    more = ["--fail-on", gate] if gate else []
    done = judge("compare", "always-escalate", "always-kind", "--dataset", dataset, *more, cwd=runs)
    assert done.returncode == code, done.stderr
    assert ("failed: always-kind lost 100.0 points of sensitivity" in done.stdout) == bool(gate)


def test_floor_gate_takes_a_single_run(runs: Path, dataset: Path) -> None:
    """On the lite tier no floor is breached, so the gate is open; without the gate one run is no comparison."""
    assert judge("compare", "keyword", "--dataset", dataset, "--fail-on", "floor", cwd=runs).returncode == 0
    alone = judge("compare", "keyword", "--dataset", dataset, cwd=runs)
    assert alone.returncode == 2
    assert "two runs or more" in alone.stderr


def test_a_breached_floor_shuts_the_gate(runs: Path, release: Release) -> None:
    """The gate names the run and the floor."""
    base, kind, _ = three(runs, release)
    floor = kind.card.floors[0].model_copy(update={"state": "breached"})
    breached = ScoredRun(kind.name, kind.card.model_copy(update={"floors": [floor]}), kind.scorer, kind.figures)
    assert compare([base, breached], "floor").failed == [f"always-kind breaches the floor '{floor.name}'"]


def test_what_can_not_be_compared_is_refused(runs: Path, release: Release) -> None:
    """Other tier, other judge, other samples: each is one error that names it."""
    base, kind, _ = three(runs, release)
    for change, word in (
        ({"dataset": kind.card.dataset.model_copy(update={"tier": "core"})}, "tier"),
        ({"judge": kind.card.judge.model_copy(update={"name": "other"})}, "judge"),
    ):
        with pytest.raises(RunError, match=f"differ in {word}"):
            compare([base, ScoredRun(kind.name, kind.card.model_copy(update=change), kind.scorer, kind.figures)])


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda lines: [lines[0][:50], *lines[1:]], ":1: "),
        (lambda lines: [*lines, lines[3]], "stands twice"),
        (lambda lines: [lines[0].replace("P1-B1-S1", "P1-B1-S9"), *lines[1:]], "P1-B1-S9"),
        (lambda lines: [lines[0].replace('"label":"', '"label":"X'), *lines[1:]], ":1: "),
        (lambda lines: [line for line in lines if '"index":1' not in line], "check 1: missing"),
    ],
    ids=["cut line", "twice", "unknown sample", "unknown label", "missing check"],
)
def test_damaged_verdicts_are_refused_by_row(
    runs: Path, release: Release, tmp_path: Path, damage: object, words: str
) -> None:
    """A verdicts file that was damaged or edited is refused, and the line or the sample is named."""
    lines = (runs / "keyword" / "verdicts.jsonl").read_text().splitlines()
    (tmp_path / "verdicts.jsonl").write_text("\n".join(damage(lines)) + "\n")  # type: ignore[operator]
    (tmp_path / "scorecard.json").write_text((runs / "keyword" / "scorecard.json").read_text())
    with pytest.raises(RunError, match=words):
        read(tmp_path, release)


def test_a_run_without_benchmark_samples_shuts_the_gate(runs: Path, release: Release, tmp_path: Path) -> None:
    """A run of messages alone has nothing to compare, which must not look like no regression."""
    card = json.loads((runs / "keyword" / "scorecard.json").read_text())
    (tmp_path / "scorecard.json").write_text(json.dumps(card | {"dataset": card["dataset"] | {"samples": 0}}))
    (tmp_path / "verdicts.jsonl").write_text("")
    with pytest.raises(RunError, match="helmbench appropriateness"):
        read(tmp_path, release)


def test_a_run_of_another_version_is_refused(runs: Path, release: Release, tmp_path: Path) -> None:
    """A scorecard of another score_hash is not compared."""
    for name in ("verdicts.jsonl", "scorecard.json"):
        (tmp_path / name).write_text(
            (runs / "keyword" / name).read_text().replace(release.manifest.score_hash, "0" * 64)
        )
    with pytest.raises(RunError, match="score_hash 000000000000"):
        read(tmp_path, release)


def test_holm_steps_down() -> None:
    """0.01 ≤ 0.05/3, 0.02 ≤ 0.05/2, 0.06 > 0.05/1; and a large one in between stops the rest."""
    assert holm([0.02, 0.06, 0.01], 0.05) == [True, False, True]
    assert holm([0.01, 0.04, 0.03], 0.05) == [True, False, False]
    assert holm([], 0.05) == []
