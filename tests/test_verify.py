"""Tampering: an honest submission is changed in one way and signed again, and must be refused with a message that names
the change. What is accepted is in test_verify_honest.py.
"""

from __future__ import annotations

import hashlib
import json
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helmbench.cli.app import main
from support.stalls import MB, PIECES, STALLS, replies
from support.submission_runs import Opened, as_chatml, copied, judged_offline
from support.tampering import JUDGED, OF_TEXT, SIGNED, VOTE, template, verdict, with_evidence
from support.tampering_files import RAW

from dataset_builder.release import Release
from leaderboard.schema import RESPONSES, SUBMISSION, SUMS, VERDICTS
from leaderboard.verify import files, requests
from leaderboard.verify.findings import text
from leaderboard.verify.verify import verify

LIMIT_S, LIMIT_GB = 240, 3  # processor time and memory of one command, far more than it takes


@pytest.fixture(scope="module")
def templated(small: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An honest demo with requests in a chat template's text."""
    return judged_offline(tmp_path_factory.mktemp("templated"), small, form=as_chatml)


@pytest.fixture
def opened(judged: Path, tmp_path: Path) -> Opened:
    """A copy of the first, taken apart."""
    return Opened(copied(judged, tmp_path))


def accepted(
    cases: dict[str, tuple[Callable[..., Any], str, str]], small: Release, change: Callable[..., Path], home: Path
) -> list[str]:
    """The cases that aren't refused with their kind and word, or whose text could steer a terminal."""
    core = str(sum("core" in row.tiers for row in small.rows.values()))
    found: list[str] = []
    for name, (forge, kind, word) in cases.items():
        verified = verify(change(forge), small)
        said = [f"{p.kind}: {p.where} {p.message}" for p in verified.problems]
        named = any(s.startswith(f"{kind}: ") and word.replace("{core}", core) in s for s in said)
        if verified.state != "refused" or not named or "\x1b" in text(verified):
            found.append(f"{name}: {verified.state}, expected {kind} with {word!r}: {said[:3]}")
        shutil.rmtree(home)
    return found


@pytest.mark.parametrize("base", ["judged", "templated"])
def test_a_change_that_is_signed_again_is_refused(
    base: str, request: pytest.FixtureRequest, tmp_path: Path, small: Release
) -> None:
    """Replies, samples, requests, verdicts, scores, the dataset, the judge, secrets, names and types. A copy that is
    only taken apart and signed again is accepted.
    """
    folder = request.getfixturevalue(base)

    def change(forge: Callable[[Opened], Any]) -> Path:
        opened = Opened(copied(folder, tmp_path / "copy"), small)
        forge(opened)
        return opened.close()

    untouched = verify(change(lambda o: None), small)
    assert (untouched.state, untouched.problems) == ("verified" if base == "judged" else "demo", [])
    assert any(len(r.turns) > 2 for r in untouched.replies)
    shutil.rmtree(tmp_path / "copy")
    assert accepted(SIGNED if base == "judged" else OF_TEXT, small, change, tmp_path / "copy") == []


def test_broken_and_foreign_files_are_refused(judged: Path, tmp_path: Path, small: Release) -> None:
    """Links, pipes, bombs and broken text: a line each, no traceback."""

    def change(forge: Callable[[Path], Any]) -> Path:
        folder = copied(judged, tmp_path / "copy")
        forge(folder)
        return next((p for p in (tmp_path / "copy").glob("*/*/*") if p.name == folder.name), folder)

    assert accepted(RAW, small, change, tmp_path / "copy") == []


def test_the_command_prints_text_or_json_and_its_exit_code(
    judged: Path, opened: Opened, tmp_path: Path, small: Release, capsys: pytest.CaptureFixture[str]
) -> None:
    """0 if all are accepted, 1 if one is refused, 2 if there is no such folder; `--quiet` prints only refused ones."""
    dataset = ["--dataset", str(small.path)]
    assert main(["verify", str(judged), *dataset]) == 0
    verdict(JUDGED, label="PASS")(opened)
    both = [str(judged), str(opened.close()), *dataset]
    assert main(["verify", *both, "--json-file", str(tmp_path / "found.json")]) == 1
    assert "changed_verdict: verdicts.jsonl:" in capsys.readouterr().out
    found = json.loads((tmp_path / "found.json").read_text())
    assert [f["state"] for f in found] == ["verified", "refused"]
    assert {p["kind"] for p in found[1]["problems"]} == {"changed_verdict"}
    assert main(["verify", *both, "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == found
    assert main(["verify", *both, "--quiet"]) == 1
    printed = capsys.readouterr().out
    assert f"{opened.folder}: refused" in printed
    assert f"{judged}: verified" not in printed
    assert main(["verify", str(tmp_path / "nowhere"), *dataset]) == 2
    assert "no such folder" in capsys.readouterr().err


def test_everything_wrong_is_reported(opened: Opened, small: Release) -> None:
    """Every kind of problem is listed, many of one kind are counted, and no message repeats a withheld quote."""
    for name in ("system prompt on one sample", "other answerer", "repeat added", "agreement edited"):
        SIGNED[name][0](opened)
    with_evidence("must not be read", withheld=True)(opened)
    verdict(JUDGED, votes=[VOTE])(opened)
    opened.verdicts += [{**opened.verdicts[0], "repeat": k} for k in range(1000, 1800)]
    (opened.close() / "notes.txt").touch()
    verified = verify(opened.folder, small)
    assert {p.kind for p in verified.problems} >= {
        *("system_prompt", "answered_as", "extra_sample", "agreement", "not_withheld", "extra_file"),
        *("changed_votes", "extra_verdict"),
    }
    assert sum(p.kind == "extra_verdict" for p in verified.problems) == 51
    assert "and 750 more of this kind" in {p.message for p in verified.problems}
    assert "must not be read" not in text(verified)
    assert "a vote's quote" not in text(verified)


@pytest.mark.soak(short=1, full=12)
def test_random_damage_never_raises(judged: Path, tmp_path: Path, small: Release, rounds: int) -> None:
    """Damaged bytes are a problem or change nothing; they are never a traceback."""
    for name in (SUBMISSION, VERDICTS, RESPONSES, SUMS):
        for seed in range(rounds):
            folder = copied(judged, tmp_path / f"{name}-{seed}")
            raw = bytearray((folder / name).read_bytes())
            for at in (int(hashlib.sha256(f"{name}{seed}{k}".encode()).hexdigest(), 16) for k in range(3)):
                raw[at % len(raw)] ^= 1 << at % 8
            (folder / name).write_bytes(raw)
            if name != SUMS:
                files.sign(folder)
            assert verify(folder, small).state in ("refused", "verified")


def test_a_template_that_never_ends_is_refused(
    templated: Path, tmp_path: Path, small: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A template is a program, so it has limits."""
    monkeypatch.setattr(requests, "SECONDS", 1)
    monkeypatch.setattr(requests, "SECONDS_EACH", 0)
    opened = Opened(copied(templated, tmp_path))
    loop = "{% for a in range(99999) %}"
    template(loop * 3 + "{% endfor %}" * 3)(opened)
    (problem, *_) = verify(opened.close(), small).problems
    assert problem.kind == "template"
    assert "more than 1 s" in problem.message


def test_more_text_than_a_run_can_have_is_not_read(
    judged: Path, small: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read until then is still checked."""
    monkeypatch.setattr("leaderboard.verify.verify.TEXT", 10_000)
    monkeypatch.setattr("leaderboard.verify.verify.TURN_TEXT", 10)
    found = {p.kind: p.message for p in verify(judged, small).problems}
    assert found.keys() >= {"too_much_text", "missing_sample"}
    assert "for a run of this size; the rest wasn't read" in found["too_much_text"]


def test_a_template_may_change_no_message(templated: Path, tmp_path: Path, small: Release) -> None:
    """Even if it gives exactly the logged requests."""
    opened = Opened(copied(templated, tmp_path))
    opened.submission["generation"]["template"]["text"] = "{{ messages[0].content }}"
    system = {i: small.rows[i].messages[0].content for i in (r["id"] for r in opened.responses)}
    for r in opened.responses:
        r["requests"] = [system[r["id"]]] * len(r["requests"])
        r["prompt_sha256"] = hashlib.sha256(r["requests"][0].encode()).hexdigest()
    assert {p.kind for p in verify(opened.close(), small).problems} >= {"edited_prompt"}


@pytest.mark.soak(short=2, full=99)
def test_what_is_made_to_stall_ends_soon(
    judged: Path, templated: Path, small: Release, tmp_path: Path, rounds: int
) -> None:
    """Little time and memory, exit code 1, no traceback; what asks too much is refused for it."""
    bases = {"judged": judged, "templated": templated, "offline": judged_offline(tmp_path / "offline", small)}
    size = min(MB, 30_000 * rounds)
    said = [piece * (size // len(piece)) for piece in PIECES][:: max(1, len(PIECES) // rounds)]
    matching = ("offline", replies(*said), set[str]())
    cases = dict([*STALLS.items(), ("long replies that patterns begin to match", matching)][-2 * rounds :])
    folders: list[Path] = []
    for n, (base, change, _) in enumerate(cases.values()):
        opened = Opened(copied(bases[base], tmp_path / str(n)), small)
        change(opened)
        folders.append(opened.folder)

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S))
        resource.setrlimit(resource.RLIMIT_AS, (LIMIT_GB * 2**30, LIMIT_GB * 2**30))

    command = [sys.executable, "-m", "helmbench.cli", "verify", *map(str, folders), "--dataset", str(small.path)]
    done = subprocess.run(
        [*command, "--json-file", str(tmp_path / "found.json")], capture_output=True, text=True, preexec_fn=limited
    )
    assert (done.stderr, done.returncode) == ("", 1)
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    kinds = {name: {p["kind"] for p in one["problems"]} for name, one in zip(cases, found, strict=True)}
    assert {name: kinds[name] for name, (_, _, due) in cases.items() if due and not due & kinds[name]} == {}
