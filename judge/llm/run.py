"""`judge requests` and `judge run`: a run's questions to an LLM judge, written for any engine or asked at once."""

from __future__ import annotations

import argparse
import ipaddress
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from corpora.labelled import on_corpus
from dataset_builder.release import Release, open_release
from judge.llm import batch
from judge.llm.budget import Budget, CostEstimate, Prices, Tokens
from judge.llm.errors import BudgetError, EngineError
from judge.llm.questions import JudgeRequest, prompt_hash
from judge.verdicts import JudgeIdentity, questions
from replies.collected import read_replies
from replies.errors import RunError
from replies.lm_eval_log import read_run
from replies.run import Run

if TYPE_CHECKING:
    from judge.llm.engine import Endpoint, Outcome

REQUESTS = "requests.jsonl"


def open_run(options: argparse.Namespace) -> tuple[Release, Run, Path]:
    """The release, with a corpus's messages where --messages names one, the run (RUN_DIR or --replies FILE), and its
    home: where its judges' folders stand.
    """
    if (options.run_dir is None) == (options.replies is None):
        raise RunError(f"judge {options.command}: name either a RUN_DIR of lm_eval or --replies FILE")
    release = open_release(options.dataset)
    if options.messages:
        release = on_corpus(release, options.messages)
    if options.replies:
        return release, read_replies(options.replies, release), options.replies.with_suffix(".scored")
    run = read_run(options.run_dir, release)
    return release, run, run.path


def write_requests(options: argparse.Namespace) -> str:
    """Writes what is missing to --out (default: requests.jsonl in the judge's folder); returns what to tell the
    user.
    """
    release, run, home = open_run(options)
    where = batch.folder(home, options.model)
    path: Path = options.out or where / REQUESTS
    estimate = _write(path, _questions(run, release, options), batch.Replies(where))
    if not estimate.requests:
        return f"{path}: nothing is missing; score with {_score(options)}"
    return (
        f"{path}: {estimate.text(_prices(options))}\nwrite the replies to {where}/replies*.jsonl, then "
        f"{_score(options)}"
    )


def ask(options: argparse.Namespace) -> str:
    """Asks what is missing; returns what to tell the user.

    Raises:
        EngineError: the endpoint can't be used, or some questions got no answer. BudgetError: the cap is reached.
    """
    from judge.llm.engine import (
        Endpoint,  # the client takes a quarter of a second to import; writing requests doesn't need it
    )

    prices = _prices(options)
    if options.max_cost is not None and prices is None:
        raise ValueError("--max-cost needs --price-in and --price-out, the endpoint's prices per million tokens")
    endpoint = Endpoint(options.base_url, options.concurrency, options.timeout, options.max_retries)
    release, run, home = open_run(options)
    where = batch.folder(home, options.model)
    if release.own:
        announce(len(release.messages), release.messages_source, options.base_url)
    done = collect(lambda: _questions(run, release, options), where, endpoint, prices, options.max_cost)
    if not done.asked:
        return f"{where}: nothing is missing; score with {_score(options)}"
    outcome, said = done.outcome, f"{where}: {done.text(prices)}"
    if outcome.capped:
        raise BudgetError(
            f"{said}; stopped before --max-cost {options.max_cost:g} could be passed, {done.left} of "
            f"{done.asked} not answered. "
            "Run the same command with a higher --max-cost to go on, or score what there is with --allow-missing"
        )
    if done.left:
        raise EngineError(
            f"{said}; {done.left} of {done.asked} got no answer (the last: {outcome.problem}). Run the same "
            "command again to ask these"
        )
    return f"{said}\nscore with {_score(options)}"


def announce(count: int, whose: str, url: str) -> None:
    """Says before anything is asked that people's words leave this machine, unless the address is known to be its
    own.
    """
    if not loopback(url):
        sys.stderr.write(
            f"{count} messages of {whose} LEAVE THIS MACHINE, for {urlsplit(url).hostname}. People wrote "
            "them, and names and places are not masked. "
            "Stop now (Ctrl-C) unless their consent, their source's terms and your agreement with this "
            "provider allow it.\n"
        )


