"""What `helmbench requests`, `run` and `score` do: a run's questions written or asked, its replies judged, scored,
reported.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dataset_builder.prompts import PLAIN
from dataset_builder.release import Release
from helmbench_common import jsonl
from helmbench_common.files import replacing, write_whole
from judge.judges import NONE_GIVEN, Bench, Given, bench, identities, known, scores_name
from judge.llm import batch
from judge.llm.asking import REQUESTS, announce, ask, write_missing
from judge.llm.budget import Terms
from judge.llm.errors import BudgetError
from judge.llm.questions import JudgeRequest
from judge.llm.reader import llm, questions
from judge.origin import REPORT, WRITTEN, of_card, of_run, refuse_other, source_of
from judge.replies import inspect_log
from judge.replies.opening import SCORES, Opened, Place, open_run
from judge.replies.run import Run
from judge.replies.schema import RunError
from judge.report.first import sentence
from judge.report.page import TRANSCRIPTS, report
from judge.report.summary import summary
from judge.schema import Scorecard
from judge.score import Scored, score
from judge.scoring.gates import lost, lost_share
from judge.scoring.stored import RATINGS, SCORECARD, SUMMARY, VERDICTS, Scoring, find, verdicts_in

if TYPE_CHECKING:
    from judge.llm.engine import Endpoint

GRADED = "replies-inspect.jsonl"  # what a log's grader answered, among its other answers


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
    where = _answered(opened, model)
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
    where = _answered(opened, model)
    try:
        done = ask(lambda: _questions(opened, model, how), where, endpoint, terms)
    except BudgetError as error:
        raise BudgetError(f"{error}, or score what there is with --allow-missing") from None
    then = how.command("score", opened.place, model)
    return f"{done.text}; score with {then}" if not done.asked else f"{done.text}\nscore with {then}"


def place_scores(
    opened: Opened, names: Sequence[str], how: Questioning, out: Path | None = None, replace: bool = False
) -> Path:
    """The folder that a run's scores by the named judges go to: `out`, or in the run's home one that is called after
    the judges. Nobody is asked.

    Raises:
        RunError: others stand there than scores of this run by these judges, unless `replace`; or its own folder is a
            link.
    """
    judges = identities(names, opened.release, how.wording)
    folder = out or batch.own_place(opened.home, opened.home / SCORES / scores_name(judges, how.repeats))
    if not replace:
        refuse_other(folder, of_run(opened.run, opened.release, judges, how.repeats))
    return folder


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
    return scored._replace(scorecard=scored.scorecard.model_copy(update={"source": source_of(run)}))


def graded_in(opened: Opened) -> str | None:
    """The language model that judged while a log of Inspect was made, and whose answers now stand where judges' answers
    do; None where there is none.
    """
    if opened.run.path.suffix != inspect_log.SUFFIX:
        return None
    grader, lines = inspect_log.graded(opened.run.path)
    if grader is not None:
        write_whole(batch.folder(opened.home, grader) / GRADED, jsonl.lines(lines))
    return grader


def _answered(opened: Opened, model: str) -> Path:
    """Where a judge's answers stand, those among them that it gave while a log of Inspect was made."""
    where = batch.folder(opened.home, model)
    if not (where / GRADED).is_file():
        graded_in(opened)
    return where


def score_log(path: Path, dataset: Path) -> str:
    """Scores a log of Inspect by whoever judged in it, beside it; returns its first sentence, and where the report is.

    Raises:
        RunError: it can't be read, or other scores stand there. ReleaseError: no such dataset.
    """
    opened, how = open_run(Place(path, dataset=dataset)), Questioning()
    judges = [graded_in(opened) or "offline"]
    folder = place_scores(opened, judges, how)
    scored = judge_and_score(opened, judges, how, allow_missing=True)
    write_scored(scored, opened, folder)
    said = f"{sentence(scored.scorecard)}\nhelmbench: " if scored.scorecard.dataset.samples else ""
    return f"{said}report: {folder / REPORT}"


def write_scored(scored: Scored, opened: Opened, out: Path, show_withheld: bool = False) -> str:
    """Writes verdicts.jsonl, ratings.jsonl, scorecard.json, summary.md, report.html and transcripts.html into `out`, in
    the place of those that were there; returns the summary.

    `show_withheld`: harmful and unscored replies stand in the report too, which is then nobody else's to read.
    """
    run, release = opened.run, opened.release
    text = summary(scored.scorecard)
    with _rewriting(out) as staged:
        write_whole(staged / VERDICTS, jsonl.lines(scored.verdicts))
        if run.messages:
            write_whole(staged / RATINGS, jsonl.lines(scored.ratings))
        write_whole(staged / SCORECARD, scored.scorecard.model_dump_json(indent=2) + "\n")
        write_whole(staged / SUMMARY, text)
        write_report(scored, run, release, staged, show_withheld)
    return f"{text}\n{written(out)}"


