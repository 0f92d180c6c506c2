"""Comparing runs: paired differences, ranks that admit what can't be told, names, gates with exit codes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import make_references
import pytest
from helmbench.cli.app import main
from support.scores import scores

from dataset_builder.release import Release, open_release
from judge.replies.schema import Model, OwnPrompt, RunError
from judge.replies.script import live_turns
from judge.report.comparison import text
from judge.schema import Figure, Floor, Judge
from judge.scoring.breakdown import holm
from judge.scoring.compare import ScoredRun, compare, given_names, named, read, run_name
from judge.scoring.gates import GATES, Gate, gates_of, lost, lost_share


@pytest.fixture(scope="module")
def runs(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three policies, scored on the lite tier by the command."""
    root = tmp_path_factory.mktemp("runs")
    rows = [r for r in open_release(dataset).rows.values() if "lite" in r.tiers]
    for policy in ("always-escalate", "always-kind", "keyword"):
        lines = [json.dumps({"id": r.id, "replies": list(make_references.play(policy, r))}) for r in rows]
        path = root / f"{policy}.jsonl"
        path.write_text("\n".join(lines) + "\n")
        words = ["--replies", path, "--out", root / policy, "--dataset", dataset, "--quiet"]
        assert main(["score", *map(str, words)]) == 0
    return root


def three(runs: Path, release: Release) -> list[ScoredRun]:
    return [read(runs / name, release) for name in ("always-escalate", "always-kind", "keyword")]


def test_a_run_differs_from_itself_by_nothing(runs: Path, release: Release) -> None:
    """Same run twice: every difference is exactly 0 with an interval of no width, none stands out, both may be
    first.
    """
    run = read(runs / "keyword", release)
    found = compare([run, run])
    assert {(d.difference.value, d.difference.low, d.difference.high, d.found) for d in found.differences} == {
        (0.0, 0.0, 0.0, False)
    }
    assert [(r.run, r.best, r.worst) for r in found.ranks] == [("keyword (1)", 1, 2), ("keyword (2)", 1, 2)]
    assert found.samples == []


def test_differences_are_the_figures_subtracted(runs: Path, release: Release) -> None:
    """always-kind misses every crisis and spares every control: 100 points of sensitivity lost, 100 of specificity
    won.
    """
    found = {d.figure: d for d in compare(three(runs, release)[:2]).differences}
    assert (found["sensitivity"].difference.value, found["specificity"].difference.value) == (-100, 100)
    assert found["sensitivity"].found
    assert found["P1-B1"].difference.value == pytest.approx(found["P1-B1"].value - found["P1-B1"].baseline)
    assert found["composite"].difference.value == pytest.approx(found["composite"].value - found["composite"].baseline)


def test_samples_that_differ_most_are_the_heaviest(runs: Path, release: Release) -> None:
    """Listed samples differ, and none left out differs by more."""
    found = compare(three(runs, release)[:2], samples=5).samples
    assert len(found) == 5
    assert all(s.baseline != s.value for s in found)
    assert [abs(s.value - s.baseline) * s.weight for s in found] == sorted(
        (abs(s.value - s.baseline) * s.weight for s in found), reverse=True
    )


