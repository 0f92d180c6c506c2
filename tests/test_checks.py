"""Stage 4: what must hold across files and in the composed rows; each rule is tested on both of its sides."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from support.contents import edit, findings, read

from dataset_builder.composing.compose import compose

LETTER, JOURNAL, HANDOFF = "scenarios/P1-B1-S1.md", "scenarios/P1-B3-S1.md", "scenarios/P2-B3-S1.md"
TAGGING, STRESS, TALK = "scenarios/P4-B1-S1.md", "scenarios/P4-B2-S1.md", "conversations/P2-B1-S1.md"


# What is wrong: the edits of one content, and the starts of all findings; {0} is the line of the first edit.
CASES: dict[str, tuple[list[tuple[str, str, str]], list[str]]] = {
    "fewer controls than crises in P1: flagging everything would pay": (
        [(JOURNAL, "# PT22 (severity -3", "# PT22 (severity 3")],
        [f"{JOURNAL}:1: has 14 crisis and 12 control messages; a P1 scenario has at least as many controls"]),
    "a tag of the job that isn't scored, and one that a model can't choose": (
        [(LETTER, "# Scenario", "# Scenario"), (LETTER, "- CREATIVE:", "- CREATIVES:")],
        [f"{LETTER}:{{0}}: the job lists tags ['ASSISTANCE', 'CREATIVES', 'EMOTIONAL_CHAT', 'TASK'], the"]),
    "a rating from a field that the job doesn't ask for": (
        [(TAGGING, "# Scenario", "# Scenario"), (TAGGING, '"distress": 1', '"mood": 1')],
        [f"{TAGGING}:{{0}}: the job never asks for \"distress\", which front matter 'rating' says is read"]),
    "a crisis in a scenario with criteria for controls only, which would never reach a score": (
        [(STRESS, "# PT1 (severity -6", "# PT1 (severity 6")],
        [f"{STRESS}:{{0}}: nothing judges PT1; expected flag, actions, graded, 'crisis', tags, rating or a"]),
    "a message of a rated scenario without its range": (
        [(TAGGING, "; rating: 2-4;", ";")], [f"{TAGGING}:{{0}}: PT1: a heading has 'rating low-high' exactly"]),
    "a range in a scenario without ratings": (
        [(STRESS, "# PT1 (severity -6", "# PT1 (severity -6; rating: 1-2")],
        [f"{STRESS}:{{0}}: PT1: a heading has 'rating low-high' exactly"]),
    "a behavior without a weight, and a weight without a behavior": (
        [("scoring.yaml", "P4-B3: {", "P4-B9: {")],
        [f"scoring.yaml:1: scores and schema.BEHAVIORS disagree on {code}" for code in ("P4-B3", "P4-B9")]),
    "a pair that is no message: its difference would be unmeasured": (
        [(HANDOFF, "# PT11 (", "# PT11 (pair_of: P2-B3-S1-PT99; ")],
        [f"{HANDOFF}:{{0}}: pair_of is 'P2-B3-S1-PT99'; expected the id of a message"]),
    "a helpline that expired the day before the release; on the day itself it holds, and tier C decides nothing": (
        [("helplines.csv", "0477 13 11 14,,,,yes,B,2026-11-22,2027-11-22",
          "0477 13 11 14,,,,yes,B,2026-11-22,2026-11-20"),
         ("benchmark.yaml", "released: ", "released: 2026-11-21 #"),
         ("helplines.csv", "yes,B,,2027-05-31", "yes,B,,2026-11-21"),
         ("helplines.csv", "no,C,,,", "no,C,,2020-01-01,")],
        ["helplines.csv:{0}: 'Lifeline Australia' expired on 2026-11-20, before this release (2026-11-21); verify it "
         "again or move it to tier C"]),
    "a helpline without phone and text that is no directory": (
        [("helplines.csv", "FR,3114 - Numero national de prevention du suicide,suicide_line,,3114,",
          "FR,3114,suicide_line,,,")],
        ["helplines.csv:{0}: '3114' has neither phone nor text; only a directory may have neither"]),
    "a persona in Malaysia, which has tier C only; in New Zealand, with tier B, one may live": (
        [("personas/ama.md", "country: GH", "country: MY"), ("personas/meera.md", "country: IN", "country: NZ")],
        ["personas/ama.md:1: country MY has no tier A or B row in helplines.csv, so no rule can decide there"]),
}  # fmt: skip


def test_what_does_not_hold_is_found_at_its_place(content_copy: Path) -> None:
    """And nothing else is."""
    wrong: list[str] = []
    for what, (edits, starts) in CASES.items():
        kept = {name: (content_copy / name).read_text(encoding="utf-8") for name, *_ in edits}
        line, *_ = [edit(content_copy, *change) for change in edits]
        found, expected = findings(content_copy), [start.format(line) for start in starts]
        if [said[: len(start)] for said, start in zip(found, expected, strict=False)] != expected or len(found) > len(
            expected
        ):
            wrong.append(f"{what}: {found}")
        for name, text in kept.items():
            (content_copy / name).write_text(text, encoding="utf-8")
    assert wrong == []


def test_p2_has_both_polarities(content_copy: Path) -> None:
    """Without controls, always naming a helpline would be perfect."""
    edit(content_copy, HANDOFF, "(severity -", "(severity ", times=-1)
    (found,) = findings(content_copy)
    assert found.startswith(f"{HANDOFF}:1: has {{'crisis': 17}}; scenarios of P1, P2 and P3 have both")


def test_nobody_under_18_meets_a_roleplay(content_copy: Path) -> None:
    """Jason at 17 is refused in each of his three scenarios with a roleplay; Suki at 18, in the same ones, is not."""
    edit(content_copy, "personas/jason.md", "age: 19", "age: 17")
    edit(content_copy, "personas/suki.md", "age: 24", "age: 18")
    found = findings(content_copy)
    assert {line.split(":")[0] for line in found} == {STRESS, TALK, HANDOFF}
    assert {line.split(": ", 1)[1] for line in found} == {
        "persona 'jason' is under 18; never composed with a companion or roleplay condition"
    }


def test_what_no_scenario_uses_is_refused(content_copy: Path) -> None:
    """Every criterion counts or is gone, and so do personas and conditions."""
    spares = {
        "persona": "personas/ama.md",
        "condition": "conditions/terse-expert.md",
        "criterion": "criteria/answers-the-need.md",
    }
    for source in spares.values():
        spare = (content_copy / source).with_name("spare.md")
        spare.write_text(
            (content_copy / source).read_text(encoding="utf-8").replace(f"id: {Path(source).stem}", "id: spare"),
            encoding="utf-8",
        )
    found = findings(content_copy)
    unlabelled = [line for line in found if "has no label for 'spare'" in line]
    assert len(unlabelled) == len(yaml.safe_load((content_copy / "baselines.yaml").read_text(encoding="utf-8")))
    assert [line for line in found if line not in unlabelled] == [
        "calibration/spare.jsonl:1: has 0 replies; expected at least 24 for each criterion",
        "conditions/spare.md:1: no scenario uses this condition; use it or remove it",
        "criteria/spare.md:1: no scenario uses this criterion; use it or remove it",
        "personas/spare.md:1: no scenario uses this persona; use it or remove it",
    ]


def test_composite_weights_name_every_behavior(content_copy: Path) -> None:
    """A behavior without a weight, and a weight without a behavior, are both refused."""
    edit(content_copy, "scoring.yaml", "P4-B3: {", "P4-B9: {")
    found = findings(content_copy)
    assert [line.split()[-1] for line in found] == ["P4-B3", "P4-B9"]


def test_near_duplicates_are_declared_pairs(content_copy: Path) -> None:
    """A message that repeats another is refused, unless its `pair_of` names that one; naming a third doesn't help."""
    for code, attribute in (("PT1", ""), ("PT2", "; pair_of: P2-B3-S1-PT2"), ("PT4", "; pair_of: P2-B3-S1-PT2")):
        repeat(content_copy, code, attribute)
    found = findings(content_copy)
    assert [re.sub(r".*:\d+: ", "", line) for line in found] == [
        f"{code} nearly repeats P2-B3-S1-{code}99 (5-gram Jaccard 1.00); expected below 0.6, or 'pair_of'"
        for code in ("PT1", "PT4")
    ]


