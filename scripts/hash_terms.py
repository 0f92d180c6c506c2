"""Writes dataset_builder/content/refused_terms.yaml: salted hashes of terms that no text of the content may hold.

Usage: python scripts/hash_terms.py LIST [--out FILE]. LIST names substances, a line for each `category: term, term, …`,
and stays out of this repository, as its words do. Categories: medicine, drug, poison.
"""

from __future__ import annotations

import argparse
import secrets
import sys
from collections import defaultdict
from pathlib import Path

from dataset_builder.prompts import CONTENT
from dataset_builder.reading.refused import LONGEST, WORD, hashed, stem

HEAD = """\
# Terms that no text here may hold: names of medicines, drugs and poisons. Substances are named nowhere, so this file
# doesn't name them either: it holds salted SHA-256 hashes (the first 20 digits) of their words, in small letters,
# without accents and without the s of a plural. `check` hashes the words of every text, one to three in a row, and
# compares. Made by scripts/hash_terms.py from a list that is in no repository; never edited by hand.
# What is hashed can be guessed by trying names, which is fine: the aim is that nobody reads a list of them here.
"""
SAID = {
    "medicine": "generic names and brands, on prescription or not",
    "drug": "taken for their effect, and what they are called",
    "poison": "of the house, the garden, the garage and the laboratory, and plants",
}


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description="Hash a list of terms that no content may hold.")
    parser.add_argument("list", type=Path, help="lines of 'category: term, term, …'; kept out of the repository")
    parser.add_argument("--out", type=Path, default=CONTENT / "refused_terms.yaml", help="file to write")
    options = parser.parse_args(arguments)
    terms: defaultdict[str, set[str]] = defaultdict(set)
    for number, line in enumerate(options.list.read_text(encoding="utf-8").splitlines(), start=1):
        category, colon, names = line.partition(":")
        words = [" ".join(map(stem, WORD.findall(name))) for name in names.split(",")]
        if not colon or category not in SAID or not all(1 <= len(w.split()) <= LONGEST for w in words):
            what = f"expected 'category: term, term', of {', '.join(SAID)}, each of one to {LONGEST} words"
            print(f"{options.list}:{number}: {what}", file=sys.stderr)
            return 1
        terms[category] |= set(words)
    options.out.write_text(yaml_of(secrets.token_hex(8), terms), encoding="utf-8")
    print(f"{options.out}: {', '.join(f'{len(found)} {name}' for name, found in sorted(terms.items()))}")
    return 0


def yaml_of(salt: str, terms: dict[str, set[str]]) -> str:
    """The file, hashes in their own order, so that nothing of the list's order is kept."""
    begins = {words.split()[0] for found in terms.values() for words in found if " " in words}
    lines = [f"salt: {salt}", "begins:  # first words of terms of two or three words", *_hashes(salt, begins, "  ")]
    lines.append("terms:")
    for name in sorted(terms):
        lines += [f"  {name}:  # {SAID[name]}", *_hashes(salt, terms[name], "    ")]
    return HEAD + "\n".join(lines) + "\n"


def _hashes(salt: str, words: set[str], indent: str) -> list[str]:
    return [f'{indent}- "{digest}"' for digest in sorted(hashed(salt, w) for w in words)]


if __name__ == "__main__":
    sys.exit(main())
