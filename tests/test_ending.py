"""Runs that fail say so at once and with their exit code; those that don't, end with what to do next. By the real
`lm_eval` command, against loopback servers.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import reference_server
from helmbench.cli.app import main
from helmbench.cli.common import UNANSWERED, UNREACHABLE
from support.judge_server import JudgeServer, Said, said, stopped_at_the_end
from support.lm_eval_runs import CHAT, free_port, lm_eval_command

from dataset_builder.release import Release
from judge.replies.lm_eval_log import read_run
from lm_eval_tasks.helmbench import lifecycle
from lm_eval_tasks.helmbench.lifecycle import SETTINGS, check_settings

ROOT = Path(__file__).resolve().parents[1]
KEPT = ("--log_samples", "--output_path", "runs of mine")
NOTHING = Said(200, {}, b"{}")  # may be paid for, and is no reply
SHORT = ("--tasks", "helmbench_pillar4_lite", "--limit", "3")


def lm_eval(dataset: Path, cwd: Path, arguments: str, *words: str) -> subprocess.CompletedProcess[str]:
    """The command, in this process."""
    return lm_eval_command(dataset, cwd, "--model_args", arguments, *words)


def at(url: str, name: str = "keyword") -> str:
    return f"model={name},base_url={url}/chat/completions,num_concurrent=8,max_retries=1"


def refused(done: subprocess.CompletedProcess[str], cwd: Path) -> str:
    """The one line that a refused run ends with; nothing was written."""
    assert done.returncode not in (0, None)
    assert "Traceback" not in done.stderr
    assert not [*cwd.rglob("*.json*")]
    line = done.stderr.splitlines()[-1]
    assert line.startswith("helmbench: ")
    return line


@pytest.fixture
def serve() -> Iterator[Callable[..., JudgeServer]]:
    """Starts servers that give each request the answer of a function of its number, from 0."""
    with stopped_at_the_end() as started:

        def start(answer: Callable[[int], Said]) -> JudgeServer:
            numbers = iter(range(10**6))
            started.append(JudgeServer(lambda body, attempt: answer(next(numbers))))
            return started[-1]

        yield start


# --- before the first request
# ---------------------------------------------------------------------------------------------


def test_a_server_that_is_down_ends_the_run(dataset: Path, tmp_path: Path) -> None:
    """No ten minutes of waiting: nobody listens at that port."""
    url = f"http://127.0.0.1:{free_port()}/v1"
    line = refused(lm_eval(dataset, tmp_path, at(url), *CHAT, *KEPT, *SHORT), tmp_path)
    assert line == (
        f"helmbench: nothing answers at {url}/chat/completions: connection refused; is the server up, and is the port "
        "right?"
    )


def test_a_wrong_path_and_a_wrong_model_end_the_run(dataset: Path, tmp_path: Path) -> None:
    """No completion was given, of a model that isn't there or at a path that is none; what there is, is named."""
    with reference_server.start() as server:
        path = lm_eval(dataset, tmp_path, at(server.url.replace("/v1", "/v2")), *CHAT, *KEPT, *SHORT)
        model = lm_eval(dataset, tmp_path, at(server.url, "keywork"), *CHAT, *KEPT, *SHORT)
        assert {entry["status"] for entry in server.log} == {404}
        assert len(server.log) == 1  # one greeting, since the list may be short
    assert f"fail: HTTP 404 no POST /v2/chat/completions; expected POST {reference_server.CHAT}" in (
        refused(path, tmp_path)
    )
    assert "HTTP 404 model_not_found" in refused(model, tmp_path)
    assert refused(model, tmp_path).endswith("did you mean keyword?")


