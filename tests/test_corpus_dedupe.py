"""Duplicates are found, and nothing is removed that isn't one; samples are drawn by seed and stratum."""

from __future__ import annotations

import random

import numpy as np
import pytest

from dataset_builder.corpora import dedupe
from dataset_builder.corpora.dedupe import grams, jaccard, near_duplicates, sign
from dataset_builder.corpora.sample import Member, allocate, draw, gather
from dataset_builder.corpora.schema import CorpusError, Samples

PAGE = (
    "tea kettle garden window letter cousin train platform soup pencil cloud ladder button harbour violin "
    "pepper blanket candle"
)
WORDS = PAGE.split()


def text(chance: random.Random, n: int = 40) -> str:
    return " ".join(chance.choices(WORDS, k=n))


def true_jaccard(first: str, second: str) -> float:
    a, b = ({t[i : i + 5] for i in range(len(t) - 4)} for t in (first, second))
    return len(a & b) / len(a | b)


def test_jaccard_is_of_the_sets_of_five_grams() -> None:
    """`soup is hot` and `soup is not`: grams 0 to 3 of each 7 end before the change, 3 differ."""
    assert jaccard(grams("soup is hot"), grams("soup is not")) == 4 / 10
    assert jaccard(grams("soup"), grams("soup")) == 1
    assert len(grams("aaaaaaaa")) == 1


def test_grams_tell_scripts_and_order_apart() -> None:
    """Hashes are of the characters in order, beyond the first plane too."""
    apart = ["abcde", "edcba", "你好你好你", "😀😀😀😀😁", "abcd "]
    assert len({int(h) for t in apart for h in grams(t)}) == 5


def test_every_pair_above_the_threshold_is_found_and_no_other() -> None:
    """On 300 texts, with edits at random: exactly what comparing every text with all that stay before it gives."""
    chance = random.Random(3)
    texts = [text(chance) for _ in range(100)]
    for _ in range(200):
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
    """Texts whose signatures are made equal, but whose words differ, all stay."""
    texts = [text(random.Random(n)) for n in range(20)]
    signatures, sizes = sign(texts)
    signatures[:], sizes[:] = signatures[0], sizes[0]
    assert list(near_duplicates(signatures, sizes, texts.__getitem__, 0.8)) == []


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


def test_nothing_and_one() -> None:
    """No text and a single one have no duplicates."""
    for texts in ([], ["alone"]):
        assert list(near_duplicates(*sign(texts), texts.__getitem__, 0.8)) == []


def test_bands_promise_what_the_docstring_says() -> None:
    """1 - (1 - J⁵)²⁵ at 0.8, and every value of a signature but three is used."""
    assert round(1 - (1 - 0.8**dedupe.ROWS) ** dedupe.BANDS, 5) == 0.99995
    assert dedupe.BANDS * dedupe.ROWS == dedupe.VALUES - 3


def test_allocation_is_proportional_by_largest_remainder() -> None:
    """10 of 70, 20, 10 is 7, 2, 1; 4 of 5, 5, 5 gives the remainder to the first."""
    assert allocate([70, 20, 10], 10, "proportional") == [7, 2, 1]
    assert allocate([5, 5, 5], 4, "proportional") == [2, 1, 1]
    assert allocate([5, 5], 0, "proportional") == [0, 0]


def test_allocation_is_equal_as_far_as_strata_reach() -> None:
    """2 of the small stratum, the other 10 shared; one too many goes to the largest."""
    assert allocate([100, 2, 50], 12, "equal") == [5, 2, 5]
    assert allocate([100, 2, 50], 13, "equal") == [6, 2, 5]
    assert allocate([3, 3], 6, "equal") == [3, 3]


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


def test_samples_are_disjoint_stratified_and_of_the_asked_size() -> None:
    """Three in four rows are of stratum a, in each sample."""
    samples = Samples(validation=20, test=40, seed=1)
    validation, test = draw(gather(members(400), samples), samples)
    assert (len(validation), len(test), validation & test) == (20, 40, set())
    strata = dict(members(400))
    assert [sum(strata[i] == ("a",) for i in own) for own in (validation, test)] == [15, 30]


def test_a_sample_depends_on_the_seed_and_not_on_the_order() -> None:
    """Rows in reverse give the same sample, another seed another one."""
    samples = Samples(validation=20, test=40, seed=1)
    other = samples.model_copy(update={"seed": 2})
    drawn = draw(gather(members(400), samples), samples)
    assert drawn == draw(gather(members(400)[::-1], samples), samples)
    assert drawn != draw(gather(members(400), other), other)


def test_only_members_that_may_be_drawn_are_held() -> None:
    """Of 400 rows, the twelve of each stratum that come first by their hash."""
    found = gather(members(400), Samples(validation=5, test=7, seed=1))
    assert {name: (s.size, len(s.first)) for name, s in found.items()} == {("a",): (300, 12), ("b",): (100, 12)}


def test_a_sample_larger_than_the_corpus_is_an_error() -> None:
    """A smaller one in silence would be another sample than was asked."""
    too_many = Samples(validation=20, test=40, seed=1)
    with pytest.raises(CorpusError, match=r"the corpus has 50 rows, the samples ask for 20 \+ 40; ask for fewer"):
        draw(gather(members(50), too_many), too_many)
