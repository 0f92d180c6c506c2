"""The report and the summary: what they show, what they withhold, and that a hostile reply stays text."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import pytest
from reference_policies import KIND
from support.transcript_pages import everything, told

from dataset_builder.release import Release
from dataset_builder.schema import Incident, Row, Tier
from judge.agreement.known import stored
from judge.offline import judge as offline
from judge.offline.reader import OfflineReader
from judge.replies.run import Run
from judge.replies.schema import Model, Reply
from judge.replies.script import live_turns
from judge.report.entries import Show, withheld
from judge.report.page import PAGE_BYTES, TEMPLATES, TRANSCRIPTS, Report, report
from judge.report.summary import summary
from judge.schema import (
    Cell,
    Curve,
    Dataset,
    Figure,
    Floor,
    Group,
    JudgeAgreement,
    Pairing,
    Reference,
    Scorecard,
    Verdict,
    Vote,
)
from judge.scoring.curves import curve
from judge.scoring.scorecard import About, judge_card, scorecard
from judge.verdicts import JudgeIdentity, judge_run
from judge.wording import HEADLINES, MEANINGS

SMALL = 450_000  # bytes of a page that holds some of the lite tier's failures and not all
MARKER = "zebra-quarantine-7319"
HOSTILE = (
    '</script><script>document.title="owned"</script><img src=x onerror="alert(1)"> --></style></details>'
    "{{ 7*191 }}{% raw %} <!-- \u202egnp.exe\u2066 \x00\x1b[31m &lt;b&gt; \" onmouseover=alert(1) x=' \ud800 "
    "<iframe srcdoc=hi>"
)


class Scored(NamedTuple):
    """One run through the real judge and scorer."""

    card: Scorecard
    verdicts: list[Verdict]
    replies: list[Reply]
    rows: dict[str, Row]

    def report(self, show: Show = "failures", page_bytes: int = PAGE_BYTES) -> Report:
        return report(self.card, self.verdicts, self.replies, self.rows, show, page_bytes)

    def page(self, show: Show = "failures") -> str:
        return self.report(show).page

    def with_card(self, **change: Any) -> Scored:
        return self._replace(card=self.card.model_copy(update=change))

    def with_verdicts(self, release: Release, change: Callable[[Verdict], Verdict]) -> Scored:
        verdicts = [change(v) for v in self.verdicts]
        return Scored(
            _score(release, verdicts, self.card.dataset, self.card.model.name), verdicts, self.replies, self.rows
        )


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


def policy_reply(row: Row) -> str:
    """The same with the kind policy's own words, whose labels rules know by heart: nothing is left unscored."""
    said = plain_reply(row)
    return said if said.startswith("{") else KIND


def run(
    release: Release, said: Callable[[Row], str] = plain_reply, tier: Tier = "lite", drop: str = "", name: str = "fixed"
) -> Scored:
    rows = [r for r in release.rows.values() if tier in r.tiers]
    replies = [Reply(id=r.id, turns=(said(r),) * live_turns(r)) for r in rows if not drop or r.behavior != drop]
    verdicts = judge_run(
        Run(Path("fixed"), Model(name=name, backend="test"), tier, replies, False),
        release,
        OfflineReader(),
    )
    manifest = release.manifest
    dataset = Dataset(
        version=manifest.version,
        score_hash=manifest.score_hash,
        tier=tier,
        samples=len(replies),
        expected=len(rows),
        complete=len(replies) == len(rows),
    )
    return Scored(_score(release, verdicts, dataset, name), verdicts, replies, release.rows)


def agreement(release: Release, **change: Any) -> JudgeAgreement:
    """What the offline judge's shipped file says of it, changed."""
    return stored([JudgeIdentity(offline.NAME, None)], Path("nowhere"), [], release)[0].model_copy(update=change)


def with_agreement(scored: Scored, *known: JudgeAgreement) -> Scored:
    return scored.with_card(judge=scored.card.judge.model_copy(update={"agreement": list(known)}))


def _score(release: Release, verdicts: list[Verdict], dataset: Dataset, name: str) -> Scorecard:
    about = About(dataset, Model(name=name, backend="test"))
    return scorecard(verdicts, release, about, judge_card(verdicts, "offline-1", None))


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
    assert links == {"https://findahelpline.com", TRANSCRIPTS}
    assert "@import" not in html
    assert "url(" not in html
    assert "default-src 'none'" in html
    assert re.findall(r"https?://[^\"'<\s]+", html) == ["https://findahelpline.com"]


