"""The stages of a build as datatrove pipeline steps, for its Slurm and Ray executors (docs/own-data.md).

A task builds every n-th missing part of its stage, so an interrupted run can resume with any number of tasks.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

# In error reports, loguru would print the values of variables, which hold people's messages. It reads this once.
os.environ.setdefault("LOGURU_DIAGNOSE", "NO")

from datatrove.pipeline.base import PipelineStep

from dataset_builder.corpora.build import SHARD, Work, claim, clean_shard, finish, opened_sources, read
from helmbench_common.files import replacing


class Stage(NamedTuple):
    """A step, its number of tasks, and its log folder, where datatrove records finished tasks."""

    name: str
    step: PipelineStep
    tasks: int
    logs: str


class Step(PipelineStep):
    """Calls `make(work, *part)` for each part of a stage."""

    type = "corpus"

    def __init__(self, name: str, work: Work, parts: Callable[[Work], list[Any]], make: Callable[..., None]) -> None:
        self.name, self.work, self.parts, self.make = name, work, parts, make
        super().__init__()

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        for part in self.parts(self.work)[rank::world_size]:
            with self.track_time():
                self.make(self.work, *part)


def stages(mapping: Path, out: Path, shards: Path, tasks: int, size: int = SHARD) -> list[Stage]:
    """The build of `mapping` into `out`, in stages for at most `tasks` tasks each; every task must see the folders.

    `size`: messages per shard. Each stage requires the previous one to be finished. Raises like `build.build`.
    """
    loaded, opened = opened_sources(mapping, mapping.parent, out)
    work = Work(loaded, mapping.parent, opened, shards, size)
    claim(work)
    steps = [
        (Step("read", work, _sources, read), len(opened)),
        (Step("clean", work, _shards, clean_shard), tasks),
        (Step("write", work, _all, partial(_write, out=out)), 1),
    ]
    # A task's parts depend on the number of tasks, so datatrove's records for each number are separate.
    return [Stage(step.name, step, count, str(shards / "logs" / f"{step.name}-{count}")) for step, count in steps]


def _sources(work: Work) -> list[tuple[int]]:
    return [(n,) for n in range(len(work.opened))]


def _shards(work: Work) -> list[tuple[int, str]]:
    return work.shards


def _all(work: Work) -> list[tuple[()]]:
    return [()]


def _write(work: Work, out: Path) -> None:
    with replacing(out) as staging:
        finish(work, staging)
    for path in work.folder.iterdir():
        if not path.is_dir():
            path.unlink()
        elif path.name != "logs":  # this task's executor still writes to logs
            shutil.rmtree(path)
