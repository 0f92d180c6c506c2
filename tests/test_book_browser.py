"""The book in headless Chromium."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.browser import VIEWS, Browser, until

from dataset_builder.book.page import book
from dataset_builder.book.review import changes, patch, read
from dataset_builder.checking.safe_messaging import replaced
from dataset_builder.reading.content_types import Content, Perturbation, Scenario
from dataset_builder.reading.refused import Refused, hashed
from dataset_builder.schema import BEHAVIORS

OPEN = """
const door = document.getElementById('pause'), inside = document.getElementById('inside');
const ready = document.readyState === 'complete';
if (ready && inside.hidden && !door.open) door.firstElementChild.click();
return ready && door.open && !inside.hidden
"""
ID, OTHER = "P4-B2-S1", "P3-B1-S1"


@pytest.fixture(scope="module")
def made(shipped: Content) -> str:
    """The book of what ships."""
    return book(shipped)


@pytest.fixture
def page(made: str, tmp_path: Path) -> Path:
    """The book at a new address: a browser restores forms and focus when it opens the same one again."""
    path = tmp_path / "book.html"
    path.write_text(made, encoding="utf-8")
    return path


def shown(browser: Browser, page: Path, view: str = "light") -> None:
    """The book, opened, with nothing kept from an earlier test."""
    browser.show(page, view)
    browser.script("localStorage.clear()")
    browser.show(page, view)
    opened(browser)


def opened(browser: Browser) -> None:
    """Opens the book once it is drawn."""
    until(lambda: bool(browser.script(OPEN)))


def visible(browser: Browser, what: str) -> list[str]:
    found: list[str] = browser.script(
        f"return [...document.querySelectorAll('{what}')].filter(e => !e.closest('[hidden]')).map(e => e.id)"
    )
    return found


def choose(browser: Browser, **values: str) -> None:
    browser.script(
        f"const f = document.getElementById('filter'), v = {json.dumps(values)}; f.reset();"
        "for (const k in v) f.elements[k].value = v[k]; f.dispatchEvent(new Event('input'))"
    )


def unfold(browser: Browser, identity: str) -> None:
    browser.script(f"document.getElementById('{identity}').open = true")
    until(lambda: bool(browser.script(f"return document.querySelector('#{identity} [data-sign] .answer') !== null")))


def write(browser: Browser, selector: str, value: str) -> None:
    browser.script(
        f"const e = document.querySelector({json.dumps(selector)}); e.value = {json.dumps(value)}; "
        f"e.dispatchEvent(new Event('input', {{bubbles: true}}))"
    )


def click(browser: Browser, selector: str) -> None:
    browser.script(f"document.querySelector({json.dumps(selector)}).click()")


def name_reviewer(browser: Browser) -> None:
    write(browser, "#reviewer [name=name]", "Ana Pérez")
    write(browser, "#reviewer [name=qualification]", "clinical psychologist")


def value(browser: Browser, source: str) -> Any:
    return browser.script(f"return {source}")


def downloaded(browser: Browser, folder: Path) -> Path:
    """The file that the button saves."""
    browser.downloads(folder)
    click(browser, "#download")
    until(lambda: any(p.suffix == ".json" for p in folder.iterdir()))
    (found,) = folder.glob("*.json")
    until(lambda: found.read_text(encoding="utf-8").endswith("}\n"))
    return found


def test_nothing_is_quoted_until_the_reader_opens_it(browser: Browser, page: Path) -> None:
    """The first screen holds the warning and no message, also where a link leads straight to one; then the link is
    followed.
    """
    browser.show(page)
    browser.driver.get(f"{page.as_uri()}#{ID}-PT3")
    until(lambda: value(browser, "document.getElementById('pause').open") is False)
    assert value(browser, f"document.getElementById('{ID}-PT3').checkVisibility()") is False
    assert "findahelpline.com" in value(browser, "document.body.innerText")
    opened(browser)
    until(lambda: bool(value(browser, f"document.getElementById('{ID}-PT3').checkVisibility()")))


def test_words_find_messages_and_scenarios_at_once(browser: Browser, page: Path, shipped: Content) -> None:
    """A word of one message leaves that message; a word of a title leaves the scenario with all its messages; nonsense
    leaves nothing. A slash leads to the search, but not from within a comment.
    """
    shown(browser, page)
    unfold(browser, ID)
    browser.press("/")
    until(lambda: value(browser, "document.activeElement.name") == "words")
    browser.script(f"document.querySelector('#{ID}-PT1 textarea').focus()")
    browser.press("/")
    assert value(browser, f"document.querySelector('#{ID}-PT1 textarea').value") == "/"
    everything = sum(len(s.perturbations) for s in shipped.scenarios)
    assert len(visible(browser, ".message")) == everything
    scenario = next(s for s in shipped.scenarios if s.id == ID)
    message = scenario.perturbations[0]
    one, other = sorted(set(re.findall("[a-z]+", message.words.lower())), key=len)[-2:]
    choose(browser, words=f"{one} {other.upper()}")
    found = [
        f"{s.id}-{p.code}"
        for s in shipped.scenarios
        for p in s.perturbations
        if one in p.words.lower() and other in p.words.lower()
    ]
    assert f"{ID}-{message.code}" in found
    assert len(found) < everything / 10
    assert visible(browser, ".message") == found
    assert value(browser, "document.getElementById('count').textContent").startswith(
        f"{len(found)} of {everything} messages in "
    )
    assert value(browser, f"document.getElementById('{ID}').open") is True
    choose(browser, words=scenario.document.text("title"))
    assert visible(browser, ".scenario") == [ID]
    assert len(visible(browser, ".message")) == len(scenario.perturbations)
    choose(browser, words=BEHAVIORS[scenario.behavior])  # the heading over its scenarios
    assert ID in visible(browser, ".scenario")
    choose(browser, words="does-not-diagnose")
    assert "criterion-does-not-diagnose" in visible(browser, ".shared")
    assert "persona-jason" not in visible(browser, ".shared")
    choose(browser, words="no such words anywhere zzyzx")
    assert visible(browser, ".scenario") == []
    assert value(browser, "document.getElementById('nothing').hidden") is False


def test_a_filter_shows_what_it_names(browser: Browser, page: Path, shipped: Content) -> None:
    """Exactly the messages of that pillar, behavior, side, clarity or register; the contents list shrinks with them."""
    filters: tuple[tuple[str, str, Callable[[Scenario, Perturbation], bool]], ...] = (
        ("pillar", "P3", lambda s, p: s.id.startswith("P3")),
        ("behavior", "P4-B2", lambda s, p: s.behavior == "P4-B2"),
        ("polarity", "control", lambda s, p: p.severity < 0),
        ("clarity", "ambiguous", lambda s, p: p.attributes.get("clarity") == "ambiguous"),
        ("register", "slang", lambda s, p: p.attributes.get("register") == "slang"),
    )
    links = (
        "[...document.querySelectorAll('#contents a')].filter(e => !e.closest('[hidden]')).map(e => e.hash.slice(1))"
    )
    shown(browser, page)
    for name, wanted, keeps in filters:
        choose(browser, **{name: wanted})
        expected = [(s.id, f"{s.id}-{p.code}") for s in shipped.scenarios for p in s.perturbations if keeps(s, p)]
        assert visible(browser, ".message") == [message for _, message in expected], name
        listed = value(browser, links)
        assert [i for i in listed if i.startswith("P")] == sorted({s for s, _ in expected}, key=listed.index), name


def test_what_was_written_is_there_again_and_becomes_a_patch(
    browser: Browser, page: Path, shipped: Content, tmp_path: Path
) -> None:
    """Comments, verdicts and signatures outlive a reload, are downloaded, and are what `review` reads. Of the shared
    texts, protocols can be signed and categories can't.
    """
    shown(browser, page)
    assert value(browser, "document.getElementById('download').disabled") is True
    name_reviewer(browser)
    protocol, category = "protocol-self_harm", "category-self_harm"
    for identity in (ID, OTHER, protocol, category):
        unfold(browser, identity)
    write(browser, f"#{ID}-PT1 textarea", 'Rings true.\n# Not "a" heading')
    click(browser, f"#{ID}-PT1 [value=agree]")
    write(browser, f"#{ID}-PT2 [type=number]", "3")
    click(browser, f"#{OTHER} [data-sign] [type=checkbox]")
    write(browser, f"#{protocol} textarea", "Level 3 is strict.")
    write(browser, f"#{category} textarea", "Clear.")
    signing = "document.querySelector('#{} .signing').checkVisibility()"
    assert [value(browser, signing.format(i)) for i in (protocol, category)] == [True, False]
    assert value(browser, f"document.querySelector('#{protocol} .comment').textContent") == "On this protocol"
    click(browser, f"#{protocol} [type=checkbox]")
    browser.script("""localStorage.setItem('helmbench-book 0123456789ab', '{"items": [{"scenario": "P1-B1-S1"}]}')""")
    browser.show(page)
    opened(browser)
    unfold(browser, ID)
    assert value(browser, f"document.querySelector('#{ID}-PT1 textarea').value") == 'Rings true.\n# Not "a" heading'
    assert value(browser, f"document.querySelector('#{ID}-PT2 [value=disagree]').checked") is True
    answers = "3 comments, 2 severities answered, 1 scenario signed, 1 protocol signed"
    assert answers in value(browser, "document.getElementById('kept').textContent")
    other = "Download the notes on version 0123456789ab"  # of another version of the book
    assert other in value(browser, "document.getElementById('earlier').textContent")
    choose(browser, mine="yes")
    assert visible(browser, ".message") == [f"{ID}-PT1", f"{ID}-PT2"]
    assert visible(browser, ".shared") == [protocol, category]
    choose(browser, words="self-harm", polarity="crisis")
    assert visible(browser, ".shared") == []

    file = downloaded(browser, tmp_path / "down")
    assert file.name.startswith("helmbench-review-ana-perez-")
    review = read(file, shipped)
    assert (review.reviewer.name, review.reviewer.qualification) == ("Ana Pérez", "clinical psychologist")
    items = [(OTHER, True, 0), (ID, False, 2), (protocol, True, 1), (category, False, 1)]
    assert [(i.scenario, i.signed, len(i.notes)) for i in review.items] == items
    lines = patch(changes(review, shipped))
    assert '+  > # Not "a" heading\n' in lines
    assert "+review: signed by Ana Pérez (clinical psychologist), " in lines
    assert "protocols/self_harm.md" in lines
    assert "+  > Level 3 is strict.\n" in lines


def test_a_review_is_continued_from_its_file(browser: Browser, page: Path, shipped: Content, tmp_path: Path) -> None:
    """On another machine: the file fills the page again; a file that is none changes nothing and is named as such."""
    shown(browser, page)
    name_reviewer(browser)
    unfold(browser, ID)
    write(browser, f"#{ID} [data-sign] textarea", "On the whole.")
    file = downloaded(browser, tmp_path / "down")
    shown(browser, page)
    unfold(browser, ID)
    assert value(browser, f"document.querySelector('#{ID} [data-sign] textarea').value") == ""
    (tmp_path / "other.json").write_text('{"format": "helmbench-report-samples-1", "items": []}', encoding="utf-8")
    browser.choose("#earlier [type=file]", tmp_path / "other.json")
    until(lambda: "is no review of this book" in value(browser, "document.getElementById('kept').textContent"))
    browser.choose("#earlier [type=file]", file)
    until(lambda: value(browser, f"document.querySelector('#{ID} [data-sign] textarea').value") == "On the whole.")
    assert value(browser, "document.querySelector('#reviewer [name=name]').value") == "Ana Pérez"
    stale = json.loads(file.read_text(encoding="utf-8"))
    stale["items"][0]["text"] = "0" * 12
    (tmp_path / "stale.json").write_text(json.dumps(stale), encoding="utf-8")
    browser.choose("#earlier [type=file]", tmp_path / "stale.json")
    until(
        lambda: (
            "1 part of that file has changed since and stayed out"
            in value(browser, "document.getElementById('kept').textContent")
        )
    )


def test_nobody_signs_without_a_name_or_over_a_dispute(browser: Browser, page: Path) -> None:
    """The box is closed until there is a name and a qualification, says by whom it is ticked, and opens when a dispute
    begins.
    """
    shown(browser, page)
    unfold(browser, ID)
    tick, why = (
        f"document.querySelector('#{ID} [data-sign] [type=checkbox]')",
        f"document.querySelector('#{ID} .why').textContent",
    )
    assert value(browser, f"{tick}.disabled") is True
    assert value(browser, why).startswith("Nobody has signed on this page.")
    write(browser, "#reviewer [name=name]", "Ana: Pérez")
    write(browser, "#reviewer [name=qualification]", "nurse")
    assert value(browser, f"{tick}.disabled") is True
    name_reviewer(browser)
    assert value(browser, f"{tick}.disabled") is False
    click(browser, f"#{ID} [data-sign] [type=checkbox]")
    assert "I, Ana Pérez (clinical psychologist), have read all of" in value(
        browser, f"document.querySelector('#{ID} .signing').textContent"
    )
    click(browser, f"#{ID}-PT1 [value=disagree]")
    assert [value(browser, f"{tick}.checked"), value(browser, f"{tick}.disabled")] == [False, True]
    assert value(browser, why) == "You disagree with the severity of PT1. That has to be settled before you can sign."
    click(browser, f"#{ID}-PT1 .undo")
    assert value(browser, f"{tick}.disabled") is False


def test_what_the_command_would_refuse_or_replace_is_said_while_writing(
    browser: Browser, shipped: Content, tmp_path: Path
) -> None:
    """Markup in a comment; words that `review` replaces, known by pattern or by hash, with the same placeholders; and
    a severity that is 0, the message's own or out of range.
    """
    terms = shipped.refused.terms
    own = {"medicine": "zorvexine", "place": "mount orlo"}
    planted = {c: hashes | {hashed(terms.salt, own.get(c, ""))} for c, hashes in terms.terms.items()}
    begins = terms.begins | {hashed(terms.salt, "mount")}
    refused = Refused(terms.model_copy(update={"terms": planted, "begins": begins}), shipped.refused.allowed)
    page = tmp_path / "book.html"
    page.write_text(book(replace(shipped, refused=refused)), encoding="utf-8")
    shown(browser, page)
    unfold(browser, ID)
    warn = f"document.querySelector('#{ID}-PT1 .warn').textContent"
    write(browser, f"#{ID}-PT1 textarea", "<script>alert(1)</script>")
    assert "reads as markup" in value(browser, warn)
    for comment in (
        "Fine. But forty tablets of it, and 5 mg?",
        "By the Ovrel Bridge on Mount Orlo, or Mount   ÓRLOS.",
        "a failed attempt on Zorvexines",
        "Nothing to see, and 3 < 4.",
    ):
        write(browser, f"#{ID}-PT1 textarea", comment)
        pairs = ", ".join(f"“{words}” becomes {by}" for words, by in replaced(comment, refused)[1])
        expected = f"{pairs} when the file is imported. Please say it without." if pairs else ""
        until(lambda expected=expected: value(browser, warn) == expected)  # type: ignore[misc]
    severity = value(browser, f"document.getElementById('{ID}-PT1').dataset.severity")
    for number in ("0", severity, "11", "2.5"):
        write(browser, f"#{ID}-PT1 [type=number]", number)
        assert value(browser, warn).startswith("A whole number from"), number
    write(browser, f"#{ID}-PT1 [type=number]", "4")
    assert value(browser, warn) == ""


def test_print_holds_what_is_shown(browser: Browser, page: Path, shipped: Content) -> None:
    """Paper can't be unfolded: all that the filter shows is on it, comments too, and the screen is as before
    afterwards.
    """
    shown(browser, page)
    unfold(browser, ID)
    write(browser, f"#{ID}-PT1 textarea", "A comment.")
    choose(browser, behavior="P4-B2")
    browser.script(f"document.getElementById('{ID}').open = false; window.dispatchEvent(new Event('beforeprint'))")
    browser.devtools("Emulation.setEmulatedMedia", media="print")
    seen = value(browser, "document.body.innerText")
    kept = next(s for s in shipped.scenarios if s.behavior == "P4-B2")
    assert all(p.words.split("\n")[0] in seen for p in kept.perturbations)
    assert value(browser, f"document.querySelector('#{ID}-PT1 textarea').checkVisibility()") is True
    assert value(browser, f"document.querySelector('#{ID}-PT2 textarea').checkVisibility()") is False
    browser.devtools("Emulation.setEmulatedMedia", media="")
    browser.script("window.dispatchEvent(new Event('afterprint'))")
    assert value(browser, f"document.getElementById('{ID}').open") is False
    assert base64.b64decode(browser.devtools("Page.printToPDF")["data"]).startswith(b"%PDF")


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_fits_its_page_and_axe_finds_nothing_serious(browser: Browser, page: Path, view: str) -> None:
    """With the lists and one scenario of each kind open, answers and warnings among them; then with everything open,
    the page never scrolls sideways.
    """
    shown(browser, page, view)
    for identity in (ID, "P2-B1-S1", "P4-B1-S1"):
        unfold(browser, identity)
    browser.script("document.querySelectorAll('#how, .setting, .shared').forEach(d => d.open = true)")
    unfold(browser, "protocol-self_harm")
    write(browser, f"#{ID}-PT1 textarea", "<b>")
    write(browser, f"#{ID}-PT1 [type=number]", "0")
    time.sleep(0.1)
    assert browser.violations() == []
    browser.script("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.overflow() == 0
