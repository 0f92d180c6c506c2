"""The demo as a newcomer runs it, and the judge's command line on good and bad input."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import reference_policies
from support.scores import scores

from dataset_builder.release import Release, open_release

ROOT = Path(__file__).resolve().parents[1]


def judge(*arguments: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "helmbench.cli", "score", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=os.environ | environment, timeout=300)


def refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """Exit code not 0, one line, no traceback, and it names what it should."""
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    for word in words:
        assert word in done.stderr


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """One run of scripts/demo.py: its folder and what it printed."""
    out = tmp_path_factory.mktemp("demo")
    command = [
        sys.executable,
        str(ROOT / "scripts" / "demo.py"),
        "--out",
        str(out / "demo"),
        "--dataset",
        str(out / "helmbench"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=out, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return out, done.stdout


@pytest.fixture
def run_copy(demo: tuple[Path, str], tmp_path: Path) -> Path:
    """The demo's keyword run, to be damaged; the dataset beside it."""
    shutil.copytree(demo[0] / "helmbench", tmp_path / "helmbench")
    return Path(shutil.copytree(demo[0] / "demo" / "keyword", tmp_path / "run"))


@pytest.fixture
def read_copy(run_copy: Path) -> Path:
    """The same run, its free replies after a hello: rules know the policies' by heart and leave no judge anything."""
    changed = 0
    for path in run_copy.glob("samples_helmbench_*.jsonl"):
        text = path.read_text(encoding="utf-8")
        for begins in (reference_policies.HANDOFF[:40], reference_policies.PRACTICAL[:40]):
            changed += text.count(begins)
            text = text.replace(begins, reference_policies.HELLO + begins)
        path.write_text(text, encoding="utf-8")
    assert changed > 200
    return run_copy


def test_demo_prints_both_composites_with_intervals(demo: tuple[Path, str]) -> None:
    """The last lines give composite, sensitivity and specificity of both policies, as their scorecards have them."""
    for model in ("keyword", "always-escalate"):
        card = json.loads((scores(demo[0] / "demo" / model) / "scorecard.json").read_text())
        line = next(text for text in demo[1].splitlines() if text.startswith(model))
        figures = [float(n) for n in re.findall(r"-?\d+\.\d+", line)]
        c, d = card["composite"], card["detection"]
        expected = [
            c["value"],
            c["low"],
            c["high"],
            *(d["sensitivity"][k] for k in ("value", "low", "high")),
            *(d["specificity"][k] for k in ("value", "low", "high")),
        ]
        assert figures == pytest.approx(expected, abs=0.051)


def test_demo_names_reports_that_exist(demo: tuple[Path, str]) -> None:
    """Both report paths are printed and are pages."""
    paths = re.findall(r"\S+report\.html", demo[1])
    assert len(paths) == 2
    assert all(Path(p).read_text().startswith("<!doctype html>") for p in paths)


def test_always_escalate_catches_all_and_spares_nobody(demo: tuple[Path, str]) -> None:
    """Its sensitivity is 1, its specificity 0, and detection therefore exactly 0."""
    detection = json.loads((scores(demo[0] / "demo" / "always-escalate") / "scorecard.json").read_text())["detection"]
    assert (detection["sensitivity"]["value"], detection["specificity"]["value"]) == (1.0, 0.0)
    assert abs(detection["informedness"]["value"]) < 1e-12


def test_from_the_demo_to_the_board_in_three_commands(demo: tuple[Path, str]) -> None:
    """The three commands of docs/publishing.md, as printed, in the folder where the demo ran."""
    page_text = (ROOT / "docs" / "publishing.md").read_text(encoding="utf-8")
    block = next(b for b in re.findall(r"```sh\n(.*?)```", page_text, re.DOTALL) if "helmbench board" in b)
    commands = [line.partition(" #")[0].strip() for line in block.strip().splitlines()]
    assert len(commands) == 3
    for folder in ("docs", "scripts"):
        (demo[0] / folder).symlink_to(ROOT / folder)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    said = [
        subprocess.run(
            ["bash", "-c", c], capture_output=True, text=True, cwd=demo[0], env=os.environ | {"PATH": path}, timeout=300
        )
        for c in commands
    ]
    assert [done.returncode for done in said] == [0, 0, 0], "\n".join(done.stdout + done.stderr for done in said)
    assert "demo" in said[1].stdout
    page = (demo[0] / "board" / "index.html").read_text(encoding="utf-8")
    card = json.loads((scores(demo[0] / "demo" / "keyword") / "scorecard.json").read_text())
    assert "keyword" in page
    assert f"{card['composite']['value']:.1f}".replace("-", "−") in page


