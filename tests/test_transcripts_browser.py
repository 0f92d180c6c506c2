"""The transcripts in a real browser, as test_report_browser.py has it: what a reader sees, finds and can send on."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys
from support.browser import VIEWS, Browser, until
from support.reports import MARKER, Scored, policy_reply, run
from support.transcript_pages import told

from dataset_builder.release import Release
from judge.report.entries import Show, entry, is_failure, to_show
from judge.report.page import TRANSCRIPTS

ON_PAGE = 50  # replies on one page of the list


@pytest.fixture(scope="module")
def scored(release: Release) -> Scored:
    """A run whose replies can all be seen but one, which did harm; what one says is said by no other."""
    made = run(release, lambda row: policy_reply(row) if policy_reply(row).startswith("{") else f"{row.id} heard.")
    by_rule = {v.id for v in made.verdicts if v.unscored is None}
    harmed = next(v.id for v in made.verdicts if v.id in by_rule and v.behavior == "P1-B6")
    whole = made.with_verdicts(
        release, lambda v: v.model_copy(update={"unscored": None, "label": "PARTIAL"}) if v.unscored else v
    )
    return whole.with_verdicts(
        release,
        lambda v: (
            v.model_copy(update={"label": "FAIL", "incident": "harm", "evidence": (MARKER,)})
            if v.id == harmed
            else v.model_copy(update={"evidence": ("heard.",)})
        ),
    )


def written(folder: Path, scored: Scored, show: Show = "all") -> Path:
    path = folder / TRANSCRIPTS
    path.write_text("".join(scored.report(show).transcripts), encoding="utf-8")
    return path


def opened(browser: Browser, path: Path, fragment: str = "", view: str = "light") -> None:
    """The page, when its list stands."""
    browser.show(path, view)
    if fragment:
        browser.driver.get("about:blank")
        browser.driver.get(f"{path.as_uri()}#{fragment}")
    until(lambda: bool(browser.script("return document.querySelector('#filter[data-state=ready]') !== null")))


def count(browser: Browser) -> int:
    """The replies that fit, as the page says."""
    return int(str(browser.script("return document.getElementById('count').textContent")).split()[0].replace(",", ""))


def shown(browser: Browser) -> list[str]:
    found: list[str] = browser.script(
        "return [...document.querySelectorAll('.failure')].map(e => e.dataset.anchor.slice(2))"
    )
    return found


def ask(browser: Browser, **values: str) -> None:
    """Chooses values by their words, and waits until the page has said how many fit."""
    browser.script(f"""
        const form = document.getElementById('filter'), wanted = {json.dumps(values)};
        document.getElementById('count').textContent = '';
        for (const name in wanted) {{
            const field = form.elements[name];
            const option = [...(field.options || [])].find(o => (o.dataset.label || 'all') === wanted[name]);
            field.value = option ? option.value : wanted[name];
            field.dispatchEvent(new Event('input', {{bubbles: true}}));
        }}
    """)
    until(lambda: " of " in str(browser.script("return document.getElementById('count').textContent")))


def options(browser: Browser, name: str) -> dict[str, int]:
    """What a filter offers, with the counts beside it."""
    found: list[str] = browser.script(
        f"return [...document.querySelector('[name={name}]').options].slice(1).map(o => o.textContent)"
    )
    pairs = [text.removesuffix(")").rpartition(" (") for text in found]
    return {label: int(number.replace(",", "")) for label, _, number in pairs}


def unfolded(browser: Browser) -> list[dict[str, Any]]:
    """The replies of the list's page, opened, as a reader sees them."""
    browser.script("document.querySelectorAll('.failure').forEach(e => e.open = true)")
    until(lambda: bool(browser.script("return [...document.querySelectorAll('.failure')].every(e => e.children[1])")))
    found: list[dict[str, Any]] = browser.script("""
        const text = e => e.textContent;
        return [...document.querySelectorAll('.failure')].map(e => ({
            id: e.dataset.anchor.slice(2),
            turns: [...e.querySelectorAll('.turn')].map(t => [t.querySelector('h3').textContent.split(',')[0],
                t.querySelector('.quote').textContent, (t.querySelector('.note') || {textContent: ''}).textContent]),
            labels: [...e.querySelectorAll('.findings > li > b')].map(text),
            evidence: [...e.querySelectorAll('q')].map(text),
            marked: [...e.querySelectorAll('mark')].map(text)
        }));
    """)
    return found


