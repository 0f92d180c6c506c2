"""Asks a language model and collects its answers, the same way for a run, the calibration set and a corpus.

Questions are written in the batch format (`requests.jsonl`); answers are in `replies*.jsonl`, whichever engine wrote
them; the live engine asks only what is missing. A judge's folder is HOME/judge/MODEL.
"""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from helmbench_common.files import fresh, naming
from judge.llm import batch
from judge.llm.budget import FREE, Budget, CostEstimate, Terms, Tokens
from judge.llm.errors import BudgetError, EngineError
from judge.llm.questions import JudgeRequest
from judge.replies.schema import RunError

if TYPE_CHECKING:
    from judge.llm.engine import Endpoint, Outcome

REQUESTS = "requests.jsonl"
# Called once for the estimate and once to ask: the questions are never all in memory.
Questions = Callable[[], Iterator[JudgeRequest]]


@dataclass(frozen=True)
class Collected:
    """The outcome of the missing questions: `asked` of them, and the tokens that this judge has used in total."""

    where: Path
    asked: int
    outcome: Outcome
    spent: Tokens
    terms: Terms

    @property
    def left(self) -> int:
        """The number of questions without an answer."""
        return self.asked - self.outcome.read - self.outcome.unreadable - self.outcome.refused

    @property
    def text(self) -> str:
        """A message for the user."""
        if not self.asked:
            return f"{self.where}: nothing is missing"
        spent = f"{self.spent.prompt:,} tokens in, {self.spent.completion:,} out"
        cost = f", {self.terms.prices.cost(self.spent):.4f}" if self.terms.prices else ""
        o = self.outcome
        counts = f"{o.read} answered, {o.unreadable} unreadable, {o.refused} refused"
        return f"{self.where}: {counts}; spent so far: {spent}{cost}"


class Stored:
    """The contents of a judge's folder, from any engine. `lacking`: ids of questions read so far that could still be
    asked. `models`: which models answered them.

    Raises:
        RunError: its files can't be read.
    """

    def __init__(self, where: Path) -> None:
        self.where = where
        self.lacking: set[str] = set()
        self.models: set[str] = set()
        self._replies = batch.Replies(where)
        self._seen: set[str] = set()
        self._read = 0

    def __call__(self, request: JudgeRequest) -> batch.Answer:
        """A question's answer; `error` if there is none."""
        records = self._replies.of(request.custom_id)
        if request.custom_id not in self._seen:
            self._seen.add(request.custom_id)
            self._read += len(records)
        self.models |= {name for record in records if (name := batch.answered_by(record)) is not None}
        found = batch.read(records, request)
        if found.missing:
            self.lacking.add(request.custom_id)
        return found.answer

    def surplus(self) -> int:
        """The number of lines whose question has not been read; call it after reading everything."""
        return self._replies.lines - self._read


@dataclass(frozen=True)
class Asker:
    """Where judges' answers are stored, the endpoint for missing ones (None: don't ask), and the cost limits. `keep`:
    whether what is asked live also stays in requests.jsonl, which nothing needs to go on.
    """

    home: Path
    endpoint: Endpoint | None = None
    terms: Terms = FREE
    keep: bool = True

    def folder(self, model: str) -> Path:
        return batch.folder(self.home, model)

    def answers(self, model: str, questions: Questions) -> Stored:
        """A model's answers; asks for missing ones first if there is an endpoint.

        Raises:
            EngineError, BudgetError: as `ask`.
        """
        if self.endpoint is not None:
            done = ask(questions, self.folder(model), self.endpoint, self.terms, self.keep)
            if done.asked:
                sys.stderr.write(done.text + "\n")
        return Stored(self.folder(model))


