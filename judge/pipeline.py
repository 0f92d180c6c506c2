"""What the commands do with runs: export or ask their questions, score them, report on them, compare their replies."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dataset_builder.prompts import PLAIN
from dataset_builder.release import Release
from dataset_builder.schema import Sample
from helmbench_common import jsonl
from helmbench_common.files import holds, replacing, write_whole
from helmbench_common.formats.inert import clip
from judge.judges import NONE_GIVEN, Given, bench, identities, known, scores_name
from judge.llm import batch, local
from judge.llm.asking import REQUESTS, announce, ask, write_missing
from judge.llm.budget import CostEstimate, Prices, Terms
from judge.llm.errors import BudgetError
from judge.llm.questions import JudgeRequest
from judge.llm.reader import llm, questions
from judge.panel import identity_of
from judge.replies import inspect_log
from judge.replies.opening import SCORES, Opened, Place, open_run, own_prompt, run_at
from judge.replies.run import Run
from judge.replies.schema import RunError
from judge.replies.talks import sample
from judge.report.comparison import RunFiles, page
from judge.report.page import TRANSCRIPTS, report
from judge.report.sentences import sentence
from judge.report.summary import first_screen, summary
from judge.schema import Scorecard, Source
from judge.score import Scored, score, source_of
from judge.scoring.compare import Comparison, ScoredRun
from judge.scoring.gates import lost, lost_share
from judge.scoring.stored import (
    RATINGS,
    SCORECARD,
    SUMMARY,
    TALKS,
    VERDICTS,
    Scoring,
    card_in,
    find,
    judged_by,
    verdicts_in,
)
from judge.verdicts import JudgeIdentity

if TYPE_CHECKING:
    from judge.llm.engine import Endpoint

GRADED = "replies-inspect.jsonl"  # answers of a log's grader, next to the judge's other answers
REPORT = "report.html"
WRITTEN = (SCORECARD, VERDICTS, RATINGS, TALKS, SUMMARY, REPORT, TRANSCRIPTS)
NOTHING = "Nothing was written"
WAYS = "write elsewhere with --out DIR, or replace what is there with --replace"


@dataclass(frozen=True)
class Questioning:
    """How a language model is asked: the question's wording and the number of repeats.

    Raises:
        ValueError: fewer than one repeat.
    """

    wording: str = PLAIN
    repeats: int = 1

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise ValueError("--repeats: expected 1 or more")

    def command(self, name: str, place: Place, model: str) -> str:
        """A command for the same run and judge, to show to the user."""
        flag = f"--judge {model}" if name == "score" else f"--model {model}"
        own = [f"--prompt {self.wording}"] if self.wording != PLAIN else []
        return " ".join(["helmbench", name, place.words, flag, *own])


# --- asking ----------------------------------------------------------------------------------------------------------


def write_requests(opened: Opened, model: str, how: Questioning, terms: Terms, out: Path | None) -> str:
    """Writes the questions that a judge has yet to answer to `out` (default: its folder); returns a message for the
    user.
    """
    where = _answers_of(opened, model)
    path = out or where / REQUESTS
    estimate = write_missing(lambda: _questions(opened, model, how), where, path)
    then = how.command("score", opened.place, model)
    if not estimate.requests:
        return f"{path}: nothing is missing; score with {then}"
    return f"{path}: {estimate.text(terms.prices)}\nwrite the replies to {where}/replies*.jsonl, then {then}"


def ask_run(opened: Opened, model: str, how: Questioning, endpoint: Endpoint, terms: Terms) -> str:
    """Asks what a judge has yet to answer; returns a message for the user.

    Raises:
        EngineError: the endpoint can't be used, or some questions got no answer. BudgetError: the cap is reached.
    """
    release = opened.release
    if release.own:
        announce(len(release.messages), release.messages_source, endpoint.base_url)
    where = _answers_of(opened, model)
    try:
        done = ask(lambda: _questions(opened, model, how), where, endpoint, terms)
    except BudgetError as error:
        raise BudgetError(f"{error}, or score what there is with --allow-missing") from None
    then = how.command("score", opened.place, model)
    return f"{done.text}; score with {then}" if not done.asked else f"{done.text}\nscore with {then}"


def ask_here(opened: Opened, name: str, how: Questioning) -> None:
    """Answers in this process what a local judge (`vllm:ORG/MODEL`, `hf:ORG/MODEL`) has yet to answer.

    Raises:
        EngineError: as `judge.llm.local.answer`.
    """
    model = local.model_of(name)
    local.answer(lambda: _questions(opened, model, how), _answers_of(opened, model), name)


def _questions(opened: Opened, model: str, how: Questioning) -> Iterator[JudgeRequest]:
    for repeat in range(how.repeats):
        yield from questions(opened.run, opened.release, llm(opened.release, model, how.wording, repeat))


def graded_in(opened: Opened) -> str | None:
    """The language model that graded an Inspect log as it was made, or None; its answers are stored like any
    judge's.
    """
    if opened.run.path.suffix != inspect_log.SUFFIX:
        return None
    grader, lines = inspect_log.graded(opened.run.path)
    if grader is not None:
        write_whole(batch.folder(opened.home, grader) / GRADED, jsonl.lines(lines))
    return grader


def _answers_of(opened: Opened, model: str) -> Path:
    """The folder of a judge's answers, including those from grading an Inspect log as it was made."""
    where = batch.folder(opened.home, model)
    if not (where / GRADED).is_file():
        graded_in(opened)
    return where


