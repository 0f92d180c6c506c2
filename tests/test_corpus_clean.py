"""What happens to one document: one form, masks, cuts, length, language, licence."""

from __future__ import annotations

from dataset_builder.corpora import clean as steps
from dataset_builder.corpora.clean import ROOM, batches, read_licence
from dataset_builder.corpora.mask import mask
from dataset_builder.corpora.normalize import JOINER, MARKS, fold, normalize, stream_safe
from dataset_builder.corpora.schema import Document, Dropped, Limits, Turn
from dataset_builder.reading.content_types import Content

ENGLISH = "I made soup yesterday and there is far too much of it for one person, so I am looking for a bigger freezer."
GERMAN = "Ich habe gestern Suppe gekocht und es ist viel zu viel für eine Person, also suche ich eine größere Truhe."


def message(*texts: str, **more: str) -> Document:
    """Turns in turn, the user first."""
    made = Document("made", 1, tuple(Turn("user" if n % 2 == 0 else "assistant", t) for n, t in enumerate(texts)))
    return made._replace(**more)  # type: ignore[arg-type]  # source_id, language or licence, by name


def test_normalize_gives_one_form() -> None:
    """NFC, newlines, spaces, at most one blank line; no controls, byte-order marks or soft hyphens. Case, typos and
    emoji stay.
    """
    assert (
        normalize("\ufeffCafe\u0301\u00a0 au\tlait \r\n\r\n\r\n\r\n\x07so\u00adup\u200b  pls\u2028 \ud800👩\u200d🍳 ")
        == "Café au lait\n\nsoup pls\n👩\u200d🍳"
    )
    assert fold("  Ｈello,\nWORLD_2 😀 — Straße! 你好") == "hello world 2 strasse 你好"


MASKED = {
    "write to jo.bloggs+x@mail.example.co.uk.": "write to [email].",
    "jo (at) example (dot) org works": "[email] works",
    "see https://www.reddit.com/u/jo_bloggs, thanks": "see [url], thanks",
    "on instagram.com/jo.bloggs and https://t.me/jobloggs": "on [url] and [url]",
    "https://jo:pass@files.example.org/a": "[url]",
    "https://shop.example.org/login?user=jo&x=1": "[url]",
    "https://forum.example.org/profile/jo": "[url]",
    "ask @jo_bloggs or u/jobloggs or Jo_B#1234": "ask [handle] or [handle] or [handle]",
    "my number is +44 20 7946 0018 ok": "my number is [phone] ok",
    "020 7946 0018": "[phone]",
    "(202) 555-0143": "[phone]",
    "text me at 555 01 43": "text me at [phone]",
    "card 4111 1111 1111 1111!": "card [card]!",
    "IBAN GB82 WEST 1234 5698 7654 32 PLEASE": "IBAN [iban] PLEASE",
    "de89370400440532013000": "[iban]",
}
KEPT = (
    "I'll ring Lifeline on 13 11 14 or Samaritans on 116 123, or text 741741; in the US 988.",
    "see https://findahelpline.com/countries and reddit.com/r/soup, www.nhs.uk/conditions",
    "order 4111 1111 1111 1112 of 2026-11-01 at 12:30",  # no card: Luhn's check fails
    "meet @ 5 or 6, 3.14159265358979 is pi and 10000000 is a lot",
    "the year 2019/2020, room 12-34-56 and and/or both",
    "GB82 WEST 1234 5698 7654 33 has a wrong check sum",
    "C#1234 is no person, nor is #soup",
)


def test_personal_data_is_masked() -> None:
    """All examples are reserved for documentation. National numbers are read in their country; helplines stay."""
    assert {text: mask(text) for text in MASKED} == MASKED
    assert {text: mask(text) for text in KEPT} == {text: text for text in KEPT}
    assert mask("on (02) 5550 4321 now", "AU") == "on [phone] now"
    assert mask("on 0491 570 156 now", "US") == "on 0491 570 156 now"


def test_masking_a_long_text_without_spaces_takes_no_time() -> None:
    """Patterns that go back over what they read would take minutes here (the suite's patience is the clock)."""
    text = ("a" * 200_000) + "@" + ("1-" * 20_000) + "(at)" + ("u/" * 20_000)
    assert mask(text, "US").startswith("aaa")


def test_a_conversation_ends_with_the_user() -> None:
    """Of a long one the first 40 messages, or none. Consecutive turns of one role become one."""
    long = message(*(f"turn {n}" for n in range(41)))
    cut, changed = steps.cut(long, Limits())
    assert isinstance(cut, Document)
    assert ([t.text for t in cut.turns], changed) == ([f"turn {n}" for n in range(39)], ["conversations cut"])
    dropped = Dropped("made", 1, "conversation", "more than 40 messages")
    assert steps.cut(long, Limits(long_conversations="drop")) == (dropped, [])
    short = message(*(f"turn {n}" for n in range(39)))
    assert steps.cut(short, Limits()) == (short, [])
    joined = Document("made", 1, (Turn("user", "a"), Turn("user", "b"), Turn("assistant", "c")))
    assert steps.cut(joined, Limits()) == (message("a\n\nb"), ["last replies left out"])
    silent = Document("made", 1, (Turn("assistant", "hi"),))
    assert steps.cut(silent, Limits())[0] == Dropped("made", 1, "conversation", "nothing said by the user")


