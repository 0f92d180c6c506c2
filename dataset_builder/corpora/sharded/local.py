"""The stages on this machine. A process that is killed is seen: datatrove's own pool would wait for it forever."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from datatrove.executor.local import LocalPipelineExecutor

from dataset_builder.corpora.schema import CorpusError, CorpusManifest
from dataset_builder.corpora.sharded import assembling
from dataset_builder.corpora.sharded.folder import Work, note
from dataset_builder.corpora.sharded.steps import SHARD, Stage, Write, stages

TASKS = 8  # for each process: tasks of a stage take their own times


def build(
    recipe_path: Path,
    out: Path,
    shards: Path,
    jobs: int = 1,
    tell: Callable[[str, int], None] = lambda step, done: None,
    size: int = SHARD,
) -> CorpusManifest:
    """What `dataset_builder.corpora.build.build` builds, with `shards` as the folder for what is finished on the way.

    `shards` is removed at the end, and where a source has to be mended. It stays when the run is killed: the same call
    then goes on. `size`: messages to a shard; it decides what is in memory at once, and no byte of the corpus.

    Raises:
        CorpusError, FileExistsError, OSError: as there, and where `shards` holds something else.
        ChildProcessError: a process was killed; what was finished stays.
    """
    *first, last = stages(recipe_path, out, shards, TASKS * jobs, size)
    assert isinstance(last.step, Write)
    try:
        with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _silence) as pool:
            for stage in first:
                _run(stage, pool, last.step.work, tell)
        manifest = assembling.write_corpus(last.step.work, out, tell)
    except BrokenProcessPool:
        raise ChildProcessError(
            f"a process was killed, most likely for memory; what was finished stays in {shards}, and the same command "
            "goes on from there: try fewer --jobs"
        ) from None
    except CorpusError:  # what is to be mended makes these the shards of something else
        shutil.rmtree(shards)
        raise
    shutil.rmtree(shards)
    return manifest


def _run(stage: Stage, pool: ProcessPoolExecutor, work: Work, tell: Callable[[str, int], None]) -> None:
    executor = LocalPipelineExecutor([stage.step], tasks=stage.tasks, logging_dir=stage.logs)
    waiting = [pool.submit(_task, executor, rank) for rank in executor.get_incomplete_ranks()]
    total = 0 if stage.name == "read" else sum(_read(work))
    tell(stage.name, 0)
    try:
        for done, _ in enumerate(as_completed(waiting), start=stage.tasks - len(waiting) + 1):
            tell(stage.name, total * done // stage.tasks)
        for task in waiting:  # in the order of reading, so that of two slips the first is told
            task.result()
    finally:
        for task in waiting:
            task.cancel()


def _read(work: Work) -> list[int]:
    return [note(work.folder / "read" / f"{n:04d}.json")["documents"] for n in range(len(work.opened))]


def _task(executor: LocalPipelineExecutor, rank: int) -> None:
    executor._run_for_rank(rank)


def _silence() -> None:
    """datatrove logs to this stream as well as to its files; what goes wrong comes back as an exception."""
    sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