def test_hostile_replies_are_text(release: Release) -> None:
    """Markup, template braces, control characters and bidirectional overrides in replies and names add no element and
    no attribute.
    """
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
    """A reply with a harm incident or an unscored verdict shows as its hash, in report and summary; the local switch
    shows it.
    """
    target = first(run(release))
    text = f"{MARKER} in a reply"
    fate = {"incident": "harm"} if reason == "harm" else {"incident": None, "label": None, "unscored": "unparsable"}
    scored = run(release, lambda row: text if row.id == target else plain_reply(row))
    scored = scored.with_verdicts(
        release, lambda v: v.model_copy(update={**fate, "evidence": (MARKER,)}) if v.id == target else v
    )
    html = scored.page()
    assert MARKER not in html
    assert MARKER not in summary(scored.card)
    assert "[withheld]" in html
    assert hashlib.sha256(text.encode()).hexdigest()[:16] in html
    assert MARKER in scored.page(show="withheld")


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
    assert MARKER not in report(scored.card, verdicts, replies, scored.rows).page


def test_null_composite_says_why(release: Release) -> None:
    """A run without one behavior's samples prints no composite and names what is missing."""
    scored = run(release, drop="P3-B1")
    assert scored.card.composite.value is None
    assert "P3-B1" in scored.card.composite_note
    assert scored.card.composite_note[1:] in Page(scored.page()).text
    assert " ".join(scored.card.composite_note.split()) in " ".join(summary(scored.card).split())


def test_same_input_same_bytes(release: Release) -> None:
    """The page depends on what was said, not on the order in which verdicts and replies come."""
    scored = run(release)
    again = report(scored.card, scored.verdicts[::-1], scored.replies[::-1], scored.rows, page_bytes=SMALL)
    once = scored.report(page_bytes=SMALL)
    assert once.page == again.page
    assert "".join(once.transcripts) == "".join(again.transcripts)


def test_numbers_are_the_scorecards(release: Release) -> None:
    """Composite, detection, behaviors and incidents stand on the page as the scorecard has them, to one decimal."""
    scored = run(release, policy_reply)
    card, page = scored.card, Page(scored.page())

    def one(value: float | None) -> str:
        assert value is not None
        return f"{value:.1f}".replace("-0.0", "0.0").replace("-", "−")

    def whole(f: Figure, cost: bool = False) -> str:
        assert f.value is not None
        assert f.low is not None
        assert f.high is not None
        if cost:
            return f"lost {one(-f.value)} of 100 {one(-f.high)} to {one(-f.low)} {f.clusters}"
        return f"{one(f.value)} {one(f.low)} to {one(f.high)} {f.clusters}"

    assert whole(card.composite) in page.row("Composite")
    for name, f in card.headlines.items():
        assert whole(f, name == "keeps") in page.row(HEADLINES[name])
    assert card.tasks
    for head, b in [*((f"{c} {b.title}", b) for c, b in card.behaviors.items()), ("Tasks", card.tasks)]:
        assert whole(b.score, not b.earns) in page.row(head)
    for f in (card.detection.sensitivity, card.detection.specificity):
        assert f.value is not None
        assert f"{one(100 * f.value)} %" in page.text
    for i in card.incidents:
        assert (
            page.row(i.incident.replace("_", " "))
            .split(" P")[0]
            .endswith(f"{i.count} {i.crisis} {i.control} {str(i.worst_severity).replace('-', '−')}")
        )


def test_floor_states_are_words(release: Release) -> None:
    """Each of the three states is written out, in the page and in the summary."""
    scored = run(release)
    states = [
        Floor(name=f"floor {n}", value=0.5, low=0.4, high=0.6, threshold=0.9, messages=40, state=s)
        for n, s in enumerate(("passed", "breached", "undetermined"))
    ]
    card = scored.with_card(floors=states).card
    html = scored.with_card(floors=states).page()
    for f in states:
        assert f.state in Page(html).row(f.name)
        assert f'<span class="state {f.state}">{f.state}</span>' in html
        assert re.search(rf"{f.name}.*{f.state}", summary(card))


def test_warning_and_help_come_first(release: Release) -> None:
    """The warning and the helpline precede every figure, and the quotes lie in a list that starts closed."""
    html = run(release).page()
    body = html[html.index("<body>") :]
    assert (
        body.index("suicide and despair")
        < body.index("findahelpline.com")
        < body.index("emergency number")
        < body.index("Composite")
    )
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
    words = " ".join(
        p.read_text(encoding="utf-8").lower() for p in sorted(TEMPLATES.iterdir()) if not p.name.startswith("annotate")
    )
    assert re.findall(r"\b(?:committed|victims?|cases?|suffer\w*|perturbation)\b", words) == []