# --- scoring ---------------------------------------------------------------------------------------------------------


def judge_and_score(
    opened: Opened,
    names: Sequence[str],
    how: Questioning,
    given: Given = NONE_GIVEN,
    allow_missing: bool = False,
) -> Scored:
    """Scores a run with the named judges; language models use the answers collected so far.

    Raises:
        RunError: unknown judges, files of `given` that can't be read, or questions without an answer, unless
            `allow_missing`.
    """
    run, release, home, place = opened
    seats = bench(names, home, release, how.wording, how.repeats)
    context = known(seats.identities, home, given, release, bool(run.messages))
    scored = score(run, release, seats.judges, context)
    again = f" --repeats {how.repeats}" if how.repeats > 1 else ""
    models = [j.name for j in seats.identities if not j.offline]
    lines = [
        f"{stored.where}: {len(stored.lacking)} questions have no answer yet; get them with "
        f"`{how.command('judge', place, model)}{again} --base-url URL` or write them for another engine with "
        f"`{how.command('requests', place, model)}{again}`; --allow-missing scores them as unscored"
        for model, stored in zip(models, seats.stored, strict=True)
        if stored.lacking
    ]
    if lines and not allow_missing:
        raise RunError("\n".join(lines))
    return scored._replace(scorecard=scored.scorecard.model_copy(update={"source": source_of(run)}))


def score_log(path: Path, dataset: Path) -> str:
    """Scores an Inspect log with the judge in it, into the log's home; returns the first sentence and the report's
    path.

    Raises:
        RunError: it can't be read, or the folder holds other scores. ReleaseError: no such dataset.
    """
    opened, how = open_run(Place(path, dataset=dataset)), Questioning()
    judges = [graded_in(opened) or "offline"]
    folder = place_scores(opened, judges, how)
    scored = judge_and_score(opened, judges, how, allow_missing=True)
    write_scored(scored, opened, folder)
    said = f"{sentence(scored.scorecard)}\nhelmbench: " if scored.scorecard.dataset.samples else ""
    return f"{said}report: {folder / REPORT}"


