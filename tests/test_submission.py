"""`helmbench submit`: from a real run to a verified submission, what it refuses, and what it lets nobody read."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import reference_server
from helmbench.cli.app import main
from helmbench.cli.board import submit
from helmbench.cli.common import UNANSWERED
from support.scores import scores
from support.submission_runs import (
    ABOUT,
    ALONE,
    STAMP,
    answer,
    build,
    judged_by_model,
    log,
    measure,
    number,
    say,
    score,
    unpacked,
)

from dataset_builder.release import Release
from judge.offline import judge as offline
from judge.replies.schema import RunError
from leaderboard.schema import RESPONSES, SUBMISSION, SUMS, VERDICTS, Submission
from leaderboard.submit import FIELDS, flag
from leaderboard.submit.pack import make
from leaderboard.verify.verify import verify

ROOT = Path(__file__).resolve().parents[1]
ABOUT_FLAGS = {
    "--organization": "acme",
    "--model": "north-2",
    "--revision": "none",
    "--access": "api",
    "--relation": "independent",
    "--contact-name": "Ann",
    "--contact-address": "ann@example.org",
    "--trained-on-benchmark": "no",
    "--date": "2026-11-22",
}
FLAGS = [part for pair in ABOUT_FLAGS.items() for part in pair]
YAML = """
contact: {name: Ann Ortega, address: ann@example.org}
model: {organization: acme, name: north-2, revision: "2026-10-01", access: api, relation: independent}
declaration:
  trained_on_benchmark: no
  note: none that we know of
"""


@pytest.fixture(scope="module")
def small(small_content: Path, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """A release of seven scenarios."""
    return build(small_content, tmp_path_factory.mktemp("built") / "helmbench")


def command(arguments: list[str | Path], cwd: Path, dataset: Path) -> subprocess.CompletedProcess[str]:
    # As it is typed: lm-eval with all its own tasks.
    environment = os.environ | {"HELMBENCH_DATASET": str(dataset), "HF_HUB_OFFLINE": "1", "PYTHONPATH": ""}
    done = subprocess.run(
        [str(a) for a in arguments], capture_output=True, text=True, cwd=cwd, env=environment, timeout=300
    )
    assert "Traceback" not in done.stderr
    return done


def test_a_real_run_becomes_a_verified_submission(small: Release, tmp_path: Path) -> None:
    """lm_eval, `helmbench score`, `helmbench submit` and `helmbench verify` as they are typed; each says what comes
    next,
    and the last accepts it.
    """
    with reference_server.start() as server:
        program = Path(sys.executable).with_name("lm_eval")
        address = f"model=keyword,base_url={server.url}/chat/completions,num_concurrent=8"
        options: list[str | Path] = [
            "--tasks",
            "helmbench_lite,helmbench_triage_lite",
            "--include_path",
            ROOT / "lm_eval_tasks",
            "--apply_chat_template",
            "--log_samples",
            "--output_path",
            "runs",
        ]
        run = [program, "--model", "local-chat-completions", "--model_args", address, *options]
        done = command(run, tmp_path, small.path)
        assert done.returncode == 0, done.stderr
    assert (
        command([sys.executable, "-m", "helmbench.cli", "score", "runs/keyword"], tmp_path, small.path).returncode == 0
    )
    helmbench = Path(sys.executable).with_name("helmbench")
    made = command([helmbench, "submit", "runs/keyword", *FLAGS], tmp_path, small.path)
    assert made.returncode == 0, made.stderr
    folder = made.stdout.splitlines()[-1].removeprefix("next: helmbench verify ")
    assert re.fullmatch(rf"submissions/{re.escape(small.manifest.version)}/acme__north-2/[0-9a-f]{{12}}", folder)
    done = command([helmbench, "verify", folder, "--json-file", "found.json"], tmp_path, small.path)
    assert done.returncode == 0, done.stdout
    assert f"{folder}: demo" in done.stdout
    (found,) = json.loads((tmp_path / "found.json").read_text())
    assert (found["state"], found["problems"]) == ("demo", [])
    card = json.loads(next(tmp_path.glob("runs/keyword/scores/*/scorecard.json")).read_text())
    assert found["composite"] == card["composite"]


def test_the_submission_says_how_the_run_was_made(small: Release, tmp_path: Path) -> None:
    """Data, versions, settings, scores and judge are the run's own."""
    run = log(
        tmp_path / "run", small, repeats=2, settings={"until": ["x"], "temperature": 0.7, "extra_body": {"top_k": 3}}
    )
    score(run, small)
    made = make(run, small, ABOUT._replace(commit="0123abc"), tmp_path / "out")
    s = Submission.model_validate_json((made.folder / SUBMISSION).read_bytes())
    card = json.loads((scores(run) / "scorecard.json").read_text())
    assert (s.dataset.version, s.dataset.score_hash, s.dataset.tier) == (
        small.manifest.version,
        small.manifest.score_hash,
        "lite",
    )
    assert (s.dataset.samples, s.dataset.commit) == (card["dataset"]["samples"], "0123abc")
    assert (s.generation.lm_eval, s.generation.task_version, s.generation.repeats) == ("0.4.13", "0.1", 2)
    assert s.generation.generation_kwargs == {"until": ["x"], "temperature": 0.7, "extra_body": '{"top_k": 3}'}
    assert s.scores.composite.model_dump() == card["composite"]
    assert (s.judge.name, s.judge.agreement[0].measured) == (offline.NAME, True)
    assert {p.name for p in made.folder.iterdir()} == {SUBMISSION, RESPONSES, VERDICTS, SUMS}


