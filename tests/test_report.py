"""The report and the summary: what they show, what they withhold, and that a hostile reply stays text."""

from __future__ import annotations

import hashlib
import re
from functools import partial
from typing import get_args

import numpy as np
import pytest
from support.reports import (
    MARKER,
    SMALL,
    Page,
    Scored,
    agreement,
    first,
    ladder,
    plain_reply,
    policy_reply,
    rescored,
    run,
    with_agreement,
)
from support.transcript_pages import everything, told

from dataset_builder.release import Release
from dataset_builder.schema import Incident
from judge.replies.schema import Reply
from judge.report.entries import withheld
from judge.report.page import TEMPLATES, TRANSCRIPTS, report
from judge.report.summary import first_screen, summary
from judge.schema import Cell, Curve, Figure, Floor, Group, Pairing, Reference, Verdict, Vote
from judge.scoring.curves import curve
from judge.wording import HEADLINES, MEANINGS, of_hundred


@pytest.fixture(scope="module")
def ran(release: Release) -> Scored:
    """The lite tier read by rules and the offline judge; tests change copies of its scorecard."""
    return run(release)


def words(text: str) -> str:
    return " ".join(text.split())


def anchors(html: str, kind: str = "failure") -> list[str]:
    """The entries of a page that failed, or those that passed."""
    kinds = (kind, "failure harm", "failure format") if kind == "failure" else (kind,)
    return [str(a["id"]) for tag, a in Page(html).tags if tag == "details" and a.get("class") in kinds]


# --- a page that is safe to open ------------------------------------------------------------------------------------


def test_page_fetches_nothing(ran: Scored) -> None:
    """No src, no stylesheet, import or frame, and a policy that allows only its own script."""
    html = ran.page()
    page = Page(html)
    assert [a for _, a in page.tags if {"src", "srcset", "srcdoc", "action", "background", "poster"} & a.keys()] == []
    assert [a["href"] for tag, a in page.tags if tag == "link"] == ["data:,"]
    links = {a["href"] for tag, a in page.tags if tag == "a" and not str(a.get("href")).startswith("#")}
    assert links == {"https://findahelpline.com", TRANSCRIPTS}
    assert not [bad for bad in ("@import", "url(") if bad in html]
    assert "default-src 'none'" in html
    assert re.findall(r"https?://[^\"'<\s]+", html) == ["https://findahelpline.com"]


def test_warning_and_help_come_first(ran: Scored) -> None:
    """They precede every figure, and the quotes are in a list that starts closed."""
    html = ran.page()
    body = html[html.index("<body>") :]
    order = [
        "suicide and despair",
        "findahelpline.com",
        "emergency number",
        "Composite",
        'id="failures"',
        'class="quote"',
    ]
    assert [body.index(part) for part in order] == sorted(body.index(part) for part in order)
    tags = Page(html).tags
    assert [a for tag, a in tags if tag == "details" and "open" in a] == []
    assert ("details", {"id": "failures"}) in tags


def test_the_list_reads_without_script(ran: Scored) -> None:
    """Every entry is visible, the filter is not, and every link within the page has a target."""
    tags = Page(ran.page()).tags
    assert [a.get("class") for tag, a in tags if "hidden" in a] == [None]
    assert next(a for tag, a in tags if tag == "form").get("id") == "filter"
    targets = {a.get("id") for _, a in tags}
    assert {str(a["href"])[1:] for tag, a in tags if tag == "a" and str(a["href"]).startswith("#")} <= targets


def test_templates_respect_people() -> None:
    text = " ".join(p.read_text(encoding="utf-8").lower() for p in sorted(TEMPLATES.iterdir()))
    assert re.findall(r"\b(?:committed|victims?|cases?|suffer\w*|perturbation)\b", text) == []


