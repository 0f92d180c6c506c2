"""A review: what the loader takes for a signature, and how the book's download becomes a patch that says what it
does.
"""

from __future__ import annotations

import copy
import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from helmbench.cli.app import main
from support import contents

from dataset_builder.book.page import content_hash
from dataset_builder.book.review import (
    FORMAT,
    Change,
    ReviewError,
    apply,
    changes,
    patch,
    placeholders,
    read,
    readable,
    summary,
)
from dataset_builder.checking.safe_messaging import safe
from dataset_builder.composing.compose import compose
from dataset_builder.prompts import CONTENT
from dataset_builder.reading.content_types import Content
from dataset_builder.reading.load import load
from dataset_builder.reading.markdown import Errors
from dataset_builder.reading.refused import hashed
from dataset_builder.reading.signing import signatures, text_hash

ID = "P4-B2-S1"
FILE = f"scenarios/{ID}.md"
Item = dict[str, Any]
TWO_LINES = "Reads true.\n# Rationale\n\nI'd keep it."


@cache
def shipped_hash() -> str:
    return text_hash(next(s.document for s in contents.read().scenarios if s.id == ID))


@pytest.fixture
def download(shipped: Content) -> Item:
    """What the book downloads: a comment, an agreement, a dispute on one scenario and a signature on another."""
    first, second = (next(s for s in shipped.scenarios if s.id == i) for i in (ID, "P3-B1-S1"))
    return {
        "format": FORMAT,
        "version": shipped.version,
        "content": content_hash(shipped),
        "date": "2026-11-22",
        "reviewer": {"name": "Ana Pérez", "qualification": "clinical psychologist"},
        "items": [
            {
                "scenario": ID,
                "text": text_hash(first.document),
                "signed": False,
                "notes": [
                    {"about": "scenario", "comment": TWO_LINES, "verdict": None, "severity": None},
                    {"about": "PT1", "comment": "", "verdict": "agree", "severity": None},
                    {"about": "PT2", "comment": "Could be either.", "verdict": "disagree", "severity": 2},
                    {"about": "PT3", "comment": "", "verdict": "disagree", "severity": None},
                ],
            },
            {"scenario": "P3-B1-S1", "text": text_hash(second.document), "signed": True, "notes": []},
        ],
    }


def saved(folder: Path, review: Item) -> Path:
    """A review file."""
    path = folder / "review.json"
    path.write_text(json.dumps(review), encoding="utf-8")
    return path


# The `review:` line.

GOOD = "signed by Ana Pérez (nurse, MSc), 2026-11-22, text {hash}"


def with_review(root: Path, review: str) -> list[str]:
    """Errors of a content whose scenario has this review line, `{hash}` being that of its words."""
    (root / FILE).write_bytes((CONTENT / FILE).read_bytes())
    contents.edit(root, FILE, "review: draft", f"review: {review.format(hash=shipped_hash())}")
    return load(root)[1].lines()


def test_a_draft_and_signatures_are_read(content_copy: Path) -> None:
    """One person or several, in any script."""
    for review in (
        "draft",
        GOOD,
        f"{GOOD}; signed by 王芳 (医师), 2026-12-01, text {{hash}}",
        GOOD.replace("Ana Pérez", "Órla O'Brien-अनीता, Dr"),
    ):
        assert with_review(content_copy, review) == []


def test_another_review_line_is_an_error(content_copy: Path) -> None:
    """Nothing that only looks like a signature passes."""
    for review in (
        "reviewed",
        "signed by Ana (nurse), 2026-02-30, text {hash}",
        "signed by Ana (), 2026-11-22, text {hash}",
        "signed by Ana (nurse), 2026-11-22",
        f"draft; {GOOD}",
    ):
        (line,) = with_review(content_copy, review)
        assert line.startswith(f"{content_copy / FILE}:5: review is '")
        assert "expected 'draft' or 'signed by NAME (QUALIFICATION), YYYY-MM-DD, text HASH'" in line


def test_a_signature_does_not_outlive_an_edit(content_copy: Path) -> None:
    """Words, severities and front matter: any change voids it, by name."""
    path = content_copy / FILE
    for change in (
        ("\n# PT2 (", "\nAnd more.\n# PT2 ("),
        ("# PT1 (severity -", "# PT1 (severity -1"),
        ("sources: none yet", "sources: one"),
    ):
        assert with_review(content_copy, GOOD) == []
        contents.edit(content_copy, FILE, *change)
        (line,) = [e for e in load(content_copy)[1].lines() if "signed the words" in e]
        assert line.startswith(f"{path}:5: Ana Pérez signed the words with hash ")
        assert "'review: draft' until they have been read again" in line


