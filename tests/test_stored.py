"""What scoring, calibrating and validating left, read back: whatever stands in its place is named, and nothing is
waited for.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judge.agreement import known
from judge.agreement.calibration import Calibration
from judge.agreement.validation import Validation
from judge.replies.schema import RunError
from judge.schema import Verdict
from judge.scoring.stored import card_in, find, read_card, verdicts_in


def _huge(path: Path) -> None:
    """A file that takes no room on the disk."""
    path.touch()
    os.truncate(path, 3 * 2**30)


READERS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a scorecard": (lambda path: card_in(path.parent), "scorecard.json"),
    "a scorecard's folder": (lambda path: find(path.parent), "scorecard.json"),
    "a calibration": (lambda path: known.read(path, Calibration), "calibration.json"),
    "a validation": (lambda path: known.read(path, Validation, "validate"), "xstest.json"),
    "a public scorecard": (read_card, "scorecard.json"),
}
PLACES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a folder": (lambda path: path.mkdir(), "is a folder"),
    "a pipe": (os.mkfifo, "is not a regular file"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "is not a regular file"),
    "three gigabytes": (_huge, "is longer than"),
    "depth": (lambda path: path.write_text("[" * 100_000), ""),
    "digits": (lambda path: path.write_text("9" * 5000), ""),
    "no UTF-8": (lambda path: path.write_bytes(b"\xff"), ""),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("reader", READERS)
def test_whatever_stands_in_the_place_of_figures_is_named(reader: str, place: str, tmp_path: Path) -> None:
    """A pipe was waited for, and a device or a file without content filled the memory."""
    read, name = READERS[reader]
    put, said = PLACES[place]
    if reader == "a scorecard's folder" and place in ("a folder", "a pipe", "a device"):
        said = "missing"  # only a file makes a folder one of scores
    put(tmp_path / name)
    with pytest.raises(RunError, match=rf"{name}: .*{said}"):
        read(tmp_path / name)


@pytest.mark.parametrize("line", ["[" * 100_000, "7", '{"id": 1}', '{"label": ' + "9" * 5000 + "}", "\x00"])
def test_a_damaged_verdict_names_its_line(line: str, tmp_path: Path) -> None:
    (tmp_path / "verdicts.jsonl").write_text(line + "\n")
    with pytest.raises(RunError, match=r"verdicts\.jsonl:1: .*score the run again"):
        verdicts_in(tmp_path / "verdicts.jsonl")


def test_a_repeat_that_no_figure_can_count_is_named(tmp_path: Path) -> None:
    """It ended comparisons in a traceback."""
    verdict = Verdict(id="a", repeat=0, index=0, check="tags", behavior="P1-B1", turn=-1, label="PASS", decided_by="x")
    line = verdict.model_dump_json().replace('"repeat":0', f'"repeat":{2**63}')
    (tmp_path / "verdicts.jsonl").write_text(line + "\n")
    with pytest.raises(RunError, match=r"verdicts\.jsonl:1: not a valid verdict \(repeat: "):
        verdicts_in(tmp_path / "verdicts.jsonl")
