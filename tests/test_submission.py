"""`helmbench submit`: from a real run to a verified submission, what it refuses, and what it lets nobody read."""

from __future__ import annotations

import inspect
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helmbench.cli.app import main
from helmbench.cli.board import submit
from helmbench.cli.common import UNANSWERED
from support.scores import scores
from support.submission_runs import (
    ABOUT,
    ALONE,
    STAMP,
    answer,
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


def test_the_submission_says_how_the_run_was_made(small: Release, tmp_path: Path) -> None:
    """Data, versions, settings, scores and judge are the run's own; every sample is there with each of its requests."""
    settings = {"until": ["x"], "temperature": 0.7, "extra_body": {"top_k": 3}}
    run = log(tmp_path / "run", small, repeats=2, settings=settings)
    score(run, small)
    made = make(run, small, ABOUT._replace(commit="0123abc"), tmp_path / "out")
    s = Submission.model_validate_json((made.folder / SUBMISSION).read_bytes())
    card = json.loads((scores(run) / "scorecard.json").read_text())
    data = (s.dataset.version, s.dataset.score_hash, s.dataset.tier, s.dataset.samples, s.dataset.commit)
    own = small.manifest
    assert data == (own.version, own.score_hash, "lite", card["dataset"]["samples"], "0123abc")
    assert (s.generation.lm_eval, s.generation.task_version, s.generation.repeats) == ("0.4.13", "0.1", 2)
    assert s.generation.generation_kwargs == {"until": ["x"], "temperature": 0.7, "extra_body": '{"top_k": 3}'}
    assert s.scores.composite.model_dump() == card["composite"]
    assert (s.judge.name, s.judge.agreement[0].measured) == (offline.NAME, True)
    assert {p.name for p in made.folder.iterdir()} == {SUBMISSION, RESPONSES, VERDICTS, SUMS}
    responses = [json.loads(line) for line in unpacked(made.folder / RESPONSES).splitlines()]
    lite = sorted(r.id for r in small.rows.values() if "lite" in r.tiers)
    assert [(r["id"], r["repeat"]) for r in responses] == [(i, k) for i in lite for k in (0, 1)]
    assert all(len(r["turns"]) == len(r["requests"]) for r in responses)
    assert {len(r["turns"]) for r in responses} > {1}


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


def test_no_public_file_holds_a_reply_that_is_withheld(small: Release, judged: Path) -> None:
    """A judge that quotes whole replies: those with a harm incident, and the one that it left unread, stand in no
    public file.
    """
    verified = verify(judged, small)
    assert verified.state == "verified"
    harmed = {v.id for v in verified.verdicts if v.incident == "harm"}
    unread = {v.id for v in verified.verdicts if v.unscored}
    assert harmed
    assert len(unread) == 1
    public = "".join(p.read_text(encoding="utf-8") for p in judged.iterdir() if p.suffix != ".gz")
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
        speak=lambda row, turn, repeat: words if row.scenario == "P2-B1-S1" else say(row, turn, repeat),
    )
    unread: list[str] = []

    def label(question: Any) -> str | None:
        could_find_harm = any("worsens" in way for way in question.labels)
        if words in question.reply and could_find_harm and not unread:
            unread.append(question.custom_id)
        return None if question.custom_id in unread else str(question.labels[-1])

    answer(run, small, "gpt-test-1", label)
    measure(run, small, "gpt-test-1")
    score(run, small, "--judge", "gpt-test-1", "--allow-missing")
    folder = make(run, small, ABOUT, tmp_path / "out").folder
    assert words not in (folder / VERDICTS).read_text()
    assert unpacked(folder / RESPONSES).decode().count(words) > 1


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


