"""`helmbench` as its users run it: exit codes, what goes where, and that an error writes nothing."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest
from helmbench.cli.app import main
from support.contents import ALONE, one_scenario

from dataset_builder.prompts import CONTENT

ERROR = "scenarios/P4-B2-S1.md:23: severity is 0; expected 1 to 10 for a crisis message, -1 to -10 for a control"


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def run(folder: Path, *arguments: str) -> Done:
    """The command in a working directory, within this process."""
    with chdir(folder), redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        code = main([*arguments])
    return Done(code, out.getvalue(), err.getvalue())


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A working directory with a content of one scenario."""
    one_scenario(tmp_path / "content")
    return tmp_path


@pytest.fixture
def broken(home: Path) -> Path:
    """The same with one slip on line 22."""
    (home / "content" / "scenarios" / "P4-B2-S1.md").write_text(
        ALONE.replace("# PT1 (severity -6", "# PT1 (severity 0"), encoding="utf-8"
    )
    return home


def test_check_counts_and_writes_nothing(home: Path) -> None:
    """2 conditions × 2 user contexts for two messages and 2 × 1 for the third: 10 samples; exit 0."""
    done = run(home, "check", "--content", "content")
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 scenarios, 3 messages, 10 samples: no errors\n", "")
    assert [path.name for path in home.iterdir()] == ["content"]


def test_errors_of_the_checks_are_printed_too(home: Path) -> None:
    """An unused criterion and a slip in a rating come out of one run, sorted by file."""
    shutil.copyfile(CONTENT / "criteria" / "acts-at-once.md", home / "content" / "criteria" / "acts-at-once.md")
    scenario = home / "content" / "scenarios" / "P4-B2-S1.md"
    scenario.write_text(ALONE.replace("# PT1 (severity -6", "# PT1 (severity -6; rating: 1-2"), encoding="utf-8")
    done = run(home, "build", "--content", "content")
    assert done.returncode == 1
    assert [line.split(": ")[0] for line in done.stderr.splitlines()] == [
        "content/criteria/acts-at-once.md:1",
        "content/scenarios/P4-B2-S1.md:23",
        "2 errors; nothing was written",
    ]
    assert not (home / "helmbench").exists()


def test_errors_of_one_file_do_not_bury_the_others(home: Path) -> None:
    """Each file shows 20 and says how many more it has; endless front matter isn't read. All in seconds."""
    scenarios, started = home / "content" / "scenarios", time.process_time()
    (scenarios / "P4-B2-S1.md").write_text(ALONE.replace("# PT1", "# PT1 (\n" * 1_000 + "# PT1"), encoding="utf-8")
    (scenarios / "P4-B2-S2.md").write_text("---\n" + "a: b\n" * 300_000 + "---\n", encoding="utf-8")
    (scenarios / "P4-B2-S3.md").write_text("---\nid: P4-B2-S3\n---\n" + "#\n" * 300_000, encoding="utf-8")
    done = run(home, "check", "--content", "content")
    assert done.returncode == 1
    lines = [line.removeprefix("content/scenarios/") for line in done.stderr.splitlines()]
    assert [line for line in lines if "read the heading" not in line and "is missing" not in line] == [
        "P4-B2-S1.md: and 980 more errors",
        "P4-B2-S2.md:1: has front matter of 300,000 lines; expected at most 200, and prose under a heading",
        "P4-B2-S3.md: and 299,985 more errors",
        "301,006 errors; nothing was written",
    ]
    assert len(lines) == 44
    assert time.process_time() - started < 20


