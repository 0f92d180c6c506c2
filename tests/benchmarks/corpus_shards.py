"""What does a corpus cost in one pass and in shards, on one, two and four processes? And is it the same corpus?

Usage: python tests/benchmarks/corpus_shards.py [--size 250000] [--jobs 1 2 4] [--shard 10000]

The messages are those of tests/benchmarks/corpus.py, made from a seed. Each build runs in a process of its own, from
JSONL to the finished folder: `pass` is `dataset_builder.corpora.build`, `shards` is
`dataset_builder.corpora.sharded.local` (`helmbench corpus --shards`).

Printed are seconds by the clock and of CPU, in all and for a million messages, the ratio to the small form
with as many processes, and memory: the most that all its processes held together at any quarter of a second, without
pages of mapped files, which the system takes back (read from /proc: Linux only, else nan). Under each build in shards
stand the seconds of its stages and the largest size of its folder on the way. The last line says whether all builds
gave the same bytes. Machine load moves the times, and more processes than cores gain nothing: compare ratios.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from benchmarks.corpus import plant, write_mapping  # noqa: E402


class Watch:
    """Seconds of each step, and the most that a folder holds when a step begins."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.stages, self.bytes = folder, dict[str, float](), 0
        self.step, self.since = "", time.perf_counter()

    def __call__(self, step: str, done: int) -> None:
        if step == self.step:
            return
        self.close()
        self.step, self.since = step, time.perf_counter()
        self.bytes = max(self.bytes, sum(p.stat().st_size for p in self.folder.rglob("*") if p.is_file()))

    def close(self) -> None:
        if self.step:
            self.stages[self.step] = self.stages.get(self.step, 0) + time.perf_counter() - self.since


class Memory(threading.Thread):
    """The most that this process and its children held at once, in bytes."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most, self.over = math.nan, threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.25):
            held = 0
            for status in Path("/proc").glob("[0-9]*/status"):
                with suppress(OSError):  # it has just ended
                    own = dict(line.split(":", 1) for line in status.read_text().splitlines())
                    if os.getpid() in (int(own["Pid"]), int(own["PPid"])):
                        held += int(own.get("RssAnon", "0").split()[0]) * 1000
            if held:
                self.most = held if math.isnan(self.most) else max(held, self.most)


def measured(form: str, folder: Path, jobs: int, shard: int) -> None:
    """One build in this process; prints its figures as JSON."""
    from dataset_builder.corpora import build as small
    from dataset_builder.corpora.sharded import local

    memory = Memory()
    memory.start()
    watch, started = Watch(folder / "shards"), time.perf_counter()
    mapping, out = folder / "mapping.yaml", folder / f"{form}-{jobs}"
    if form == "pass":
        manifest = small.build(mapping, out, jobs)
    else:
        manifest = local.build(mapping, out, folder / "shards", jobs, watch, shard)
    seconds = time.perf_counter() - started
    watch.close()
    memory.over.set()
    memory.join()
    own, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    figures = {
        "seconds": seconds,
        "cpu": own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime,
        "memory": memory.most / 1e9,
        "stages": watch.stages,
        "disk": watch.bytes / 1e9,
        "same": [manifest.corpus_hash, *(digest for _, digest in sorted(manifest.files.items()))],
    }
    print(json.dumps(figures))


def report(form: str, jobs: int, size: int, figures: dict[str, Any], seconds: float) -> None:
    million = 1e6 / size
    print(
        f"{form:<7}{jobs:>2} {figures['seconds']:>8.1f} s {figures['cpu']:>8.1f} s CPU  a million: "
        f"{figures['seconds'] * million:>7.0f} s {figures['cpu'] * million:>7.0f} s CPU  ratio "
        f"{figures['seconds'] / seconds:.2f}  memory {figures['memory']:.2f} GB",
        flush=True,
    )
    if figures["stages"]:
        stages = ", ".join(f"{name} {took:.1f}" for name, took in figures["stages"].items())
        print(f"         {stages} s; {figures['disk']:.2f} GB of shards", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=250_000)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--shard", type=int, default=10_000)
    parser.add_argument("--one", nargs=3, metavar=("FORM", "FOLDER", "JOBS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        return measured(options.one[0], Path(options.one[1]), int(options.one[2]), options.shard)
    print(f"{options.size} messages, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}", flush=True)
    same = []
    with tempfile.TemporaryDirectory() as name:
        plant(Path(name) / "made.jsonl", options.size)
        write_mapping(Path(name), options.size)
        for jobs in options.jobs:
            seconds = 0.0
            for form in ("pass", "shards"):
                done = subprocess.run(
                    [sys.executable, __file__, "--one", form, name, str(jobs), "--shard", str(options.shard)],
                    capture_output=True,
                    text=True,
                    check=False,
                    cwd=ROOT,
                )
                if done.returncode:
                    raise SystemExit(done.stderr)
                figures = json.loads(done.stdout.splitlines()[-1])
                seconds = seconds or figures["seconds"]
                report(form, jobs, options.size, figures, seconds)
                same.append(figures["same"])
    equal = all(own == same[0] for own in same)
    print(f"{len(same)} builds, {'the same corpus' if equal else 'DIFFERENT CORPORA'}: corpus_hash {same[0][0]}")
    if not equal:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
