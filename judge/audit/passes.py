"""The passes over the conversations: who is in danger and since when, and how the replies are judged.

The judge's question is the benchmark's own question for the category of a message (`judge.llm.questions`), asked about
all that a user said up to a turn: about the whole first, then, in conversations found in danger, about halves, until
the first turn is known. So a conversation of n turns costs one question, and at most log2(n) more.
"""

from __future__ import annotations

import random
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple, TypeVar, get_args

from dataset_builder.corpora.normalize import fold
from dataset_builder.release import Release
from dataset_builder.schema import CalibrationRow, Category, CrisisCategory, CriterionCheck
from dataset_builder.stats.surface import ALARM, matches
from judge.agreement.answers import JudgeLabel, is_offline, offline_labels, row_of, ruled
from judge.agreement.cases import Case
from judge.audit.logs import Talk, Talks
from judge.llm.asking import Asker, refuse_lacking
from judge.llm.questions import JudgeRequest, category_request, for_calibration, offered

HANDLING = ("sees-the-danger", "acts-at-once", "reachable-resource", "withholds-the-means")
CONTROL = "answers-the-need"
LONGEST = 100_000  # characters of a user's words that a judge is asked about
CHUNK = 500  # replies whose requests are in memory at once
K = TypeVar("K")
Asked = Callable[[], Iterator[tuple[K, JudgeRequest]]]


class Danger(NamedTuple):
    """`category`: None from the word list. `turn`: the user's turn where the danger first shows, from 1."""

    category: CrisisCategory | None
    turn: int


class Reply(NamedTuple):
    """A reply to judge: to the user's `turn`, from 1, of conversation `talk`, by these criteria."""

    talk: int
    turn: int
    criteria: tuple[str, ...]


class Found(NamedTuple):
    """What the passes found. `labels`: by conversation, of `replies` to danger and in the sample."""

    danger: dict[int, Danger]
    unread: set[int]
    replies: dict[int, Reply]
    labels: dict[int, dict[str, JudgeLabel]]
    population: int

    def failing(self, n: int) -> bool:
        return any((label.label or "").startswith("FAIL") for label in self.labels.get(n, {}).values())


