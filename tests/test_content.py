"""The authored files themselves: what a reader of the dataset is promised about each."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from support.contents import findings

from dataset_builder.prompts import CONTENT

SCENARIOS = [*sorted(CONTENT.glob("scenarios/*.md")), *sorted(CONTENT.glob("conversations/*.md"))]
CRITERIA = sorted(CONTENT.glob("criteria/*.md"))


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def parts(path: Path) -> dict[str, str]:
    """Heading → text below it, read without the builder's own reader; `front` is the front matter."""
    _, front, body = path.read_text(encoding="utf-8").split("---\n", 2)
    pieces = re.split(r"^# (.*)\n", body, flags=re.MULTILINE)
    return {"front": front, **dict(zip(pieces[1::2], pieces[2::2], strict=True))}


def severities(path: Path) -> list[int]:
    return [int(n) for n in re.findall(r"^# PT\d+ \(severity (-?\d+)", path.read_text(encoding="utf-8"), re.MULTILINE)]


def offenders(holds: Callable[[Any], None], cases: Iterable[Path | str]) -> list[str]:
    """The cases for which an assertion of `holds` fails."""
    found: list[str] = []
    for case in cases:
        try:
            holds(case)
        except AssertionError as error:
            found.append(f"{name(case) if isinstance(case, Path) else case}: {error}")
    return found


def test_the_content_has_no_errors() -> None:
    """Everything that the builder checks holds for what ships."""
    assert findings(CONTENT) == []


def test_the_job_is_one_plain_sentence_that_gives_no_answer_away() -> None:
    """Whoever judges a reply reads it before the conversation: it names no danger, no help and no tag."""

    def holds(path: Path) -> None:
        front = parts(path)["front"]
        (job,) = re.findall(r"^job: (.*)$", front, re.MULTILINE)
        assert re.fullmatch(r"[A-Z][^.!?:]+\.", job)
        assert 4 <= len(job.split()) <= 20
        assert not re.search(r"danger|cris[ie]s|suicid|risk|\bharm|safe|control|severe|die\b|death", job, re.IGNORECASE)
        (tags,) = re.findall(r"^tags: \[(.*)\]$", front, re.MULTILINE) or [""]
        assert not set(job.split()) & set(tags.split(", "))

    assert offenders(holds, SCENARIOS) == []


def test_a_scenario_explains_itself() -> None:
    """Why, the judgement calls, and what is not tested are prose: sentences, not a word to fill a heading."""

    def holds(path: Path) -> None:
        for heading, words in {"Rationale": 40, "Judgement calls": 20, "Not tested": 8}.items():
            text = parts(path)[heading]
            assert len(text.split()) >= words, heading
            assert text.rstrip().endswith("."), heading

    assert offenders(holds, SCENARIOS) == []


def test_a_crisis_scenario_has_controls() -> None:
    """Flagging everything must cost something in every scenario: half as many controls as crises, and in P1 as many."""

    def holds(path: Path) -> None:
        crises, controls = [sum((n > 0) == crisis for n in severities(path)) for crisis in (True, False)]
        assert crises > 0
        assert controls * 2 >= crises
        assert controls >= crises or not path.stem.startswith("P1")

    assert offenders(holds, [p for p in SCENARIOS if max(severities(p)) > 0]) == []


def test_a_criterion_fits_a_page() -> None:
    """A judge, human or model, reads it whole: 450 words at most. `keeps-to-reality` stands as it was measured against
    people's labels.
    """

    def holds(path: Path) -> None:
        most = 565 if path.stem == "keeps-to-reality" else 450
        assert 100 <= len(path.read_text(encoding="utf-8").split()) <= most

    assert offenders(holds, CRITERIA) == []


def test_a_criterion_names_its_labels_or_outcomes() -> None:
    """The closed set that a verdict is matched against stands as a list, in order, each way to fail that `fails` names
    being one.
    """

    def holds(path: Path) -> None:
        front = parts(path)["front"]
        graded = "kind: graded\n" in front
        ways = re.findall(r"([\w-]+) \w+[,\]]", "".join(re.findall(r"^fails: \[.*\]$", front, re.MULTILINE)))
        named = re.findall(r"^- ([\w-]+): ", parts(path)["Outcomes" if graded else "Labels"], re.MULTILINE)
        assert named == (
            ["flagged", "attentive", "ignored"]
            if graded
            else ["PASS", "PARTIAL", *([f"FAIL-{way}" for way in ways] or ["FAIL"])]
        )

    assert offenders(holds, CRITERIA) == []


def test_the_neutral_pair_differs_only_in_added_questions() -> None:
    """Two quoted replies, the second being the first and then nothing but questions: no criterion takes a side on
    asking.
    """

    def holds(path: Path) -> None:
        first, second = re.findall(r'^"(.*)"$', parts(path)["Neutral pair"], re.MULTILINE)
        assert second.startswith(first + " ")
        assert re.fullmatch(r"(?:[A-Z][^.!?]*\?\s?)+", second.removeprefix(first + " "))
        assert "question" in parts(path)["Not judged"]

    assert offenders(holds, CRITERIA) == []


def test_a_main_country_has_a_line_and_an_emergency_number() -> None:
    """A rule can decide there at any hour: an always-open line and an emergency service, both of tier A or B."""

    def holds(country: str) -> None:
        with (CONTENT / "helplines.csv").open(encoding="utf-8", newline="") as handle:
            usable = [
                r
                for r in csv.DictReader(handle)
                if r["country"] == country and r["tier"] in ("A", "B") and r["always_open"] == "yes"
            ]
        assert any(r["kind"] == "suicide_line" and (r["phone"] or r["text"]) for r in usable)
        assert any(r["kind"] == "emergency" and r["phone"] for r in usable)

    assert offenders(holds, ["AU", "US", "GB", "IN"]) == []


def test_the_release_has_twenty_probes() -> None:
    """Questions that stand once with a sign of danger and once without, in one scenario; each half says something else
    beside them.
    """
    probes: dict[tuple[str, str], list[tuple[bool, str]]] = {}
    for path in SCENARIOS:
        for heading, text in parts(path).items():
            if match := re.match(r"PT\d+ \(severity (-?).*probe: ([a-z-]+)", heading):
                probes.setdefault((path.stem, match[2]), []).append((match[1] == "", text))
    assert len(probes) >= 20
    for halves in probes.values():
        assert sorted(crisis for crisis, _ in halves) == [False, True]
        assert len({text for _, text in halves}) == 2


def test_indirect_signals_are_of_crises() -> None:
    """A control has no danger to infer; a third of the crises at least say theirs in words, as most people do, and a
    sixth don't.
    """
    headings = [
        heading
        for path in SCENARIOS
        if path.parent.name == "scenarios" and "\nfamily: " not in path.read_text(encoding="utf-8")
        for heading in parts(path)
        if heading.startswith("PT")
    ]
    crises = [heading for heading in headings if re.match(r"PT\d+ \(severity \d", heading)]
    indirect = [heading for heading in headings if "; signal: indirect" in heading]
    assert set(indirect) <= set(crises)
    assert len(crises) / 6 <= len(indirect) <= len(crises) * 2 / 3
