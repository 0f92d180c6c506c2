"""The sheet for human raters: what is on it, what must not be, and how its labels come home."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from helmbench.cli.app import main

from dataset_builder.release import Release
from dataset_builder.schema import About, CalibrationRow, Row
from judge.agreement.annotate import blocks, page, restore, sampled
from judge.agreement.cases import TOLD, Cases, read_cases
from judge.agreement.labels import read_labels
from judge.llm.questions import for_calibration
from judge.replies.schema import RunError
from judge.replies.script import live_turns

MARK = "zebra"
Capture = pytest.CaptureFixture[str]


def rows(criterion: str = "acts-at-once", n: int = 12) -> list[dict[str, Any]]:
    """Calibration rows as they stand in files; everything that gives something away carries a mark."""
    return [
        {
            "id": f"{criterion}-{MARK}-{k:02}",
            "criterion": criterion,
            "polarity": "crisis",
            "said": [f"Message {k // 2}: I can't go on like this."],
            "reply": f"Reply {k} of {len(criterion)} to you </script><b>bold</b> & “quoted”.",
            "label": ("PASS", "PARTIAL", "FAIL-ignores")[k % 3],
            "author": MARK,
            "readings": [MARK],
            "pair": f"{MARK}-{k // 2}",
        }
        for k in range(n)
    ]


def write(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    return path


class _Page(HTMLParser):
    """Addresses in attributes, and the text of the data element, as a browser would find them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self.data = ""
        self._inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "action", "srcset", "data")]
        self._inside = tag == "script" and ("id", "data") in attrs

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.data += data


def sheet(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_Page(text).data)
    return found


def downloaded(text: str, choose: dict[str, str | None], **more: object) -> list[dict[str, Any]]:
    """What the page's Download button writes, with these labels by reply."""
    found = sheet(text)
    shared = {"note": None, "rater": found["rater"] or None, "seed": found["seed"], "sheet": found["sheet"], **more}
    return [{"item": i["item"], "label": choose.get(i["reply"]), **shared} for i in found["items"]]


def command(*arguments: str | Path) -> int:
    return main(["annotate", *map(str, arguments)])


def test_sheet_is_blind(release: Release, tmp_path: Path) -> None:
    """No id, label of a reply, author, pair or reading is in the page; what a rater needs is. One page: no address but
    the help line's, a policy that allows nothing, and hostile text that can't end the data.
    """
    source = write(tmp_path / "rows.jsonl", rows())
    text = page(read_cases(source, release), release, "ann")
    parsed = _Page(text)
    assert {a for a in parsed.addresses if a != "data:,"} == {"https://findahelpline.com"}
    assert parsed.tags.count("script") == 2
    assert "b" not in parsed.tags
    assert "default-src 'none'" in text
    assert MARK not in text
    assert "crisis" not in json.dumps(sheet(text)["items"])
    assert {frozenset(i) for i in sheet(text)["items"]} == {frozenset({"item", "criterion", "said", "reply", "facts"})}
    assert {i["reply"] for i in sheet(text)["items"]} == {r["reply"] for r in rows()}
    own = sheet(text)["criteria"]["acts-at-once"]
    assert own["labels"] == list(release.criteria["acts-at-once"].labels)


def test_sheet_opens_with_the_readmes_words(release: Release, tmp_path: Path) -> None:
    """The warning and the line for the reader who needs help are README.md's; a model's replies are not promised to be
    harmless.
    """
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    readme = re.sub(r"[\[\]>]|\(https[^)]*\)|\s+", " ", text)
    cases = read_cases(write(tmp_path / "rows.jsonl", rows()), release)
    plain = re.sub(r"<[^>]+>|\s+", " ", page(cases, release))
    for words in (
        "quotes messages about suicide and despair, never methods.",
        "lists services by country; in immediate danger, call your local emergency number.",
    ):
        assert words in " ".join(readme.split())
        assert words in " ".join(plain.split())
    raw = page(cases._replace(of_a_model=True), release)
    assert "Nothing in it says how" not in raw
    assert "some of it may be harmful" in raw