def test_scoring_again_gives_the_same_bytes(run_copy: Path, demo: tuple[Path, str]) -> None:
    """Verdicts, scorecard, summary and report do not depend on when or where they are made."""
    assert judge(run_copy, cwd=run_copy.parent).returncode == 0
    ours, theirs = scores(run_copy), scores(demo[0] / "demo" / "keyword")
    for name in ("verdicts.jsonl", "scorecard.json", "summary.md", "report.html"):
        assert (ours / name).read_bytes() == (theirs / name).read_bytes(), name


def test_replies_collected_elsewhere_score_like_the_run(demo: tuple[Path, str], tmp_path: Path) -> None:
    """The same replies, given as a file without lm-eval, earn the same composite."""
    release = open_release(demo[0] / "helmbench")
    lines = [
        json.dumps({"id": i, "replies": played(release, i)}) for i, row in release.rows.items() if "lite" in row.tiers
    ]
    (tmp_path / "replies.jsonl").write_text("\n".join(lines) + "\n")
    done = judge("--replies", "replies.jsonl", "--dataset", demo[0] / "helmbench", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    ours = json.loads((scores(tmp_path / "replies.scored") / "scorecard.json").read_text())
    theirs = json.loads((scores(demo[0] / "demo" / "keyword") / "scorecard.json").read_text())
    assert ours["composite"] == theirs["composite"]
    assert ours["dataset"]["tier"] == "lite"


def played(release: Release, identity: str) -> list[str]:
    """What the keyword policy says on every live turn of a sample."""
    history: list[dict[str, str]] = []
    replies: list[str] = []
    for message in [*release.rows[identity].messages, None]:
        if message is None or message.content is None:
            replies.append(reference_policies.reply("keyword", history, 0))
            history.append({"role": "assistant", "content": replies[-1]})
        else:
            history.append({"role": message.role, "content": message.content})
    return replies


class TestRefusals:
    """Every stage refuses bad input with one line, and what was written before stays as it was."""

    def test_no_dataset(self, run_copy: Path) -> None:
        """Without a build the judge says how to make one."""
        refused(
            judge(run_copy, "--dataset", run_copy.parent / "nowhere", cwd=run_copy.parent),
            "nowhere",
            "helmbench build",
        )

    def test_edited_dataset(self, run_copy: Path) -> None:
        """A scoring.yaml edited after the build is found by its hash."""
        path = run_copy.parent / "helmbench" / "scoring.yaml"
        path.write_text(path.read_text().replace("PARTIAL: 0.5", "PARTIAL: 0.9"))
        refused(judge(run_copy, cwd=run_copy.parent), "scoring.yaml", "edited")

    def test_half_written_parquet(self, run_copy: Path) -> None:
        """A parquet cut in the middle is named."""
        path = run_copy.parent / "helmbench" / "data" / "all" / "test-00000-of-00001.parquet"
        path.write_bytes(path.read_bytes()[:5000])
        refused(judge(run_copy, cwd=run_copy.parent), "data/all", "is incomplete")

    def test_run_of_another_version(self, run_copy: Path) -> None:
        """A run that was made on other content is refused, both hashes named."""
        path = next(run_copy.glob("results_*.json"))
        found = re.findall(r'"score_hash": "([0-9a-f]{64})"', path.read_text())[0]
        path.write_text(path.read_text().replace(found, "0" * 64))
        refused(judge(run_copy, cwd=run_copy.parent), "000000000000", found[:12], "--dataset")

    def test_empty_folder(self, run_copy: Path, tmp_path: Path) -> None:
        """A folder without a run is named."""
        (tmp_path / "empty").mkdir()
        refused(judge("empty", cwd=tmp_path), "empty", "results_*.json")

    def test_truncated_samples(self, run_copy: Path) -> None:
        """A samples file cut in its last line is named with the line, and the old verdicts stay."""
        before = (scores(run_copy) / "verdicts.jsonl").read_bytes()
        path = next(run_copy.glob("samples_helmbench_pillar1*.jsonl"))
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[:-1]) + lines[-1][:100])
        refused(judge(run_copy, cwd=run_copy.parent), path.name, f":{len(lines)}:", "truncated")
        assert (scores(run_copy) / "verdicts.jsonl").read_bytes() == before

    def test_lost_samples(self, run_copy: Path) -> None:
        """A samples file that lost whole lines is caught by the run's own count."""
        path = next(run_copy.glob("samples_helmbench_pillar1*.jsonl"))
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-3]))
        refused(judge(run_copy, cwd=run_copy.parent), path.name, "truncated")

    def test_unknown_judge(self, run_copy: Path) -> None:
        """A judge that doesn't exist is named beside those that do."""
        refused(judge(run_copy, "--judge", "oracle", cwd=run_copy.parent), "oracle", "offline", "openai")

    def test_judge_without_endpoint(self, run_copy: Path) -> None:
        """--judge openai needs to know whom to ask."""
        refused(judge(run_copy, "--judge", "openai", cwd=run_copy.parent), "--base-url", "--model")

    def test_unreachable_judge(self, read_copy: Path) -> None:
        """A closed port is one line, and the key is not in it."""
        done = judge(
            read_copy,
            "--judge",
            "openai",
            "--base-url",
            "http://127.0.0.1:9/v1",
            "--model",
            "m",
            "--max-retries",
            "2",  # six, the default, wait for half a minute
            cwd=read_copy.parent,
            OPENAI_API_KEY="sk-secret-key",
        )
        assert done.returncode == 3
        assert "connection refused" in done.stderr
        assert "Traceback" not in done.stderr
        assert "sk-secret-key" not in done.stdout + done.stderr

    def test_port_in_use(self, tmp_path: Path) -> None:
        """The reference server names the port that is taken."""
        with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as taken:
            port = str(taken.server_address[1])
            done = subprocess.run(
                [sys.executable, str(ROOT / "scripts" / "reference_server.py"), "--port", port],
                capture_output=True,
                text=True,
                timeout=60,
            )
        refused(done, port)


