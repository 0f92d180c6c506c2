"""Messages that nearly repeat each other: every pair is compared, by the characters that they share."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array

from dataset_builder.reading.content_types import Content
from dataset_builder.reading.markdown import Errors

NEAR_DUPLICATE = 0.6  # character 5-gram Jaccard, content-guide section 3


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
            continue  # the same question twice is what a probe is
        if p2.attributes.get("pair_of") == f"{s1.id}-{p1.code}" or p1.attributes.get("pair_of") == f"{s2.id}-{p2.code}":
            continue
        what = f"{p2.code} nearly repeats {s1.id}-{p1.code} (5-gram Jaccard {jaccard:.2f})"
        errors.add(s2.path, p2.line, f"{what}; expected below {NEAR_DUPLICATE}, or 'pair_of'")


def alike(texts: list[str]) -> Iterator[tuple[int, int, float]]:
    """Pairs of texts whose 5-gram sets have a Jaccard index of NEAR_DUPLICATE or more; every pair is compared, as one
    sparse product.
    """
    grams = [_grams(text) for text in texts]
    column = {gram: n for n, gram in enumerate(dict.fromkeys(itertools.chain(*grams)))}
    rows = np.repeat(np.arange(len(texts)), [len(g) for g in grams])
    one = csr_array(
        (np.ones(len(rows)), (rows, [column[g] for own in grams for g in own])), shape=(len(texts), len(column))
    )
    shared = (one @ one.T).tocoo()
    size = np.array([len(g) for g in grams])
    jaccard = shared.data / (size[shared.row] + size[shared.col] - shared.data)
    for n in np.flatnonzero((jaccard >= NEAR_DUPLICATE) & (shared.row < shared.col)):
        yield int(shared.row[n]), int(shared.col[n]), float(jaccard[n])


def _grams(text: str) -> set[str]:
    plain = re.sub(r"\s+", " ", text.lower())
    return {plain[i : i + 5] for i in range(max(1, len(plain) - 4))}
