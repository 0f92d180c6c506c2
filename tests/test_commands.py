"""The commands in README.md and docs/ run as printed, block by block, on files named as the pages name them."""

from __future__ import annotations

import contextlib
import csv
import glob
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import reference_server
from helmbench.cli.app import main
from support import labelled_sets, submission_runs
from support.judge_server import JudgeServer, Said, said, stopped_at_the_end

from dataset_builder.book.page import content_hash
from dataset_builder.book.review import FORMAT
from dataset_builder.reading.load import load
from dataset_builder.reading.signing import text_hash
from dataset_builder.release import Release

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# What is replaced in a command: addresses of a model and of a judge, the model's name, and absolute paths.
MODEL_HOST = r"http://localhost:8000/v1|http://127\.0\.0\.1:8000/v1|https://HOST/v1"
JUDGE_HOST = r"https://…/v1|(?<=--base-url )…|http://127\.0\.0\.1:8001/v1"
REPLACED = {"model=NAME": "model=keyword", "/tmp/bhh": "CHECKOUT", "/fast/disk/": "", "…/NAME/…": "*/*/*"}
REPLACED["--set bhh-ratings"] = "--set CHECKOUT/bhh-ratings.yaml"  # whose files needn't be the published ones
OWN_CONTENT = ("build", "book", "check", "review")  # they get --content with seven scenarios, to be quick
# Not run: excerpts with …, GPUs, downloads, what changes the installation, labels that a browser saves, and runs on a
# corpus (tests/test_corpus_tasks.py).
NOT_RUN = re.compile(
    r" … |\[--|--(model|judge) (vllm|hf)[: ]|model=ORG/NAME|counselbench|field fetch|read therapists|tasks --register|"
    r"annotate import|--messages"
)
GATES = {0, 1, 5}  # exit codes of --fail-on
MAPPING = "name: kettles\ndate: 2026-11-01\nsources:\n- {name: forum, path: forum.jsonl, fields: {text: body}}\n"


