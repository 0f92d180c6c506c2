"""Forbidden terms, and harmless phrases that look like them: refused_terms.yaml and allowed_amounts.yaml.

The terms name substances and landmarks, so the file has only their salted hashes: a text's words are hashed the same
way and compared. scripts/hash_terms.py generates it from a list that isn't in any repository.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from dataset_builder.reading.markdown import Errors
from dataset_builder.reading.settings import fitted, misfits, read_yaml
from dataset_builder.schema import Strict

WORD = re.compile(r"[^\W_]+")
LONGEST = 3  # words in a term
DIGITS = 20  # hex digits of each hash


class Allowed(Strict):
    """A harmless phrase that reads as an amount, a substance or a place. `where`: a file name or a pattern."""

    phrase: str = Field(min_length=4)
    where: str = Field(min_length=1)
    reason: str = Field(min_length=10)


class Terms(Strict):
    """refused_terms.yaml. `begins`: hashes of the first words of terms of several words."""

    salt: str = Field(min_length=8)
    begins: frozenset[str]
    terms: Mapping[str, frozenset[str]]


class Hit(NamedTuple):
    """A forbidden term in a text, and its category."""

    start: int
    end: int
    category: str


@dataclass(frozen=True)
class Refused:
    """Both lists of a content folder."""

    terms: Terms
    allowed: tuple[Allowed, ...]

    def hits(self, text: str) -> list[Hit]:
        """Every run of up to three words that is a forbidden term; the longest if several start at the same word."""
        words, found, after = WORD.findall(text), list[Hit](), 0
        for n, word in enumerate(words):
            if n < after or word in self._harmless:
                continue
            longest = LONGEST if hashed(self.terms.salt, stem(word)) in self.terms.begins else 1
            for size in range(min(longest, len(words) - n), 0, -1):
                phrase = " ".join(map(stem, words[n : n + size]))
                if category := self._categories.get(hashed(self.terms.salt, phrase)):
                    spans = [match.span() for match in WORD.finditer(text)]
                    after = n + size
                    found.append(Hit(spans[n][0], spans[after - 1][1], category))
                    break
            else:
                if longest == 1:
                    self._harmless.add(word)
        return found

    @functools.cached_property
    def _harmless(self) -> set[str]:
        """Words seen so far that don't start any term; they make up most of a text."""
        return set()

    @functools.cached_property
    def _categories(self) -> dict[str, str]:
        """Hash of a term → its category."""
        return {digest: name for name, digests in self.terms.terms.items() for digest in digests}

    def allowing(self, text: str, file: str) -> Callable[[int, int], bool]:
        """A function that returns whether a span of the text lies inside a phrase allowed in this file."""
        spans = sorted(
            match.span()
            for entry in self.allowed
            if fnmatchcase(file, entry.where)
            for match in re.finditer(re.escape(entry.phrase), text, re.IGNORECASE)
        )
        starts, furthest = [start for start, _ in spans], list(accumulate((end for _, end in spans), max))

        def allows(start: int, end: int) -> bool:
            before = bisect_right(starts, start)
            return before > 0 and furthest[before - 1] >= end

        return allows


@functools.lru_cache(maxsize=2**16)
def stem(word: str) -> str:
    """A word in lower case, without accents or plural s."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", word.lower()) if not unicodedata.combining(c))
    return plain[:-1] if len(plain) > 3 and plain.endswith("s") and not plain.endswith("ss") else plain


@functools.lru_cache(maxsize=2**17)
def hashed(salt: str, words: str) -> str:
    """The salted hash of stemmed words."""
    return hashlib.sha256(f"{salt}:{words}".encode()).hexdigest()[:DIGITS]


def read_refused(root: Path, errors: Errors) -> Refused:
    """Both lists of a content folder; the second is optional."""
    path, entries = root / "refused_terms.yaml", tuple[Allowed, ...]()
    terms = fitted(Terms, path, read_yaml(path, "salt, begins and terms", errors), errors)
    read = terms or Terms(salt="unread or missing", begins=frozenset(), terms={})
    path = root / "allowed_amounts.yaml"
    if not os.path.lexists(path):
        return Refused(read, entries)
    allowed = read_yaml(path, "phrases, each with its file and the reason", errors, list)
    try:
        entries = TypeAdapter(tuple[Allowed, ...]).validate_python(allowed.value)
    except ValidationError as error:
        misfits(path, allowed, error, errors)
    return Refused(read, entries)
