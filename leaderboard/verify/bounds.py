"""How much a submission may ask of whoever verifies it: text that is held and read, verdicts that are made again, marks
on one letter. An honest run of any kind stays far below; what goes above is refused before it is judged.
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np

from dataset_builder.release import Release
from judge.llm.batch import ASKS
from judge.replies.schema import Reply
from judge.replies.script import visible
from leaderboard.schema import ARCHIVE, SUBMISSION, Answer, Problem, Response, SubmittedJudge

# Memory for replies: for any run, for each live turn that a run has (a long reasoning takes as much), and at most.
HELD, HELD_EACH, HELD_MOST = 64 * 2**20, 128 * 2**10, 2**30
# Characters of replies that are read, over all checks, members and repeats: for any run, for each verdict, and at most.
# A second reads about a million.
READ, READ_EACH, READ_MOST = 32 * 2**20, 32 * 2**10, 2**30
# Bytes that a member of the archive unpacks to: for any run, for each live turn (a request that repeats what was said,
# and a long reasoning), for each answer of a judge.
UNPACKED, TURN_EACH, ANSWER_EACH = 64 * 2**20, 256 * 2**10, 16 * 2**10
ANSWER = 64 * 2**10  # characters of a judge's answer: a label, three quotes and a reason
ANSWERS = 32  # lines that may answer one question: repeated deliveries, failures, unreadable answers
MADE = 500_000  # verdicts that are made again, over all members and repeats
LIGATURE = 18  # characters that one sign can stand for (U+FDFA)
MARKS = 128  # combining marks in a row: their order is sorted one by one, which takes the square of their number
SURPLUS = 1000  # lines above what a whole run has that are still read, to say what they are
BROKEN = 16 * 2**20  # bytes of lines that can't be read, after which the rest of a file is left


class Held:
    """The memory that replies take as they are read. `turns`: how many the whole run has."""

    def __init__(self, turns: int) -> None:
        self._most = min(HELD_MOST, HELD + turns * HELD_EACH)
        self._bytes = 0

    def add(self, response: Response) -> Problem | None:
        """Counts one response; a problem where it is too much for a run of this size."""
        self._bytes += sum(sys.getsizeof(text) for text in (*response.turns, *response.finish))
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


def letters(replies: Iterable[Reply], release: Release) -> int:
    """How many characters deciding every check of these replies once reads; reasoning, which nobody reads, not."""
    return sum(len(release.rows[r.id].evaluation) * _spelt_out(visible(turn)) for r in replies for turn in r.turns)


def _spelt_out(text: str) -> int:
    """At most how many characters a text has once signs that stand for several are written as these, as quotes are
    compared.
    """
    return len(text) if text.isascii() else len(text) + LIGATURE * len(_ligatures().findall(text))


@lru_cache(maxsize=1)
def _ligatures() -> re.Pattern[str]:
    """Signs that NFKC writes as three characters or more."""
    found = (chr(n) for n in range(sys.maxunicode + 1) if not 0xD800 <= n < 0xE000)
    return re.compile(f"[{''.join(c for c in found if len(unicodedata.normalize('NFKC', c)) > 2)}]")


def too_much(judge: SubmittedJudge, checks: int, read: int) -> list[Problem]:
    """Why judging again would take too long. `checks`: of all replies, by one judge once; `read`: their `letters`."""
    each = votes(judge)
    found: list[Problem] = []
    if each * checks > MADE:
        said = f"asks for {each} votes on each of {checks:,} checks; at most {MADE:,} verdicts are made again"
        found.append(Problem("too_many_votes", f"{SUBMISSION}: judge", said))
    if each * read > (most := min(READ_MOST, READ + each * checks * READ_EACH)):
        said = f"asks to read {read:,} characters {each} times; at most {most:,} are read of a run of this size"
        found.append(Problem("too_much_text", ARCHIVE, said))
    return found


class Asked:
    """The questions that answers are to, as they are read. `questions`: how many the judges were asked at most."""

    def __init__(self, questions: int) -> None:
        self._most = questions + SURPLUS
        self._lines: Counter[str] = Counter()

    def add(self, answer: Answer, where: str) -> list[Problem]:
        """Counts one answer; why it can't be replayed."""
        if answer.custom_id not in self._lines and len(self._lines) == self._most:
            said = f"has answers to more than {self._most:,} questions; a run of this size asks fewer"
            return [Problem("too_many_answers", ARCHIVE, said)]
        self._lines[answer.custom_id] += 1
        if self._lines[answer.custom_id] > ANSWERS:
            said = f"is one of more than {ANSWERS} answers to one question; a judge is asked {ASKS} times"
            return [Problem("too_many_answers", where, said)]
        if any(len(text) > ANSWER for text in answer.texts()):
            said = f"is an answer of more than {ANSWER:,} characters; expected a label and quotes"
            return [Problem("long_answer", where, said)]
        return stacked(_spoken(answer.texts()), where)


def _spoken(texts: Iterable[str]) -> Iterator[str]:
    """Texts, and the texts in them where they are JSON: in its escapes marks stand unseen."""
    for text in texts:
        yield text
        try:
            held = [json.loads(text.strip())]
        except (ValueError, RecursionError):
            continue
        while held:
            part = held.pop()
            if isinstance(part, str):
                yield part
            elif isinstance(part, dict | list):
                held += part if isinstance(part, list) else [*part, *part.values()]


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
