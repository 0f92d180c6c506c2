"""One command's work: read a run, judge it, score it, write verdicts.jsonl, scorecard.json, summary.md and report.html."""

from __future__ import annotations

import argparse
import json
import os
import re
from functools import partial
from pathlib import Path

from dataset_builder.release import Release, open_release
from judge import offline, schema
from judge.errors import RunError
from judge.report import SAMPLES, report
from judge.requests import prompt_hash
from judge.runs import Run, read_replies, read_run
from judge.score import score
from judge.summary import summary
from judge.verdicts import Answers, JudgeIdentity, judge_run

# Beside the code and outside what is hashed: the trivial policies' scores, by score_hash and tier (scripts/make_references.py).
REFERENCES = Path(__file__).with_name("references.json")


def score_run(options: argparse.Namespace) -> str:
    """Does what `judge score` says and returns the summary for the terminal.

    Raises:
        ReleaseError, RunError, ValueError: bad input, each named. EngineError, OSError: the judge or the disk.
    """
    if options.judge not in ("offline", "openai"):
        raise ValueError(f"unknown judge '{options.judge}'; expected offline or openai")
    release = open_release(options.dataset)
    run = read_replies(options.replies, release) if options.replies else read_run(options.run_dir, release)
    out: Path = options.out or (options.replies.with_suffix(".scored") if options.replies else run.path)
    if options.judge == "offline":
        identity, answers = JudgeIdentity(offline.NAME, None), None
    else:
        identity, answers = JudgeIdentity(options.model, prompt_hash()), _live(options, out)
    verdicts = judge_run(run, release, identity, answers)
    rows, dataset = release.rows, _dataset(run, release)
    scorecard = score(rows, verdicts, release.scoring, release.criteria, dataset, run.model, identity.name, identity.prompt_hash, references(dataset))
    out.mkdir(parents=True, exist_ok=True)
    _write(out / "verdicts.jsonl", "".join(v.model_dump_json() + "\n" for v in verdicts))
    _write(out / "scorecard.json", scorecard.model_dump_json(indent=2) + "\n")
    text = summary(scorecard)
    _write(out / "summary.md", text)
    made = report(scorecard, verdicts, run.replies, rows, show_withheld=options.show_withheld)
    _write(out / "report.html", made.page)
    if made.samples is None:
        (out / SAMPLES).unlink(missing_ok=True)  # an earlier report's; this page holds everything
    else:
        _write(out / SAMPLES, made.samples)
    return f"{text}\nreport: {out / 'report.html'}"


def references(dataset: schema.Dataset) -> list[schema.Reference]:
    """What the trivial policies score on this data and tier; empty for a build that the file does not know."""
    known = json.loads(REFERENCES.read_text(encoding="utf-8")) if REFERENCES.is_file() else {}
    rows = known.get(dataset.score_hash, {}).get(dataset.tier or "", [])
    return [schema.Reference.model_validate(row) for row in rows]


def _live(options: argparse.Namespace, out: Path) -> Answers:
    from judge.engine import answer  # the client takes half a second to import; the offline judge doesn't need it

    folder = out / "judge" / re.sub(r"[^\w.\-]+", "_", options.model)
    return partial(answer, path=folder / "replies.jsonl", base_url=options.base_url, concurrency=options.concurrency)


def _dataset(run: Run, release: Release) -> schema.Dataset:
    expected = {r.id for r in release.rows.values() if run.tier is None or run.tier in r.tiers}
    if unexpected := run.ids - expected:
        raise RunError(f"{run.path}: {len(unexpected)} samples are not of tier {run.tier}, such as {min(unexpected)}")
    manifest = release.manifest
    return schema.Dataset(
        version=manifest.version,
        score_hash=manifest.score_hash,
        tier=run.tier,
        samples=len(run.ids),
        expected=len(expected),
        complete=run.ids == expected and not run.limited,
    )


def _write(path: Path, text: str) -> None:
    """Whole or not at all: a report of an earlier run is never left half replaced."""
    staged = path.with_name(f".{path.name}-{os.getpid()}")
    staged.write_text(text, encoding="utf-8")
    staged.replace(path)
