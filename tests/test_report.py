"""The report and the summary: what they show, what they withhold, and that a hostile reply stays text."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

import pytest

from dataset_builder.release import Release
from dataset_builder.schema import Row, Tier
from judge.report import TEMPLATES, report
from judge.runs import Run, live_turns
from judge.schema import Dataset, Figure, Floor, Model, Reply, Scorecard, Verdict
from judge.score import score
from judge.summary import summary
from judge.verdicts import JudgeIdentity, judge_run

MARKER = "zebra-quarantine-7319"
HOSTILE = (
    '</script><script>document.title="owned"</script><img src=x onerror="alert(1)"> --></style></details>'
    "{{ 7*191 }}{% raw %} <!-- \u202egnp.exe\u2066 \x00\x1b[31m &lt;b&gt; \" onmouseover=alert(1) x=' \ud800 <iframe srcdoc=hi>"
)


class Scored(NamedTuple):
    """One run through the real judge and scorer."""

    card: Scorecard
    verdicts: list[Verdict]
    replies: list[Reply]
    rows: dict[str, Row]

    def page(self, show_withheld: bool = False) -> str:
        return report(self.card, self.verdicts, self.replies, self.rows, show_withheld=show_withheld)

    def with_verdicts(self, release: Release, change: Callable[[Verdict], Verdict]) -> Scored:
        verdicts = [change(v) for v in self.verdicts]
        return Scored(_score(release, verdicts, self.card.dataset, self.card.model.name), verdicts, self.replies, self.rows)


class Page(HTMLParser):
    """Start tags with their attributes, table rows as text, and all visible text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.words: list[str] = []
        self._raw = self._cell = False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._raw = tag in ("script", "style")
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")
            self._cell = True

    def handle_endtag(self, tag: str) -> None:
        self._raw = False
        self._cell = self._cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._raw:
            return
        self.words.append(data)
        if self._cell:
            self.rows[-1][-1] += data

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def row(self, head: str) -> str:
        return next(" ".join(" ".join(r).split()) for r in self.rows if r and r[0].startswith(head))


def plain_reply(row: Row) -> str:
    """A fixed answer: escalates every tagging job, rates 5, and is kind to everybody."""
    kinds = {c.check for c in row.evaluation}
    if "tags" in kinds:
        return '{"tags": ["ASSISTANCE"], "distress": 5}'
    return '{"distress": 5}' if "rating" in kinds else "That sounds hard. I'm here and I'm listening."


def run(release: Release, said: Callable[[Row], str] = plain_reply, tier: Tier = "lite", drop: str = "", name: str = "fixed") -> Scored:
    rows = [r for r in release.rows.values() if tier in r.tiers]
    replies = [Reply(id=r.id, turns=(said(r),) * live_turns(r)) for r in rows if not drop or r.behavior != drop]
    verdicts = judge_run(Run(Path("fixed"), Model(name=name, backend="test"), tier, replies, False), release, JudgeIdentity("offline-1", None))
    manifest = release.manifest
    dataset = Dataset(
        version=manifest.version, score_hash=manifest.score_hash, tier=tier, samples=len(replies), expected=len(rows), complete=len(replies) == len(rows)
    )
    return Scored(_score(release, verdicts, dataset, name), verdicts, replies, release.rows)


def _score(release: Release, verdicts: list[Verdict], dataset: Dataset, name: str) -> Scorecard:
    return score(release.rows, verdicts, release.scoring, release.criteria, dataset, Model(name=name, backend="test"), "offline-1", None)


def first(scored: Scored, kind: str = "criterion") -> str:
    """A sample with a failed check of this kind."""
    return next(v.id for v in scored.verdicts if v.check == kind and v.label == "FAIL")


def test_page_fetches_nothing(release: Release) -> None:
    """The page has no src, no stylesheet, import or frame, and its policy allows only its own script."""
    html = run(release).page()
    page = Page(html)
    assert [a for _, a in page.tags if {"src", "srcset", "srcdoc", "action", "background", "poster"} & a.keys()] == []
    assert [a["href"] for tag, a in page.tags if tag == "link"] == ["data:,"]
    links = {a["href"] for tag, a in page.tags if tag == "a" and not str(a.get("href")).startswith("#")}
    assert links == {"https://findahelpline.com"}
    assert "@import" not in html
    assert "url(" not in html
    assert "default-src 'none'" in html
    assert re.findall(r"https?://[^\"'<\s]+", html) == ["https://findahelpline.com"]


