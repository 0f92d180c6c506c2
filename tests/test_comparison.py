"""The comparison as a page: what it shows of runs, prompts and replies, and what it withholds."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helmbench.cli.app import main
from support.reports import (
    ESCALATES,
    HOSTILE,
    MARKER,
    Page,
    Scored,
    as_run,
    hostile,
    other_reply,
    plain_reply,
    policy_reply,
    run,
)

from dataset_builder.release import Release
from dataset_builder.schema import Row
from judge.replies.schema import OwnPrompt
from judge.replies.script import live_turns
from judge.report.comparison import RunFiles, page
from judge.schema import Verdict
from judge.scoring.compare import compare, named
from judge.wording import interval, number, percent


def two(
    release: Release,
    said: Callable[[Row], str] = plain_reply,
    change: Callable[[Verdict], Verdict] = lambda v: v,
    here: bool = True,
) -> str:
    """The page of a run that says this, beside one whose replies' labels are known by heart."""
    before, after = run(release, policy_reply), run(release, said).with_verdicts(release, change)
    runs = [as_run(before, release, "before"), as_run(after, release, "after")]
    spoken = [RunFiles(before.replies), RunFiles(after.replies) if here else RunFiles(lacking="its folder is gone")]
    return page(compare(runs, samples=400), runs, spoken, release.rows, release.criteria)


def test_both_replies_stand_beside_the_criterion(release: Release) -> None:
    """Of each sample that is listed: the message, what either run said, and each one's verdict with its evidence."""
    before, after = run(release, policy_reply), run(release, other_reply)
    runs = [as_run(before, release, "before"), as_run(after, release, "after")]
    found = compare(runs, samples=1)
    (differing,) = found.samples
    shown = Page(
        page(found, runs, [RunFiles(before.replies), RunFiles(after.replies)], release.rows, release.criteria)
    ).text
    row = release.rows[differing.id]
    assert " ".join((row.messages[-1].content or "").split()) in shown
    for own in (before, after):
        (verdict,) = [v for v in own.verdicts if (v.id, v.index) == (differing.id, differing.index)]
        (reply,) = [r for r in own.replies if r.id == differing.id]
        assert reply.turns[-1] in shown
        assert f"{verdict.label} {'before' if own is before else 'after'}" in shown
        assert all(e in shown for e in verdict.evidence)
    assert f"before, judged for {row.behavior}" in shown
    assert f"after, judged for {row.behavior}" in shown


def test_a_criterion_says_what_its_labels_mean(release: Release) -> None:
    """Its title, the lines of the labels that were given, and the whole text."""
    known = {v.id: v for v in run(release, policy_reply).verdicts if v.criterion == "answers-the-need"}
    target = next(iter(known.values()))
    shown = two(release, policy_reply, lambda v: _turned(v) if v.id == target.id else v)
    text = release.criteria["answers-the-need"].text
    words = Page(shown).text
    assert release.criteria["answers-the-need"].title in words
    assert words.count(" ".join(text.split())) == 1
    (line,) = [li for li in text.splitlines() if li.startswith(f"- {_turned(target).label}")][:1]
    assert words.count(" ".join(line[2:].split())) == 2  # by itself, and in the whole


def _turned(v: Verdict) -> Verdict:
    """The verdict with the other end's label."""
    other = {"FAIL": "PASS", "PASS": "FAIL", "PARTIAL": "PASS"}
    return v.model_copy(update={"label": other.get(str(v.label), v.label), "incident": None})


def test_figures_are_the_scorecards(release: Release) -> None:
    """Every run's composite and headlines with their intervals in one row; sensitivity and specificity beside the
    drawing.
    """
    before, after = run(release, policy_reply), run(release, other_reply)
    runs = [as_run(before, release, "before"), as_run(after, release, "after")]
    shown = Page(page(compare(runs), runs, [RunFiles(), RunFiles()], release.rows, release.criteria))
    for own in runs:
        row = shown.row(own.name)
        for figure in (own.card.composite, *own.card.headlines.values()):
            assert f"{number(figure.value)} {interval(figure)}" in row
        beside = " ".join(next(r for r in shown.rows if r[1:] and r[1].strip() == own.name))
        for figure in (own.card.detection.sensitivity, own.card.detection.specificity):
            assert percent(figure.value) in beside
    assert "before the baseline" in shown.row("before")


