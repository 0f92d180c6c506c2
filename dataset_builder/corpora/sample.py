"""Two disjoint samples of a corpus, stratified and seeded. Their rows depend only on ids and the seed."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from dataset_builder.corpora.schema import CorpusError, Samples

LENGTHS = ((100, "under 100"), (500, "100 to 499"), (2**63, "500 or more"))  # characters of the user's text


class Member(NamedTuple):
    """A row that may be drawn: its id and its values of the stratification fields."""

    id: str
    stratum: tuple[str, ...]


class Stratum(NamedTuple):
    """The number of members, and the first candidates for a sample: (sha256 of seed and id, id), sorted."""

    size: int
    first: list[tuple[bytes, str]]


def member(row: Mapping[str, Any], samples: Samples) -> Member:
    """A row as a member, with its values of the fields in `samples.by`."""
    length = next(name for limit, name in LENGTHS if row["characters"] < limit)
    return Member(row["id"], tuple(length if field == "length" else str(row[field]) for field in samples.by))


def gather(members: Iterable[Member], samples: Samples) -> dict[tuple[str, ...], Stratum]:
    """The strata of these members; keeps in memory only members that may be drawn."""
    wanted = samples.validation + samples.test
    sizes: Counter[tuple[str, ...]] = Counter()
    first: defaultdict[tuple[str, ...], list[tuple[bytes, str]]] = defaultdict(list)
    for identity, stratum in members:
        sizes[stratum] += 1
        own = first[stratum]
        own.append((hashlib.sha256(f"{samples.seed}:{identity}".encode()).digest(), identity))
        if len(own) > 2 * wanted + 100:
            own[:] = sorted(own)[:wanted]
    return {name: Stratum(size, sorted(first[name])[:wanted]) for name, size in sizes.items()}


def draw(strata: Mapping[tuple[str, ...], Stratum], samples: Samples) -> tuple[set[str], set[str]]:
    """The ids of the validation sample and the test sample.

    In each stratum, in order of sha256(seed, id), validation takes the first members and test the next.

    Raises:
        CorpusError: the corpus has fewer rows than both samples need.
    """
    wanted, rows = samples.validation + samples.test, sum(s.size for s in strata.values())
    if wanted > rows:
        raise CorpusError(
            f"the corpus has {rows} rows, the samples ask for {samples.validation} + {samples.test}; ask for fewer"
        )
    names = sorted(strata)
    ids = [[identity for _, identity in strata[name].first] for name in names]
    # Allocate both samples together first, so that neither uses up a stratum that the other needs.
    together = allocate([strata[name].size for name in names], wanted, samples.allocation)
    first = allocate(together, samples.validation, "proportional")
    validation = {i for own, n in zip(ids, first, strict=True) for i in own[:n]}
    test = {i for own, n, both in zip(ids, first, together, strict=True) for i in own[n:both]}
    return validation, test


def allocate(sizes: Sequence[int], wanted: int, how: str) -> list[int]:
    """How many members to take from each stratum, `wanted` in all.

    `proportional`: shares of `wanted` by size, rounded by largest remainder. `equal`: the same from each; the others
    share what a small stratum can't provide, and the largest provides the remainder.
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