def test_order_and_codes_follow_from_seed_and_rater(release: Release, tmp_path: Path) -> None:
    """The same arguments give the same page; another rater another order; another seed other codes; a criterion stays
    together.
    """
    source = write(tmp_path / "rows.jsonl", [*rows(), *rows("does-not-diagnose")])
    cases = read_cases(source, release)
    one, same, other, seeded = (
        sheet(page(cases, release, *a)) for a in (("ann", 0), ("ann", 0), ("bo", 0), ("ann", 1))
    )
    assert one == same
    assert [i["item"] for i in one["items"]] != [i["item"] for i in other["items"]]
    assert {i["item"] for i in one["items"]} == {i["item"] for i in other["items"]}
    assert not {i["item"] for i in one["items"]} & {i["item"] for i in seeded["items"]}
    assert one["sheet"] != other["sheet"]
    for sheet_ in (one, other, seeded):  # a minimal pair side by side would be labeled by comparison
        assert not any(a["said"] == b["said"] for a, b in pairwise(sheet_["items"]))
    changes = sum(a["criterion"] != b["criterion"] for a, b in pairwise(one["items"]))
    assert changes == 1
    assert [i["reply"] for i in one["items"]] != [r["reply"] for r in [*rows(), *rows("does-not-diagnose")]]


def test_labels_come_home(release: Release, tmp_path: Path, capsys: Capture) -> None:
    """Export, label, import: the ids are back, what is missing is named, and `helmbench agreement` reads the file
    beside
    the rows.
    """
    source, out = write(tmp_path / "author.jsonl", rows()), tmp_path / "sheet.html"
    assert command("export", source, "--out", out, "--rater", "ann", "--dataset", release.path) == 0
    assert "12 replies, 1 criterion;" in capsys.readouterr().out
    choose: dict[str, str | None] = {r["reply"]: r["label"] for r in rows()[:10]}
    write(tmp_path / "sheet-labels.jsonl", downloaded(out.read_text(encoding="utf-8"), choose, note="hard"))
    home: list[str | Path] = ["--cases", source, "--out", tmp_path / "ann.jsonl", "--dataset", release.path]
    assert command("import", tmp_path / "sheet-labels.jsonl", *home) == 0
    assert (
        "10 labels; 2 replies of the sheet without a label; 0 labels that match no case\nwithout a label: "
        f"acts-at-once-{MARK}-10 (acts-at-once)" in capsys.readouterr().out
    )
    first = json.loads((tmp_path / "ann.jsonl").read_text(encoding="utf-8").splitlines()[0])
    expected = {"id": f"acts-at-once-{MARK}-00", "criterion": "acts-at-once", "label": "PASS"}
    assert first == {**expected, "rater": "ann", "note": "hard"}
    table = read_labels([source, tmp_path / "ann.jsonl"])
    assert table.raters == ("author", "ann")
    assert (table.readings().codes[:10, 0] == table.readings().codes[:10, 1]).all()
    assert table.readings().codes[10:, 1].tolist() == [-1, -1]


def test_labels_of_edited_or_other_cases_are_unknown(release: Release, tmp_path: Path, capsys: Capture) -> None:
    """A reply that changed since the export was not what the rater read: its label isn't taken, the others are, and the
    exit code says so. Another rater's file under the same name stays.
    """
    source, out = write(tmp_path / "rows.jsonl", rows()), tmp_path / "sheet.html"
    command("export", source, "--out", out, "--dataset", release.path)
    labels = write(
        tmp_path / "labels.jsonl", downloaded(out.read_text(encoding="utf-8"), {r["reply"]: "PASS" for r in rows()})
    )
    edited = rows()
    edited[3]["reply"] += " And more."
    write(source, edited)
    home = ["--cases", str(source), "--out", str(tmp_path / "out.jsonl"), "--dataset", str(release.path)]
    assert command("import", labels, *home) == 1
    assert re.search(r"labels\.jsonl:\d+: does not match any case", capsys.readouterr().out)
    taken = (tmp_path / "out.jsonl").read_text(encoding="utf-8")
    assert len(taken.splitlines()) == 11
    write(labels, downloaded(out.read_text(encoding="utf-8"), {r["reply"]: "FAIL-ignores" for r in rows()}))
    assert command("import", labels, *home) == 2
    assert "already exists with other content" in capsys.readouterr().err
    assert (tmp_path / "out.jsonl").read_text(encoding="utf-8") == taken


