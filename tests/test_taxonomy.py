"""The taxonomy: every category that a message may carry has a readable file, and every message's category is in it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import get_args

import pytest
from support.contents import edit, edited, errors_of, read

from dataset_builder.checking.likeness import alike
from dataset_builder.reading.categories import TAXONOMY as FOLDER
from dataset_builder.reading.categories import covers, read_taxonomy
from dataset_builder.reading.content_types import Content
from dataset_builder.reading.markdown import Errors
from dataset_builder.schema import CrisisCategory


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the taxonomy that a test may spoil."""
    return Path(shutil.copytree(FOLDER, tmp_path / "taxonomy"))


def said(folder: Path) -> list[str]:
    read_taxonomy(folder, errors := Errors())
    return [line.replace(str(folder) + "/", "") for line in errors.lines()]


def test_every_category_is_defined() -> None:
    """The six, no_crisis and outside_taxonomy, in the schema's order; triage offers all but the last."""
    categories = read_taxonomy(FOLDER, errors := Errors())
    assert errors.lines() == []
    assert tuple(categories) == get_args(CrisisCategory)
    assert [name for name, c in categories.items() if not c.in_triage] == ["outside_taxonomy"]
    assert not categories["no_crisis"].high_risk
    assert all(c.definition and len(c.borderline) >= 3 and len(c.examples) == 2 for c in categories.values())
    assert len({c.category_hash for c in categories.values()}) == 8


def test_no_example_is_like_a_message_that_is_asked(shipped: Content) -> None:
    """An example shown in a triage prompt shares less than 0.6 of its 5-grams with every message, so no answer is given
    away.
    """
    examples = [e for c in shipped.taxonomy.values() for e in c.examples]
    asked = [p.words for s in shipped.scenarios for p in s.perturbations]
    assert [pair for pair in alike([*examples, *asked]) if pair[0] < len(examples)] == []


def test_a_missing_category_is_an_error(folder: Path) -> None:
    """So is a file that is no category."""
    (folder / "self_harm.md").rename(folder / "self-harm.md")
    names = ", ".join(get_args(CrisisCategory))
    assert said(folder) == [
        f"self-harm.md:1: 'self-harm' is not a crisis category of schema.py; expected one of {names}",
        "self_harm.md:1: is missing; every crisis category of schema.py has a file",
    ]


def test_a_category_hash_covers_the_definition(folder: Path) -> None:
    """One changed word changes that category's hash and no other's."""
    before = read_taxonomy(folder, Errors())
    edit(folder, "anxiety_crisis.md", "Fear, worry or panic", "Dread, worry or panic")
    after = read_taxonomy(folder, Errors())
    assert [name for name in before if before[name].category_hash != after[name].category_hash] == ["anxiety_crisis"]


def test_an_example_that_is_asked_is_an_error(content_copy: Path) -> None:
    """Triage would then test copying; a missing category is named when the content is read."""
    root = content_copy
    content = read(root)
    message = next(p for s in content.scenarios for p in s.perturbations if len(p.turns) == 1 and "\n" not in p.words)
    with (root / "taxonomy" / "no_crisis.md").open("a", encoding="utf-8") as handle:
        handle.write(f"- {message.words}\n")
    covers(read(root), errors := Errors())
    assert any("no_crisis.md:1: an example repeats " in line for line in errors.lines())
    (root / "taxonomy" / "suicidal_ideation.md").unlink()
    assert errors_of(root) == [
        "taxonomy/suicidal_ideation.md:1: is missing; every crisis category of schema.py has a file"
    ]


def test_a_slip_names_its_line(folder: Path) -> None:
    """Every way to spoil a file is told with its line and what was expected, and hides no other file."""
    for old, new, error in (
        ("in_triage: yes", "in_triage: maybe", "4: in_triage is 'maybe'; expected one of no, yes"),
        ("high_risk: no", "high_risks: no", "5: unknown key 'high_risks'; did you mean 'high_risk'? expected one of"),
        ("# Borderline", "# Border", "1: headings are ['Definition', 'Border', 'Examples']; expected ['Definition', "),
        ("- Risky sport", "Risky sport", "10: cannot read 'Risky sport done with training, gear and'; expected one po"),
    ):
        with edited(folder, "risk_taking.md", old, new):
            assert any(line.startswith(f"risk_taking.md:{error}") for line in said(folder)), said(folder)
            assert len(read_taxonomy(folder, Errors())) == 7