def ask(questions: Questions, where: Path, endpoint: Endpoint, terms: Terms, keep: bool = True) -> Collected:
    """Asks what is missing from `questions`; the answers are then in `where`/replies.jsonl, and `Stored` reads them.

    Raises:
        EngineError: the endpoint can't be used, another process is asking, or some questions got no answer.
        BudgetError: the next question could pass the cap.
    """
    done = collect(questions, where, endpoint, terms, keep)
    if done.outcome.capped:
        raise BudgetError(
            f"{done.text}; stopped before --max-cost {terms.cap:g} could be passed, {done.left} of {done.asked} not "
            "answered. Run the same command with a higher --max-cost to go on"
        )
    if done.left:
        raise EngineError(
            f"{done.text}; {done.left} of {done.asked} got no answer (the last: {done.outcome.problem}). Run the same "
            "command again to ask these"
        )
    return done


def collect(questions: Questions, where: Path, endpoint: Endpoint, terms: Terms, keep: bool = True) -> Collected:
    """Like `ask`, but returns the outcome of the questions instead of raising. `keep`: as in `Asker`.

    Raises:
        EngineError: the endpoint can't be used, or another process is asking.
    """
    from judge.llm.engine import Outcome, drive  # the client takes a quarter of a second to import

    with closing(batch.Log(where)) as log:
        replies = batch.Replies(where)
        estimate = _write(where / REQUESTS if keep else None, questions(), replies, keep=True)
        budget = Budget(where, replies.live, replies.elsewhere, terms)
        if not estimate.requests:
            return Collected(where, 0, Outcome(), budget.spent, terms)
        sys.stderr.write(f"{where}: {estimate.text(terms.prices)}\n")
        with closing(budget):
            outcome = drive(batch.missing(questions(), replies), log, endpoint, budget, estimate.requests)
        return Collected(where, estimate.requests, outcome, budget.spent, terms)


def write_missing(questions: Questions, where: Path, path: Path | None = None) -> CostEstimate:
    """Writes unanswered questions in the batch format to `path` (default: requests.jsonl in the judge's folder)."""
    where.mkdir(parents=True, exist_ok=True)  # the answers go here
    return _write(path or where / REQUESTS, questions(), batch.Replies(where))


def refuse_lacking(stored: Stored, questions: Questions) -> None:
    """Raises if questions have no answer and there is no endpoint; first writes them to requests.jsonl.

    Raises:
        RunError: of what was read from `stored`, something could still be asked.
    """
    if stored.lacking:
        write_missing(questions, stored.where)
        raise RunError(
            f"{stored.where}: {len(stored.lacking)} questions have no answer yet; pass --base-url to ask them, "
            f"or answer its {REQUESTS} with another engine and save the output there as replies-1.jsonl"
        )


def announce(count: int, whose: str, url: str) -> None:
    """Announces, before asking, that people's words will leave this machine, unless the address is a loopback one."""
    if not loopback(url):
        sys.stderr.write(
            f"{count} messages of {whose} LEAVE THIS MACHINE, for {urlsplit(url).hostname}. People wrote them, and "
            "names and places are not masked. Stop now (Ctrl-C) unless their consent, their source's terms and your "
            "agreement with this provider allow it.\n"
        )


def loopback(url: str) -> bool:
    """Whether an address is this machine's own. A name other than localhost may point anywhere."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _write(
    path: Path | None, questions: Iterator[JudgeRequest], replies: batch.Replies, keep: bool = False
) -> CostEstimate:
    """Streams missing requests to `path`, which is replaced once the last one is written; with `keep`, an empty file
    doesn't replace it. Without a path it only estimates.
    """
    estimate = CostEstimate()
    if path is None:
        for request, _ in batch.missing(questions, replies):
            estimate.add(request.body, batch.request_line(request))
        return estimate
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = fresh(path.with_name(f".{path.name}-{os.getpid()}"))
    with naming(path), staged.open("w", encoding="utf-8") as file:
        for request, _ in batch.missing(questions, replies):
            line = batch.request_line(request)
            file.write(line)
            estimate.add(request.body, line)
    if estimate.requests or not keep:
        staged.replace(path)
    else:
        staged.unlink()
    return estimate