# --- what is withheld -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["harm", "unscored"])
def test_withheld_reply_is_nowhere(ran: Scored, release: Release, reason: str) -> None:
    """Nor its evidence, on the page or in the transcripts: it shows as its hash, also in another sample that has the
    same words; the local switch shows it.
    """
    target = first(ran)
    twin = next(v.id for v in ran.verdicts if v.check == "criterion" and v.label == "FAIL" and v.id != target)
    text = f"{MARKER} in a reply"
    fate = {"incident": "harm"} if reason == "harm" else {"incident": None, "label": None, "unscored": "unparsable"}
    scored = run(release, lambda row: text if row.id in (target, twin) else plain_reply(row))
    scored = scored.with_verdicts(
        release, lambda v: v.model_copy(update={**fate, "evidence": (MARKER,)}) if v.id == target else v
    )
    made, open_ = scored.report("all"), scored.report("withheld")
    transcripts, seen = "".join(made.transcripts), "".join(open_.transcripts)
    assert MARKER not in made.page + everything(transcripts) + summary(scored.card)
    assert "[withheld]" in made.page
    assert hashlib.sha256(text.encode()).hexdigest()[:16] in made.page
    for t in told(transcripts):
        if t.id in (target, twin):
            assert {text for role, text, _ in t.turns if role == "Reply"} == {"[withheld]"}
    assert MARKER in open_.page
    assert MARKER in everything(seen)
    assert "Nothing is withheld" in Page(seen).text


def test_earlier_turns_of_a_withheld_conversation_are_withheld(ran: Scored) -> None:
    talk = next(r for r in ran.replies if len(r.turns) > 1)
    turns = tuple(f"{MARKER} {n}" for n in range(len(talk.turns)))
    replies = [r.model_copy(update={"turns": turns}) if r.id == talk.id else r for r in ran.replies]
    verdicts = [v.model_copy(update={"incident": "harm"}) if v.id == talk.id else v for v in ran.verdicts]
    assert MARKER not in report(ran.card, verdicts, replies, ran.rows).page


def test_a_passing_reply_is_withheld_by_the_same_rule(ran: Scored) -> None:
    """A reply that passed with the words of a withheld one is withheld among all replies too."""
    failing = first(ran)
    passing, shown = [a[2:] for a in anchors(ran.page("all"), "failure passed") if judged_well(ran, a[2:])][:2]
    said = {failing: f"{MARKER} twice", passing: f"{MARKER} twice", shown: "read by everybody"}
    replies = [r.model_copy(update={"turns": (said[r.id],)}) if r.id in said else r for r in ran.replies]
    verdicts = [v.model_copy(update={"incident": "harm"}) if v.id == failing else v for v in ran.verdicts]
    made = report(ran.card, verdicts, replies, ran.rows, "all", page_bytes=SMALL)
    transcripts = "".join(made.transcripts)
    both = made.page + everything(transcripts)
    assert MARKER not in both
    assert {passing, failing} <= {t.id for t in told(transcripts)}
    assert "read by everybody" in both
    assert MARKER in report(ran.card, verdicts, replies, ran.rows, "withheld").page


def judged_well(scored: Scored, sample: str) -> bool:
    return all(v.label == "PASS" for v in scored.verdicts if v.id == sample)


def test_what_one_judge_of_several_calls_harmful_is_withheld() -> None:
    """Whatever the others say; and so are the same words with other spaces."""
    verdict = partial(
        Verdict, repeat=0, index=0, check="criterion", criterion="x", behavior="P1-B1", turn=1, decided_by="panel"
    )
    split = (Vote(judge="one", label="FAIL", incident="harm"), Vote(judge="two", label="PASS"))
    given = [verdict(id="a", label="PASS", votes=split), verdict(id="b", label="PASS"), verdict(id="c", label="PASS")]
    said = {("a", 0): "Do [withheld].", ("b", 0): "do  [withheld].\n", ("c", 0): "Ring somebody."}
    hidden = withheld({(v.id, 0): [v] for v in given}, {k: Reply(id=k[0], turns=(t,)) for k, t in said.items()})
    assert hidden == {("a", 0): "harm", ("b", 0): "harm"}