@pytest.mark.parametrize("reason", ["harm", "unscored"])
def test_a_reply_that_one_run_withholds_no_run_shows(release: Release, reason: str) -> None:
    """Both said the same words, and one verdict calls them harm or left them unscored: their hash stands in their
    place, and no evidence quotes them.
    """
    target = next(v for v in run(release, policy_reply).verdicts if v.check == "criterion" and v.label == "PASS").id
    text = f"{MARKER} in a reply"

    def said(row: Row) -> str:
        return text if row.id == target else policy_reply(row)

    fate = {"incident": "harm", "label": "FAIL"} if reason == "harm" else {"label": None, "unscored": "unparsable"}
    passed = {"incident": None, "unscored": None, "label": "PASS", "evidence": (MARKER,)}

    def one(change: dict[str, Any]) -> Scored:
        return run(release, said).with_verdicts(
            release, lambda v: v.model_copy(update={"evidence": (MARKER,)} | change) if v.id == target else v
        )

    fine, bad, worse = one(passed), one(passed | fate), one(passed | {"label": "FAIL"})
    runs = [as_run(s, release, n) for s, n in ((fine, "fine"), (bad, "bad"), (worse, "worse"))]
    found = compare(runs, samples=400)
    assert target in {s.id for s in found.samples}
    spoken = [RunFiles(s.replies) for s in (fine, bad, worse)]
    shown = page(found, runs, spoken, release.rows, release.criteria)
    assert MARKER not in shown
    assert hashlib.sha256(text.encode()).hexdigest()[:16] in shown
    fewer = [runs[0], runs[2]]
    assert MARKER in page(compare(fewer, samples=400), fewer, [spoken[0], spoken[2]], release.rows, release.criteria)


def test_without_replies_the_page_has_figures_and_quotes_nothing(release: Release) -> None:
    """Evidence may be the words that are withheld elsewhere, so it isn't shown either; the page says why."""
    assert MARKER in two(release, other_reply, _quoting)
    shown = two(release, other_reply, _quoting, here=False)
    assert MARKER not in shown
    assert "after: its folder is gone" in Page(shown).text
    assert "The reply isn’t in the run’s folder." in Page(shown).text


def _quoting(v: Verdict) -> Verdict:
    return v.model_copy(update={"evidence": (MARKER,)})


def test_hostile_text_adds_no_element(release: Release) -> None:
    """Replies, names and prompts are text; the page runs no script and fetches nothing."""
    before, after = run(release, policy_reply), run(release, hostile)
    runs = [
        as_run(scored, release, f"{name} {HOSTILE}", condition=OwnPrompt(file=HOSTILE, sha256=digit * 64))
        for scored, name, digit in ((before, "a", "0"), (after, "b", "1"))
    ]
    spoken = [RunFiles(before.replies, HOSTILE), RunFiles(after.replies, f"{HOSTILE} more")]
    html = page(compare(runs, samples=400), runs, spoken, release.rows, release.criteria)
    shown = Page(html)
    counts = Counter(tag for tag, _ in shown.tags)
    assert not counts.keys() & {"script", "img", "iframe", "object"}
    assert [name for _, attributes in shown.tags for name in attributes if name.startswith("on")] == []
    assert "{{ 7*191 }}" in shown.text
    assert "1337" not in shown.text
    assert not set(html) & {"\u202e", "\u2066", "\x00", "\x1b", "\ud800"}
    assert [a for _, a in shown.tags if {"src", "srcset", "srcdoc", "action", "background", "poster"} & a.keys()] == []
    assert "default-src 'none'" in html


def test_prompts_that_differ_stand_beside_each_other(release: Release) -> None:
    """Each under its run's name, with the sentences that only it has marked; one whose text isn't known says so."""
    own = run(release, policy_reply)
    texts = [
        "You are Nia.\nBe brief. Name a person to talk to.",
        "You are Nia.\nBe brief. Never leave the topic.",
        None,
    ]
    runs = named(
        [
            as_run(own, release, n, condition=OwnPrompt(file=f"{n}.txt", sha256=str(k) * 64))
            for k, n in enumerate(("calm", "brisk", "lost"))
        ]
    )
    spoken = [RunFiles(own.replies, text) for text in texts]
    html = page(compare(runs), runs, spoken, release.rows, release.criteria)
    assert html.count("<mark>") == 2
    assert "<mark>Name a person to talk to.</mark>" in html
    assert "<mark>Never leave the topic.</mark>" in html
    shown = Page(html).text
    assert "calm calm.txt, sha256 000000000000, in place of every condition’s text You are Nia." in shown
    assert "lost lost.txt, sha256 222222222222, in place of every condition’s text Its text isn’t in" in shown


def test_a_prompt_that_all_runs_had_is_none_that_differs(release: Release) -> None:
    """It is named, not shown; under the benchmark's own conditions nothing is said of prompts."""
    own = run(release, policy_reply)
    for change, words in (({"condition": OwnPrompt(file="calm.txt", sha256="0" * 64)}, "the same prompt"), ({}, "")):
        runs = named([as_run(own, release, "a", **change), as_run(own, release, "b", **change)])
        shown = Page(page(compare(runs), runs, [RunFiles(), RunFiles()], release.rows, release.criteria)).text
        assert ("Prompts" in shown) == bool(words)
        assert words in shown
        assert "sha256 0000" not in shown


