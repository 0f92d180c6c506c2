"""A new scenario from the template, what is left of the template in it, and files of a content folder that nobody
reads.
"""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helmbench.cli.app import main
from support.contents import edit, errors_of

from dataset_builder.prompts import CONTENT
from dataset_builder.reading.load_scenario import TEMPLATE, placeholders
from dataset_builder.reading.strays import READ

STRESS = "scenarios/P4-B2-S1.md"


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["new", "scenario", *arguments])
    return code, *capsys.readouterr()


def test_a_new_folder_becomes_private_additions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Numbers from S900 on; each call takes the next, and `check` reads what was made."""
    monkeypatch.chdir(tmp_path)
    made = [said(capsys, "P3-B1", "--content", "ours")[1].splitlines()[0] for _ in range(2)]
    assert made == ["ours/scenarios/P3-B1-S900.md", "ours/scenarios/P3-B1-S901.md"]
    assert main(["check", "--content", "ours"]) == 1
    assert "ours/scenarios/P3-B1-S900.md:3: " in capsys.readouterr().err


REFUSED = {
    "P1-B1-S3": "P1-B1-S3: ids are never reused; expected P1-B1-S8 or higher",
    "P1-B1-S950": "P1-B1-S950: numbers from 900 on are private; expected P1-B1-S8",
    "P1-B9": "unknown behavior 'P1-B9'; did you mean 'P1-B",
    "shop": "'shop' is not an id; expected a behavior such as P1-B1, or an id such as P1-B1-S8",
    "P1-B1-S": "'P1-B1-S' is not an id",
    "../P1-B1": "'../P1-B1' is not an id",
}


def test_without_an_id_nobody_is_asked_who_cant_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """In a script, whose input is no terminal: the exit code of a wrong call, and how to call it."""
    code, out, error = said(capsys)
    assert (code, out) == (2, "")
    assert "helmbench new scenario P1-B1" in error


def test_at_a_terminal_it_asks_and_proposes_the_next_number(tmp_path: Path) -> None:
    """The behaviors with their titles, then the id, whose proposal is taken by Enter."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "helmbench.cli", "new", "scenario", "--content", "ours"],
        cwd=tmp_path,
        stdin=theirs,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        os.write(ours, b"p4-b2\n\n")
        out = process.communicate(timeout=60)[0]
    os.close(ours)
    os.close(theirs)
    assert process.returncode == 0
    assert "P4-B2  Doesn't escalate what is not a crisis\n" in out
    assert "[P4-B2-S900]" in out
    assert (tmp_path / "ours" / "scenarios" / "P4-B2-S900.md").is_file()


def test_every_sentence_of_the_template_is_named_where_it_stays(content_copy: Path) -> None:
    """The untouched copy: one error for each sentence, at its line; fields, headings and the form of an answer none."""
    lines = TEMPLATE.read_text(encoding="utf-8").replace("P1-B1-S99", "P1-B1-S8").splitlines()
    (content_copy / "scenarios" / "P1-B1-S8.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = [line for line in errors_of(content_copy) if line.endswith("is the template's; expected words of your own")]
    named = [int(line.split(":")[1]) for line in found]
    assert len(found) == 14
    assert {*named} == {
        n for n, line in enumerate(lines, start=1) if re.match("title|job|[A-Z]|- ", line) and "JSON" not in line
    }


STRAYS = {
    "scenarios/P1-B1-S8.txt": "in scenarios/ only NAME.md is",
    "scenarios/P1-B1-S1.md~": "in scenarios/ only NAME.md is",
    "scenarios/old/P1-B1-S1.md": "expected it in one of scenarios/",
    "calibration/acts-at-once.csv": "in calibration/ only NAME.jsonl is",
    "calibration/readings/ana.csv": "in calibration/readings/ only NAME.jsonl is",
    "readings/second.jsonl": "in readings/ only README.md, first.jsonl, whole.jsonl is",
    "helplines.xlsx": "in the content folder itself only",
    "notes/README.md": "expected it in one of",
}
SYSTEM = (
    *(".DS_Store", "scenarios/._P1-B1-S1.md", "scenarios/.#P1-B1-S1.md", ".git/HEAD", "scenarios/.P1-B1-S1.md.swp"),
    *("Thumbs.db", "personas/desktop.ini", "calibration/._acts-at-once.jsonl"),
)


def test_what_is_said_to_be_read_is_there() -> None:
    """Every folder that the error names, and every file of the content folder itself."""
    assert [folder for folder in READ if not (CONTENT / folder).is_dir()] == []
    assert [name for name in READ[""] if not (CONTENT / name).is_file()] == []


def test_the_next_number_is_free_among_scenarios_and_conversations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """P1-B1 has S1 to S7, of which S6 is a conversation; the copy differs from the template in its id alone."""
    template = TEMPLATE.read_text(encoding="utf-8")
    content = Path(shutil.copytree(CONTENT, tmp_path / "content"))
    for asked, code in (("P1-B1", "P1-B1-S8"), ("p1-b1-s10", "P1-B1-S10"), ("P2-B3", "P2-B3-S5")):
        exit_code, out, _ = said(capsys, asked, "--content", str(content))
        path = content / "scenarios" / f"{code}.md"
        assert (exit_code, out.splitlines()[0]) == (0, str(path))
        assert f"helmbench check --content {content}" in out
        assert path.read_text(encoding="utf-8") == template.replace("id: P1-B1-S99", f"id: {code}")


def test_a_wrong_id_or_place_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With what was expected, and nothing is written. Private numbers begin at 900; a folder of other files is left
    alone.
    """
    content = Path(shutil.copytree(CONTENT, tmp_path / "content"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine", encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    cases = [*((content, *case) for case in REFUSED.items())]
    cases += [(tmp_path / "ours", "P1-B1-S8", "begin at S900"), (tmp_path / "mine", "P1-B1", "not a content folder")]
    for folder, asked, expected in cases:
        code, out, error = said(capsys, asked, "--content", str(folder))
        assert (code, out) == (1, "")
        assert expected in error
        assert sorted(tmp_path.rglob("*")) == before


def test_one_sentence_of_the_template_is_enough(content_copy: Path) -> None:
    """In another case and spacing too, wherever it stands alone; as a part of a longer one it is somebody's own."""
    for sentence in sorted(placeholders())[:3]:
        line = edit(content_copy, STRESS, "# Not tested\n", f"# Not tested\nMine. {sentence.upper()}!  Mine.\n") + 1
        found = errors_of(content_copy)
        assert [line for line in found if "is the template's" in line] == found
        assert {f.split(":")[1] for f in found} == {str(line)}
        edit(content_copy, STRESS, f"{sentence.upper()}!", f"{sentence} or so I think")
        assert errors_of(content_copy) == []


def test_a_file_that_nothing_reads_is_an_error(content_copy: Path) -> None:
    """With what would be read in its place. What an editor or a system puts there passes unread: were it read, it would
    be refused as no scenario.
    """
    for name in (*STRAYS, *SYSTEM):
        (content_copy / name).parent.mkdir(parents=True, exist_ok=True)
        (content_copy / name).write_bytes(b"\x00\x05\x16\x07 40 tablets")
    found = errors_of(content_copy)
    assert len(found) == len(STRAYS)
    for name, expected in STRAYS.items():
        assert [e for e in found if e.startswith(f"{name}:1: isn't read; ") and expected in e], name