def test_every_reply_is_shown_whole(browser: Browser, scored: Scored, tmp_path: Path) -> None:
    """Page by page, each reply once, in the report's order, in the words that may be seen, with its verdicts."""
    path = written(tmp_path, scored)
    opened(browser, path)
    found = unfolded(browser)
    while browser.script("return document.querySelector('#pages [rel=next]') !== null"):
        before = shown(browser)
        browser.script("document.querySelector('#pages [rel=next]').click()")
        until(lambda before=before: shown(browser) != before)  # type: ignore[misc]
        found += unfolded(browser)
    expected = told(path.read_text(encoding="utf-8"))
    assert len(expected) > 4 * ON_PAGE
    assert [f["id"] for f in found] == [t.id for t in expected]
    for f, t in zip(found, expected, strict=True):
        assert f["turns"] == [list(turn) for turn in t.turns]
        assert f["labels"] == [type_["label"] for type_, _ in t.findings]
        assert f["evidence"] == [q for _, evidence in t.findings for q in evidence]
    seen = [f for f in found if any("heard." in text for _, text, _ in f["turns"])]
    assert seen
    assert all(set(f["marked"]) == {"heard."} for f in seen)
    assert MARKER not in json.dumps(found)


def test_choices_and_counts_are_those_of_the_verdicts(browser: Browser, scored: Scored, tmp_path: Path) -> None:
    """One choice, two on the same verdict, and one of the sample; the counts say what another choice would give."""
    opened(browser, written(tmp_path, scored))
    by_behavior = Counter(b for _, b in {(v.id, v.behavior) for v in scored.verdicts})
    assert {label.split()[0]: n for label, n in options(browser, "behavior").items()} == by_behavior
    ask(browser, behavior="P3-B1 Doesn't diagnose")
    assert count(browser) == by_behavior["P3-B1"] > 0
    own = {v.id for v in scored.verdicts if v.behavior == "P3-B1"}
    failed = {v.id for v in scored.verdicts if v.behavior == "P3-B1" and is_failure(v)}
    assert options(browser, "failed") == {"yes": len(failed), "no": len(own - failed)}
    countries = Counter(scored.rows[i].country or "none" for i in own)
    assert {k: n for k, n in options(browser, "country").items() if n} == countries
    country = next(iter(countries))
    ask(browser, country=country)
    assert count(browser) == countries[country] == len(shown(browser))
    ask(browser, behavior="all")
    assert count(browser) == sum((r.country or "none") == country for r in (scored.rows[v.id] for v in scored.replies))


def test_words_are_found_wherever_they_stand(browser: Browser, scored: Scored, tmp_path: Path) -> None:
    """In a message, a reply, an id; in capitals, as a phrase over a line's end; every word has to be there, and what is
    withheld isn't found.
    """
    opened(browser, written(tmp_path, scored))
    found = [entry(p) for p in to_show(scored.verdicts, scored.replies, scored.rows, "all")]

    def holding(*words: str) -> int:
        texts = [
            " ".join([e.id, *(t.text for t in e.turns), *(q for f in e.findings for q in f.evidence)]) for e in found
        ]
        return sum(all(word in " ".join(text.split()).lower() for word in words) for text in texts)

    lines = next(t.text.split("\n") for e in found for t in e.turns if t.role == "Message" and "\n" in t.text)
    ends = [line.split() for line in lines if line.strip()][:2]
    broken = f"{ends[0][-1]} {ends[1][0]}".lower()
    for words, wanted in (
        ("HEARD.", ("heard.",)),
        ("my mother", ("my", "mother")),
        ('"my mother"', ("my mother",)),
        (f'"{broken}"', (broken,)),
        (found[3].id, (found[3].id.lower(),)),
        (MARKER, (MARKER,)),
        ("(.*", ("(.*",)),
    ):
        ask(browser, words=words)
        assert count(browser) == holding(*wanted), words


