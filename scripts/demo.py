"""An end-to-end demo: runs every real stage once on the real content.

Builds the dataset if it is missing, starts the reference server on a free loopback port, runs the real `lm_eval`
command for two trivial policies, scores both, and prints a table. Needs no key, GPU or network.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import reference_server
from harness import run

from helmbench_common.tables import columns
from judge.schema import Figure
from judge.wording import share_text

ROOT = Path(__file__).resolve().parents[1]
MODELS = ("keyword", "always-escalate")


def main(out: Path = ROOT / "demo", dataset: Path = ROOT / "helmbench", tasks: str = "helmbench_detect") -> None:
    """Build, run, judge and report two trivial policies, end to end."""
    out = out.resolve()
    started = time.monotonic()
    built(out, dataset)
    with reference_server.start() as server:
        print(f"  reference server at {server.url}", flush=True)
        for model in MODELS:
            name = f"lm_eval --tasks {tasks}, model {model}"
            stage(name, lm_eval(model, server.url, tasks, out), out / f"lm_eval-{model}.log")
    for model in MODELS:
        stage(f"judge {model}", helmbench("score", str(out / model)), out / f"judge-{model}.log")
    print(f"\n{table(out)}\n\n{time.monotonic() - started:.0f} s. Reports, to open in a browser:")
    for model in MODELS:
        print(f"  {scores(out / model) / 'report.html'}")


def built(out: Path, dataset: Path, models: Sequence[str] = MODELS) -> None:
    """Removes the models' earlier runs from `out`, and builds the dataset if it is missing (`make` updates it)."""
    os.environ["HELMBENCH_DATASET"] = str(dataset.resolve())
    for model in models:
        shutil.rmtree(out / model, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    if not (dataset / "MANIFEST.json").exists():
        stage("build the dataset", helmbench("build", "--out", os.environ["HELMBENCH_DATASET"]), out / "build.log")


def helmbench(*words: str) -> list[str]:
    """A `helmbench` command as a user would type it."""
    return [str(Path(sys.executable).with_name("helmbench")), *words]


def lm_eval(model: str, url: str, tasks: str, out: Path) -> list[str]:
    """The `lm_eval` command as a user would type it."""
    program = Path(sys.executable).with_name("lm_eval")
    arguments = f"model={model},base_url={url}/chat/completions,num_concurrent=16"
    return [str(program), "--model", "local-chat-completions", "--model_args", arguments, "--tasks", tasks,
            "--apply_chat_template", "--log_samples", "--output_path", str(out)]  # fmt: skip


def stage(name: str, command: list[str], log: Path) -> None:
    """Runs a command with its output in `log`, and shows progress. Exits with its code if it fails."""
    started = time.monotonic()
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT, env=environment)
        while True:
            try:
                process.wait(5)
                break
            except subprocess.TimeoutExpired:
                print(f"  … {name}: {time.monotonic() - started:.0f} s {progress(log)}", flush=True)
    if process.returncode:
        end = "\n".join(log.read_text(encoding="utf-8").splitlines()[-15:])
        print(f"\n{name} failed ({process.returncode}); the end of {log}:\n{end}", file=sys.stderr)
        sys.exit(process.returncode)
    print(f"  {name}: {time.monotonic() - started:.1f} s", flush=True)


def progress(log: Path) -> str:
    """The last percentage that the command printed, if any."""
    found = re.findall(r"(\d+)%\|", log.read_text(encoding="utf-8", errors="replace")[-2000:])
    return f"({found[-1]} %)" if found else ""


def table(out: Path) -> str:
    """What rules alone decide of both runs, aligned."""
    rows = []
    for model in MODELS:
        found = json.loads((scores(out / model) / "scorecard.json").read_text(encoding="utf-8"))["detect"]
        sides = [figure(found["detection"][name]) for name in ("sensitivity", "specificity")]
        rows.append([model, *sides, figure(found["job"])])
    return columns(("model", "sensitivity", "specificity", "the job"), rows)


def scores(run: Path) -> Path:
    """The scores folder of a run that one judge scored."""
    return next((run / "scores").iterdir())


def figure(found: dict[str, Any] | None) -> str:
    """`19.0 % (11.3 to 30.1 %)`, or a dash if there is no figure."""
    return share_text(Figure.model_validate(found) if found else Figure(value=None))


if __name__ == "__main__":
    run(main)
