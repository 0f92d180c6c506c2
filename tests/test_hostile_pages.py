"""Strangers' text in every field of every page, summary, sheet and JUnit file at once: it stays text, in a parser and
in a real browser, and the page goes on working.
"""

from __future__ import annotations

import copy
import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt
from support.browser import CHROMIUM, DRIVER, Browser, until
from support.hostile import SMALL, TEXTS, Poison, harmless, in_turn
from support.hostile_pages import CARD, IDS, KINDS, Made, poisoned_card, ran, written

from dataset_builder.release import open_release
from helmbench_common.formats.inert import CONTROLS
from helmbench_common.tables import columns, one_line
from judge.people.annotate import page as annotated
from judge.people.cases import Case, Cases
from judge.people.low_ratings import COLUMNS, coding, sheet
from judge.report.comparison import text as compared
from judge.report.junit import as_junit
from judge.report.page import report
from judge.report.ratings_table import CELLS, Rated, as_csv
from judge.report.summary import summary
from judge.wording import no_formula, with_formulas

PAGES = ("report.html", "transcripts.html", "alone.html", "comparison.html", "sheet.html", "book.html")
SIGNS = tuple("=+-@|%\uff1d\uff0b\uff0d\uff20")
LINKS = {"https://findahelpline.com", "transcripts.html", "report.html", "data:,"}
in_chromium = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no Chromium with chromedriver on this machine; the page isn't opened"
)


@pytest.fixture(scope="module")
def made(dataset: Path, small_content: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Made]:
    """All pages, with hostile text and with harmless text of its shape."""
    release = open_release(dataset)
    return {kind: written(release, small_content, tmp_path_factory.mktemp(kind), KINDS[kind]) for kind in KINDS}


class Parsed(HTMLParser):
    """What a page is made of: elements with the names of their attributes, addresses, scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: Counter[str] = Counter()
        self.addresses: Counter[str] = Counter()
        self.code: list[str] = []
        self.policies: list[str | None] = []
        self._inside = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[f"{tag} {' '.join(sorted(name for name, _ in attrs))}"] += 1
        own = dict(attrs)
        self.addresses.update(str(own[n]) for n in ("href", "src", "action", "srcset", "data", "ping") if n in own)
        if own.get("http-equiv"):
            self.policies.append(own.get("content"))
        self._inside = tag if tag == "style" or (tag == "script" and "type" not in own) else ""

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.code.append(data)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_made_of_the_same_whatever_its_texts(made: dict[str, Made], name: str) -> None:
    """The same elements, attributes, addresses, script and style; one policy, which allows nothing from anywhere."""
    hostile, plain = (Parsed(made[kind].pages[name]) for kind in KINDS)
    assert hostile.elements == plain.elements
    assert {a for a in hostile.addresses if not a.startswith("#")} <= LINKS | {
        a for a in hostile.addresses if re.fullmatch(r"transcripts\.html#f-[\w%-]+", a)
    }
    assert hostile.code == plain.code
    (policy,) = hostile.policies
    assert str(policy).startswith("default-src 'none'; style-src 'unsafe-inline'; script-src '")
    assert str(policy).endswith("'; img-src data:; base-uri 'none'; form-action 'none'")
    assert hostile.policies == plain.policies


@pytest.mark.parametrize("name", PAGES)
def test_a_page_holds_nothing_that_reorders_or_breaks_it(made: dict[str, Made], name: str) -> None:
    """Controls, overrides and half characters are spelt out, and marks aren't heaped."""
    page = made["hostile"].pages[name]
    assert CONTROLS.search(page) is None
    assert "[U+202E]" in page or name in ("transcripts.html",)  # whose texts are packed
    assert re.search("[\u0301\u0489\u20dd\u0e47\u033f]{9}", page) is None


