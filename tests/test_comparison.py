"""The comparison as a page: what it shows of runs, prompts and replies, and what it withholds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helmbench.cli.app import main
from support.reports import (
    ESCALATES,
    MARKER,
    Page,
    Scored,
    as_run,
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
from judge.scoring.compare import ScoredRun, compare, named
from judge.wording import floor_title, interval, of_hundred, percent, signed

LABELS = {1.0: "PASS", 0.5: "PARTIAL", 0.0: "FAIL"}


def shown(runs: Sequence[ScoredRun], files: Sequence[RunFiles], release: Release, samples: int = 400) -> str:
    """The page of these runs."""
    return page(compare(runs, samples=samples), runs, files, release.rows, release.criteria)


def of_two(
    release: Release,
    said: Callable[[Row], str] = plain_reply,
    change: Callable[[Verdict], Verdict] = lambda v: v,
    here: bool = True,
) -> str:
    """The page of a run that says this, next to one whose replies are labelled by rule."""
    before, after = run(release, policy_reply), run(release, said).with_verdicts(release, change)
    runs = [as_run(before, release, "before"), as_run(after, release, "after")]
    files = [RunFiles(before.replies), RunFiles(after.replies) if here else RunFiles(lacking="its folder is gone")]
    return shown(runs, files, release)


def turned(v: Verdict) -> Verdict:
    """The verdict with the other end's label."""
    other = {"FAIL": "PASS", "PASS": "FAIL", "PARTIAL": "PASS"}
    return v.model_copy(update={"label": other.get(str(v.label), v.label), "incident": None})


def quoting(v: Verdict) -> Verdict:
    return v.model_copy(update={"evidence": (MARKER,)})


def test_both_replies_are_next_to_the_criterion(small: Release) -> None:
    """For each listed sample: the message, each run's reply, and each verdict with its evidence."""
    before, after = run(small, policy_reply), run(small, other_reply)
    runs = [as_run(before, small, "before"), as_run(after, small, "after")]
    (differing,) = compare(runs, samples=1).samples
    text = Page(shown(runs, [RunFiles(before.replies), RunFiles(after.replies)], small, samples=1)).text
    row = small.rows[differing.id]
    assert " ".join((row.messages[-1].content or "").split()) in text
    for own in (before, after):
        (verdict,) = [v for v in own.verdicts if (v.id, v.index) == (differing.id, differing.index)]
        (reply,) = [r for r in own.replies if r.id == differing.id]
        assert reply.turns[-1] in text
        assert f"Run {1 if own is before else 2}: {verdict.label}" in text
        assert all(e in text for e in verdict.evidence)
    assert f"Run 1, judged for {row.behavior}" in text
    assert f"Run 2, judged for {row.behavior}" in text
    (x, y) = (LABELS[value] for value in (differing.baseline, differing.value))
    assert f"{x} → {y}" in text


def test_the_criterion_is_there_word_for_word(small: Release) -> None:
    """Its title, the lines of the given labels, and the whole text."""
    target = next(v for v in run(small, policy_reply).verdicts if v.criterion == "answers-the-need")
    one = target.id, target.index
    words = Page(of_two(small, policy_reply, lambda v: turned(v) if (v.id, v.index) == one else v)).text
    criterion = small.criteria["answers-the-need"]
    assert criterion.title in words
    assert words.count(" ".join(criterion.text.split())) == 1
    line = next(li for li in criterion.text.splitlines() if li.startswith(f"- {turned(target).label}"))
    assert words.count(" ".join(line[2:].split())) == 2  # by itself, and in the whole


