"""Which submissions under different names hold word for word the same replies: one model under two names, or one run
handed in twice, or a reply that was copied. That they are alike is all that can be told.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations

from dataset_builder.release import Release
from leaderboard.board.rows import Entry
from leaderboard.schema import Verified
from leaderboard.verify.coverage import free_text

SHARE, LEAST = 0.1, 5  # of the replies of the one that has fewer, and replies, from which a reviewer is told


def own_words(verified: Verified, release: Release) -> frozenset[bytes]:
    """What tells a submission's replies from others': each that only one of its samples got, with the sample's id.
    Canned words, such as a refusal that many samples get, tell nothing.
    """
    samples: dict[bytes, set[str]] = defaultdict(set)
    for reply, said in free_text(verified.replies, release):
        samples[hashlib.sha256(said.encode()).digest()].add(reply.id)
    return frozenset(
        hashlib.sha256(digest + i.encode()).digest()[:8]
        for digest, ids in samples.items()
        if len(ids) == 1
        for i in ids
    )


def flagged(entries: Iterable[Entry], words: dict[str, frozenset[bytes]]) -> dict[str, Entry]:
    """The entries by name, flagged where they share replies with another model's. `words`: `own_words` of each."""
    found = {e.name: e for e in entries}
    holders: dict[bytes, list[str]] = defaultdict(list)
    for name in sorted(found):
        for word in words[name]:
            holders[word].append(name)
    common = Counter(pair for names in holders.values() for pair in combinations(names, 2))
    told: dict[str, dict[str, float]] = defaultdict(dict)
    for (a, b), shared in common.items():
        one, other = found[a].model, found[b].model
        share = shared / min(len(words[a]), len(words[b]))
        if one.casefold() != other.casefold() and shared >= LEAST and share >= SHARE:
            told[a][other] = max(share, told[a].get(other, 0))
            told[b][one] = max(share, told[b].get(one, 0))
    return {name: replace(e, flags=(*e.flags, *_said(told[name]))) for name, e in found.items()}


def _said(shares: dict[str, float]) -> list[str]:
    return [f"{share:.0%} of the replies are word for word those of {model}" for model, share in sorted(shares.items())]
