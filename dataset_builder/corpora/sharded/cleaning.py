"""Sources → shards of raw documents → shards of cleaned rows, with the arrays that duplicates are looked for in."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dataset_builder.corpora import dedupe
from dataset_builder.corpora.clean import BATCH, Cleaned, Task, batches, clean
from dataset_builder.corpora.finish import Counts
from dataset_builder.corpora.read import documents, open_source
from dataset_builder.corpora.rows import row
from dataset_builder.corpora.schema import Document, Dropped, Turn
from dataset_builder.corpora.sharded.folder import DOCUMENT, Work
from dataset_builder.corpora.write import schema
from helmbench_common import jsonl
from helmbench_common.files import replacing, write_whole
from helmbench_common.hashing import canonical


def read(work: Work, sources: list[int]) -> None:
    """Cuts sources into shards, and notes of each how many there are and its sha256."""
    for n in sources:
        opened = open_source(work.opened[n].source, work.loaded.path.parent)
        hasher, count, shards = hashlib.sha256(), 0, 0
        stream = documents(opened, work.loaded.path.parent)
        for own in batches(stream, work.size):
            text = jsonl.lines(document._asdict() for document in own)
            write_whole(work.folder / "read" / f"{n:04d}-{shards:06d}.jsonl", text, private=True)
            if not opened.sha256:
                for document in own:
                    hasher.update(canonical(document).encode() + b"\n")
            count, shards = count + len(own), shards + 1
        counted = {"documents": count, "shards": shards, "sha256": opened.sha256 or hasher.hexdigest()}
        write_whole(work.folder / "read" / f"{n:04d}.json", canonical(counted))


def clean_shards(work: Work, names: list[str]) -> None:
    """Cleans raw shards, each of which is then removed: words that aren't masked stay no longer than they must."""
    for name in names:
        raw = work.folder / "read" / f"{name}.jsonl"
        with replacing(work.folder / "clean" / name) as staging:
            _clean(work, _documents(raw), staging)
        raw.unlink()


def _documents(raw: Path) -> Iterator[Document]:
    for _, own in jsonl.objects(raw):
        turns = tuple(Turn(*turn) for turn in own.pop("turns"))
        kept = tuple((name, value) for name, value in own.pop("kept"))
        yield Document(**own, turns=turns, kept=kept)


def _clean(work: Work, stream: Iterator[Document], staging: Path) -> None:
    """Batch after batch, as the small form does; rows go to disk, what is an array to memory."""
    recipe, columns = work.loaded.recipe, schema(work.loaded.recipe.kept)
    countries = {o.source.name: o.source.country for o in work.opened}
    counts, dropped = Counts(), list[Dropped]()
    found, signatures = list[NDArray[Any]](), list[dedupe.Signatures]()
    offset = 0
    compressed = pa.ipc.IpcWriteOptions(compression="lz4")
    with (
        (staging / "rows.jsonl").open("wb") as lines,
        pa.OSFile(str(staging / "rows.arrow"), "wb") as file,
        pa.ipc.new_file(file, columns, options=compressed) as table,
    ):
        for own in batches(stream, BATCH):
            batch = clean(Task(own, countries, recipe.limits))
            rows = [row(d, digest, recipe) for d, digest in zip(batch.kept, batch.digests, strict=True)]
            sizes = [lines.write(canonical(r).encode() + b"\n") for r in rows]
            table.write_table(pa.Table.from_pylist(rows, schema=columns))
            found.append(_arrays(batch, offset, sizes))
            signatures.append(batch.signatures)
            offset += sum(sizes)
            counts.changed.update(batch.changed)
            dropped += batch.dropped
            for document in batch.kept:
                counts.licences.setdefault(document.source, set()).add(document.licence)
    _save(staging, np.concatenate(found), np.concatenate(signatures), recipe.limits.near_min_characters)
    summary = {
        "messages": sum(map(len, found)),
        "changed": counts.changed,
        "licences": [licence for own_licences in counts.licences.values() for licence in own_licences],
        "dropped": dropped,
    }
    write_whole(staging / "summary.json", canonical(summary))


def _arrays(batch: Cleaned, offset: int, sizes: Iterable[int]) -> NDArray[Any]:
    found = np.zeros(len(batch.kept), DOCUMENT)
    digests = np.frombuffer(b"".join(batch.digests), ">u8").reshape(-1, 2)
    found["offset"] = offset + np.cumsum([0, *sizes])[:-1]
    found["line"] = [d.line for d in batch.kept]
    found["high"], found["low"] = digests[:, 0], digests[:, 1]
    found["grams"] = batch.sizes
    found["length"] = [len(text) for text in batch.folded]
    return found


def _save(staging: Path, found: NDArray[Any], signatures: dedupe.Signatures, shortest: int) -> None:
    """Digests and band keys are sorted, so that a range of either is read from all shards without reading the rest."""
    np.save(staging / "documents.npy", found)
    np.save(staging / "signatures.npy", signatures)
    order = np.lexsort((found["low"], found["high"]))
    np.save(staging / "digests.npy", np.stack([found["high"][order], found["low"][order], order.astype(np.uint64)]))
    # Short texts are spared: one word may be the whole meaning there.
    long = np.flatnonzero(found["length"] >= shortest)
    keys = np.stack([dedupe.band_keys(signatures[long], band) for band in range(dedupe.BANDS)])
    order = np.argsort(keys, axis=1, kind="stable")
    np.save(staging / "keys.npy", np.take_along_axis(keys, order, axis=1))
    np.save(staging / "order.npy", long[order].astype(np.uint32))