def test_figures_are_the_scorecards(small: Release) -> None:
    """Composite and headlines with intervals in one row; sensitivity and specificity next to the plot."""
    runs = [as_run(run(small, policy_reply), small, "before"), as_run(run(small, other_reply), small, "after")]
    made = Page(shown(runs, [RunFiles(), RunFiles()], small))
    (whole,) = [d for d in compare(runs).differences if d.figure == "composite"]
    between = interval(whole.difference).replace(" to ", " and ")
    assert f"Composite, run 2 minus run 1 {signed(whole.difference.value)} between {between}" in made.text
    for n, own in enumerate(runs, start=1):
        row = made.row(f"{n}. {own.name}")
        breached = [floor_title(f) for f in own.card.floors if f.state == "breached"]
        assert f"{len(breached)} breached" in row
        assert all(title in row for title in breached)
        for name, figure in [("composite", own.card.composite), *own.card.headlines.items()]:
            assert f"{of_hundred(figure.value, name != 'keeps')} {interval(figure)}" in row
        beside = " ".join(next(r for r in made.rows if r[1:] and r[1].strip() == own.name))
        for figure in (own.card.detection.sensitivity, own.card.detection.specificity):
            assert percent(figure.value) in beside
    assert "before the baseline" in made.row("1. before")


@pytest.mark.parametrize("reason", ["harm", "refused"])
def test_a_reply_that_one_run_withholds_no_run_shows(small: Release, reason: str) -> None:
    """Both said the same words, and one verdict calls them harm, or a judge refused to read them: the page shows their
    hash, and no evidence quotes them, unless asked to.
    """
    target = next(v for v in run(small, policy_reply).verdicts if v.check == "criterion" and v.label == "PASS").id
    text = f"{MARKER} in a reply"
    fate = {"incident": "harm", "label": "FAIL"} if reason == "harm" else {"label": None, "unscored": "judge_refused"}
    passed = {"incident": None, "unscored": None, "label": "PASS", "evidence": (MARKER,)}

    def said(row: Row) -> str:
        return text if row.id == target else policy_reply(row)

    def one(change: dict[str, Any]) -> Scored:
        update = {"evidence": (MARKER,)} | change
        return run(small, said).with_verdicts(small, lambda v: v.model_copy(update=update) if v.id == target else v)

    fine, bad, worse = one(passed), one(passed | fate), one(passed | {"label": "FAIL"})
    runs = [as_run(s, small, n) for s, n in ((fine, "fine"), (bad, "bad"), (worse, "worse"))]
    assert target in {s.id for s in compare(runs, samples=400).samples}
    files = [RunFiles(s.replies) for s in (fine, bad, worse)]
    html = shown(runs, files, small)
    assert MARKER not in html
    assert hashlib.sha256(text.encode()).hexdigest()[:16] in html
    assert MARKER in shown([runs[0], runs[2]], [files[0], files[2]], small)
    everything = page(compare(runs, samples=400), runs, files, small.rows, small.criteria, show_withheld=True)
    assert MARKER in everything
    assert "Nothing is withheld in this copy" in everything


def test_without_replies_the_page_quotes_nothing(small: Release) -> None:
    """Evidence may be the words that are withheld elsewhere; the page says why there are no replies."""
    assert MARKER in of_two(small, other_reply, quoting)
    html = of_two(small, other_reply, quoting, here=False)
    assert MARKER not in html
    assert "Run 2, after: its folder is gone" in Page(html).text
    assert "The reply isn’t in the run’s folder." in Page(html).text


def test_prompts_that_differ_are_next_to_each_other(small: Release) -> None:
    """Each under its run's name, with the sentences that only it has marked; one whose text isn't known says so. A
    prompt that all runs had is only mentioned; an instruction before the system text is shown.
    """
    own = run(small, policy_reply)
    texts = [
        "You are Nia.\nBe brief. Name a person to talk to.",
        "You are Nia.\nBe brief. Never leave the topic.",
        None,
    ]
    prompts = [OwnPrompt(file=f"{n}.txt", sha256=str(k) * 64) for k, n in enumerate(("calm", "brisk", "lost"))]
    runs = named([as_run(own, small, p.file[:-4], condition=p) for p in prompts])
    html = shown(runs, [RunFiles(own.replies, text) for text in texts], small)
    assert html.count("<mark>") == 2
    assert "<mark>Name a person to talk to.</mark>" in html
    assert "<mark>Never leave the topic.</mark>" in html
    text = Page(html).text
    assert "Run 1 calm.txt, sha256 000000000000, in place of every condition’s text You are Nia." in text
    assert "Run 3 lost.txt, sha256 222222222222, in place of every condition’s text Its text isn’t in" in text

    def both(a: dict[str, Any], b: dict[str, Any]) -> str:
        runs = named([as_run(own, small, "a", **a), as_run(own, small, "b", **b)])
        return Page(shown(runs, [RunFiles(), RunFiles()], small)).text

    same = both({"condition": prompts[0]}, {"condition": prompts[0]})
    assert "the same custom prompt" in same
    assert "sha256 0000" not in same
    assert "Prompts" not in both({}, {})
    instructed = both({}, {"system_instruction": "Answer in rhymes."})
    assert "Run 2 An instruction before every system text, sha256" in instructed
    assert "Answer in rhymes." in instructed


