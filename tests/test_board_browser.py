"""The board in a real headless Chromium: it fetches nothing, complains of nothing, sorts by keyboard, fits a phone, and
axe-core finds nothing serious.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys
from support.board_runs import verified
from support.browser import VIEWS, Browser
from test_board import built, some

from dataset_builder.release import Release

OPEN = "document.querySelectorAll('details').forEach(d => d.open = true)"
LONG = "a-model-with-a-name-that-goes-on-" + "x" * 60


@pytest.fixture(scope="module")
def board(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A board with one of everything, and a long name; read-only by agreement."""
    home = tmp_path_factory.mktemp("board")
    long = verified(release, LONG, 0.3, organization="o" * 90, trained="yes", flags=["same_reply"])
    return built(home, release, some(release) | {"long/r1": long})[0]


def models(browser: Browser, table: int = 1) -> list[str]:
    """The names of a table's models, from the top."""
    rows = f"document.querySelectorAll('table.board')[{table}].querySelectorAll('tbody[data-part=ranked] .model')"
    return list(browser.script(f"return [...{rows}].map(c => c.firstChild.textContent)"))


def tab_to(browser: Browser, words: str) -> None:
    """Presses Tab until a button of the second table with these words has the focus."""
    for _ in range(120):
        browser.press(Keys.TAB)
        inside = "document.activeElement.closest('table') === document.querySelectorAll('table.board')[1]"
        if (
            browser.script(
                f"return document.activeElement.tagName === 'BUTTON' && {inside} && "
                "document.activeElement.textContent.trim()"
            )
            == words
        ):
            return
    raise AssertionError(f"no button '{words}' is reached by Tab")


def sorted_by(browser: Browser) -> list[tuple[str, str]]:
    found = "[...document.querySelectorAll('table.board')[1].querySelectorAll('[aria-sort]')]"
    return [
        tuple(pair)
        for pair in browser.script(f"return {found}.map(h => [h.textContent.trim(), h.getAttribute('aria-sort')])")
    ]


PAGES = ("index.html", "example__middle/r1.html", f"{'o' * 90}__{LONG}/r1.html")


def test_pages_are_quiet_and_nothing_runs_off_them(browser: Browser, board: Path) -> None:
    """No console message, no policy violation, and no request but for the page itself; with everything open the page
    never scrolls sideways, however long a name is.
    """
    for name, view in product(PAGES, VIEWS):
        browser.console()
        browser.requested()
        browser.show(board / name, view)
        browser.script(OPEN)
        assert browser.overflow() == 0, (name, view)
        assert browser.console() == []
        assert {url for url in browser.requested() if not url.startswith("data:,")} == {(board / name).as_uri()}
        assert browser.script("return document.querySelectorAll('table.board:not([data-sortable=ready])').length") == 0


def test_table_sorts_by_keyboard(browser: Browser, board: Path) -> None:
    """Tab reaches the headers, Enter sorts and turns round, aria-sort and the live line say so, and policies stay below
    the models.
    """
    browser.show(board / "index.html")
    before = models(browser)
    assert sorted_by(browser) == [("Composite", "descending")]
    tab_to(browser, "Model")
    browser.press(Keys.ENTER)
    assert sorted_by(browser) == [("Model", "ascending")]
    assert models(browser) == sorted(before) != before
    browser.press(Keys.ENTER)
    assert sorted_by(browser) == [("Model", "descending")]
    assert models(browser) == sorted(before, reverse=True)
    tab_to(browser, "Composite")
    browser.press(Keys.ENTER)
    browser.press(Keys.ENTER)
    assert sorted_by(browser) == [("Composite", "ascending")]
    assert models(browser)[0] == before[-1]
    assert (
        browser.script("return [...document.querySelectorAll('[role=status]')].map(s => s.textContent).join('')")
        == "Sorted by Composite, ascending."
    )
    parts = browser.script(
        "return [...document.querySelectorAll('table.board')[1].tBodies].map(b => [b.dataset.part, "
        "b.rows[0].className])"
    )
    assert parts == [["ranked", ""], ["breached", "part breached"], ["demo", "part demo"], ["policy", "part policy"]]


def test_what_is_missing_stays_last(browser: Browser, board: Path) -> None:
    """Rows without a value come last in either direction."""
    browser.show(board / "index.html")
    for _ in range(2):
        browser.script("document.querySelectorAll('table.board')[1].tHead.querySelector('button').click()")
        assert models(browser)[-1] == "apart"  # alone with its judge, so without a rank


def test_phone_shows_every_figure(browser: Browser, board: Path) -> None:
    """At 390 pixels each row is a card: every filled cell lies within the page and has its label, and the sort buttons
    are there.
    """
    browser.show(board / "index.html", "phone")
    cells = "[...document.querySelectorAll('table.board')[1].querySelectorAll('tbody[data-part=ranked] td')]"
    outside = (
        f"return {cells}.filter(c => {{ const r = c.getBoundingClientRect(); return r.width < 20 || "
        "r.left < 0 || r.right > innerWidth; }).length"
    )
    assert browser.script(outside) == 0
    assert browser.script(f"return {cells}.filter(c => getComputedStyle(c, '::before').content === 'none').length") == 0
    assert (
        browser.script(
            "return "
            "document.querySelectorAll('table.board')[1].tHead.querySelector('button').getBoundingClientRect().height"
        )
        >= 24
    )


def test_axe_finds_nothing_serious(browser: Browser, board: Path) -> None:
    """No serious or critical issue with everything open."""
    for name, view in product(PAGES[:2], VIEWS):
        browser.show(board / name, view)
        browser.script(OPEN)
        assert browser.violations() == []


@pytest.mark.soak(short=2, full=10)
def test_many_submissions_are_one_readable_page(browser: Browser, small: Release, tmp_path: Path, rounds: int) -> None:
    """Five runs of each model: within 20 KB a row, no sideways scroll, every run with its page."""
    found = {f"example__m{n}/r1": verified(small, f"m{n}", n / rounds) for n in range(rounds)}
    out, _ = built(tmp_path, small, {f"{k}/{name}": v for k in range(5) for name, v in found.items()})
    assert (out / "index.html").stat().st_size < 100_000 * rounds
    browser.show(out / "index.html")
    assert len(models(browser, 0)) == 5 * rounds
    assert len(list(out.glob("*/*.html"))) == 5 * rounds
    assert browser.overflow() == 0
