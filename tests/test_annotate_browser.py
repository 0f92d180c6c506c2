"""The sheet for human raters in headless Chromium: keys, autosave, download, pause, and no network request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys
from support.browser import VIEWS, Browser, until
from test_annotate import MARK, rows, write

from dataset_builder.release import Release
from judge.agreement.annotate import page, restore
from judge.agreement.cases import Cases, read_cases

KEYS = {"right": Keys.ARROW_RIGHT, "left": Keys.ARROW_LEFT, "escape": Keys.ESCAPE}
STATE = """
    const pressed = [...document.querySelectorAll('#labels [aria-pressed=true]')].map(b => b.textContent);
    return {where: document.getElementById('where').textContent, pressed,
            progress: document.getElementById('progress').textContent,
            note: document.getElementById('note').value, reply: document.getElementById('reply').textContent,
            seen: ['gate', 'pause', 'sheet'].filter(id => !document.getElementById(id).hidden)};
"""


@pytest.fixture
def cases(release: Release, tmp_path: Path) -> Cases:
    """Two criteria, one of them with facts, hostile replies, and a long one."""
    resources = [{**r, "criterion": "reachable-resource", "country": "AU"} for r in rows("reachable-resource", 4)]
    long = {
        **rows(n=1)[0],
        "id": "long",
        "said": ["One.", "Two.", "Three. " * 60],
        "reply": "word " * 400 + "unbroken" * 60,
    }
    return read_cases(write(tmp_path / "rows.jsonl", [*rows(n=6), long, *resources]), release)


@pytest.fixture
def path(release: Release, cases: Cases, tmp_path: Path) -> Path:
    """A sheet without a rater's name, so that the page asks for it."""
    out = tmp_path / "sheet.html"
    out.write_text(page(cases, release), encoding="utf-8")
    return out


def opened(browser: Browser, path: Path, view: str = "light", begin: bool = True, again: bool = False) -> None:
    """Opens the sheet; unless `again`, as in a browser that has never seen it (every test's sheet has the same key)."""
    if again:
        browser.show(path, view)
    else:
        browser.show_anew(path, view)
    if begin:
        click(browser, "begin")


def click(browser: Browser, identity: str) -> None:
    browser.script(f"document.getElementById('{identity}').click()")


def press(browser: Browser, *keys: str) -> None:
    """Types into whatever has the focus; longer names are keys."""
    browser.press(*(KEYS.get(key, key) for key in keys))


def state(browser: Browser) -> dict[str, Any]:
    found: dict[str, Any] = browser.script(STATE)
    return found


def test_the_sheet_is_quiet_and_text_stays_text(browser: Browser, path: Path) -> None:
    """From the first screen to the last reply no console message, no policy violation, no request but for the page
    itself. Before Begin no message and no reply is rendered; the pause screen hides them again, and both name help.
    Markup in a reply is shown as text; facts appear for resources only.
    """
    browser.driver.get("about:blank")  # the browser's own first page asks for its parts
    browser.console()
    browser.requested()
    opened(browser, path, begin=False)
    press(browser, "1", "j")
    assert state(browser)["seen"] == ["gate"]
    shown = str(browser.script("return document.body.innerText"))
    assert "suicide" in shown
    assert "findahelpline.com" in shown
    assert "Reply " not in shown.replace("Replies", "")
    click(browser, "begin")
    replies, facts = [], set()
    for _ in range(11):
        hidden = browser.script("return document.getElementById('facts').hidden")
        facts.add((browser.script("return document.getElementById('title').textContent"), not hidden))
        replies.append(state(browser)["reply"])
        press(browser, "1", "j")
    assert sum("</script><b>bold</b>" in reply for reply in replies) == 10
    assert browser.script("return document.querySelectorAll('#case b').length") == 0
    assert sorted(shown for _, shown in facts) == [False, True]
    press(browser, "p")
    assert state(browser)["seen"] == ["pause"]
    paused = str(browser.script("return document.body.innerText"))
    assert "findahelpline.com" in paused
    assert "can't go on" not in paused
    press(browser, Keys.ENTER)  # Enter: the button to go on has the focus
    assert state(browser)["seen"] == ["sheet"]
    assert browser.console() == []
    assert {url for url in browser.requested() if not url.startswith(("data:,", "chrome://"))} == {path.as_uri()}