def test_the_same_run_gives_the_same_bytes(small: Release, tmp_path: Path) -> None:
    """Two packings are equal; packing into the same place again is no error, another run there is."""
    run = log(tmp_path / "run", small)
    score(run, small)
    one, two = (make(run, small, ABOUT, tmp_path / out).folder for out in ("a", "b"))
    assert {p.name: p.read_bytes() for p in one.iterdir()} == {p.name: p.read_bytes() for p in two.iterdir()}
    assert make(run, small, ABOUT, tmp_path / "a").folder == one
    with pytest.raises(RunError, match="already exists"):
        make(run, small, ABOUT._replace(submitted="2026-11-23"), tmp_path / "a")
    assert verify(one, small).state == "demo"
    assert sorted(p.name for p in one.parent.iterdir()) == [one.name]


def test_no_public_file_holds_a_reply_that_is_withheld(release: Release, tmp_path: Path) -> None:
    """A judge that quotes whole replies: those with a harm incident, and the one that it left unread, stand in no
    public file.
    """
    folder = judged_by_model(tmp_path, release)
    verified = verify(folder, release)
    assert verified.state == "verified"
    harmed = {v.id for v in verified.verdicts if v.incident == "harm"}
    unread = {v.id for v in verified.verdicts if v.unscored}
    assert len(harmed) >= 3
    assert len(unread) == 1
    public = "".join(p.read_text(encoding="utf-8") for p in folder.iterdir() if p.suffix != ".gz")
    marks = {r.id: [str(number(r.id, k, 0)) for k in range(len(r.turns))] for r in verified.replies}
    assert not [i for i in harmed | unread for mark in marks[i] if mark in public]
    assert any(mark in public for i, own in marks.items() if i not in harmed | unread for mark in own), (
        "the test's judge quotes nothing"
    )
    assert "[withheld]" in public


def test_the_twin_of_a_withheld_reply_is_withheld(small: Release, tmp_path: Path) -> None:
    """A judge may call one of two equal replies unreadable and quote the other: the words would be out."""
    words = "Two people got these same words, and one of them must not be shown."
    run = log(
        tmp_path / "run",
        small,
        tier="core",
        speak=lambda row, turn, repeat: words if row.scenario == "P1-B3-S1" else say(row, turn, repeat),
    )
    unread: list[str] = []

    def label(question: Any) -> str | None:
        if words in question.reply and not unread:
            unread.append(question.custom_id)
        return None if question.custom_id in unread else str(question.labels[-1])

    answer(run, small, "gpt-test-1", label)
    measure(run, small, "gpt-test-1")
    score(run, small, "--judge", "gpt-test-1", "--allow-missing")
    folder = make(run, small, ABOUT, tmp_path / "out").folder
    assert words not in (folder / VERDICTS).read_text()
    assert unpacked(folder / RESPONSES).decode().count(words) > 10