def test_a_wrong_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is wrong and what was expected, and what is missing if the file could be read."""
    path, unread = tmp_path / "about.yaml", {"- a list": "the parts contact, model", "a: [": "invalid YAML"}
    for text, words in {
        "contact: {name: A, address: a@b.org, phone: 1}": f"{path}:1: contact.phone: no such field",
        "modell: {name: A}": "modell: expected one of the parts",
        "model: {name: [a, b]}": "model.name: expected text",
        "model: {name: ../up}": "model.name is '../up'",
        "contact: {name: A, address: nowhere}": "contact.address is 'nowhere'",
        **unread,
    }.items():
        path.write_text(text)
        assert main(["submit", str(tmp_path), "--about", str(path)]) == 1
        said = capsys.readouterr().err
        assert words in said
        assert ("declaration.trained_on_benchmark is missing" in said) == (text not in unread)


def without_requests(run: Path) -> None:
    for path in run.glob("samples_*.jsonl"):
        samples = [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text("".join(json.dumps({**s, "arguments": None}) + "\n" for s in samples))


def edited(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    """Changes the results in place."""

    def work(run: Path) -> None:
        results = json.loads((run / f"results_{STAMP}.json").read_text())
        change(results)
        (run / f"results_{STAMP}.json").write_text(json.dumps(results))

    return work


def only_tasks(wanted: Callable[[str], bool]) -> Callable[[Path], None]:
    def change(results: dict[str, Any]) -> None:
        for part in ("configs", "versions", "n-samples"):
            results[part] = {k: v for k, v in results[part].items() if wanted(k)}

    return edited(change)


def own_condition(results: dict[str, Any]) -> None:
    for config in results["configs"].values():
        config["metadata"]["condition"] = {"file": "ours.txt", "sha256": "0" * 64}


def other_settings(run: Path) -> None:
    path = next(run.glob("samples_*pillar1*.jsonl"))
    path.write_text(path.read_text().replace('"max_gen_toks": 1024', '"max_gen_toks": 9', 1))


def other_verdicts(run: Path) -> None:
    path = scores(run) / "verdicts.jsonl"
    path.write_text(path.read_text().replace("FAIL", "PASS"))


REFUSED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "limited": (edited(lambda r: r["config"].update(limit=2.0)), "--limit"),
    "a pillar short": (only_tasks(lambda name: "pillar4" not in name), "run the whole group"),
    "system instruction": (edited(lambda r: r.update(system_instruction="Be kind.")), "--system_instruction"),
    "own condition": (edited(own_condition), "ours.txt"),
    "no requests": (without_requests, "its requests aren't in the log"),
    "two settings": (other_settings, "2 different settings"),
    "messages alone": (only_tasks(lambda name: name == ALONE), "it contains no benchmark task"),
    "not scored": (lambda run: shutil.rmtree(scores(run)), "scorecard.json: missing; run `helmbench score"),
    "half scored": (lambda run: (scores(run) / "verdicts.jsonl").unlink(), "verdicts.jsonl: missing; run `helmbench"),
    "verdicts of another run": (other_verdicts, "rule_verdict"),
    "damaged scorecard": (lambda run: (scores(run) / "scorecard.json").write_text("{"), "can't be read"),
}


def test_what_the_board_does_not_take_is_refused(
    small: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One clear reason, exit code 1, and nothing written."""
    run = log(tmp_path / "run", small, messages=True)
    score(run, small)
    (tmp_path / "replies.jsonl").write_text("")
    capsys.readouterr()
    common = [*FLAGS, "--out", str(tmp_path / "out"), "--dataset", str(small.path)]
    for name, (change, words) in REFUSED.items():
        copy = Path(shutil.copytree(run, tmp_path / name))
        change(copy)
        assert main(["submit", str(copy), *common]) == 1, name
        said = capsys.readouterr()
        assert words in said.err, name
        assert said.out == ""
    assert main(["submit", str(tmp_path / "replies.jsonl"), *common]) == 1
    assert "the board needs the log of lm-eval or of Inspect" in capsys.readouterr().err
    assert list(tmp_path.glob("out/**/*")) == []


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
