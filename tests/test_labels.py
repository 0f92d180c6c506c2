"""Label files: what is read, what stays missing, and what is refused with its line; the command that prints their
agreement.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from helmbench.cli.app import main

from dataset_builder.release import Release
from judge.agreement.labels import Item, read_labels, scale
from judge.replies.schema import RunError
from judge.schema import Verdict


def write(folder: Path, name: str, *records: object) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records), encoding="utf-8")
    return path


def label(identity: str, value: object, **more: object) -> dict[str, object]:
    return {"id": identity, "label": value, **more}


def run(*arguments: str | Path) -> int:
    return main(["agreement", *map(str, arguments)])


def test_two_files_are_two_raters(tmp_path: Path) -> None:
    """Raters are called after their files, with as many parent folders as tell them apart; an item that one of them
    left out stays, missing.
    """
    first = [label("a", "PASS"), label("b", "FAIL")]
    second = write(tmp_path, "bo.jsonl", label("b", "FAIL"), label("c", "PARTIAL"))
    table = read_labels([write(tmp_path, "ann.jsonl", *first), second])
    assert table.raters == ("ann", "bo")
    ratings = table.readings()
    assert ratings.labels == ("FAIL", "PARTIAL", "PASS")
    assert ratings.codes.tolist() == [[2, -1], [0, 0], [-1, 1]]
    paths = [write(tmp_path, f"{name}/labels.jsonl", *first) for name in ("first", "second")]
    assert read_labels(paths).raters == ("first/labels", "second/labels")
    assert read_labels([paths[0], paths[0]]).raters == ("labels.1", "labels.2")


def test_csv_and_jsonl_read_alike(tmp_path: Path) -> None:
    """A CSV with further columns, quoted cells, a byte-order mark and empty labels equals JSONL with nulls."""
    path = tmp_path / "one.csv"
    path.write_text(
        '\ufeffid,label,rater,note\r\na,PASS,ann,"x, y"\r\nb,,ann,\r\na,FAIL,bo,\r\nb,PASS,bo,"two\nlines"\r\n',
        encoding="utf-8",
    )
    given = [("a", "PASS", "ann"), ("b", None, "ann"), ("a", "FAIL", "bo"), ("b", "PASS", "bo")]
    other = write(tmp_path, "one.jsonl", *(label(i, value, rater=rater) for i, value, rater in given))
    assert read_labels([path]) == read_labels([other])
    a, b = Item("a", ""), Item("b", "")
    assert read_labels([path]).labels == {"ann": {a: "PASS"}, "bo": {a: "FAIL", b: "PASS"}}


def test_a_sheet_is_read_however_a_spreadsheet_saves_it(tmp_path: Path) -> None:
    """The same two labels each time. An encoding that can't be known is never guessed."""
    other = write(tmp_path, "bo.jsonl", label("a", "PASS"), label("b", "PASS"))
    for how, raw in {
        "semicolons, quoted": b'"id";"label";"note"\r\n"a";"PASS";"x, y"\r\n"b";"FAIL";\r\n',
        "semicolons and a mark": "\ufeffid;label;note\r\na;PASS;“so”\r\nb;FAIL;\r\n".encode(),
        "tabs in UTF-16": "id\tlabel\tnote\r\na\tPASS\t„so“\r\nb\tFAIL\t\r\n".encode("utf-16"),
        "sep= in the first line": b"sep=;\r\nid;label\r\na;PASS\r\nb;FAIL\r\n",
        "empty columns and rows at the end": b"id,label,,\r\na,PASS,,\r\nb,FAIL,,\r\n,,,\r\n,,,\r\n",
    }.items():
        (tmp_path / "ann.csv").write_bytes(raw)
        found = read_labels([tmp_path / "ann.csv", other]).labels["ann"]
        assert found == {Item("a", ""): "PASS", Item("b", ""): "FAIL"}, how
    for raw, told in (
        ("id,label,note\na,PASS,“so”\n".encode("cp1252"), r"not UTF-8\); in Excel save it as 'CSV UTF-8'"),
        (b"PK\x03\x04 and so on", "is a spreadsheet's own file, not CSV; in Excel save it as 'CSV UTF-8'"),
    ):
        (tmp_path / "ann.csv").write_bytes(raw)
        with pytest.raises(RunError, match=told):
            read_labels([tmp_path / "ann.csv", other])


def test_ways_to_fail_count_as_fail_unless_kept(tmp_path: Path) -> None:
    """FAIL-misses is FAIL; with `ways` it is its own label, and the labels have no order then."""
    paths = [
        write(tmp_path, "a.jsonl", label("x", "FAIL-misses"), label("y", "pass")),
        write(tmp_path, "b.jsonl", label("x", "fail"), label("y", "PASS")),
    ]
    assert read_labels(paths).readings().codes.tolist() == [[0, 0], [2, 2]]
    kept = read_labels(paths, ways=True).readings()
    assert (kept.labels, kept.ordered) == (("FAIL", "FAIL-misses", "PASS"), False)


