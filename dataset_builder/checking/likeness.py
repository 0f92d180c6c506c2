"""Near-duplicate messages: compares every pair by shared character 5-grams."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dataset_builder.reading.content_types import Content
from dataset_builder.reading.markdown import Errors

NEAR_DUPLICATE = 0.6  # character 5-gram Jaccard, content-guide section 3
GRAM, BITS = 5, 2**14
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # spreads hashes over their upper bits


def near_duplicates(content: Content, errors: Errors) -> None:
    """Adds an error for every message that nearly repeats another without naming it as its pair."""
    messages = [(s, p) for s in content.scenarios for p in s.perturbations]
    known = {f"{s.id}-{p.code}" for s, p in messages}
    for scenario, message in messages:
        pair = message.attributes.get("pair_of")
        if pair and pair not in known:
            errors.add(
                scenario.path, message.line, f"pair_of is '{pair}'; expected the id of a message, such as P2-B3-S1-PT4"
            )
    for first, second, jaccard in alike([p.words for _, p in messages]):
        (s1, p1), (s2, p2) = messages[first], messages[second]
        if s1 is s2 and p1.attributes.get("probe") == p2.attributes.get("probe", ""):
            continue  # the two messages of a probe ask the same question
        if p2.attributes.get("pair_of") == f"{s1.id}-{p1.code}" or p1.attributes.get("pair_of") == f"{s2.id}-{p2.code}":
            continue
        what = f"{p2.code} nearly repeats {s1.id}-{p1.code} (5-gram Jaccard {jaccard:.2f})"
        errors.add(s2.path, p2.line, f"{what}; expected below {NEAR_DUPLICATE}, or 'pair_of'")


def alike(texts: list[str]) -> Iterator[tuple[int, int, float]]:
    """Pairs of texts whose 5-gram sets have a Jaccard index of NEAR_DUPLICATE or more; every pair is compared.

    A first pass compares the bits that the grams hash to and counts only differences: for such texts A and B, |A Δ B|
    is at most (1 - J) / (1 + J) of |A| + |B|, and two different bits are two different grams.
    """
    if not texts:
        return
    grams = cache(lambda n: {texts[n][i : i + GRAM] for i in range(len(texts[n]) - GRAM + 1)})
    texts = [re.sub(r"\s+", " ", text.lower()).ljust(GRAM, "\0") for text in texts]
    bits = np.stack([_bits(text) for text in texts])
    most = (1 - NEAR_DUPLICATE) / (1 + NEAR_DUPLICATE) * np.array([len(text) - GRAM + 1 for text in texts])
    for n in range(len(texts) - 1):
        differing = np.bitwise_count(bits[n] ^ bits[n + 1 :]).sum(axis=1, dtype=np.int32)
        for other in n + 1 + np.flatnonzero(differing <= most[n] + most[n + 1 :]):
            if (jaccard := len(grams(n) & grams(other)) / len(grams(n) | grams(other))) >= NEAR_DUPLICATE:
                yield n, int(other), jaccard


def _bits(text: str) -> NDArray[np.uint64]:
    letters = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
    hashes = np.zeros(len(text) - GRAM + 1, np.uint64)
    for place in range(GRAM):
        hashes = hashes * MULTIPLIER + letters[place : place + len(hashes)]
    bits = np.zeros(BITS, np.bool_)
    bits[hashes * MULTIPLIER >> np.uint64(64 - BITS.bit_length() + 1)] = True
    return np.packbits(bits).view(np.uint64)
