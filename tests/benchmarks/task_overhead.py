"""What our task adds per sample over the model's own time, beside lm-eval's plainest class task on the same samples.

Usage: python tests/benchmarks/task_overhead.py [--tasks helmbench] [--rounds 5]. Needs a built dataset; no network.
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import datasets  # noqa: E402
import lm_eval  # noqa: E402
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
        self.dataset = datasets.DatasetDict({"test": datasets.Dataset(open_release(ROOT / "helmbench").table("all"))})
        inside = [n for n, tiers in enumerate(self.dataset["test"]["tiers"]) if "core" in tiers]
        self.dataset["test"] = datasets.Dataset(self.dataset["test"].data.table.take(inside))

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


def plainest() -> Plainest:
    return Plainest(
        config={
            "task": "plainest",
            "output_type": "generate_until",
            "test_split": "test",
            "num_fewshot": 0,
            "generation_kwargs": {"until": []},
            "process_results": len,
            "metric_list": [{"metric": "answered", "aggregation": "mean", "higher_is_better": True}],
        }
    )


def measure(tasks: list[Any], manager: TaskManager) -> tuple[float, int]:
    """(seconds outside the model, samples) of one evaluation, task loading left out."""
    model = NoModel()
    loaded = manager.load(tasks)
    started = time.perf_counter()
    results = lm_eval.evaluate(lm=model, task_dict=loaded, apply_chat_template=True, log_samples=True, bootstrap_iters=0)
    seconds = time.perf_counter() - started - model.seconds
    assert results is not None
    return seconds, sum(n["effective"] for n in results["n-samples"].values())


def main() -> None:
    parser = argparse.ArgumentParser(description="Overhead of the HELMbench task per sample.")
    parser.add_argument("--tasks", default="helmbench")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    manager = TaskManager(include_path=str(ROOT / "lm_eval_tasks"), include_defaults=False)
    ours: list[float] = []
    plain: list[float] = []
    for _ in range(options.rounds):
        seconds, samples = measure([options.tasks], manager)
        ours.append(1000 * seconds / samples)
        seconds, plain_samples = measure([plainest()], manager)
        plain.append(1000 * seconds / plain_samples)
    print(f"{options.tasks}: {samples} samples, median of {options.rounds} rounds, milliseconds per sample outside the model")
    print(f"{'our task':<34}{statistics.median(ours):8.3f}")
    print(f"{'plainest class task':<34}{statistics.median(plain):8.3f}   ({plain_samples} samples)")
    print(f"{'ratio':<34}{statistics.median(o / p for o, p in zip(ours, plain, strict=True)):8.2f}")


if __name__ == "__main__":
    main()
