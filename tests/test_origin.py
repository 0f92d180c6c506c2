"""Nothing is overwritten unasked: judges' scores of one run stand side by side, and what takes their place is named."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from helmbench.cli.app import main
from support.scores import scores
from support.submission_runs import STAMP, answer, build, log, score

from dataset_builder.release import Release
from judge.judges import identities, scores_name
from judge.offline.judge import NAME
from judge.pipeline import REPORT
from judge.replies.schema import RunError
from judge.report.page import TRANSCRIPTS
from judge.schema import Scorecard
from judge.scoring.stored import SCORECARD, SUMMARY, VERDICTS, find

CARD = Path("out", SCORECARD)
WRITTEN = {VERDICTS, SCORECARD, SUMMARY, REPORT, TRANSCRIPTS}

LATER = "2026-11-22T08-00-00.000000"
FLAGS = ["--contact-name", "A", "--contact-address", "a@b.org", "--organization", "acme", "--model", "m"]
FLAGS += ["--revision", "1", "--access", "api", "--relation", "independent", "--trained-on-benchmark", "no"]


@pytest.fixture(scope="module")
def small(small_content: Path, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """A release of seven scenarios."""
    return build(small_content, tmp_path_factory.mktemp("built") / "helmbench")


@pytest.fixture(scope="module")
def scored(small: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that the offline judge has scored, and a language model's answers about it; read-only by agreement."""
    run = log(tmp_path_factory.mktemp("runs") / "north", small)
    answer(run, small, "org/judge-1", repeats=3)
    score(run, small)
    return run


@pytest.fixture
def run(scored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: Release) -> Path:
    """A copy of it, where commands find the dataset; its path is `north`."""
    shutil.copytree(scored, tmp_path / "north")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HELMBENCH_DATASET", str(small.path))
    return Path("north")


