"""The report in headless Chromium."""

from __future__ import annotations

import base64
import re
from pathlib import Path

from support.browser import VIEWS, Browser, until
from support.reports import SMALL, Scored, ladder, people, policy_reply, run

from dataset_builder.release import Release
from judge.report.page import PAGE_BYTES
from judge.schema import Figure, FloorState, Pairing

OPEN = "document.querySelectorAll('details').forEach((d, n) => d.open = !d.matches('.failure') || n % 8 == 0)"


def everything(release: Release) -> Scored:
    """A run with one of every part of the page: curves with a threshold and with inversions, pairs, a group that stands
    out.
    """
    scored = run(release)
    card = scored.card
    ranked = {next(n for n, g in enumerate(card.groups) if not g.greyed)}
    return scored.with_card(
        curves=[ladder(0, 1), ladder(0.1, 0.9, odd=0.95), ladder(0.9, 0.95), *card.curves],
        pairs=[*card.pairs, Pairing(kind="declared", polarity="crisis", difference=card.composite, pairs=3)],
        groups=[g.model_copy(update={"found": n in ranked}) for n, g in enumerate(card.groups)],
    )


def written(folder: Path, scored: Scored, page_bytes: int = SMALL) -> Path:
    (folder / "report.html").write_text(scored.report("all", page_bytes).page, encoding="utf-8")
    return folder / "report.html"


def count(browser: Browser) -> list[int]:
    """Entries shown, and entries in all, as the page says."""
    shown, _, total, *_ = str(browser.script("return document.getElementById('count').textContent")).split()
    return [int(shown), int(total)]


def test_filter_and_switch(browser: Browser, release: Release, tmp_path: Path) -> None:
    """Failures alone until all are asked for; as many as have a verdict of the chosen behavior; none for words that
    no reply has.
    """
    scored = run(release, policy_reply)
    browser.show(written(tmp_path, scored, PAGE_BYTES))

    def choose(name: str, value: str) -> int:
        browser.script(
            f"const f = document.getElementById('filter'); f.elements.{name}.value = '{value}'; "
            "f.dispatchEvent(new Event('input'))"
        )
        return count(browser)[0]

    failed = {(v.id, v.repeat, v.behavior) for v in scored.verdicts if v.label == "FAIL" or v.incident}
    everything = {(v.id, v.repeat, v.behavior) for v in scored.verdicts}
    assert browser.script("return document.getElementById('failures').dataset.filter") == "ready"
    total = len({key[:2] for key in everything})
    assert count(browser) == [len({key[:2] for key in failed}), total]
    assert browser.script("return document.querySelectorAll('.failure.passed:not([hidden])').length") == 0
    assert choose("behavior", "P3-B1") == sum(b == "P3-B1" for *_, b in failed) > 0
    browser.script("document.querySelector('a[href=\"#failures\"]').click()")
    wanted = browser.script("return document.getElementById('filter').elements.incident.value")
    assert wanted == scored.card.incidents[0].incident
    until(lambda: count(browser)[0] == len({v.id for v in scored.verdicts if v.incident == wanted}))
    choose("incident", "")
    browser.script("document.querySelector('[name=which][value=all]').click()")
    assert count(browser) == [total, total]
    assert choose("behavior", "P1-B1") == sum(b == "P1-B1" for *_, b in everything)
    assert choose("words", "no such words") == 0


def test_a_link_opens_its_section_and_print_opens_all(browser: Browser, release: Release, tmp_path: Path) -> None:
    """Each section is closed at first, with what matters most in its summary line."""
    browser.show(written(tmp_path, everything(release)))
    folded = "return [...document.querySelectorAll('.fold')].filter(d => {}).map(d => d.querySelector('h2').id)"
    total = browser.script(folded.format("!d.open"))
    assert {"plain", "heat", "groups", "arms", "judge"} < {*total}
    for name in ("groups", "judge"):
        browser.script(f"document.querySelector('.contents a[href=\"#{name}\"]').click()")
        until(lambda name=name: name in browser.script(folded.format("d.open")))  # type: ignore[misc]
    top = browser.script("return document.querySelector('.contents').getBoundingClientRect().top")
    assert top == 0  # the contents stay in view
    seen = "d.querySelector(':scope > :not(summary)').checkVisibility()"
    assert browser.script(folded.format(seen)) == [name for name in total if name in ("groups", "judge")]
    browser.devtools("Emulation.setEmulatedMedia", media="print")
    assert browser.script(folded.format(seen)) == total