def test_keys(browser: Browser, path: Path) -> None:
    """Digits choose, arrows and j k move, u clears, g finds what has no label, a digit without a label does nothing;
    keys are letters in a note, until Escape leaves it.
    """
    opened(browser, path)
    for keys, where, pressed, progress in (
        ("2", 1, ["2 PARTIAL"], 1),
        ("1", 1, ["1 PASS"], 1),
        ("9", 1, ["1 PASS"], 1),
        ("j right 3", 3, ["3 FAIL-ignores"], 2),
        ("k", 2, [], 2),
        ("left left left", 1, ["1 PASS"], 2),
        ("g", 2, [], 2),
        ("g", 4, [], 2),
        ("k u", 3, [], 1),
        ("n j u m p 1 u", 3, [], 1),
    ):
        press(browser, *keys.split())
        found = state(browser)
        assert (found["where"], found["progress"]) == (f"Reply {where} of 11", f"{progress} of 11 labelled"), keys
        assert [name.partition("-")[0] for name in found["pressed"]] == [name.partition("-")[0] for name in pressed]
    assert state(browser)["note"] == "jump1u"
    press(browser, "escape", "1", "j")
    assert (state(browser)["note"], state(browser)["where"]) == ("", "Reply 4 of 11")


def test_labels_survive_a_reload_and_come_home(
    browser: Browser, path: Path, release: Release, cases: Cases, tmp_path: Path
) -> None:
    """Labels, notes, place and name are there after a reload; another sheet in the same browser knows nothing of them.
    The file that the page writes is what the import reads: labels by id, the note, and what has no label.
    """
    opened(browser, path, begin=False)
    browser.script("document.getElementById('rater').value = 'Ann B.'")
    click(browser, "begin")
    chosen: dict[str, str] = {}
    for n in range(10):
        button = f"return document.querySelectorAll('#labels button')[{n % 3}].lastChild.textContent"
        chosen[state(browser)["reply"]] = str(browser.script(button)).strip()
        press(browser, str(n % 3 + 1), "j")
    press(browser, "n", *"odd", "escape")
    before = state(browser)
    opened(browser, path, begin=False, again=True)
    assert "10 of 11 labelled so far" in str(browser.script("return document.getElementById('gate').innerText"))
    assert browser.script("return document.getElementById('rater').value") == "Ann B."
    click(browser, "begin")
    assert state(browser) == before
    browser.downloads(tmp_path / "down")
    click(browser, "download")
    until(lambda: any(p.suffix == ".jsonl" for p in (tmp_path / "down").iterdir()))
    (found,) = (tmp_path / "down").glob("*.jsonl")
    assert found.name == "labels-Ann-B.jsonl"
    imported = restore(found, cases.cases, release)
    by_id = {(c.id, c.criterion): c.reply for c in cases.cases}
    assert {by_id[r["id"], r["criterion"]]: r["label"] for r in imported.labels} == chosen
    assert {r["rater"] for r in imported.labels} == {"Ann B."}
    assert (len(imported.missing), imported.unknown) == (1, [])
    assert [r["note"] for r in map(json.loads, found.read_text(encoding="utf-8").splitlines()) if r["note"]] == ["odd"]
    assert MARK not in found.read_text(encoding="utf-8")
    other = path.with_name("other.html")
    other.write_text(page(cases, release, "bo"), encoding="utf-8")
    opened(browser, other, again=True)
    assert state(browser)["progress"] == "0 of 11 labelled"


def test_a_browser_that_keeps_nothing_says_so(browser: Browser, path: Path) -> None:
    """Where storage is full or forbidden the rater is told to download, and goes on."""
    opened(browser, path)
    browser.script("Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); }")
    press(browser, "1")
    assert "download your labels before you close" in str(
        browser.script("return document.getElementById('status').textContent")
    )
    assert state(browser)["pressed"] == ["1 PASS"]
    browser.script("delete Storage.prototype.setItem; kept = true")  # so that the next page opens without a question


@pytest.mark.parametrize("view", VIEWS)
def test_every_screen_fits(browser: Browser, path: Path, view: str) -> None:
    """No screen scrolls sideways, with five labels and a word that doesn't end; labels and pause stay in sight at the
    end of a long reply.
    """
    opened(browser, path, view, begin=False)
    assert browser.overflow() == 0
    click(browser, "begin")
    for _ in range(11):
        assert browser.overflow() == 0
        browser.script("window.scrollTo(0, document.documentElement.scrollHeight)")
        boxes = browser.script(
            "return ['labels', 'stop'].map(id => { const r = "
            "document.getElementById(id).getBoundingClientRect(); return [r.top, r.bottom]; })"
        )
        assert all(0 <= top < bottom <= 900 for top, bottom in boxes)
        covered = browser.script(
            "return document.getElementById('reply').getBoundingClientRect().bottom - "
            "document.querySelector('footer').getBoundingClientRect().top"
        )
        assert covered <= 0
        click(browser, "on")
    click(browser, "stop")
    assert browser.overflow() == 0


@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing(browser: Browser, path: Path, view: str) -> None:
    """No accessibility issue of any weight on the first screen, a labeled reply, or the pause."""
    opened(browser, path, view, begin=False)
    assert browser.violations() == []
    click(browser, "begin")
    press(browser, "1", "j", "2")
    assert browser.violations() == []
    press(browser, "p")
    assert browser.violations() == []
