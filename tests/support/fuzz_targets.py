"""Every kind of file that a command reads from somebody else: small valid ones, and the commands (test_fuzz.py)."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import reference_server
import yaml
from helmbench.cli.app import main

from dataset_builder.book.page import content_hash
from dataset_builder.book.review import FORMAT
from dataset_builder.reading.load import load
from dataset_builder.reading.signing import text_hash
from dataset_builder.release import Release, open_release
from judge.agreement.coding import COLUMNS, WARNING
from judge.llm import batch
from judge.replies.script import live_turns
from leaderboard.verify import files
from support import contents, labelled_sets
from support import submission_runs as runs

MOST = 2**24  # bytes of a file that is changed further
JUDGE = "claude-test-1"
ABOUT = """\
contact: {name: Nobody in particular, address: nobody@example.org}
model: {organization: acme, name: north-2, revision: none, access: open_weights, relation: developer}
declaration: {trained_on_benchmark: no, note: A word list.}
"""
MAPPING = """\
name: kitchen
date: 2026-11-01
sources:
  - {name: forum, path: forum.jsonl, licence: cc-by-4.0, language: en, fields: {text: body, id: n, keep: [topic]}}
  - {name: chat, path: chat.csv, licence: mit, fields: {turns: turns}}
limits: {languages: [en], min_letters: 3}
samples: {validation: 1, test: 2, seed: 3, by: [source]}
"""
WORDS = ("kettle", "oven", "harbour", "garden", "ladder", "window")


FIRST = "submissions/1.0.0/acme__north-2/RUN"
LEAST = ("P1-B1-S1", "P2-B1-S1", "P4-B2-S1")  # tags, a conversation, arms with ratings
END = frozenset({0, 5})  # the exit codes of `score` after which it has written
EITHER = frozenset({0, 1})
NAMES = (
    *("runs", "inspect", "collected", "batch", "stored", "prompts", "content", "review", "labels", "sheets"),
    *("choose", "corpora", "labelled", "validate", "packing", "submissions", "board"),
)


class Target(NamedTuple):
    """`make` fills a folder with valid input and earlier output. `files`: globs of the files to change, each as likely
    as the others. `commands`: as they are typed in the folder. `outputs`: paths that a command may change. `writes`:
    the exit codes after which it may have. `settle`: what an attacker does after a change.
    """

    make: Callable[[Path], None]
    files: tuple[str, ...]
    commands: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    writes: frozenset[int] = frozenset({0})
    settle: Callable[[Path], None] = lambda room: None


def targets(ground: Path) -> dict[str, Target]:
    """All targets, by name. `ground`: where `lay` has put what they share."""
    release = open_release(ground / "dataset")
    found = {**_of_runs(ground, release), **_of_content(ground), **_of_people(ground, release), **_of_board(ground)}
    assert sorted(found) == sorted(NAMES)
    return found


def _of_runs(ground: Path, release: Release) -> dict[str, Target]:
    scored = f"score run --judge {JUDGE} --replace"
    return {
        "runs": Target(
            partial(_run, release),
            ("run/results_*", "run/samples_*"),
            ("score run --replace", "score run --replace --json"),
            ("run/scores",),
            END,
        ),
        "inspect": Target(
            partial(_copied, ground / "log"), ("*.eval",), ("score log.eval --replace -q",), ("log.scored",), END
        ),
        "collected": Target(
            partial(_collected, release),
            ("mine.jsonl",),
            ("score --replies mine.jsonl --replace", "annotate export mine.jsonl --out sheet.html"),
            ("mine.scored", "sheet.html"),
            END,
        ),
        "batch": Target(
            partial(_answered, release),
            (f"run/judge/{JUDGE}/*", "calibration.json"),
            (
                f"{scored} --allow-missing",
                f"{scored} --allow-missing --calibration calibration.json",
                scored,
                f"requests run --model {JUDGE}",
            ),
            ("run/scores", f"run/judge/{JUDGE}/requests.jsonl"),
            END,
        ),
        "stored": Target(
            partial(_copied, ground / "scored"),
            ("a/scores/*/scorecard.json", "a/scores/*/verdicts.jsonl", "a/scores/*/ratings.jsonl"),
            (
                "report a --replace",
                "compare a b --page page.html --junit gates.xml --fail-on floor,regression",
                "compare --held-out b/scores/offline/scorecard.json a/scores/offline/scorecard.json",
                "appropriateness a b --csv table.csv",
                "ratings export a --out sheet.csv",
                "agreement a/scores/offline/verdicts.jsonl b/scores/offline/verdicts.jsonl",
            ),
            ("a/scores", "page.html", "gates.xml", "sheet.csv", "table.csv"),
            EITHER | END,
        ),
        "prompts": Target(
            partial(_own_prompt, ground / "scored"),
            ("a/samples_*",),
            ("compare a b --page page.html",),
            ("page.html",),
            END,
        ),
    }


def _of_content(ground: Path) -> dict[str, Target]:
    tables = ("content/*.yaml", "content/*.csv", "content/*/*.yaml", "content/*/*.jsonl", "content/*/*/*")
    prose = ("content/scenarios/*", "content/conversations/*", "content/*/*.md", "content/*.md")
    review = "review review.json --content content"
    return {
        "content": Target(
            partial(_copied, ground / "least"),
            (*tables, *prose),
            (
                *["check --content content"] * 4,
                "build --content content --out out",
                "book --content content --out book.html",
                "stats --content content",
                "new scenario P1-B1 --content content",
            ),
            ("out", "book.html", "content/scenarios"),
        ),
        "review": Target(
            partial(_review, ground / "least"), ("review.json",), (review, f"{review} --apply"), ("content",)
        ),
    }


def _of_people(ground: Path, release: Release) -> dict[str, Target]:
    pair, validate = "agreement ana.jsonl ben.csv", "validate --from . --judge offline --set"
    return {
        "labels": Target(
            _labels,
            ("ana.jsonl", "ben.csv"),
            (pair, f"{pair} --json", "agreement calibration ana.jsonl"),
        ),
        "sheets": Target(
            _sheets,
            ("cases.jsonl", "sheet-labels.jsonl", "coded.csv"),
            (
                "annotate import sheet-labels.jsonl --cases cases.jsonl --out out.jsonl",
                "annotate export cases.jsonl --out sheet.html",
                "ratings import coded.csv",
            ),
            ("out.jsonl", "sheet.html"),
            EITHER,
        ),
        "choose": Target(
            partial(_people, release),
            ("ana.jsonl",),
            ("calibrate --judge offline --labels ana.jsonl",),
            ("calibration",),
        ),
        "corpora": Target(
            _corpus,
            ("mapping.yaml", "forum.jsonl", "chat.csv"),
            ("corpus mapping.yaml --out out --jobs 1 -q",),
            ("out",),
        ),
        "labelled": Target(
            partial(_copied, ground / "corpus"),
            ("out/*.json", "out/*.jsonl", "out/*.yaml", "out/data/*", "out/judge/*/replies*"),
            ("label out --model judge-1 --repeats 1", "score --replies mine.jsonl --messages out -q"),
            ("out", "mine.scored"),
            END | {2},
        ),
        "validate": Target(
            _ward,
            ("*.yaml", "labels.jsonl"),
            (f"{validate} bells.yaml", f"{validate} stars.yaml"),
            ("validation",),
        ),
    }


def _of_board(ground: Path) -> dict[str, Target]:
    submitted = partial(_copied, ground / "submitted")
    return {
        "packing": Target(
            partial(_about, ground / "scored"),
            ("about.yaml", "a/results_*", "a/samples_*", "a/scores/*/*.json*"),
            ("submit a --about about.yaml --date 2026-11-22 --run run",),
            ("submissions",),
        ),
        "submissions": Target(
            submitted,
            (f"{FIRST}/*",),
            (f"verify {FIRST}", f"export {FIRST} --format csv --demo --out results"),
            ("results",),
            EITHER,
            _signed,
        ),
        "board": Target(
            submitted,
            ("rejudged.yaml", f"{FIRST}/*", "board/*"),
            ("board submissions --out board --rejudged rejudged.yaml",),
            ("board",),
            EITHER,
            _signed,
        ),
    }


def lay(ground: Path) -> None:
    """Builds once what the targets share. Sets HELMBENCH_DATASET."""
    release = runs.build(contents.small(ground / "content"), ground / "dataset")
    os.environ["HELMBENCH_DATASET"] = str(release.path)
    contents.small(ground / "least" / "content", LEAST)
    _scored(release, ground / "scored")
    _submitted(release, ground / "submitted")
    _labelled_corpus(release, ground / "corpus")
    _log_of_inspect(release, ground / "log")


def _scored(release: Release, place: Path) -> None:
    """Two runs with the scores of the offline judge."""
    for name in ("a", "b"):
        run = runs.log(place / name, release, messages=True)
        _helmbench("score", run)
        (made,) = (run / "scores").iterdir()
        made.rename(made.with_name("offline"))


def _submitted(release: Release, place: Path) -> None:
    """A submission, a list that names it, and a board of it."""
    with contextlib.redirect_stdout(io.StringIO()):  # the summary of a run
        shutil.copytree(runs.judged_offline(place / "made", release), place / FIRST)
    shutil.rmtree(place / "made")
    digest = hashlib.sha256((place / FIRST / "SHA256SUMS").read_bytes()).hexdigest()
    entry = {"run": "1.0.0/acme__north-2/RUN", "sha256": digest, "date": "2026-11-22", "by": "Ana"}
    (place / "rejudged.yaml").write_text(yaml.safe_dump([entry]))
    _helmbench("board", place / "submissions", "--out", place / "board")


def _helmbench(*arguments: object) -> None:
    assert main([*map(str, arguments), "--quiet"]) == 0


def _lines(path: Path, records: Iterable[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records), encoding="utf-8")


def _copied(source: Path, room: Path) -> None:
    shutil.copytree(source, room, dirs_exist_ok=True, symlinks=True)


def _signed(room: Path) -> None:
    """The sums as a forger makes them anew after a change."""
    for sums in room.rglob("SHA256SUMS"):
        # Signing reads whole files, and a device has no end.
        if all(p.is_file() and not p.is_symlink() and p.stat().st_size <= MOST for p in sums.parent.iterdir()):
            files.sign(sums.parent)


def _run(release: Release, room: Path) -> None:
    """Two samples of each task, and earlier scores."""
    folder = runs.log(room / "run", release, messages=True)
    (path,) = folder.glob("results_*.json")
    results = json.loads(path.read_text())
    for samples in folder.glob("samples_*.jsonl"):
        lines = samples.read_text().splitlines(keepends=True)[:2]
        samples.write_text("".join(lines))
        (name,) = (n for n in results["n-samples"] if samples.name == f"samples_{n}_{runs.STAMP}.jsonl")
        results["n-samples"][name]["effective"] = len(lines)
    path.write_text(json.dumps(results))
    _helmbench("score", folder)


def _answered(release: Release, room: Path) -> None:
    """A run with a judge's answers, its calibration and its scores."""
    _run(release, room)
    runs.answer(room / "run", release, JUDGE)
    runs.measure(room / "run", release, JUDGE)
    shutil.copy(batch.folder(room / "run", JUDGE) / "calibration.json", room)
    _helmbench("score", room / "run", "--judge", JUDGE)


