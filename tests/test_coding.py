"""Low ratings as a sheet for hand coding: what it holds, who may read it, and what comes back."""

from __future__ import annotations

import csv
import io
import json
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helmbench.cli.app import main
from support.scores import scores

from dataset_builder.release import Release
from judge.agreement.coding import COLUMNS, WARNING, coding, sheet, text
from judge.replies.schema import RunError
from judge.schema import Verdict
from judge.wording import with_formulas

Capture = pytest.CaptureFixture[str]
Scored = Callable[..., Path]
FORMULA = '=HYPERLINK("http://x.example","click")'


def replies(release: Release, text: str) -> str:
    """Two replies to each of five messages, as a file of collected replies."""
    places = [(i, k) for i in sorted(release.messages)[:5] for k in range(2)]
    lines = [{"id": i, "repeat": k, "reply": text.format(n=n, k=k)} for n, (i, k) in enumerate(places)]
    return "".join(json.dumps(line) + "\n" for line in lines)


@pytest.fixture(scope="module")
def run(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that the offline judge scored, once for this module."""
    path = tmp_path_factory.mktemp("run") / "mine.jsonl"
    path.write_text(replies(release, "I'm sorry, that sounds hard. Please talk to somebody."), encoding="utf-8")
    assert main(["score", "--replies", str(path), "--quiet", "--dataset", str(release.path)]) == 0
    return path.parent


@pytest.fixture
def scored(run: Path, release: Release, tmp_path: Path) -> Scored:
    """Makes a scored run with these verdicts: place among the ten replies → rating, 5 where none is given."""

    def rated(ratings: dict[int, int], reply: str = "Reply {n}, repeat {k}.") -> Path:
        path = Path(shutil.copytree(run, tmp_path, dirs_exist_ok=True)) / "mine.jsonl"
        path.write_text(replies(release, reply), encoding="utf-8")
        shared = {"index": 0, "check": "appropriateness", "behavior": "appropriateness", "turn": -1, "judge": "j"}
        verdicts = [
            Verdict.model_validate(
                {"id": own["id"], "repeat": own["repeat"], "label": ratings.get(n, 5), "decided_by": "judge"}
                | {"evidence": (f"Reply {n}",), **shared}
            )
            for n, own in enumerate(map(json.loads, path.read_text(encoding="utf-8").splitlines()))
        ]
        home = scores(path.with_suffix(".scored"))
        (home / "ratings.jsonl").write_text("".join(v.model_dump_json() + "\n" for v in verdicts), encoding="utf-8")
        return path

    return rated


def export(path: Path, release: Release, *more: str) -> Path:
    out = path.with_name("sheet.csv")
    run = ["--replies", str(path), "--dataset", str(release.path)]
    assert main(["ratings", "export", *run, "--out", str(out), *more]) == 0
    return out


def rows_of(sheet: Path) -> list[dict[str, str]]:
    """The rows below the warning."""
    first, _, rest = sheet.read_text(encoding="utf-8-sig").partition("\n")
    assert WARNING in first
    return list(csv.DictReader(io.StringIO(rest, newline="")))


def coded(sheet: Path, name: str, codes: list[str], who: str, **changes: str) -> Path:
    """A copy of the sheet as a person sends it back: these codes in its rows, from the first on."""
    rows = [
        row | {"code": code, "coder": who if code else ""} | changes
        for row, code in zip(rows_of(sheet), [*codes, *[""] * 20], strict=False)
    ]
    out = sheet.with_name(name)
    with out.open("w", encoding="utf-8", newline="") as file:
        file.write(f'"{WARNING}"\n')
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    return out


def test_the_sheet_holds_the_low_ratings_and_nothing_else(
    scored: Scored, release: Release, tmp_path: Path, capsys: Capture
) -> None:
    """Replies rated 1 or 2 with message, rating and evidence (several quotes in one cell), empty columns for the coder;
    others with --at-most. Mode 0600, and the first line warns.
    """
    path = scored({1: 1, 4: 2, 6: 3})
    ratings = scores(path.with_suffix(".scored")) / "ratings.jsonl"
    lines: list[dict[str, Any]] = [json.loads(line) for line in ratings.read_text(encoding="utf-8").splitlines()]
    lines[4]["evidence"] = ["one", "two"]
    ratings.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    sheet = export(path, release)
    assert "keep it private" in capsys.readouterr().out
    assert stat.S_IMODE(sheet.stat().st_mode) == 0o600
    rows = rows_of(sheet)
    assert sorted((r["reply"], r["rating"], r["evidence"]) for r in rows) == [
        ("Reply 1, repeat 1.", "1", "Reply 1"),
        ("Reply 4, repeat 0.", "2", "one … two"),
    ]
    assert all(tuple(r) == COLUMNS and (r["code"], r["note"], r["coder"]) == ("", "", "") for r in rows)
    for r in rows:
        message = release.messages[r["id"]]
        assert r["category"] == message.crisis_category
        assert r["message"].lstrip("'") == next(m.content for m in message.messages if m.role == "user")
    sheet.unlink()
    assert len(rows_of(export(path, release, "--at-most", "3"))) == 3


def test_no_cell_is_a_formula(scored: Scored, release: Release, tmp_path: Path) -> None:
    """A spreadsheet that opens the sheet runs nothing that a model wrote."""
    (row,) = rows_of(export(scored({0: 1}, FORMULA), release))
    assert row["reply"] == f"'{FORMULA}"
    replies = [FORMULA, "+1 800", "-2", "@SUM(A1)", "\t=1+1", "  =1+1", "|cmd", "'quoted"]
    path = tmp_path / "more.csv"
    path.write_text(sheet([("a", "0", "self_harm", "m", reply, "1", "e") for reply in replies]), encoding="utf-8")
    shown = [r["reply"] for r in rows_of(path)]
    assert all(cell.lstrip().startswith("'") for cell in shown)
    assert [with_formulas(cell) for cell in shown] == replies


def test_export_overwrites_no_work_and_checks_the_run(
    scored: Scored, release: Release, tmp_path: Path, capsys: Capture
) -> None:
    """Over a coded sheet it is an error, over the untouched one it changes nothing; a rating of a reply that isn't in
    the run is an error.
    """
    path = scored({0: 1, 9: 1})
    sheet = export(path, release)
    before = sheet.read_bytes()
    export(path, release)
    assert sheet.read_bytes() == before
    sheet.write_bytes(before + b"x")
    command = ["ratings", "export", "--replies", str(path), "--dataset", str(release.path), "--out"]
    assert main([*command, str(sheet)]) == 2
    assert "already exists" in capsys.readouterr().err
    assert sheet.read_bytes() == before + b"x"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]), encoding="utf-8")
    assert main([*command, str(tmp_path / "s.csv")]) == 2
    assert "has a rating but is not in the run" in capsys.readouterr().err


def test_codes_are_counted_by_coder_and_category(
    scored: Scored, release: Release, tmp_path: Path, capsys: Capture
) -> None:
    """Spelling of spaces and case is forgiven; rows without a code are counted apart; the JSON holds no reply."""
    sheet = export(scored(dict.fromkeys(range(4), 1)), release)
    with pytest.raises(RunError, match="no row has a code; fill in the columns `code` and `coder`"):
        coding([sheet])
    done = coded(sheet, "done.csv", ["Context misread", "context_misread", "formulaic"], "Ann")
    out = tmp_path / "codes.json"
    assert main(["ratings", "import", str(done), "--json-file", str(out)]) == 0
    found = json.loads(out.read_text(encoding="utf-8"))
    assert (found["rows"], found["uncoded"], found["coders"]) == (3, 1, ["Ann"])
    assert (found["shared"], found["coefficients"]) == (0, None)
    counts = {code: sum(by.values()) for code, by in found["codes"]["Ann"].items()}
    assert counts == {"context_misread": 2, "formulaic": 1}
    assert "Reply" not in out.read_text(encoding="utf-8")
    assert "one coder" in capsys.readouterr().out


def test_two_coders_of_the_same_rows_agree_or_don_t(scored: Scored, release: Release, tmp_path: Path) -> None:
    """Alike on three of four: raw 0.75, and κ from a half and a quarter's shares: (0.75 − 0.5) / 0.5."""
    sheet = export(scored(dict.fromkeys(range(4), 1)), release)
    first, second = (
        coded(sheet, "a.csv", ["x", "x", "y", "y"], "Ann"),
        coded(sheet, "b.csv", ["x", "x", "y", "x"], "Bo"),
    )
    found = coding([first, second])
    assert found.coefficients is not None
    assert (found.shared, found.coefficients.raw.value, found.coefficients.cohen.value) == (4, 0.75, (0.75 - 0.5) / 0.5)
    assert "agreement on 4 replies" in text(found)
    apart = coding([coded(sheet, "c.csv", ["x", "x"], "Ann"), coded(sheet, "d.csv", ["", "", "x", "x"], "Bo")])
    assert (apart.shared, apart.coefficients) == (0, None)


def test_a_sheet_saved_with_semicolons_is_read(scored: Scored, release: Release, tmp_path: Path) -> None:
    """As spreadsheets of many countries do, the warning's line filled up with empty cells."""
    sheet = export(scored({0: 1}, "One, two; three."), release)
    done = coded(sheet, "done.csv", ["formulaic"], "Ann")
    rows = list(csv.reader(io.StringIO(done.read_text(encoding="utf-8"), newline="")))
    with done.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=";").writerows([[*row, *[""] * (len(COLUMNS) - len(row))] for row in rows])
    assert coding([done]).codes["Ann"].keys() == {"formulaic"}


