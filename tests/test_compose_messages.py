"""Messages by themselves: which stand alone, what the model is told, what is checked, and how the tiers are cut."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from helmbench.cli.app import main
from support.contents import edit, edited, read

from dataset_builder.composing.messages import EVERY, NAMES, covers, known_countries, messages
from dataset_builder.reading.content_types import Content
from dataset_builder.reading.markdown import Errors
from dataset_builder.release import Release
from dataset_builder.schema import UserMessage

LETTER, HANDOFF, STRESS, DIAGNOSIS = (
    "scenarios/P1-B1-S1.md",
    "scenarios/P2-B3-S1.md",
    "scenarios/P4-B2-S1.md",
    "scenarios/P3-B1-S1.md",
)


def composed(root: Path) -> dict[str, UserMessage]:
    return {m.id: m for m in messages(read(root))}


def findings(root: Path) -> list[str]:
    covers(read(root), errors := Errors())
    return [line.removeprefix(f"{root}/") for line in errors.lines()]


def checks(message: UserMessage) -> list[str]:
    return [
        c.protocol if c.check == "appropriateness" else c.criterion
        for c in message.evaluation
        if c.check in ("appropriateness", "criterion")
    ]


def test_the_release_has_every_message_that_stands_alone(release: Release, shipped: Content) -> None:
    """All single messages of the six kinds and all controls but those marked; no conversation, no other crisis, nothing
    of the hard part, no severity of pillar 3's kind.
    """
    expected = {
        f"{s.id}-{p.code}"
        for s in shipped.scenarios
        if s.kind == "scenario" and not s.family
        for p in s.perturbations
        if p.attributes.get("alone") != "no"
        and s.category(p) != "outside_taxonomy"
        and (p.severity < 0) == (s.category(p) == "no_crisis")
    }
    assert set(release.messages) == expected
    assert {m.crisis_category for m in release.messages.values()} == set(release.protocols)
    assert {row.message_key for row in release.rows.values()} >= expected


def test_the_model_reads_the_users_words_and_no_others(release: Release) -> None:
    """The last message is the one that a benchmark row ends with; before it stands the country or nothing."""
    words = {row.message_key: row.messages[-1].content for row in release.rows.values()}
    for message in release.messages.values():
        assert message.messages[-1].content == words[message.id]
        told = [m.content for m in message.messages[:-1]]
        assert told == ([f"The user is in {NAMES[message.country]}."] if message.country else [])
        assert [m.role for m in message.messages] == ["system"] * len(told) + ["user"]


def test_what_is_checked_follows_the_polarity(release: Release) -> None:
    """First the protocol of its category, then the criteria of its side; withholding means where the scenario asks for
    it.
    """
    for message in release.messages.values():
        first, *rest = checks(message)
        assert first == message.crisis_category
        if message.polarity == "control":
            assert rest == ["answers-the-need"]
        else:
            asked = [
                "sees-the-danger",
                "reachable-resource",
                *(["speaks-to-this-person"] if "speaks-to-this-person" in release.criteria else []),
            ]
            assert rest[: len(asked)] == asked
            assert rest[len(asked) :] == (
                ["withholds-the-means"] if message.id.startswith(("P1-B2-S2", "P1-B2-S4")) else []
            )
        assert {c.behavior for c in message.evaluation} == {"appropriateness"}
        assert {
            c.decided_by for c in message.evaluation if c.check == "criterion" and c.criterion == "reachable-resource"
        } <= {"rule-then-judge"}
        assert (message.signal is None) == (message.polarity == "control")


def test_the_tiers_are_nested_and_spread(release: Release) -> None:
    """Everything in core and full; lite has ten of each category that has so many, over its severities, and whole
    probes.
    """
    found = release.messages.values()
    assert {tuple(m.tiers) for m in found} == {("core", "full"), ("lite", "core", "full")}
    lite = [m for m in found if "lite" in m.tiers]
    all_of, of_lite = Counter(m.crisis_category for m in found), Counter(m.crisis_category for m in lite)
    for category, n in all_of.items():
        assert min(n, 10) <= of_lite[category] <= min(n, 10) + 5
    severities = [m.severity or 0 for m in lite if m.crisis_category == "suicidal_ideation"]
    assert min(severities) <= 4
    assert max(severities) >= 9
    halves = Counter(m.probe for m in lite if m.probe)
    pairs = {m.probe for m in found if m.probe}
    assert sum(n == 2 for n in halves.values()) >= min(5, len(pairs))


def test_countries_are_spread_over_the_registry(release: Release, shipped: Content) -> None:
    """A third of the crises and a third of the controls are told a country, so that the line itself says nothing; each
    of the registry in turn.
    """
    authored = {f"{s.id}-{p.code}" for s in shipped.scenarios for p in s.perturbations if "country" in p.attributes}
    for polarity in ("crisis", "control"):
        own = [m for m in release.messages.values() if m.polarity == polarity]
        assert sum(m.country is not None for m in own) == len(own) // EVERY
        counts = Counter(m.country for m in own if m.country and m.id not in authored)
        assert set(counts) == set(known_countries(shipped))
        assert max(counts.values()) - min(counts.values()) <= 1
    placed = ("code_switching", "cultural_idiom")
    assert not [m.id for m in release.messages.values() if m.country and m.id not in authored and m.register_ in placed]


def head(root: Path, code: str, attributes: str) -> int:
    """Gives a message of LETTER another heading; returns its line."""
    (old,) = re.findall(rf"(?m)^# {code} .*$", (root / LETTER).read_text(encoding="utf-8"))
    return edit(root, LETTER, old, f"# {code} ({attributes})")


def test_attributes_reach_the_message(content_copy: Path) -> None:
    """A message that can't stand alone is gone; a country, a signal and a probe are kept, and the country is said."""
    before = composed(content_copy)
    edit(content_copy, LETTER, "# PT7 (severity 10", "# PT7 (severity 10; alone: no")
    head(content_copy, "PT4", "severity 6; signal: indirect; probe: letter; country: GH; for: nobody")
    edit(content_copy, LETTER, "# PT21 (severity -8", "# PT21 (severity -8; probe: letter")
    found = composed(content_copy)
    assert before.keys() - found.keys() == {"P1-B1-S1-PT7"}
    crisis, control = found["P1-B1-S1-PT4"], found["P1-B1-S1-PT21"]
    assert (crisis.signal, crisis.probe, crisis.country, crisis.messages[0].content) == (
        "indirect",
        "P1-B1-S1-letter",
        "GH",
        "The user is in Ghana.",
    )
    assert (control.signal, control.probe, control.country) == (None, "P1-B1-S1-letter", None)
    assert all("lite" in half.tiers for half in (crisis, control))
    assert findings(content_copy) == []


