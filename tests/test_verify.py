"""Tampering: an honest submission is changed in one way and signed again, and `helmbench verify` must refuse it with a
message that names the change.

The two bases are judged by a language model (API requests) and by the offline judge (a chat template's text). What is
changed stands in tampering.py and tampering_files.py, what is accepted in test_verify_honest.py.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import pytest
from helmbench.cli.app import main
from support import tampering
from support.submission_runs import Opened, as_chatml, build, copied, judged_by_model, judged_offline
from support.tampering import OF_TEXT, SIGNED
from support.tampering_files import RAW

from dataset_builder.release import Release
from judge.replies.script import live_turns
from leaderboard.schema import RESPONSES, SUBMISSION, SUMS, VERDICTS, Verified
from leaderboard.verify import files
from leaderboard.verify.findings import text
from leaderboard.verify.verify import verify


def refused(verified: Verified, kind: str, word: str) -> None:
    """Refused, and a line names the change."""
    assert verified.state == "refused"
    named = [p for p in verified.problems if p.kind == kind]
    assert named, text(verified)
    assert any(word in f"{p.where} {p.message}" for p in named), "\n".join(p.message for p in named)


@pytest.fixture(scope="module")
def small(small_content: Path, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """A release of seven scenarios, which is verified in a fifth of a second."""
    return build(small_content, tmp_path_factory.mktemp("built") / "helmbench")


@pytest.fixture(scope="module")
def judged(small: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An honest submission, judged by a language model; read-only by agreement."""
    return judged_by_model(tmp_path_factory.mktemp("judged"), small)


