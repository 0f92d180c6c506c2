"""Does `corpus` find planted duplicates, spare everything else, and how long does it take? Prints both, per size.

Usage: python tests/benchmarks/corpus.py [--sizes 25000 250000] [--jobs 2]

Messages are made here: words of this repository's documents, drawn by Zipf's law, 12 to 150 to a message; 5 % fill one
of 20 templates, so that many are alike without being copies. Of every 100 messages 5 are exact copies (but for case,
spaces and punctuation), 10 near-copies by one to six edits of words with a true Jaccard index of 0.8 or more, and 5 are
decoys: edited further, to an index in [0.6, 0.8), so that removing one is wrong. The index is recomputed here with sets
of strings.

A whole run is measured, in a process of its own: from JSONL to parquet. Found: planted near-copies that were removed.
False: of all messages that are no planted copies, the share removed. Peak memory is the main process's maximum plus,
for each cleaning process, the largest of theirs. Machine load moves the times: compare the ratio between sizes with
that of n log n.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from itertools import accumulate
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
LEAST = 0.8
TARGET = "≥ 99 % found, < 0.1 % false, < 5 min, < 4 GB at 250,000 on two cores"
TEMPLATES, SLOTS = 20, 12


def grams(text: str) -> set[str]:
    """Character 5-grams of the lower-cased letters and digits: written apart from the library, on purpose."""
    plain = " ".join(re.findall(r"[^\W_]+", text.lower()))
    return {plain[i : i + 5] for i in range(max(1, len(plain) - 4))}


def alike(first: str, second: str) -> float:
    a, b = grams(first), grams(second)
    return len(a & b) / len(a | b)


class Maker:
    """Messages from a seed; the same for every run."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        pages = [
            ROOT / "README.md",
            *sorted((ROOT / "docs").glob("*.md")),
            ROOT / "dataset_builder" / "content" / "README.md",
        ]
        words = sorted({w for p in pages for w in re.findall(r"[a-z]{2,}", p.read_text(encoding="utf-8").lower())})
        self.random.shuffle(words)
        common = "the and I to a my of that in it is was but with for not have when"
        self.words = [*common.split(), *words]
        self.weights = list(accumulate(1 / (n + 3) for n in range(len(self.words))))
        self.templates = [self._words(24) for _ in range(TEMPLATES)]

    def _words(self, n: int) -> list[str]:
        return self.random.choices(self.words, cum_weights=self.weights, k=n)

    def message(self) -> str:
        if self.random.random() < 0.05:
            template = list(self.random.choice(self.templates))
            for place in self.random.sample(range(len(template)), SLOTS):
                template[place] = self._words(1)[0]
            return " ".join(template).capitalize() + "."
        sentences = [
            " ".join(self._words(self.random.randint(6, 18))).capitalize() for _ in range(self.random.randint(2, 9))
        ]
        return ". ".join(sentences) + "."

    def copy(self, text: str) -> str:
        return self.random.choice([text.upper(), text.replace(". ", "!!  "), f"  {text}\n", text.lower(), text])

    def edited(self, text: str, low: float, high: float) -> str | None:
        """The text with words changed, left out or added until its index is in [low, high); None where it jumps
        past.
        """
        words = text.split(" ")
        for _ in range(60):
            place = self.random.randrange(len(words))
            how = self.random.choice(("change", "leave out", "add"))
            words[place : place + 1] = {
                "change": self._words(1),
                "leave out": [],
                "add": [words[place], *self._words(1)],
            }[how]
            index = alike(text, " ".join(words))
            if index < low or len(words) < 5:
                return None
            if index < high and (high <= LEAST or self.random.random() < 0.3):
                return " ".join(words)
        return None


def plant(path: Path, size: int) -> dict[str, int]:
    """Writes `size` messages; returns how many there are of each kind. The kind stands in the row, which keeps it."""
    made: list[tuple[str, str]] = []
    maker, counts = Maker(size), {"own": 0, "exact": 0, "near": 0, "decoy": 0}
    while len(made) < size:
        n = len(made) % 100
        kind = "own" if n < 80 else "exact" if n < 85 else "near" if n < 95 else "decoy"
        text: str | None = maker.message()
        if kind != "own":
            origin = made[maker.random.randrange(len(made))]
            while origin[0] != "own":
                origin = made[maker.random.randrange(len(made))]
            text = (
                maker.copy(origin[1])
                if kind == "exact"
                else maker.edited(origin[1], *((LEAST, 1.0) if kind == "near" else (0.6, LEAST)))
            )
        if text:
            made.append((kind, text))
            counts[kind] += 1
    with path.open("w", encoding="utf-8") as handle:
        for kind, text in made:
            handle.write(json.dumps({"kind": kind, "text": text}) + "\n")
    return counts


