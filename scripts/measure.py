"""The paper's measurement, end to end: 2 models × 3 runs × 3 judge runs.

Builds the dataset, starts the reference server and the scripted judge on free loopback ports, runs the real `lm_eval`
command line for two trivial policies (replies to stand-alone messages, and labels for them), has every reply rated
three times, scores, and prints the tables. Needs no key, GPU or network. The policies aren't language models and the
judge uses word rules: the tables show that the pipeline runs, and nothing about a model.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import reference_server
import scripted_judge
from demo import ROOT, built, figure, helmbench, lm_eval, scores, stage
from harness import run

from helmbench_common.tables import columns
from judge.statistics.estimate import Estimate
from judge.wording import coefficient

MODELS = ("keyword-greeting", "always-escalate-greeting")  # their replies aren't pre-labeled, so a judge is needed
RUNS, JUDGE_RUNS = 3, 3
TASKS = "helmbench_appropriateness_lite,helmbench_triage_lite"


def main(out: Path = ROOT / "measurement", dataset: Path = ROOT / "helmbench", limit: int | None = None) -> None:
    """Ask, rate and tabulate two trivial policies as the paper does. --limit: the first N messages of each task."""
    out = out.resolve()
    started = time.monotonic()
    built(out, dataset, MODELS)
    _ask(out, ["--limit", str(limit)] if limit else [])
    _judge(out)
    cards = {
        model: json.loads((scores(out / model) / "scorecard.json").read_text(encoding="utf-8")) for model in MODELS
    }
    words = helmbench("appropriateness", *(str(out / model) for model in MODELS))
    tables = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    if tables.returncode:
        sys.exit(tables.stderr)
    print(
        f"\n{tables.stdout}\n{triage(cards)}\n\n{counts(cards)}\n{time.monotonic() - started:.0f} s. "
        "Reports, to open in a browser:"
    )
    for model in MODELS:
        print(f"  {scores(out / model) / 'report.html'}")


def _ask(out: Path, more: list[str]) -> None:
    """The models' runs. `helmbench_repeats` is the number of runs, and equals the tasks' default."""
    metadata = json.dumps({"helmbench_repeats": RUNS})
    asked = ["--metadata", metadata, "--include_path", str(ROOT / "lm_eval_tasks"), *more]
    with reference_server.start() as server:
        print(f"  reference server at {server.url}", flush=True)
        for model in MODELS:
            command = [*lm_eval(model, server.url, TASKS, out), *asked]
            stage(f"lm_eval, model {model}, {RUNS} runs", command, out / f"lm_eval-{model}.log")


def _judge(out: Path) -> None:
    """The judge's runs of every reply, and the scorecards."""
    repeats = ["--repeats", str(JUDGE_RUNS)]
    with scripted_judge.start() as server:
        print(f"  scripted judge at {server.url}", flush=True)
        for model in MODELS:
            asked = helmbench(
                "judge", str(out / model), "--model", scripted_judge.NAME, "--base-url", server.url, *repeats
            )
            stage(f"judge run {model}, {JUDGE_RUNS} times", asked, out / f"judge-{model}.log")
    for model in MODELS:
        scored = helmbench("score", str(out / model), "--judge", scripted_judge.NAME, *repeats)
        stage(f"judge score {model}", scored, out / f"score-{model}.log")


def triage(cards: dict[str, Any]) -> str:
    """Each model's own labels of the messages, under both prompts."""
    rows = [
        [
            *(model, found["prompt"], figure(found["accuracy"]), coefficient(Estimate.model_validate(found["kappa"]))),
            *(str(found["unread"]), str(len(found["high_risk_misses"]))),
        ]
        for model, card in cards.items()
        for found in card["triage"]
    ]
    return columns(("triage", "prompt", "accuracy", "κ", "unread", "high-risk misses"), rows)


def counts(cards: dict[str, Any]) -> str:
    """How many ratings the tables rest on."""
    found = [card["appropriateness"] for card in cards.values()]
    ratings, messages = sum(a["overall"]["ratings"] for a in found), found[0]["overall"]["messages"]
    return (
        f"{len(found)} models × {found[0]['runs']} runs × {found[0]['judge_runs']} judge runs of {messages} "
        f"messages: {ratings:,} ratings. "
        "Trivial policies and a judge of word rules: this shows that the pipeline runs, and nothing about a model."
    )


if __name__ == "__main__":
    run(main)
