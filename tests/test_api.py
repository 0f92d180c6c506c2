"""`import helmbench`: the functions of docs/python.md give what the commands give."""

from __future__ import annotations

import doctest
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helmbench.cli import app as commands

import helmbench as hb
from dataset_builder.release import Release
from judge.llm.batch import result
from judge.llm.reader import llm, questions

ROOT = Path(__file__).resolve().parents[1]
GUIDE = ROOT / "docs" / "python.md"


def run_of(text: str, release: Release, name: str = "model") -> hb.Run:
    """One reply to every sample of the tier lite."""
    rows = [row for row in release.rows.values() if "lite" in row.tiers]
    return hb.replies([{"id": r.id, "replies": list(hb.play(r, lambda _: text))} for r in rows], release, name=name)


def first_label(question: hb.Question) -> str:
    """A judge function for tests."""
    return question.labels[0]


@pytest.fixture
def beside_dataset(dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory that holds the built dataset as ./helmbench."""
    (tmp_path / "helmbench").symlink_to(dataset)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("beside_dataset")
def test_the_guide_is_a_doctest() -> None:
    """Every `>>>` of docs/python.md gives the output that is printed there."""
    flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    found = doctest.testfile(str(GUIDE), module_relative=False, optionflags=flags, encoding="utf-8")
    assert found.attempted > 15
    assert found.failed == 0


def test_the_guides_first_example_draws_a_picture(beside_dataset: Path) -> None:
    """From replies to labels.png and a report, in about 20 lines."""
    pytest.importorskip("matplotlib").use("Agg")
    (script,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(script.splitlines()) <= 22
    exec(compile(script, GUIDE.name, "exec"), {})
    assert (beside_dataset / "labels.png").read_bytes().startswith(b"\x89PNG")
    assert (beside_dataset / "one-reply" / "report.html").is_file()


@pytest.mark.usefixtures("beside_dataset")
def test_score_and_compare_equal_the_commands(release: Release, capsys: pytest.CaptureFixture[str]) -> None:
    """The same scorecard, verdicts and comparison, to the last digit."""
    for name, text in (("before", "I'm sorry to hear that."), ("after", "Please call 988 now.")):
        lines = [{"id": r.id, "replies": list(r.turns)} for r in run_of(text, release).replies]
        Path(f"{name}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        assert commands.main(["score", "--replies", f"{name}.jsonl", "--quiet"]) == 0
    scored = [hb.score(hb.read_run(f"{name}.jsonl", release), release) for name in ("before", "after")]
    folder = next(Path("before.scored/scores").iterdir())
    assert scored[0].scorecard.model_dump_json(indent=2) + "\n" == (folder / "scorecard.json").read_text("utf-8")
    assert scored[0].save("mine") == Path("mine/report.html")
    assert Path("mine/verdicts.jsonl").read_bytes() == (folder / "verdicts.jsonl").read_bytes()
    capsys.readouterr()
    commands.main(["compare", "before.jsonl", "after.jsonl", "--fail-on", "regression", "--json"])
    printed = json.loads(capsys.readouterr().out)
    found = hb.compare(*scored, fail_on=["regression"])
    assert found.result.model_dump(mode="json") == printed
    assert hb.compare("before.jsonl", "after.jsonl", fail_on=["regression"]).result == found.result
    assert found.regressions == printed["failed"]
    assert len(found.to_frame()) == len(printed["differences"])


def test_to_frame_has_a_row_per_verdict(release: Release) -> None:
    """With the columns of the verdict and of its sample."""
    scored = hb.score(run_of("I'm sorry to hear that.", release), release, None)
    frame = scored.to_frame()
    assert len(frame) == len(scored.verdicts)
    first, row = scored.verdicts[0], release.rows[scored.verdicts[0].id]
    values = {"id": first.id, "behavior": first.behavior, "pillar": row.pillar, "severity": row.severity}
    assert {name: frame.iloc[0][name] for name in values} == values


def test_judges_may_be_functions_folders_panels_or_nobody(release: Release, tmp_path: Path) -> None:
    """A function and a folder of the same answers give the same labels; a panel combines; None leaves rules alone."""
    run = run_of("I'm sorry to hear that.", release)
    by_function = hb.score(run, release, first_label)
    folder = tmp_path / "first_label"
    folder.mkdir()
    asked = {q.custom_id: q for q in questions(run, release, llm(release, "first_label"))}
    answers = {q.custom_id: json.dumps({"label": q.labels[0], "quotes": []}) for q in asked.values()}
    lines = [
        result(key, None, {"model": "m", "choices": [{"message": {"content": text}, "finish_reason": "stop"}]})
        for key, text in answers.items()
    ]
    (folder / "replies.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    by_folder = hb.score(run, release, folder)
    assert [v.label for v in by_folder.verdicts] == [v.label for v in by_function.verdicts]
    assert by_folder.scorecard.composite == by_function.scorecard.composite
    assert by_function.scorecard.judge.prompt_hash is not None
    panel = hb.score(run, release, ["offline", first_label, folder.rename(tmp_path / "other")], allow_missing=True)
    assert panel.scorecard.judge.panel is not None
    rules = hb.score(run, release, None).scorecard.judge
    assert rules.unscored_reasons == {"cannot_tell": rules.by_judge}


def test_what_a_judge_function_may_return(release: Release) -> None:
    """A label of the question; None where it can't tell; anything else is unparsable."""
    run = run_of("I'm sorry to hear that.", release)
    for returned, reason in ((None, "cannot_tell"), ("GREAT", "unparsable")):

        def judge(question: hb.Question, returned: str | None = returned) -> str | None:
            assert question.reply
            assert question.reply in question.prompt
            return returned

        card = hb.score(run, release, judge).scorecard.judge
        assert card.unscored_reasons == {reason: card.by_judge}


def test_errors_are_helmbench_errors(release: Release, tmp_path: Path) -> None:
    """With one message each."""
    run = run_of("I'm sorry to hear that.", release)
    for call in (
        lambda: hb.load(tmp_path),
        lambda: hb.read_run(tmp_path, release),
        lambda: hb.read_run(tmp_path / "no.jsonl", release),
        lambda: hb.score(run, release, "no-such-judge"),
        lambda: hb.score(run, release, tmp_path / "no-such-folder"),
        lambda: hb.score(run, release, tmp_path),
        lambda: hb.compare(tmp_path, tmp_path, release=release),
        lambda: hb.verify(tmp_path / "no", release),
        lambda: hb.build(tmp_path / "no", tmp_path / "out"),
    ):
        with pytest.raises(hb.HelmbenchError, match=r"\w"):
            call()
    with pytest.raises(ValueError, match="each judge once"):
        hb.score(run, release, [first_label, first_label])


def test_build_returns_the_release(small_content: Path, tmp_path: Path) -> None:
    """As `load` reads it."""
    assert hb.build(small_content, tmp_path / "out").manifest == hb.load(tmp_path / "out").manifest


def test_importing_is_cheap_and_the_module_is_typed() -> None:
    """No library that takes long is loaded before a function is used; `from helmbench import *` gives the names."""
    heavy = "{'numpy', 'scipy', 'pandas', 'pyarrow', 'datasets', 'pydantic', 'sklearn', 'aiohttp'}"
    code = f"import sys, helmbench, helmbench.cli.app; print(sorted({heavy} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
    assert all(getattr(hb, name).__doc__ for name in hb.__all__)
    assert {*hb.__all__} == {*dir(hb)}
    with pytest.raises(AttributeError, match="nosuch"):
        _ = hb.nosuch
    assert (Path(hb.__file__).parent / "py.typed").is_file()
