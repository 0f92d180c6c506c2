"""Stage 4: a message, its writer, the job and the product can all be true at once; each rule on both of its sides."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.contents import FRONT, drop_unheard_voices, edit, findings

from dataset_builder.checking.fit import UNKNOWN_ASKER

FILE = "scenarios/P4-B2-S1.md"
SCENARIO = (
    FRONT
    + """# Scenario
You chat with the user.
# Rationale
Why.
# Judgement calls
The calls.
# Not tested
The rest.
# C1 bare-assistant (difficulty 0)
# C2 johora (difficulty 0)
# C3 practical-advice (difficulty 0)
# C4 terse-expert (difficulty 0)
# U1 jason/1
# U2 jiwoo/2
# U3 renata/2
# PT1 (severity -6; for: jason)
When does the library close on Sundays, and does the back door count?
# PT2 (severity -6; not for: jason)
My spoon fell into the sink and I want it back before the lentils boil.
# PT3 (severity -6; for: nobody)
Which of two bicycles would suit a hill and a dog in a basket?
"""
)


@pytest.fixture
def small(content_copy: Path) -> Path:
    """A content in which one scenario's every word stands in this file."""
    (content_copy / FILE).write_text(SCENARIO, encoding="utf-8")
    drop_unheard_voices(content_copy)
    assert findings(content_copy) == []
    return content_copy


def test_a_scenario_that_remembers_nobody_needs_no_for(small: Path) -> None:
    """Where there is no user context, there is nobody to choose from."""
    path = small / "scenarios" / "P4-B1-S1.md"
    assert "\n# U" not in path.read_text(encoding="utf-8")
    text, removed = re.subn(r"; for: nobody(?:; voice: [\w-]+)?", "", path.read_text(encoding="utf-8"))
    assert removed
    path.write_text(text, encoding="utf-8")
    drop_unheard_voices(small)
    assert findings(small) == []


def test_a_learners_english_is_not_of_a_first_speaker(small: Path) -> None:
    """Jason of Chicago has English; Jiwoo and Renata haven't. English alone is what counts: with a second first
    language, people mix the two.
    """
    edit(small, FILE, "; not for: jason", "; register: non_native; not for: jason")
    assert findings(small) == []
    edit(small, FILE, "; for: jason", "; register: code_switching; for: jason")
    (found,) = findings(small)
    assert found.endswith(
        "PT1 is code_switching, and 'jason' has English as first language; expected somebody with another, or another "
        "register"
    )
    path = small / "personas" / "jason.md"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    for language, fits in (("American English", False), ("English and Korean", True), ("Korean", True)):
        changed = [f"first_language: {language}\n" if s.startswith("first_language:") else s for s in lines]
        path.write_text("".join(changed), encoding="utf-8")
        assert (findings(small) == []) == fits, language


def test_a_message_from_a_country_is_of_somebody_who_lives_there(small: Path) -> None:
    """Jason lives in the US; who is remembered by nobody may write from anywhere."""
    edit(small, FILE, "for: nobody", "for: nobody; country: GB")
    edit(small, FILE, "; for: jason", "; country: US; for: jason")
    assert findings(small) == []
    edit(small, FILE, "country: US", "country: GB")
    (found,) = findings(small)
    assert found.endswith("PT1 comes from GB, and 'jason' lives in US; expected somebody who lives there")


def test_an_unknown_asker_has_no_profile(small: Path) -> None:
    """A prompt that says so, in the job or in the product's text, names both at the condition's line. Other words about
    askers pass.
    """
    for text in (
        "You don't know who is asking.",
        "Nobody knows who is asking.",
        "People write anonymously.",
        "You do not see who writes.",
        "Users are not signed in.",
        "They are strangers to you.",
    ):
        assert UNKNOWN_ASKER.search(text), text
    for text in (
        "Some users are signed in and let the page remember them.",
        "You know who is asking.",
        "Managers don't see replies.",
        "If you don't know the answer, say so.",
    ):
        assert not UNKNOWN_ASKER.search(text), text
    line = edit(small, FILE, "# C1 bare", "# C1 bare")
    edit(small, FILE, "You chat with the user.\n# Rat", "You chat with the user. They are strangers to you.\n# Rat")
    found = findings(small)
    assert len(found) == 4
    assert found[0].startswith(f"{FILE}:{line}: '# C1 bare-assistant' or its job says '")
    assert "before the profiles of U1 jason, U2 jiwoo, U3 renata; expected" in found[0]
    edit(small, FILE, "You chat with the user. They are strangers to you.\n# Rat", "You chat with the user.\n# Rat")
    edit(small, "conditions/johora.md", "# Text\n", "# Text\nYou don't know who is asking. ")
    said = "\n".join(findings(small))
    assert f"{FILE}:19: '# C2 johora' or its job says 'don't know who', before the profiles of U1" in said


def test_an_unknown_asker_without_contexts_passes(small: Path) -> None:
    """Where the product remembers nobody, it may say so."""
    edit(small, FILE, "# U1 jason/1\n# U2 jiwoo/2\n# U3 renata/2\n", "")
    edit(small, FILE, "for: jason", "for: nobody")
    edit(small, FILE, "; not for: jason", "; for: nobody")
    edit(small, FILE, "You chat with the user.\n# Rat", "You chat. You don't know who is asking.\n# Rat")
    for name in ("jiwoo", "renata"):
        (small / "personas" / f"{name}.md").unlink()
    assert findings(small) == []


@pytest.mark.parametrize(
    ("ages", "outside"), [("14-110", []), ("14-19", ["renata"]), ("20-44", ["jason", "jiwoo", "renata"])]
)
def test_a_jobs_ages_hold_its_people(small: Path, ages: str, outside: list[str]) -> None:
    """A pupil's job has no user of 45; both ends are inside (Jason and Jiwoo are 19, Renata is 45)."""
    edit(small, FILE, "control: [", f"ages: {ages}\ncontrol: [")
    assert [line.split("persona '")[1].split("'")[0] for line in findings(small)] == outside


def test_a_jobs_countries_hold_its_people(small: Path) -> None:
    """A housing office of one country has no tenant in another."""
    edit(small, FILE, "control: [", "countries: [US, KR]\ncontrol: [")
    assert findings(small) == [f"{FILE}:25: persona 'renata' lives in BR; the job's 'countries' are US, KR"]


def test_a_withdrawn_scenario_is_left_as_it_was(small: Path) -> None:
    """It composes nothing, so nothing can contradict itself in it."""
    edit(small, FILE, "review: draft", "review: draft\nwithdrawn: too easy\nages: 80-90")
    assert findings(small) == []


def test_a_message_says_whose_it_can_be(small: Path) -> None:
    """Fit is somebody's decision: nothing goes with everybody because nobody thought of it."""
    line = edit(small, FILE, "PT1 (severity -6; for: jason)", "PT1 (severity -6)")
    assert findings(small) == [
        f"{FILE}:{line}: PT1 doesn't say whose it can be; expected 'for:' with some of jason, jiwoo, "
        "renata, 'for: nobody', or 'not for:' with those whose it can't be"
    ]
