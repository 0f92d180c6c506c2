"""Two disjoint samples of a corpus, stratified and seeded. Who is drawn depends on ids and the seed, never on the order
of rows.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from corpora.schema import CorpusError, Samples

LENGTHS = ((100, "under 100"), (500, "100 to 499"), (2**63, "500 or more"))  # characters of the user's words


class Member(NamedTuple):
    """A row that may be drawn: its id and the values of the fields it is stratified by."""

    id: str
    stratum: tuple[str, ...]


def length_band(characters: int) -> str:
    return next(name for limit, name in LENGTHS if characters < limit)


def draw(members: Sequence[Member], samples: Samples) -> tuple[set[str], set[str]]:
    """The ids of the validation and of the test sample.

    Each stratum's members are put in the order of sha256(seed, id); validation takes the first, test the next.

    Raises:
        CorpusError: the corpus has fewer rows than both samples need.
    """
    wanted = samples.validation + samples.test
    if wanted > len(members):
        raise CorpusError(
            f"the corpus has {len(members)} rows, the samples ask for {samples.validation} + {samples.test}; "
            "ask for fewer"
        )
    strata: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for member in members:
        strata[member.stratum].append(member.id)
    names = sorted(strata)
    for name in names:
        strata[name].sort(key=lambda identity: hashlib.sha256(f"{samples.seed}:{identity}".encode()).digest())
    sizes = [len(strata[name]) for name in names]
    # Both samples together first: a stratum that is used up by one has then still given the other its part.
    together = allocate(sizes, wanted, samples.allocation)
    first = allocate(together, samples.validation, "proportional")
    validation = {i for name, n in zip(names, first, strict=True) for i in strata[name][:n]}
    test = {i for name, n, both in zip(names, first, together, strict=True) for i in strata[name][n:both]}
    return validation, test


def allocate(sizes: Sequence[int], wanted: int, how: str) -> list[int]:
    """How many of each stratum, `wanted` in all, none more than it has.

    `proportional`: shares of `wanted` by size, rounded by the largest remainder. `equal`: the same for each, and what a
    small stratum can't give is shared among the others; what is left over goes to the largest.
    """
    total = sum(sizes)
    if not wanted or not total:
        return [0] * len(sizes)
    if how == "proportional":
        given = [wanted * s // total for s in sizes]
        order = sorted(range(len(sizes)), key=lambda n: (-(wanted * sizes[n] % total), n))
        for n in order[: wanted - sum(given)]:
            given[n] += 1
        return given
    given, left = [0] * len(sizes), wanted
    while left:
        open_ = sorted((n for n in range(len(sizes)) if given[n] < sizes[n]), key=lambda n: (-sizes[n], n))
        each = max(left // len(open_), 1)
        for n in open_:
            more = min(each, sizes[n] - given[n], left)
            given[n], left = given[n] + more, left - more
    return given