def test_review_notes_never_reach_a_prompt(content_copy: Path) -> None:
    """The same rows with notes and without, and a signature still stands: neither hash nor prompt covers them."""
    assert with_review(content_copy, GOOD) == []
    before = [row.model_dump_json() for row in compose(contents.read(content_copy)) if row.scenario == ID]
    with (content_copy / FILE).open("a", encoding="utf-8") as file:
        file.write("# Review notes\n- PT1 (Ana, 2026-11-22)\n  > ZANZIBAR.\n")
    after = contents.read(content_copy)
    assert "ZANZIBAR" in next(s for s in after.scenarios if s.id == ID).prose("Review notes")
    assert [row.model_dump_json() for row in compose(after) if row.scenario == ID] == before


# From the download to the patch.


def patched(root: Path, review: Item) -> list[Change]:
    """The changes of a review of the content in `root`."""
    content = contents.read(root)
    return changes(read(saved(root.parent, review), content), content)


def test_the_patch_changes_only_review_lines_and_notes(content_copy: Path, download: Item) -> None:
    """Word by word: a note is a line that says who and what, then a quotation; a signature replaces the draft."""
    found = patched(content_copy, download)
    lines = patch(found).splitlines()
    changed = [line for line in lines if line[:1] in "+-" and not line.startswith(("+++", "---"))]
    assert changed == [
        "+# Review notes",
        "+- The whole scenario (Ana Pérez, clinical psychologist, 2026-11-22)",
        "+  > Reads true.",
        "+  > # Rationale",
        "+  >",
        "+  > I'd keep it.",
        f"+- PT1, agrees with severity {severity(content_copy, 'PT1')} (Ana Pérez, clinical psychologist, 2026-11-22)",
        f"+- PT2, disagrees with severity {severity(content_copy, 'PT2')} and would say 2 (Ana Pérez, "
        "clinical psychologist, 2026-11-22)",
        "+  > Could be either.",
        f"+- PT3, disagrees with severity {severity(content_copy, 'PT3')} (Ana Pérez, clinical psychologist, "
        "2026-11-22)",
        "-review: draft",
        f"+review: signed by Ana Pérez (clinical psychologist), 2026-11-22, text {download['items'][1]['text']}",
    ]


def severity(root: Path, code: str) -> int:
    scenario = next(s for s in contents.read(root).scenarios if s.id == ID)
    return next(p.severity for p in scenario.perturbations if p.code == code)


def test_what_is_applied_is_read_again_and_moves_no_severity(content_copy: Path, download: Item) -> None:
    """The loader takes it, rows stay what they were, and the same file a second time changes nothing."""
    rows = [row.model_dump_json() for row in compose(contents.read(content_copy))]
    apply(patched(content_copy, download))
    after = contents.read(content_copy)
    assert [row.model_dump_json() for row in compose(after)] == rows
    assert patched(content_copy, download) == []
    assert "nothing to change" in summary(read(saved(content_copy.parent, download), after), [], after)
    download["reviewer"] = {"name": "Bo Lind", "qualification": "nurse"}  # a second one, below the first
    apply(patched(content_copy, download))
    text = (content_copy / FILE).read_text(encoding="utf-8")
    assert text.count("# Review notes") == 1
    assert text.index("PT3, disagrees with severity") < text.index("The whole scenario (Bo Lind, nurse, 2026-11-22)")
    review = next(s for s in contents.read(content_copy).scenarios if s.id == "P3-B1-S1").document.text("review")
    assert [s.name for s in signatures(review) or ()] == ["Ana Pérez", "Bo Lind"]


def test_git_applies_the_patch(content_copy: Path, download: Item, capsys: pytest.CaptureFixture[str]) -> None:
    """What the command prints, summary and all, is a patch; applied by git it gives what --apply writes."""
    file = saved(content_copy.parent, download)
    shutil.copytree(content_copy, content_copy.parent / "written")
    subprocess.run(["git", "init", "-q"], cwd=content_copy, check=True)
    assert main(["review", str(file), "--content", str(content_copy)]) == 0
    printed = capsys.readouterr().out
    subprocess.run(["git", "apply", "-"], cwd=content_copy, input=printed, text=True, encoding="utf-8", check=True)
    assert main(["review", str(file), "--apply", "--content", str(content_copy.parent / "written")]) == 0
    for name in (FILE, "scenarios/P3-B1-S1.md"):
        assert (
            (content_copy / name).read_bytes()
            == (content_copy.parent / "written" / name).read_bytes()
            != (CONTENT / name).read_bytes()
        )


def test_a_files_own_line_ends_and_last_line_are_kept(content_copy: Path, download: Item) -> None:
    """CRLF stays CRLF, so that a patch touches no other line; a file without a last newline is whole again after it."""
    path = content_copy / FILE
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n").removesuffix(b"\r\n"))
    (change,) = [c for c in patched(content_copy, download) if c.path == path]
    assert change.new.startswith(change.old)
    assert change.new.count("\n") == change.new.count("\r\n")
    assert "\\ No newline at end of file\n" in patch([change])
    apply([change])
    assert load(content_copy)[1].lines() == []


