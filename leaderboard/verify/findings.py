"""What verifying has found so far. Bounded: a folder made to have millions of faults fills no memory with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from leaderboard.schema import Problem

SHOWN = 50  # of one kind that are listed


class Problems:
    """The first SHOWN problems of each kind, and how many more there are."""

    def __init__(self) -> None:
        self._shown: list[Problem] = []
        self._counts: Counter[str] = Counter()

    def append(self, problem: Problem) -> None:
        self._counts[problem.kind] += 1
        if self._counts[problem.kind] <= SHOWN:
            self._shown.append(problem)

    def __iadd__(self, problems: Iterable[Problem]) -> Problems:
        for problem in problems:
            self.append(problem)
        return self

    def __iter__(self) -> Iterator[Problem]:
        """What is shown, with a line for what isn't."""
        yield from self._shown
        yield from (
            Problem(kind, "", f"and {n - SHOWN:,} more of this kind") for kind, n in self._counts.items() if n > SHOWN
        )

    @property
    def kinds(self) -> set[str]:
        return set(self._counts)
