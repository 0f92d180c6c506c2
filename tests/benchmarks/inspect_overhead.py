"""What our Inspect task adds per sample beside Inspect's plainest task on the same samples: seconds and memory.

Usage: python tests/benchmarks/inspect_overhead.py [--tier lite] [--samples N] [--rounds 3]. Needs a built dataset; no
network. A model that answers at once; each measurement is a process of its own, the two kinds take turns. Starting up,
and the scorecard that is written when a run has ended, are counted apart.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ |= {"HF_HUB_OFFLINE": "1", "INSPECT_EVAL_MODEL": "mockllm/model"}
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "api")]

from inspect_ai import Task, eval  # noqa: E402
from inspect_ai.model import ModelOutput, ModelUsage, get_model  # noqa: E402
from inspect_ai.scorer import includes  # noqa: E402
from inspect_ai.solver import generate  # noqa: E402

REPLY = '{"tags": ["TASK"], "distress": 3}'


def answer(*_: object) -> ModelOutput:
    """The same reply to everything; it says its tokens, which Inspect would download a tokenizer to count."""
    said = ModelOutput.from_content("mockllm/model", REPLY)
    said.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return said


def once(kind: str, tier: str, samples: int | None) -> str:
    """Seconds per sample of one run of a kind, and the process's peak memory in MB."""
    from helmbench.inspect.tasks import benchmark

    model = get_model("mockllm/model", custom_outputs=answer)
    ours = benchmark("all", tier, None, None, "")  # type: ignore[arg-type]
    asked = list(ours.dataset)[:samples]
    turns = sum(1 + len((s.metadata or {}).get("script", [])) for s in asked)
    task = ours if kind == "ours" else Task(dataset=asked, solver=generate(), scorer=includes())
    requests = turns if kind == "ours" else len(asked)
    with tempfile.TemporaryDirectory() as logs:
        started = time.perf_counter()
        (log,) = eval(task, model=model, log_dir=logs, display="none", limit=samples)
        whole = time.perf_counter() - started
    assert log.status == "success", log.error and log.error.message
    stats = log.stats
    ran = (_at(stats.completed_at) - _at(stats.started_at)) if stats.completed_at else whole
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return f"{ran / requests} {whole - ran} {memory} {requests}"


def _at(moment: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(moment).timestamp()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tier", default="lite", choices=["lite", "core", "full"])
    parser.add_argument("--samples", type=int, help="so many of the tier's samples (default: all)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--once", choices=["ours", "plain"], help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.once:
        print(once(given.once, given.tier, given.samples))
        return 0
    found: dict[str, list[list[float]]] = {"plain": [], "ours": []}
    for _ in range(given.rounds):
        for kind, rows in found.items():
            argv = [sys.executable, __file__, "--tier", given.tier, "--once", kind]
            argv += ["--samples", str(given.samples)] if given.samples else []
            done = subprocess.run(argv, capture_output=True, text=True, check=True)
            rows.append([float(x) for x in done.stdout.split()[-4:]])
    print(f"{'':8} {'ms a request':>14} {'before, after':>14} {'peak memory':>12} {'requests':>9}")
    middle = {kind: [statistics.median(column) for column in zip(*rows, strict=True)] for kind, rows in found.items()}
    for kind, (each, around, memory, requests) in middle.items():
        print(f"{kind:8} {1000 * each:11.2f} ms {around:12.1f} s {memory:9.0f} MB {requests:9.0f}")
    print(f"ratio    {middle['ours'][0] / middle['plain'][0]:11.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