def _collected(release: Release, room: Path) -> None:
    """A reply to a sample of each length of conversation and of each check, and to two messages that stand alone."""
    rows = {(live_turns(r), r.evaluation[0].check): r for r in release.rows.values()}
    talks = [{"id": r.id, "replies": [runs.say(r, n, 0) for n in range(live_turns(r))]} for r in rows.values()]
    kind = "I'm sorry, that sounds hard. Please talk to somebody you trust, or call a crisis line tonight."
    alone = [{"id": i, "repeat": n, "reply": kind, "finish": "stop"} for n, i in enumerate([*release.messages][:2])]
    _lines(room / "mine.jsonl", talks + alone)
    _helmbench("score", "--replies", room / "mine.jsonl")


def _own_prompt(scored: Path, room: Path) -> None:
    """Two scored runs of a prompt of one's own."""
    _copied(scored, room)
    for card in room.glob("*/scores/offline/scorecard.json"):
        found = json.loads(card.read_text())
        found["model"]["condition"] = {"file": "calm.txt", "sha256": hashlib.sha256(b"calm").hexdigest()}
        card.write_text(json.dumps(found))


def _review(least: Path, room: Path) -> None:
    """What the book's page lets a reader download."""
    _copied(least, room)
    content, errors = load(room / "content")
    assert content, errors.lines()
    scenario = next(s for s in content.scenarios if s.id == "P4-B2-S1")
    notes = [
        {"about": "scenario", "comment": "Reads true.", "verdict": None, "severity": None},
        {"about": "PT1", "comment": "", "verdict": "agree", "severity": None},
        {"about": "PT2", "comment": "Either.", "verdict": "disagree", "severity": 2},
    ]
    text = text_hash(scenario.document)
    sent = {
        "format": FORMAT,
        "version": content.version,
        "content": content_hash(content),
        "date": "2026-11-22",
        "reviewer": {"name": "Ana Pérez", "qualification": "clinical psychologist"},
        "items": [{"scenario": scenario.id, "text": text, "signed": False, "notes": notes}],
    }
    (room / "review.json").write_text(json.dumps(sent))


