"""The transcripts: they hold what was said, once and whole, and nothing that must not be seen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from helmbench.cli.app import main
from support.reports import MARKER, Page, Scored, hostile, plain_reply, run
from support.scores import scores
from support.transcript_pages import everything, told, unpacked

from dataset_builder.release import Release
from dataset_builder.schema import Row
from judge.replies.schema import Reply
from judge.replies.script import live_turns
from judge.report.entries import Show, entry, system_text, to_show
from judge.report.page import TRANSCRIPTS, report
from judge.report.transcripts import BLOCK, LONGEST, OF_SAMPLES, OF_VERDICTS


def page(scored: Scored, show: Show = "all") -> str:
    return "".join(scored.report(show).transcripts)


@pytest.mark.parametrize("said", [plain_reply, hostile], ids=["plain", "hostile"])
def test_every_reply_is_there_as_the_report_has_it(release: Release, said: Callable[[Row], str]) -> None:
    """In the same order, with its conversation, its verdicts and their evidence, and its system text; whatever the
    order of the input.
    """
    scored = run(release, said)
    html = page(scored)
    expected = [entry(p) for p in to_show(scored.verdicts, scored.replies, scored.rows, "all")]
    found = told(html)
    assert [t.id for t in found] == [e.id for e in expected]
    for t, e in zip(found, expected, strict=True):
        assert t.turns == [(turn.role, turn.text, turn.note) for turn in e.turns]
        assert t.system == e.system == system_text(scored.rows[e.id])
        assert [evidence for _, evidence in t.findings] == [list(f.evidence) for f in e.findings]
        for (type_, _), f in zip(t.findings, e.findings, strict=True):
            own = {name: getattr(f, name) for name in type_ if name not in ("details", "codes")}
            assert type_ == {**own, "details": [list(d) for d in f.details], "codes": type_["codes"]}
    again = report(scored.card, scored.verdicts[::-1], scored.replies[::-1], scored.rows, "all")
    assert "".join(again.transcripts) == html


def test_a_facet_has_the_value_of_the_row_and_of_the_verdict(release: Release) -> None:
    """The codes stand for what the sample and the verdict have."""
    scored = run(release)
    held = unpacked(page(scored))
    head, samples = json.loads(held["head"]), json.loads(held["samples"])
    rows = [scored.rows[s[0]] for s in samples]
    for n, facet in enumerate(head["sample_facets"]):
        shown = [facet["values"][s[3][n]][0] for s in samples]
        if facet["name"] in ("scenario", "condition_kind", "persona", "country", "family", "crisis_category"):
            assert shown == [getattr(row, facet["name"]) or "" for row in rows]
    for n, facet in enumerate(head["verdict_facets"]):
        shown = [facet["values"][type_["codes"][n]][0] for type_ in head["types"]]
        if facet["name"] in ("behavior", "incident", "label", "polarity"):
            assert shown == [type_[facet["name"]] for type_ in head["types"]]
    assert [f["name"] for f in head["verdict_facets"]] == [f.name for f in OF_VERDICTS]
    assert [f["name"] for f in head["sample_facets"]] == [f.name for f in OF_SAMPLES]


def test_each_text_is_there_once(release: Release) -> None:
    """A text that many samples share is in one place of one block."""
    held = unpacked(page(run(release, tier="core")))
    texts = [t for name, text in held.items() if name.startswith("texts-") for t in text.split("\0")]
    assert len(texts) == len(set(texts))
    assert sum(name.startswith("texts-") for name in held) > 1
    assert max(len(t) for name, t in held.items() if name.startswith("texts-")) < BLOCK + LONGEST


def test_reasoning_is_left_out_and_a_long_reply_is_whole(release: Release) -> None:
    """Hidden reasoning is counted; what a report cuts is here, up to a hundred thousand characters."""
    long = "word " * 1500
    html = page(run(release, lambda _: f"<think>{MARKER}</think>{long}"), "withheld")
    assert MARKER not in everything(html)
    (turn,) = {t for one in told(html) for t in one.turns if t[0] == "Reply"}
    assert turn[1] == long.strip()
    assert "characters of reasoning not shown" in turn[2]
    one = next(i for i, row in release.rows.items() if "lite" in row.tiers)
    html = page(run(release, lambda row: "a" * 300_000 if row.id == one else plain_reply(row)), "withheld")
    cut = next(t for one in told(html) for t in one.turns if t[1].startswith("aaaa"))
    assert len(cut[1]) == LONGEST
    assert "of 300000 characters, sha256" in cut[2]


def test_only_failures_where_only_these_are_public(release: Release) -> None:
    """The transcripts show the same replies as the report; without any the page says so."""
    scored = run(release)
    failed = {v.id for v in scored.verdicts if v.label == "FAIL" or v.incident}
    html = page(scored, "failures")
    assert {t.id for t in told(html)} == failed
    assert f"{len(failed)} replies that failed a check" in Page(html).text
    nothing = "".join(report(scored.card, [], [], {}, "all").transcripts)
    assert told(nothing) == []
    assert "No reply is to be shown" in Page(nothing).text


def test_score_and_report_write_them(release: Release, dataset: Path, tmp_path: Path) -> None:
    """Next to the report, which links to them, and the same again from the stored verdicts."""
    rows = [r for r in release.rows.values() if "lite" in r.tiers]
    replies, out = tmp_path / "r.jsonl", tmp_path / "out"
    said = [Reply(id=r.id, turns=("Tell me more.",) * live_turns(r)) for r in rows]
    lines = [{"id": r.id, "replies": r.turns} if len(r.turns) > 1 else {"id": r.id, "reply": r.turns[0]} for r in said]
    replies.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    where = ["--replies", str(replies), "--dataset", str(dataset)]
    assert main(["score", *where]) == 0
    scored = scores(replies.with_suffix(".scored"))
    html = (scored / TRANSCRIPTS).read_text(encoding="utf-8")
    assert {t.id for t in told(html)} == {r.id for r in rows}
    assert f'href="{TRANSCRIPTS}"' in (scored / "report.html").read_text(encoding="utf-8")
    assert 'href="report.html"' in html
    assert main(["report", *where, "--out", str(out)]) == 0
    assert (out / TRANSCRIPTS).read_text(encoding="utf-8") == html