@contextmanager
def _rewriting(out: Path) -> Iterator[Path]:
    """A folder to fill with a run's scores, which then take the place of those in `out`, all of them in one step.

    Where `out` holds other things as well, these stay, and files are moved one by one: the scorecard, without which
    there are no scores, is the first to go and the last to come.
    """
    alone = not out.exists() or {p.name for p in out.iterdir()} <= {*WRITTEN}
    whole = Path(os.path.realpath(out))  # Path.resolve fails on a ring of links
    if alone and whole != Path.cwd():
        with replacing(whole) as staged:
            yield staged
        return
    with tempfile.TemporaryDirectory(prefix=".scores-", dir=out) as staged:
        yield Path(staged)
        for name in WRITTEN:
            (out / name).unlink(missing_ok=True)
        for name in reversed(WRITTEN):
            if (made := Path(staged, name)).is_file():
                made.replace(out / name)


def unanswered(card: Scorecard, opened: Opened) -> list[str]:
    """Why a run's figures say too little, in words, for each part of it that does; empty where enough was answered."""
    limit, rated = opened.release.scoring["unscored_limit"], card.appropriateness
    parts = [
        *([("", lost(card.judge, limit))] if card.dataset.samples else []),
        *([(", ratings", lost(rated.judge, limit))] if rated else []),
        *((f", triage {t.prompt}", lost_share(t.accuracy, limit)) for t in card.triage),
    ]
    return [f"{opened.place.words}{part}: {why}" for part, why in parts if why]


def open_scored(place: Place) -> tuple[Opened, Scoring]:
    """A run with its scores. Of several results files it is the one that was scored, whatever was run since.

    `place.run_dir`: the folder of the run, or of its scores by one judge.

    Raises:
        RunError: the run can't be read, or hasn't scores of exactly one judge.
    """
    scoring = find(place.path)
    return open_run(place._replace(results=place.results or scoring.results)), scoring


def report_again(
    opened: Opened, scoring: Scoring, out: Path | None = None, show_withheld: bool = False, replace: bool = False
) -> str:
    """Writes summary.md, report.html and transcripts.html of a scored run anew, from its scorecard and verdicts;
    returns the summary.

    Raises:
        RunError: the scores are another run's; or `out` holds other ones, unless `replace`; or they stand behind a link
            in the run's folder.
    """
    run, release, out = opened.run, opened.release, out or _own(scoring)
    ratings = scoring.folder / RATINGS
    scored = Scored(
        scoring.card,
        verdicts_in(scoring.folder / VERDICTS),
        verdicts_in(ratings) if ratings.is_file() else [],
    )
    if unknown := {v.id for v in (*scored.verdicts, *scored.ratings)} - {r.id for r in (*run.replies, *run.messages)}:
        raise RunError(f"{scoring.folder}: was scored on other replies, such as {min(unknown)}; score the run again")
    text = summary(scored.scorecard)
    if not replace:
        refuse_other(out, of_card(scoring.card), text)
    write_whole(out / SUMMARY, text)
    write_report(scored, run, release, out, show_withheld)
    return f"{text}\n{written(out)}"


def _own(scoring: Scoring) -> Path:
    """The folder of a run's scores, to be written to."""
    below = scoring.folder.is_relative_to(scoring.home)
    return batch.own_place(scoring.home, scoring.folder) if below else scoring.folder


def write_report(scored: Scored, run: Run, release: Release, out: Path, show_withheld: bool = False) -> None:
    """Writes report.html, and transcripts.html beside it."""
    samples = {**release.rows, **(release.messages if run.messages else {})}
    made = report(
        scored.scorecard,
        [*scored.verdicts, *scored.ratings],
        [*run.replies, *run.messages],
        samples,
        show="withheld" if show_withheld else "all",
        criteria=release.criteria,
    )
    write_whole(out / REPORT, made.page)
    write_whole(out / TRANSCRIPTS, made.transcripts)


def written(out: Path) -> str:
    """Where the pages of a run stand, in words."""
    return f"report: {out / REPORT}\ntranscripts: {out / TRANSCRIPTS}"


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
