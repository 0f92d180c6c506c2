"""Strangers' text in every field of every page, summary and JUnit file at once: it stays text, in a parser and in a
browser, and the page goes on working.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt
from support.browser import Browser, until
from support.hostile import SMALL, TEXTS, Poison, harmless, in_turn
from support.hostile_pages import CARD, IDS, KINDS, Made, poisoned_card, ran, written
from support.transcript_pages import everything

from dataset_builder.release import Release
from helmbench_common.formats.inert import CONTROLS
from helmbench_common.tables import columns, one_line
from judge.report.comparison import text as compared
from judge.report.junit import as_junit
from judge.report.page import report
from judge.report.ratings_table import CELLS, Rated, as_csv
from judge.report.summary import summary
from judge.wording import no_formula, with_formulas

SIGNS = tuple("=+-@|%\uff1d\uff0b\uff0d\uff20")
LINK = re.compile(r"#.*|https://findahelpline\.com|(transcripts|report)\.html(#f-[\w%-]+)?|data:,")
MARKUP = {"html_block", "html_inline", "image", "link_open", "fence", "code_block", "hr"}
SKELETON = """
    const names = e => [...e.attributes].map(a => a.name).filter(n => n !== 'open').sort().join(' ');
    return [...document.querySelectorAll('*')].map(e => e.localName + ' ' + names(e));
"""


@pytest.fixture(scope="module")
def made(release: Release, small_content: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Made]:
    """All pages, with hostile text and with harmless text of its shape."""
    return {kind: written(release, small_content, tmp_path_factory.mktemp(kind), KINDS[kind]) for kind in KINDS}


class Parsed(HTMLParser):
    """Elements with the names of their attributes, addresses, policies, scripts and styles of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: Counter[str] = Counter()
        self.addresses: set[str] = set()
        self.code: list[str] = []
        self.policies: list[str] = []
        self._inside = False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[f"{tag} {' '.join(sorted(name for name, _ in attrs))}"] += 1
        own = dict(attrs)
        self.addresses |= {str(own[n]) for n in ("href", "src", "action", "srcset", "data", "ping") if n in own}
        if own.get("http-equiv"):
            self.policies.append(str(own.get("content")))
        self._inside = tag == "style" or (tag == "script" and "type" not in own)

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.code.append(data)


def test_a_page_is_made_of_the_same_whatever_its_texts(made: dict[str, Made]) -> None:
    """The same elements, attributes, script and style, and one policy, which allows nothing from anywhere; control
    characters are spelled out, and marks aren't heaped. The fields that come from outside are among those tried.
    """
    fields = {f.partition(": ")[2] for f in made["hostile"].fields}
    assert fields >= {"Model.name", "Model.arguments", "Model.system_instruction", "OwnPrompt.file", "Judge.name"}
    assert fields >= {"Verdict.judge", "Verdict.evidence", "Message.content", "CriterionRow.text", "Floor.note"}
    assert fields >= {"PanelMember.judge", "PeopleAgreement.reason", "Scorecard.notes", "Group.column", "Row.persona"}
    for name, page in made["hostile"].pages.items():
        hostile, plain = Parsed(page), Parsed(made["harmless"].pages[name])
        del hostile.elements["mark "], plain.elements["mark "]  # as many as two prompts differ in
        assert hostile.elements == plain.elements, name
        assert [a for a in hostile.addresses if not LINK.fullmatch(a)] == [], name
        assert hostile.code == plain.code, name
        assert hostile.policies == plain.policies, name
        (policy,) = hostile.policies
        assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src '"), name
        assert policy.endswith("'; img-src data:; base-uri 'none'; form-action 'none'"), name
        told = everything(page).replace("\0", "")  # separates the packed texts of the transcripts
        assert CONTROLS.search(told) is None, name
        assert "[U+202E]" in told, name
        assert "{{ 7*191 }}" in told, name
        assert re.search("[\u0301\u0489\u20dd\u0e47\u033f]{9}", page) is None, name