def test_a_wrong_key_ends_the_run(
    dataset: Path, tmp_path: Path, serve: Callable[..., JudgeServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by the first completions, where the list is open to everybody."""
    server = serve(lambda n: said("hello"))
    server.models, server.key = Said(200, {}, b'{"data": [{"id": "keyword"}]}'), "sk-right"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong-wrong")
    done = lm_eval(dataset, tmp_path, at(server.url), *CHAT, *KEPT, *SHORT)
    assert "fail: HTTP 401 invalid_api_key" in refused(done, tmp_path)
    assert "sk-wrong" not in done.stderr + done.stdout
    assert server.total == 0


def test_what_nobody_could_score_is_not_paid_for(dataset: Path, tmp_path: Path) -> None:
    """No request goes out. (--log_samples without --output_path is refused by lm-eval itself.)"""
    (tmp_path / "file").write_text("")
    missing = "--log_samples is missing: without the replies nothing can be scored"
    cases = {
        "": missing,
        "--output_path runs": missing,
        "--log_samples --output_path run.json": "--output_path run.json: `helmbench score` reads folders",
        "--log_samples --output_path file/runs": "/file is a file; name a folder, such as runs",
    }
    with reference_server.start() as server:
        for words, why in cases.items():
            assert why in refused(lm_eval(dataset, tmp_path, at(server.url), *CHAT, *SHORT, *words.split()), tmp_path)
        assert server.requests == []


def test_samples_without_a_folder_are_refused_by_lm_eval(dataset: Path, tmp_path: Path) -> None:
    """Should it stop doing so, the run would be lost."""
    done = lm_eval(dataset, tmp_path, "model=keyword", *CHAT, *SHORT, "--log_samples")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("ValueError: Specify --output_path if providing --log_samples")


def test_an_unknown_or_invalid_setting_is_refused(dataset: Path, tmp_path: Path) -> None:
    """Ignored, it would measure another prompt than the team thinks. All that are known are listed."""
    with reference_server.start() as server:
        setting = ("--metadata", json.dumps({"helmbench_conditon": "prompt.txt"}))
        line = refused(lm_eval(dataset, tmp_path, at(server.url), *CHAT, *KEPT, *SHORT, *setting), tmp_path)
        assert server.requests == []
    assert all(f"{name} (" in line for name in SETTINGS)
    for name, meant in {
        "helmbench_conditon": "helmbench_condition",
        "helmbnech_repeats": "helmbench_repeats",
        "condition": "helmbench_condition",
    }.items():
        with pytest.raises(SystemExit, match=f"unknown setting '{name}'; did you mean '{meant}'"):
            check_settings({name: 2})
    for name, value, expected in (
        ("helmbench_patience", "long", "expected seconds, 0 or more"),
        ("helmbench_patience", -1, "expected seconds, 0 or more"),
        ("helmbench_prompt", "plain", "expected 'transcript', or leave it out"),
    ):
        with pytest.raises(SystemExit, match=expected):
            check_settings({name: value})
    check_settings({"model": "m", "pretrained": "p", "helmbench_repeats": 2})


def test_every_setting_that_is_read_is_known() -> None:
    """And every one that is known is read, and stands in the documents."""
    folder = ROOT / "lm_eval_tasks" / "helmbench"
    code = "".join(p.read_text(encoding="utf-8") for p in folder.glob("*.py") if p.name != "lifecycle.py")
    pages = "".join(p.read_text(encoding="utf-8") for p in [*(ROOT / "docs").glob("*.md"), folder / "README.md"])
    for name in SETTINGS:
        assert name in code or name == "helmbench_prompt"
        assert name in pages


# --- at the end
# -----------------------------------------------------------------------------------------------------------


def test_the_last_lines_say_what_comes_next(dataset: Path, tmp_path: Path, release: Release) -> None:
    """In a real process: after lm-eval's tables, once for all tasks; the command that they name scores the run."""
    tasks = ("--tasks", "helmbench_pillar4_lite,helmbench_triage_bare_lite", "--limit", "3")
    metadata = ("--metadata", json.dumps({"helmbench_dataset": str(dataset)}))
    with reference_server.start() as server:
        options = ("--model_args", at(server.url), *CHAT, *KEPT, *tasks, *metadata)
        command = [sys.executable, "-m", "lm_eval", "run", *options, "--include_path", str(ROOT / "lm_eval_tasks")]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    *tables, last, following = done.stdout.splitlines()
    assert any(line.startswith("|pillar4") for line in tables)
    assert last.startswith("HELMbench: the figures above are what rules alone decide, not a score")
    assert done.stdout.count("HELMbench: ") == 1
    words = shlex.split(following.removeprefix("Next: "))
    assert words == ["helmbench", "score", "runs of mine/keyword", "--dataset", str(dataset)]
    assert read_run(tmp_path / words[2], release).replies
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        assert main([*words[1:], "--quiet"]) == 0


def test_nothing_answered_is_no_success(dataset: Path, tmp_path: Path, serve: Callable[..., JudgeServer]) -> None:
    """Each reply failed, few enough not to end the run: everything is written, the code is 5, and `score`'s too."""
    server = serve(lambda n: NOTHING)
    done = lm_eval(dataset, tmp_path, at(server.url), *CHAT, *KEPT, *SHORT)
    assert done.returncode == UNANSWERED == lifecycle.UNANSWERED
    assert done.stderr.splitlines()[-1].startswith(
        "helmbench: nothing was answered (3 × an answer without choices); at most 2% may be missing, so no figure of "
        "this run counts"
    )
    assert "|" not in done.stdout
    run = tmp_path / "runs of mine" / "keyword"
    (samples,) = run.glob("samples_*.jsonl")
    assert len(samples.read_text(encoding="utf-8").splitlines()) == 3
    assert main(["score", str(run), "--dataset", str(dataset), "--quiet"]) == UNANSWERED


@pytest.mark.parametrize(("lost", "code"), [(1, 0), (3, UNANSWERED)])
def test_a_run_of_several_tasks_is_judged_as_one(
    dataset: Path, tmp_path: Path, serve: Callable[..., JudgeServer], lost: int, code: int
) -> None:
    """One of eighty replies is within what may be missing (2 %), though it is a larger share of its own task; three
    aren't, and `--predict_only`, which computes nothing, is no excuse.
    """
    server = serve(lambda n: NOTHING if n < lost else said("hello"))
    tasks = ("--tasks", "helmbench_pillar4_lite,helmbench_pillar3_lite", "--limit", "40", "--predict_only")
    done = lm_eval(dataset, tmp_path, at(server.url), *CHAT, "--output_path", "runs", *tasks)
    assert server.total == 80
    assert done.returncode == code, done.stderr[-3000:]
    said_of_it = f"{lost} of 80 replies are missing ({lost} × an answer without choices)"
    if code:
        assert f"helmbench: {said_of_it}; at most 2% may be missing" in done.stderr.splitlines()[-1]
    else:
        *_, missing, _, following = done.stdout.splitlines()
        assert missing == f"HELMbench: {said_of_it} and count as unscored."
        assert following == "Next: helmbench score runs/keyword"
    assert len([*(tmp_path / "runs").rglob("samples_*.jsonl")]) == 2


def test_a_run_that_could_not_be_written_is_no_success(dataset: Path, tmp_path: Path) -> None:
    """Lm-eval warns and ends with 0; here a file has the name of the model's folder."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "keyword").write_text("")
    with reference_server.start() as server:
        done = lm_eval(dataset, tmp_path, at(server.url), *CHAT, "--log_samples", "--output_path", "runs", *SHORT)
    assert done.returncode == UNREACHABLE == lifecycle.UNWRITTEN
    assert "helmbench: lm-eval could not write the run (runs/keyword/results_" in done.stderr.splitlines()[-1]