def next_step(opened: Opened, card: Scorecard, prices: Prices | None) -> str:
    """What to do with a scored run: the commands, and what a judge costs if rules left it something to read."""
    how, place, scored = Questioning(), opened.place, shlex.quote(str(opened.home))
    judge = card.talks.judge if card.talks and not card.dataset.samples else card.judge
    if judge.by_judge and not judge.prompt_hash:
        asked = CostEstimate()
        for request in questions(opened.run, opened.release, llm(opened.release, "JUDGE", how.wording)):
            asked.add(request.body, jsonl.line(request.body))
        return (
            f"Next: a language model reads what rules can't decide ({asked.text(prices)}"
            f"{'' if prices else '; --price-in and --price-out give the cost'}):\n"
            f"  {how.command('judge', place, 'JUDGE')} --base-url URL\n"
            f"  {how.command('score', place, 'JUDGE')}\n"
            f"or, on a GPU: {how.command('score', place, 'vllm:ORG/MODEL')}"
        )
    if card.talks and not card.dataset.samples:
        return "Next: play the parts with a second user model; one model's habits aren't people's"
    if not card.dataset.samples:
        return f"Next: compare it with other models, with helmbench appropriateness {scored} OTHER"
    if card.dataset.tier == "detect":
        return "Next: free replies and conversations, with lm_eval --tasks helmbench"
    if judge.prompt_hash and not any(a.measured for a in judge.agreement):
        return (
            f"Next: measure the judge, with helmbench calibrate --judge {shlex.quote(judge.name)} --base-url URL, then "
            "score again with --calibration and the path that it prints"
        )
    return f"Next: compare it with another run, with helmbench compare BASELINE {scored}"


def unanswered(card: Scorecard, opened: Opened) -> list[str]:
    """For each part of a run with too few answers, a sentence that says so."""
    limit, rated = opened.release.scoring["unscored_limit"], card.appropriateness
    parts = [
        *([("", lost(card.judge, limit))] if card.dataset.samples else []),
        *([(", ratings", lost(rated.judge, limit))] if rated else []),
        *((f", triage {t.prompt}", lost_share(t.accuracy, limit)) for t in card.triage),
        *([(", talks", lost(card.talks.judge, limit))] if card.talks else []),
    ]
    return [f"{opened.place.words}{part}: {why}" for part, why in parts if why]


# --- writing ---------------------------------------------------------------------------------------------------------


def write_scored(scored: Scored, opened: Opened, out: Path, show_withheld: bool = False) -> str:
    """Writes the files of WRITTEN to `out`, replacing earlier ones; returns the first screen.

    `show_withheld`: the report also shows the replies that it otherwise withholds (`judge.report.entries`), and a
    corpus's messages with the replies to them; don't share such a report.
    """
    run, release = opened.run, opened.release
    with _rewriting(out) as staged:
        write_whole(staged / VERDICTS, jsonl.lines(scored.verdicts))
        if run.messages:
            write_whole(staged / RATINGS, jsonl.lines(scored.ratings))
        if run.talks:
            write_whole(staged / TALKS, jsonl.lines(scored.talks))
        write_whole(staged / SCORECARD, scored.scorecard.model_dump_json(indent=2) + "\n")
        write_whole(staged / SUMMARY, summary(scored.scorecard))
        _write_report(scored, run, release, staged, show_withheld)
    return first_screen(scored.scorecard)


@contextmanager
def _rewriting(out: Path) -> Iterator[Path]:
    """A folder to fill with a run's scores, which then replace those in `out` in one step.

    If `out` contains other files, they stay, and the new files are moved one by one: the scorecard, which marks a
    scored folder, is removed first and added last.
    """
    alone = not out.exists() or {p.name for p in out.iterdir()} <= {*WRITTEN}
    whole = Path(os.path.realpath(out))  # Path.resolve fails on a link loop
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


def open_scored(place: Place) -> tuple[Opened, Scoring]:
    """A run with its scores. If there are several results files, it opens the scored one, even if others are newer.

    `place.run_dir`: the folder of the run, or of its scores by one judge.

    Raises:
        RunError: the run can't be read, or doesn't have scores of exactly one judge.
    """
    scoring = find(place.path)
    return open_run(place._replace(results=place.results or scoring.results)), scoring