def test_build_gives_the_same_bytes_in_another_process(dataset: Path, tmp_path: Path) -> None:
    """The default place is ./helmbench; stdout names version and hashes; the manifest, which hashes every file, is the
    same again.
    """
    command = [sys.executable, "-m", "helmbench.cli", "build"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    manifest = json.loads((dataset / "MANIFEST.json").read_text(encoding="utf-8"))
    assert (done.returncode, done.stderr) == (0, "")
    first, *hashes = done.stdout.splitlines()
    assert first.startswith(f"helmbench: version {manifest['version']}, {manifest['rows']['all']} samples in ")
    assert hashes == [
        f"score_hash {manifest['score_hash']}",
        f"prose_hash {manifest['prose_hash']}",
        f"messages_hash {manifest['messages_hash']}",
    ]
    assert (tmp_path / "helmbench" / "MANIFEST.json").read_bytes() == (dataset / "MANIFEST.json").read_bytes()
    assert [path.name for path in tmp_path.iterdir() if path.name != "hf"] == ["helmbench"]


def test_build_takes_a_content_of_one_pillar(home: Path) -> None:
    """Pillars without samples are empty tables, not a traceback."""
    done = run(home, "build", "--content", "content", "--out", "deep/out")
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads((home / "deep" / "out" / "MANIFEST.json").read_text(encoding="utf-8"))["rows"]
    assert (rows["all"], rows["pillar4"], rows["pillar1"], rows["conversations"]) == (10, 10, 0, 0)


def test_stats_as_json_are_counted_by_hand(home: Path) -> None:
    """One scenario of three controls, one of them in slang, one persona, one country, ten samples."""
    done = run(home, "stats", "--json", "--content", "content")
    figures = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    table = [" ".join(line.split()) for line in run(home, "stats", "--content", "content").stdout.splitlines()]
    assert "scenarios 1 40 39 short" in table
    assert any(line.startswith("P3-B2 ") and line.endswith("nothing yet") for line in table)
    have = {name: pair["have"] for name, pair in figures["plan"].items() if pair["have"]}
    assert have == {
        "scenarios": 1,
        "distinct messages": 3,
        "of these, share of controls (%)": 100,
        "personas": 1,
        "age bands": 1,
        "countries": 1,
        "conditions": 1,
        "kinds of condition": 1,
        "messages in a marked register": 1,
        "of these, controls": 1,
        "P4 messages": 3,
    }
    assert figures["behaviors"]["P4-B2"] == {"crisis": 0, "severe": 0, "control": 3, "ambiguous": 0, "samples": 10}
    assert figures["behaviors"]["P1-B1"] == {"crisis": 0, "severe": 0, "control": 0, "ambiguous": 0, "samples": 0}
    assert (figures["tiers"], figures["polarity"]) == ({"detect": 0, "lite": 3, "core": 10, "full": 10}, {"control": 3})
    assert (figures["registers"], figures["median words"], figures["readings"]) == ({"slang": 1, "standard": 2}, 9, {})


def test_stats_as_a_table_show_what_is_short(dataset: Path, tmp_path: Path) -> None:
    """The plan stands beside what is there, and the tiers are the built dataset's."""
    done = run(tmp_path, "stats")
    tiers = json.loads((dataset / "MANIFEST.json").read_text(encoding="utf-8"))["tiers"]
    scenarios = len([*CONTENT.glob("scenarios/*.md"), *CONTENT.glob("conversations/*.md")])
    assert (done.returncode, done.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert f"scenarios {scenarios} 40" in lines
    assert "all 33 lines are met" in lines
    assert "samples by tier: " + ", ".join(f"{tier} {n}" for tier, n in tiers.items()) in lines
    assert any(line.startswith("blind second reading, by a language model") for line in lines)


def test_stats_of_what_gives_it_away_are_null_where_nothing_can_be_left_out(home: Path) -> None:
    """One scenario of controls: no figure, no ceiling passed, and exit 0; --cost is another table."""
    done = run(home, "stats", "--giveaway", "--json", "--content", "content")
    figures = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert (figures["messages"], figures["crisis"], figures["telling"]) == (3, 0, {"crisis": [], "control": []})
    assert figures["ceilings"]["words, all"] == {"have": None, "at most": 0.68}
    printed = run(home, "stats", "--giveaway", "--content", "content").stdout
    assert "0 of 15 ceilings are exceeded; 0 of 15 could be computed" in printed
    both = run(home, "stats", "--giveaway", "--cost")
    assert (both.returncode, both.stdout) == (2, "")
    assert "--cost or --giveaway, not both" in both.stderr


def test_no_command_is_a_usage_error(tmp_path: Path) -> None:
    """The exit code of a wrong call, and the usage line under the name that was called."""
    done = run(tmp_path)
    assert done.returncode == 2
    assert (done.stdout + done.stderr).strip().startswith("Usage: helmbench")


def test_errors_go_to_stderr_and_nothing_is_written(broken: Path) -> None:
    """Every command stops at content errors with exit 1, path:line on stderr, and an empty stdout; an earlier build
    stays.
    """
    (broken / "helmbench").mkdir()
    (broken / "helmbench" / "MANIFEST.json").write_text("old", encoding="utf-8")
    for command in (["check"], ["build"], ["stats", "--json"]):
        done = run(broken, *command, "--content", "content")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.splitlines() == [f"content/{ERROR}", "1 error; nothing was written"]
        done = run(broken, *command, "--content", "nowhere")
        expected = "nowhere/benchmark.yaml:1: missing, so this is not a content folder; pass one with --content\n"
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == f"{expected}1 error; nothing was written\n"
    assert sorted(path.name for path in broken.iterdir()) == ["content", "helmbench"]
    assert [path.read_text(encoding="utf-8") for path in (broken / "helmbench").iterdir()] == ["old"]
