"""Writes dataset_builder/content/refused_terms.yaml: salted hashes of terms that the content must not contain.

Usage: python scripts/hash_terms.py LIST [--add] [--out FILE]. LIST has lines of `category: term, term, …` and stays
out of this repository. Categories: medicine, drug, poison, place. `--add` keeps the file's hashes and their salt, so a
list can grow without its earlier words.

Places are landmarks of one kind from any travel guide, none singled out. A list of places where people died would tell
a reader who guesses its words something harmful; this one tells nothing.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from harness import run

from dataset_builder.prompts import CONTENT
from dataset_builder.reading.refused import LONGEST, WORD, Terms, hashed, stem
from helmbench_common.formats import yaml_file

HEAD = """\
# Terms that no text here may hold: names of medicines, drugs and poisons, and of landmarks. They are named nowhere, so
# this file doesn't name them either: it holds salted SHA-256 hashes (the first 20 digits) of their words, in small
# letters, without accents and without the s of a plural. `check` hashes the words of every text, one to three in a row,
# and compares. Made by scripts/hash_terms.py from lists that are in no repository; never edited by hand.
# What is hashed can be guessed by trying names, which is fine: the aim is that nobody reads a list of them here.
"""
SAID = {
    "medicine": "generic names and brands, on prescription or not",
    "drug": "taken for their effect, and what they are called",
    "poison": "of the house, the garden, the garage and the laboratory, and plants",
    "place": "bridges, towers, cliffs, falls and dams of travellers' guides, none singled out",
}


def main(list: Path, out: Path = CONTENT / "refused_terms.yaml", add: bool = False) -> None:
    """Hash a list of terms that no content may contain. LIST: lines of 'category: term, term, …', kept elsewhere."""
    terms: defaultdict[str, set[str]] = defaultdict(set)
    for number, line in enumerate(list.read_text(encoding="utf-8").splitlines(), start=1):
        category, colon, names = line.partition(":")
        words = [" ".join(map(stem, WORD.findall(name))) for name in names.split(",")]
        if not colon or category not in SAID or any(not 1 <= len(w.split()) <= LONGEST for w in words):
            what = f"expected 'category: term, term', of {', '.join(SAID)}, each of one to {LONGEST} words"
            raise ValueError(f"{list}:{number}: {what}")
        terms[category] |= set(words)
    kept = Terms(salt=secrets.token_hex(8), begins=frozenset(), terms={})
    if add:
        kept = Terms.model_validate(yaml_file.load(out, "refused terms").value)
    found = with_terms(kept, terms)
    out.write_text(yaml_of(found), encoding="utf-8")
    print(f"{out}: {', '.join(f'{len(own)} {name}' for name, own in sorted(found.terms.items()))}")


def with_terms(kept: Terms, terms: Mapping[str, set[str]]) -> Terms:
    """The kept hashes and those of `terms`, with the same salt."""
    begins = {words.split()[0] for found in terms.values() for words in found if " " in words}
    more = {name: _hashes(kept.salt, words) for name, words in terms.items()}
    together = {name: kept.terms.get(name, frozenset()) | more.get(name, frozenset()) for name in {*kept.terms, *more}}
    return Terms(salt=kept.salt, begins=kept.begins | _hashes(kept.salt, begins), terms=together)


def _hashes(salt: str, words: set[str]) -> frozenset[str]:
    return frozenset(hashed(salt, w) for w in words)


def yaml_of(found: Terms) -> str:
    """The file's text. Hashes are sorted, so they don't show the list's order."""
    lines = [f'salt: "{found.salt}"', "begins:  # first words of terms of two or three words"]
    lines += [*_lines(found.begins, "  "), "terms:"]
    for name in sorted(found.terms):
        lines += [f"  {name}:  # {SAID[name]}", *_lines(found.terms[name], "    ")]
    return HEAD + "\n".join(lines) + "\n"


def _lines(digests: frozenset[str], indent: str) -> list[str]:
    return [f'{indent}- "{digest}"' for digest in sorted(digests)]


if __name__ == "__main__":
    run(main)
