"""The language of a text, noted next to a verdict but never a reason for one: people switch languages, and replies may
follow.
"""

from __future__ import annotations

import unicodedata
from functools import cache, lru_cache
from typing import Any

LETTERS = 40  # a text with fewer letters and vowel signs is too short to identify
READ = 4_000  # characters from the start are enough
SURE = 0.95  # posterior probability


@lru_cache(maxsize=4_096)
def language(text: str) -> str | None:
    """The ISO 639-1 code of a text's language; None if the text is short, mixed or not in a language."""
    if sum(unicodedata.category(c)[0] in "LM" for c in text[:READ]) < LETTERS:
        return None
    code, share = _identifier().classify(text[:READ])
    return str(code) if code and share >= SURE else None


def another_language(reply: str, message: str) -> str | None:
    """A note such as `reply in es, message in en`, or None if they match or either is unknown."""
    said, asked = language(reply), language(message)
    return f"reply in {said}, message in {asked}" if said and asked and said != asked else None


@cache
def _identifier() -> Any:
    # Naive Bayes over byte n-grams, with its tables in the wheel: no download, deterministic. Takes half a second to
    # load.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