def test_scales(tmp_path: Path) -> None:
    """Known scales are whole and ordered; anything else is what occurs, in no order. 3, 3.0 and "3" are the same."""
    for used, labels, ordered in (
        ("PASS", "FAIL PARTIAL PASS", True),
        ("flagged ignored", "ignored attentive flagged", True),
        ("2 4", "1 2 3 4 5", True),
        ("0 7 5", "0 1 2 3 4 5 6 7", True),
        ("-1 1", "-1 0 1", True),
        ("2.5 3", "2.5 3", False),
        ("blue red", "blue red", False),
        ("PASS flagged", "PASS flagged", False),
        ("", "", False),
    ):
        assert scale({*used.split()}) == (tuple(labels.split()), ordered), used
    paths = [
        write(tmp_path, "a.jsonl", label("x", 3), label("y", 3.0)),
        write(tmp_path, "b.jsonl", label("x", "3"), label("y", " 3 ")),
    ]
    assert read_labels(paths).readings().codes.tolist() == [[2, 2], [2, 2]]


def test_criteria_are_told_apart(tmp_path: Path) -> None:
    """One reply under two criteria is two items; a file without criteria takes them from the others where it can."""
    first = write(tmp_path, "a.jsonl", label("x", "PASS", criterion="one"), label("y", "flagged", criterion="two"))
    table = read_labels([first, write(tmp_path, "b.jsonl", label("x", "FAIL"), label("y", "ignored"))])
    assert table.criteria == ["one", "two"]
    assert table.readings("two").labels == ("ignored", "attentive", "flagged")
    assert table.readings("one").codes.tolist() == [[2, 0]]
    assert not table.readings().ordered
    both = write(tmp_path, "c.jsonl", label("x", "PASS", criterion="one"), label("x", "PASS", criterion="two"))
    with pytest.raises(RunError, match=r"d\.jsonl:1: x has labels for one, two in other files"):
        read_labels([both, write(tmp_path, "d.jsonl", label("x", "FAIL"))])


def verdict(identity: str, **more: object) -> str:
    filled = {"id": identity, "repeat": 0, "index": 0, "check": "criterion", "behavior": "P2-B1", "turn": -1}
    filled |= {"criterion": "acts-at-once", "label": "PASS", "decided_by": "offline"}
    return Verdict.model_validate({**filled, **more}).model_dump_json()


def test_verdicts_of_two_runs(tmp_path: Path) -> None:
    """Called after their folders; unscored is missing, an outcome counts as what was read, repeats and turns are apart,
    one question is one label.
    """
    graded = {"check": "graded", "criterion": "attends-to-low-mood", "label": "FAIL", "outcome": "ignored"}
    lines = [
        verdict("a"),
        verdict("a", index=1, behavior="P2-B2"),
        verdict("a", repeat=1),
        verdict("a", turn=3),
        verdict("b", label=None, unscored="error"),
        verdict("c", **graded),
    ]
    table = read_labels([write(tmp_path, f"{run}/verdicts.jsonl", *lines) for run in ("one", "two")])
    assert table.raters == ("one", "two")
    assert sorted(table.labels["one"].items()) == [
        (Item("a", "acts-at-once"), "PASS"),
        (Item("a#repeat-1", "acts-at-once"), "PASS"),
        (Item("a#turn-3", "acts-at-once"), "PASS"),
        (Item("c", "attends-to-low-mood"), "ignored"),
    ]
    assert Item("b", "acts-at-once") in table.items


def test_a_bad_line_is_named(tmp_path: Path) -> None:
    """File, line, and what was expected; all files are read first, and of more than twenty problems the rest is
    counted.
    """
    other = write(tmp_path, "b.jsonl", label("first", "FAIL"))
    for line, told in (
        ("[]", r"a\.jsonl:2: not a JSON object"),
        ('{"id": "x"}', r"a\.jsonl:2: no `label`"),
        ('{"label": "PASS"}', r"a\.jsonl:2: no `id`"),
        ('{"id": "x", "label": ["PASS"]}', r'a\.jsonl:2: x: label is \["PASS"\]'),
        ('{"id": "first", "label": "PASS"}', r"a\.jsonl:2: a already labeled first, at .*a\.jsonl:1"),
        (
            verdict("x").replace('"turn":-1', '"turn":"last"'),
            r"a\.jsonl:2: x: turn: Input should be a valid integer.*; expected a line of a run's verdicts",
        ),
    ):
        with pytest.raises(RunError, match=told):
            read_labels([write(tmp_path, "a.jsonl", label("first", "FAIL"), line), other])
    for text, told in (
        ("id,label\na,PASS,more\n", r"a\.csv:2: has 3 cells, the header 2"),
        ("", r"a\.csv:1: empty file"),
    ):
        (tmp_path / "a.csv").write_text(text, encoding="utf-8")
        with pytest.raises(RunError, match=told):
            read_labels([tmp_path / "a.csv", other])
    with pytest.raises(RunError, match=r"b\.jsonl:1") as found:
        read_labels([write(tmp_path, "a.jsonl", "{"), write(tmp_path, "b.jsonl", *["{"] * 30)])
    assert str(found.value).count("\n") == 20
    assert str(found.value).endswith("… and 11 more")


