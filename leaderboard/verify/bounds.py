"""How much a submission may ask of whoever verifies it: text that is held and read, verdicts that are made again, marks
on one letter. An honest run of any kind stays far below; what goes above is refused before it is judged.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from leaderboard.schema import ARCHIVE, SUBMISSION, Problem, Response, SubmittedJudge
from replies.schema import Reply
from replies.visible import visible

# Memory for replies: for any run, for each live turn that a run has (a long reasoning takes as much), and at most.
HELD, HELD_EACH, HELD_MOST = 64 * 2**20, 128 * 2**10, 2**30
READ = 2**30  # characters of replies that judges read, over all members and repeats: about a quarter of an hour
MADE = 500_000  # verdicts that are made again, over all members and repeats
MARKS = 128  # combining marks in a row: their order is sorted one by one, which takes the square of their number
BROKEN = 16 * 2**20  # bytes of lines that can't be read, after which the rest of a file is left


class Held:
    """The memory that replies take as they are read. `turns`: how many the whole run has."""

    def __init__(self, turns: int) -> None:
        self._most = min(HELD_MOST, HELD + turns * HELD_EACH)
        self._bytes = 0

    def add(self, response: Response) -> Problem | None:
        """Counts one response; a problem where it is too much for a run of this size."""
        self._bytes += sum(sys.getsizeof(turn) for turn in response.turns)
        if self._bytes <= self._most:
            return None
        said = (
            f"its replies take more than {self._most:,} bytes, the most for a run of this size; the rest was not read"
        )
        return Problem("too_much_text", ARCHIVE, said)


def votes(judge: SubmittedJudge) -> int:
    """How often each reply is judged: by the offline judge once, by every other as often as it was asked."""
    members = judge.agreement[1:] or judge.agreement
    return sum(1 if m.prompt_hash is None else judge.repeats for m in members)


def too_much(judge: SubmittedJudge, checks: int, replies: Sequence[Reply]) -> list[Problem]:
    """Why judging these replies again would take too long. `checks`: of all replies, by one judge once."""
    each = votes(judge)
    found: list[Problem] = []
    if each * checks > MADE:
        said = f"asks for {each} votes on each of {checks:,} checks; at most {MADE:,} verdicts are made again"
        found.append(Problem("too_many_votes", f"{SUBMISSION}: judge", said))
    letters = sum(len(visible(turn)) for reply in replies for turn in reply.turns)
    if each * letters > READ:
        said = f"asks to read {letters:,} characters {each} times; at most {READ:,} are read"
        found.append(Problem("too_much_text", ARCHIVE, said))
    return found


@lru_cache(maxsize=1)
def _combining() -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which code points are sorted among their neighbours, shape (0x110000,)."""
    return np.array([unicodedata.combining(chr(n)) != 0 for n in range(sys.maxunicode + 1)], dtype=np.bool_)


def stacked(texts: Iterable[str], where: str) -> list[Problem]:
    """Texts in which so many combining marks stand in a row that bringing them into order could take for ever."""
    if not any(_stacked(text) for text in texts):
        return []
    return [Problem("stacked_marks", where, f"has more than {MARKS} combining marks in a row; no script writes so")]


def _stacked(text: str) -> bool:
    if text.isascii():
        return False
    marks = _combining()[np.frombuffer(text.encode("utf-32-le", "replace"), dtype=np.uint32)]
    others = np.flatnonzero(~marks)
    gaps = np.diff(np.concatenate(([-1], others, [len(marks)])))
    return int(gaps.max()) > MARKS + 1