def report_again(
    opened: Opened, scoring: Scoring, out: Path | None = None, show_withheld: bool = False, replace: bool = False
) -> str:
    """Writes summary.md, report.html and transcripts.html of a scored run again, from its scorecard and verdicts;
    returns the first screen.

    Raises:
        RunError: the scores are another run's; `out` holds other ones, unless `replace`; or they are behind a link in
            the run's folder.
    """
    run, release = opened.run, opened.release
    below = scoring.folder.is_relative_to(scoring.home)
    out = out or (batch.own_place(scoring.home, scoring.folder) if below else scoring.folder)
    files = [scoring.folder / name for name in (VERDICTS, RATINGS, TALKS)]
    scored = Scored(scoring.card, *(verdicts_in(file) if file.is_file() else [] for file in files))
    asked = {r.id for r in (*run.replies, *run.messages)} | {talk.id for talk in run.talks}
    if unknown := {v.id for v in (*scored.verdicts, *scored.ratings, *scored.talks)} - asked:
        raise RunError(f"{scoring.folder}: was scored on other replies, such as {min(unknown)}; score the run again")
    text = summary(scored.scorecard)
    if not replace:
        _refuse_other(out, _origin_of(scoring.card), text)
    write_whole(out / SUMMARY, text)
    _write_report(scored, run, release, out, show_withheld)
    return f"{first_screen(scored.scorecard)}\n\n{written(out)}"


def _write_report(scored: Scored, run: Run, release: Release, out: Path, show_withheld: bool) -> None:
    samples: dict[str, Sample] = {**release.rows, **(release.messages if run.messages else {})}
    talks = [talk for talk in run.talks if talk.played]
    # A talk's script is its own, so each repeat is a sample.
    samples |= {_own(t.id, t.repeat)["id"]: sample(t, release.parts[t.id]) for t in talks}
    quoted = show_withheld or not release.own  # people's words, and replies that repeat them
    made = report(
        scored.scorecard,
        [
            *scored.verdicts,
            *(scored.ratings if quoted else ()),
            *(v.model_copy(update=_own(v.id, v.repeat)) for v in scored.talks),
        ],
        [
            *run.replies,
            *(run.messages if quoted else ()),
            *(t.reply.model_copy(update=_own(t.id, t.repeat)) for t in talks),
        ],
        samples,
        show="withheld" if show_withheld else "all",
        criteria={**release.criteria, **release.talk_criteria},
    )
    write_whole(out / REPORT, made.page)
    write_whole(out / TRANSCRIPTS, made.transcripts)


def _own(identity: str, repeat: int) -> dict[str, Any]:
    """An id for each repeat of a talk."""
    return {"id": f"{identity}, repeat {repeat}" if repeat else identity, "repeat": 0}


def written(out: Path) -> str:
    return f"report: {out / REPORT}\ntranscripts: {out / TRANSCRIPTS}\nall tables: {out / SUMMARY}"


def write_page(
    out: Path,
    found: Comparison,
    runs: Sequence[ScoredRun],
    scorings: Sequence[Scoring],
    release: Release,
    show_withheld: bool = False,
) -> None:
    """Writes a comparison as a page. `runs`, `scorings`: in the order of `found.runs`. `show_withheld`: harmful replies
    are on it too; don't share such a page.
    """
    files = [_files_of(scoring, run, release) for scoring, run in zip(scorings, runs, strict=True)]
    write_whole(out, page(found, runs, files, release.rows, release.criteria, show_withheld))


def _files_of(scoring: Scoring, run: ScoredRun, release: Release) -> RunFiles:
    """A scored run's replies and prompt, as far as its folder has them, or why they can't be shown."""
    home, condition = scoring.home, run.card.model.condition
    prompt = own_prompt(home, condition, release) if condition else None
    try:
        replies = run_at(home, release, scoring.results).replies
    except RunError as error:
        return RunFiles(prompt=prompt, lacking=str(error))
    there = {(r.id, r.repeat) for r in replies}
    if unknown := {(v.id, v.repeat) for v in run.verdicts} - there:
        return RunFiles(prompt=prompt, lacking=f"{home}: was scored on other replies, such as to {min(unknown)[0]}")
    return RunFiles(replies, prompt)


