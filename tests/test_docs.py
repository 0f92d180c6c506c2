"""The documents say what is there: every module, every command, every worked example."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from demo import figure
from helmbench.cli import app as commands
from helmbench.cli.common import app
from make_references import scored
from pydantic import BaseModel
from typer.core import TyperGroup
from typer.main import get_command

from dataset_builder.release import Release
from dataset_builder.schema import ProtocolRow, Row, UserMessage
from judge.judges import references
from judge.report.sentences import sentence
from judge.schema import Figure, Triage, Verdict
from judge.wording import number

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
WORDS = re.sub(r"\s+", " ", README)  # README without line breaks
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
    """Tags, actions, rating, graded and criterion each stand in an example row."""
    kinds = {check["check"] for kind, text in EXAMPLES if kind == "row" for check in json.loads(text)["evaluation"]}
    assert kinds == {"tags", "actions", "rating", "graded", "criterion"}


def test_folders_in_the_readme_exist() -> None:
    """The map under "Contribute" names folders of the repository."""
    section = README[README.index("## Contribute") :].split("```")[1]
    folders = re.findall(r"^ *([\w/]+)/ ", section, re.MULTILINE)
    assert len(folders) > 8
    parents = ("", "dataset_builder/")
    assert [f for f in folders if not any((ROOT / parent / f).is_dir() for parent in parents)] == []


def test_links_between_pages_exist() -> None:
    """Every relative link names a file, and every anchor a heading of it."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "lm_eval_tasks").rglob("*.md")]
    gone = []
    for page in pages:
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            path, _, anchor = target.partition("#")
            if "://" in target:
                continue
            file = (page.parent / path).resolve() if path else page
            if (not file.exists()) or (anchor and anchor not in _anchors(file)):
                gone.append(f"{page.name}: {target}")
    assert gone == []


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda p: p.name
)
def test_every_command_that_a_page_names_is_one(page: Path) -> None:
    """`helmbench NAME` in code, with the options that stand behind it."""
    assert commands.main is not None  # importing it is what hangs every command from the root
    known = get_command(app)
    assert isinstance(known, TyperGroup)
    for said in re.findall(r"(?:^|[`(])helmbench ([^`#\n]*)", page.read_text(encoding="utf-8"), re.MULTILINE):
        words = said.replace("|", " ").split()
        if not words or words[0].startswith("-") or words[0] == "…":
            continue
        command = known.commands.get(words[0])
        assert command is not None, said
        inside = getattr(command, "commands", {})
        own = inside.get(words[1], command) if inside and len(words) > 1 else command
        options = {o for p in own.params for o in (*p.opts, *p.secondary_opts)} | {"--help"}
        assert {w.partition("=")[0].strip("[],.") for w in words if w.lstrip("[").startswith("--")} <= options, said


def test_readme_numbers_are_the_releases(release: Release) -> None:
    """The README's counts of messages, scenarios and behaviors equal the manifest's."""
    manifest = release.manifest
    messages = {row.message_key for row in release.rows.values()}
    talks = sum(any(m.content is None for m in release.rows[first].messages) for first in firsts(release).values())
    assert f"this release's {len(messages)} messages" in WORDS
    assert (
        f"{len(manifest.scenarios)} scenarios ({talks} of them conversations), {len(manifest.behaviors)} of "
        "18 behaviors" in WORDS
    )
    people = {row.persona: row.country for row in release.rows.values() if row.persona}
    assert f"{len(people)} people in {len({c for c in people.values() if c})} countries" in WORDS


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


def test_readme_shows_what_the_demo_prints(release: Release) -> None:
    """The README's two lines, and its example of a report's first sentence, are what rules decide of these policies."""
    for policy in ("keyword", "always-escalate"):
        card = scored(release, policy, "detect")
        found = card.detect
        assert found
        assert found.job
        figures = (found.detection.sensitivity, found.detection.specificity, found.job)
        line = next(text for text in README.splitlines() if text.startswith(policy + " "))
        assert re.split(r"  +", line)[1:] == [figure(f.model_dump()) for f in figures]
        if policy == "keyword":
            assert f"*{sentence(card)}*" in WORDS


def test_results_show_the_trivial_policies(release: Release) -> None:
    """The figures of every policy on core, as in every report."""
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    rows = [
        f"{number(r.composite.value)} ({number(r.composite.low)} to {number(r.composite.high)}) | "
        f"{100 * (r.sensitivity.value or 0):.0f} % | {100 * (r.specificity.value or 0):.0f} % | {r.breached} of 11"
        for r in references(release)["core"]
    ]
    assert [row for row in rows if row not in page] == []
    assert page.count(" of 11 |") == len(rows) == 6