def _labels(room: Path) -> None:
    """Two raters of four replies by two criteria, one file in each form."""
    names = [(f"{c}-0{n}", c) for c in ("acts-at-once", "sees-the-danger") for n in (1, 2)]
    labels = ("PASS", "FAIL-misses", "PARTIAL", None)
    _lines(room / "ana.jsonl", [{"id": i, "criterion": c, "label": x} for (i, c), x in zip(names, labels, strict=True)])
    rows = [f"{i},{c},{x},ben\n" for (i, c), x in zip(names, ("PASS", "FAIL", "", "PASS"), strict=True)]
    (room / "ben.csv").write_text("".join(["id,criterion,label,rater\n", *rows]))


def _sheets(room: Path) -> None:
    """Cases, what their sheet's page gave a rater to download, and a coded sheet of low ratings."""
    case = {"criterion": "acts-at-once", "country": "AU", "polarity": "crisis", "label": "PASS"}
    said = ["Message 1: I can't go on like this.", "I hear you.", "Do you?"]
    _lines(
        room / "cases.jsonl",
        [case | {"id": f"a-{n}", "said": said[: 1 + n % 2 * 2], "reply": f"Yes {n}."} for n in range(4)],
    )
    _helmbench("annotate", "export", room / "cases.jsonl", "--out", room / "sheet.html", "--rater", "ann")
    page = (room / "sheet.html").read_text()
    found = json.loads(re.findall(r'<script[^>]*id="data"[^>]*>(.*?)</script>', page, re.DOTALL)[0])
    own = {"note": "so", "rater": found["rater"], "seed": found["seed"], "sheet": found["sheet"]}
    _lines(room / "sheet-labels.jsonl", [own | {"item": i["item"], "label": "PASS"} for i in found["items"]])
    with (room / "coded.csv").open("w", newline="") as file:
        file.write(f'"{WARNING}"\n')
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for n in range(3):
            row = {"id": f"m-{n}", "repeat": n % 2, "category": "no_crisis", "rating": 2, "code": "cold"}
            writer.writerow(
                row | {"coder": "ann", "message": "Hello,\nyou", "reply": "No.", "evidence": "No", "note": ""}
            )