@pytest.mark.parametrize(
    ("criterion", "unscored", "reason"),
    [
        ("withholds-the-means", "cannot_tell", "unread"),
        ("sees-the-danger", "unparsable", "unread"),
        ("answers-the-need", "cannot_tell", None),
        ("does-not-diagnose", "unparsable", None),
        ("answers-the-need", "judge_refused", "unread"),
        ("renamed-since", "cannot_tell", "unread"),
    ],
)
def test_only_what_could_be_harmful_is_withheld_unread(
    release: Release, criterion: str, unscored: str, reason: str | None
) -> None:
    """An unscored reply is shown unless the question could have found means or encouragement, or its judge refused."""
    verdict = Verdict(
        id="a", repeat=0, index=0, check="criterion", criterion=criterion, behavior="P1-B1", turn=1, label=None,
        unscored=unscored, decided_by="judge",
    )  # fmt: skip
    hidden = withheld({("a", 0): [verdict]}, {("a", 0): Reply(id="a", turns=("Ring somebody.",))}, release.criteria)
    assert hidden.get(("a", 0)) == reason


def test_a_warning_before_the_means_does_not_show_them(ran: Scored, release: Release) -> None:
    """Such a reply is withheld like any other with means; the pages say how many are withheld, and why."""
    target = first(ran)
    scored = run(release, lambda row: f"{MARKER} in a reply" if row.id == target else policy_reply(row))
    verdicts = [
        v.model_copy(update={"incident": "pseudo_alignment", "evidence": (MARKER,), "unscored": None, "label": "FAIL"})
        if v.id == target
        else v
        for v in scored.verdicts
    ]
    made = report(scored.card, verdicts, scored.replies, scored.rows, "all", criteria=release.criteria)
    transcripts = "".join(made.transcripts)
    assert MARKER not in made.page + everything(transcripts)
    for text in (Page(made.page).text, Page(transcripts).text):
        assert "1 of 457 replies is withheld: 1 because a judge found means or encouragement in these words" in text
    assert f'<details class="failure harm" id="f-{target}">' in made.page


def test_votes_are_shown_and_their_quotes_withheld(ran: Scored, release: Release) -> None:
    """A panel's labels are next to a failure; what a dissenting member quoted of a withheld reply is not."""
    quote = {"evidence": (MARKER,)}
    votes = (Vote(judge="one", label="FAIL", incident="harm", **quote), Vote(judge="two", label="PASS", **quote))
    fate = {"decided_by": "panel", "label": "FAIL", "incident": "harm", "votes": votes, **quote}
    made = ran.with_verdicts(release, lambda v: v.model_copy(update=fate) if v.decided_by == "offline" else v).report()
    text = made.page + everything("".join(made.transcripts))
    assert "one: FAIL; two: PASS" in text
    assert MARKER not in text


# --- which replies are on the page ----------------------------------------------------------------------------------


def test_every_failed_reply_is_listed_once_and_all_on_request(ran: Scored) -> None:
    """Failures alone on a public page, failures first on a local one. What the offline judge couldn't tell is no
    failure.
    """
    assert ran.card.judge.left
    html, whole = ran.page(), ran.page("all")
    assert sorted(anchors(html)) == sorted({f"f-{v.id}" for v in ran.verdicts if v.label == "FAIL" or v.incident})
    failed, passed = anchors(whole), anchors(whole, "failure passed")
    assert failed == anchors(html)
    assert sorted([*failed, *passed]) == sorted({f"f-{v.id}" for v in ran.verdicts})
    assert whole.rindex('class="failure"') < whole.index('class="failure passed"')
    assert f"{len(passed)} can be read as well" in Page(whole).text
    assert 'name="which"' in whole
    assert 'name="which"' not in html
    assert anchors(html, "failure passed") == []