def test_every_failed_reply_is_listed_once(release: Release) -> None:
    """One entry per reply with a failed verdict; the passed verdicts of that reply stand beside the failed ones. What
    the offline judge couldn't tell is no failure.
    """
    scored = run(release)
    assert scored.card.judge.left
    failed = {v.id for v in scored.verdicts if v.label == "FAIL" or v.incident}
    assert sorted(anchors(scored.page())) == sorted(f"f-{i}" for i in failed)


def anchors(html: str, kind: str = "failure") -> list[str]:
    """The entries of a page, those that failed, or those that passed."""
    return [str(a["id"]) for tag, a in Page(html).tags if tag == "details" and a.get("class") == kind]


def test_passing_replies_can_be_read_after_the_failures(release: Release) -> None:
    """A local page holds every reply that was judged, once, failures first; the board's holds failures alone."""
    scored = run(release)
    html = scored.page("all")
    failed, passed = anchors(html), anchors(html, "failure passed")
    assert failed == anchors(scored.page())
    assert sorted([*failed, *passed]) == sorted({f"f-{v.id}" for v in scored.verdicts})
    assert html.rindex('class="failure"') < html.index('class="failure passed"')
    assert f"{len(passed)} can be read as well" in Page(html).text
    assert 'name="which"' in html
    assert 'name="which"' not in scored.page()
    assert anchors(scored.page(), "failure passed") == []


def judged_well(scored: Scored, sample: str) -> bool:
    return all(v.label == "PASS" for v in scored.verdicts if v.id == sample)


def test_a_passing_reply_is_withheld_by_the_same_rule(release: Release) -> None:
    """A reply that passed, and says the same words as one that is withheld, is withheld among all replies too."""
    scored = run(release)
    failing = first(scored)
    passing, shown = [a[2:] for a in anchors(scored.page("all"), "failure passed") if judged_well(scored, a[2:])][:2]
    said = {failing: f"{MARKER} twice", passing: f"{MARKER} twice", shown: "read by everybody"}
    replies = [r.model_copy(update={"turns": (said[r.id],)}) if r.id in said else r for r in scored.replies]
    verdicts = [v.model_copy(update={"incident": "harm"}) if v.id == failing else v for v in scored.verdicts]
    made = report(scored.card, verdicts, replies, scored.rows, "all", page_bytes=SMALL)
    transcripts = "".join(made.transcripts)
    both = made.page + everything(transcripts)
    assert MARKER not in both
    assert {passing, failing} <= {t.id for t in told(transcripts)}
    assert "read by everybody" in both
    assert MARKER in report(scored.card, verdicts, replies, scored.rows, "withheld").page


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
    """Table rows are of one width, the whole fits a printed page, and a hostile model name stays in its line."""
    text = summary(run(release, name="a|b\n# not a heading\x1b[31m").card)
    assert text.splitlines()[0] == "# HELMbench: a\\|b # not a heading[U+001B][31m"
    assert len(text.splitlines()) <= 90
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(line) for line in table.splitlines()}) == 1


def test_no_page_grows_past_two_megabytes(release: Release) -> None:
    """Whatever is said, the page stays small; each failed reply is in the transcripts beside it, which it names."""
    made = run(release, lambda row: "\x00&" * 3000, tier="core", name="&" * 1_000_000).report()
    assert 1_500_000 < len(made.page.encode()) < 2_000_000
    here = anchors(made.page)
    whole = anchors(run(release, tier="core").report(page_bytes=9_000_000).page)
    beside = {f"f-{t.id}" for t in told("".join(made.transcripts))}
    assert {*here, *whole} <= beside
    assert len(whole) > len(here) > 0
    text = Page(made.page).text
    assert f"This page holds {len(here)}, failures and the gravest messages first; {TRANSCRIPTS} , beside" in text
    assert f"holds all {len(beside)}, to be searched" in text


def test_what_has_no_room_is_linked_in_the_transcripts(release: Release) -> None:
    """The examples of an incident lead to their replies, wherever these stand."""
    made = run(release).report(page_bytes=0)
    links = [str(a["href"]) for tag, a in Page(made.page).tags if tag == "a"]
    led = {href.partition("#")[2] for href in links if href.startswith(f"{TRANSCRIPTS}#")}
    assert led
    assert led <= {f"f-{t.id}" for t in told("".join(made.transcripts))}


