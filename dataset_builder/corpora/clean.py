"""The steps that look at one document alone, over a batch, in as many processes as asked; order is kept."""

from __future__ import annotations

import hashlib
import multiprocessing
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dataset_builder.corpora import dedupe, filters
from dataset_builder.corpora.mask import mask_document
from dataset_builder.corpora.normalise import fold, normalise_document
from dataset_builder.corpora.schema import Document, Dropped, Limits

BATCH = 2000
ROOM = 2**24  # characters in a batch, the last document's beyond it: a process holds its texts several times over


class Task(NamedTuple):
    """What a worker needs: documents, the countries of their sources, and the limits."""

    documents: list[Document]
    countries: dict[str, str | None]
    limits: Limits


class Cleaned(NamedTuple):
    """A batch after its steps. The four columns after `kept` have one entry for each kept document.

    `folded`: the text that duplicates are compared by; `digests`: 16 bytes of its sha256, roles included.
    """

    kept: list[Document]
    folded: list[str]
    digests: list[bytes]
    signatures: dedupe.Signatures
    sizes: NDArray[np.uint32]
    dropped: list[Dropped]
    changed: Counter[str]


def clean(task: Task) -> Cleaned:
    """Normalise, cut, mask, length, language: in this order, so that length and duplicates are of the masked text."""
    kept: list[Document] = []
    dropped: list[Dropped] = []
    changed: Counter[str] = Counter()
    for raw in task.documents:
        document, masked = mask_document(normalise_document(raw), task.countries[raw.source])
        cut = filters.cut(document, task.limits)
        result = (
            cut
            if isinstance(cut, Dropped)
            else filters.length(cut[0], task.limits) or filters.language(cut[0], task.limits)
        )
        if isinstance(result, Dropped):
            dropped.append(result)
            continue
        kept.append(result)
        changed.update(cut[1] if not isinstance(cut, Dropped) else ())
        changed.update({f"{kind} masked": n for kind, n in masked.items() if n})
    folded = [fold("\n".join(t.text for t in d.turns)) for d in kept]
    digests = [
        hashlib.sha256("\0".join(f"{t.role}\1{fold(t.text)}" for t in d.turns).encode()).digest()[:16] for d in kept
    ]
    signatures, sizes = dedupe.sign(folded)
    return Cleaned(kept, folded, digests, signatures, sizes, dropped, changed)


def batches(documents: Iterable[Document], most: int) -> Iterator[list[Document]]:
    """The documents in lists of at most `most`, shorter ones where documents are very long."""
    own, size = list[Document](), 0
    for document in documents:
        own.append(document)
        size += sum(len(turn.text) for turn in document.turns)
        if len(own) == most or size >= ROOM:
            yield own
            own, size = [], 0
    if own:
        yield own


def clean_all(
    documents: Iterable[Document], countries: dict[str, str | None], limits: Limits, jobs: int
) -> Iterator[Cleaned]:
    """Batches of 2,000 in order. At most two per process wait, so that a long source never stands in memory.

    Raises:
        ChildProcessError: a cleaning process was killed.
    """
    tasks = (Task(batch, countries, limits) for batch in batches(documents, BATCH))
    first = list(islice(tasks, 2))
    if jobs == 1 or len(first) < 2:  # starting processes takes longer than one batch
        yield from map(clean, chain(first, tasks))
        return
    try:
        yield from _in_processes(chain(first, tasks), jobs)
    except BrokenProcessPool:
        raise ChildProcessError(
            "a cleaning process was killed, most likely for memory; nothing was written, try fewer --jobs"
        ) from None


def _in_processes(tasks: Iterable[Task], jobs: int) -> Iterator[Cleaned]:
    waiting: deque[Future[Cleaned]] = deque()
    # Not fork: libraries that a caller has loaded may hold threads, which a forked process would wait for.
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        for task in tasks:
            waiting.append(pool.submit(clean, task))
            if len(waiting) >= 2 * jobs:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