def test_every_field_was_tried(made: dict[str, Made]) -> None:
    """Those that come from outside are among them, so that a renamed one isn't left out unseen."""
    fields = {f.partition(": ")[2] for f in made["hostile"].fields}
    asked = {
        "Model.name",
        "Model.backend",
        "Model.arguments",
        "Model.system_instruction",
        "OwnPrompt.file",
        "Judge.name",
    }
    asked |= {"Verdict.judge", "Verdict.evidence", "Verdict.decided_by", "Message.content", "CriterionRow.title"}
    asked |= {"CriterionRow.text", "PanelMember.judge", "PeopleAgreement.judge", "PeopleAgreement.reason"}
    asked |= {"Scorecard.notes", "Floor.name", "Floor.note", "Group.group", "Group.column", "Row.persona"}
    assert asked <= fields, sorted(fields)


@pytest.fixture(scope="module")
def cards(dataset: Path) -> Any:
    """A small scored run, into whose card any text can be put."""
    made = ran(open_release(dataset), lambda: "A reply.", 150)
    few = {name: getattr(made.card, name)[:2] for name in ("groups", "heat", "curves", "floors", "pairs")}
    return made._replace(card=made.card.model_copy(update=few))


def test_every_text_in_every_field_of_a_card(cards: Any) -> None:
    """Each of the texts in each field of the scorecard, in turn: the report is made of the same, and the summary's
    tables keep their columns and hold no markup.
    """
    markdown = MarkdownIt("commonmark", {"html": True}).enable("table")
    shapes, marked = set(), set()
    turns = [in_turn(harmless, CARD), *(in_turn(str, CARD, start) for start in range(len(CARD)))]
    for turn in turns:
        card = poisoned_card(cards.card, Poison(turn, IDS))
        html = report(card, [], [], {}).page
        assert CONTROLS.search(html) is None
        shapes.add(json.dumps(sorted(Parsed(html).elements.items())))
        tokens = markdown.parse(text := summary(card))
        assert CONTROLS.search(text) is None
        inline = [c for t in tokens for c in t.children or ()]
        kinds = {t.type for t in [*tokens, *inline]}
        assert not kinds & {"html_block", "html_inline", "image", "link_open", "fence", "code_block", "hr"}
        marked.add(json.dumps([t.type for t in tokens if t.type.startswith(("table", "tr_", "th_", "td_", "heading"))]))
    assert len(shapes) == 1
    assert len(marked) == 1


class Cell(NamedTuple):
    """Where a spreadsheet may take a cell to begin, in some country."""

    text: str

    @property
    def runs(self) -> bool:
        return self.text.lstrip(' "').startswith(SIGNS)


def cells(csv_text: str) -> Iterator[Cell]:
    """Every cell that any spreadsheet could make of a CSV, quote marks heeded or not."""
    for delimiter in ",;\t":
        for row in csv.reader(io.StringIO(csv_text, newline=""), delimiter=delimiter):
            yield from map(Cell, row)
        for line in re.split(r"[\r\n]+", csv_text):
            yield from map(Cell, line.split(delimiter))


@pytest.mark.parametrize("name", CARD)
def test_no_cell_is_a_formula_and_each_comes_back(name: str) -> None:
    """Wherever a spreadsheet takes a cell to begin; what was marked is found again."""
    cell = no_formula(TEXTS[name])
    assert not any(c.runs for c in cells(cell))
    assert with_formulas(cell) == TEXTS[name]


def test_a_sheet_for_coders_holds_no_formula_and_comes_back(tmp_path: Path) -> None:
    """Every text as id, message, reply and evidence; coded, and read by our own reader."""
    texts = [" ".join(harmless(t).split()) if n in ("no space", "lines") else t for n, t in SMALL.items()]
    rows = [
        (f"{t.encode('utf-8', 'replace').decode()}{n}", "0", "no_crisis", t, t, "1", t) for n, t in enumerate(texts)
    ]
    inert = [tuple(CONTROLS.sub("?", c) for c in row) for row in rows]
    text = sheet(inert)
    body = text.split("\r\n", 1)[1]
    assert not any(c.runs for c in cells(body))
    lines = [*csv.reader(io.StringIO(body, newline=""))]
    assert lines[0] == [*COLUMNS]
    assert [[*map(with_formulas, line[:7])] for line in lines[1:]] == [[*row] for row in inert]
    filled = io.StringIO()
    csv.writer(filled).writerows([lines[0], *([*line[:7], "too_short", line[3], "Ana"] for line in lines[1:])])
    (tmp_path / "coded.csv").write_text(filled.getvalue(), encoding="utf-8", newline="")
    assert coding([tmp_path / "coded.csv"]).codes["Ana"]["too_short"] == {"no_crisis": len(rows)}


