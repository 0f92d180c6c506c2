"""The build as datatrove's pipeline steps, in stages of which each needs the one before it to be finished.

Any of datatrove's executors runs them: on this machine, on a Slurm cluster, on a Ray cluster (docs/own-data.md). A task
does every n-th part of its stage, and leaves out parts that are there: so a run that was killed goes on where it
stopped, whatever number of tasks it is then given.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

# In a report of an error loguru would print the values of variables, which are people's words. It reads this once.
os.environ.setdefault("LOGURU_DIAGNOSE", "NO")

from datatrove.pipeline.base import PipelineStep

from dataset_builder.corpora.build import opened_sources
from dataset_builder.corpora.sharded import assembling, cleaning, copies
from dataset_builder.corpora.sharded.folder import Messages, Work, claim

SHARD = 10_000  # messages


class Stage(NamedTuple):
    """A step, how many tasks it is for, and the folder of its logs, which holds what is finished."""

    name: str
    step: PipelineStep
    tasks: int
    logs: str


class Step(PipelineStep):
    """Makes parts of the folder of shards: those of `parts(work)` of which `path` isn't there yet."""

    type = "corpus"

    def __init__(self, name: str, work: Work, make: Callable[[Work, list[Any]], None]) -> None:
        self.name, self.work, self.make = name, work, make
        super().__init__()

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        own = _parts(self.name, self.work)[rank::world_size]
        missing = [part for part, path in own if not (self.work.folder / path).exists()]
        if missing:
            with self.track_time():
                self.make(self.work, missing)
        self.stat_update("parts", value=len(missing))


def _parts(stage: str, work: Work) -> list[tuple[Any, str]]:
    """The parts of a stage, each with the file or folder that is there when it is finished."""
    if stage == "read":
        return [(n, f"read/{n:04d}.json") for n in range(len(work.opened))]
    if stage in ("clean", "keep"):
        return [(name, f"{stage}/{name}") for name in work.names]
    if stage in ("exact", "meetings"):
        ranges = (copies.digest_ranges if stage == "exact" else copies.band_ranges)(Messages(work))
        return [(part, f"{stage}/{part.name}.npy") for part in ranges]
    return [(path.stem, f"near/{path.name}") for path in sorted((work.folder / "families").glob("*.npy"))]


class Families(PipelineStep):
    """Joins what met in any band; one task."""

    type, name = "corpus", "families"

    def __init__(self, work: Work, tasks: int) -> None:
        super().__init__()
        self.work, self.tasks = work, tasks

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        if not (self.work.folder / "families").exists():
            copies.families(self.work, self.tasks)


class Write(PipelineStep):
    """Writes the corpus and removes the shards; one task."""

    type, name = "corpus", "write"

    def __init__(self, work: Work, out: Path) -> None:
        super().__init__()
        self.work, self.out = work, out

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        assembling.write_corpus(self.work, self.out)
        for path in self.work.folder.iterdir():
            if not path.is_dir():
                path.unlink()
            elif path.name != "logs":  # which this task's executor still writes to
                shutil.rmtree(path)


def stages(mapping: Path, out: Path, shards: Path, tasks: int, size: int = SHARD) -> list[Stage]:
    """The build of `mapping` into `out`, in stages, each for at most `tasks` tasks; `shards` is on a disk that all see.

    `size`: messages to a shard. Raises as `dataset_builder.corpora.build.build` and `folder.claim` do.
    """
    loaded, opened = opened_sources(mapping, out)
    work = Work(loaded, [source._replace(rows=iter(())) for source in opened], shards, size)
    claim(work)
    steps: list[tuple[PipelineStep, int]] = [
        (Step("read", work, cleaning.read), len(opened)),
        (Step("clean", work, cleaning.clean_shards), tasks),
        (Step("exact", work, copies.exact_copies), tasks),
        (Step("meetings", work, copies.meetings), tasks),
        (Families(work, tasks), 1),
        (Step("near", work, copies.near), tasks),
        (Step("keep", work, assembling.keep), tasks),
        (Write(work, out), 1),
    ]
    # What a task's number stands for depends on how many there are, so each number has notes of its own.
    return [Stage(step.name, step, count, str(shards / "logs" / f"{step.name}-{count}")) for step, count in steps]