@pytest.mark.soak(short=4, full=60)
def test_every_text_in_every_field_of_a_card(release: Release, rounds: int) -> None:
    """Each text in each field of the scorecard, in turn: the report is made of the same elements, the summary's tables
    keep their columns and have no markup, and a table of runs has no formula.
    """
    small = ran(release, lambda: "A reply.", 150).card
    few = {name: getattr(small, name)[:2] for name in ("groups", "heat", "curves", "floors", "pairs")}
    small = small.model_copy(update=few)
    markdown = MarkdownIt("commonmark", {"html": True}).enable("table")
    shapes, marked = set(), set()
    starts = range(0, len(CARD), max(1, len(CARD) // rounds))
    for turn in (in_turn(harmless, CARD), *(in_turn(str, CARD, start) for start in starts)):
        card = poisoned_card(small, Poison(turn, IDS))
        html, text = report(card, [], [], {}).page, summary(card)
        assert CONTROLS.search(html + text) is None
        shapes.add(json.dumps(sorted(Parsed(html).elements.items())))
        tokens = markdown.parse(text)
        kinds = {t.type for t in [*tokens, *(c for t in tokens for c in t.children or ())]}
        assert kinds & MARKUP == set()
        marked.add(json.dumps([t.type for t in tokens if t.type.startswith(("table", "tr_", "th_", "td_", "heading"))]))
    assert (len(shapes), len(marked)) == (1, 1)
    assert small.appropriateness
    table = as_csv([Rated(name, small.appropriateness) for name in SMALL.values()])
    assert CONTROLS.search(table.replace("\r", "")) is None
    assert formulas(table) == []
    assert {len(line) for line in csv.reader(io.StringIO(table, newline=""))} == {len(CELLS)}
    for name, text in CARD.items():
        assert formulas(no_formula(text)) == [], name
        assert with_formulas(no_formula(text)) == text, name


def formulas(csv_text: str) -> list[str]:
    """The cells, in any way that a spreadsheet may cut a CSV, that begin a formula."""
    cells: list[str] = []
    for delimiter in ",;\t":
        cells += [c for row in csv.reader(io.StringIO(csv_text, newline=""), delimiter=delimiter) for c in row]
        cells += [c for line in re.split(r"[\r\n]+", csv_text) for c in line.split(delimiter)]
    return [c for c in cells if c.lstrip(' "').startswith(SIGNS)]


def test_junit_and_text_tables_keep_their_shape(made: dict[str, Made]) -> None:
    """Names of runs, the judge and every reason; names with line ends and table breakers in a terminal."""
    shapes = []
    for kind, change in KINDS.items():
        found = made[kind].found
        texts = in_turn(change, CARD)
        tested = [t.model_copy(update={"reasons": [next(texts) for _ in CARD]}) for t in found.tested]
        xml = as_junit(found.model_copy(update={"tested": tested, "judge": change(TEXTS["comment"])}))
        assert CONTROLS.search(xml) is None
        elements = [(e.tag, sorted(e.attrib)) for e in ElementTree.fromstring(xml.encode()).iter()]
        shapes.append((elements, len(compared(found).splitlines())))
    assert shapes[0] == shapes[1]
    table = columns(("rater", "n"), [(name, "1") for name in TEXTS.values()])
    assert len(table.splitlines()) == 1 + len(TEXTS)
    assert max(map(len, table.splitlines())) < 400


def test_backslashes_before_markup_are_doubled_and_others_stay() -> None:
    """In linear time: a note of a million backslashes once took hours."""
    assert one_line(r"a\b \| \\<b> [x\](y) <3 ]") == r"a\b \\\| \\\\\<b> [x\\\](y) <3 ]"
    many = "\\" * 1_000_000
    assert (one_line(many), one_line(f"{many}|")) == (many, f"{many}{many}\\|")


def opened(browser: Browser, path: Path, view: str) -> None:
    """The page with nothing kept from before, opened as far as it opens."""
    browser.show_anew(path, view)
    inside = "details"
    if path.name == "sheet.html":
        browser.script("document.getElementById('begin').click()")
    if path.name == "book.html":
        browser.script("document.querySelector('#pause > summary').click()")
        until(lambda: bool(browser.script("return !document.getElementById('inside').hidden")))
        inside = "#inside details"
    if path.name == "transcripts.html":
        until(lambda: bool(browser.script("return document.querySelector('#filter[data-state=ready]') !== null")))
    browser.script(f"document.querySelectorAll('{inside}').forEach(d => d.open = true)")
    filled = "[...document.querySelectorAll('.failure')].every(e => !e.open || e.children[1])"
    until(lambda: bool(browser.script(f"return {filled}")))


@pytest.mark.soak(short=1, full=2)
def test_a_browser_runs_nothing_and_asks_for_nothing(
    browser: Browser, made: dict[str, Made], tmp_path: Path, rounds: int
) -> None:
    """Fully opened, each page has the same elements and doesn't scroll sideways; its filters and search work."""
    for name in made["hostile"].pages:
        elements = []
        for kind, own in made.items():
            path = tmp_path / kind / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(own.pages[name], encoding="utf-8")
            for view in ("phone", "light")[:rounds]:
                browser.console()
                browser.requested()
                opened(browser, path, view)
                assert browser.overflow() == 0, (name, view)
            elements.append(Counter(browser.script(SKELETON)))
            del elements[-1]["mark "]
            if kind == "hostile" and name in ("report.html", "transcripts.html", "book.html"):
                search(browser)
            assert browser.script("return typeof window.owned") == "undefined", name
            assert str(browser.script("return document.title")).startswith("HELMbench"), name
            assert browser.console() == [], name
            asked = {u.partition("#")[0] for u in browser.requested() if not u.startswith(("data:", "blob:"))}
            assert asked == {path.as_uri()}, name
        assert elements[0] == elements[1] or name == "sheet.html", name  # a sheet's first item depends on its texts


def search(browser: Browser) -> None:
    """Makes each choice of each filter, and searches for hostile words, which are found as text."""
    browser.script("""
        for (const s of document.getElementById('filter').querySelectorAll('select')) {
            for (const value of [...[...s.options].map(o => o.value), '']) {
                s.value = value; s.dispatchEvent(new Event('input', {bubbles: true}));
            }
        }
    """)
    count = "return document.getElementById('count').textContent"
    for words in ("<img src=x", "{{ 7*191 }}", "(.*)\\", "no such words at all zzyzx", "=cmd|"):
        browser.script(f"""
            document.getElementById('count').textContent = '';
            const field = document.getElementById('filter').elements.words;
            field.value = {json.dumps(words)};
            field.dispatchEvent(new Event('input', {{bubbles: true}}));
        """)
        until(lambda: " of " in str(browser.script(count)))
        number = int(str(browser.script(count)).split()[0])
        assert (number == 0) == ("zzyzx" in words or words == "(.*)\\"), words
