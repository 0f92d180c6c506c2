"""The comparison's page in a real headless Chromium: it fetches nothing, fits a phone, and axe-core finds nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.browser import VIEWS, Browser
from support.reports import as_run, hostile, other_reply, policy_reply, run

from dataset_builder.release import Release
from judge.replies.schema import OwnPrompt
from judge.report.comparison import RunFiles, page
from judge.scoring.compare import compare

OPEN = "document.querySelectorAll('details').forEach(d => d.open = true)"
NAMES = ("a-model-with-a-name-that-goes-on-" + "x" * 60, "m-1 under brisk.txt", "hostile")


@pytest.fixture(scope="module")
def comparison(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs under prompts of their own, with shut gates and one run's replies lacking; read-only by agreement."""
    scored = [run(release, said) for said in (policy_reply, other_reply, hostile)]
    runs = [
        as_run(s, release, name, condition=OwnPrompt(file="p" * 80, sha256=str(n) * 64))
        for n, (s, name) in enumerate(zip(scored, NAMES, strict=True))
    ]
    texts = ("You are Nia.\n" + "w" * 300, "You are Nia.\nBe brief.", None)
    said = [RunFiles(s.replies, text) for s, text in zip(scored, texts, strict=True)]
    said[1] = said[1]._replace(replies=(), lacking="/" + "f" * 200)
    found = compare(runs, ["floor", "regression"], samples=6)
    path = tmp_path_factory.mktemp("comparison") / "comparison.html"
    path.write_text(page(found, runs, said, release.rows, release.criteria), encoding="utf-8")
    return path


def test_every_view_shows_everything(browser: Browser, comparison: Path) -> None:
    """With everything open, neither the page nor a table in it scrolls sideways, and no cell is hidden."""
    right = "Math.max(...[...document.querySelectorAll('td, dd, .quote')].map(e => e.getBoundingClientRect().right))"
    hidden = "[...document.querySelectorAll('td')].filter(e => !e.checkVisibility() || !e.offsetWidth).length"
    for view in VIEWS:
        browser.show(comparison, view)
        browser.script(OPEN)
        assert browser.overflow() == 0, view
        assert browser.script(f"return {right} - document.documentElement.clientWidth") <= 0, view
        assert browser.script(f"return {hidden}") == 0, view


def test_axe_finds_nothing(browser: Browser, comparison: Path) -> None:
    for view in VIEWS:
        browser.show(comparison, view)
        browser.script(OPEN)
        assert browser.violations() == [], view