def test_the_summary_names_what_nobody_changed(shipped: Content, download: Item, tmp_path: Path) -> None:
    """Disputed severities with both numbers; and that a review of another version still fits."""
    download |= {"version": "0.0.9", "content": "0" * 12}
    review = read(saved(tmp_path, download), shipped)
    text = summary(review, changes(review, shipped), shipped)
    assert "Comments: 2; severities agreed with: 1, disputed: 2." in text
    assert "Signs: P3-B1-S1." in text
    assert f"  {ID}-PT2: {severity(CONTENT, 'PT2')}, would say 2" in text
    assert "this patch changes none of them" in text
    assert "Read in content 0.0.9" in text


def test_notes_on_a_protocol_and_a_category_go_into_their_files(content_copy: Path, download: Item) -> None:
    """And a protocol's signature; what is read from the files afterwards is what it was, word for word, so no rating
    becomes incomparable.
    """
    before = contents.read(content_copy)
    known = readable(before)
    names = {"protocol-self_harm": "protocols/self_harm.md", "category-no_crisis": "taxonomy/no_crisis.md"}
    download["items"] = [
        {
            "scenario": i,
            "text": text_hash(known[i].document),
            "signed": known[i].signs,
            "notes": [{"about": "scenario", "comment": f"On {i}."}],
        }
        for i in names
    ]
    found = patched(content_copy, download)
    assert {c.path for c in found} == {content_copy / name for name in names.values()}
    added = [line for line in patch(found).splitlines() if line[:1] in "+-" and not line.startswith(("+++", "---"))]
    person = "(Ana Pérez, clinical psychologist, 2026-11-22)"
    assert added == [
        "-review: draft",
        "+review: signed by Ana Pérez (clinical psychologist), 2026-11-22, text "
        f"{text_hash(known['protocol-self_harm'].document)}",
        "+# Review notes",
        f"+- The protocol {person}",
        "+  > On protocol-self_harm.",
        "+# Review notes",
        f"+- The category {person}",
        "+  > On category-no_crisis.",
    ]
    apply(found)
    after = contents.read(content_copy)
    assert (after.protocols, after.taxonomy) == (before.protocols, before.taxonomy)
    assert patched(content_copy, download) == []


def test_forbidden_words_become_placeholders_and_are_listed(content_copy: Path, download: Item) -> None:
    """A medicine and a landmark, known by their hashes, an amount, a named bridge and unsafe wording; the rest of the
    comment stays, and the content with it passes the check.
    """
    terms = content_copy / "refused_terms.yaml"
    lists = yaml.safe_load(terms.read_text(encoding="utf-8"))
    lists["begins"].append(hashed(lists["salt"], "mount"))
    lists["terms"]["medicine"].append(hashed(lists["salt"], "zorvexine"))
    lists["terms"]["place"].append(hashed(lists["salt"], "mount orlo"))
    terms.write_text(yaml.safe_dump(lists), encoding="utf-8")
    comment = "Zorvexine, forty tablets of it?\nNot at Mount Orlo or on the Ovrel Bridge. Say died, not commit suicide."
    download["items"][0]["notes"][1]["comment"] = comment
    found = patched(content_copy, download)
    added = [line for line in patch(found).splitlines() if line.startswith("+  > ")]
    assert added[3:5] == [
        "+  > [substance], [amount] of it?",
        "+  > Not at [place] or on the [place]. Say died, not [unsafe words].",
    ]
    content = contents.read(content_copy)
    review = read(saved(content_copy.parent, download), content)
    assert "Zorvexine" not in summary(review, found, content) + patch(found)
    listed = placeholders(review, content)
    assert f"  {ID}, note on PT1: 'Zorvexine' → [substance]" in listed
    assert sum("→" in line for line in listed) == 5
    apply(found)
    errors = Errors()
    safe(contents.read(content_copy), errors)
    assert errors.lines() == []


def test_an_error_in_another_scenario_refuses_nothing(
    content_copy: Path, download: Item, capsys: pytest.CaptureFixture[str]
) -> None:
    """That scenario is left out and its error printed; an error in the scenario that was read still refuses."""
    contents.edit(content_copy, "scenarios/P1-B1-S1.md", "# PT1 (severity ", "# PT1 (severity 1")
    file = str(saved(content_copy.parent, download))
    assert main(["review", file, "--content", str(content_copy)]) == 0
    out, err = capsys.readouterr()
    assert "  > Reads true." in out
    assert "P1-B1-S1.md:" in err
    assert "(scenario left out)" in err
    contents.edit(content_copy, FILE, "# PT1 (severity ", "# PT1 (severity 9")
    assert main(["review", file, "--content", str(content_copy)]) == 1
    assert f"unknown scenario '{ID}'" in capsys.readouterr().err