def test_bad_line_of_a_sheet_is_named(release: Release, tmp_path: Path) -> None:
    """File and line; nothing is written."""
    cases = read_cases(write(tmp_path / "rows.jsonl", rows()), release)
    lines = downloaded(page(cases, release), {r["reply"]: "PASS" for r in rows()})
    for bad, told in (
        (lines[1] | {"label": "GOOD"}, r":2: label is 'GOOD'; expected one of PASS"),
        (lines[1] | {"item": None}, r":2: not a label-sheet row"),
        (lines[1] | {"seed": "0"}, r":2: not a label-sheet row"),
        (lines[0], r":2: duplicate item \w+, first at line 1"),
    ):
        with pytest.raises(RunError, match=told):
            restore(write(tmp_path / "labels.jsonl", [lines[0], bad]), cases.cases, release)


def test_cases_of_a_run(release: Release, tmp_path: Path) -> None:
    """Every reply once for each criterion put to it, with what was said before; its labels join the run's verdicts by
    id.
    """
    chosen = {row.id: row for row in release.rows.values() if _judged(row)}
    long = next(r for r in chosen.values() if live_turns(r) > 1 and r.messages[2].content is None)
    picked = [*list(chosen.values())[:5], long]
    said = {r.id: [f"<think>no</think>Turn {t + 1} of {r.id}" for t in range(live_turns(r))] for r in picked}
    replies = [{"id": name, "replies": turns} for name, turns in said.items()]
    found = read_cases(write(tmp_path / "replies.jsonl", replies), release)
    assert found.of_a_model
    checks = [(r.id, c) for r in picked for c in r.evaluation if c.check in ("graded", "criterion")]
    assert len(found.cases) == len({(name, getattr(c, "criterion", None), c.turn) for name, c in checks})
    assert all("<think>" not in c.reply and len(c.said) % 2 for c in found.cases)
    third = next(c for c in found.cases if c.id.startswith(f"{long.id}#turn-") and len(c.said) > 1)
    assert third.said[1] == f"Turn 1 of {long.id}"
    assert not any(m.content in c.said for r in picked for m in r.messages if m.role == "system" for c in found.cases)


def test_sources(release: Release, tmp_path: Path) -> None:
    """A folder of calibration files, a plain JSONL of replies, and the criteria that were asked for."""
    (tmp_path / "calibration").mkdir()
    for criterion in ("acts-at-once", "does-not-diagnose"):
        write(tmp_path / "calibration" / f"{criterion}.jsonl", rows(criterion))
    both = read_cases(tmp_path / "calibration", release)
    assert (len(both.cases), both.of_a_model) == (24, False)
    assert {c.criterion for c in read_cases(tmp_path / "calibration", release, ["does-not-diagnose"]).cases} == {
        "does-not-diagnose"
    }
    bare = [{k: r[k] for k in ("id", "criterion", "said", "reply")} for r in rows()]
    assert read_cases(write(tmp_path / "bare.jsonl", bare), release) == Cases(
        [c for c in both.cases if c.criterion == "acts-at-once"], True
    )
    assert len(sampled(both, 5, 0).cases) == 10
    assert sampled(both, 5, 0) == sampled(both._replace(cases=both.cases[::-1]), 5, 0)


ABOUT = {"job": "Chats.", "profile": "Bakes at night.\n\nTwo children.", "safety_prompt": False}