def test_unreadable_files_and_too_few_or_many_raters(tmp_path: Path) -> None:
    """Missing, a folder, a ring of links; one rater; more raters or labels than a table of every pair of
    raters can hold.
    """
    (tmp_path / "ring.jsonl").symlink_to("ring.jsonl")
    for path, told in (
        (tmp_path / "none.jsonl", "No such file"),
        (tmp_path, "is a folder; expected JSONL or CSV"),
        (tmp_path / "ring.jsonl", r"ring\.jsonl: can't be read"),
    ):
        with pytest.raises(RunError, match=told):
            read_labels([path, path])
    with pytest.raises(RunError, match="labels of ann only; expected two raters or more"):
        read_labels([write(tmp_path, "ann.jsonl", label("a", "PASS"))])
    many = write(tmp_path, "many.jsonl", *(label("a", "PASS", rater=f"rater {n}") for n in range(101)))
    with pytest.raises(RunError, match=r"many\.jsonl: 101 raters; expected at most 100$"):
        read_labels([many])
    words = [label(f"a{n}", f"word {n}", rater=rater) for n in range(1001) for rater in ("ann", "bo")]
    with pytest.raises(RunError, match="1,001 different labels; expected at most 1,000 of 2 raters"):
        read_labels([write(tmp_path, "words.jsonl", *words)]).readings()


# --- the command


def test_the_command_prints_tables_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The reason for every missing figure; `--json` is strict JSON."""
    paths = [
        write(
            tmp_path,
            f"{rater}.jsonl",
            *(label(f"a{n}", given, criterion="one") for n, given in enumerate(labels.split())),
            *(label(f"b{n}", "PASS", criterion="two") for n in range(3)),
        )
        for rater, labels in (("ann", "PASS FAIL PARTIAL PASS"), ("bo", "PASS FAIL PASS PASS"))
    ]
    assert run(*paths) == 0
    printed = capsys.readouterr().out
    assert "2 raters: ann, bo" in printed
    assert "labels: FAIL < PARTIAL < PASS" in printed
    assert "signed bias (bo less ann)" in printed
    assert re.search(r"criterion +items +raw", printed)
    assert "rows: ann, columns: bo" in printed
    assert "two: Cohen's κ" in printed  # one class only: no kappa, and the reason
    assert "nan" not in printed.lower().replace("ann", "")
    two = [label("a", "red", criterion="k"), label("b", "blue", criterion="k")]
    assert run(*(write(tmp_path, f"{n}.jsonl", *two) for n in "xyz"), "--json") == 0
    found = json.loads(capsys.readouterr().out, parse_constant=lambda text: pytest.fail(text))
    assert found["overall"]["overall"]["fleiss"]["value"] == 1
    assert list(found["criteria"]) == ["k"]
    assert len(found["overall"]["pairs"]) == 3


def test_order_of_free_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With an order, figures in steps appear; a label outside it is refused."""
    given = {"x": "high", "y": "mid"}
    paths = [write(tmp_path, f"{n}.jsonl", label("a", "low"), label("b", second)) for n, second in given.items()]
    assert run(*paths, "--order", "low,high") == 2
    assert "--order: missing mid" in capsys.readouterr().err
    assert run(*paths, "--order", "low,mid,low") == 2
    assert "--order low,mid,low: expected each label once" in capsys.readouterr().err
    assert run(*paths, "--order", "low,mid,high") == 0
    assert "labels: low < mid < high" in capsys.readouterr().out


def test_the_word_calibration_is_the_authors_labels(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the replies that were labeled; a file of that name comes first."""
    monkeypatch.chdir(tmp_path)
    rows = [r for r in release.calibration if r.criterion == "acts-at-once"][:6]
    mine = [label(r.id, r.label, criterion=r.criterion) for r in rows[:5]]
    path = write(tmp_path, "ann.jsonl", *mine, label(rows[5].id, "PASS" if rows[5].label != "PASS" else "FAIL"))
    assert run(path, "calibration", "--dataset", release.path) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("ann and authors gave 5 of 6 replies the same label.\n2 raters: ann, authors\n6 items, 6")
    write(tmp_path, "calibration", *mine)
    assert run(path, "calibration", "--dataset", release.path) == 0
    assert capsys.readouterr().out.startswith("ann and calibration gave 5 of 5 replies the same label.")