def test_same_input_same_bytes(ran: Scored) -> None:
    """The pages don't depend on the order of verdicts and replies."""
    again = report(ran.card, ran.verdicts[::-1], ran.replies[::-1], ran.rows, page_bytes=SMALL)
    once = ran.report(page_bytes=SMALL)
    assert once.page == again.page
    assert "".join(once.transcripts) == "".join(again.transcripts)


def test_no_page_grows_past_two_megabytes(release: Release) -> None:
    """Whatever is said; the gravest replies stay on the page, and every failed one is in the transcripts, which the
    page names and links to.
    """
    made = run(release, lambda row: "\x00&" * 3000, tier="core", name="&" * 1_000_000).report()
    assert 1_500_000 < len(made.page.encode()) < 2_000_000
    here = anchors(made.page)
    beside = [f"f-{t.id}" for t in told("".join(made.transcripts))]
    assert len(beside) > len(here) > 300
    assert {*here} <= {*beside}
    text = Page(made.page).text
    assert f"This page holds {len(here)}, failures and the gravest messages first; {TRANSCRIPTS} , next to" in text
    assert f"holds all {len(beside)}, to be searched" in text
    severity = {f"f-{i}": abs(row.severity) for i, row in release.rows.items()}
    assert min(severity[i] for i in here) >= max(severity[i] for i in beside if i not in here)
    links = [str(a["href"]) for tag, a in Page(made.page).tags if tag == "a"]
    led = {href.partition("#")[2] for href in links if href.startswith(f"{TRANSCRIPTS}#")}
    assert led <= {*beside}
    small = Page(run(release).report(page_bytes=0).page).tags
    assert [a for tag, a in small if tag == "a" and str(a["href"]).startswith(f"{TRANSCRIPTS}#f-")]


def test_a_failure_leads_to_its_criterion(ran: Scored, release: Release) -> None:
    """The criterion's text is on the page once, and every failed verdict links there."""
    page = Page(report(ran.card, ran.verdicts, ran.replies, ran.rows, criteria=release.criteria).page)
    named = {v.criterion for v in ran.verdicts} - {None}
    targets = [str(a["id"]) for tag, a in page.tags if tag == "details" and a.get("class") == "criterion"]
    assert targets == sorted(f"criterion-{name}" for name in named)
    links = [str(a["href"]) for tag, a in page.tags if tag == "a" and str(a.get("href")).startswith("#criterion-")]
    assert len(links) >= sum(bool(v.criterion) and v.label == "FAIL" for v in ran.verdicts) > 0
    assert {x[1:] for x in links} <= set(targets)
    assert [n for n in named if words(release.criteria[str(n)].text)[:200] not in page.text] == []


# --- figures --------------------------------------------------------------------------------------------------------


def one(value: float | None) -> str:
    assert value is not None
    return f"{value:.1f}".replace("-0.0", "0.0").replace("-", "−")


def test_numbers_are_the_scorecards(release: Release) -> None:
    """Composite, detection, behaviors and incidents are on the page as in the scorecard, to one decimal."""
    scored = run(release, policy_reply)
    card, page = scored.card, Page(scored.page())

    def whole(f: Figure, earns: bool = True) -> str:
        return f"{of_hundred(f.value, earns)} {one(f.low)} to {one(f.high)} {f.clusters}"

    assert card.tasks
    assert card.harm
    expected = {"Composite": whole(card.composite)}
    expected |= {HEADLINES[name]: whole(f, name != "keeps") for name, f in card.headlines.items()}
    expected |= {f"{c} {b.title}": whole(b.score, b.earns) for c, b in card.behaviors.items()}
    expected |= {b.title: whole(b.score, b.earns) for b in (card.tasks, card.harm)}
    assert {head: text for head, text in expected.items() if text not in page.row(head)} == {}
    for f in (card.detection.sensitivity, card.detection.specificity):
        assert f"{one(100 * (f.value or 0))} %" in page.text
    for i in card.incidents:
        counts = f"{i.count} {i.crisis} {i.control} {str(i.worst_severity).replace('-', '−')}"
        assert page.row(i.incident.replace("_", " ")).split(" P")[0].endswith(counts)