def test_an_outside_or_withdrawn_message_has_no_place(content_copy: Path) -> None:
    """A crisis of none of the six kinds has no protocol; a withdrawn scenario asks nothing."""
    edit(content_copy, LETTER, "# PT7 (severity 10", "# PT7 (severity 10; crisis_category: outside_taxonomy")
    assert "P1-B1-S1-PT7" not in composed(content_copy)
    edit(content_copy, STRESS, "\ntitle: ", "\nwithdrawn: yes\ntitle: ")
    assert not any(i.startswith("P4-B2-S1") for i in composed(content_copy))


def test_a_country_without_a_name_is_a_finding_and_no_crash(
    content_copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`check` says so, and the book, which shows drafts, shows this one."""
    line = edit(content_copy, LETTER, "# PT7 (severity 10", "# PT7 (severity 10; country: XX")
    assert main(["check", "--content", str(content_copy)]) == 1
    assert f"{LETTER}:{line}: country XX has no tier A or B row" in capsys.readouterr().err
    assert main(["book", "--content", str(content_copy), "--out", str(content_copy.parent / "book.html")]) == 0


def test_a_criterion_that_nobody_wrote_is_an_error(content_copy: Path) -> None:
    """The messages are still composed, without that check; `check` says what is missing."""
    (content_copy / "criteria" / "sees-the-danger.md").unlink()
    (content_copy / "calibration" / "sees-the-danger.jsonl").unlink()
    for path in (content_copy / "calibration" / "readings").glob("*.jsonl"):
        path.unlink()
    found = [line for line in findings(content_copy) if "sees-the-danger" in line]
    assert found == ["criteria/sees-the-danger.md:1: is missing; crisis messages that stand alone are judged by it"]
    assert not any("sees-the-danger" in checks(m) for m in composed(content_copy).values())


def test_every_country_of_the_registry_has_a_name(shipped: Content) -> None:
    """A country without a name could not be told to a model."""
    assert {h.country for h in shipped.helplines} - NAMES.keys() == {"INT"}
    assert all(re.fullmatch(r"(the )?[A-Z][a-zA-Z ]+", name) for name in NAMES.values())


def test_a_slip_is_named_at_its_message(content_copy: Path) -> None:
    """With the scenario's file and the heading's line."""
    for attribute, error in (
        ("probe: one", "probe 'one' is PT7 crisis; expected exactly two, one crisis and one control"),
        ("country: ZZ", "country ZZ has no tier A or B row in helplines.csv and a name; expected one of AT, AU, "),
        ("probe: one; alone: no", "PT7 is half of a probe, and doesn't stand alone; expected a message of config"),
    ):
        with edited(content_copy, LETTER, "# PT7 (severity 10", f"# PT7 (severity 10; {attribute}") as line:
            assert any(found.startswith(f"{LETTER}:{line}: {error}") for found in findings(content_copy)), attribute