def test_the_repeat_that_is_shown_is_the_one_that_differs(small: Release) -> None:
    """Of four, only the third earned less: the page shows its reply, and what all four earned."""
    before, after = run(small, policy_reply), run(small, policy_reply)
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
    runs = [as_run(s, small, n) for s, n in zip(many, ("before", "after"), strict=True)]
    assert [(s.id, s.baseline, s.value) for s in compare(runs).samples] == [(target.id, 0.0, 0.25)]
    text = Page(shown(runs, [RunFiles(s.replies) for s in many], small)).text
    assert f"{MARKER} 2" in text
    assert f"{MARKER} 0" not in text
    assert f"{target.id}, repeat 2." in text
    assert "25 % over all repeats" in text


def test_failed_gates_and_runs_without_answers_come_first(small: Release) -> None:
    own = as_run(run(small, policy_reply), small, "a")
    judged = own.card.judge.model_copy(update={"unscored": own.card.judge.verdicts})
    down = replace(own, name="b", card=own.card.model_copy(update={"judge": judged}))
    found = compare([own, down], ["floor"])
    assert found.failed
    text = Page(page(found, [own, down], [RunFiles(), RunFiles()], small.rows, small.criteria)).text
    title = f"Blocked: {len(found.unanswered + found.failed)} reasons"
    assert text.index(title) < text.index("Run 2: nothing was answered") < text.index("Figures")
    (breached,) = [floor_title(f) for f in own.card.floors if f.state == "breached"]
    assert f"Run 2: 1 floor is breached. {breached}" in text


def test_replies_are_read_from_where_the_scores_are(
    small: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If they aren't there, or are another run's, the page says so; the command ends as without a page."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HELMBENCH_DATASET", str(small.path))
    rows = [r for r in small.rows.values() if "lite" in r.tiers]
    for name, said in (("calm", policy_reply), ("brisk", other_reply)):
        lines = [json.dumps({"id": r.id, "replies": [said(r)] * live_turns(r)}) for r in rows]
        Path(f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        assert main(["score", "--replies", f"{name}.jsonl", "--quiet"]) == 0
    assert main(["score", "--replies", "brisk.jsonl", "--out", "elsewhere", "--quiet"]) == 0
    capsys.readouterr()

    def compared(run: str) -> str:
        assert main(["compare", "calm.scored", run, "--page", "out/page.html", "--name", "A", "--name", "B"]) == 0
        assert "page: out/page.html" in capsys.readouterr().out
        return Page(Path("out/page.html").read_text(encoding="utf-8")).text

    whole = compared("brisk.scored")
    assert "Missing replies" not in whole
    assert ESCALATES in whole
    assert "2 runs compared A, the baseline B" in whole
    assert "Run 2, B: elsewhere: holds scores and no run" in compared("elsewhere")
    fewer = Path("brisk.jsonl").read_text(encoding="utf-8").splitlines()[1:]
    Path("brisk.jsonl").write_text("\n".join(fewer) + "\n", encoding="utf-8")
    assert "Run 2, B: brisk.scored: was scored on other replies, such as to " in compared("brisk.scored")