def test_the_judge_is_as_large_as_the_figures(browser: Browser, release: Release, tmp_path: Path) -> None:
    """What is known of the judge stands in the size of the scores that rest on it."""
    browser.show(written(tmp_path, run(release)))
    sizes = browser.script(
        "return [...document.querySelectorAll('.figure .value')]"
        ".map(e => [e.textContent, getComputedStyle(e).fontSize])"
    )
    assert {"not validated against people", "not calibrated"} < {text for text, _ in sizes}
    assert len({size for _, size in sizes}) == 1


def test_plain_words_take_one_printed_page(browser: Browser, release: Release, tmp_path: Path) -> None:
    """With as much to say as there can be: a long name, floors in every state, groups that did worse."""
    browser.show(written(tmp_path, wordy(release)))
    browser.script(
        "document.querySelectorAll('body > * > *, main > *').forEach(e => e.matches('main, .plain') || e.remove())"
    )
    for width, height in ((8.27, 11.69), (8.5, 11)):  # A4, letter
        pdf = base64.b64decode(browser.devtools("Page.printToPDF", paperWidth=width, paperHeight=height)["data"])
        assert len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf)) == 1


def wordy(release: Release) -> Scored:
    """A run of which the plain words say as much as they can."""
    scored = run(release, name="a model with a name " * 5)
    card = scored.card
    states: list[FloorState] = ["breached", "passed", "undetermined"]
    behind = [g.model_copy(update={"found": True, "gap": Figure(value=-0.2)}) for g in card.groups]
    return scored.with_card(
        floors=[
            f.model_copy(update={"state": states[n % 3], "value": 0.02, "high": 0.1}) for n, f in enumerate(card.floors)
        ],
        groups=behind,
        headlines=dict.fromkeys(card.headlines, Figure(value=-38.5)),
        judge=card.judge.model_copy(update={"people": [people(f"set-{n}", 0.41 + n / 10) for n in range(5)]}),
        detection=card.detection.model_copy(update={"specificity": card.detection.sensitivity}),
    )


def test_every_view_shows_everything(browser: Browser, release: Release, tmp_path: Path) -> None:
    """With everything open the page never scrolls sideways; on a phone every cell is on the screen and names its
    column.
    """
    path = written(tmp_path, everything(release))
    for view in VIEWS:
        browser.show(path, view)
        browser.script(OPEN)
        assert browser.overflow() == 0, view
        if "phone" not in view:
            continue
        lost = browser.script("""
            const wide = document.documentElement.clientWidth;
            const out = e => { const r = e.getBoundingClientRect(); return !r.width || r.left < 0 || r.right > wide; };
            const cells = [...document.querySelectorAll('table :is(tbody th, td)')].filter(e => e.textContent.trim());
            const silent = cells.filter(e => e.matches('.stack td:not([data-label], .plot, .empty)'));
            const turned = [...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth);
            return [cells.length, cells.filter(e => !e.matches('.empty') && out(e)).map(e => e.outerHTML),
                    silent.map(e => e.outerHTML), turned.map(e => e.outerHTML.slice(0, 200))];
        """)
        assert lost[0] > 300
        assert lost[1:] == [[], [], []], view


def test_axe_finds_nothing_serious(browser: Browser, release: Release, tmp_path: Path) -> None:
    path = written(tmp_path, everything(release))
    for view in VIEWS:
        browser.show(path, view)
        browser.script(OPEN)
        assert browser.violations() == [], view