def test_hostile_replies_are_text(release: Release) -> None:
    """Markup, template braces, control characters and bidirectional overrides in replies and names add no element and no attribute."""
    scored = run(release, lambda _: HOSTILE, name=HOSTILE)
    html = scored.page()
    page = Page(html)
    counts = Counter(tag for tag, _ in page.tags)
    assert counts["script"] == 1
    assert not counts.keys() & {"img", "iframe", "object"}
    assert [name for _, attributes in page.tags for name in attributes if name.startswith("on")] == []
    assert html.count("</script>") == 1
    assert "{{ 7*191 }}" in page.text
    assert "1337" not in page.text
    assert not set(html) & {"\u202e", "\u2066", "\x00", "\x1b", "\ud800"}
    assert "[U+202E]" in page.text
    html.encode("utf-8")


@pytest.mark.parametrize("reason", ["harm", "unscored"])
def test_withheld_reply_is_nowhere(release: Release, reason: str) -> None:
    """A reply with a harm incident or an unscored verdict shows as its hash, in report and summary; the local switch shows it."""
    target = first(run(release))
    text = f"{MARKER} in a reply"
    fate = {"incident": "harm"} if reason == "harm" else {"incident": None, "label": None, "unscored": "unparsable"}
    scored = run(release, lambda row: text if row.id == target else plain_reply(row))
    scored = scored.with_verdicts(release, lambda v: v.model_copy(update={**fate, "evidence": (MARKER,)}) if v.id == target else v)
    html = scored.page()
    assert MARKER not in html
    assert MARKER not in summary(scored.card)
    assert "[withheld]" in html
    assert hashlib.sha256(text.encode()).hexdigest()[:16] in html
    assert MARKER in scored.page(show_withheld=True)


def test_withheld_words_are_not_shown_by_another_sample(release: Release) -> None:
    """Where two samples hold the same reply and only one verdict calls it harm, neither shows it."""
    two = [v.id for v in run(release).verdicts if v.check == "criterion" and v.label == "FAIL"][:2]
    scored = run(release, lambda row: f"{MARKER} twice" if row.id in two else plain_reply(row))
    scored = scored.with_verdicts(release, lambda v: v.model_copy(update={"incident": "harm"}) if v.id == two[0] else v)
    assert MARKER not in scored.page()


def test_earlier_turns_of_a_withheld_conversation_are_withheld(release: Release) -> None:
    """A harm incident at one turn withholds every live turn of the conversation."""
    scored = run(release)
    talk = next(r for r in scored.replies if len(r.turns) > 1)
    turns = tuple(f"{MARKER} {n}" for n in range(len(talk.turns)))
    replies = [r.model_copy(update={"turns": turns}) if r.id == talk.id else r for r in scored.replies]
    verdicts = [v.model_copy(update={"incident": "harm"}) if v.id == talk.id else v for v in scored.verdicts]
    assert MARKER not in report(scored.card, verdicts, replies, scored.rows)


def test_null_composite_says_why(release: Release) -> None:
    """A run without one behavior's samples prints no composite and names what is missing."""
    scored = run(release, drop="P3-B1")
    assert scored.card.composite.value is None
    assert "P3-B1" in scored.card.composite_note
    assert scored.card.composite_note in Page(scored.page()).text
    assert " ".join(scored.card.composite_note.split()) in " ".join(summary(scored.card).split())


def test_same_input_same_bytes(release: Release) -> None:
    """The page depends on what was said, not on the order in which verdicts and replies come."""
    scored = run(release)
    again = report(scored.card, scored.verdicts[::-1], scored.replies[::-1], scored.rows)
    assert scored.page() == scored.page() == again


def test_numbers_are_the_scorecards(release: Release) -> None:
    """Composite, detection, behaviors and incidents stand on the page as the scorecard has them, to one decimal."""
    card = run(release).card
    page = Page(run(release).page())

    def one(value: float | None) -> str:
        assert value is not None
        return f"{value:.1f}".replace("-0.0", "0.0").replace("-", "−")

    def whole(f: Figure) -> str:
        return f"{one(f.value)} {one(f.low)} to {one(f.high)} {f.clusters}" if f.low is not None else f"{one(f.value)} –"

    assert whole(card.composite) in page.row("Composite")
    for code, b in card.behaviors.items():
        assert whole(b.score) in page.row(f"{code} {b.title}")
    for f in (card.detection.sensitivity, card.detection.specificity):
        assert f.value is not None
        assert f"{one(100 * f.value)} %" in page.text
    for i in card.incidents:
        assert page.row(i.incident.replace("_", " ")).split(" P")[0].endswith(f"{i.count} {i.crisis} {i.control} {str(i.worst_severity).replace('-', '−')}")


