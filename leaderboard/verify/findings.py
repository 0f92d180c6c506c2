"""Problems and flags: a bounded list while verifying, then text for a terminal or plain values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from helmbench_common.formats.inert import inert, inert_all
from judge.wording import coefficient, people_title
from leaderboard.schema import Problem, Verified

SHOWN = 50  # problems of one kind that are listed
MEANING = {
    "verified": "everything that can be recomputed matches",
    "demo": "everything that can be recomputed matches; judged by the offline judge, so it is listed separately and "
    "never ranked",
    "refused": "something doesn't match, or the board doesn't accept it",
}


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
        yield from self._shown
        yield from (
            Problem(kind, "", f"and {n - SHOWN:,} more of this kind") for kind, n in self._counts.items() if n > SHOWN
        )

    @property
    def kinds(self) -> set[str]:
        return set(self._counts)


def line(problem: Problem) -> str:
    """`kind: where: message`."""
    return ": ".join(part for part in (problem.kind, problem.where, problem.message) if part)


def text(verified: Verified) -> str:
    """The result for a terminal; characters that could control it are replaced."""
    lines = [f"{verified.path}: {verified.state}: {MEANING[verified.state]}"]
    if verified.submission and verified.scorecard:
        submission, composite = verified.submission, verified.scorecard.composite.value
        lines.append(
            f"  {submission.model.organization}/{submission.model.name}, {submission.dataset.version} "
            f"{submission.dataset.tier}, judge {submission.judge.name}, "
            + ("no composite" if composite is None else f"composite {composite:.1f}")
        )
        lines += [
            f"  declared, not recomputed: {p.judge} with people on {people_title(p)}: κ {coefficient(p.kappa)}, "
            f"people {coefficient(p.people)}"
            for p in verified.scorecard.judge.people
        ]
    lines += [f"  {line(p)}" for p in verified.problems]
    lines += [f"  flag: {line(p)}" for p in verified.flags]
    return "\n".join(map(inert, lines))


def record(verified: Verified) -> dict[str, Any]:
    """The result as plain values, without replies and verdicts."""
    found = {
        "path": verified.path,
        "state": verified.state,
        "problems": [vars(p) for p in verified.problems],
        "flags": [vars(p) for p in verified.flags],
        "composite": verified.scorecard.composite.model_dump() if verified.scorecard else None,
    }
    return {name: inert_all(value) for name, value in found.items()}
