"""Ratings of replies, and the ways in which they fail, as arrays: what the figures of `appropriateness.py` are made
of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dataset_builder.schema import UserMessage
from judge.schema import Verdict
from judge.scoring.table import INCIDENTS, Codes, Mask
from judge.statistics.intervals import Array

HIGHEST = 5
BY_RULE = -1  # in place of a judge


@dataclass(frozen=True)
class Ratings:
    """Every rating of a run: each run of each judge rates each reply once, 1 to 5.

    Arrays have shape (k,), k replies, or (r,), r ratings. A reply that a rule decided is rated alike by every judge
    run.
    """

    messages: list[UserMessage]  # those that were rated, by id
    message: Codes  # (k,) into `messages`
    repeat: Codes  # (k,) the model's run
    reply: Codes  # (r,) into the replies
    judge: Codes  # (r,) whose rating it is, into `judges`; BY_RULE
    rating: Codes  # (r,) 1 to 5, 0 where unscored
    judges: list[str]
    judge_runs: int

    @cached_property
    def counts(self) -> Codes:
        """(messages, 6): how many unscored ratings a message has, and how many of each from 1 to 5."""
        cells = self.message[self.reply] * (HIGHEST + 1) + self.rating
        return np.bincount(cells, minlength=len(self.messages) * (HIGHEST + 1)).reshape(-1, HIGHEST + 1)

    @cached_property
    def replies(self) -> Codes:
        """(messages,): replies to each message."""
        return np.bincount(self.message, minlength=len(self.messages))

    @cached_property
    def own(self) -> tuple[Array, Codes]:
        """Each judge's ratings of each reply that it read, by its own runs: counts of 1 to 5 of shape (items, 5), and
        the items' messages.
        """
        read = (self.judge != BY_RULE) & (self.rating > 0)
        items, place = np.unique(self.reply[read] * max(1, len(self.judges)) + self.judge[read], return_inverse=True)
        counts = np.bincount(place * HIGHEST + self.rating[read] - 1, minlength=len(items) * HIGHEST).reshape(
            -1, HIGHEST
        )
        return counts.astype(np.float64), self.message[items // max(1, len(self.judges))]


class Failing(NamedTuple):
    """Verdicts of criteria on replies to messages; arrays of shape (c,), one entry per verdict that is scored."""

    messages: list[UserMessage]
    message: Codes
    repeat: Codes
    criterion: Codes  # into `criteria`
    failed: Mask
    incident: Codes  # into INCIDENTS, -1 for none
    criteria: list[str]


def table(messages: Mapping[str, UserMessage], verdicts: Iterable[Verdict]) -> Ratings:
    """The ratings among `verdicts`; the others are left out.

    Raises:
        ValueError: a rating of an unknown message, one that is no whole number from 1 to 5, or a reply that is rated
            twice.
    """
    rated = [v for v in verdicts if v.check == "appropriateness"]
    places = _places(messages, rated)
    runs = max((len(v.votes) for v in rated), default=0) or 1
    judges: dict[str, int] = {}
    seen: set[tuple[str, int]] = set()
    reply: list[int] = []
    judge: list[int] = []
    rating: list[int] = []
    given: list[tuple[int, object]]
    for k, v in enumerate(rated):
        if (v.id, v.repeat) in seen:
            raise ValueError(f"rating of {v.id} repeat {v.repeat}: stands twice")
        seen.add((v.id, v.repeat))
        if v.decided_by.startswith("rule:"):
            given = [(BY_RULE, v.label)] * runs
        else:
            given = [(judges.setdefault(x.judge, len(judges)), x.label) for x in v.votes] or [
                (judges.setdefault(v.judge or "", len(judges)), v.label)
            ]
        for who, label in given:
            reply.append(k)
            judge.append(who)
            rating.append(_number(v, label))
    message, repeat = (
        np.array([places[v.id] for v in rated], dtype=np.int64),
        np.array([v.repeat for v in rated], dtype=np.int64),
    )
    of, by, given_ = (np.array(x, dtype=np.int64) for x in (reply, judge, rating))
    return Ratings([messages[i] for i in places], message, repeat, of, by, given_, list(judges), runs)


def failing(messages: Mapping[str, UserMessage], verdicts: Iterable[Verdict]) -> Failing:
    """The verdicts of criteria among `verdicts`, without those that are unscored.

    Raises:
        ValueError: a verdict of an unknown message.
    """
    judged = [v for v in verdicts if v.check == "criterion" and v.label is not None]
    places = _places(messages, judged)
    names: dict[str, int] = {}
    kinds: dict[str | None, int] = {None: -1, **{name: code for code, name in enumerate(INCIDENTS)}}
    return Failing(
        [messages[i] for i in places],
        np.array([places[v.id] for v in judged], dtype=np.int64),
        np.array([v.repeat for v in judged], dtype=np.int64),
        np.array([names.setdefault(str(v.criterion), len(names)) for v in judged], dtype=np.int64),
        np.array([v.label == "FAIL" for v in judged], dtype=bool),
        np.array([kinds[v.incident] for v in judged], dtype=np.int64),
        list(names),
    )


def _places(messages: Mapping[str, UserMessage], verdicts: Iterable[Verdict]) -> dict[str, int]:
    ids = sorted({v.id for v in verdicts})
    if unknown := [i for i in ids if i not in messages]:
        raise ValueError(f"rating of {unknown[0]}: no such message in the dataset")
    return {identity: n for n, identity in enumerate(ids)}


def _number(v: Verdict, label: object) -> int:
    if label is None:
        return 0
    if not isinstance(label, int) or not 1 <= label <= HIGHEST:
        raise ValueError(
            f"rating of {v.id} repeat {v.repeat}: is {label!r}; expected a whole number from 1 to {HIGHEST}"
        )
    return label