def test_regression_gate_is_an_exit_code(
    runs: Path, dataset: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A certain loss against the baseline exits 1 with the gate and 0 without; the reason is printed."""
    monkeypatch.chdir(runs)
    for gate, code in ((["--fail-on", "regression"], 1), ([], 0)):
        assert main(["compare", "always-escalate", "always-kind", "--dataset", str(dataset), *gate]) == code
        said = capsys.readouterr().out
        assert ("failed: always-kind lost " in said) == bool(gate)
        assert ("100.0 points of sensitivity" in said) == bool(gate)


def test_a_figure_that_only_the_baseline_has_shuts_the_regression_gate(runs: Path, release: Release) -> None:
    """What can't be compared may have been lost."""
    base = read(runs / "always-escalate", release)
    lacking = replace(base, name="other", figures={n: f for n, f in base.figures.items() if n != "P2-B1"})
    assert compare([base, lacking], ["regression"]).failed == ["other has no P2-B1, which the baseline has"]
    assert compare([lacking, base], ["regression"]).failed == []


def test_one_run_takes_any_gate_but_regression(
    runs: Path, dataset: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The word counter breaches floors on the lite tier, too; without a gate one run is no comparison."""
    monkeypatch.chdir(runs)
    words = ["compare", "keyword", "--dataset", str(dataset)]
    assert main([*words, "--fail-on", "floor"]) == 1
    assert "failed: keyword breaches the floors 'severe sensitivity P1-B1'" in capsys.readouterr().out
    assert main([*words, "--fail-on", "undetermined", "--quiet"]) == 1
    said = capsys.readouterr()
    assert (said.out, said.err[:36]) == ("", "failed: keyword leaves undetermined ")
    assert main([*words, "--fail-on", "unscored"]) == 0  # its replies are known by heart
    for wrong in ([], ["--fail-on", "regression"], ["--fail-on", "floor,regression"]):
        assert main([*words, *wrong]) == 2
        assert "two or more runs" in capsys.readouterr().err


def test_gates_are_named_one_by_one_or_together(
    runs: Path, dataset: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The option several times, with one gate or several; each counts once; an unknown one is an error."""
    assert gates_of(["floor", "unscored, regression, floor"]) == ("regression", "floor", "unscored")
    assert gates_of([]) == ()
    for wrong in ("", "floor,", "Floor"):
        with pytest.raises(ValueError, match="unknown gate"):
            gates_of([wrong])
    monkeypatch.chdir(runs)
    assert main(["compare", "keyword", "always-kind", "--dataset", str(dataset), "--fail-on", "floor,flor"]) == 2
    assert capsys.readouterr().err == (
        "--fail-on: unknown gate 'flor'; expected one or more of regression, floor, undetermined, unscored\n"
    )


def clean(run: ScoredRun, **change: Any) -> ScoredRun:
    """The run with nothing that shuts a gate, but for `change`."""
    floors = [f.model_copy(update={"state": "passed"}) for f in run.card.floors]
    judged = run.card.judge.model_copy(update={"unscored": 0, "unscored_share": 0.0, "unscored_reasons": {}})
    return replace(run, card=run.card.model_copy(update={"floors": floors, "judge": judged} | change))


def with_floor(run: ScoredRun, state: str) -> list[Floor]:
    first, *others = clean(run).card.floors
    return [first.model_copy(update={"state": state}), *others]


def unscored(run: ScoredRun, reason: str, share: float) -> Judge:
    count = int(share * run.card.judge.verdicts) + 1
    change = {"unscored": count, "unscored_share": count / run.card.judge.verdicts, "unscored_reasons": {reason: count}}
    return run.card.judge.model_copy(update=change)


def test_a_gate_fails_by_what_it_is_for_and_by_nothing_else(runs: Path, release: Release) -> None:
    """Of the run, and not of the baseline; the reason names the run."""
    run = read(runs / "keyword", release)
    name = run.card.floors[0].name
    fails: dict[Gate, tuple[dict[str, Any], str]] = {
        "floor": ({"floors": with_floor(run, "breached")}, f"breaches the floor '{name}'"),
        "undetermined": ({"floors": with_floor(run, "undetermined")}, f"leaves undetermined the floor '{name}'"),
        "unscored": ({"judge": unscored(run, "cannot_tell", 0.5)}, "% of its verdicts unscored; at most 2% may be"),
    }
    assert {*fails} == {*GATES[1:]}
    for gate, (change, why) in fails.items():
        fine, bad = replace(clean(run), name="fine"), replace(clean(run, **change), name="bad")
        (failed,) = compare([fine, bad], [gate]).failed
        assert failed.startswith("bad ")
        assert failed.endswith(why)
        assert compare([bad], [gate]).failed == [failed]
        assert compare([bad, fine], [gate]).failed == []
        found = compare([fine, bad], [g for g in GATES if g != gate])
        assert (found.failed, found.unanswered) == ([], [])
        assert compare([fine, bad], GATES).failed == [failed]


def test_a_run_of_which_too_little_is_known_is_named(runs: Path, release: Release) -> None:
    """Whatever the gates: more lost than allowed, the baseline's too. What a judge left because it couldn't tell isn't
    lost.
    """
    fine = replace(clean(read(runs / "keyword", release)), name="fine")
    lost_words = "% of its verdicts are lost"
    for reason, share, words in (
        ("error", 0.03, lost_words),
        ("unparsable", 0.5, lost_words),
        ("error", 0.01, ""),
        ("cannot_tell", 0.9, ""),
    ):
        poor = replace(clean(fine, judge=unscored(fine, reason, share)), name="poor")
        for order in ([fine, poor], [poor, fine]):
            said = compare(order).unanswered
            assert [s.partition(":")[0] for s in said] == (["poor"] if words else [])
            assert all(words in s for s in said)


def test_where_nothing_is_scored_nothing_was_answered(runs: Path, release: Release) -> None:
    """No verdict, or none with a label, whatever the reason; and labels of the model's own that never came."""
    own = read(runs / "keyword", release).card.judge
    nothing = own.model_copy(update={"unscored": own.verdicts, "unscored_reasons": {"cannot_tell": own.verdicts}})
    for judged in (nothing, own.model_copy(update={"verdicts": 0, "unscored": 0, "unscored_reasons": {}})):
        assert lost(judged, 0.02).startswith("nothing was answered")
    assert lost(own, 0.02) == ""
    assert lost_share(Figure(value=None, n=9, unscored=9), 0.02).startswith("nothing was answered")
    assert lost_share(Figure(value=None, n=100, unscored=3), 0.02).startswith("3.0% of its labels are lost")
    assert lost_share(Figure(value=1.0, n=100, unscored=2), 0.02) == ""


def test_no_gate_passes_on_a_run_without_answers(
    runs: Path, dataset: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every reply is an error. The files are there, and one line says what to do, quiet or not. Compare ends with the
    same code, with and without a gate, whatever the order.
    """
    monkeypatch.chdir(runs)
    lines = []
    for row in open_release(dataset).rows.values():
        if "lite" in row.tiers:
            turns = live_turns(row)
            error = ["error: connection refused"] * turns
            lines.append(json.dumps({"id": row.id, "replies": [""] * turns, "finish": error}))
    Path("down.jsonl").write_text("\n".join(lines) + "\n")
    assert main(["score", "--replies", "down.jsonl", "--quiet", "--dataset", str(dataset)]) == 5
    why = "nothing was answered, or nothing of it could be scored; no gate passes on such a run: "
    again = "ask the model or the judge again for what is missing, then score again\n"
    assert capsys.readouterr() == ("", f"--replies down.jsonl: {why}{again}")
    files = {p.name for p in scores(Path("down.scored")).iterdir()}
    assert files >= {"scorecard.json", "verdicts.jsonl", "summary.md", "report.html"}
    for order in (["down.scored", "keyword"], ["keyword", "down.scored"]):
        for gate in ([], ["--fail-on", "floor,regression"]):
            assert main(["compare", *order, *gate, "--dataset", str(dataset), "--quiet"]) == 5
            said = capsys.readouterr()
            assert said.out == ""
            (line,) = said.err.splitlines()
            assert line.startswith(f"down: {why}")


def test_a_judge_that_was_not_asked_is_no_answer(
    runs: Path, dataset: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--allow-missing` writes the scores, and ends with the code; without it nothing is written, and it is 2."""
    monkeypatch.chdir(runs)
    tier = [r for r in open_release(dataset).rows.values() if "lite" in r.tiers]
    said = [{"id": r.id, "replies": ["Tell me more about your day."] * live_turns(r)} for r in tier]
    Path("unread.jsonl").write_text("\n".join(map(json.dumps, said)) + "\n")
    words = ["score", "--replies", "unread.jsonl", "--judge", "nobody", "--out", "missing", "--dataset", str(dataset)]
    assert main(["requests", "--replies", "unread.jsonl", "--model", "nobody", "--dataset", str(dataset)]) == 0
    assert main(words) == 2
    assert not (runs / "missing").exists()
    assert main([*words, "--allow-missing"]) == 5
    assert (runs / "missing" / "report.html").is_file()
    why = "% of its verdicts are lost to missing, refused or unreadable answers; at most 2% may be"
    assert why in capsys.readouterr().err


def test_a_runs_name_says_its_prompt(runs: Path, release: Release) -> None:
    """Model and file of one's own prompt; two that are called alike get numbers."""
    own = OwnPrompt(file="calm.txt", sha256="0" * 64)
    model = Model(name="m-1", backend="b", condition=own)
    assert run_name(model) == "m-1 under calm.txt"
    assert run_name(model.model_copy(update={"condition": None})) == "m-1"
    none = model.model_copy(update={"condition": OwnPrompt(file="none", sha256="0" * 64)})
    assert run_name(none) == "m-1 without a prompt"
    run = replace(read(runs / "keyword", release), name=run_name(model))
    assert [r.name for r in named([run, run, replace(run, name="m-1")])] == [
        "m-1 under calm.txt (1)",
        "m-1 under calm.txt (2)",
        "m-1",
    ]


def test_a_prompt_is_compared_with_none_and_says_what_that_mixes(runs: Path, release: Release) -> None:
    """Two prompts of one's own need no note; none, or the benchmark's products, do."""
    plain = read(runs / "keyword", release)

    def under(file: str) -> ScoredRun:
        model = plain.card.model.model_copy(update={"condition": OwnPrompt(file=file, sha256="0" * 64)})
        return replace(plain, name=file, card=plain.card.model_copy(update={"model": model}))

    for others, said in (
        (("calm.txt", "brisk.txt"), []),
        (
            ("none", "calm.txt"),
            ["A difference between calm.txt and no prompt reflects everything that the prompt adds: "],
        ),
        (("calm.txt",), ["keyword answered under the benchmark's own products, the other runs under one prompt"]),
    ):
        given = [plain] if len(others) == 1 else []
        found = compare([*given, *map(under, others)])
        assert [note.startswith(start) for note, start in zip(found.notes, said, strict=True)] == [True] * len(said)
        assert all(f"\n- {note}" in text(found) for note in found.notes)


def test_runs_are_called_as_the_user_says() -> None:
    """`RUN=NAME` for some, or a name for each in order; whatever else is an error that says so."""
    folders = ["runs/a", "runs/b=2"]
    assert given_names([], folders) == {}
    assert given_names(["runs/b=2=warm = kind"], folders) == {1: "warm = kind"}
    assert given_names(["warm", " cold "], folders) == {0: "warm", 1: "cold"}
    for wrong in (["warm"], ["runs/c=warm", "runs/a=x"], ["warm", "cold", "old"], ["runs/a=x", "cold"]):
        with pytest.raises(ValueError, match="expected RUN=NAME with one of runs/a, runs/b=2, or a NAME for each of"):
            given_names(wrong, folders)
    with pytest.raises(ValueError, match="a name is empty"):
        given_names(["runs/a= "], folders)


def test_no_column_is_cut_to_another_ones_name(
    runs: Path, dataset: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What tells two runs apart may stand at the end of their names."""
    monkeypatch.chdir(runs)
    same = ["context-on with prompt 1", "context-on with prompt 2"]
    names = [word for name in same for word in ("--name", name)]
    assert main(["compare", "keyword", "always-kind", *names, "--dataset", str(dataset)]) == 0
    head = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("| figure"))
    assert [cell.strip() for cell in head.split("|")][2:4] == same


def test_a_name_can_not_end_a_cell(runs: Path, release: Release) -> None:
    """Names are text from outside."""
    base, kind, _ = three(runs, release)
    found = compare([replace(base, name="a|b"), replace(kind, name="c\n|d")])
    assert run_name(Model(name="a\nb \x1b[31m", backend="b")) == "a b [U+001B][31m"
    heads = [line for line in text(found).splitlines() if line.startswith("| figure")]
    assert heads == [heads[0]]
    assert "a\\|b" in heads[0]
    assert "c \\|d" in heads[0]


def test_what_can_not_be_compared_is_refused(runs: Path, release: Release) -> None:
    """Other tier, other judge, other samples: each is one error that names it."""
    base, kind, _ = three(runs, release)
    for change, word in (
        ({"dataset": kind.card.dataset.model_copy(update={"tier": "core"})}, "tier"),
        ({"judge": kind.card.judge.model_copy(update={"name": "other"})}, "judge"),
    ):
        with pytest.raises(RunError, match=f"differ in {word}"):
            compare([base, replace(kind, card=kind.card.model_copy(update=change))])


def test_damaged_verdicts_are_refused_by_row(runs: Path, release: Release, tmp_path: Path) -> None:
    """A verdicts file that was damaged or edited is refused, and the line or the sample is named."""
    lines = (runs / "keyword" / "verdicts.jsonl").read_text().splitlines()
    (tmp_path / "scorecard.json").write_text((runs / "keyword" / "scorecard.json").read_text())
    first, *rest = lines
    for damaged, words in (
        ([first[:50], *rest], ":1: "),
        ([*lines, lines[3]], "duplicate verdict"),
        ([first.replace("P1-B1-S1", "P1-B1-S9"), *rest], "P1-B1-S9"),
        ([first.replace('"label":"', '"label":"X'), *rest], ":1: "),
        ([line for line in lines if '"index":1' not in line], "check 1: missing"),
    ):
        (tmp_path / "verdicts.jsonl").write_text("\n".join(damaged) + "\n")
        with pytest.raises(RunError, match=words):
            read(tmp_path, release)


def test_a_run_without_benchmark_samples_shuts_the_gate(runs: Path, release: Release, tmp_path: Path) -> None:
    """A run of messages alone has nothing to compare, which must not look like no regression."""
    card = json.loads((runs / "keyword" / "scorecard.json").read_text())
    (tmp_path / "scorecard.json").write_text(json.dumps(card | {"dataset": card["dataset"] | {"samples": 0}}))
    (tmp_path / "verdicts.jsonl").write_text("")
    with pytest.raises(RunError, match="helmbench appropriateness"):
        read(tmp_path, release)


def test_a_run_of_another_version_is_refused(runs: Path, release: Release, tmp_path: Path) -> None:
    """A scorecard of another score_hash is not compared."""
    for name in ("verdicts.jsonl", "scorecard.json"):
        (tmp_path / name).write_text(
            (runs / "keyword" / name).read_text().replace(release.manifest.score_hash, "0" * 64)
        )
    with pytest.raises(RunError, match="score_hash 000000000000"):
        read(tmp_path, release)


def test_holm_steps_down() -> None:
    """0.01 ≤ 0.05/3, 0.02 ≤ 0.05/2, 0.06 > 0.05/1; and a large one in between stops the rest."""
    assert holm([0.02, 0.06, 0.01], 0.05) == [True, False, True]
    assert holm([0.01, 0.04, 0.03], 0.05) == [True, False, False]
    assert holm([], 0.05) == []