def write_mapping(folder: Path, size: int) -> None:
    (folder / "mapping.yaml").write_text(
        "name: planted\ndate: 2026-11-01\nsources:\n  - name: made\n    path: made.jsonl\n    licence: "
        "cc0-1.0\n    fields: {text: text, keep: [kind]}\n"
        "limits: {languages: [en]}\n"
        f"samples: {{validation: {min(206, size // 50)}, test: {min(2046, size // 5)}, seed: 1, by: [length]}}\n",
        encoding="utf-8",
    )


def library(folder: Path, jobs: int) -> dict[str, Any]:
    """One corpus, and which kinds of message it dropped as duplicates."""
    import pyarrow.parquet as pq

    from dataset_builder.corpora.build import build

    write_mapping(folder, len((folder / "made.jsonl").read_text(encoding="utf-8").splitlines()))
    build(folder / "mapping.yaml", folder / "out", jobs)
    drops = pq.read_table(folder / "out" / "dropped.parquet").to_pylist()
    return {step: [d["line"] for d in drops if d["step"] == step] for step in {d["step"] for d in drops}}


def measured(folder: Path, jobs: int) -> None:
    """One run in this process; prints seconds, CPU seconds, peak GB and what was dropped as JSON."""
    started = time.perf_counter()
    dropped = library(folder, jobs)
    seconds = time.perf_counter() - started
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    memory = (own.ru_maxrss + (jobs * children.ru_maxrss if jobs > 1 else 0)) / 1e6
    print(json.dumps({"seconds": seconds, "cpu": cpu, "gb": memory, "dropped": dropped}))


def report(size: int, counts: dict[str, int], folder: Path, figures: dict[str, Any]) -> None:
    kinds = [json.loads(line)["kind"] for line in (folder / "made.jsonl").open(encoding="utf-8")]
    removed = {n for step in ("exact_duplicate", "near_duplicate") for n in figures["dropped"].get(step, [])}
    by_kind = {kind: sum(kinds[n - 1] == kind for n in removed) for kind in counts}
    other = {step: len(lines) for step, lines in figures["dropped"].items() if not step.endswith("duplicate")}
    false = (by_kind["own"] + by_kind["decoy"]) / (counts["own"] + counts["decoy"])
    cost = f"{figures['seconds']:>6.1f} s  {figures['cpu']:>6.1f} s CPU  {figures['gb']:.2f} GB"
    found = (
        f"exact {by_kind['exact'] / counts['exact']:.2%}   near {by_kind['near'] / counts['near']:.2%} "
        f"of {counts['near']}"
    )
    spared = f"false {false:.3%} (decoys {by_kind['decoy']} of {counts['decoy']})"
    print(f"corpus{size:>13}  {cost}   {found}   {spared}" + (f"   other steps {other}" if other else ""), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[25_000, 250_000])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--one", metavar="FOLDER", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        return measured(options.one, options.jobs)
    print(f"target: {TARGET}; load average {os.getloadavg()[0]:.1f}")
    seconds: dict[int, float] = {}
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as name:
            counts = plant(Path(name, "made.jsonl"), size)
            command = [sys.executable, __file__, "--one", name, "--jobs", str(options.jobs)]
            done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
            if done.returncode:
                raise SystemExit(done.stderr)
            figures = json.loads(done.stdout.splitlines()[-1])
            report(size, counts, Path(name), figures)
            seconds[size] = figures["cpu"]
    for small, large in zip(options.sizes, options.sizes[1:], strict=False):
        growth, bound = seconds[large] / seconds[small], large * math.log(large) / small / math.log(small)
        print(f"CPU time grew {growth:.1f}-fold from {small} to {large}; n log n is {bound:.1f}-fold")


if __name__ == "__main__":
    main()