def test_everything_that_is_missing_is_listed_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each with its flag and what is expected."""
    assert main(["submit", str(tmp_path), "--access", "free"]) == 1
    said = capsys.readouterr().err
    for name in (
        "--contact-name",
        "--contact-address",
        "--organization",
        "--model",
        "--revision",
        "--relation",
        "--trained-on-benchmark",
    ):
        assert f"is missing ({name}): " in said
    assert "model.access is 'free'" in said


def test_every_field_has_its_flag() -> None:
    """What is said to be missing is named by an option that the command has."""
    options = {"--" + name.replace("_", "-") for name in inspect.signature(submit).parameters}
    assert {flag(field) for field in FIELDS} <= options


def test_a_file_says_who_submits_and_flags_go_before_it(
    small: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`no` stays a word, and a flag replaces one field."""
    run = log(tmp_path / "run", small)
    score(run, small)
    (tmp_path / "about.yaml").write_text(YAML)
    common = [
        str(run),
        "--about",
        str(tmp_path / "about.yaml"),
        "--out",
        str(tmp_path / "out"),
        "--dataset",
        str(small.path),
    ]
    assert main(["submit", *common, "--model", "north-3", "--run", "first"]) == 0
    s = Submission.model_validate_json(
        (tmp_path / "out" / small.manifest.version / "acme__north-3" / "first" / SUBMISSION).read_bytes()
    )
    assert (s.declaration.trained_on_benchmark, s.declaration.note, s.contact.name) == (
        "no",
        "none that we know of",
        "Ann Ortega",
    )
    assert "next: helmbench verify" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("contact: {name: A, address: a@b.org, phone: 1}", "contact.phone: no such field"),
        ("modell: {name: A}", "modell: expected one of the parts"),
        ("model: {name: [a, b]}", "model.name: expected text"),
        ("model: {name: ../up}", "model.name is '../up'"),
        ("contact: {name: A, address: nowhere}", "contact.address is 'nowhere'"),
        ("- a list", "the parts contact, model, declaration"),
        ("a: [", "invalid YAML"),
    ],
)
def test_a_wrong_file_is_named(text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is wrong and what was expected, and what is missing if the file could be read."""
    (tmp_path / "about.yaml").write_text(text)
    assert main(["submit", str(tmp_path), "--about", str(tmp_path / "about.yaml")]) == 1
    said = capsys.readouterr().err
    assert words in said
    assert ("declaration.trained_on_benchmark is missing" in said) == (text not in ("- a list", "a: ["))


def without_requests(run: Path) -> None:
    for path in run.glob("samples_*.jsonl"):
        samples = [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text("".join(json.dumps({**s, "arguments": None}) + "\n" for s in samples))


def without_pillar4(run: Path) -> None:
    path = run / f"results_{STAMP}.json"
    results = json.loads(path.read_text())
    for part in ("configs", "versions", "n-samples"):
        results[part] = {k: v for k, v in results[part].items() if "pillar4" not in k}
    path.write_text(json.dumps(results))


def without_benchmark(run: Path) -> None:
    path = run / f"results_{STAMP}.json"
    results = json.loads(path.read_text())
    results["configs"] = {k: v for k, v in results["configs"].items() if k == ALONE}
    path.write_text(json.dumps(results))


def in_results(**changes: Any) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        path = run / f"results_{STAMP}.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


def in_metadata(run: Path) -> None:
    path = run / f"results_{STAMP}.json"
    results = json.loads(path.read_text())
    for config in results["configs"].values():
        config["metadata"]["condition"] = {"file": "ours.txt", "sha256": "0" * 64}
    path.write_text(json.dumps(results))


def other_settings(run: Path) -> None:
    path = next(run.glob("samples_*pillar1*.jsonl"))
    path.write_text(path.read_text().replace('"max_gen_toks": 1024', '"max_gen_toks": 9', 1))


def other_verdicts(run: Path) -> None:
    path = scores(run) / "verdicts.jsonl"
    path.write_text(path.read_text().replace("FAIL", "PASS"))


REFUSED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "limited": (in_results(config={"model": "hf", "limit": 2.0}), "--limit"),
    "a pillar short": (without_pillar4, "run the whole group"),
    "system instruction": (in_results(system_instruction="Be kind."), "--system_instruction"),
    "own condition": (in_metadata, "ours.txt"),
    "no requests": (without_requests, "its requests aren't in the log"),
    "two settings": (other_settings, "2 different settings"),
    "messages alone": (without_benchmark, "it contains no benchmark task"),
    "not scored": (lambda run: shutil.rmtree(scores(run)), "scorecard.json: missing; run `helmbench score"),
    "half scored": (lambda run: (scores(run) / "verdicts.jsonl").unlink(), "verdicts.jsonl: missing; run `helmbench"),
    "verdicts of another run": (other_verdicts, "rule_verdict"),
    "damaged scorecard": (lambda run: (scores(run) / "scorecard.json").write_text("{"), "can't be read"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_board_does_not_take_is_refused(
    name: str, small: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One clear reason, exit code 1, and nothing written."""
    run = log(tmp_path / "run", small, messages=name == "messages alone")
    score(run, small)
    capsys.readouterr()
    change, words = REFUSED[name]
    change(run)
    assert main(["submit", str(run), *FLAGS, "--out", str(tmp_path / "out"), "--dataset", str(small.path)]) == 1
    said = capsys.readouterr()
    assert words in said.err
    assert said.out == ""
    assert list(tmp_path.glob("out/**/*")) == []


def test_replies_without_a_log_are_refused(small: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--replies` runs hold no request, so nobody could see what was asked."""
    (tmp_path / "replies.jsonl").write_text("")
    assert main(["submit", str(tmp_path / "replies.jsonl"), *FLAGS, "--dataset", str(small.path)]) == 1
    assert "the board needs the log of lm-eval or of Inspect" in capsys.readouterr().err


def test_a_judge_without_calibration_is_refused(
    small: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unmeasured, and measured as poor: both say why; a calibration may also be given as a file."""
    run = log(tmp_path / "run", small)
    answer(run, small, "gpt-test-1")
    score(run, small, "--judge", "gpt-test-1")
    with pytest.raises(RunError, match=r"judge_not_allowed: .*run `helmbench calibrate`"):
        make(run, small, ABOUT, tmp_path / "out")
    measure(run, small, "gpt-test-1", wrong=0.7)
    score(run, small, "--judge", "gpt-test-1")
    with pytest.raises(RunError, match=r"judge_not_allowed: .*κ over all replies"):
        make(run, small, ABOUT, tmp_path / "out")
    measure(run, small, "gpt-test-1")
    given = (run / "judge" / "gpt-test-1" / "calibration.json").rename(tmp_path / "given.json")
    score(run, small, "--judge", "gpt-test-1", "--calibration", str(given))
    assert make(run, small, ABOUT, tmp_path / "out", calibrations=[given]).verified.state == "verified"


def test_too_many_errors_are_refused(small: Release, tmp_path: Path) -> None:
    """A server that failed on every hard sample leaves nothing to rank."""
    run = log(
        tmp_path / "run", small, finish=lambda row, turn: "error: timeout" if row.scenario == "P4-B2-S1" else "stop"
    )
    assert main(["score", str(run), "--dataset", str(small.path)]) == UNANSWERED
    with pytest.raises(RunError, match=r"unscored: .*expected at most 2%"):
        make(run, small, ABOUT, tmp_path / "out")


def test_paths_and_keys_stay_behind(small: Release, tmp_path: Path) -> None:
    """An argument that is a path keeps its last part, what is named like a key is left out, and both are told."""
    arguments = {
        "pretrained": "/home/ann/models/north-2",
        "api_key": "SECRET-1",
        "base_url": "http://me:SECRET-2@host/v1?key=SECRET-3",
        "dtype": "auto",
    }
    run = log(tmp_path / "run", small, config={"model": "hf", "model_args": arguments, "limit": None})
    score(run, small)
    made = make(run, small, ABOUT, tmp_path / "out")
    assert made.verified.submission is not None
    assert made.verified.submission.generation.arguments == {
        "pretrained": "north-2",
        "base_url": "http://host/v1",
        "dtype": "auto",
    }
    assert any("shortened to north-2" in note for note in made.notes)
    everything = b"".join(p.read_bytes() for p in made.folder.iterdir())
    assert b"SECRET" not in everything
    assert str(tmp_path).encode() not in everything


def test_a_key_among_the_settings_is_refused(small: Release, tmp_path: Path) -> None:
    """A value that looks like a key stops the packing, wherever it stands."""
    run = log(tmp_path / "run", small, settings={"until": [], "user": "sk-" + "a1b2c3d4" * 4})
    score(run, small)
    with pytest.raises(RunError, match=r"secret: .*generation_kwargs\.user"):
        make(run, small, ABOUT, tmp_path / "out")


def test_every_task_of_a_tier_is_packed(small: Release, tmp_path: Path) -> None:
    """Conversations too: as many responses as samples, each with a request for every live turn."""
    run = log(tmp_path / "run", small)
    score(run, small)
    made = make(run, small, ABOUT, tmp_path / "out")
    responses = [json.loads(line) for line in unpacked(made.folder / RESPONSES).splitlines()]
    assert [r["id"] for r in responses] == sorted(r.id for r in small.rows.values() if "lite" in r.tiers)
    assert all(len(r["turns"]) == len(r["requests"]) for r in responses)
    assert {len(r["turns"]) for r in responses} > {1}
