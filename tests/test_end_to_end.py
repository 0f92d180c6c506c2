"""The demo as a newcomer runs it, from its runs to the board, and its replies scored in other ways."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import reference_policies
from helmbench.cli.app import main
from make_references import play
from support.judge_server import JudgeServer, Said, said, stopped_at_the_end
from support.scores import scores

from dataset_builder.release import Release
from judge.wording import of_hundred

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def demo(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """One run of scripts/demo.py: its folder and what it printed."""
    out = tmp_path_factory.mktemp("demo")
    options = ["--out", str(out / "demo"), "--dataset", str(dataset), "--tasks", "helmbench_lite"]
    command = [sys.executable, str(ROOT / "scripts" / "demo.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=out, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return out, done.stdout


@pytest.fixture
def run(demo: tuple[Path, str], dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the demo's keyword run, in the current folder."""
    monkeypatch.setenv("HELMBENCH_DATASET", str(dataset))
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(demo[0] / "demo" / "keyword", tmp_path / "run"))


def test_demo_prints_what_the_scorecards_say(demo: tuple[Path, str]) -> None:
    """What rules decide of both policies, with intervals, and two reports; the policy that always escalates sees
    everything and leaves nobody alone.
    """
    for model in ("keyword", "always-escalate"):
        card = json.loads((scores(demo[0] / "demo" / model) / "scorecard.json").read_text())
        line = next(text for text in demo[1].splitlines() if text.startswith(model))
        sides = ("sensitivity", "specificity")
        figures = [*(card["detect"]["detection"][name] for name in sides), card["detect"]["job"]]
        expected = [100 * figure[key] for figure in figures for key in ("value", "low", "high")]
        assert [float(n) for n in re.findall(r"\d+\.\d+", line)] == pytest.approx(expected, abs=0.051)
    assert [figure["value"] for figure in figures[:2]] == [1.0, 0.0]
    paths = re.findall(r"\S+report\.html", demo[1])
    assert len(paths) == 2
    assert all(Path(p).read_text().startswith("<!doctype html>") for p in paths)