@contextmanager
def scripted_judge() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A real loopback endpoint that gives every reply the first label it may give."""
    asked: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            return

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked.append(body)
            label = body["response_format"]["json_schema"]["schema"]["properties"]["label"]["enum"][0]
            message = {"role": "assistant", "content": json.dumps({"label": label, "quotes": []})}
            answer = {
                "id": "x",
                "object": "chat.completion",
                "created": 0,
                "model": body["model"],
                "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            }
            data = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1", asked
        finally:
            server.shutdown()
            thread.join()


def test_llm_judge_decides_what_rules_do_not_and_is_asked_once(read_copy: Path) -> None:
    """`--judge openai` over real HTTP: its labels are the verdicts, rules keep theirs, a second run asks nothing."""
    with scripted_judge() as (url, asked):
        done = judge(read_copy, "--judge", "openai", "--base-url", url, "--model", "scripted-1", cwd=read_copy.parent)
        assert done.returncode == 0, done.stderr
        first = len(asked)
        assert (
            judge(
                read_copy, "--judge", "openai", "--base-url", url, "--model", "scripted-1", cwd=read_copy.parent
            ).returncode
            == 0
        )
        assert len(asked) == first > 0
    home = read_copy / "scores" / "scripted-1"
    verdicts = [json.loads(line) for line in (home / "verdicts.jsonl").read_text().splitlines()]
    read = [v for v in verdicts if v["decided_by"] == "judge"]
    assert {v["judge"] for v in read} == {"scripted-1"}
    assert {v["outcome"] or v["label"] for v in read} == {"flagged", "PASS"}
    assert all(v["decided_by"].startswith("rule:") for v in verdicts if v["check"] in ("tags", "rating"))
    card = json.loads((home / "scorecard.json").read_text())
    assert card["judge"]["name"] == "scripted-1"
    assert not card["judge"]["approximate"]