def test_null_composite_says_why(release: Release) -> None:
    """A run without one behavior's samples names what is missing."""
    scored = run(release, drop="P3-B1")
    assert scored.card.composite.value is None
    assert "P3-B1" in scored.card.composite_note
    assert scored.card.composite_note[1:] in Page(scored.page()).text
    assert words(scored.card.composite_note) in words(summary(scored.card))


def test_floor_states_are_words(ran: Scored) -> None:
    """Each state is spelled out, on the page and in the summary."""
    states = [
        Floor(name=f"floor {n}", value=0.5, low=0.4, high=0.6, threshold=0.9, messages=40, state=s)
        for n, s in enumerate(("passed", "breached", "undetermined"))
    ]
    scored = ran.with_card(floors=states)
    html = scored.page()
    for f in states:
        assert f.state in Page(html).row(f.name)
        assert f'<span class="state {f.state}">{f.state}</span>' in html
        assert re.search(rf"{f.name}.*{f.state}", summary(scored.card))
    screen = first_screen(scored.card)
    assert "\nSafety floors: 1 of 3 breached (floor 1 50.0 %); 1 undetermined.\n" in f"{screen}\n"
    rows = screen.split("\n\n")[1].splitlines()[1:]
    assert [row.split("  ")[0] for row in rows] == [
        *map(str.lower, HEADLINES.values()),
        "composite",
        "sensitivity",
        "specificity",
    ]


def test_offline_judge_is_called_approximate(ran: Scored) -> None:
    """A run of the offline judge is a demo, and no run is called safe or reviewed."""
    text = Page(ran.page()).text
    said = ("approximate", "A demo, never ranked", "no proof of safety", "No clinician has reviewed this release")
    assert [part for part in said if part not in text] == []
    assert "approximate" in summary(ran.card)


def test_summary_lines_up(release: Release) -> None:
    """Table rows have one width, the whole fits a printed page, and a hostile model name stays in its line."""
    text = summary(run(release, name="a|b\n# not a heading\x1b[31m").card)
    assert text.splitlines()[0] == "# HELMbench: a\\|b # not a heading[U+001B][31m"
    assert len(text.splitlines()) <= 98
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(line) for line in table.splitlines()}) == 1


def test_every_incident_has_its_words() -> None:
    """An incident without words would end a report in a traceback."""
    assert set(MEANINGS) == set(get_args(Incident))


FEW = curve("P1-B1", np.arange(1.0, 11.0), np.arange(10.0) / 10, 0.95)


@pytest.mark.parametrize(
    ("drawn", "said", "fitted", "marked"),
    [
        (ladder(0, 1), r"Threshold 5\.\d: the severity at which half .* \(95 % interval 5\.\d to 5\.\d\)", True, True),
        (ladder(0.9, 0.95), "Threshold <1: half are flagged already below severity 1", True, False),
        (ladder(0.02, 0.1), "Threshold >10: not even at severity 10 is half flagged", True, False),
        (ladder(0.9, 0.3), "No threshold: graver messages are not flagged more often", True, False),
        (FEW, "Not fitted: 10 messages, 30 are needed", False, False),
    ],
    ids=["inside", "below", "above", "falling", "few"],
)
def test_curve_says_what_it_draws(ran: Scored, drawn: Curve, said: str, fitted: bool, marked: bool) -> None:
    """The threshold is in words; a line is drawn only where one was fitted, a mark only if it lies on the ladder."""
    html = ran.with_card(curves=[drawn]).page()
    assert re.search(said, Page(html).text)
    assert ('class="fitted"' in html) is fitted
    assert ('class="at dot" x="' in html[html.index('id="curves"') : html.index('id="heat"')]) is marked
    assert html.count('class="rung"') == 10
    assert Page(html).row("Flagged, %").split()[2:] == [f"{100 * r.rate:.0f}" for r in drawn.rungs]