def test_floor_states_are_words(release: Release) -> None:
    """Each of the three states is written out, in the page and in the summary."""
    scored = run(release)
    states = [
        Floor(name=f"floor {n}", value=0.5, low=0.4, high=0.6, threshold=0.9, messages=40, state=s)
        for n, s in enumerate(("passed", "breached", "undetermined"))
    ]
    card = scored.card.model_copy(update={"floors": states})
    html = report(card, scored.verdicts, scored.replies, scored.rows)
    for f in states:
        assert f.state in Page(html).row(f.name)
        assert f'<span class="state {f.state}">{f.state}</span>' in html
        assert re.search(rf"{f.name}.*{f.state}", summary(card))


def test_warning_and_help_come_first(release: Release) -> None:
    """The warning and the helpline precede every figure, and the quotes lie in a list that starts closed."""
    html = run(release).page()
    body = html[html.index("<body>") :]
    assert body.index("suicide and despair") < body.index("findahelpline.com") < body.index("emergency number") < body.index("Composite")
    tags = Page(html).tags
    assert [a for tag, a in tags if tag == "details" and "open" in a] == []
    assert ("details", {"id": "failures"}) in tags
    assert body.index('id="failures"') < body.index('class="quote"')


def test_offline_judge_is_called_approximate(release: Release) -> None:
    """A run of the offline judge is named approximate and a demo, and no run is called safe or reviewed."""
    scored = run(release)
    text = Page(scored.page()).text
    assert "approximate" in text
    assert "A demo, never ranked" in text
    assert "no proof of safety" in text
    assert "No clinician has reviewed this release" in text
    assert "approximate" in summary(scored.card)


def test_wording_respects_people() -> None:
    """The template says people and messages, and never what it should not."""
    words = (TEMPLATES / "report.html").read_text(encoding="utf-8").lower()
    assert re.findall(r"\b(?:committed|victims?|cases?|suffer\w*|perturbation)\b", words) == []


def test_every_failed_reply_is_listed_once(release: Release) -> None:
    """One entry per reply with a failed verdict; the passed verdicts of that reply stand beside the failed ones."""
    scored = run(release)
    failed = {v.id for v in scored.verdicts if v.label == "FAIL" or v.incident}
    entries = [a["id"] for tag, a in Page(scored.page()).tags if tag == "details" and a.get("class") == "failure"]
    assert sorted(map(str, entries)) == sorted(f"f-{i}" for i in failed)


def test_list_reads_without_script(release: Release) -> None:
    """Without JavaScript every entry is visible, the filter is not, and each system text can be followed to."""
    html = run(release).page()
    tags = Page(html).tags
    assert [a.get("class") for tag, a in tags if "hidden" in a] == [None]
    assert next(a for tag, a in tags if tag == "form").get("id") == "filter"
    targets = {a.get("id") for _, a in tags}
    assert {str(a["href"])[1:] for tag, a in tags if tag == "a" and str(a["href"]).startswith("#")} <= targets


def test_core_report_is_under_two_megabytes(release: Release) -> None:
    """704 samples with 900-character replies and more than 300 failures make a page that can be mailed."""
    scored = run(release, lambda row: "Let us look at the draft together. " * 26, tier="core")
    html = scored.page()
    assert html.count('class="failure"') >= 300
    assert len(html.encode()) < 2_000_000


def test_summary_lines_up(release: Release) -> None:
    """Table rows are of one width, the whole fits a screen, and a hostile model name stays in its line."""
    text = summary(run(release, name="a|b\n# not a heading\x1b[31m").card)
    assert text.splitlines()[0] == "# HELMbench: a\\|b # not a heading[U+001B][31m"
    assert len(text.splitlines()) < 45
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(line) for line in table.splitlines()}) == 1


CHROMIUM = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine; the page's script is not run")
@pytest.mark.parametrize("said", [plain_reply, lambda _: HOSTILE], ids=["plain", "hostile"])
def test_script_runs_in_a_browser(release: Release, tmp_path: Path, said: Callable[[Row], str]) -> None:
    """Chromium reports no console message or policy violation, and the filter has counted its entries."""
    assert CHROMIUM
    scored = run(release, said)
    path = tmp_path / "report.html"
    path.write_text(scored.page(), encoding="utf-8")
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    done = subprocess.run([CHROMIUM, *flags, path.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    page = Page(done.stdout)
    assert ("details", {"id": "failures", "data-filter": "ready"}) in page.tags
    entries = sum(a.get("class") == "failure" for _, a in page.tags)
    assert f"{entries} of {entries} shown" in page.text
    assert "<title>HELMbench report: fixed</title>" in done.stdout
