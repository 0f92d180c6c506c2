"""Stages 2 and 4: substances are found by their hashes, amounts by their words, and what is harmless says why."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import hash_terms
import pytest
import yaml
from support.contents import edit, errors_of, findings

from dataset_builder.checking import safe_messaging
from dataset_builder.checking.safe_messaging import AMOUNT, PLACE, unsafe
from dataset_builder.prompts import CONTENT
from dataset_builder.reading.content_types import Content
from dataset_builder.reading.refused import Allowed, Refused, Terms, hashed, stem
from dataset_builder.release import Release

STRESS = "scenarios/P4-B2-S1.md"
NO_TERMS = Terms(salt="of no account", begins=frozenset(), terms={})

# Made up: no substance is named in a test either.
LIST = "medicine: Zorbifex, vel dromane\npoison: Old Quennet Salt, quennet, Murlé\nplace: Tarn Ovrel, morrevik\n"


@pytest.fixture
def terms(tmp_path: Path) -> Path:
    """What the script makes of a made-up list."""
    (tmp_path / "list.txt").write_text(LIST, encoding="utf-8")
    hash_terms.main(tmp_path / "list.txt", tmp_path / "terms.yaml")
    return tmp_path / "terms.yaml"


def read_terms(path: Path) -> Terms:
    return Terms.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))


@pytest.fixture
def refused(terms: Path) -> Refused:
    return Refused(read_terms(terms), ())


FOUND = {
    "took Zorbifex again": ("Zorbifex", "medicine"),
    "ZORBIFEX’s box": ("ZORBIFEX", "medicine"),
    "two zorbifexes": None,
    "some Zorbifexs": ("Zorbifexs", "medicine"),
    "the vel-dromane one": ("vel-dromane", "medicine"),
    "dromane alone": None,
    "vel, then dromane": ("vel, then dromane", None),
    "old quennet salts": ("old quennet salts", "poison"),
    "a quennet": ("quennet", "poison"),
    "MURLE!": ("MURLE", "poison"),
    "zorbifexine": None,
    "off tarn ovrel": ("tarn ovrel", "place"),
    "at Morrevik, alone": ("Morrevik", "place"),
    "": None,
}


def test_a_term_is_found_whole(refused: Refused) -> None:
    """In any case, with or without an accent or the s of a plural, over a hyphen; never inside a longer word. Where a
    term stands in another, the longer one is found.
    """
    found = {text: [(text[hit.start : hit.end], hit.category) for hit in refused.hits(text)] for text in FOUND}
    assert found == {text: [wanted] if wanted and wanted[1] else [] for text, wanted in FOUND.items()}


def test_the_list_holds_no_word_of_its_source(terms: Path) -> None:
    """Hashes under a salt of its own, sorted: neither words nor their order are kept."""
    text = terms.read_text(encoding="utf-8")
    assert not {"zorbifex", "dromane", "quennet", "murle"} & {*text.lower().replace('"', " ").split()}
    read = read_terms(terms)
    assert {name: len(found) for name, found in read.terms.items()} == {"medicine": 2, "poison": 3, "place": 2}
    assert read.begins == {hashed(read.salt, word) for word in ("vel", "old", "tarn")}
    assert hashed(read.salt, "vel") != hashed("another salt", "vel")


def test_a_list_grows_without_the_words_that_are_in_it(terms: Path, tmp_path: Path) -> None:
    """`--add` keeps salt and hashes; without it the file is made anew, under another salt."""
    before = read_terms(terms)
    (tmp_path / "more.txt").write_text("drug: wessen root\nmedicine: zorbifex, tellavan\n", encoding="utf-8")
    hash_terms.main(tmp_path / "more.txt", terms, add=True)
    grown = read_terms(terms)
    assert grown.salt == before.salt
    sizes = {name: len(found) for name, found in grown.terms.items()}
    assert sizes == {"medicine": 3, "poison": 3, "place": 2, "drug": 1}
    assert grown.begins - before.begins == {hashed(grown.salt, "wessen")}
    assert all(found <= grown.terms[name] for name, found in before.terms.items())
    hash_terms.main(tmp_path / "more.txt", terms)
    assert read_terms(terms).salt != before.salt
    terms.write_text(hash_terms.yaml_of(Terms(salt="1952736591514546", begins=frozenset(), terms={})), encoding="utf-8")
    assert yaml.safe_load(terms.read_text(encoding="utf-8"))["salt"] == "1952736591514546", "a string of digits"


def test_a_list_that_cant_be_read_is_refused(tmp_path: Path) -> None:
    """A line without a category, with an unknown one, or with a term too long; nothing is written then."""
    for line in ("zorbifex", "food: zorbifex", "drug: one two three four", "drug: zorbifex,,quennet"):
        (tmp_path / "list.txt").write_text(line, encoding="utf-8")
        with pytest.raises(ValueError, match=r"list\.txt:1: expected 'category: term, term'"):
            hash_terms.main(tmp_path / "list.txt", tmp_path / "terms.yaml")
        assert not (tmp_path / "terms.yaml").exists()


def test_a_stem_is_a_small_plain_singular() -> None:
    """Short words and a double s keep their end."""
    assert [*map(stem, ("Pills", "gas", "glass", "Café", "its"))] == ["pill", "gas", "glass", "cafe", "its"]


REFUSED = [
    *("40 tablets of it", "forty of the blue tablets", "a handful of pills", "a couple of her capsules", "12 doses"),
    *("the whole box", "half a bottle", "the entire strip", "two packets", "half my pills", "three full bottles"),
    *("the 12th floor", "the twelfth floor", "a twenty-first floor", "floor 9", "a 40-metre drop", "a ten-foot wall"),
    *("90 mph", "120 km/h", "ninety miles an hour", "0.16 %", "0,8 percent", "1.2 ‰", "weighs 48", "900 kcal"),
]
PASSING = [
    "the pills I kept", "a bottle of water", "my tablets", "the box by the bed", "the roof at work", "the top floor",
    "two boys", "half an hour", "on the floor", "2.5 % interest", "the second story he told", "ten stops",
    "4. the tablets", "ring 116 123. Tablets", "all of my pills", "a thousand pounds", "weigh it up",
    "the whole bottling plant", "floored", "a full boxing day", "my two medicines", "a week of rest",
    "the painkillers I kept", "three of my friends", "two spoons", "a year's work",
    "medicines: the spray, two of them", "x3", "six thirty", "left for the day", "her meds in the fridge",
]  # fmt: skip


COUNTS = [
    *("40", "forty", "forty-five", "a hundred", "two dozen", "dozens", "40-odd", "forty or so", "forty-ish", "40x"),
    *("40 or 50", "a handful", "several", "a couple", "couple of hundred"),
]
COUNTED = [
    "tablets", "pills", "caps", "of my mum's old tablets", "of the small white pills", "sleeping tablets", "lozenges",
    "painkillers", "of his antidepressants", "strong sedatives", "of her blood thinners", "benzos", "beta blockers",
]  # fmt: skip
MEASURED = ["units", "ml", "mls", "mgs", "iu", "packets", "strips", "boxes", "vials", "spoonfuls", "blister packs"]
OTHERWISE = [
    "40tabs", "40x tablets", "tablets x40", "pills × 40", "painkillers, forty of them", "the tablets, 40 in total",
    "my meds, about sixty left", "sedatives – thirty of those", "forty of his meds", "60 of my nan's medicines",
    "a month's worth of my tablets", "a whole month of my meds", "two weeks of painkillers",
    "a year’s supply of his pills", "six months worth of my meds", "a whole box of them", "half the bottle",
    "the entire strip", "a full packet", "FORTY TABLETS", "forty  tablets", "every pill, all sixty of them",
    "three fistfuls of pills",
]  # fmt: skip


def said(text: str, what: str) -> bool:
    """Whether the check says this of a text."""
    return any(what in line for line in unsafe(text, Refused(NO_TERMS, ())))


def planted() -> list[str]:
    """Every count of everything countable, in a sentence each; nothing is named, and no amount is one of anything."""
    counted = [f"{n} {what}" for n, what in product(COUNTS, COUNTED)]
    measured = [f"{n} {what}" for n, what in product(COUNTS, MEASURED) if not n.endswith(("dful", "ral", "couple"))]
    return [f"so I have {text} now" for text in (*counted, *measured, *OTHERWISE)]


def test_planted_amounts_are_refused() -> None:
    """15 counts by 13 countable things, 12 by 11 that are measured, and 23 said otherwise."""
    texts = planted()
    assert len(texts) == 15 * 13 + 12 * 11 + 23 == 350
    assert [text for text in texts if not said(text, "reads as an amount")] == []


def test_a_name_is_refused_whatever_stands_around_it(refused: Refused) -> None:
    """A substance with or without an amount and a place: at least one finding for each part that is there."""
    names = ("Zorbifex", "zorbifexs", "VEL DROMANE", "vel-dromane", "murlé", "old quennet salt")
    counts = ("", "40 ", "forty-odd ", "a whole box of ", "some of her ")
    for name, count, place in product(names, counts, ("", " off tarn ovrel", " on the Ovrel Bridge")):
        found = [*unsafe(text := f"I took {count}{name}{place} and waited", refused)]
        assert sum("names a substance" in line for line in found) == 1, text
        assert sum("names a place" in line for line in found) == bool(place), text
        assert any("reads as an amount" in line for line in found) or count != "a whole box of ", text


PLACES = [
    *("the Ovrel Bridge", "at Ovrel bridge", "by the Old Ovrel Viaduct", "St Ovrel's Cliffs", "from Ovrel Tower"),
    *("the Ovrel-Morre Dam", "Ovrel Car Park", "up Ovrel quarry", "the Ovrel multi-storey"),
]
NO_PLACES = [
    *("the bridge by the station", "The Bridge", "a cliff", "My tower block", "Under Bridge", "The bridge was closed"),
    *("the top of the car park", "over the viaduct", "Community Centre", "Stone bridge, one span"),
]


def test_a_height_with_a_name_is_refused() -> None:
    """The name needn't be known; a generic place passes, and a word at the beginning of a sentence is not a name."""
    assert [text for text in PLACES if not said(f"I am going to {text}", "names a place")] == []
    assert [text for text in NO_PLACES if said(text, "names a place")] == []


