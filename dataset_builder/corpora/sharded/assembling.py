"""What stays of each shard, and from all of them the corpus, in one pass and in the order of reading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dataset_builder.corpora.finish import Counts, finished
from dataset_builder.corpora.rows import exact_copy, near_copy
from dataset_builder.corpora.sample import Strata, Stratum, draw, gather, joined, member
from dataset_builder.corpora.schema import CorpusManifest, Dropped
from dataset_builder.corpora.sharded.copies import copies, near_copies
from dataset_builder.corpora.sharded.folder import Messages, Work, note
from dataset_builder.corpora.write import Piece, dropped_table, write_folder
from helmbench_common.files import replacing, write_whole
from helmbench_common.hashing import canonical


def keep(work: Work, names: list[str]) -> None:
    """Of each shard: which rows stay, what was dropped and why, and what samples need to know of the rest."""
    messages, exact, near = Messages(work), copies(work), near_copies(work)
    numbers = {name: n for n, name in enumerate(messages.names)}
    for name in names:
        shard = numbers[name]
        start, stop = messages.starts[shard : shard + 2]
        own = exact[:, slice(*np.searchsorted(exact[0], [start, stop]))]
        own_near = near[slice(*np.searchsorted(near["removed"], [start, stop]))]
        stays = np.ones(stop - start, dtype=bool)
        stays[own[0] - start] = stays[own_near["removed"] - start] = False
        with replacing(work.folder / "keep" / name) as staging:
            np.save(staging / "stays.npy", stays)
            dropped = _dropped(messages, shard, own, own_near)
            with pa.OSFile(str(staging / "dropped.arrow"), "wb") as file:
                table = dropped_table(dropped)
                with pa.ipc.new_file(file, table.schema) as writer:
                    writer.write_table(table)
            counts = Counts()
            counts.drop(dropped)
            strata = _strata(work, _rows(work, name).filter(pa.array(stays)))
            noted = {"kept": int(stays.sum()), "dropped": counts.dropped, "strata": strata}
            write_whole(staging / "counts.json", canonical(noted))


def _dropped(messages: Messages, shard: int, exact: NDArray[np.int64], near: NDArray[Any]) -> list[Dropped]:
    """In the order of reading."""
    source, start = messages.work.source(messages.names[shard]), int(messages.starts[shard])
    lines = messages.array(shard, "documents")["line"]
    dropped = [Dropped(*values) for values in note(messages.folder(shard) / "summary.json")["dropped"]]
    dropped += [exact_copy(source, int(lines[n - start]), messages.id(first)) for n, first in exact.T.tolist()]
    dropped += [
        near_copy(source, int(lines[removed - start]), messages.id(kept), jaccard)
        for removed, kept, jaccard in near.tolist()
    ]
    return sorted(dropped, key=lambda d: d.line)


def _strata(work: Work, rows: pa.Table) -> list[Any]:
    if not (samples := work.loaded.recipe.samples):
        return []
    columns = {"id", "characters", *samples.by} - {"length"}
    strata = gather((member(row, samples) for row in rows.select(sorted(columns)).to_pylist()), samples)
    return [
        [name, stratum.size, [[digest.hex(), identity] for digest, identity in stratum.first]]
        for name, stratum in strata.items()
    ]


def _rows(work: Work, name: str) -> pa.Table:
    with pa.memory_map(str(work.folder / "clean" / name / "rows.arrow")) as file:
        return pa.ipc.open_file(file).read_all()


def write_corpus(work: Work, out: Path, tell: Callable[[str, int], None] = lambda step, done: None) -> CorpusManifest:
    """Draws the samples and writes the corpus; raises as `dataset_builder.corpora.build.build` does."""
    hashes = {o.source.name: note(work.folder / "read" / f"{n:04d}.json")["sha256"] for n, o in enumerate(work.opened)}
    done = finished(work.loaded, work.opened, hashes, _counts(work))
    if wanted := work.loaded.recipe.samples:
        strata = (_noted(note(work.folder / "keep" / name / "counts.json")["strata"]) for name in work.names)
        done = done._replace(samples=draw(joined(strata, wanted), wanted))
    with replacing(out) as staging:
        return write_folder(staging, done, _pieces(work), _tables(work), lambda n: tell("written", n))


def _noted(strata: list[Any]) -> Strata:
    return {
        tuple(name): Stratum(size, [(bytes.fromhex(digest), identity) for digest, identity in first])
        for name, size, first in strata
    }


def _counts(work: Work) -> Counts:
    """What all shards counted."""
    counts = Counts()
    for n, opened in enumerate(work.opened):
        counts.read[opened.source.name] = note(work.folder / "read" / f"{n:04d}.json")["documents"]
    for name in work.names:
        source, cleaned = work.source(name), note(work.folder / "clean" / name / "summary.json")
        kept = note(work.folder / "keep" / name / "counts.json")
        counts.changed.update(cleaned["changed"])
        if cleaned["licences"]:
            counts.licences.setdefault(source, set()).update(cleaned["licences"])
        counts.kept[source] += kept["kept"]
        for step, reasons in kept["dropped"].items():
            counts.dropped.setdefault(step, Counter()).update(reasons)
    return counts


def _pieces(work: Work) -> Iterator[Piece]:
    for name in work.names:
        stays: NDArray[np.bool_] = np.load(work.folder / "keep" / name / "stays.npy")
        with (work.folder / "clean" / name / "rows.jsonl").open("rb") as lines:
            kept = b"".join(line for line, stay in zip(lines, stays.tolist(), strict=True) if stay)
        yield Piece(_rows(work, name).filter(pa.array(stays)), kept)


def _tables(work: Work) -> Iterator[pa.Table]:
    for name in work.names:
        with pa.memory_map(str(work.folder / "keep" / name / "dropped.arrow")) as file:
            yield pa.ipc.open_file(file).read_all()
