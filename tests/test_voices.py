"""Stages 2 and 4: how people write is read, asked for and used, each rule on both of its sides; and what is counted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.contents import edit, edited, errors_of, findings, read
from test_fit import FILE, SCENARIO

from dataset_builder.prompts import CONTENT
from dataset_builder.stats.coverage import voices

DOV = "# dov (age 34; country IL; first_language Hebrew, Russian)\nTypes fast.\n"


EVE = "# eve (age 40; country US; first_language English)\nSpeaks in talks alone.\n"


@pytest.fixture
def small(content_copy: Path) -> Path:
    """A content with one voice, which one message of a scenario in this folder has."""
    (content_copy / "voices.md").write_text(f"---\nid: voices\n---\n{DOV}\n{EVE}", encoding="utf-8")
    for path in content_copy.glob("parts/*.md"):
        path.write_text(re.sub(r"(?m)^voice: .*", "voice: eve", path.read_text(encoding="utf-8")), encoding="utf-8")
    (content_copy / FILE).write_text(SCENARIO.replace("for: nobody", "for: nobody; voice: dov"), encoding="utf-8")
    for path in [*content_copy.glob("scenarios/*.md"), *content_copy.glob("conversations/*.md")]:
        if path.name != Path(FILE).name:
            path.write_text(re.sub(r"; voice: [\w-]+", "", path.read_text(encoding="utf-8")), encoding="utf-8")
    assert findings(content_copy) == []
    return content_copy


def test_a_voice_is_read(small: Path) -> None:
    """Who it is stands in the heading, how they write below it; front matter is no must."""
    (small / "voices.md").write_text(f"{DOV}\n{EVE}", encoding="utf-8")
    voice = read(small).voices["dov"]
    assert (voice.slug, voice.age, voice.country, voice.first_language, voice.text, voice.line) == (
        *("dov", 34, "IL", "Hebrew, Russian", "Types fast."),
        1,
    )


SLIPS = {
    "age": ("age 34", "age old", "age is 'old'; expected a whole number from 13 to 110"),
    "country": ("country IL", "country Israel", "country is 'Israel'; expected a two-letter ISO 3166 code such as AU"),
    "no language": ("; first_language Hebrew, Russian", "", "heading '# dov' has no 'first_language'; expected"),
    "unknown": ("age 34", "age 34; mood calm", "unknown 'mood' in the heading; "),
    "name": ("# dov", "# Dov", "'# Dov' is not a voice's name; expected small letters, such as "),
    "empty": ("Types fast.\n", "", "'# dov' is empty; expected text below the heading"),
    "twice": ("# dov", f"{DOV}# dov", "'# dov' appears twice; voice names are unique"),
}  # fmt: skip


def test_a_message_has_a_voice_that_is_there(small: Path) -> None:
    """A misspelt voice is named with what is near."""
    line = edit(small, FILE, "voice: dov", "voice: dave")
    assert errors_of(small) == [f"{FILE}:{line}: voice is 'dave'; expected one of dov, eve"]


def test_every_voice_is_used(small: Path) -> None:
    """A voice that no message has is refused at its line, as every shared text is."""
    edit(small, FILE, "; voice: dov", "")
    assert findings(small) == ["voices.md:4: no message has 'voice: dov'; use it or remove it"]


def test_a_voice_fits_its_message_too(small: Path) -> None:
    """Dov lives in Israel and has no English first: a learner's English fits, another country doesn't."""
    edit(small, FILE, "; voice: dov", "; voice: dov; register: non_native")
    assert findings(small) == []
    line = edit(small, FILE, "; voice: dov", "; voice: dov; country: GB")
    assert findings(small) == [
        f"{FILE}:{line}: PT3 comes from GB, and 'dov' lives in IL; expected somebody who lives there"
    ]
    edit(small, FILE, "; country: GB", "")
    edit(small, "voices.md", "Hebrew, Russian", "English")
    assert findings(small) == [
        f"{FILE}:{line}: PT3 is non_native, and 'dov' has English as first language; expected somebody with another, "
        "or another register"
    ]


def test_voices_are_counted_by_hand(small: Path) -> None:
    """PT1 is Jason's (English), PT2 Jiwoo's and Renata's, PT3 Dov's: a third and two thirds; without a voice, PT3 is
    nobody's in particular.
    """
    for name, language in (("jason", "English"), ("jiwoo", "Korean"), ("renata", "Portuguese")):
        path = small / "personas" / f"{name}.md"
        lines = path.read_text(encoding="utf-8").splitlines()
        text = "\n".join(f"first_language: {language}" if s.startswith("first_language") else s for s in lines)
        path.write_text(text + "\n", encoding="utf-8")

    def counted() -> dict[str, float]:
        content = read(small)
        (scenario,) = (s for s in content.scenarios if s.id == Path(FILE).stem)
        figures = voices(content, [(scenario, p) for p in scenario.perturbations])
        assert (figures["personas"], figures["others"]) == (len(content.personas), 2)
        shares: dict[str, float] = figures["messages by first language (%)"]
        return shares

    assert counted() == {"English alone": 33.3, "another first language": 66.7, "nobody in particular": 0.0}
    edit(small, FILE, "; voice: dov", "")
    assert counted() == {"English alone": 33.3, "another first language": 33.3, "nobody in particular": 33.3}


def test_a_slip_in_a_voice_is_an_error(small: Path) -> None:
    """Unknown is an error here as everywhere; a message of a persona is in the persona's own hand."""
    for old, new, expected in SLIPS.values():
        with edited(small, "voices.md", old, new):
            assert any(line.startswith("voices.md:") and expected in line for line in errors_of(small)), expected
    line = edit(small, FILE, "for: nobody; voice", "for: jason; voice")
    assert errors_of(small) == [
        f"{FILE}:{line}: has a 'voice' without 'for: nobody'; a persona's messages are in the persona's own voice"
    ]


def test_every_persona_has_a_voice(small: Path) -> None:
    """Whose hand it is can't be left to whoever writes the message; 40 words at least tell one from another."""
    edit(small, "personas/jason.md", "# Voice", "# 9 (severity 9)")
    edit(small, "personas/jason.md", "first_language:", "#")
    assert [line.partition("; ")[0] for line in findings(small)] == [
        "personas/jason.md:1: has no '# Voice'",
        "personas/jason.md:1: has no 'first_language'",
    ]
    for path in CONTENT.glob("personas/*.md"):
        assert len(path.read_text(encoding="utf-8").partition("\n# Voice\n")[2].split()) >= 40, path