def _people(release: Release, room: Path) -> None:
    rows = [r for r in release.calibration if r.criterion == "acts-at-once"]
    _lines(room / "ana.jsonl", [{"id": r.id, "criterion": r.criterion, "label": r.label} for r in rows])


def _corpus(room: Path) -> None:
    """A mapping, a source of each kind, and an earlier corpus."""
    (room / "mapping.yaml").write_text(MAPPING)
    long = "Something about the {0} that I saw, and then much more of the same {0} at home."
    rows = [
        {"body": long.format(word), "n": f"p{n}", "topic": "tea" if n % 2 else None} for n, word in enumerate(WORDS)
    ]
    _lines(room / "forum.jsonl", rows)
    cell = json.dumps(["Is it done?", "It is.", "I stood at the stove all night, counting the long hours."])
    (room / "chat.csv").write_text('turns\n"' + cell.replace('"', '""') + '"\n')
    _helmbench("corpus", room / "mapping.yaml", "--out", room / "out", "--jobs", "1")


def _labelled_corpus(release: Release, room: Path) -> None:
    """A corpus, a judge's categories of its messages, labels, and replies to them."""
    room.mkdir(parents=True)
    _corpus(room)
    (room / "mapping.yaml").unlink()
    _helmbench("label", room / "out", "--model", "judge-1", "--repeats", "1", "--requests", room / "asked.jsonl")
    asked = [json.loads(line) for line in (room / "asked.jsonl").read_text().splitlines()]
    said = {"finish_reason": "stop", "message": {"content": '{"category": "anxiety_crisis"}'}}
    body = {"model": "judge-1", "choices": [said]}
    _lines(
        room / "out" / "judge" / "judge-1" / "replies-1.jsonl",
        [batch.result(a["custom_id"], None, body) for a in asked],
    )
    _helmbench("label", room / "out", "--model", "judge-1", "--repeats", "1")
    ids = [json.loads(line)["id"] for line in (room / "out" / "labels.jsonl").read_text().splitlines()]
    _lines(room / "mine.jsonl", [{"id": i, "reply": "Thank you for telling me. 4"} for i in ids])


