"""Copies across shards: exact ones by ranges of digests; near ones by families of texts that may be near each other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from dataset_builder.corpora import dedupe
from dataset_builder.corpora.rows import folded
from dataset_builder.corpora.sharded.folder import Messages, Places, Work
from helmbench_common.files import replacing

RANGE = 50  # shards' worth of hashes in memory at once
FAMILIES = 5  # shards' worth of texts whose signatures are in memory at once, where no family is larger
# Of a group up to this large every pair is looked at, of a larger one none: all its texts are then of one family.
CLOSE = 50
EDGES = 20_000_000
PAIRS = 20_000
NEAR = np.dtype([("removed", "i8"), ("kept", "i8"), ("jaccard", "f8")])


class Range(NamedTuple):
    """Hashes from `low` to below `high` (None: to the last), of a band or, where that is None, of digests."""

    name: str
    low: np.uint64
    high: np.uint64 | None
    band: int | None = None


def digest_ranges(messages: Messages) -> list[Range]:
    return [Range(f"{n:04d}", low, high) for n, (low, high) in enumerate(_bounds(messages))]


def band_ranges(messages: Messages) -> list[Range]:
    bounds = list(enumerate(_bounds(messages)))
    return [Range(f"{b:02d}-{n:04d}", low, high, b) for b in range(dedupe.BANDS) for n, (low, high) in bounds]


def _bounds(messages: Messages) -> Iterator[tuple[np.uint64, np.uint64 | None]]:
    count = messages.total // (RANGE * messages.work.size) + 1
    for n in range(count):
        yield np.uint64(n * 2**64 // count), np.uint64((n + 1) * 2**64 // count) if n + 1 < count else None


def _cut(hashes: NDArray[np.uint64], part: Range) -> slice:
    high = None if part.high is None else int(np.searchsorted(hashes, part.high))
    return slice(int(np.searchsorted(hashes, part.low)), high)


def exact_copies(work: Work, parts: list[Range]) -> None:
    """(place of a copy, place of the first text that is the same), for each copy whose digest is in the range."""
    messages = Messages(work)
    for part in parts:
        own: list[NDArray[np.uint64]] = []
        for shard in range(len(messages.names)):
            digests = messages.array(shard, "digests")
            found = np.array(digests[:, _cut(digests[0], part)])
            found[2] += np.uint64(messages.starts[shard])
            own.append(found)
        high, low, places = np.concatenate([np.empty((3, 0), np.uint64), *own], axis=1)
        order = np.lexsort((places, low, high))
        high, low, places = high[order], low[order], places[order].astype(np.int64)
        same = np.zeros(len(places), dtype=bool)
        same[1:] = (high[1:] == high[:-1]) & (low[1:] == low[:-1])
        firsts = np.maximum.accumulate(np.where(same, 0, np.arange(len(places))))
        _save(work.folder / "exact" / f"{part.name}.npy", np.stack([places[same], places[firsts[same]]]))


def copies(work: Work) -> NDArray[np.int64]:
    """All exact copies: their places, rising, and those of what they are copies of; shape (2, n)."""
    found = [np.load(path) for path in sorted((work.folder / "exact").glob("*.npy"))]
    together: NDArray[np.int64] = np.concatenate([np.empty((2, 0), np.int64), *found], axis=1)
    return together[:, np.argsort(together[0])]


def near_copies(work: Work) -> NDArray[Any]:
    """All near-copies, in the order of reading; of type `NEAR`."""
    found = [np.load(path) for path in sorted((work.folder / "near").glob("*.npy"))]
    together: NDArray[Any] = np.concatenate([np.empty(0, NEAR), *found])
    return together[np.argsort(together["removed"])]


def meetings(work: Work, parts: list[Range]) -> None:
    """Of the texts whose keys are in the range, which are of one family; exact copies left out."""
    messages, least = Messages(work), work.loaded.recipe.limits.near_jaccard
    stays = np.ones(messages.total, dtype=bool)
    stays[copies(work)[0]] = False
    for part in parts:
        keys, places = _keys(messages, part, stays)
        indices, groups = dedupe.shared(keys)
        members = places[indices]
        starts = np.flatnonzero(np.diff(groups, prepend=-1))
        sizes = np.diff(starts, append=len(groups))
        edges = [np.empty((2, 0), np.int64), *_within(members, starts[sizes > CLOSE], sizes[sizes > CLOSE])]
        close = _pairs(members, starts, sizes)
        edges.append(_alike(messages, close, least))
        _save(work.folder / "meetings" / f"{part.name}.npy", _stars(np.concatenate(edges, axis=1)))


def _keys(messages: Messages, part: Range, stays: NDArray[np.bool_]) -> tuple[dedupe.Hashes, Places]:
    keys, places = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
    for shard in range(len(messages.names)):
        own = messages.array(shard, "keys")[part.band]
        cut = _cut(own, part)
        found = messages.array(shard, "order")[part.band][cut].astype(np.int64) + messages.starts[shard]
        keys.append(np.array(own[cut])[stays[found]])
        places.append(found[stays[found]])
    return np.concatenate(keys), np.concatenate(places)


def _within(members: Places, starts: Places, sizes: Places) -> Iterator[Places]:
    """An edge from the first of each group to every other."""
    for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
        own = members[start : start + size]
        yield np.stack([np.full(size - 1, own[0]), own[1:]])


def _pairs(members: Places, starts: Places, sizes: Places) -> Places:
    """All pairs of all groups of up to `CLOSE`, shape (2, n)."""
    found = [np.empty((2, 0), np.int64)]
    for size in np.unique(sizes[sizes <= CLOSE]).tolist():
        own = members[starts[sizes == size][:, None] + np.arange(size)]
        first, second = np.triu_indices(size, 1)
        found.append(np.stack([own[:, first].ravel(), own[:, second].ravel()]))
    return np.concatenate(found, axis=1)


def _alike(messages: Messages, pairs: Places, least: float) -> Places:
    """The pairs that the rule of near-copies would compare: only these bear on it."""
    own = np.unique(pairs)
    if not len(own):
        return pairs
    signatures, sizes = messages.gather("signatures", own), messages.gather("documents", own)["grams"]
    at = np.searchsorted(own, pairs)
    near = np.zeros(pairs.shape[1], dtype=bool)
    for start in range(0, len(near), PAIRS):
        first, second = at[:, start : start + PAIRS]
        fits = dedupe.near_in_size(sizes[first], sizes[second], least)
        fits[fits] = dedupe.estimates(signatures[first[fits]], signatures[second[fits]]) >= least - dedupe.SLACK
        near[start : start + PAIRS] = fits
    return pairs[:, near]


def _stars(edges: Places) -> Places:
    """The same families by as few edges as they need: from the first of each to every other."""
    if not edges.size:
        return edges
    places, at = np.unique(edges, return_inverse=True)
    first, second = at.reshape(edges.shape)
    graph = coo_array((np.ones(len(first), dtype=np.int8), (first, second)), shape=(len(places), len(places)))
    labels = connected_components(graph, directed=False)[1]
    firsts = places[np.unique(labels, return_index=True)[1]][labels]
    return np.stack([firsts, places])[:, firsts != places]


def families(work: Work, tasks: int) -> None:
    """Joins what met in any band into families, and packs these, so that no family is cut, for `tasks` tasks."""
    stars = np.empty((2, 0), np.int64)
    waiting: list[Places] = []
    for path in sorted((work.folder / "meetings").glob("*.npy")):
        waiting.append(np.load(path))
        if sum(own.shape[1] for own in waiting) > EDGES:
            stars, waiting = _stars(np.concatenate([stars, *waiting], axis=1)), []
    stars = _stars(np.concatenate([stars, *waiting], axis=1))
    firsts, which, others = np.unique(stars[0], return_inverse=True, return_counts=True)
    largest = min(FAMILIES * work.size, (len(firsts) + stars.shape[1]) // tasks + 1)
    packs = (np.cumsum(others + 1) - (others + 1)) // largest
    with replacing(work.folder / "families") as staging:
        for pack in np.unique(packs).tolist():
            own = np.concatenate([firsts[packs == pack], stars[1][packs[which] == pack]])
            np.save(staging / f"{pack:06d}.npy", np.sort(own))


def near(work: Work, packs: list[str]) -> None:
    """The small form's rule over families, in the order of reading."""
    messages, least = Messages(work), work.loaded.recipe.limits.near_jaccard
    for pack in packs:
        places: Places = np.load(work.folder / "families" / f"{pack}.npy")
        signatures, sizes = messages.gather("signatures", places), messages.gather("documents", places)["grams"]
        found = dedupe.near_duplicates(signatures, sizes, partial(_folded, messages, places), least)
        pairs = [(places[pair.removed], places[pair.kept], pair.jaccard) for pair in found]
        _save(work.folder / "near" / f"{pack}.npy", np.array(pairs, NEAR))


def _folded(messages: Messages, places: Places, n: int) -> str:
    return folded(messages.line(int(places[n])))


def _save(path: Path, array: NDArray[Any]) -> None:
    """A file that is there is whole: a killed run is taken up by the names of its files."""
    path.parent.mkdir(exist_ok=True)
    staged = path.with_name(f".{path.name}")
    with staged.open("wb") as file:
        np.save(file, array)
    staged.replace(path)