def test_bad_sheets_and_rows_are_named(scored: Scored, release: Release, tmp_path: Path, capsys: Capture) -> None:
    """With file and line; all problems at once: a reply coded twice by one person, a missing column, no such file."""
    low = export(scored({0: 1}), release)
    for changes, told in (
        ({"coder": ""}, "a code without a coder"),
        ({"repeat": "two"}, "repeat is 'two': Input should be a valid integer"),
        ({"category": "sadness"}, "category is 'sadness': Input should be 'suicidal_ideation', "),
        ({"rating": "9"}, "rating is '9'"),
        ({"id": ""}, "id is ''"),
    ):
        done = coded(low, "done.csv", ["x"], "Ann", **changes)
        with pytest.raises(RunError, match=told) as error:
            coding([done])
        assert f"{done}:" in str(error.value)
    done, short = coded(low, "done.csv", ["x"], "Ann"), tmp_path / "short.csv"
    short.write_text("id,repeat,category,rating,code\na,0,self_harm,1,x\n", encoding="utf-8")
    with pytest.raises(RunError) as error:
        coding([done, done, short, tmp_path / "nowhere.csv"])
    for told in ("Ann already coded", f"{short}: no column coder", "nowhere.csv: can't be read"):
        assert told in str(error.value)
    for content in ("", "\x00\x01", '"never closed', "a\nb\nc", f'"{WARNING}"\n', ",".join([*COLUMNS, "id"])):
        short.write_text(content, encoding="utf-8")
        assert main(["ratings", "import", str(short)]) == 2
        assert str(short) in capsys.readouterr().err, content


def test_more_coders_or_codes_than_can_be_compared_are_refused(tmp_path: Path, capsys: Capture) -> None:
    """A row for each of 60,000 coders took 27 GiB."""
    row, sheet = {"id": "a", "repeat": "0", "category": "self_harm", "rating": "1", "code": "x"}, tmp_path / "sheet.csv"
    for count, name, told in (
        (101, "coder", "101 raters; expected at most 100"),
        (1001, "code", "1,001 different labels; expected at most 1,000"),
    ):
        with sheet.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(row | {"id": f"a{n}", "coder": "Ann"} | {name: f"{name} {n}"} for n in range(count))
        assert main(["ratings", "import", str(sheet)]) == 2
        assert told in capsys.readouterr().err