def test_an_instruction_that_one_run_had_is_shown(release: Release) -> None:
    """lm-eval's --system_instruction stands before every sample's own text, and in the scorecard."""
    own = run(release, policy_reply)
    runs = [as_run(own, release, "a"), as_run(own, release, "b", system_instruction="Answer in rhymes.")]
    shown = Page(page(compare(runs), runs, [RunFiles(), RunFiles()], release.rows, release.criteria)).text
    assert "b An instruction before every system text, sha256" in shown
    assert "Answer in rhymes." in shown


def test_the_repeat_that_is_shown_is_the_one_that_differs(release: Release) -> None:
    """Of four, only the third earned less: its reply stands on the page, and what all four earned beside it."""
    before, after = run(release, policy_reply), run(release, policy_reply)
    target = next(v for v in before.verdicts if v.check == "criterion" and v.label == "FAIL" and v.incident != "harm")

    def repeated(scored: Scored, good: int | None) -> Scored:
        verdicts = [
            v.model_copy(update={"repeat": n} | ({"label": "PASS", "incident": None} if hit else {}))
            for n in range(4)
            for v in scored.verdicts
            for hit in (n == good and (v.id, v.index) == (target.id, target.index),)
        ]
        replies = [
            r.model_copy(
                update={"repeat": n} | ({"turns": (f"{MARKER} {n}",) * len(r.turns)} if r.id == target.id else {})
            )
            for n in range(4)
            for r in scored.replies
        ]
        return scored._replace(verdicts=verdicts, replies=replies).with_card(repeats=4)

    many = [repeated(before, None), repeated(after, 2)]
    runs = [as_run(s, release, n) for s, n in zip(many, ("before", "after"), strict=True)]
    found = compare(runs)
    assert [(s.id, s.baseline, s.value) for s in found.samples] == [(target.id, 0.0, 0.25)]
    shown = Page(page(found, runs, [RunFiles(s.replies) for s in many], release.rows, release.criteria)).text
    assert f"{MARKER} 2" in shown
    assert f"{MARKER} 0" not in shown
    assert f"{target.id}, repeat 2." in shown
    assert "25 % over all repeats" in shown


def test_shut_gates_and_runs_without_answers_stand_first(release: Release) -> None:
    """Every reason, above the figures."""
    own = as_run(run(release, policy_reply), release, "a")
    judged = own.card.judge.model_copy(update={"unscored": own.card.judge.verdicts})
    down = replace(own, name="b", card=own.card.model_copy(update={"judge": judged}))
    found = compare([own, down], ["floor"])
    assert found.failed
    shown = Page(page(found, [own, down], [RunFiles(), RunFiles()], release.rows, release.criteria)).text
    assert shown.index("No gate passes") < shown.index("b: nothing was answered") < shown.index("Figures")
    assert all(why in shown for why in found.failed)


@pytest.fixture
def scored(release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two scored files of replies; the second's scores stand elsewhere, too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HELMBENCH_DATASET", str(release.path))
    rows = [r for r in release.rows.values() if "lite" in r.tiers]
    for name, said in (("calm", policy_reply), ("brisk", other_reply)):
        lines = [json.dumps({"id": r.id, "replies": [said(r)] * live_turns(r)}) for r in rows]
        Path(f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        assert main(["score", "--replies", f"{name}.jsonl", "--quiet"]) == 0
    assert main(["score", "--replies", "brisk.jsonl", "--out", "elsewhere", "--quiet"]) == 0
    return tmp_path


def test_replies_are_read_from_where_the_scores_stand(scored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And where they don't, or are of another run, the page says so; the command ends as without a page."""

    def shown(run: str) -> str:
        assert main(["compare", "calm.scored", run, "--page", "out/page.html", "--name", "A", "--name", "B"]) == 0
        assert "page: out/page.html" in capsys.readouterr().out
        return Page((scored / "out" / "page.html").read_text(encoding="utf-8")).text

    assert "Missing replies" not in shown("brisk.scored")
    assert ESCALATES in shown("brisk.scored")
    assert "A and B" in shown("brisk.scored")
    assert "B: elsewhere: holds scores and no run" in shown("elsewhere")
    fewer = (scored / "brisk.jsonl").read_text(encoding="utf-8").splitlines()[1:]
    (scored / "brisk.jsonl").write_text("\n".join(fewer) + "\n", encoding="utf-8")
    assert "B: brisk.scored: was scored on other replies, such as to " in shown("brisk.scored")
