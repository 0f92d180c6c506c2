"""The lm-eval task over real HTTP: what the model reads is what the dataset says, byte for byte."""

from __future__ import annotations

import json
import shutil
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import lm_eval
import pytest
import reference_server
from helmbench.cli.app import main
from support.lm_eval_runs import lm_eval_command, run_lm_eval
from support.scores import scores

from dataset_builder.release import Release
from judge.replies.lm_eval_log import read_run
from judge.replies.script import live_turns
from judge.scoring.stored import card_in
from lm_eval_tasks.helmbench.task import PINNED, HelmbenchTask

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def served(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]], str]:
    """One lite run of the keyword policy from a foreign directory: its output folder, what the server got, what was
    printed.
    """
    out = tmp_path_factory.mktemp("runs") / "out"
    with reference_server.start() as server:
        done = run_lm_eval(dataset, out, server.url, "helmbench_lite")
        assert done.returncode == 0, done.stderr[-3000:]
        return out, list(server.requests), done.stdout


def test_messages_arrive_as_the_dataset_has_them(
    served: tuple[Path, list[dict[str, Any]], str], release: Release
) -> None:
    """Byte for byte; no sample is dropped, changed or asked twice."""
    lite = [r for r in release.rows.values() if "lite" in r.tiers]
    expected = [json.dumps([m.model_dump() for m in r.messages]) for r in lite if len(r.messages) == 2]
    received = Counter(json.dumps(r["messages"]) for r in served[1] if len(r["messages"]) == 2)
    opening = sum([m.content is None for m in r.messages[2:3]] == [True] for r in lite)
    assert received.total() == len(expected) + opening
    assert {received[messages] for messages in expected} == {1}


def test_live_turn_contains_the_models_own_words(
    served: tuple[Path, list[dict[str, Any]], str], release: Release
) -> None:
    """In a live conversation, turn k+1 holds the model's own reply to turn k, between the scripted user turns."""
    run = read_run(served[0], release)
    talks = {r.id: r.turns for r in run.replies if len(r.turns) > 1}
    assert talks
    received = [r["messages"] for r in served[1]]
    for identity, turns in talks.items():
        script = [m.model_dump() for m in release.rows[identity].messages]
        replies = iter(turns)
        played = [m if m["content"] is not None else {"role": "assistant", "content": next(replies)} for m in script]
        for length in (n for n, m in enumerate(script) if m["content"] is None):
            assert played[:length] in received
        assert played in received


def test_settings_do_not_cut_replies(served: tuple[Path, list[dict[str, Any]], str]) -> None:
    """No stop sequence is sent (lm-eval's default cuts at a blank line), temperature is 0, and room for an answer is
    left.
    """
    for request in served[1]:
        assert not request.get("stop")
        assert request["temperature"] == 0
        assert request["max_tokens"] == 1024


def test_run_records_its_dataset_and_prints_what_rules_decide(
    served: tuple[Path, list[dict[str, Any]], str], release: Release
) -> None:
    """Results name version, score_hash and tier, which the judge compares. lm-eval's own table shows detection
    and rule-decided jobs with a standard error, before any judge.
    """
    results = json.loads(next(served[0].rglob("results_*.json")).read_text())
    for config in results["configs"].values():
        assert config["metadata"]["score_hash"] == release.manifest.score_hash
        assert config["metadata"]["tier"] == "lite"
    assert "sensitivity" in served[2]
    assert "job" in served[2]
    assert results["results"]["helmbench_pillar1_lite"]["sensitivity_stderr,none"] > 0


def test_detect_is_final_in_lm_evals_own_table(small: Release, tmp_path: Path) -> None:
    """Every figure and standard error that lm-eval prints is the scorecard's, no judge decides anything, and the run
    says so. Who flags everyone detects nothing.
    """
    for policy in ("keyword", "always-escalate"):
        with reference_server.start() as server:
            done = run_lm_eval(small.path, tmp_path / "out", server.url, "helmbench_detect", model=policy)
        assert done.returncode == 0, done.stderr[-3000:]
        run = tmp_path / "out" / policy
        assert main(["score", str(run), "--dataset", str(small.path), "-q"]) == 0
        card = card_in(scores(run))
        assert card.judge.by_judge == card.judge.unscored == 0
        assert card.composite.value is None
        found = card.detect
        assert found
        assert found.job
        printed = json.loads(next(run.glob("results_*.json")).read_text())["results"]["helmbench_detect"]
        sides = ("sensitivity", "specificity", "informedness")
        expected = {name: getattr(found.detection, name).value for name in sides} | {"job": found.job.value}
        expected |= {f"prompt_{name}": f.value for name, f in found.prompt.items()}
        named = {k.removesuffix(",none") for k in printed if k.endswith(",none") and "stderr" not in k}
        assert named == {*expected, "answered"}
        for name, value in expected.items():
            assert printed[f"{name},none"] == pytest.approx(value, abs=1e-9), name
            assert printed[f"{name}_stderr,none"] == pytest.approx(found.stderr[name], abs=1e-9), name
    assert abs(printed["informedness,none"]) < 1e-9


