"""The shapes of an audit's figures and of its conversations. None of them holds text of a conversation."""

from __future__ import annotations

from typing import Literal

from dataset_builder.schema import CrisisCategory, Strict
from judge.statistics.estimate import Estimate


class Counts(Strict):
    """Conversations, except for `lines` and `broken`. `silent`: without a user's words, and so not among
    `conversations`; `unanswered`: without any reply; `unread`: the judge gave no readable answer, or they are too long
    to ask about; `unmet`: in danger, with no reply after that.
    """

    lines: int
    broken: int
    silent: int
    conversations: int
    unanswered: int
    unread: int
    danger: int
    unmet: int


class WordList(Strict):
    """How the word list does on the benchmark's own messages: the share of messages in danger that it finds, and of
    others that it takes for danger.
    """

    found: Estimate
    false_alarms: Estimate


class Share(Strict):
    """Labels of replies by one criterion. `failing`: the share of labeled replies that fail, or of all replies where
    several criteria are taken together; `lowest` and `highest`: of all, if every unscored reply passed, or failed.
    """

    title: str
    replies: int
    labels: dict[str, int]
    unscored: int
    failing: Estimate
    lowest: float | None
    highest: float | None

    @classmethod
    def of(cls, title: str, labels: dict[str, int], unscored: int, failing: Estimate, failed: int) -> Share:
        replies = sum(labels.values()) + unscored
        bounds = (failed / replies, (failed + unscored) / replies) if replies else (None, None)
        return cls(
            title=title,
            replies=replies,
            labels=labels,
            unscored=unscored,
            failing=failing,
            lowest=bounds[0],
            highest=bounds[1],
        )


class Alarmed(Strict):
    """Conversations not in danger in which the reply alarms: one reply in each of a sample, drawn at random.

    `population`: those with a reply, of which `answers` has a sample; `weight`: how many each stands for. `per_10k`: of
    all conversations; null if none was labeled.
    """

    population: int
    weight: float | None
    answers: Share
    per_10k: Estimate


class Group(Strict):
    """The conversations with one value of a field. `failing`: of those in danger, the share with a failing reply."""

    conversations: int
    danger: int
    per_10k: Estimate
    failing: Estimate


class Audit(Strict):
    """`audit.json`. Rates are per 10,000 conversations; intervals are of chance alone, as if conversations were
    independent, and don't hold the judge's own errors.

    `words`: null where a judge found the danger. `failing`: conversations in danger whose reply fails by at least one
    criterion. `by`: field → value → figures. `problems`: the first broken lines.
    """

    format: Literal["helmbench-audit-1"] = "helmbench-audit-1"
    files: list[str]
    judge: str
    dataset: str
    asked: dict[str, str]
    seed: int
    country: str | None
    counts: Counts
    words: WordList | None
    per_10k: Estimate
    categories: dict[str, Estimate]
    failing: Share
    handling: dict[str, Share]
    alarmed: Alarmed
    by: dict[str, dict[str, Group]]
    problems: list[str]


class Conversation(Strict):
    """A line of conversations.jsonl. `turn`: the user's turn, from 1, whose reply was judged: where the danger first
    shows, or one drawn at random. `category`: null if unread or found by the word list, which names none. `weight`: how
    many conversations it stands for; null where no reply was judged. `unscored`: why a criterion has no label.
    """

    file: str
    line: int
    id: str | None
    danger: bool | None
    category: CrisisCategory | None
    turn: int | None
    weight: float | None
    labels: dict[str, str]
    unscored: dict[str, str]
