"""Near-duplicate messages: compares every pair by shared character 5-grams."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array, triu

from dataset_builder.reading.content_types import Content
from dataset_builder.reading.markdown import Errors

NEAR_DUPLICATE = 0.6  # character 5-gram Jaccard, content-guide section 3
GRAM = 5


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
    """Pairs of texts whose 5-gram sets have a Jaccard index of NEAR_DUPLICATE or more; every pair is compared."""
    if not texts:
        return
    texts = [re.sub(r"\s+", " ", text.lower()).ljust(GRAM, "\0") for text in texts]
    numbers = defaultdict[str, int](itertools.count().__next__)
    grams = [{numbers[text[i : i + GRAM]] for i in range(len(text) - GRAM + 1)} for text in texts]
    sizes = np.array([len(own) for own in grams])
    cells = np.repeat(np.arange(len(texts)), sizes), np.array([*itertools.chain(*grams)])
    has = csr_array((np.ones(len(cells[0]), np.int32), cells))
    shared = triu(has @ has.T, k=1, format="coo")
    jaccard = shared.data / (sizes[shared.row] + sizes[shared.col] - shared.data)
    near = jaccard >= NEAR_DUPLICATE
    yield from sorted(zip(*(values[near].tolist() for values in (shared.row, shared.col, jaccard)), strict=True))