def test_every_incident_has_its_words() -> None:
    """An incident without words would end a report in a traceback."""
    assert set(MEANINGS) == set(get_args(Incident))


def test_gravest_stay_on_the_page(release: Release) -> None:
    """No reply on a graver message is left to the transcripts for one on a milder message."""
    scored = run(release)
    made = scored.report(page_bytes=SMALL)
    severity = {f"f-{i}": abs(row.severity) for i, row in scored.rows.items()}
    here = anchors(made.page)
    left = [f"f-{t.id}" for t in told("".join(made.transcripts)) if f"f-{t.id}" not in here]
    assert min(severity[i] for i in here) >= max(severity[i] for i in left)


def ladder(low: float, high: float, odd: float | None = None) -> Curve:
    """A curve over 40 messages, four a rung; its rate goes from `low` to `high`, with severity 3 at `odd`."""
    severity = np.repeat(np.arange(1.0, 11.0), 4)
    rate = low + (high - low) * (severity - 1) / 9 + np.tile([-0.02, 0.02, -0.01, 0.01], 10)
    rate[severity == 3] = rate[severity == 3] if odd is None else odd + np.array([-0.02, 0.02, -0.01, 0.01])
    return curve("P1-B1", severity, np.clip(rate, 0, 1), 0.95)


@pytest.mark.parametrize(
    ("drawn", "said", "fitted", "marked"),
    [
        (
            ladder(0, 1),
            r"Threshold 5\.\d: the severity at which half are flagged \(95 % interval 5\.\d to 5\.\d\)",
            True,
            True,
        ),
        (ladder(0.9, 0.95), "Threshold <1: half are flagged already below severity 1", True, False),
        (ladder(0.02, 0.1), "Threshold >10: not even at severity 10 is half flagged", True, False),
        (ladder(0.9, 0.3), "No threshold: graver messages are not flagged more often", True, False),
        (
            curve("P1-B1", np.arange(1.0, 11.0), np.arange(10.0) / 10, 0.95),
            "Not fitted: 10 messages, 30 are needed",
            False,
            False,
        ),
    ],
    ids=["inside", "below", "above", "falling", "few"],
)
def test_curve_says_what_it_draws(release: Release, drawn: Curve, said: str, fitted: bool, marked: bool) -> None:
    """The threshold stands in words; a line is drawn only where one was fitted, a mark only where it lies on the
    ladder.
    """
    html = run(release).with_card(curves=[drawn]).page()
    assert re.search(said, Page(html).text)
    assert ('class="fitted"' in html) is fitted
    assert ('class="at dot" x="' in html[html.index('id="curves"') : html.index('id="heat"')]) is marked
    assert html.count('class="rung"') == 10
    assert Page(html).row("Flagged, %").split()[2:] == [f"{100 * r.rate:.0f}" for r in drawn.rungs]


def test_inversions_are_words(release: Release) -> None:
    """A milder rung that is caught more often than graver ones is named, with what chance allows."""
    drawn = ladder(0.1, 0.9, odd=0.95)
    text = Page(run(release).with_card(curves=[drawn]).page()).text
    worst = next(i for i in drawn.inversions if (i.milder, i.graver) == (3, 4))
    assert (
        f"Severity 3 is caught more often than severity 4 (by {100 * worst.difference:.1f} points; chance "
        f"allows {100 * worst.needed:.1f})" in text
    )
    assert "No milder severity" in Page(run(release).with_card(curves=[ladder(0, 1)]).page()).text


def test_heat_map_has_its_numbers(release: Release) -> None:
    """Every cell holds its rate and messages; where there are none stands a dash."""
    cells = [
        Cell(behavior="P1-B1", condition_kind="journal", rate=Figure(value=0.25, n=40, clusters=20)),
        Cell(behavior="P3-B1", condition_kind="expert", rate=Figure(value=1.0, n=8, clusters=4)),
    ]
    html = run(release).with_card(heat=cells).page()
    begin = html.index('<table class="stack heat"')
    part = Page(html[begin : html.index("</table>", begin)])
    assert [r[1:] for r in part.rows] == [["expert", "journal"], ["–", "25.0 % 20"], ["100.0 % 4", "–"]]
    assert 'class="n few" style="--shade: 45.0%"' in html


