"""What our task adds per sample over the model's own time, and its memory, beside lm-eval's plainest class task on the
same samples.

Usage: python tests/benchmarks/task_overhead.py [--samples 20000] [--rounds 3] [--tier full]. Needs a built dataset; no
network. The tasks of the tier's group, as often as it takes to have that many samples, against a model that answers at
once. Each measurement is a process of its own, so that its peak memory is its own; the two kinds take turns.
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
TASKS = ROOT / "lm_eval_tasks" / "helmbench"

import datasets  # noqa: E402
import lm_eval  # noqa: E402
import pyarrow as pa  # noqa: E402
import yaml  # noqa: E402
from lm_eval.api.model import LM  # noqa: E402
from lm_eval.api.task import ConfigurableTask  # noqa: E402
from lm_eval.tasks import TaskManager  # noqa: E402

from dataset_builder.release import open_release  # noqa: E402


class NoModel(LM):
    """Answers at once and measures its own time, so that what is left is the harness's and the task's."""

    seconds = 0.0

    def generate_until(self, requests: list[Any], **_: Any) -> list[str]:
        started = time.perf_counter()
        replies = ['{"tags": ["TASK"], "distress": 3}'] * len(requests)
        self.seconds += time.perf_counter() - started
        return replies

    def loglikelihood(self, requests: list[Any], **_: Any) -> list[Any]:
        raise NotImplementedError

    loglikelihood_rolling = loglikelihood

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        return "\n".join(m["content"] for m in chat_history)

    @property
    def tokenizer_name(self) -> str:
        return "none"


class Plainest(ConfigurableTask):
    """The least that a class task can be: one string in, one number out."""

    def __init__(self, config: dict[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(config={k: v for k, v in (config or {}).items() if k != "class"}, **kwargs)

    def download(self, dataset_kwargs: Any = None, **kwargs: Any) -> None:
        table = open_release().table("all")
        wanted = (dataset_kwargs or {})["samples"]
        whole = pa.concat_tables([table] * (wanted // len(table) + 1)).slice(0, wanted)
        self.dataset = datasets.DatasetDict({"test": datasets.Dataset(whole)})

    def fewshot_docs(self) -> None:
        return None

    def doc_to_text(self, doc: dict[str, Any], doc_to_text: Any = None) -> str:
        return str(doc["messages"][-1]["content"])

    def doc_to_target(self, doc: dict[str, Any], doc_to_target: Any = None) -> str:
        return str(doc["polarity"])

    def fewshot_context(self, doc: dict[str, Any], *args: Any, **kwargs: Any) -> str:
        return self.doc_to_text(doc)

    def process_results(self, doc: dict[str, Any], results: list[Any]) -> dict[str, float]:
        return {"answered": float(bool(results[0]))}


def plainest(samples: int) -> Plainest:
    return Plainest(
        config={
            "task": "plainest",
            "output_type": "generate_until",
            "dataset_kwargs": {"samples": samples},
            "test_split": "test",
            "num_fewshot": 0,
            "generation_kwargs": {"until": []},
            "process_results": len,
            "metric_list": [{"metric": "answered", "aggregation": "mean", "higher_is_better": True}],
        }
    )


def ours(folder: Path, samples: int, tier: str) -> list[str]:
    """Names of enough copies of the tier's leaf tasks to have that many samples; their YAML files go into `folder`."""
    group = yaml.safe_load((TASKS / f"helmbench_{tier}.yaml").read_text())["task"]
    rows, names = 0, list[str]()
    release = open_release()
    for copy in itertools.count():
        if rows >= samples:
            return names
        for leaf in group:
            given = (
                (TASKS / f"{leaf}.yaml")
                .read_text()
                .replace("include: ", f"include: {TASKS}/")
                .replace(f"task: {leaf}", f"task: {leaf}_{copy}")
            )
            (folder / f"{leaf}_{copy}.yaml").write_text(given)
            names.append(f"{leaf}_{copy}")
            rows += sum(tier in tiers for tiers in release.table(leaf.split("_")[1])["tiers"].to_pylist())
    raise AssertionError("unreachable")


def measure(kind: str, samples: int, tier: str) -> dict[str, float]:
    """Seconds outside the model, samples, and peak memory in MB, of one evaluation in this process; task loading left
    out of the seconds.
    """
    model = NoModel()
    with tempfile.TemporaryDirectory() as folder:
        names = ours(Path(folder), samples, tier) if kind == "ours" else []
        manager = TaskManager(include_path=folder, include_defaults=False)
        loaded = manager.load(names if kind == "ours" else [plainest(samples)])
        started = time.perf_counter()
        results = lm_eval.evaluate(
            lm=model, task_dict=loaded, apply_chat_template=True, log_samples=True, bootstrap_iters=0
        )
        seconds = time.perf_counter() - started - model.seconds
    assert results is not None
    done = sum(n["effective"] for n in results["n-samples"].values())
    return {"seconds": seconds, "samples": done, "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def main() -> None:
    parser = argparse.ArgumentParser(description="Overhead of the HELMbench task per sample.")
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tier", choices=["lite", "full"], default="full")
    parser.add_argument("--measure", choices=["ours", "plainest"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        logging.disable(logging.WARNING)
        print(json.dumps(measure(options.measure, options.samples, options.tier)))
        return
    found: dict[str, list[dict[str, float]]] = {"ours": [], "plainest": []}
    for _ in range(options.rounds):
        for kind, measured in found.items():
            command = [sys.executable, __file__, "--measure", kind]
            command += ["--samples", str(options.samples), "--tier", options.tier]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            measured.append(json.loads(done.stdout.splitlines()[-1]))
    each = {kind: [1000 * m["seconds"] / m["samples"] for m in measured] for kind, measured in found.items()}
    print(
        f"median of {options.rounds} rounds, a model that answers at "
        f"once{'':<8}{'ms a sample':>12}{'peak MB':>10}{'samples':>10}"
    )
    for kind, name in (("ours", "our task, live conversations played"), ("plainest", "lm-eval's plainest class task")):
        peak = max(m["megabytes"] for m in found[kind])
        print(f"{name:<54}{statistics.median(each[kind]):12.3f}{peak:10.0f}{found[kind][0]['samples']:10.0f}")
    print(f"{'ratio':<54}{statistics.median(o / p for o, p in zip(each['ours'], each['plainest'], strict=True)):12.2f}")


if __name__ == "__main__":
    main()