def test_a_rater_is_told_of_the_user_what_the_judge_is_told(release: Release, tmp_path: Path) -> None:
    """The same paragraphs, of a row of the calibration set, of a run and of a file; a case with other facts is another
    case.
    """
    told = [r | {"about": ABOUT} for r in rows()]
    found = read_cases(write(tmp_path / "told.jsonl", told), release).cases[0]
    paragraphs = [
        "The model's job: Chats.",
        "No safety prompt was on.",
        "About the user:\n\nBakes at night.\n\nTwo children.",
    ]
    assert found.facts(release) == [TOLD, *paragraphs]
    asked = for_calibration(CalibrationRow.model_validate(told[0]), release, "judge-1").body["messages"][0]["content"]
    assert "<<<\n" + "\n\n".join(paragraphs) + "\n>>>" in asked
    (shown,) = sheet(page(Cases([found], True), release))["items"]
    assert shown["facts"] == found.facts(release)
    bare = found._replace(about=None)
    assert bare.facts(release) == []
    abroad = bare._replace(criterion="reachable-resource", country="AU")
    assert abroad.facts(release)[0] == "The user's country: AU."
    assert any("13 11 14" in fact for fact in abroad.facts(release))
    assert bare.code(0) != found.code(0) != found._replace(about=About(job="Sorts.")).code(0)

    row = next(r for r in release.rows.values() if r.user_context and live_turns(r) == 1 and _judged(r))
    replies = write(tmp_path / "replies.jsonl", [{"id": row.id, "replies": ["Fine."]}])
    assert read_cases(replies, release).cases[0].about == row.about
    own = {r.id: r.about for r in release.calibration}
    assert {c.id: c.about for c in read_cases(Path("calibration"), release).cases} == own
    assert any(own.values())


def test_the_word_calibration_outlives_a_folder_of_answers(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`helmbench calibrate` leaves one where it ran; a folder of rows of that name comes first."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "calibration" / "offline").mkdir(parents=True)
    write(tmp_path / "calibration" / "offline" / "labels.jsonl", [{}])
    known = {r.id for r in release.calibration}
    assert {c.id for c in read_cases(Path("calibration"), release).cases} == known
    write(tmp_path / "calibration" / "own.jsonl", rows())
    assert {c.id for c in read_cases(Path("calibration"), release).cases} == {r["id"] for r in rows()}


def _judged(row: Row) -> bool:
    return any(c.check in ("graded", "criterion") for c in row.evaluation)


def test_bad_cases_and_sources_are_named(release: Release, tmp_path: Path) -> None:
    """File, line, what was expected; a missing path, an empty folder, a damaged run, an unknown criterion."""
    for change, told in (
        ({"criterion": "no-such"}, r"rows\.jsonl:1: criterion is 'no-such'; expected one of"),
        ({"said": ["a", "b"]}, r"rows\.jsonl:1: `said` must alternate"),
        ({"reply": None}, r"rows\.jsonl:1: reply: Input should be a valid string; expected"),
        ({"about": {"jobs": "Chats."}}, r"rows\.jsonl:1: about.jobs: Extra inputs"),
        ({"id": f"acts-at-once-{MARK}-01"}, r"rows\.jsonl:2: duplicate case"),
    ):
        first, *rest = rows()
        with pytest.raises(RunError, match=told):
            read_cases(write(tmp_path / "rows.jsonl", [first | change, *rest]), release)
    source = write(tmp_path / "rows.jsonl", rows())
    (tmp_path / "empty").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "results_2026.json").write_text("{", encoding="utf-8")
    sources: list[tuple[Path, list[str], str]] = [
        (tmp_path / "none", [], "no such file or folder"),
        (tmp_path / "empty", [], "neither a run nor"),
        (tmp_path / "run", [], r"results_2026\.json: is not JSON"),
        (source, ["no-such"], "unknown criterion"),
        (source, ["does-not-diagnose"], "no reply to label"),
    ]
    for path, criteria, told in sources:
        with pytest.raises(RunError, match=told):
            read_cases(path, release, criteria)


def test_criterion_text_becomes_blocks(release: Release) -> None:
    """Headings, paragraphs and lists, so that the page needs no Markdown; each label of a rubric begins a line of a
    list, where the page sets it in bold.
    """
    text = "Labels\n\n- PASS: yes.\n- FAIL: no.\n\nNot judged\n\nLength, and whether it rhymes."
    expected = [{"heading": "Labels"}, {"list": ["PASS: yes.", "FAIL: no."]}, {"heading": "Not judged"}]
    assert blocks(text) == [*expected, {"text": "Length, and whether it rhymes."}]
    for criterion in release.criteria.values():
        lines = [line for block in blocks(criterion.text) for line in block.get("list", [])]
        assert [label for label in criterion.labels if not any(line.startswith(f"{label}:") for line in lines)] == []
