"""The first release's spellings: `python -m dataset_builder …` and `python -m judge …` stand in people's CI files.

They are the same commands. Only what is spelt otherwise now is put into today's words.
"""

from __future__ import annotations

from collections.abc import Sequence

# `--json FILE` wrote a file where `--json` prints now.
FILES = frozenset({"compare", "appropriateness", "verify", "ratings"})
# One option took several values.
SEVERAL = frozenset({"--labels"})


def today(arguments: Sequence[str]) -> list[str]:
    """The arguments of the first release as today's command reads them."""
    if not arguments:
        return []
    given = [*arguments]
    if given[0] in FILES:
        given = [
            a.replace("--json", "--json-file", 1) if a == "--json" or a.startswith("--json=") else a for a in given
        ]
    return _repeated(given)


def _repeated(given: list[str]) -> list[str]:
    """`--labels A B` as `--labels A --labels B`."""
    found: list[str] = []
    several: str | None = None
    for word in given:
        if word.startswith("-"):
            several = word if word in SEVERAL else None
        elif several is not None and found[-1] != several:
            found.append(several)
        found.append(word)
    return found