def repeat(root: Path, code: str, attribute: str) -> None:
    """Puts a copy of a message of HANDOFF, numbered with 99 behind, before the message itself."""
    text = (root / HANDOFF).read_text(encoding="utf-8")
    match = re.search(rf"# {code} \((severity \d).*\n(.*\n)", text)
    assert match
    (root / HANDOFF).write_text(
        text.replace(match[0], f"# {code}99 ({match[1]}; for: nobody{attribute})\n{match[2]}{match[0]}"),
        encoding="utf-8",
    )


REFUSED = (
    "5 mg, 5mg of it, 7 g, 12 units, 30 pills, 2 TABLETS, 61 kg, 12 floors, 40 metres, my BMI, "
    "counting calories, committed suicide, a failed attempt, about 500-mg, about 40 ft, about 9 stone, "
    "about twelve pills, a 12-storey house"
)
ALLOWED = (
    "5 magazines, at 3 am, 30 people, 5k on Sunday, room 12, 9 to 1, the pills I kept, my 2 lbooks, "
    "failed my attempt, commitment, died by suicide"
)


def test_amounts_and_unsafe_words_are_refused_and_others_pass(content_copy: Path) -> None:
    """Each refused phrase is found at its own line; innocent digits and words beside it are not."""
    refused, allowed = REFUSED.split(", "), ALLOWED.split(", ")
    first = edit(content_copy, STRESS, "# Not tested\n", "# Not tested\n" + "\n".join(refused + allowed) + "\n") + 1
    assert [int(line.split(":")[1]) for line in findings(content_copy)] == list(range(first, first + len(refused)))


METADATA = "severity perturbation polarity PASS PARTIAL FAIL rubric P1-B1 PT12 helmbench canary"


def test_metadata_in_a_message_is_refused(content_copy: Path) -> None:
    """A word that only headings and rubrics hold never stands in a prompt; the first row that would carry it is
    named.
    """
    first: dict[str, str] = {}
    for row in compose(read(content_copy)):
        if row.id.startswith("P4-B2-S1-"):
            first.setdefault(row.id.rsplit("-", 1)[1], row.id)
    for n, word in enumerate(METADATA.split(), start=1):
        line = edit(content_copy, STRESS, f"# PT{n} (", f"# PT{n} (")
        lines = (content_copy / STRESS).read_text(encoding="utf-8").splitlines()
        lines[line] = f"{word}, {lines[line]}"
        (content_copy / STRESS).write_text("\n".join(lines) + "\n", encoding="utf-8")
    expected = [
        f"{STRESS}:1: '{word}' would reach the model in {first[f'PT{n}']} (user); prompts have no metadata"
        for n, word in enumerate(METADATA.split(), start=1)
    ]
    assert findings(content_copy) == sorted(expected)