def files(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def later(run: Path, release: Release, pillars: tuple[str, ...] = ("pillar1",)) -> tuple[int, int]:
    """A later run of these tasks alone in the same folder; how many samples both runs have."""
    results = json.loads((run / f"results_{STAMP}.json").read_text())
    whole = sum(n["effective"] for n in results["n-samples"].values())
    kept = [name for name in results["configs"] if any(p in name for p in pillars)]
    for part in ("configs", "versions", "n-samples"):
        results[part] = {name: results[part][name] for name in kept}
    (run / f"results_{LATER}.json").write_text(json.dumps(results))
    for name in kept:
        shutil.copy(run / f"samples_{name}_{STAMP}.jsonl", run / f"samples_{name}_{LATER}.jsonl")
    return whole, sum(n["effective"] for n in results["n-samples"].values())


def test_judges_stand_side_by_side(run: Path) -> None:
    """Another judge, another number of repeats and a panel have folders of their own; each leaves the others' bytes."""
    before = files(scores(run))
    for words in (["org/judge-1"], ["org/judge-1", "--repeats", "3"], ["org/judge-1", "--judge", "offline"]):
        assert main(["score", str(run), "--quiet", "--judge", *words]) == 0
    names = {p.name for p in (run / "scores").iterdir()}
    assert names == {NAME, "org_judge-1", "org_judge-1~x3", f"org_judge-1+{NAME}"}
    assert files(run / "scores" / NAME) == before
    assert before.keys() == WRITTEN
    assert not WRITTEN & {p.name for p in run.iterdir()}


def test_a_folder_is_called_after_its_judges(small: Release) -> None:
    """As a path that is no other folder and that nothing hides; how they are asked belongs to it."""

    def named(names: list[str], wording: str = "judge", repeats: int = 1) -> str:
        return scores_name(identities(names, small, wording), repeats)

    assert named(["offline"], "judge-b", 3) == NAME  # it is asked in no words, and once
    assert named(["org/judge 1", "offline", "org/judge 1"], "judge-reason", 3) == f"org_judge_1+{NAME}~judge-reason~x3"
    assert [named([name]) for name in ("..", ".", "a~b+c")] == ["_.", "_", "a_b_c"]
    many = [f"a-judge-with-a-long-name-{n}" for n in range(20)]
    assert len(named(many)) < 200
    assert named(many) != named(many[::-1])


def test_a_run_of_several_judges_is_listed(run: Path, small: Release, capsys: pytest.CaptureFixture[str]) -> None:
    """Every command that reads scores ends with one error that says what to type; and that is enough."""
    score(run, small, "--judge", "org/judge-1", "--quiet")
    shutil.copytree(run, "south")
    capsys.readouterr()
    for words, code in (
        (["compare", "north", "south"], 2),
        (["report", "north"], 2),
        (["appropriateness", "north"], 2),
        (["ratings", "export", "north", "--out", "low.csv"], 2),
        (["submit", "north", *FLAGS], 1),
    ):
        assert main(words) == code
        said = capsys.readouterr().err
        assert f"north/scores/{NAME}  by {NAME}; results_{STAMP}.json, " in said
        assert "north/scores/org_judge-1  by org/judge-1; " in said
    one, other = f"scores/{NAME}", "scores/org_judge-1"
    assert main(["compare", f"north/{one}", f"north/{other}"]) == 2
    assert f"differ in judge ({NAME}, org/judge-1)" in capsys.readouterr().err
    assert main(["compare", f"north/{other}", f"south/{other}", "--page", "page.html"]) == 0
    assert "Replies that are not here" not in Path("page.html").read_text()
    before = files(Path("north", other))
    assert main(["report", f"north/{other}", "--quiet"]) == 0
    assert files(Path("north", other)) == before
    assert main(["submit", f"north/{one}", *FLAGS]) == 0
    assert f"using the scores in north/{one}, by {NAME}" in capsys.readouterr().out


def test_the_only_scores_are_taken_and_named(run: Path, small: Release, capsys: pytest.CaptureFixture[str]) -> None:
    """A run's folder, a folder above it, a file of replies and its folder; which scores were taken is said, unless
    --quiet.
    """
    shutil.copytree(run, "above/below/north")
    said = f", by {NAME}; results_{STAMP}.json, "
    assert main(["compare", "north", "above"]) == 0
    told = capsys.readouterr().err
    assert f"north: using the scores in north/scores/{NAME}{said}" in told
    assert f"above: using the scores in above/below/north/scores/{NAME}{said}" in told
    assert main(["compare", "north", "above", "--quiet"]) == 0
    assert capsys.readouterr().err == ""
    row = next(r for r in small.rows.values() if "lite" in r.tiers and len(r.messages) == 2)
    Path("mine.jsonl").write_text(json.dumps({"id": row.id, "reply": "I hear you."}) + "\n")
    assert main(["score", "--replies", "mine.jsonl", "--quiet"]) == 0
    named = [find(Path(p)).folder for p in ("mine.jsonl", "mine.scored", f"mine.scored/scores/{NAME}")]
    assert named == [Path("mine.scored/scores", NAME)] * 3
    with pytest.raises(RunError, match=r"run `helmbench score --replies other\.jsonl` first"):
        find(Path(shutil.copy("mine.jsonl", "other.jsonl")))


def test_a_part_never_replaces_the_whole(run: Path, small: Release, capsys: pytest.CaptureFixture[str]) -> None:
    """One pillar in the same folder: one error with both results files and their counts, and every way out works."""
    before = files(scores(run))
    whole, part = later(run, small)
    capsys.readouterr()
    assert main(["score", "north"]) == 2
    *taken, error = capsys.readouterr().err.splitlines()
    which = f"took results_{LATER}.json ({part} samples), the newest of 2 results files"
    assert taken == [f"north: {which}; --results FILE takes another"]
    assert error == (
        f"north/scores/{NAME}: contains the scores of results_{STAMP}.json ({whole} samples); the new ones are of "
        f"results_{LATER}.json ({part} samples). Nothing was written: score that run with --results "
        f"results_{STAMP}.json, write elsewhere with --out DIR, or replace what is there with --replace"
    )
    assert files(scores(run)) == before
    assert main(["score", "north", "--results", f"results_{STAMP}.json"]) == 0
    assert f"took results_{STAMP}.json ({whole} samples), one of 2 results files\n" in capsys.readouterr().err
    assert files(scores(run)) == before
    assert main(["score", "north", "--out", "part", "--quiet"]) == 0
    assert main(["score", "north", "--replace", "--quiet"]) == 0
    assert files(Path("part")) == files(scores(run)) != before
    source = Scorecard.model_validate_json(files(scores(run))["scorecard.json"]).source
    assert source
    assert (source.file, source.samples) == (f"results_{LATER}.json", part)


def test_what_was_scored_is_what_is_read(run: Path, small: Release, capsys: pytest.CaptureFixture[str]) -> None:
    """After a partial run into the same folder, reports, pages and submissions are still of the one with scores."""
    shutil.copytree(run, "before")
    later(run, small)
    for folder in ("before", "north"):
        assert main(["report", folder, "--out", f"report-{folder}", "--quiet"]) == 0
        assert main(["submit", folder, *FLAGS, "--out", f"sent-{folder}", "--date", "2026-11-23", "--quiet"]) == 0
    assert files(Path("report-north")) == files(Path("report-before"))
    sent = [{p.name: p.read_bytes() for p in Path(f"sent-{n}").rglob("*") if p.is_file()} for n in ("before", "north")]
    assert sent[0] == sent[1]
    assert main(["compare", "before", "north", "--page", "page.html", "--quiet"]) == 0
    assert "Replies that are not here" not in Path("page.html").read_text()


def test_a_judge_may_be_asked_of_an_earlier_run(run: Path, small: Release, capsys: pytest.CaptureFixture[str]) -> None:
    """--results goes with every command that takes a RUN_DIR, and into the commands that are named to go on with."""
    later(run, small)
    for command, more in (("requests", []), ("judge", ["--base-url", "http://127.0.0.1:1/v1"])):
        words = [command, "north", "--model", "org/judge-1", *more, "--results"]
        assert main([*words, f"north/results_{STAMP}.json"]) == 0
        said = capsys.readouterr()
        assert "nothing is missing; score with helmbench score north --results north/results_" in said.out
        assert f"took results_{STAMP}.json" in said.err
        assert main([*words, "results_0.json"]) == 2
        assert f"expected one of results_{STAMP}.json, results_{LATER}.json" in capsys.readouterr().err


def rewritten(path: Path, text: str) -> list[str]:
    path.write_text(text)
    return []


def other_run(run: Path) -> list[str]:
    path = next(run.glob("samples_*pillar1*.jsonl"))
    return rewritten(path, path.read_text().replace('"arg_2": {"finish": "stop"}', '"arg_2": {"finish": "length"}', 1))


def only_a_report(run: Path) -> list[str]:
    CARD.unlink()
    return []


def asked_thrice(run: Path) -> list[str]:
    assert main(["score", "north", "--judge", "org/judge-1", "--out", "out", "--replace", "--quiet"]) == 0
    return ["--judge", "org/judge-1", "--repeats", "3"]


def other_dataset(run: Path) -> list[str]:
    card = json.loads(CARD.read_text())
    card["dataset"] |= {"version": "0.0.9", "score_hash": "0" * 64}
    return rewritten(CARD, json.dumps(card))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (other_run, ", whose replies have changed. Nothing was written: write elsewhere"),
        (lambda run: ["--judge", "org/judge-1"], f", by {NAME}; the new ones are of results_{STAMP}.json"),
        (asked_thrice, "asked 3 times. Nothing was written"),
        (other_dataset, "on dataset 0.0.9 (000000000000); the new ones are of"),
        (lambda run: rewritten(CARD, "{"), "score the run again. Nothing was written"),
        (only_a_report, "out: contains another report, without its scores"),
    ],
)
def test_out_replaces_nothing_unasked(
    run: Path, capsys: pytest.CaptureFixture[str], change: Callable[[Path], list[str]], words: str
) -> None:
    """The same again does, in silence; others' scores stay to the byte, and --replace is the way."""
    out = ["--out", "out", "--quiet"]
    assert [main(["score", "north", *out]) for _ in range(2)] == [0, 0]
    more = change(run)
    capsys.readouterr()
    before = files(Path("out"))
    assert main(["score", "north", *out, *more]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert words in said
    assert files(Path("out")) == before
    assert main(["score", "north", *out, *more, "--replace"]) == 0
    assert files(Path("out"))["scorecard.json"] != before.get("scorecard.json")


def test_it_is_refused_before_anybody_is_asked(run: Path, small: Release) -> None:
    """No request is paid for scores that have no place: the closed port is never knocked at, which would end with 3."""
    assert main(["score", "north", "--judge", "org/judge-1", "--quiet"]) == 0
    later(run, small, ("pillar1", "pillar2"))
    live = ["--judge", "openai", "--model", "org/judge-1", "--base-url", "http://127.0.0.1:1/v1", "--max-retries", "0"]
    assert main(["score", "north", *live, "--prompt", "judge-b", "--quiet"]) == 3
    assert main(["score", "north", *live, "--quiet"]) == 2


def test_a_report_replaces_no_other(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of other scores, in a folder with scores or without; its own it does."""
    assert main(["score", "north", "--judge", "org/judge-1", "--quiet"]) == 0
    own, other = f"north/scores/{NAME}", "north/scores/org_judge-1"
    assert [main(["report", own, "--out", "out", "--quiet"]) for _ in range(2)] == [0, 0]
    before = files(Path("out"))
    assert main(["report", other, "--out", "out"]) == 2
    assert "out: contains another report" in capsys.readouterr().err
    assert main(["report", other, "--out", own]) == 2
    assert f"{own}: contains the scores of " in capsys.readouterr().err
    assert files(Path("out")) == before
    assert main(["report", other, "--out", "out", "--replace", "--quiet"]) == 0
    assert files(Path("out"))["summary.md"] == Path(other, "summary.md").read_bytes()


@pytest.mark.parametrize("linked", [f"scores/{NAME}", "scores"])
def test_a_link_out_of_the_run_leads_nowhere(run: Path, capsys: pytest.CaptureFixture[str], linked: str) -> None:
    """Whoever sent a run may have laid links to its user's folders: one line, exit 2, and nothing is written there. A
    folder that the user names may be a link.
    """
    place, own = run / linked, Path("own")
    place.rename("elsewhere")
    place.symlink_to(Path("elsewhere").absolute())
    inner = Path("elsewhere", NAME if linked == "scores" else "")
    (inner / REPORT).write_text("mine")
    before = files(inner)
    for words in (["score", "north"], ["score", "north", "--replace"], ["report", "north"]):
        capsys.readouterr()
        assert main([*words, "--quiet"]) == 2
        assert capsys.readouterr().err == f"north/{linked}: is a link; expected a folder of its own\n"
    assert files(inner) == before
    own.symlink_to(inner)
    assert main(["score", "north", "--out", "own", "--quiet"]) == 0
    assert own.is_symlink()
    assert files(inner)[REPORT] != b"mine"


def test_a_page_of_somebodys_stays(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is called as one of scores, in a folder without any, is not written over unasked."""
    for name, command in ((REPORT, "score"), (VERDICTS, "score"), (TRANSCRIPTS, "report")):
        Path(name).mkdir()
        Path(name, name).write_text("mine")
        assert main([command, "north", "--out", name]) == 2
        said = f"{name}: contains another report, without its scores. Nothing was written"
        assert said in capsys.readouterr().err
        assert files(Path(name)) == {name: b"mine"}


def test_what_else_a_folder_holds_stays(run: Path) -> None:
    """Notes in the folder of the scores, and scores in a folder of other things: both are there afterwards."""
    for out, more in ((scores(run), []), (Path("mixed"), ["--out", "mixed"])):
        out.mkdir(exist_ok=True)
        (out / "notes.txt").write_text("mine")
        for _ in range(2):
            assert main(["score", "north", "--quiet", *more]) == 0
        assert files(out) == files(scores(run)) | {"notes.txt": b"mine"}


# Scores in a forked child for every n, which kills itself before it opens the n-th file to write below the scores, or
# moves the n-th.
KILLED = """
import os, signal, sys
from helmbench.cli.app import main
words, out = ["score", "north", "--quiet"], os.path.abspath("north/scores")
main(words)
def watched(n):
    left = [n]
    def hook(event, given):
        writes = event == "open" and isinstance(given[1], str) and set(given[1]) & set("wax+")
        moved = event in ("os.rename", "os.rmdir", "os.remove", "ctypes.dlsym")
        if moved or (writes and os.path.abspath(str(given[0])).startswith(out)):
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)
for n in range(1, 60, int(sys.argv[1])):
    for name in os.listdir(f"{out}/NAME"):
        with open(f"{out}/NAME/{name}", "a") as file:
            file.write(" \\n")
    pid = os.fork()
    if not pid:
        watched(n)
        os._exit(main(words))
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    ends = {open(f"{out}/NAME/{name}").read().endswith(" \\n") for name in os.listdir(f"{out}/NAME")}
    print(code, len(os.listdir(f"{out}/NAME")), *ends, flush=True)
    if code == 0:
        break
    main(words)
""".replace("NAME", NAME)


@pytest.mark.soak(short=6, full=1)
def test_a_killed_score_leaves_the_earlier_or_the_new_ones(run: Path, rounds: int) -> None:
    """Killed before each file that it writes, moves or removes, or before every sixth: never a half. The earlier ones
    end with a blank.
    """
    done = subprocess.run([sys.executable, "-c", KILLED, str(rounds)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    seen = [line.split() for line in done.stdout.splitlines()]
    assert {tuple(line[1:]) for line in seen[:-1]} == {("5", "True"), ("5", "False")}
    assert seen[-1] == ["0", "5", "False"]
    assert {line[0] for line in seen[:-1]} == {"-9"}
    assert len(seen) * rounds > 8
