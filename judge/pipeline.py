"""What `helmbench requests`, `run` and `score` do: a run's questions written or asked, its replies judged, scored,
reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dataset_builder import jsonl
from dataset_builder.files import write_whole
from dataset_builder.prompts import PLAIN
from dataset_builder.release import Release
from judge.judges import NONE_GIVEN, Bench, Given, bench, known
from judge.llm import batch
from judge.llm.asking import REQUESTS, announce, ask, write_missing
from judge.llm.budget import Terms
from judge.llm.errors import BudgetError
from judge.llm.questions import JudgeRequest
from judge.llm.reader import llm, questions
from judge.report.page import TRANSCRIPTS, report
from judge.report.summary import summary
from judge.schema import Scorecard
from judge.score import Scored, score
from judge.scoring.gates import lost, lost_share
from judge.scoring.stored import RATINGS, SCORECARD, VERDICTS, card_in, verdicts_in
from replies.errors import RunError
from replies.opening import Opened, Place
from replies.run import Run

if TYPE_CHECKING:
    from judge.llm.engine import Endpoint


@dataclass(frozen=True)
class Questioning:
    """How a language model is asked: the wording of the question, and how often each.

    Raises:
        ValueError: fewer than one repeat.
    """

    wording: str = PLAIN
    repeats: int = 1

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise ValueError("--repeats: expected 1 or more")

    def command(self, name: str, place: Place, model: str) -> str:
        """A command for the same run and judge, to tell the user."""
        flag = f"--judge {model}" if name == "score" else f"--model {model}"
        own = [f"--prompt {self.wording}"] if self.wording != PLAIN else []
        return " ".join(["helmbench", name, place.words, flag, *own])


def write_requests(opened: Opened, model: str, how: Questioning, terms: Terms, out: Path | None) -> str:
    """Writes what a judge has not answered yet to `out` (default: its folder); returns what to tell the user."""
    where = batch.folder(opened.home, model)
    path = out or where / REQUESTS
    estimate = write_missing(lambda: _questions(opened, model, how), where, path)
    then = how.command("score", opened.place, model)
    if not estimate.requests:
        return f"{path}: nothing is missing; score with {then}"
    return f"{path}: {estimate.text(terms.prices)}\nwrite the replies to {where}/replies*.jsonl, then {then}"


def ask_run(opened: Opened, model: str, how: Questioning, endpoint: Endpoint, terms: Terms) -> str:
    """Asks what a judge has not answered yet; returns what to tell the user.

    Raises:
        EngineError: the endpoint can't be used, or some questions got no answer. BudgetError: the cap is reached.
    """
    release = opened.release
    if release.own:
        announce(len(release.messages), release.messages_source, endpoint.base_url)
    where = batch.folder(opened.home, model)
    try:
        done = ask(lambda: _questions(opened, model, how), where, endpoint, terms)
    except BudgetError as error:
        raise BudgetError(f"{error}, or score what there is with --allow-missing") from None
    then = how.command("score", opened.place, model)
    return f"{done.text}; score with {then}" if not done.asked else f"{done.text}\nscore with {then}"


def judge_and_score(
    opened: Opened,
    names: Sequence[str],
    how: Questioning,
    given: Given = NONE_GIVEN,
    allow_missing: bool = False,
) -> Scored:
    """A run judged by the named judges, of language models by what they have answered so far.

    Raises:
        RunError: unknown judges, files of `given` that can't be read, or questions without an answer, unless
            `allow_missing`.
    """
    run, release, home, place = opened
    seats = bench(names, home, release, how.wording, how.repeats)
    beside = known(seats.identities, home, given, release, bool(run.messages))
    scored = score(run, release, seats.judges, beside)
    if not allow_missing:
        _refuse_missing(seats, place, how)
    return scored


def write_scored(scored: Scored, opened: Opened, out: Path, show_withheld: bool = False) -> str:
    """Writes verdicts.jsonl, ratings.jsonl, scorecard.json, summary.md, report.html and
    transcripts.html into `out`; returns the summary.

    `show_withheld`: harmful and unscored replies stand in the report too, which is then nobody else's to read.
    """
    run, release = opened.run, opened.release
    write_whole(out / VERDICTS, jsonl.lines(scored.verdicts))
    if run.messages:
        write_whole(out / RATINGS, jsonl.lines(scored.ratings))
    write_whole(out / SCORECARD, scored.scorecard.model_dump_json(indent=2) + "\n")
    text = summary(scored.scorecard)
    write_whole(out / "summary.md", text)
    return f"{text}\n{write_report(scored, run, release, out, show_withheld)}"


def unanswered(card: Scorecard, opened: Opened) -> list[str]:
    """Why a run's figures say too little, in words, for each part of it that does; empty where enough was answered."""
    limit, rated = opened.release.scoring["unscored_limit"], card.appropriateness
    parts = [
        *([("", lost(card.judge, limit))] if card.dataset.samples else []),
        *([(", ratings", lost(rated.judge, limit))] if rated else []),
        *((f", triage {t.prompt}", lost_share(t.accuracy, limit)) for t in card.triage),
    ]
    return [f"{opened.place.words}{part}: {why}" for part, why in parts if why]


def report_again(opened: Opened, out: Path, show_withheld: bool = False) -> str:
    """Writes summary.md, report.html and transcripts.html of a scored run anew, from its scorecard and verdicts;
    returns the summary.

    Raises:
        RunError: the run's home holds no scores, or another run's.
    """
    run, release, home, _ = opened
    ratings = home / RATINGS
    scored = Scored(card_in(home), verdicts_in(home / VERDICTS), verdicts_in(ratings) if ratings.is_file() else [])
    if unknown := {v.id for v in (*scored.verdicts, *scored.ratings)} - {r.id for r in (*run.replies, *run.messages)}:
        raise RunError(f"{home}: was scored on other replies, such as {min(unknown)}; score the run again")
    text = summary(scored.scorecard)
    write_whole(out / "summary.md", text)
    return f"{text}\n{write_report(scored, run, release, out, show_withheld)}"


def write_report(scored: Scored, run: Run, release: Release, out: Path, show_withheld: bool = False) -> str:
    """Writes report.html, and transcripts.html beside it; returns where they stand, in words."""
    samples = {**release.rows, **(release.messages if run.messages else {})}
    made = report(
        scored.scorecard,
        [*scored.verdicts, *scored.ratings],
        [*run.replies, *run.messages],
        samples,
        show="withheld" if show_withheld else "all",
        criteria=release.criteria,
    )
    write_whole(out / "report.html", made.page)
    write_whole(out / TRANSCRIPTS, made.transcripts)
    return f"report: {out / 'report.html'}\ntranscripts: {out / TRANSCRIPTS}"


def _questions(opened: Opened, model: str, how: Questioning) -> Iterator[JudgeRequest]:
    for repeat in range(how.repeats):
        yield from questions(opened.run, opened.release, llm(opened.release, model, how.wording, repeat))


def _refuse_missing(seats: Bench, place: Place, how: Questioning) -> None:
    """Raises: RunError: questions that could still be asked."""
    again = f" --repeats {how.repeats}" if how.repeats > 1 else ""
    models = [j.name for j in seats.identities if not j.offline]
    lines = [
        f"{stored.where}: {len(stored.lacking)} questions have no answer yet; get them with "
        f"`{how.command('run', place, model)}{again} --base-url URL` or write them for another engine with "
        f"`{how.command('requests', place, model)}{again}`; --allow-missing scores them as unscored"
        for model, stored in zip(models, seats.stored, strict=True)
        if stored.lacking
    ]
    if lines:
        raise RunError("\n".join(lines))