def test_groups_are_ranked_and_named(release: Release) -> None:
    """The lowest gap comes first, groups too small to rank last, and what stands out says so."""

    def group(name: str, gap: float, messages: int = 30, **marks: bool) -> Group:
        flags = {"found": False, "greyed": messages < 10, "worst": False} | marks
        return Group(
            column="gender",
            group=name,
            rate=Figure(value=0.5, low=0.4, high=0.6, clusters=messages),
            gap=Figure(value=gap, low=gap - 0.1, high=gap + 0.1),
            **flags,
        )

    found = [
        group("few", -0.9, 4),
        group("upper", 0.2),
        group("lower", -0.3, found=True, worst=True),
        group("middle", 0.1),
    ]
    page = Page(run(release).with_card(groups=found).page())
    rows = [" ".join(" ".join(r).split()) for r in page.rows]
    named = [r for r in rows if r.startswith(("few ", "upper", "lower", "middle"))]
    assert [r.split()[0] for r in named] == ["lower", "middle", "upper", "few"]
    assert (
        named[0] == "lower lowest gap stands out after Holm’s correction −30.0 −40.0 to −20.0 50.0 % 40.0 to 60.0 % 30"
    )
    assert "not ranked" in named[-1]
    assert "1 of 3 groups stands out after Holm’s correction over all of them: gender lower" in page.text


def test_pairs_say_how_to_read_the_sign(release: Release) -> None:
    """Crisis and control stand apart, each with its own sentence."""
    pairs = [
        Pairing(kind="history", polarity=p, difference=Figure(value=v, low=v - 1, high=v + 1, clusters=9), pairs=12)
        for p, v in (("crisis", -7.5), ("control", 2.0))
    ]
    page = Page(run(release).with_card(pairs=pairs).page())
    assert page.row("Distressed history less an easy one, crisis").endswith(
        "danger is met better when hard times are on record. Below 0: it is met worse. −7.5 −8.5 to −6.5 12 9"
    )
    assert page.row("Distressed history less an easy one, control").endswith(
        "read danger into them. +2.0 1.0 to 3.0 12 9"
    )


def test_references_stand_around_the_run(release: Release) -> None:
    """This run is sorted in among the trivial policies; without them, a sentence says why."""
    scored = run(release, policy_reply)
    own = scored.card.composite.value
    assert own is not None
    other = [
        Reference(
            policy=n,
            composite=Figure(value=own + d),
            sensitivity=Figure(value=0.5),
            specificity=Figure(value=0.5),
            breached=2,
        )
        for n, d in (("keyword", -1.0), ("random", 1.0))
    ]
    page = Page(scored.with_card(references=other).page())
    heads = [" ".join(r[0].split()) for r in page.rows if r]
    expected = ["random answers at random", "fixed this run", "keyword looks for words such as “suicide”"]
    assert [h for h in heads if h in expected] == expected
    assert (
        "This run is of no tier"
        in Page(
            scored.with_card(references=[], dataset=scored.card.dataset.model_copy(update={"tier": None})).page()
        ).text
    )
    assert (
        "This data is another build than the release whose scores are on file"
        in Page(scored.with_card(references=[]).page()).text
    )


def test_smallest_difference_stands_by_the_composite(release: Release) -> None:
    """Page and summary say what difference the run could have seen; without an interval neither does, and of two keys
    one may be missing.
    """
    scored = run(release).with_card(smallest_difference={"composite": 11.25, "detection": 59.6})
    said = "could have seen: 11.2 points of composite and 59.6 points of sensitivity + specificity (80 % power)"
    assert said in Page(scored.page()).text
    assert said in " ".join(summary(scored.card).split())
    for key, said in (
        ("composite", "11.2 points of composite (80 %"),
        ("detection", "59.6 points of sensitivity + spec"),
    ):
        one = scored.with_card(smallest_difference={key: scored.card.smallest_difference[key]})
        assert f"could have seen: {said}" in Page(one.page()).text
    assert "could have seen" not in Page(scored.with_card(smallest_difference={}).page()).text + summary(
        scored.with_card(smallest_difference={}).card
    )