def test_length_counts_the_users_letters_without_masks() -> None:
    """`[email]` is no word of the user's, an assistant's answer neither; five letters of any script are enough."""
    assert steps.length(message("[email] 12345 ok", "a long answer"), Limits()) == Dropped(
        "made", 1, "length", "fewer than 5 letters"
    )
    assert steps.length(message("助けてくれ"), Limits()) is None
    assert steps.length(message("a" * 11), Limits(max_characters=10)) == Dropped(
        "made", 1, "length", "more than 10 characters"
    )


def test_language_by_what_is_stated_then_by_reading() -> None:
    """A stated language is believed; else the text is read; another language is dropped under its code."""
    english = Limits(languages=["en"])
    for document, expected in (
        (message(ENGLISH), "en"),
        (message(ENGLISH, language="en-GB"), "en"),
        (message(GERMAN, language="en"), "en"),
    ):
        found = steps.language(document, english)
        assert not isinstance(found, Dropped)
        assert found.language == expected
    assert steps.language(message(GERMAN), english) == Dropped("made", 1, "language", "de")
    assert steps.language(message(ENGLISH, language="de"), english) == Dropped("made", 1, "language", "de")
    assert steps.language(message(GERMAN), Limits()) == message(GERMAN)._replace(language="de")


def test_the_language_filter_keeps_people_who_write_badly(shipped: Content) -> None:
    """Of the benchmark's own messages (slang, typos, second-language English), at most one in a hundred is taken for
    another language.
    """
    said = [p.words for s in shipped.scenarios if s.document.text("language", "en") == "en" for p in s.perturbations]
    lost = [t for t in said if isinstance(steps.language(message(t), Limits(languages=["en"])), Dropped)]
    assert len(lost) <= len(said) / 100


def test_licences() -> None:
    """Only licenses known to allow adapted copies for any purpose do."""
    for licence, allowed, why in (
        ("CC-BY-4.0", True, "cc-by-4.0 allows adapted copies"),
        ("cc by sa 3.0", True, "cc-by-sa-3.0 allows adapted copies, under the same license"),
        ("cc-by-nc-4.0", False, "cc-by-nc-4.0 allows no commercial use"),
        ("cc-by-nd-4.0", False, "cc-by-nd-4.0 allows no adapted copies, and a cleaned corpus is one"),
        ("other", False, "'other' is not a license that is known to allow it"),
        (None, False, "no license is stated"),
        ("unknown", False, "no license is stated"),
    ):
        assert read_licence(licence) == (allowed, why)


def test_marks_beyond_what_a_letter_carries_are_parted() -> None:
    """Unicode's Stream-Safe Text Format: a joiner behind each 30 marks that follow each other, and no other change.

    So normalising, which sorts a run by pairs, has runs of 30: of 100,000 marks of two classes in turn none stays
    unsorted, and none is moved across a joiner.
    """
    run = "\u0301\u0316" * 50_000
    safe = stream_safe(run)
    assert [len(part) for part in safe.split(JOINER)] == [MARKS] * 3333 + [10]
    assert normalize(f"a{run}").startswith("á" + "\u0316" * 15 + "\u0301" * 14 + JOINER)
    assert stream_safe(safe) == safe
    assert fold(f"A{run}") == "á"
    for text in ("Ça va?", "Việt", "é" * 40, "a" + "\u0301" * MARKS, "नमस्ते", "שָׁלוֹם", "\U0001f468\u200d\U0001f469"):
        assert stream_safe(text) == text


def test_numbers_are_masked_one_after_the_other() -> None:
    """A dump of numbers: each is masked, what stands between them stays, and a helpline's number too."""
    text = "; ".join(["5551234"] * 60 + ["116 123"] + ["5554321"] * 60) + " and no more"
    assert mask(text) == "; ".join(["[phone]"] * 60 + ["116 123"] + ["[phone]"] * 60) + " and no more"


def test_batches_are_cut_at_very_long_documents() -> None:
    """So that a source of many long texts never stands in memory; of short ones each has as many as asked."""
    short = [Document("made", n, (Turn("user", "hello"),)) for n in range(5)]
    long = Document("made", 9, (Turn("user", "x" * ROOM),))
    assert [[d.line for d in own] for own in batches([*short, long, *short], 4)] == [
        [0, 1, 2, 3],
        [4, 9],
        [0, 1, 2, 3],
        [4],
    ]
