"""The way of a clinician, from the book to a patch and from a sheet to agreement, walked as docs/clinicians.md says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import walk_through
from test_cli import LEAVES
from webdriver import CHROMIUM, DRIVER

from dataset_builder.prompts import CONTENT

ROOT = Path(__file__).resolve().parents[1]
GUIDE = (ROOT / "docs" / "clinicians.md").read_text(encoding="utf-8")


@pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no Chromium with chromedriver on this machine; the pages aren't opened"
)
def test_both_ways_lead_to_their_ends(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A patch that applies, two files of labels and their agreement; this checkout's content stays as it was."""
    monkeypatch.setenv("HELMBENCH_DATASET", str(dataset))
    before = (CONTENT / "scenarios" / f"{walk_through.SIGNED}.md").read_bytes()
    assert walk_through.main(["--replies", "3", "--keep", str(tmp_path / "way")]) == 0
    out = capsys.readouterr().out
    assert "in the review: 2 notes, 1 scenario signed" in out
    assert len(re.findall(r"(?m)^clinician: 0 commands, \d+ clicks, \d+ keys, [\d.]+ s of the machine$", out)) == 2
    assert re.findall(r"(?m)^maintainer: (\d) commands, 0 clicks", out) == ["3", "6"]
    patch = (tmp_path / "way" / "review.patch").read_text(encoding="utf-8")
    assert f"+  > {walk_through.COMMENT}\n" in patch
    assert f"+review: signed by {walk_through.NAME} ({walk_through.QUALIFICATION}), " in patch
    assert [
        len((tmp_path / "way" / f"{n}.jsonl").read_text(encoding="utf-8").splitlines()) for n in ("ann", "ben")
    ] == [
        3,
        3,
    ]
    assert (CONTENT / "scenarios" / f"{walk_through.SIGNED}.md").read_bytes() == before


def test_the_guide_names_every_button_and_command_of_the_way() -> None:
    """As they are called on the pages, and as they are typed."""
    for said in ("Open the book", "Download the review", "Begin", "Download", "findahelpline.com", "No clinician has"):
        assert said in GUIDE
    for command in ("book", "review", "annotate export", "annotate import", "agreement"):
        assert re.search(rf"(?m)^helmbench {command}\b", GUIDE), command


def test_the_guides_commands_are_real() -> None:
    """Each that stands in it, options and all."""
    for line in re.findall(r"(?m)^helmbench (.+?)(?: +#.*)?$", GUIDE):
        words = line.split(" > ")[0].split()
        name = words[: 2 if words[0] in ("annotate", "ratings") else 1]
        known = {option for parameter in LEAVES[" ".join(name)].params for option in parameter.opts}
        assert {w for w in words if w.startswith("--")} <= known, line
