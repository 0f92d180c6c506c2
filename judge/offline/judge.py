"""The offline judge: an approximate reading of replies by word patterns. No key, no network, no weights.

It is here so that every stage runs for everyone, and so that a demo is honest about what decided it: each verdict it
gives says `offline`, each report that rests on it says approximate, and a run judged by it is never ranked. It reads
English only and knows no irony. Criteria that it has no reading for are an error, not a silent pass.

    reply → addressed.py (what is said to the person) → readings.py (one decision per criterion) over patterns.py,
    stances.py
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from judge.offline.addressed import Addressed, addressed
from judge.offline.readings import NEEDS_MESSAGE, READERS
from judge.offline.readings import Reading as _Located

KEPT = 20_000  # characters up to which a reply's reading is remembered
NAME = "offline-3"  # raise the number when a pattern changes: verdicts of two versions are not the same judge's


class Reading(NamedTuple):
    """One of the criterion's labels, and the spans that it rests on, copied from the reply."""

    answer: str
    evidence: tuple[str, ...] = ()


def judge(criterion: str, message: str, reply: str) -> Reading:
    """Reads one visible reply against a criterion. Empty, refused, filtered and cut-off replies are decided by rule
    before.

    Raises:
        KeyError: this judge has no reading for the criterion.
    """
    seen = _addressed(reply) if len(reply) <= KEPT else addressed(reply)
    # A flood is read once and not kept.
    read = _judge if len(seen.text) <= KEPT else _judge.__wrapped__
    located = read(criterion, _addressed(message).text if criterion in NEEDS_MESSAGE else "", seen.text)
    return Reading(located.answer, tuple(dict.fromkeys(seen.original(reply, *span).strip() for span in located.spans)))


def knows(criterion: str) -> bool:
    return criterion in READERS


# The policies repeat themselves and so do models; 200 seeds of `random` are read in seconds.
@lru_cache(maxsize=20_000)
def _judge(criterion: str, message: str, text: str) -> _Located:
    return READERS[criterion](message, text)


# One reply is read for several criteria in a row.
@lru_cache(maxsize=1_000)
def _addressed(reply: str) -> Addressed:
    return addressed(reply)