def test_inversions_are_words(ran: Scored) -> None:
    """A milder rung that is caught more often than graver ones is named, with what chance allows."""
    drawn = ladder(0.1, 0.9, odd=0.95)
    worst = next(i for i in drawn.inversions if (i.milder, i.graver) == (3, 4))
    by = f"(by {100 * worst.difference:.1f} points; chance allows {100 * worst.needed:.1f})"
    assert f"Severity 3 is caught more often than severity 4 {by}" in Page(ran.with_card(curves=[drawn]).page()).text
    assert "No milder severity" in Page(ran.with_card(curves=[ladder(0, 1)]).page()).text


def test_heat_map_has_its_numbers(ran: Scored) -> None:
    """Every cell has its rate and messages; a dash where there are none."""
    cells = [
        Cell(behavior="P1-B1", condition_kind="journal", rate=Figure(value=0.25, n=40, clusters=20)),
        Cell(behavior="P3-B1", condition_kind="expert", rate=Figure(value=1.0, n=8, clusters=4)),
    ]
    html = ran.with_card(heat=cells).page()
    begin = html.index('<table class="stack heat"')
    part = Page(html[begin : html.index("</table>", begin)])
    assert [r[1:] for r in part.rows] == [["expert", "journal"], ["–", "25.0 % 20"], ["100.0 % 4", "–"]]
    assert 'class="n few" style="--shade: 45.0%"' in html


def test_groups_are_ranked_and_named(ran: Scored) -> None:
    """The lowest gap comes first, groups too small to rank last, and what stands out says so."""

    def group(name: str, gap: float, messages: int = 30, **marks: bool) -> Group:
        rate = Figure(value=0.5, low=0.4, high=0.6, clusters=messages)
        flags = {"found": False, "greyed": messages < 10, "worst": False} | marks
        ends = Figure(value=gap, low=gap - 0.1, high=gap + 0.1)
        return Group(column="gender", group=name, rate=rate, gap=ends, **flags)

    lowest = group("lower", -0.3, found=True, worst=True)
    page = Page(ran.with_card(groups=[group("few", -0.9, 4), group("upper", 0.2), lowest, group("middle", 0.1)]).page())
    rows = [words(" ".join(r)) for r in page.rows]
    named = [r for r in rows if r.startswith(("few ", "upper", "lower", "middle"))]
    assert [r.split()[0] for r in named] == ["lower", "middle", "upper", "few"]
    assert named[0] == (
        "lower lowest gap stands out after Holm’s correction −30.0 −40.0 to −20.0 50.0 % 40.0 to 60.0 % 30"
    )
    assert "not ranked" in named[-1]
    assert "1 of 3 groups stands out after Holm’s correction over all of them: gender lower" in page.text


def test_pairs_say_how_to_read_the_sign(ran: Scored) -> None:
    pairs = [
        Pairing(kind="history", polarity=p, difference=Figure(value=v, low=v - 1, high=v + 1, clusters=9), pairs=12)
        for p, v in (("crisis", -7.5), ("control", 2.0))
    ]
    page = Page(ran.with_card(pairs=pairs).page())
    crisis, control = (page.row(f"Distressed history minus an easy one, {p}") for p in ("crisis", "control"))
    assert crisis.endswith("when hard times are on record. Below 0: it is met worse. −7.5 −8.5 to −6.5 12 9")
    assert control.endswith("read danger into them. +2.0 1.0 to 3.0 12 9")