# What is refused.


def refused(shipped: Content, file: Path) -> tuple[str, ...]:
    with pytest.raises(ReviewError) as error:
        read(file, shipped)
    assert all(re.match(rf"{re.escape(str(file))}(:\d+)?: ", line) for line in str(error.value).split("\n"))
    return error.value.lines


# A place in the download, the change of its value, and what is said of it.
BAD: tuple[tuple[tuple[str | int, ...], Item, str], ...] = (
    ((), {"format": "helmbench-review-2"}, "not a review file; expected the book's download"),
    ((), {"severities": {"PT1": 3}}, "severities: "),
    ((), {"items": []}, "items: "),
    ((), {"date": "22.11.2026"}, "date is '22.11.2026'"),
    (("reviewer",), {"name": "<script>"}, "the reviewer's name is '<script>'"),
    (("reviewer",), {"name": "Ana\nreview: draft"}, "the reviewer's name"),
    (("reviewer",), {"name": "Ana (nurse), 2026-11-22; signed by Bo"}, "the reviewer's name"),
    (("reviewer",), {"name": ""}, "the reviewer's name is ''"),
    (("reviewer",), {"qualification": ""}, "the reviewer's qualification is ''"),
    (("items", 0), {"scenario": "../../README"}, "unknown scenario '../../README'"),
    (("items", 0), {"scenario": "protocol-outside_taxonomy"}, "unknown scenario 'protocol-outside_taxonomy'"),
    (("items", 0), {"scenario": "P3-B1-S1"}, "P3-B1-S1 appears twice"),
    (("items", 0), {"text": "0" * 12}, f"{ID} has changed since it was read"),
    (("items", 0), {"signed": True}, f"{ID} is signed, but the severity of PT2, PT3 is disputed"),
    (("items", 0), {"scenario": "protocol-self_harm"}, "protocol-self_harm, note on PT1: unknown message"),
    (("items", 1), {"scenario": "category-self_harm"}, "category-self_harm is signed but has no review line"),
    (("items", 0, "notes", 1), {"about": "PT999"}, f"{ID}, note on PT999: unknown message"),
    (("items", 0, "notes", 1), {"about": "PT2"}, "note on PT2: appears twice"),
    (("items", 0, "notes", 1), {"severity": 4}, "verdict is agree with severity 4"),
    (("items", 0, "notes", 2), {"severity": 0}, "expected 'disagree' with a number from -10 to 10 and not 0"),
    (("items", 0, "notes", 2), {"severity": 11}, "items.0.notes.2.severity: "),
    (("items", 0, "notes", 0), {"verdict": "agree"}, "note on scenario: verdict is agree"),
    (("items", 0, "notes", 0), {"comment": "<script>alert(1)</script>"}, "'<script>alert(1)</sc' reads as markup"),
    (("items", 0, "notes", 0), {"comment": "a\u202eb"}, "contains the control character U+202E"),
    (("items", 0, "notes", 0), {"comment": "a" * 4001}, "items.0.notes.0.comment: "),
)


def test_a_bad_review_is_refused_with_its_place(shipped: Content, download: Item, tmp_path: Path) -> None:
    """One line that names the file, the scenario and note, and what is wrong. support/broken_inputs.py has files that
    can't be read.
    """
    hashes = {i: text_hash(r.document) for i, r in readable(shipped).items()}
    own = {"severity": severity(CONTENT, "PT2")}
    wrong = []
    for where, change, expected in (*BAD, (("items", 0, "notes", 2), own, "and suggests the same")):
        spoiled = copy.deepcopy(download)
        part: Any = spoiled
        for key in where:
            part = part[key]
        part |= {"text": hashes[change["scenario"]]} | change if change.get("scenario") in hashes else change
        problems = refused(shipped, saved(tmp_path, spoiled))
        if not any(expected in problem for problem in problems):
            wrong.append((expected, problems))
    assert wrong == []


def test_all_that_is_wrong_is_said_at_once_and_nothing_is_written(
    content_copy: Path, download: Item, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two errors, exit 1, an empty stdout and the files as they were, though a third item is in order."""
    download["items"][0]["notes"][0]["comment"] = "<script>"
    download["items"][0]["notes"][1]["about"] = "PT999"
    before = {p: p.read_bytes() for p in content_copy.rglob("*.md")}
    assert main(["review", str(saved(content_copy.parent, download)), "--apply", "--content", str(content_copy)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 3
    assert err.endswith("2 errors; nothing was written\n")
    assert {p: p.read_bytes() for p in content_copy.rglob("*.md")} == before
    assert main(["review", str(content_copy / "none.json")]) == 2
    assert "none.json" in capsys.readouterr().err