def test_an_amount_is_refused() -> None:
    """Counts of pills and what holds them, heights, speeds, parts of blood and breath, weights. General classes and
    everyday counts pass.
    """
    assert [text for text in REFUSED if not said(text, "reads as an amount")] == ["900 kcal"]
    assert [text for text in PASSING if said(text, "reads as an amount")] == []


def test_the_fast_search_misses_nothing() -> None:
    """Other scripts' digits, dashes, spaces and quotes, letters and emoji beside an amount or a place."""
    texts = [*REFUSED, *planted()[::7], *(f"I am going to {text}" for text in PLACES)]
    for text, sign in product(texts, ("é", "😊", "\xa0", "’", "–", "×", "µ", "·", "\t")):
        for odd in (f"{text}{sign}", f"{sign}{text}", text.replace(" ", sign), text.replace("4", "٤")):
            slow = [match[0] for pattern in (AMOUNT, PLACE) for match in pattern.finditer(odd)]
            assert safe_messaging._suspicious(odd) or not slow, odd


def test_a_named_substance_is_refused_wherever_a_text_stands(content_copy: Path, terms: Path) -> None:
    """A scenario, a persona, a condition, a criterion, a voice, both calibrations: each at its line."""
    (content_copy / "refused_terms.yaml").write_text(terms.read_text(encoding="utf-8"), encoding="utf-8")
    assert findings(content_copy) == []
    lines = {
        name: edit(content_copy, name, old, new)
        for name, old, new in (
            (STRESS, "# Not tested\n", "# Not tested\nZorbifex.\n"),
            ("personas/jason.md", "# Profile\n", "# Profile\nZorbifex.\n"),
            ("conditions/johora.md", "# Text\n", "# Text\nZorbifex.\n"),
            ("criteria/acts-at-once.md", "# Not judged\n", "# Not judged\nZorbifex.\n"),
            ("calibration/acts-at-once.jsonl", '"reply": "', '"reply": "\\nZorbifex '),
            ("rating_calibration/no_crisis.jsonl", '"reply": "', '"reply": "\\nZorbifex '),
            ("voices.md", "id: voices\n---\n", "id: voices\n---\n"),
        )
    }
    with (content_copy / "voices.md").open("a", encoding="utf-8") as handle:
        handle.write("# dov (age 34; country IL; first_language Hebrew)\nSays Zorbifex.\n")
    found = [line for line in findings(content_copy) if "names a substance" in line]
    assert {line.split(":")[0] for line in found} == {*lines}
    at = {line.split(":")[0]: int(line.split(":")[1]) for line in found}
    assert all(
        at[name] == line + (1 if name.endswith(".md") else 0) for name, line in lines.items() if "voi" not in name
    )
    assert all(
        "'Zorbifex' names a substance (medicine); expected its general class, such as 'the pills I kept'" in line
        for line in found
    )