def test_a_table_of_runs_holds_no_formula(cards: Any) -> None:
    """A model may be called anything."""
    rated = cards.card.appropriateness
    text = as_csv([Rated(name, rated) for name in SMALL.values()])
    assert CONTROLS.search(text.replace("\r", "")) is None
    assert not any(c.runs for c in cells(text))
    lines = [*csv.reader(io.StringIO(text, newline=""))]
    assert {len(line) for line in lines} == {len(CELLS)}


def test_junit_is_xml_whatever_the_texts(made: dict[str, Made]) -> None:
    """The names of runs, the judge and every reason; the suites and cases are those of harmless names."""
    shapes = []
    for kind, change in KINDS.items():
        found = made[kind].found
        texts = in_turn(change, CARD)
        tested = [t.model_copy(update={"reasons": [next(texts) for _ in CARD]}) for t in found.tested]
        xml = as_junit(found.model_copy(update={"tested": tested, "judge": change(TEXTS["comment"])}))
        assert CONTROLS.search(xml) is None
        root = ElementTree.fromstring(xml.encode())
        shapes.append([(e.tag, sorted(e.attrib)) for e in root.iter()])
    assert shapes[0] == shapes[1]


def test_a_comparison_s_text_keeps_its_lines(made: dict[str, Made]) -> None:
    """Names with line ends and table breakers, in the Markdown that goes to a terminal."""
    shapes = [[*map(len, map(str.split, compared(made[k].found).split("\n\n")))] for k in KINDS]
    assert len(shapes[0]) == len(shapes[1])
    hostile, plain = (compared(made[k].found).splitlines() for k in KINDS)
    assert len(hostile) == len(plain)


def test_backslashes_before_markup_are_doubled_and_others_stay() -> None:
    """Each of a million was looked at as many times as there are: a note of them took hours."""
    assert one_line(r"a\b \| \\<b> [x\](y) <3 ]") == r"a\b \\\| \\\\\<b> [x\\\](y) <3 ]"
    many = "\\" * 1_000_000
    assert (one_line(many), one_line(f"{many}|")) == (many, f"{many}{many}\\|")


def test_a_table_for_the_terminal_keeps_its_lines() -> None:
    """Raters are called what their files say."""
    table = columns(("rater", "n"), [(name, "1") for name in TEXTS.values()])
    assert len(table.splitlines()) == 1 + len(TEXTS)
    assert max(map(len, table.splitlines())) < 400