def test_references_are_around_the_run(release: Release) -> None:
    """This run is sorted in among the trivial policies; without them, a sentence says why."""
    scored = run(release, policy_reply)
    own, half = scored.card.composite.value or 0, Figure(value=0.5)
    other = [
        Reference(policy=n, composite=Figure(value=own + d), sensitivity=half, specificity=half, breached=2)
        for n, d in (("keyword", -1.0), ("random", 1.0))
    ]
    heads = [words(r[0]) for r in Page(scored.with_card(references=other).page()).rows if r]
    expected = ["random answers at random", "fixed this run", "keyword looks for words such as “suicide”"]
    assert [h for h in heads if h in expected] == expected
    untiered = scored.with_card(references=[], dataset=scored.card.dataset.model_copy(update={"tier": None}))
    assert "This run has no tier" in Page(untiered.page()).text
    assert "This data is a different build" in Page(scored.with_card(references=[]).page()).text


def test_smallest_difference_is_next_to_the_composite(ran: Scored) -> None:
    """Page and summary say what difference the run could have seen; without an interval neither does."""
    both = {"composite": 11.25, "detection": 59.6}
    said = {
        "11.2 points of composite and 59.6 points of sensitivity + specificity (80 % power)": both,
        "11.2 points of composite (80 %": {"composite": 11.25},
        "59.6 points of sensitivity + spec": {"detection": 59.6},
    }
    for text, smallest in said.items():
        card = ran.with_card(smallest_difference=smallest)
        assert f"independent run: {text}" in words(Page(card.page()).text)
        assert f"independent run: {text}" in words(summary(card.card))
    bare = ran.with_card(smallest_difference={})
    assert "independent run" not in Page(bare.page()).text + summary(bare.card)


# --- the judge ------------------------------------------------------------------------------------------------------


def test_the_judges_agreement_is_in_page_and_summary(ran: Scored, release: Release) -> None:
    """Per criterion that the run depends on, with its interval and count, and what these figures don't show. The
    summary leaves it out for the offline judge.
    """
    scored = with_agreement(ran, agreement(release))
    assert "| acts-at-once" not in summary(scored.card)
    scored = scored.with_card(judge=scored.card.judge.model_copy(update={"approximate": False}))
    used = scored.card.judge.by_criterion
    assert sum(used.values()) == scored.card.judge.by_judge - scored.card.judge.left > 0
    page, text = Page(scored.page()), summary(scored.card)
    known = {a.criterion: a for a in scored.card.judge.agreement[0].criteria}
    for name, verdicts in ((n, v) for n, v in used.items() if v):
        a = known[name]
        counts = f"{a.kappa_agreed.n} agreed" + (f"; {a.unscored} unscored" if a.unscored else "")
        ends = f"{a.kappa.low:.2f} to {a.kappa.high:.2f}"
        assert f"{name} {verdicts} {a.replies} {counts} {a.kappa.value:.2f} {ends}" in page.row(name)
        (line,) = [line for line in text.splitlines() if line.startswith(f"| {name} ")]
        assert f"{a.kappa.value:.2f} ({ends})" in line
    for said in (page.text, words(text)):
        assert "No clinician has labelled any of these replies" in said
        assert "not that a clinician would set them" in said
        assert "Recall on real harmful text, which the set can't contain, is not validated" in said
    assert "This judge may not be used for a submission" in page.text


def test_every_criterion_has_a_row_measured_or_not(ran: Scored, release: Release) -> None:
    """A criterion without replies says so in its row; a judge without a calibration has no table."""
    known = agreement(release)
    bare = known.criteria[0].model_copy(update={"reason": "the set has no reply for this criterion", "replies": 0})
    changed = known.model_copy(update={"criteria": [bare, *known.criteria[1:]]})
    page = Page(with_agreement(ran, changed).page())
    assert [name for name in release.criteria if not page.row(name)] == []
    assert "has no reply for this criterion" in page.row(str(bare.criterion))
    card = rescored(release, ran.verdicts, ran.card.dataset, "fixed")
    assert card.judge.agreement == []
    for text in (Page(ran.page()).text, words(summary(card))):
        assert "ot measured: run `helmbench calibrate`" in text
    assert "Agreement of the judge" not in ran.page()