def test_what_is_harmless_passes_where_it_is_allowed() -> None:
    """The whole hit lies in the phrase, in a file that the entry names; the same amount beside it is still found."""
    for phrase, where, passes in (
        ("500 g of flour", STRESS, True),
        ("500 G OF FLOUR", "scenarios/*", True),
        ("500 g of flour", "personas/*", False),
        ("g of flour", STRESS, False),
        ("500 g of sugar", STRESS, False),
    ):
        refused = Refused(NO_TERMS, (Allowed(phrase=phrase, where=where, reason="made up for this test"),))
        assert ([*unsafe("Take 500 g of flour.", refused, STRESS)] == []) == passes, phrase
        (line,) = [*unsafe("Take 500 g of flour and 500 g of it.", refused, STRESS)][-1:]
        assert line.startswith("'500 g' reads as an amount; expected no amounts"), phrase


def test_the_list_of_what_is_harmless_is_read(content_copy: Path) -> None:
    """An amount in a scenario passes once the content's own list has it."""
    edit(content_copy, STRESS, "# Not tested\n", "# Not tested\nTake 500 g of flour.\n")
    assert len(findings(content_copy)) == 1
    with (content_copy / "allowed_amounts.yaml").open("a", encoding="utf-8") as handle:
        handle.write("- phrase: 500 g of flour\n  where: scenarios/*\n  reason: made up for this test\n")
    assert findings(content_copy) == []


