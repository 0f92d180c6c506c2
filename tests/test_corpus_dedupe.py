"""Duplicates are found, and nothing is removed that isn't one; samples are drawn by seed and stratum."""

from __future__ import annotations

import random
from functools import cache

import numpy as np

from dataset_builder.corpora.dedupe import grams, jaccard, near_duplicates, sign
from dataset_builder.corpora.sample import Member, allocate, draw, gather
from dataset_builder.corpora.schema import Samples

PAGE = (
    "tea kettle garden window letter cousin train platform soup pencil cloud ladder button harbour violin "
    "pepper blanket candle"
)
WORDS = PAGE.split()


def text(chance: random.Random, n: int = 40) -> str:
    return " ".join(chance.choices(WORDS, k=n))


@cache
def plain_grams(text: str) -> set[str]:
    return {text[i : i + 5] for i in range(len(text) - 4)}


def true_jaccard(first: str, second: str) -> float:
    a, b = plain_grams(first), plain_grams(second)
    return len(a & b) / len(a | b)


def test_jaccard_is_of_the_sets_of_five_grams() -> None:
    """`soup is hot` and `soup is not`: grams 0 to 3 of each 7 end before the change, 3 differ."""
    assert jaccard(grams("soup is hot"), grams("soup is not")) == 4 / 10
    assert jaccard(grams("soup"), grams("soup")) == 1
    assert len(grams("aaaaaaaa")) == 1
    apart = ["abcde", "edcba", "你好你好你", "😀😀😀😀😁", "abcd "]
    assert len({int(h) for t in apart for h in grams(t)}) == 5


def test_every_pair_above_the_threshold_is_found_and_no_other() -> None:
    """On 200 texts, with edits at random: exactly what comparing every text with all that stay before it gives."""
    chance = random.Random(3)
    texts = [text(chance) for _ in range(70)]
    for _ in range(130):
        words = chance.choice(texts).split()
        for place in chance.sample(range(len(words)), chance.randint(1, 6)):
            words[place] = chance.choice(WORDS)
        texts.append(" ".join(words))
    expected, stay = [], list[int]()
    for n, own in enumerate(texts):
        if any(true_jaccard(own, texts[k]) >= 0.8 for k in stay):
            expected.append(n)
        else:
            stay.append(n)
    signatures, sizes = sign(texts)
    found = list(near_duplicates(signatures, sizes, texts.__getitem__, 0.8))
    assert [p.removed for p in found] == expected
    assert len(expected) > 50
    assert all(
        p.kept not in expected and p.jaccard == true_jaccard(texts[p.removed], texts[p.kept]) >= 0.8 for p in found
    )


def test_no_chain_removes_what_differs_from_all_that_stays() -> None:
    """b is near a, c is near b and not a: b goes and c stays."""
    a = text(random.Random(8)).split()
    b = ["quince", "marmalade", *a[2:]]
    c = [*b[:-2], "walnut", "biscuit"]
    texts = [" ".join(t) for t in (a, b, c)]
    assert true_jaccard(texts[0], texts[1]) >= 0.85 <= true_jaccard(texts[1], texts[2])
    assert true_jaccard(texts[0], texts[2]) < 0.85
    assert [p[:2] for p in near_duplicates(*sign(texts), texts.__getitem__, 0.85)] == [(1, 0)]


def test_an_estimate_alone_removes_nothing() -> None:
    """Texts with equal signatures but other words all stay; so do no text and a single one."""
    texts = [text(random.Random(n)) for n in range(20)]
    signatures, sizes = sign(texts)
    signatures[:], sizes[:] = signatures[0], sizes[0]
    assert list(near_duplicates(signatures, sizes, texts.__getitem__, 0.8)) == []
    for few in ([], ["alone"]):
        assert list(near_duplicates(*sign(few), few.__getitem__, 0.8)) == []


def test_signatures_estimate_the_index() -> None:
    """Over 400 pairs the mean difference from the true index is under 0.01: the library's values collide as MinHash's
    must.
    """
    chance = random.Random(5)
    differences = []
    for _ in range(400):
        words = text(chance).split()
        other = [chance.choice(WORDS) if chance.random() < 0.1 else w for w in words]
        pair = [" ".join(words), " ".join(other)]
        signatures, _ = sign(pair)
        differences.append((signatures[0] == signatures[1]).mean() - true_jaccard(*pair))
    assert abs(np.mean(differences)) < 0.01


def test_signatures_do_not_change_with_the_library() -> None:
    """A new rensa with other values would make other corpora of the same sources: then this number, and rensa's bound,
    move.
    """
    signatures, sizes = sign(["the kettle is on", "the kettle is off"])
    assert sizes.tolist() == [12, 13]
    assert int(signatures.astype(np.uint64).sum()) == 730_464_582_807


def test_allocation_by_hand() -> None:
    """Proportional: by largest remainder. Equal: what a small stratum lacks, the others share, the largest first."""
    assert allocate([70, 20, 10], 10, "proportional") == [7, 2, 1]
    assert allocate([5, 5, 5], 4, "proportional") == [2, 1, 1]
    assert allocate([100, 2, 50], 12, "equal") == [5, 2, 5]
    assert allocate([100, 2, 50], 13, "equal") == [6, 2, 5]


def test_allocation_always_adds_up() -> None:
    """Whatever the sizes, the parts sum to what was asked, and none exceeds its stratum."""
    sizes = [31, 1, 0, 17, 11]
    for how in ("proportional", "equal"):
        for wanted in range(61):
            given = allocate(sizes, wanted, how)
            assert sum(given) == wanted
            assert all(0 <= g <= s for g, s in zip(given, sizes, strict=True))


def members(n: int) -> list[Member]:
    return [Member(f"id-{k}", ("a",) if k % 4 else ("b",)) for k in range(n)]


def test_samples_are_disjoint_stratified_and_seeded() -> None:
    """Three in four rows are of stratum a, in each sample. The order of rows doesn't matter, the seed does."""
    samples = Samples(validation=20, test=40, seed=1)
    other = samples.model_copy(update={"seed": 2})
    strata = gather(members(400), samples)
    assert {name: (s.size, len(s.first)) for name, s in strata.items()} == {("a",): (300, 60), ("b",): (100, 60)}
    drawn = validation, test = draw(strata, samples)
    assert (len(validation), len(test), validation & test) == (20, 40, set())
    of = dict(members(400))
    assert [sum(of[i] == ("a",) for i in own) for own in drawn] == [15, 30]
    assert drawn == draw(gather(members(400)[::-1], samples), samples)
    assert drawn != draw(gather(members(400), other), other)