@pytest.fixture(scope="module")
def templated(small: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An honest demo with the text of a chat template; read-only by agreement."""
    return judged_offline(tmp_path_factory.mktemp("templated"), small, form=as_chatml)


@pytest.fixture
def opened(judged: Path, tmp_path: Path) -> Opened:
    """A copy of the submission that a language model judged, taken apart."""
    return Opened(copied(judged, tmp_path))


@pytest.mark.parametrize("name", SIGNED)
def test_a_change_that_is_signed_again_is_refused(name: str, opened: Opened, small: Release) -> None:
    """Hashes fit; the deeper checks see it."""
    change, kind, word = SIGNED[name]
    change(opened)
    core = sum("core" in row.tiers for row in small.rows.values())
    refused(verify(opened.close(), small), kind, word.replace("{core}", str(core)))


@pytest.mark.parametrize("name", OF_TEXT)
def test_a_change_of_a_templated_demo_is_refused(name: str, templated: Path, tmp_path: Path, small: Release) -> None:
    """The same for requests that are no JSON and for the offline judge."""
    change, kind, word = OF_TEXT[name]
    opened = Opened(copied(templated, tmp_path), small)
    change(opened)
    refused(verify(opened.close(), small), kind, word)


@pytest.mark.parametrize("name", RAW)
def test_files_that_are_not_a_submissions_are_refused(name: str, judged: Path, tmp_path: Path, small: Release) -> None:
    """Links, pipes, bombs, broken texts: one line each, no traceback, and nothing foreign that moves a terminal's
    cursor.
    """
    change, kind, word = RAW[name]
    folder = copied(judged, tmp_path)
    change(folder)
    verified = verify(next((p for p in tmp_path.glob("*/*/*") if p.name == folder.name), folder), small)
    refused(verified, kind, word)
    assert f"  {kind}: " in text(verified)
    assert "\x1b" not in text(verified)


def test_the_command_says_it_and_its_exit_code_too(
    judged: Path, opened: Opened, tmp_path: Path, small: Release, capsys: pytest.CaptureFixture[str]
) -> None:
    """0 where all are accepted, 1 where one is refused, and the same as JSON."""
    dataset = ["--dataset", str(small.path)]
    assert main(["verify", str(judged), *dataset]) == 0
    tampering.changed_verdict(opened)
    assert (
        main(["verify", str(judged), str(opened.close()), *dataset, "--json-file", str(tmp_path / "found.json")]) == 1
    )
    assert "changed_verdict: verdicts.jsonl:" in capsys.readouterr().out
    found = json.loads((tmp_path / "found.json").read_text())
    assert [f["state"] for f in found] == ["verified", "refused"]
    assert {p["kind"] for p in found[1]["problems"]} == {"changed_verdict"}


def test_json_is_printed_in_place_of_the_text_and_quiet_says_what_is_refused(
    judged: Path, opened: Opened, small: Release, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--json` prints what `--json-file` writes; `--quiet` leaves the refused ones."""
    tampering.changed_verdict(opened)
    given = [str(judged), str(opened.close()), "--dataset", str(small.path)]
    assert main(["verify", *given, "--json"]) == 1
    assert [f["state"] for f in json.loads(capsys.readouterr().out)] == ["verified", "refused"]
    assert main(["verify", *given, "--quiet"]) == 1
    said = capsys.readouterr().out
    assert f"{opened.folder}: refused" in said
    assert f"{judged}: verified" not in said


def test_untouched_copies_are_accepted(judged: Path, templated: Path, tmp_path: Path, small: Release) -> None:
    """What the tests above change is refused for the change: taken apart and put together again, both bases pass."""
    for folder, state in ((judged, "verified"), (templated, "demo")):
        verified = verify(Opened(copied(folder, tmp_path)).close(), small)
        assert (verified.state, verified.problems) == (state, [])


def test_everything_that_is_wrong_is_said(opened: Opened, small: Release) -> None:
    """Six changes in one submission are six kinds of problem, not the first of them."""
    for change in (
        tampering.changed_verdict,
        tampering.changed_score_by_little,
        tampering.system_prompt_once,
        tampering.other_answerer,
        tampering.extra_repeat,
        tampering.better_agreement,
    ):
        change(opened)
    opened.submission["contact"]["name"] = "Ann\u200b"
    folder = opened.close()
    (folder / "notes.txt").touch()
    kinds = {p.kind for p in verify(folder, small).problems}
    assert kinds >= {
        "changed_verdict",
        "system_prompt",
        "answered_as",
        "extra_sample",
        "agreement",
        "odd_unicode",
        "extra_file",
    }


def test_no_problem_repeats_what_must_not_be_read(opened: Opened, small: Release) -> None:
    """Verdicts that quote what must be withheld, in evidence or in votes, are named without the quote."""
    tampering.evidence_that_must_be_withheld(opened)
    tampering.votes_of_nobody(opened)
    said = text(verify(opened.close(), small))
    assert "what must not be read" not in said
    assert "a quote of a vote" not in said


def test_a_flood_of_problems_is_counted(opened: Opened, small: Release) -> None:
    """Hundreds of lines of one kind would hide the others; fifty are shown, and how many more there are."""
    opened.verdicts = [{**opened.verdicts[0], "repeat": k} for k in range(1000, 1800)]
    problems = verify(opened.close(), small).problems
    assert sum(p.kind == "extra_verdict" for p in problems) == 51
    assert "and 750 more of this kind" in {p.message for p in problems}


def test_bytes_at_random_never_raise(judged: Path, tmp_path: Path, small: Release) -> None:
    """Damage anywhere is a problem, or, where it changes nothing, none; it is never a traceback."""
    for name in (SUBMISSION, VERDICTS, RESPONSES, SUMS):
        for seed in range(12):
            folder = copied(judged, tmp_path / f"{name}-{seed}")
            raw = bytearray((folder / name).read_bytes())
            for at in (int(hashlib.sha256(f"{name}{seed}{k}".encode()).hexdigest(), 16) for k in range(3)):
                raw[at % len(raw)] ^= 1 << at % 8
            (folder / name).write_bytes(raw)
            if name != SUMS:
                files.sign(folder)
            assert verify(folder, small).state in ("refused", "verified")


def test_enough_is_tried(capsys: pytest.CaptureFixture[str]) -> None:
    """At least forty kinds of tampering; the figure is shown for whoever quotes it."""
    kinds = {kind for cases in (SIGNED, OF_TEXT, RAW) for _, kind, _ in cases.values()}
    with capsys.disabled():
        sys.stdout.write(
            f"\ntampering: {len(SIGNED) + len(OF_TEXT) + len(RAW)} changes, of {len(kinds)} kinds of problem\n"
        )
    assert len(SIGNED) + len(OF_TEXT) + len(RAW) >= 40


def test_no_such_submission_is_bad_usage(tmp_path: Path, small: Release, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder that isn't there is the caller's mistake, and exit code 2."""
    assert main(["verify", str(tmp_path / "nowhere"), "--dataset", str(small.path)]) == 2
    assert "no such folder" in capsys.readouterr().err


def test_conversations_are_in_both_bases(judged: Path, templated: Path, small: Release) -> None:
    """The changes to live turns change something that is there."""
    for folder in (judged, templated):
        assert any(live_turns(small.rows[r["id"]]) > 2 for r in Opened(folder).responses)


def test_a_type_that_only_crises_have_is_refused(opened: Opened, small: Release) -> None:
    """An API's messages may have a type, in all requests or in none: which have one could tell what a sample is."""
    opened.polarity = {r.id: r.polarity for r in small.rows.values()}
    tampering.typed_in_crises(opened)
    refused(verify(opened.close(), small), "mixed_requests", "all with a type")