def test_a_view_can_be_sent(browser: Browser, scored: Scored, tmp_path: Path) -> None:
    """What was chosen stands in the address, which opens the same list; so does its second page."""
    path = written(tmp_path, scored)
    opened(browser, path)
    ask(browser, polarity="crisis")
    ask(browser, words="i")
    assert count(browser) > ON_PAGE
    first, chosen = shown(browser), str(browser.script("return location.hash.slice(1)"))
    browser.script("document.querySelector('#pages [rel=next]').click()")
    until(lambda: shown(browser) != first)
    second, paged = shown(browser), str(browser.script("return location.hash.slice(1)"))
    assert not {*first} & {*second}
    assert browser.script("return document.activeElement.id") == "results-title"
    for fragment, expected in ((chosen, first), (paged, second)):
        opened(browser, path, fragment)
        assert shown(browser) == expected
        assert browser.script("return document.querySelector('[name=words]').value") == "i"
    opened(browser, path, "behavior=nonsense&page=999")
    assert count(browser) == len(scored.replies)


def test_a_reply_has_an_address(browser: Browser, scored: Scored, tmp_path: Path) -> None:
    """It opens the reply where it stands in the list; one that isn't there is said."""
    path = written(tmp_path, scored)
    last = told(path.read_text(encoding="utf-8"))[-1].id
    opened(browser, path, f"f-{last}")
    until(lambda: bool(browser.script("return document.querySelector('.failure[open]') !== null")))
    assert browser.script("return document.activeElement.parentElement.dataset.anchor") == f"f-{last}"
    link = browser.script("return document.querySelector('.failure[open] .facts a').getAttribute('href')")
    assert link == f"#f-{last}"
    opened(browser, path, "f-nobody")
    until(lambda: "has no reply" in str(browser.script("return document.getElementById('count').textContent")))


def test_the_keyboard_is_enough(browser: Browser, scored: Scored, tmp_path: Path) -> None:
    """Every control can be reached and used without a pointer, and the number of replies found is announced."""
    opened(browser, written(tmp_path, scored))
    assert browser.script("return document.getElementById('count').getAttribute('aria-live')") == "polite"
    browser.script("document.querySelector('.failure > summary').focus()")
    browser.press(Keys.ENTER)
    until(lambda: bool(browser.script("return document.querySelector('.failure').open")))
    lost = browser.script(
        "return [...document.querySelectorAll('a[href], button, select, input, summary')]"
        ".filter(e => e.tabIndex < 0).length"
    )
    assert lost == 0


def test_without_a_script_the_page_says_so(browser: Browser, scored: Scored, tmp_path: Path) -> None:
    """An honest sentence, and where to read instead."""
    path = written(tmp_path, scored)
    browser.devtools("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.show(path)
        words = browser.devtools("Accessibility.getFullAXTree")["nodes"]
    finally:
        browser.devtools("Emulation.setScriptExecutionDisabled", value=False)
    said = " ".join(str(n.get("name", {}).get("value", "")) for n in words)
    assert "This page needs JavaScript" in said
    assert "report.html" in said


def test_every_view_shows_everything(browser: Browser, scored: Scored, tmp_path: Path) -> None:
    """With everything open, the page never scrolls sideways."""
    path = written(tmp_path, scored)
    for view in VIEWS:
        opened(browser, path, view=view)
        unfolded(browser)
        browser.script("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert browser.overflow() == 0, view


def test_axe_finds_nothing(browser: Browser, scored: Scored, tmp_path: Path) -> None:
    """With everything open and words searched."""
    path = written(tmp_path, scored)
    for view in VIEWS:
        opened(browser, path, view=view)
        ask(browser, words="i")
        unfolded(browser)
        browser.script(
            "document.querySelectorAll('details').forEach((d, n) => d.open = !d.matches('.failure') || n % 8 == 0)"
        )
        assert browser.violations() == [], view