def test_a_sheet_holds_any_criterion_and_any_rater(dataset: Path) -> None:
    """Each text as both: nothing that reorders is in the page, and the rater's name is still what it was."""
    release = open_release(dataset)
    name, known = next(iter(release.criteria.items()))
    for text in CARD.values():
        own = copy.copy(release)
        own.__dict__["criteria"] = {name: known.model_copy(update={"title": text, "text": text})}
        page = annotated(Cases([Case("case", name, (text,), text)], of_a_model=True), own, rater=text)
        assert CONTROLS.search(page) is None
        (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
        assert json.loads(data)["rater"] == text


SKELETON = """
    const names = e => [...e.attributes].map(a => a.name).filter(n => n !== 'open').sort().join(' ');
    return [...document.querySelectorAll('*')].map(e => e.localName + ' ' + names(e));
"""
OPEN = "document.querySelectorAll('details').forEach(d => d.open = true)"
TYPED = "<script>window.owned=1</script>\" '=1+1 {{7*7}} \u202e</textarea>"


def quiet(browser: Browser, path: Path, title: str) -> None:
    """Nothing of a text ran, and nothing was asked for but the page itself."""
    assert browser.script("return typeof window.owned") == "undefined"
    assert str(browser.script("return document.title")).startswith(title)
    assert browser.console() == []
    asked = {u for u in browser.requested() if not u.startswith(("data:", "chrome:", "blob:"))}
    assert {u.partition("#")[0] for u in asked} == {path.as_uri()}


def shown(browser: Browser, path: Path, view: str = "light") -> None:
    """The page with nothing kept from before, opened as far as it opens."""
    browser.console()
    browser.requested()
    browser.show(path, view)
    browser.script("localStorage.clear()")
    browser.driver.refresh()
    if path.name == "transcripts.html":
        ready(browser)
    if path.name == "sheet.html":
        browser.script("document.getElementById('begin').click()")
    if path.name == "book.html":
        browser.script("document.querySelector('#pause > summary').click()")
        until(lambda: bool(browser.script("return !document.getElementById('inside').hidden")))
        browser.script(OPEN.replace("details", "#inside details"))
    else:
        browser.script(OPEN)
    if path.name == "transcripts.html":
        ready(browser)


def ready(browser: Browser) -> None:
    """The transcripts are drawn, and those that are open filled."""
    until(lambda: bool(browser.script("return document.querySelector('#filter[data-state=ready]') !== null")))
    filled = "[...document.querySelectorAll('.failure')].every(e => !e.open || e.children[1])"
    until(lambda: bool(browser.script(f"return {filled}")))


@pytest.fixture(scope="module")
def paths(made: dict[str, Made], tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Path]]:
    """The pages as files."""
    found: dict[str, dict[str, Path]] = {}
    for kind, own in made.items():
        folder = tmp_path_factory.mktemp(f"{kind}-pages")
        for name, text in own.pages.items():
            (folder / name).write_text(text, encoding="utf-8")
            found.setdefault(name, {})[kind] = folder / name
    return found


@in_chromium
@pytest.mark.parametrize("name", PAGES)
def test_a_browser_finds_the_same_elements(browser: Browser, paths: dict[str, dict[str, Path]], name: str) -> None:
    """With everything open, and nothing ran."""
    elements = []
    for path in paths[name].values():
        shown(browser, path)
        elements.append(Counter(browser.script(SKELETON)))
        quiet(browser, path, "HELMbench")
    assert elements[0] == elements[1]


@in_chromium
@pytest.mark.parametrize("view", ["light", "phone"])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_runs_off_a_page(browser: Browser, paths: dict[str, dict[str, Path]], name: str, view: str) -> None:
    """With everything open, the page never scrolls sideways."""
    shown(browser, paths[name]["hostile"], view)
    assert browser.overflow() == 0


def every_choice(browser: Browser) -> int:
    """Each option of each filter, chosen as a reader would; how many there were."""
    made: int = browser.script("""
        const form = document.getElementById('filter');
        let n = 0;
        for (const s of form.querySelectorAll('select')) {
            for (const o of s.options) { s.value = o.value; s.dispatchEvent(new Event('input', {bubbles: true})); n++; }
            s.value = ''; s.dispatchEvent(new Event('input', {bubbles: true}));
        }
        return n;
    """)
    return made


def search(browser: Browser, words: str) -> None:
    browser.script(f"""
        const field = document.getElementById('filter').elements.words;
        field.value = {json.dumps(words)};
        field.dispatchEvent(new Event('input', {{bubbles: true}}));
    """)


@in_chromium
@pytest.mark.parametrize("name", ["report.html", "transcripts.html", "book.html"])
def test_filters_and_search_work(browser: Browser, paths: dict[str, dict[str, Path]], name: str) -> None:
    """Every choice is made, and hostile words are searched and found; nothing runs."""
    path = paths[name]["hostile"]
    shown(browser, path)
    assert every_choice(browser) > 5
    for words in ("<img src=x", "{{ 7*191 }}", "(.*)\\", "no such words at all zzyzx", "=cmd|"):
        browser.script("document.getElementById('count').textContent = ''")
        search(browser, words)
        until(lambda: " of " in str(browser.script("return document.getElementById('count').textContent")))
        number = int(str(browser.script("return document.getElementById('count').textContent")).split()[0])
        assert (number == 0) == ("zzyzx" in words or words == "(.*)\\"), words
    browser.script("document.querySelectorAll('button[type=reset], a[data-show-incident]').forEach(b => b.click())")
    quiet(browser, path, "HELMbench")