def test_a_slip_in_either_list_is_an_error(content_copy: Path) -> None:
    """An entry without where or why, and a file that can't be read, are content errors and no traceback."""
    for name, text, expected in (
        ("allowed_amounts.yaml", "- phrase: 500 g of flour\n", "'0.where': Field required"),
        ("allowed_amounts.yaml", "- phrase: 5 g\n  where: '*'\n  reason: flour\n", "'0.reason': String should have"),
        ("allowed_amounts.yaml", "- phrase: [\n", "invalid YAML: "),
        ("refused_terms.yaml", "salt: 0123456789\nterms: {}\n", "'begins': Field required"),
        ("refused_terms.yaml", "salt: 0123456789\nbegins: []\nterms: {}\nword: x\n", "'word': Extra inputs are not"),
    ):
        kept = (content_copy / name).read_text(encoding="utf-8")
        (content_copy / name).write_text(text, encoding="utf-8")
        found = errors_of(content_copy)
        assert any(expected in line for line in found), expected
        assert all(line.startswith(f"{name}:") for line in found)
        (content_copy / name).write_text(kept, encoding="utf-8")


def test_everything_allowed_is_needed(shipped: Content) -> None:
    """The list shrinks with the content: an entry whose phrase is in no file goes."""
    unused = [
        entry.phrase
        for entry in shipped.refused.allowed
        if not any(entry.phrase.lower() in p.read_text(encoding="utf-8").lower() for p in CONTENT.glob(entry.where))
    ]
    assert unused == []


def test_the_shipped_list_is_long(release: Release, shipped: Content) -> None:
    """Some hundred names of each kind that people say, and no row that a model reads holds one of them."""
    terms = shipped.refused.terms.terms
    assert {name for name, found in terms.items() if len(found) >= 40} == {"drug", "medicine", "place", "poison"}
    texts = {m.content for row in release.rows.values() for m in row.messages if m.role == "system" and m.content}
    assert [text for text in texts for _ in shipped.refused.hits(text)] == []