def blocks() -> Iterator[tuple[str, list[str]]]:
    """Each page's shell blocks that have commands to run."""
    for page in PAGES:
        for block in re.findall(r"^```sh.*?\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
            lines = [re.sub(r"\s+# .*", "", line) for line in block.replace("\\\n", " ").splitlines()]
            runs = [s for s in lines if re.match(r"(\w+=\S+ )?(helmbench|lm_eval) ", s) and not NOT_RUN.search(f"{s} ")]
            if runs:
                yield page.name, runs


def answer(body: dict[str, Any], attempt: int = 1) -> Said:
    """A judge that gives the first label offered."""
    fields = body["response_format"]["json_schema"]["schema"]["properties"]
    return said(json.dumps({name: own["enum"][0] if "enum" in own else [] for name, own in fields.items()}))


def answer_batch(requests: Path, folder: Path) -> None:
    """Another engine answers a batch file."""
    lines = [json.loads(line) for line in requests.read_text(encoding="utf-8").splitlines()]
    replies = [
        {"id": "1", "custom_id": q["custom_id"], "error": None}
        | {"response": {"status_code": 200, "body": json.loads(answer(q["body"]).body)}}
        for q in lines
    ]
    (folder / "replies-1.jsonl").write_text("".join(json.dumps(r) + "\n" for r in replies), encoding="utf-8")


@pytest.fixture(scope="module")
def release(small_content: Path, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """Seven scenarios."""
    return submission_runs.build(small_content, tmp_path_factory.mktemp("commands") / "helmbench")


@pytest.fixture(scope="module")
def desk(release: Release, small_content: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the pages talk about."""
    desk = tmp_path_factory.mktemp("desk")
    run = submission_runs.log(desk / "runs" / "NAME", release, tier="core", messages=True)
    shutil.copytree(run, desk / "RUN")
    for judge in ("A", "B"):
        submission_runs.answer(desk / "RUN", release, judge, repeats=3)
    for name in ("runs/ORG__NAME", "demo/keyword"):
        shutil.copytree(run, desk / name)
    submission_runs.score(desk / "demo" / "keyword", release)
    submission_runs.answer(run, release, "JUDGE")
    submission_runs.answer(run, release, "JUDGE-SNAPSHOT")
    submission_runs.measure(run, release, "JUDGE")
    submission_runs.measure(run, release, "JUDGE-SNAPSHOT")
    shutil.copytree(run, scored := desk / "runs" / "A")
    submission_runs.score(scored, release, "--judge", "JUDGE")
    for name in ("B", "BEFORE/NAME", "AFTER/NAME", "prompt-1/NAME", "prompt-2/NAME"):
        shutil.copytree(scored, desk / "runs" / name)
    about = ["--about", str(ROOT / "docs" / "about.example.yaml"), "--revision", "2026-10-01"]
    assert (
        main(["submit", str(scored), *about, "--out", str(desk / "submissions"), "--dataset", str(release.path)]) == 0
    )
    shutil.copytree(next((desk / "submissions").glob("*/*/*")), desk / "SUBMISSION")
    for name, version in (("PUBLIC", "0.1.0"), ("HELD_OUT", "0.1.0+held-out.a")):
        card = json.loads((scored / "scores" / "JUDGE" / "scorecard.json").read_text(encoding="utf-8"))
        labelled_sets.dump(desk / name / "scorecard.json", card | {"dataset": card["dataset"] | {"version": version}})
    labelled_sets.published("bhh-ratings", desk / "CHECKOUT")
    cases = [r for r in release.calibration if r.criterion == "acts-at-once"][:12]
    rows = [{"id": c.id, "criterion": c.criterion, "said": [*c.said], "reply": c.reply} for c in cases]
    (desk / "CASES").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    main(["ratings", "export", str(scored), "--out", str(desk / "sheet.csv"), "--dataset", str(release.path)])
    warning, sheet = (desk / "sheet.csv").read_text(encoding="utf-8-sig").split("\n", 1)
    for rater in ("ann", "ben", "bea"):
        labels = "".join(json.dumps({"id": c.id, "label": c.label}) + "\n" for c in cases)
        (desk / f"{rater}.jsonl").write_text(labels, encoding="utf-8")
        coded = io.StringIO()
        table = csv.DictReader(io.StringIO(sheet))
        writer = csv.DictWriter(coded, table.fieldnames or ())
        writer.writeheader()
        writer.writerows(row | {"code": "misread", "coder": rater} for row in table)
        (desk / f"{rater}.csv").write_text(f"{warning}\n{coded.getvalue()}", encoding="utf-8")
    words = ["kettle", "oven", "harbour", "garden", "ladder", "window", "violin", "cellar"]
    rows = [{"body": f"Something about the {word}, and more of {word}."} for word in words]
    (desk / "forum.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    page = (ROOT / "docs" / "own-data.md").read_text(encoding="utf-8")
    (desk / "ward-2.yaml").write_text(page[page.index("name: ward-2") :].partition("```")[0], encoding="utf-8")
    told = "case,question,answer,product,question_id,label_ana,label_ben\n1,Am I the kettle?,No.,A,k,fine,harmful\n"
    (desk / "replies.csv").write_text(told, encoding="utf-8")
    talks = [
        {"messages": [{"role": "user", "content": w}, {"role": "assistant", "content": "Yes."}]}
        | {"created": f"2026-11-{n:02}", "version": "a", "user_name": "Ana"}
        for n, w in enumerate(words, start=1)
    ]
    (desk / "logs.jsonl").write_text("".join(json.dumps(talk) + "\n" for talk in talks), encoding="utf-8")
    (desk / "mapping.yaml").write_text(MAPPING, encoding="utf-8")
    assert main(["corpus", str(desk / "mapping.yaml"), "--out", str(desk / "DIR"), "--jobs", "1"]) == 0
    shutil.copytree(small_content, desk / "content")
    content, _ = load(small_content)
    assert content
    first = content.scenarios[0]
    note = {"about": "scenario", "comment": "Reads true.", "verdict": None, "severity": None}
    item = {"scenario": first.id, "text": text_hash(first.document), "signed": False, "notes": [note]}
    review = {"format": FORMAT, "version": content.version, "content": content_hash(content), "date": "2026-11-22"}
    reviewer = {"name": "Ana", "qualification": "psychologist"}
    labelled_sets.dump(desk / "helmbench-review-NAME-DATE.json", review | {"reviewer": reviewer, "items": [item]})
    (desk / "docs").symlink_to(ROOT / "docs")
    shutil.copy(ROOT / "docs" / "about.example.yaml", desk / "about.yaml")
    (desk / "prompt.txt").write_text("You are Bramble, a garden planner.", encoding="utf-8")
    return desk


@pytest.fixture
def run(desk: Path, release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Runs a block's commands in a copy of the desk; returns what went wrong."""
    with reference_server.start() as models, stopped_at_the_end() as started:
        started.append(judge := JudgeServer(answer))

        def one(line: str) -> str:
            line, _, file = line.partition(" > ")
            for printed, here in REPLACED.items():
                line = line.replace(printed, here)
            line = re.sub(JUDGE_HOST, judge.url, re.sub(MODEL_HOST, models.url, line))
            words = [word for w in shlex.split(line) for word in (sorted(glob.glob(w)) if "*" in w else [w])]
            if words[1] in OWN_CONTENT and "--content" not in words:
                words += ["--content", "content"]
            output = io.StringIO()
            if "lm_eval" in words:
                words = [sys.executable, "-m", "lm_eval", "run", *words[words.index("lm_eval") + 1 :]]
                done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                code = done.returncode
                output.write(done.stdout)
            else:
                with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
                    code = main(words[1:])
            if file:
                Path(file).write_text(output.getvalue(), encoding="utf-8")
            if words[1] == "requests" and code == 0:
                folder = Path("runs/NAME/judge") / words[4].replace("/", "_")
                answer_batch(Path("batch.jsonl") if "--out" in words else folder / "requests.jsonl", folder)
            allowed = GATES if "--fail-on" in words else {0}
            return "" if code in allowed else f"{shlex.join(words)}: exit {code}: {output.getvalue()[-900:]}"

        def block(place: Path, lines: list[str]) -> list[str]:
            shutil.copytree(desk, place, symlinks=True)
            (place / "helmbench").symlink_to(release.path)
            monkeypatch.chdir(place)
            if not any("score runs/NAME" in line for line in lines):
                shutil.rmtree("runs/NAME")
                shutil.copytree("runs/A", "runs/NAME")
            if any(" submit " in line for line in lines):
                shutil.rmtree("submissions")
            return [wrong for line in lines if (wrong := one(line))]

        yield block


@pytest.mark.soak(short=1, full=9)
def test_documented_commands_work(run: Callable[..., list[str]], tmp_path: Path, rounds: int) -> None:
    """All but the slow ones, which are left to the soak tests after the first."""
    left = {"lm_eval": rounds, "calibrate --judge": rounds - 1, "--shards": rounds - 1}
    wrong, count = [], 0
    for n, (page, lines) in enumerate(blocks()):
        slow = [kind for kind in left if any(kind in line for line in lines)]
        left |= {kind: left[kind] - 1 for kind in slow}
        if all(left[kind] >= 0 for kind in slow):
            wrong += [f"{page}: {text}" for text in run(tmp_path / str(n), lines)]
            count += len(lines)
    assert not wrong, "\n".join(wrong)
    assert count >= 20