@dataclass(frozen=True)
class Judging:
    """Who judges: `offline`, or a model through `asker`. `country`: the users'."""

    release: Release
    name: str
    asker: Asker
    country: str | None = None

    def danger(self, talks: Talks) -> tuple[dict[int, Danger], set[int]]:
        """The conversations in danger by their place, and those that could not be read."""
        if is_offline(self.name):
            return dict(_listed(talks)), set()
        found: dict[int, CrisisCategory] = {}
        long = {n for n, talk in enumerate(talks) if sum(len(text) for _, text in said(talk)) > LONGEST}

        def wholes() -> Iterator[tuple[int, JudgeRequest]]:
            return ((n, self._category(said(t))) for n, t in enumerate(talks) if n not in long)

        unread = set(long)
        for n, answer in self._answers(wholes):
            category = next((c for c in get_args(CrisisCategory) if c == answer.label), None)
            if category is None:
                unread.add(n)
            elif category != "no_crisis":
                found[n] = category
        first = self._first_turns(talks, found)
        return {n: Danger(category, first[n]) for n, category in found.items()}, unread

    def _first_turns(self, talks: Talks, found: Iterable[int]) -> dict[int, int]:
        """The turn from which on each conversation is in danger, by halving: rounds of questions about a beginning."""
        spans = {n: (0, len(said(talks[n])) - 1) for n in found}
        while wide := {n: sum(span) // 2 for n, span in spans.items() if span[0] < span[1]}:
            for n, answer in self._answers(self._beginnings(talks, wide)):
                low, high = spans[n]
                spans[n] = (wide[n] + 1, high) if answer.label in (None, "no_crisis") else (low, wide[n])
        return {n: said(talks[n])[place][0] for n, (place, _) in spans.items()}

    def _beginnings(self, talks: Talks, ends: dict[int, int]) -> Asked[int]:
        return lambda: ((n, self._category(said(talks[n])[: end + 1])) for n, end in ends.items())

    def _category(self, words: list[tuple[int, str]]) -> JudgeRequest:
        """The question sorts a conversation's last words, so all that was said is asked about as one message."""
        message = {"role": "user", "content": "\n\n".join(text for _, text in words)}
        return category_request([message], self._categories, self.release.prompts, self.name, 0)

    @cached_property
    def _categories(self) -> dict[CrisisCategory, Category]:
        return offered(self.release)

    def _answers(self, asked: Asked[K]) -> Iterator[tuple[K, JudgeLabel]]:
        """Every question's answer, in order; first asks for the missing ones if there is an endpoint.

        Raises:
            RunError: answers are missing, and there is no endpoint; they are then in requests.jsonl.
        """

        def questions() -> Iterator[JudgeRequest]:
            return (request for _, request in asked())

        stored = self.asker.answers(self.name, questions)
        for key, request in asked():
            answer = stored(request)
            unread = answer if isinstance(answer, str) else None if answer.label else "unparsable"
            yield key, JudgeLabel(None if isinstance(answer, str) else answer.label, unread)
        refuse_lacking(stored, questions)

    def labels(self, talks: Talks, replies: Iterable[Reply]) -> dict[int, dict[str, JudgeLabel]]:
        """The labels of replies by conversation and criterion. Rules decide first, as in a run; they and the offline
        judge work on this machine and read what was written, a model what is masked.
        """
        wanted = list(replies)
        found: dict[int, dict[str, JudgeLabel]] = {reply.talk: {} for reply in wanted}
        decide = offline_labels if is_offline(self.name) else ruled
        for rows in self._rows(talks, wanted, masked=False):
            for key, label in decide(self.release, "criterion", list(rows.values())).items():
                place, _, criterion = key.partition(" ")
                found[int(place)][criterion] = label
        if is_offline(self.name):
            return found

        def open_questions() -> Iterator[tuple[tuple[int, str], JudgeRequest]]:
            for rows in self._rows(talks, wanted, masked=True):
                for (n, criterion), row in rows.items():
                    if not (label := found[n].get(criterion)) or not label.by_rule:
                        yield (n, criterion), for_calibration(row, self.release, self.name)

        for (n, criterion), label in self._answers(open_questions):
            found[n][criterion] = label
        return found

    def _rows(
        self, talks: Talks, replies: Iterable[Reply], masked: bool
    ) -> Iterator[dict[tuple[int, str], CalibrationRow]]:
        """The cases in chunks, in the form that rules and judges read."""
        rest = iter(replies)
        while chunk := list(islice(rest, CHUNK)):
            rows: dict[tuple[int, str], CalibrationRow] = {}
            for n, turn, criteria in chunk:
                texts = talks[n].turns if masked else talks[n].written
                before, reply = tuple(texts[: 2 * turn - 1]), texts[2 * turn - 1] or " "  # " " is an empty reply
                for name in criteria:
                    rows[n, name] = row_of(Case(f"{n} {name}", name, before, reply, self.country))
            yield rows


def said(talk: Talk) -> list[tuple[int, str]]:
    """The user's turns that say something new, each with its number from 1."""
    new: dict[str, tuple[int, str]] = {}
    for turn, text in enumerate(talk.turns[::2], start=1):
        new.setdefault(fold(text), (turn, text))
    return list(new.values())


def _listed(talks: Talks) -> Iterator[tuple[int, Danger]]:
    """Conversations with a word in the list; it names no category."""
    for n, talk in enumerate(talks):
        if turn := next((turn for turn, text in said(talk) if matches(ALARM, [text])), None):
            yield n, Danger(None, turn)


def applying(release: Release) -> dict[CrisisCategory | None, tuple[str, ...]]:
    """The criteria of HANDLING by which the release judges replies to danger of each category; None: of any category,
    for danger whose category is unknown.
    """
    used: dict[CrisisCategory, set[str]] = defaultdict(set)
    for row in (*release.rows.values(), *release.messages.values()):
        if row.polarity == "crisis" and row.crisis_category != "no_crisis":
            used[row.crisis_category] |= {c.criterion for c in row.evaluation if isinstance(c, CriterionCheck)}
    every = set(HANDLING).intersection(*used.values())
    return {None: tuple(c for c in HANDLING if c in every)} | {
        category: tuple(c for c in HANDLING if c in used.get(category, every)) for category in get_args(CrisisCategory)
    }


def handled(talks: Talks, danger: dict[int, Danger], release: Release) -> list[Reply]:
    """The replies to danger, where there is one."""
    criteria = applying(release)
    return [Reply(n, d.turn, criteria[d.category]) for n, d in danger.items() if d.turn in talks[n].replied]


def sampled(talks: Talks, others: array[int], size: int, seed: int) -> list[Reply]:
    """One reply, drawn at random, in each of a sample of `others`, which have replies."""
    drawn = random.Random(seed)
    chosen = sorted(others[n] for n in drawn.sample(range(len(others)), min(size, len(others))))
    return [Reply(n, drawn.choice(talks[n].replied), (CONTROL,)) for n in chosen]
