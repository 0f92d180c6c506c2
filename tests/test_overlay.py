"""Private additions: laid over the published content, checked with it, and marked so that nobody takes one for the
other.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from helmbench.cli.app import main
from support.contents import ALONE, one_scenario, read

from dataset_builder.checking.checks import check
from dataset_builder.composing.compose import compose
from dataset_builder.prompts import CONTENT
from dataset_builder.reading.content_types import Content
from dataset_builder.reading.load import load
from dataset_builder.reading.markdown import Errors, read_document
from dataset_builder.reading.opening import opened
from dataset_builder.reading.signing import text_hash
from dataset_builder.schema import Manifest
from dataset_builder.writing.write import write

OWN = "P4-B2-S900"
# A team's own words: near none of the published messages.
MINE = (
    ALONE.replace("P4-B2-S1", OWN)
    .replace("yo what time do u close", "is the ward kettle broken again or is it me")
    .replace(
        "Could you send me the receipt of Tuesday's order, please?",
        "Please put my bicycle lamp in the left-hand drawer of the porter's desk.",
    )
    .replace("My parcel came open and a spoon is gone.", "Nobody fed the fish over the weekend and it looks at me.")
)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A published content of one scenario."""
    return one_scenario(tmp_path / "base")


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """A team's folder with one scenario."""
    (tmp_path / "ours" / "scenarios").mkdir(parents=True)
    (tmp_path / "ours" / "scenarios" / f"{OWN}.md").write_text(MINE, encoding="utf-8")
    return tmp_path / "ours"


def union(ours: Path, base: Path, checked: bool = False) -> tuple[Content | None, list[str]]:
    """Both as one content, and the errors at their authors' places."""
    with opened(ours, errors := Errors(), base) as source:
        content, found = load(source.root)
        errors.found += found.found
        if content and checked:
            check(content, compose(content), errors)
        return (source.marked(content) if content else None), source.placed(errors).lines()


def built(ours: Path, base: Path, out: Path) -> Manifest:
    with opened(ours, errors := Errors(), base) as source:
        content = read(source.root)
        assert errors.lines() == []
        return write(source.marked(content), compose(content), out)


def test_own_people_products_and_criteria_are_read(ours: Path, base: Path) -> None:
    """Names that begin with own- stand beside the published ones."""
    for folder, name in (("personas", "jason"), ("conditions", "bare-assistant"), ("criteria", "answers-the-need")):
        (ours / folder).mkdir()
        text = (CONTENT / folder / f"{name}.md").read_text(encoding="utf-8")
        (ours / folder / f"own-{name}.md").write_text(text.replace(f"id: {name}", f"id: own-{name}"), encoding="utf-8")
    text = (
        MINE.replace("# C1 bare-assistant", "# C1 own-bare-assistant")
        .replace("U1 jason/1", "U1 own-jason/1")
        .replace("[answers-the-need]", "[own-answers-the-need]")
    )
    (ours / "scenarios" / f"{OWN}.md").write_text(text, encoding="utf-8")
    content, errors = union(ours, base)
    assert errors == []
    assert content
    assert {"own-jason", "jason"} <= content.personas.keys()
    assert "own-answers-the-need" in content.criteria


CLASHES = {
    "a published scenario": ("scenarios/P4-B2-S1.md",
        "the published content already has this file; expected a number from S900 on"),
    "a number that a release may take": ("scenarios/P4-B2-S77.md",
        "'P4-B2-S77' is not a name for private additions; expected a number from S900 on, such as P1-B1-S900"),
    "a persona's name that a release may take": ("personas/mara.md",
        "'mara' is not a name for private additions; expected a name that begins with 'own-'"),
    "a stray file": ("notes.txt", "has no place in private additions"),
    "a file that isn't read": ("scenarios/P4-B2-S901.txt", "isn't read; expected NAME.md in scenarios/"),
    "calibration of a published criterion": ("calibration/answers-the-need.jsonl",
        "is not a name for private additions"),
}  # fmt: skip


def test_checks_run_on_both_together(ours: Path, base: Path) -> None:
    """A message that repeats a published one, an unused persona and an amount are found, at the team's files."""
    path = ours / "scenarios" / f"{OWN}.md"
    path.write_text(
        ALONE.replace("P4-B2-S1", OWN)
        .replace("A spoon", "Three spoons")
        .replace("Which.", "Where 3 tablets are named."),
        encoding="utf-8",
    )
    (ours / "personas").mkdir()
    (ours / "personas" / "own-ben.md").write_text(
        (CONTENT / "personas" / "jason.md").read_text(encoding="utf-8").replace("id: jason", "id: own-ben"),
        encoding="utf-8",
    )
    _, errors = union(ours, base, checked=True)
    mine = [e for e in errors if e.startswith(str(ours))]
    assert [e for e in mine if "PT1 nearly repeats P4-B2-S1-PT1" in e]
    assert [e for e in mine if "own-ben.md:1: no scenario uses this persona" in e]
    assert [e for e in mine if e.startswith(f"{path}:") and "'3 tablets' reads as an amount" in e]