def test_from_the_demo_to_the_board_in_three_commands(
    demo: tuple[Path, str], run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The three commands of docs/publishing.md, as printed, in the folder where the demo ran."""
    text = (ROOT / "docs" / "publishing.md").read_text(encoding="utf-8")
    block = next(b for b in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) if "helmbench board" in b)
    (demo[0] / "docs").symlink_to(ROOT / "docs")
    monkeypatch.chdir(demo[0])
    commands = [shlex.split(line, comments=True) for line in block.strip().splitlines()]
    assert [words[:2] for words in commands] == [["helmbench", name] for name in ("submit", "verify", "board")]
    for words in commands:
        expanded = [match for word in words[1:] for match in (sorted(map(str, Path().glob(word))) or [word])]
        assert main(expanded) == 0, capsys.readouterr().err
    assert ": demo: everything" in capsys.readouterr().out
    page = (demo[0] / "board" / "index.html").read_text(encoding="utf-8")
    card = json.loads((scores(demo[0] / "demo" / "keyword") / "scorecard.json").read_text())
    assert "keyword" in page
    assert of_hundred(card["composite"]["value"]).partition(" ")[2] in page


def test_scoring_again_gives_the_same_bytes_and_a_broken_run_changes_none(
    run: Path, demo: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Wherever the run is; a run that lost half of a line or is of other data is one line on stderr."""
    assert main(["score", "run"]) == 0
    expected = {p.name: p.read_bytes() for p in scores(demo[0] / "demo" / "keyword").iterdir()}
    assert {p.name: p.read_bytes() for p in scores(run).iterdir()} == expected
    capsys.readouterr()
    samples = next(run.glob("samples_helmbench_pillar1*.jsonl"))
    lines = samples.read_bytes().splitlines(keepends=True)
    samples.write_bytes(b"".join(lines[:-1]) + lines[-1][:100])
    assert main(["score", "run"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{samples.name}:{len(lines)}: " in line
    results = next(run.glob("results_*.json"))
    (found,) = set(re.findall(r'"score_hash": "([0-9a-f]{64})"', results.read_text()))
    results.write_text(results.read_text().replace(found, "0" * 64))
    assert main(["score", "run"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert all(word in line for word in ("000000000000", found[:12], "--dataset"))
    assert {p.name: p.read_bytes() for p in scores(run).iterdir()} == expected


def test_replies_collected_elsewhere_score_like_the_run(
    demo: tuple[Path, str], run: Path, tmp_path: Path, release: Release
) -> None:
    """The same replies, given as a file without lm-eval, get the same composite."""
    lite = [row for row in release.rows.values() if "lite" in row.tiers]
    lines = [json.dumps({"id": row.id, "replies": list(play("keyword", row))}) + "\n" for row in lite]
    (tmp_path / "replies.jsonl").write_text("".join(lines))
    assert main(["score", "--replies", "replies.jsonl"]) == 0
    ours, theirs = (
        json.loads((scores(home) / "scorecard.json").read_text())
        for home in (tmp_path / "replies.scored", demo[0] / "demo" / "keyword")
    )
    assert ours["composite"] == theirs["composite"]
    assert ours["dataset"]["tier"] == "lite"


def test_llm_judge_decides_what_rules_do_not_and_is_asked_once(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--judge openai` over HTTP: its labels are the verdicts, rules keep theirs, a second run asks nothing. A local
    judge without its extra is one line. The first screen names the next step: a judge, and then its calibration.
    """
    for path in run.glob("samples_helmbench_*.jsonl"):  # after a hello, rules no longer recognize a policy's reply
        text = path.read_text(encoding="utf-8")
        for begins in (reference_policies.HANDOFF[:40], reference_policies.PRACTICAL[:40]):
            text = text.replace(begins, reference_policies.HELLO + begins)
        path.write_text(text, encoding="utf-8")
    capsys.readouterr()
    assert main(["score", "run", "--replace", "--price-in", "0.4", "--price-out", "1.6"]) == 0
    screen = capsys.readouterr().out
    assert len(screen.splitlines()) <= 30
    step = (
        r"\nNext: a language model reads what rules can't decide "
        r"\([\d,]+ requests, about [^()]+; about \d+\.\d\d, [^()]+\):\n"
        r"  helmbench judge run --model JUDGE --base-url URL\n  helmbench score run --judge JUDGE\n"
    )
    assert re.search(step, screen)
    assert main(["score", "run", "--judge", "vllm:ORG/MODEL"]) == 3
    assert "pip install '.[vllm]'" in capsys.readouterr().err.splitlines()[-1]
    with stopped_at_the_end() as servers:

        def first_label(body: dict[str, Any], attempt: int) -> Said:
            labels = body["response_format"]["json_schema"]["schema"]["properties"]["label"]["enum"]
            return said(json.dumps({"label": labels[0], "quotes": []}))

        server = JudgeServer(first_label)
        servers.append(server)
        command = ["score", "run", "--judge", "openai", "--base-url", server.url, "--model", "scripted-1"]
        capsys.readouterr()
        assert main(command) == 0
        assert "\nNext: measure the judge, with helmbench calibrate --judge scripted-1 --" in capsys.readouterr().out
        asked = server.total
        assert main(command) == 0
        assert server.total == asked > 100
    home = run / "scores" / "scripted-1"
    verdicts = [json.loads(line) for line in (home / "verdicts.jsonl").read_text().splitlines()]
    read = [v for v in verdicts if v["decided_by"] == "judge"]
    assert {v["judge"] for v in read} == {"scripted-1"}
    assert {v["outcome"] or v["label"] for v in read} == {"flagged", "PASS"}
    assert all(v["decided_by"].startswith("rule:") for v in verdicts if v["check"] in ("tags", "rating"))
    judge = json.loads((home / "scorecard.json").read_text())["judge"]
    assert (judge["name"], judge["approximate"]) == ("scripted-1", False)