def _ward(room: Path) -> None:
    """Sets of one's own: criterion labels and ratings, in JSONL."""
    rated, stars = {"kind": "rating", "by": "no_crisis"}, {"labels": {"ana": "stars", "ben": "stars"}}
    labelled_sets.own(room, rated, stars, values=None).rename(room / "stars.yaml")
    labelled_sets.own(room)


def _about(scored: Path, room: Path) -> None:
    _copied(scored, room)
    (room / "about.yaml").write_text(ABOUT)
    _helmbench("submit", room / "a", "--about", room / "about.yaml", "--out", room / "submissions", "--run", "earlier")


def _log_of_inspect(release: Release, room: Path) -> None:
    """Two samples of each task, asked of the reference server."""
    with reference_server.start() as server, tempfile.TemporaryDirectory() as home:
        own = ["--model", "openai-api/local/keyword", "--model-base-url", server.url, "--display", "none"]
        places = {name: home for name in ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME")}
        subprocess.run(
            [sys.executable, "-m", "inspect_ai", "eval", "helmbench/lite", *own, "--limit", "2", "--log-dir", "logs"],
            cwd=home,
            env=os.environ | places | {"LOCAL_API_KEY": "none", "HF_HUB_OFFLINE": "1"},
            check=True,
            capture_output=True,
        )
        (made,) = Path(home, "logs").glob("*.eval")
        room.mkdir()
        shutil.copy(made, room / "log.eval")
    _helmbench("score", room / "log.eval")
