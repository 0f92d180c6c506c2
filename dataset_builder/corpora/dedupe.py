"""Near-copies. MinHash and banding propose candidates; the exact Jaccard index decides.

A text's features are its character 5-grams after `normalize.fold`, as in `dataset_builder.checking.likeness`: they need
no word boundaries, and changing one word changes few of them. rensa computes signatures of 128 values (measured 20
times faster than datasketch); the index is numpy, so that it holds millions of messages.

Recall: 25 bands of 5 values match with probability 1 - (1 - J⁵)²⁵ (Leskovec, Rajaraman & Ullman, *Mining of Massive
Datasets*, 3.4): 0.99995 at J = 0.8, 0.55 at 0.5, 0.06 at 0.3. Precision: no text is removed on an estimate.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import rensa
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
Signatures = NDArray[np.uint32]
GRAM = 5
HELD = 20_000  # cache a text's grams up to this many distinct ones; recompute those of longer texts
VALUES = 128
BANDS, ROWS = 25, 5
SEED = 1
# An estimate from 128 values has a standard deviation of at most 0.044, so no pair at the threshold is this far below.
SLACK = 0.2
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_POWERS = np.array([pow(0x100000001B3, k, 2**64) for k in range(GRAM)], dtype=np.uint64)


class Pair(NamedTuple):
    """`removed` and `kept` are positions in reading order; `jaccard` is exact."""

    removed: int
    kept: int
    jaccard: float


def grams(folded: str) -> Hashes:
    """Sorted 64-bit hashes of the distinct 5-grams of a folded text; a shorter text is one gram."""
    codes = np.frombuffer(folded.ljust(GRAM).encode("utf-32-le"), dtype=np.uint32).astype(np.uint64)
    mixed = np.zeros(len(codes) - GRAM + 1, np.uint64)
    for place, power in enumerate(_POWERS):  # windows would take five times the memory
        mixed += codes[place : place + len(mixed)] * power
    mixed *= _PRIME
    hashes: Hashes = np.unique((mixed ^ (mixed >> np.uint64(29))) * _PRIME)
    return hashes


def jaccard(first: Hashes, second: Hashes) -> float:
    """|A ∩ B| / |A ∪ B| for two sets of grams."""
    shared = len(np.intersect1d(first, second, assume_unique=True))
    return shared / (len(first) + len(second) - shared)


def sign(texts: Sequence[str]) -> tuple[Signatures, NDArray[np.uint32]]:
    """Signatures of folded texts, shape (n, 128), and how many distinct grams each has, shape (n,)."""
    if not texts:
        return np.empty((0, VALUES), np.uint32), np.empty(0, np.uint32)
    sets = [grams(t) for t in texts]
    sizes = np.array([len(s) for s in sets], dtype=np.uint32)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint64)
    matrix = rensa.RMinHash.digest_matrix_from_flat_token_hashes(np.concatenate(sets), offsets, VALUES, SEED)
    return np.array(matrix.to_rows(), dtype=np.uint32), sizes


def band_keys(signatures: Signatures, band: int) -> Hashes:
    """A hash of each signature's values in a band, shape (n,). Two texts share a band if their hashes are equal."""
    keys = np.zeros(len(signatures), dtype=np.uint64)
    for column in range(band * ROWS, (band + 1) * ROWS):
        keys = (keys ^ signatures[:, column]) * _PRIME
        keys ^= keys >> np.uint64(31)
    return keys


def near_duplicates(
    signatures: Signatures, sizes: NDArray[np.uint32], text_of: Callable[[int], str], least: float
) -> Iterator[Pair]:
    """Every text with a Jaccard index of `least` or more with an earlier kept text, in order.

    A removed text never removes another, so no chain links two different texts. Compares only texts that share a band.
    `text_of` returns the folded text at a position.
    """
    groups = _shared_bands(signatures)
    kept: defaultdict[int, list[int]] = defaultdict(list)
    recent = lru_cache(maxsize=4096)(lambda place: grams(text_of(place)))

    def grams_of(place: int) -> Hashes:
        return recent(place) if sizes[place] <= HELD else grams(text_of(place))

    for place in sorted(groups):
        candidates = np.array(sorted({k for group in groups[place] for k in kept[group]}), dtype=np.int64)
        pair = _nearest(place, candidates, signatures, sizes, grams_of, least)
        if pair:
            yield pair
            continue
        for group in groups[place]:
            kept[group].append(place)


def _nearest(
    place: int,
    candidates: NDArray[np.int64],
    signatures: Signatures,
    sizes: NDArray[np.uint32],
    grams_of: Callable[[int], Hashes],
    least: float,
) -> Pair | None:
    """The first candidate, best estimate first, whose exact index is high enough."""
    if not len(candidates):
        return None
    # J ≤ smaller / larger, so a much longer text can't be near.
    smaller, larger = np.minimum(sizes[candidates], sizes[place]), np.maximum(sizes[candidates], sizes[place])
    candidates = candidates[smaller >= least * larger]
    estimates = (signatures[candidates] == signatures[place]).mean(axis=1)
    for n in np.argsort(-estimates, kind="stable"):
        if estimates[n] < least - SLACK:
            return None
        if (exact := jaccard(grams_of(place), grams_of(int(candidates[n])))) >= least:
            return Pair(place, int(candidates[n]), exact)
    return None


def _shared_bands(signatures: Signatures) -> dict[int, list[int]]:
    """Text → the numbers of its groups, for texts that share a band with another. One sort per band: n log n."""
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for band in range(BANDS):
        keys = band_keys(signatures, band)
        order = np.argsort(keys, kind="stable")
        ranked = keys[order]
        same = np.zeros(len(keys) + 1, dtype=bool)  # whether a key equals its predecessor; the last has no successor
        same[1:-1] = ranked[1:] == ranked[:-1]
        numbers, often = np.cumsum(~same[:-1]) + band * len(keys), same[:-1] | same[1:]
        for place, group in zip(order[often].tolist(), numbers[often].tolist(), strict=True):
            groups[place].append(group)
    return groups
