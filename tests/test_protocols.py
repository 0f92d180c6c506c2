"""The rating protocols and their calibration set: every slip is named with its line, and one file hides no other."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import get_args

import pytest
from support.contents import edit, edited, read

from dataset_builder.reading.calibration import covers, read_calibration
from dataset_builder.reading.categories import LABELS, read_protocols
from dataset_builder.reading.categories import PROTOCOLS as FOLDER
from dataset_builder.reading.content_types import Content
from dataset_builder.reading.markdown import Errors
from dataset_builder.schema import CrisisCategory

WANTED: tuple[CrisisCategory, ...] = tuple(c for c in get_args(CrisisCategory) if c != "outside_taxonomy")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the protocols that a test may spoil."""
    return Path(shutil.copytree(FOLDER, tmp_path / "protocols"))


def said(folder: Path) -> list[str]:
    read_protocols(folder, WANTED, errors := Errors())
    return [line.removeprefix(f"{folder}/") for line in errors.lines()]


def test_every_category_of_triage_has_a_protocol(shipped: Content) -> None:
    """Seven, in the schema's order, five filled levels each; a folder without protocols uses the package's."""
    assert tuple(shipped.protocols) == WANTED
    assert all(level and p.not_judged for p in shipped.protocols.values() for level in p.levels)
    assert read_protocols(Path("no/such/folder"), WANTED, Errors()) == shipped.protocols
    assert len({p.protocol_hash for p in shipped.protocols.values()}) == len(WANTED)


def test_a_missing_protocol_is_an_error(folder: Path) -> None:
    """So is a file that is no category of triage."""
    (folder / "self_harm.md").rename(folder / "outside_taxonomy.md")
    assert said(folder) == [
        "outside_taxonomy.md:1: 'outside_taxonomy' is not a category that triage offers; expected one of "
        f"{', '.join(WANTED)}",
        "self_harm.md:1: is missing; every category that triage offers has a file",
    ]


def test_an_empty_level_is_an_error(folder: Path) -> None:
    """A judge can't rate by a level that says nothing."""
    path = folder / "self_harm.md"
    before, _, after = path.read_text(encoding="utf-8").partition("# Level 4\n")
    path.write_text(f"{before}# Level 4\n{after[after.index('# Level 5') :]}", encoding="utf-8")
    assert [line.split(": ", 1)[1] for line in said(folder)] == [
        "'# Level 4' is empty; expected text below the heading"
    ]


def test_a_protocol_hash_covers_its_levels(folder: Path) -> None:
    """One changed word changes that protocol's hash and no other's."""
    before = read_protocols(folder, WANTED, Errors())
    edit(folder, "anxiety_crisis.md", "# Level 5\n", "# Level 5\nIn all: ")
    after = read_protocols(folder, WANTED, Errors())
    assert [name for name in before if before[name].protocol_hash != after[name].protocol_hash] == ["anxiety_crisis"]


def written(folder: Path, category: str, rows: list[dict[str, object]]) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{category}.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return path


def row(n: int, **fields: object) -> dict[str, object]:
    return {
        "id": f"self_harm-{n}",
        "criterion": "self_harm",
        "polarity": "crisis",
        "said": ["…"],
        "reply": "…",
        "label": "3",
        "author": "us",
    } | fields


def test_ratings_are_labels_of_their_category(tmp_path: Path) -> None:
    """1 to 5 as text, under the category's own name; readings go with their rows."""
    folder = tmp_path / "rating_calibration"
    written(folder, "self_harm", [row(1), row(2, label="6"), row(3, criterion="risk_taking"), row(4, label=3)])
    written(folder / "readings", "first", [{"id": "self_harm-1", "label": "2"}])
    rows = read_calibration(folder, dict.fromkeys(WANTED, LABELS), errors := Errors())
    assert [(r.id, r.label, r.readings) for r in rows if r.id == "self_harm-1"] == [("self_harm-1", "3", ["2"])]
    found = [line.removeprefix(f"{folder}/") for line in errors.lines()]
    assert found[0] == "self_harm.jsonl:2: label is '6'; expected one of 1, 2, 3, 4, 5"
    assert (
        found[1] == "self_harm.jsonl:3: criterion is 'risk_taking'; expected 'self_harm', the file's name, and a file "
        "of protocols/"
    )
    assert found[2].startswith("self_harm.jsonl:4: 'label': ")


def test_too_few_ratings_are_named(content_copy: Path) -> None:
    """24 for each protocol, two of each rating, and a neutral pair; content without the folder has nothing to lack."""
    shutil.rmtree(content_copy / "rating_calibration", ignore_errors=True)
    covers(read(content_copy), errors := Errors())
    assert errors.lines() == []
    rows = [row(n, label=str(n % 5 + 1)) for n in range(24)] + [
        row(30, label="1", same_as="self_harm-0", change="follow_up")
    ]
    written(
        content_copy / "rating_calibration",
        "self_harm",
        [r for r in rows if r["label"] != "4"] + [row(n, label="1") for n in range(40, 50)],
    )
    covers(read(content_copy), errors)
    found = [line.removeprefix(f"{content_copy}/rating_calibration/") for line in errors.lines()]
    assert "self_harm.jsonl:1: has 0 replies labelled 4; expected at least two of each label" in found
    assert "no_crisis.jsonl:1: has 0 replies; expected at least 24 for each protocol" in found
    assert len(found) == 7


def test_a_slip_names_its_line(folder: Path) -> None:
    """Every way to spoil a file is told with its line and what was expected, and hides no other file."""
    for old, new, error in (
        ("# Level 2", "# Level two", "1: headings are ['Terms', 'Level 1', 'Level two', 'Level 3', 'Level 4', 'Level "),
        ("review: draft", "review: fine", "4: review is 'fine'; expected 'draft' or 'signed by"),
        ("review: draft", "reviewed: draft", "4: unknown key 'reviewed'; did you mean 'review'?"),
        (
            "# Level 1\n",
            "# Level 1 (severity 9)\n",
            "12: unknown 'severity' in the heading; expected '# Level 1' alone",
        ),
        ("# Level 3\n", "# Level 3\n# Level 3\n", "1: headings are"),
    ):
        with edited(folder, "risk_taking.md", old, new):
            assert any(line.startswith(f"risk_taking.md:{error}") for line in said(folder)), said(folder)
            assert len(read_protocols(folder, WANTED, Errors())) == 6
