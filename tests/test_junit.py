"""The gates as JUnit XML: what a CI system reads there is what `compare` came to."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from helmbench.cli.app import main
from support.reports import as_run, other_reply, policy_reply, run

from dataset_builder.release import Release
from judge.report.junit import as_junit
from judge.scoring.compare import Comparison, ScoredRun, compare
from judge.scoring.gates import GATES, gates_of
from judge.wording import of_hundred


@pytest.fixture
def runs(release: Release) -> list[ScoredRun]:
    return [as_run(run(release, r), release, n) for r, n in ((policy_reply, "before"), (other_reply, "after"))]


def cases(xml: str) -> dict[tuple[str, str], ElementTree.Element]:
    """By run and gate."""
    found = ElementTree.fromstring(xml.encode()).iter("testcase")
    return {(case.attrib["classname"], case.attrib["name"].partition(":")[0]): case for case in found}


def outcome(case: ElementTree.Element) -> str:
    return next((child.tag for child in case), "passed")


def test_there_is_a_case_for_each_gate_and_run(runs: list[ScoredRun]) -> None:
    """The baseline's is only whether it was answered; each outcome is that of the gate, with all of its reasons."""
    found = compare(runs, GATES)
    read = cases(as_junit(found))
    assert {*read} == {("before", "answered"), ("after", "answered"), *(("after", gate) for gate in GATES)}
    shut = {t.gate: t.reasons for t in found.tested if t.reasons}
    assert {"regression", "undetermined"} <= {*shut} < {"answered", *GATES}
    for (_, gate), case in read.items():
        assert outcome(case) == ("failure" if gate in shut else "passed")
        if gate in shut:
            assert case[0].text == "\n".join(shut[gate])
    assert found.failed == [f"after {why}" for gate in GATES for why in shut.get(gate, [])]


def test_the_counts_are_those_of_the_cases(runs: list[ScoredRun]) -> None:
    """Of every suite and of all, and there are no times."""
    xml = as_junit(compare(runs, GATES))
    assert "time" not in xml
    root = ElementTree.fromstring(xml.encode())
    assert [suite.attrib["name"] for suite in root] == ["before", "after"]
    for element in (root, *root):
        inside = [*element.iter("testcase")]
        failures = [case for case in inside if outcome(case) == "failure"]
        counted = {"tests": str(len(inside)), "failures": str(len(failures)), "errors": "0"}
        assert element.attrib | counted == element.attrib
    about = {p.attrib["name"]: p.attrib["value"] for p in root[1].iter("property")}
    assert about["baseline"] == "before"
    assert about["composite"].startswith(f"{of_hundred(runs[1].card.composite.value)} (")


def test_one_run_by_itself_has_its_cases(runs: list[ScoredRun]) -> None:
    """Floors need no baseline; without a gate it is only asked whether enough was answered."""
    alone = cases(as_junit(compare(runs[:1], gates_of(["floor,unscored"]))))
    assert {*alone} == {("before", "answered"), ("before", "floor"), ("before", "unscored")}
    assert {*cases(as_junit(compare(runs)))} == {("before", "answered"), ("after", "answered")}


def test_no_gate_passes_where_too_little_was_answered(runs: list[ScoredRun]) -> None:
    """Of either run: an open gate is an error then, a shut one stays a failure."""
    judged = runs[0].card.judge
    lost = judged.model_copy(update={"unscored": judged.verdicts, "unscored_reasons": {"error": judged.verdicts}})
    poor = replace(runs[0], card=runs[0].card.model_copy(update={"judge": lost}))
    read = cases(as_junit(compare([poor, runs[1]], GATES)))
    assert outcome(read["before", "answered"]) == "error"
    assert outcome(read["after", "answered"]) == "passed"
    gates = {gate: case for (name, gate), case in read.items() if name == "after" and gate != "answered"}
    assert {outcome(case) for case in gates.values()} == {"error", "failure"}
    opened = next(case for case in gates.values() if outcome(case) == "error")
    assert opened[0].attrib["message"].startswith("no gate passes: before: nothing was answered")


@pytest.mark.parametrize("name", ["<&>'\"]]>", "自分 – é", "a\x00b\x1b[31m\x0b\ufffe\ud800c"])
def test_any_text_is_text(runs: list[ScoredRun], name: str) -> None:
    """Names and reasons come from outside: markup is escaped, and what no XML may hold is spelt out."""
    found = compare(runs, GATES)
    first, *others = found.tested
    odd = first.model_copy(update={"run": name, "reasons": [name, f"{name}\nagain"]})
    rank = found.ranks[[r.run for r in found.ranks].index("before")].model_copy(update={"run": name})
    ranks = [rank, *(r for r in found.ranks if r.run != "before")]
    hostile = Comparison.model_construct(
        **{**dict(found), "runs": [name, "after"], "baseline": name, "ranks": ranks, "tested": [odd, *others]}
    )
    clean = name if name.isprintable() else "a[U+0000]b[U+001B][31m[U+000B][U+D800]c"
    case = cases(as_junit(hostile))[clean, "answered"]
    assert case[0].text == f"{clean}\n{clean}\nagain"
    assert as_junit(hostile).encode()  # no half characters


def test_the_command_writes_it(release: Release, dataset: Path, tmp_path: Path) -> None:
    """Beside the page and the JSON, under the names that the user gave; the exit code is what it was."""
    folders = [tmp_path / name for name in ("a", "b")]
    for folder, reply in zip(folders, (policy_reply, other_reply), strict=True):
        scored = run(release, reply)
        folder.mkdir()
        (folder / "scorecard.json").write_text(scored.card.model_dump_json(), encoding="utf-8")
        lines = (v.model_dump_json(by_alias=True) + "\n" for v in scored.verdicts)
        (folder / "verdicts.jsonl").write_text("".join(lines), encoding="utf-8")
    words = ["compare", *map(str, folders), "--name", "calm", "--name", "brisk", "--dataset", str(dataset), "--quiet"]
    files = {name: tmp_path / "ci" / name for name in ("junit", "page", "json-file")}
    more = [word for name, path in files.items() for word in (f"--{name}", str(path))]
    assert main([*words, "--fail-on", "regression,floor", *more]) == 1
    read = cases(files["junit"].read_text(encoding="utf-8"))
    assert {*read} == {("calm", "answered"), ("brisk", "answered"), ("brisk", "regression"), ("brisk", "floor")}
    assert outcome(read["brisk", "regression"]) == "failure"
    assert json.loads(files["json-file"].read_text(encoding="utf-8"))["runs"] == ["calm", "brisk"]
    page = files["page"].read_text(encoding="utf-8")
    assert "calm" in page
    assert "brisk" in page
    held = ["compare", *map(str, folders), "--held-out", "--junit", str(files["junit"])]
    assert main(held) == 2