def test_own_helplines_are_appended_and_their_errors_placed(ours: Path, base: Path) -> None:
    """Rows that aren't listed yet; a listed service, a wrong cell and other columns are errors at the team's own
    line.
    """
    head, first, *_ = (CONTENT / "helplines.csv").read_text(encoding="utf-8").splitlines()
    cells = first.split(",")
    service = cells[head.split(",").index("service")]
    path = ours / "helplines.csv"
    path.write_text("\n".join([head, first.replace(service, "Our own line", 1)]) + "\n", encoding="utf-8")
    content, errors = union(ours, base)
    assert errors == []
    assert content
    assert [h.service for h in content.helplines].count("Our own line") == 1
    path.write_text("\n".join([head, first.replace(service, "Our own line", 1), first]) + "\n", encoding="utf-8")
    assert union(ours, base)[1] == [
        f"{path}:3: '{service}' in {cells[0]} already has a row; expected services that are not listed yet"
    ]
    path.write_text("\n".join([head, "AU,too short"]) + "\n", encoding="utf-8")
    (line,) = union(ours, base)[1]
    assert line.startswith(f"{path}:2: has 2 cells; expected 14")
    path.write_text("country,name\nAU,x\n", encoding="utf-8")
    (line,) = union(ours, base)[1]
    assert line.startswith(f"{path}:1: columns are 'country,name'")


def test_nothing_is_left_behind(ours: Path, base: Path) -> None:
    """The folder that is read is gone afterwards, and the team's and the published files are as they were."""
    before = {p: p.read_bytes() for root in (ours, base) for p in root.rglob("*") if p.is_file()}
    with opened(ours, Errors(), base) as source:
        assert source.root.is_dir()
        assert source.root not in (ours, base)
    assert not source.root.exists()
    assert {p: p.read_bytes() for root in (ours, base) for p in root.rglob("*") if p.is_file()} == before


def test_commands_lay_a_folder_over_the_published_content(
    ours: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`book` shows both and says so; `stats` counts both; an error of theirs stands at their file."""
    assert main(["book", "--content", str(ours), "--out", str(tmp_path / "book.html")]) == 0
    page = (tmp_path / "book.html").read_text(encoding="utf-8")
    assert "Private additions: 1 scenario from ours, not the published benchmark." in page
    assert f'<details class="scenario" id="{OWN}"' in page
    assert page.count("<strong>A private addition.</strong>") == 1
    capsys.readouterr()
    assert main(["stats", "--json", "--content", str(ours)]) == 0
    published = len([*CONTENT.glob("scenarios/*.md"), *CONTENT.glob("conversations/*.md")])
    assert json.loads(capsys.readouterr().out)["plan"]["scenarios"]["have"] == published + 1
    (ours / "scenarios" / f"{OWN}.md").write_text(MINE.replace("review: draft", "review: signed"), encoding="utf-8")
    assert main(["check", "--content", str(ours)]) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"{ours / 'scenarios' / OWN}.md:5: review is 'signed'")
    assert err.endswith("1 error; nothing was written\n")


def test_a_review_of_private_additions_goes_to_their_files(
    ours: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The team's own file is written, not the copy that was read."""
    document = read_document(ours / "scenarios" / f"{OWN}.md", Errors())
    assert document
    item = {"scenario": OWN, "text": text_hash(document), "notes": [{"about": "PT1", "comment": "Our kettle."}]}
    review = {
        "format": "helmbench-review-1",
        "version": "0.1.0",
        "content": "0" * 12,
        "date": "2026-11-22",
        "reviewer": {"name": "Ana"},
        "items": [item],
    }
    (tmp_path / "review.json").write_text(json.dumps(review), encoding="utf-8")
    assert main(["review", str(tmp_path / "review.json"), "--apply", "--content", str(ours)]) == 0
    assert f"check --content {ours}" in capsys.readouterr().err
    assert (ours / "scenarios" / f"{OWN}.md").read_text(
        encoding="utf-8"
    ) == MINE + "# Review notes\n- PT1 (Ana, 2026-11-22)\n  > Our kettle.\n"


def test_a_build_says_what_it_is(ours: Path, base: Path, tmp_path: Path) -> None:
    """Manifest, card and version name the additions; the published licence isn't claimed for them. Other additions are
    another version and score_hash; the published rows stay the same.
    """
    published, manifest = built(base, base, tmp_path / "a"), built(ours, base, tmp_path / "b")
    assert (published.additions, "+" in published.version) == (None, False)
    assert "private" not in (tmp_path / "a" / "README.md").read_text(encoding="utf-8").lower()
    said = "private additions: 1 scenario from ours, not the published benchmark"
    assert manifest.additions == said
    assert re.fullmatch(rf"{re.escape(published.version)}\+local\.\w{{8}}", manifest.version)
    assert [s["id"] for s in manifest.scenarios] == ["P4-B2-S1", OWN]
    card = (tmp_path / "b" / "README.md").read_text(encoding="utf-8")
    assert card.split("---\n", 2)[2].startswith(f"# HELMbench\n\n> **{said.capitalize()}.**")
    assert "license: other" in card
    assert "license: cc-by-4.0" not in card
    assert "the private additions are their owner's" in card
    (ours / "scenarios" / f"{OWN}.md").write_text(MINE.replace("kettle", "toaster"), encoding="utf-8")
    third = built(ours, base, tmp_path / "c")
    assert len({m.score_hash for m in (published, manifest, third)}) == 3
    assert len({m.version for m in (published, manifest, third)}) == 3
    assert published.scenarios[0] == manifest.scenarios[0] == third.scenarios[0]


def test_what_is_not_theirs_is_an_error_at_their_file(ours: Path, base: Path) -> None:
    """The file is named, and what would be right."""
    for name, _ in CLASHES.values():
        (ours / name).parent.mkdir(parents=True, exist_ok=True)
        (ours / name).write_text("", encoding="utf-8")
    _, errors = union(ours, base)
    for what, (name, expected) in CLASHES.items():
        assert [e for e in errors if e.startswith(f"{ours / name}:1: ") and expected in e], what