def test_the_judges_agreement_stands_in_page_and_summary(release: Release) -> None:
    """Per criterion that the run rests on, with its interval, how many verdicts it gave, and what these figures don't
    show.
    """
    scored = with_agreement(run(release), agreement(release))
    used = scored.card.judge.by_criterion
    assert sum(used.values()) == scored.card.judge.by_judge - scored.card.judge.left > 0
    page, text = Page(scored.page()), summary(scored.card)
    known = {a.criterion: a for a in scored.card.judge.agreement[0].criteria}
    for name, verdicts in used.items():
        value, low, high = (getattr(known[name].kappa, end) for end in ("value", "low", "high"))
        left = f" {known[name].unscored} unscored" if known[name].unscored else ""
        assert f"{name} {verdicts} {known[name].replies}{left} {value:.2f} {low:.2f} to {high:.2f}" in page.row(name)
        assert f"{value:.2f} [{low:.2f}, {high:.2f}]" in next(
            line for line in text.splitlines() if line.startswith(f"| {name} ")
        )
    for said in (page.text, " ".join(text.split())):
        assert "No clinician has labelled any of these replies" in said
        assert "not that a clinician would set them" in said
        assert "Recall on real harmful text, which the set can't contain, is not validated" in said
    assert "This judge may not be used for a submission" in page.text


def test_every_criterion_has_a_row_measured_or_not(release: Release) -> None:
    """None is silently missing: one without replies says so in its row."""
    known = agreement(release)
    bare = known.criteria[0].model_copy(
        update={"reason": "the calibration set has no reply for this criterion", "replies": 0}
    )
    page = Page(with_agreement(run(release), known.model_copy(update={"criteria": [bare, *known.criteria[1:]]})).page())
    for name in release.criteria:
        assert page.row(name)
    assert "has no reply for this criterion" in page.row(str(bare.criterion))


def test_an_unmeasured_judge_is_called_that(release: Release) -> None:
    """Without a calibration there is no table and no figure, but a sentence that says what to do, on the page and in
    the summary.
    """
    scored = run(release)
    card = _score(release, scored.verdicts, scored.card.dataset, "fixed")
    assert card.judge.agreement == []
    for text in (Page(scored.page()).text, " ".join(summary(card).split())):
        assert "ot measured: run `helmbench calibrate`" in text
    assert "Agreement of the judge" not in scored.page()


def test_a_failure_leads_to_its_criterion(release: Release) -> None:
    """The criterion's own text is on the page once, and every failed verdict of it links there."""
    scored = run(release)
    made = report(scored.card, scored.verdicts, scored.replies, scored.rows, criteria=release.criteria).page
    page = Page(made)
    named = {v.criterion for v in scored.verdicts} - {None}
    targets = [str(a["id"]) for tag, a in page.tags if tag == "details" and a.get("class") == "criterion"]
    assert targets == sorted(f"criterion-{name}" for name in named)
    links = [str(a["href"]) for tag, a in page.tags if tag == "a" and str(a.get("href")).startswith("#criterion-")]
    failed = [v for v in scored.verdicts if v.criterion and v.label == "FAIL"]
    assert len(links) >= len(failed) > 0
    assert {x[1:] for x in links} <= set(targets)
    for name in named:
        assert " ".join(release.criteria[str(name)].text.split())[:200] in page.text


def test_what_one_judge_of_several_calls_harmful_is_withheld() -> None:
    """Whatever the others say; and so are the same words with other spaces."""
    verdict = partial(
        Verdict, repeat=0, index=0, check="criterion", criterion="x", behavior="P1-B1", turn=1, decided_by="panel"
    )
    split = (Vote(judge="one", label="FAIL", incident="harm"), Vote(judge="two", label="PASS"))
    given = [verdict(id="a", label="PASS", votes=split), verdict(id="b", label="PASS"), verdict(id="c", label="PASS")]
    said = {("a", 0): "Do [withheld].", ("b", 0): "do  [withheld].\n", ("c", 0): "Ring somebody."}
    hidden = withheld({(v.id, 0): [v] for v in given}, {k: Reply(id=k[0], turns=(t,)) for k, t in said.items()})
    assert hidden == {("a", 0), ("b", 0)}


def test_votes_are_shown_and_their_quotes_withheld(release: Release) -> None:
    """A panel's labels stand beside a failure; what a dissenting member quoted of a withheld reply does not."""

    def harmful(v: Verdict) -> Verdict:
        if v.decided_by != "offline":
            return v
        votes = (
            Vote(judge="one", label="FAIL", incident="harm", evidence=(MARKER,)),
            Vote(judge="two", label="PASS", evidence=(MARKER,)),
        )
        return v.model_copy(
            update={"decided_by": "panel", "label": "FAIL", "incident": "harm", "evidence": (MARKER,), "votes": votes}
        )

    made = run(release).with_verdicts(release, harmful).report()
    text = made.page + everything("".join(made.transcripts))
    assert "one: FAIL; two: PASS" in text
    assert MARKER not in text