@in_chromium
def test_a_reply_is_reached_by_its_address(browser: Browser, paths: dict[str, dict[str, Path]]) -> None:
    """So is nothing by an address that is a text."""
    path = paths["transcripts.html"]["hostile"]
    shown(browser, path)
    anchor = browser.script("return document.querySelector('.failure').dataset.anchor")
    for fragment in (
        anchor,
        f"f-{TYPED}",
        f"words={TYPED}",
        "behavior=<img src=x>&page=1e9",
        "%E0%A4%A",
        "__proto__=1",
    ):
        browser.script(f"location.hash = {json.dumps('#' + fragment)}")
        until(lambda: bool(browser.script("return document.getElementById('count').textContent !== 'Searching…'")))
        ready(browser)
    quiet(browser, path, "HELMbench transcripts")


@in_chromium
def test_a_sheet_is_labelled_to_its_end(browser: Browser, paths: dict[str, dict[str, Path]], tmp_path: Path) -> None:
    """Every reply, with a hostile name and hostile notes, over a reload; the file that is saved holds them as text."""
    path = paths["sheet.html"]["hostile"]
    shown(browser, path)
    browser.driver.refresh()
    browser.script(f"document.getElementById('rater').value = {json.dumps(TYPED)}")
    browser.script("document.getElementById('begin').click()")
    while True:
        browser.script(f"""
            document.querySelector('#labels button').click();
            const note = document.getElementById('note');
            note.value = {json.dumps(TYPED)};
            note.dispatchEvent(new Event('input'));
        """)
        assert browser.script("return document.getElementById('reply').children.length") == 0
        if browser.script("return document.getElementById('on').disabled"):
            break
        browser.script("document.getElementById('on').click()")
    browser.driver.refresh()
    browser.script("for (const id of ['begin', 'stop', 'resume']) document.getElementById(id).click()")
    browser.downloads(tmp_path / "down")
    browser.script("document.getElementById('download').click()")
    until(lambda: any(p.suffix == ".jsonl" for p in (tmp_path / "down").iterdir()))
    (saved,) = (tmp_path / "down").glob("*.jsonl")
    assert re.fullmatch(r"labels-[\w-]+\.jsonl", saved.name)
    lines = [json.loads(line) for line in saved.read_text(encoding="utf-8").splitlines()]
    assert len(lines) == len(TEXTS) // 4
    assert {line["note"] for line in lines} == {TYPED}
    quiet(browser, path, "HELMbench: replies to label")


@in_chromium
def test_a_stranger_s_review_is_taken_as_text(
    browser: Browser, paths: dict[str, dict[str, Path]], tmp_path: Path
) -> None:
    """A review file may hold anything where a name, a comment or a severity belongs, and so may a comment."""
    path = paths["book.html"]["hostile"]
    shown(browser, path)
    first = browser.script("const s = document.querySelector('.scenario'); return [s.id, s.dataset.hash]")
    about = browser.script("return [...document.querySelectorAll('.scenario .message')][0].dataset.about")
    note = {"about": about, "comment": TYPED, "verdict": TYPED, "severity": TYPED}
    for odd in (
        {"name": TYPED, "qualification": {"toString": 1}},
        {"name": ["a"], "qualification": None},
        None,
    ):
        file = {
            "format": browser.script("return document.body.dataset.format"),
            "reviewer": odd,
            "items": [
                {"scenario": first[0], "text": first[1], "signed": "yes", "notes": [note, {"about": "__proto__"}]},
                {"scenario": "__proto__", "text": TYPED, "notes": 1},
                None,
            ],
        }
        (tmp_path / "review.json").write_text(json.dumps(file), encoding="utf-8")
        browser.script("document.getElementById('kept').textContent = ''")
        browser.choose("#reviewer [type=file]", tmp_path / "review.json")
        until(lambda: bool(browser.script("return document.getElementById('kept').textContent")))
    quiet(browser, path, "HELMbench")