# --- scores never replace other scores unless the user asks
# ------------------------------------------------------------


class Origin(NamedTuple):
    """What scores are based on. `judge`: its name, its prompt's hash, how often it was asked. `dataset`: its version,
    its score_hash, and the messages_hash of standalone messages or the talks_hash of talks.
    """

    source: Source | None
    judge: tuple[str, str | None, int]
    dataset: tuple[str, str, str | None]


def _origin_of(card: Scorecard) -> Origin:
    alone = [part.messages_hash for part in (card.appropriateness, *card.triage) if part]
    alone += [card.talks.talks_hash] if card.talks else []
    dataset = card.dataset.version, card.dataset.score_hash, alone[0] if alone else None
    return Origin(card.source, judged_by(card.judge), dataset)


def place_scores(
    opened: Opened, names: Sequence[str], how: Questioning, out: Path | None = None, replace: bool = False
) -> Path:
    """The folder for a run's scores by the named judges: `out`, or one in the run's home named after the judges. Asks
    no model.

    Raises:
        RunError: the folder holds other scores than those of this run by these judges, unless `replace`; or the
            folder in the run's home is a link.
    """
    run, release = opened.run, opened.release
    judges = identities(names, release, how.wording)
    folder = out or batch.own_place(opened.home, opened.home / SCORES / scores_name(judges, how.repeats))
    if not replace:
        _refuse_other(folder, _origin_of_run(run, release, judges, how.repeats))
    return folder


def _origin_of_run(run: Run, release: Release, judges: Sequence[JudgeIdentity], repeats: int) -> Origin:
    whole, manifest = identity_of(judges), release.manifest
    talked = release.manifest.talks_hash if run.talks else None
    alone = release.messages_hash if run.messages or run.triage else talked
    asked = repeats if any(not j.offline for j in judges) else 1
    return Origin(
        source_of(run), (whole.name, whole.prompt_hash, asked), (manifest.version, manifest.score_hash, alone)
    )


def _refuse_other(out: Path, own: Origin, text: str = "") -> None:
    """Raises: RunError: a folder contains scores other than `own`, a report of other scores, or a file with the name of
    one of WRITTEN and no scores. `text`: the summary of `own`.
    """
    if not (out / SCORECARD).is_file():
        reported = bool(text) and holds(out / SUMMARY, text)
        if not reported and any(os.path.lexists(out / name) for name in WRITTEN):
            raise RunError(f"{out}: contains another report, without its scores. {NOTHING}: {WAYS}")
        return
    try:
        there = _origin_of(card_in(out))
    except RunError as error:
        raise RunError(f"{error}. {NOTHING}: {WAYS}") from None
    if there == own:
        return
    files = [o.source.file for o in (there, own) if o.source]
    logs = len(set(files)) == 2 and all(f.startswith("results_") for f in files)
    again = f"score that run with --results {files[0]}, " if logs else ""
    held, given = _in_words(there, own), _in_words(own, there)
    if held == given:
        given += ", whose replies have changed"
    raise RunError(f"{out}: contains the scores of {held}; the new ones are of {given}. {NOTHING}: {again}{WAYS}")


def _in_words(origin: Origin, other: Origin) -> str:
    """Describes the replies, and what else differs from another origin."""
    source, (name, prompt, repeats), (version, *hashes) = origin
    parts = [f"{source.file} ({source.samples} samples)" if source else "unnamed replies"]
    if origin.judge != other.judge:
        parts += [
            f"by {clip(name, 80)}",
            f"prompt {prompt}" if prompt else "",
            f"asked {repeats} times" if repeats > 1 else "",
        ]
    if origin.dataset != other.dataset:
        parts.append(f"on dataset {version} ({', '.join(h[:12] for h in hashes if h)})")
    return ", ".join(filter(None, parts))