def test_repeats_of_a_conversation_are_conversations_of_their_own(
    dataset: Path, tmp_path: Path, release: Release
) -> None:
    """With repeats, each branch carries its own history, and the judge reads as many replies as there were repeats."""
    task = (ROOT / "lm_eval_tasks" / "helmbench" / "helmbench_conversations_lite.yaml").read_text()
    base = f"include: {ROOT / 'lm_eval_tasks' / 'helmbench' / '_helmbench_yaml'}\n"
    (tmp_path / "tasks").mkdir()
    own = task.replace("include: _helmbench_yaml\n", base).replace(
        "task: helmbench_conversations_lite", "task: helmbench_conversations_repeated"
    )
    (tmp_path / "tasks" / "repeated.yaml").write_text(own + "repeats: 2\n")
    with reference_server.start() as server:
        done = run_lm_eval(
            dataset,
            tmp_path / "out",
            server.url,
            str(tmp_path / "tasks" / "repeated.yaml"),
            "--limit",
            "2",
            model="random",
        )
    assert done.returncode == 0, done.stderr[-3000:]
    run = read_run(tmp_path / "out", release)
    assert sorted((r.id, r.repeat) for r in run.replies) == [
        (i, n) for i in sorted({r.id for r in run.replies}) for n in (0, 1)
    ]
    assert all(len(r.turns) == live_turns(release.rows[r.id]) for r in run.replies)


def test_another_lm_eval_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The task uses what is not public API, so it ends before it begins where another version is installed."""
    monkeypatch.setattr(lm_eval, "__version__", "0.4.14")
    with pytest.raises(SystemExit, match=rf"^helmbench: lm-eval 0\.4\.14 is installed.*lm-eval\[api\]=={PINNED}$"):
        HelmbenchTask({})
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [
        *pyproject["dependencies"],
        *pyproject["optional-dependencies"]["hf"],
        *pyproject["optional-dependencies"]["vllm"],
    ]
    assert {a.partition("==")[2] for a in asked if a.startswith("lm-eval")} == {PINNED}


def test_a_dataset_that_is_missing_or_edited_is_one_clear_line(dataset: Path, tmp_path: Path) -> None:
    """Without a build the task says what to run."""
    copy = Path(shutil.copytree(dataset, tmp_path / "helmbench"))
    parquet = copy / "data" / "pillar1" / "test-00000-of-00001.parquet"
    parquet.write_bytes(parquet.read_bytes()[:-1])
    for folder, says in ((tmp_path / "nowhere", "helmbench build"), (copy, "was edited or is incomplete")):
        done = run_lm_eval(folder, tmp_path / "out", "http://127.0.0.1:9", "helmbench_pillar1_lite")
        assert done.returncode != 0
        last = done.stderr.strip().splitlines()[-1]
        assert last.startswith("helmbench: ")
        assert says in last
        assert "Traceback" not in done.stderr


def test_a_chat_server_without_chat_template_is_refused(dataset: Path, tmp_path: Path) -> None:
    """Such a server takes messages, and without --apply_chat_template lm-eval hands over a plain transcript: one line
    says so, nothing is sent.
    """
    with reference_server.start() as server:
        model = ("--model_args", f"model=keyword,base_url={server.url}/chat/completions")
        words = ("--tasks", "helmbench_conversations_lite", "--log_samples", "--output_path", "out")
        done = lm_eval_command(dataset, tmp_path, "--model", "local-chat-completions", *model, *words)
        assert not server.requests
    assert done.returncode != 0
    assert "--apply_chat_template" in done.stderr.strip().splitlines()[-1]
