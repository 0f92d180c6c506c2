"""The documents say what is there: every module, every command, every worked example."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from dataset_builder.release import Release
from dataset_builder.schema import ProtocolRow, Row, UserMessage
from judge.schema import Figure, Triage, Verdict

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```json (\w+)\n(.*?)```", (ROOT / "docs" / "schemas.md").read_text(encoding="utf-8"), re.DOTALL)
KINDS: dict[str, type[BaseModel]] = {
    "row": Row,
    "message": UserMessage,
    "protocol": ProtocolRow,
    "verdict": Verdict,
    "figure": Figure,
    "triage": Triage,
}


@pytest.mark.parametrize(("kind", "text"), EXAMPLES, ids=[f"{kind}-{n}" for n, (kind, _) in enumerate(EXAMPLES)])
def test_worked_example_is_valid(kind: str, text: str) -> None:
    """Every example in docs/schemas.md is one that the models accept."""
    value = json.loads(text)
    if kind == "reply":
        assert ("reply" in value) != ("replies" in value)
    else:
        KINDS[kind].model_validate(value)


def test_every_kind_of_check_has_a_worked_row() -> None:
    """Tags, rating, graded and criterion each stand in an example row."""
    kinds = {check["check"] for kind, text in EXAMPLES if kind == "row" for check in json.loads(text)["evaluation"]}
    assert kinds == {"tags", "rating", "graded", "criterion"}


@pytest.mark.parametrize("folder", ["dataset_builder", "judge", "lm_eval_tasks/helmbench", "scripts"])
def test_every_module_stands_in_the_readme(folder: str) -> None:
    """A module that the README's tree doesn't name is one that a newcomer can't place."""
    missing = [
        p.name for p in sorted((ROOT / folder).rglob("*.py")) if not p.name.startswith("__") and p.name not in README
    ]
    assert missing == []


def test_readme_names_no_module_that_is_gone() -> None:
    """Every .py file in the README's tree exists."""
    named = set(re.findall(r"\b[\w/]+\.py\b", README[README.index("## Where things are") :]))
    present = {p.name for p in ROOT.rglob("*.py") if ".venv" not in p.parts}
    assert {Path(n).name for n in named} - present == set()


def test_readme_numbers_are_the_releases(release: Release) -> None:
    """The README's counts of messages, scenarios and behaviors equal the manifest's."""
    manifest = release.manifest
    messages = {row.message_key for row in release.rows.values()}
    talks = sum(any(m.content is None for m in release.rows[first].messages) for first in firsts(release).values())
    assert f"This release's {len(messages)} messages" in README
    assert (
        f"{len(manifest.scenarios)} scenarios ({talks} of them conversations), {len(manifest.behaviors)} of "
        "17 behaviors" in README
    )
    people = {row.persona: row.country for row in release.rows.values() if row.persona}
    assert f"{len(people)} people in {len({c for c in people.values() if c})} countries" in README


def firsts(release: Release) -> dict[str, str]:
    """scenario → the id of one of its rows."""
    return {row.scenario: row.id for row in release.rows.values()}


@pytest.mark.parametrize("page", ["README.md", "dataset_builder/writing/card.md", "dataset_builder/content/README.md"])
def test_public_page_warns_and_says_that_no_clinician_reviewed(page: str) -> None:
    """Every page that a reader may open first has a warning, a line for who needs help, and no false authority."""
    head = (ROOT / page).read_text(encoding="utf-8")[:1500]
    assert "findahelpline.com" in head
    assert re.search(r"No clinician has reviewed", head)
    assert re.search(r"suicide", head)


def test_readme_first_screen_has_both_commands() -> None:
    """`make demo` and `make test` stand within the first 25 lines."""
    head = "\n".join(README.splitlines()[:25])
    assert "make demo" in head
    assert "make test" in head


def test_readme_shows_what_the_demo_prints() -> None:
    """The README's two lines are the reference policies' figures on the lite tier of this content."""
    (tiers,) = json.loads((ROOT / "judge" / "references.json").read_text(encoding="utf-8")).values()
    for row in tiers["lite"]:
        if row["policy"] in ("keyword", "always-escalate"):
            figures = [
                f"{row[f][end]:.{digits}f}"
                for f, digits in (("composite", 1), ("sensitivity", 2), ("specificity", 2))
                for end in ("value", "low", "high")
            ]
            line = next(text for text in README.splitlines() if text.startswith(row["policy"] + " "))
            assert re.findall(r"-?\d+\.\d+", line) == figures