def loopback(url: str) -> bool:
    """Whether an address is this machine's own. A name other than localhost may be anybody's."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Collected:
    """What became of the questions that were missing: `asked` of them, and the tokens that this judge has used in
    all.
    """

    asked: int
    outcome: Outcome
    spent: Tokens

    @property
    def left(self) -> int:
        return self.asked - self.outcome.read - self.outcome.unreadable - self.outcome.refused

    def text(self, prices: Prices | None) -> str:
        spent = f"{self.spent.prompt:,} tokens in, {self.spent.completion:,} out" + (
            f", {prices.cost(self.spent):.4f}" if prices else ""
        )
        return (
            f"{self.outcome.read} answered, {self.outcome.unreadable} unreadable, {self.outcome.refused} "
            f"refused; spent so far: {spent}"
        )


def collect(
    questions: Callable[[], Iterator[JudgeRequest]],
    where: Path,
    endpoint: Endpoint,
    prices: Prices | None = None,
    cap: float | None = None,
) -> Collected:
    """Asks what is missing of `questions`, which is called twice: for the estimate and requests.jsonl, then to ask.

    Answers stand in `where`/replies.jsonl afterwards; `judge.batch.read(Replies(where).of(id), request)` reads them.

    Raises:
        EngineError: the endpoint can't be used, or another process is asking.
    """
    from judge.llm.engine import Outcome, drive

    log = batch.Log(where)
    try:
        replies = batch.Replies(where)
        estimate = _write(where / REQUESTS, questions(), replies, keep=True)
        budget = Budget(where, replies.live, replies.elsewhere, prices, cap)
        if not estimate.requests:
            return Collected(0, Outcome(), budget.spent)
        sys.stderr.write(f"{where}: {estimate.text(prices)}\n")
        try:
            outcome = drive(batch.missing(questions(), replies), log, endpoint, budget, estimate.requests)
        finally:
            budget.close()
        return Collected(estimate.requests, outcome, budget.spent)
    finally:
        log.close()


def identity(options: argparse.Namespace, release: Release, model: str, repeat: int = 0) -> JudgeIdentity:
    """The judge that the command line names, in one of its repeats."""
    return JudgeIdentity(model, prompt_hash(release.prompts, options.prompt), options.prompt, repeat)


def command(name: str, options: argparse.Namespace, model: str) -> str:
    """A command for the same run and judge, to tell the user."""
    run = f"--replies {options.replies}" if options.replies else str(options.run_dir)
    flag = f"--judge {model}" if name == "score" else f"--model {model}"
    corpus = [f"--messages {options.messages}"] if options.messages else []
    return " ".join(
        [
            "python -m judge",
            name,
            run,
            *corpus,
            flag,
            *([f"--prompt {options.prompt}"] if options.prompt != "judge" else []),
        ]
    )


def _score(options: argparse.Namespace) -> str:
    return command("score", options, options.model)


def _prices(options: argparse.Namespace) -> Prices | None:
    if (options.price_in is None) != (options.price_out is None):
        raise ValueError("--price-in and --price-out go together: money per million tokens read, and written")
    if options.price_in is None:
        return None
    if min(options.price_in, options.price_out) < 0:
        raise ValueError("--price-in, --price-out: expected 0 or more")
    return Prices(options.price_in, options.price_out)


def _questions(run: Run, release: Release, options: argparse.Namespace) -> Iterator[JudgeRequest]:
    if options.repeats < 1:
        raise ValueError("--repeats: expected 1 or more")
    for repeat in range(options.repeats):
        yield from questions(run, release, identity(options, release, options.model, repeat))


def _write(path: Path, questions: Iterator[JudgeRequest], replies: batch.Replies, keep: bool = False) -> CostEstimate:
    """Streams what is missing to `path`, which is replaced when the last request is written; with `keep`, not by an
    empty file.
    """
    estimate = CostEstimate()
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = path.with_name(f".{path.name}-{os.getpid()}")
    with staged.open("w", encoding="utf-8") as file:
        for request, _ in batch.missing(questions, replies):
            line = batch.request_line(request)
            file.write(line)
            estimate.add(request.body, line)
    if estimate.requests or not keep:
        staged.replace(path)
    else:
        staged.unlink()
    return estimate
