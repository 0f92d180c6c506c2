"""`scripts/measure.py` as a user runs it, on a few messages: every rating of 2 models × 3 runs × 3 judge runs is
there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from support.scores import scores

from judge.schema import Scorecard, Verdict

ROOT = Path(__file__).resolve().parents[1]
MODELS = ("keyword-greeting", "always-escalate-greeting")
LIMIT = 3


def measure(folder: Path, dataset: str, *more: str) -> subprocess.CompletedProcess[str]:
    """The script, run in a folder."""
    words = ["--out", str(folder / "runs"), "--dataset", str(folder / dataset), *more]
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "measure.py"), *words],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ['PYTHONPATH']}"},
        timeout=600,
    )


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """One run: its folder and what it printed."""
    out = tmp_path_factory.mktemp("measure")
    done = measure(out, "helmbench", "--limit", str(LIMIT))
    assert done.returncode == 0, done.stdout + done.stderr
    return out / "runs", done.stdout


@pytest.mark.soak(short=0, full=1)
@pytest.mark.parametrize("model", MODELS)
def test_every_reply_is_rated_three_times(measured: tuple[Path, str], model: str) -> None:
    """3 messages × 3 runs, each with a rating from each of 3 judge runs; the scorecard counts the same 27."""
    verdicts = [
        Verdict.model_validate_json(line)
        for line in (scores(measured[0] / model) / "ratings.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    rated = [v for v in verdicts if v.check == "appropriateness"]
    assert len({v.id for v in rated}) == LIMIT
    assert Counter(v.repeat for v in rated) == {0: LIMIT, 1: LIMIT, 2: LIMIT}
    assert [sorted((vote.judge, vote.repeat) for vote in v.votes) for v in rated] == [
        [("scripted-judge", n) for n in range(3)]
    ] * (LIMIT * 3)
    assert all(vote.label in (1, 2, 3, 4, 5) for v in rated for vote in v.votes)
    card = Scorecard.model_validate_json((scores(measured[0] / model) / "scorecard.json").read_bytes()).appropriateness
    assert card is not None
    whole = card.overall
    assert (card.runs, card.judge_runs, whole.messages, whole.replies, whole.ratings, whole.unscored) == (
        *(3, 3, 3, 9),
        *(27, 0),
    )
    assert card.judge.name == "scripted-judge"
    assert not card.complete  # a limited run


@pytest.mark.soak(short=0, full=1)
def test_the_tables_are_printed(measured: tuple[Path, str]) -> None:
    """A line per model in the rating table with its number of ratings, one per model and prompt in the triage table,
    the sum, and the caveat.
    """
    lines = measured[1].splitlines()
    for model in MODELS:
        assert any(line.startswith(f"| {model} ") and "3 × 3 runs, 27" in line for line in lines)
        assert [line.split()[1] for line in lines if line.startswith(f"{model} ")] == ["bare", "guided"]
    assert any(
        line.startswith("2 models × 3 runs × 3 judge runs of 3 messages: 54 ratings. Trivial policies")
        for line in lines
    )
    assert all((scores(measured[0] / model) / "report.html").is_file() for model in MODELS)


def test_a_stage_that_fails_ends_it(tmp_path: Path) -> None:
    """Its exit code is the command's, the end of its log is shown, and nothing later runs."""
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "letter.txt").write_text("not a dataset")
    done = measure(tmp_path, "taken")
    assert done.returncode != 0
    assert "build the dataset failed" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs" / "keyword-greeting").exists()
    assert [p.name for p in (tmp_path / "taken").iterdir()] == ["letter.txt"]
