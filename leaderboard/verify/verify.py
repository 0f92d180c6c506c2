"""Verifies a submission by recomputing it: files, samples, prompts, judge, verdicts and scores.

It can't prove that the model wrote the logged replies (docs/publishing.md).
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dataset_builder.release import Release
from dataset_builder.schema import Row
from helmbench_common import jsonl
from judge.agreement.calibration import Calibration
from judge.judges import references
from judge.llm import batch
from judge.llm.reader import readers
from judge.offline.reader import OfflineReader
from judge.replies.run import Run
from judge.replies.schema import Model, Reply, RunError
from judge.replies.script import live_turns, visible
from judge.schema import Scorecard, Verdict
from judge.score import Judge, Known, decide, score
from judge.verdicts import JudgeIdentity
from leaderboard import public
from leaderboard.schema import (
    ANSWERS,
    CALIBRATIONS,
    JUDGES,
    RESPONSES,
    SUBMISSION,
    VERDICTS,
    Answer,
    Problem,
    Response,
    State,
    Submission,
    Verified,
)
from leaderboard.verify import coverage, declared, files, judges, recompute
from leaderboard.verify.files import Bounds, UnreadableError
from leaderboard.verify.findings import Problems
from leaderboard.verify.requests import Requests

# Limits of what is read, each far above an honest run.
SURPLUS = 1000  # lines beyond those of a whole run that are read to report them
TEXT = 64 * 2**20  # characters of any file
TURN_TEXT = 256 * 2**10  # more for each live turn: a request that repeats the conversation, and a long reasoning
ANSWER_TEXT = 16 * 2**10  # more for each answer of a judge


@dataclass
class Findings:
    """What was found so far, and what could be read and recomputed."""

    folder: Path
    usable: set[str]  # names of the files that can be read
    problems: Problems = field(default_factory=Problems)
    flags: Problems = field(default_factory=Problems)
    replies: list[Reply] = field(default_factory=list[Reply])
    verdicts: list[Verdict] = field(default_factory=list[Verdict])
    scorecard: Scorecard | None = None


def verify(folder: Path, release: Release) -> Verified:
    """Checks everything that can be checked. Nothing in the folder can raise.

    Raises:
        RunError: there is no such folder.
    """
    if not folder.is_dir():
        raise RunError(f"{folder}: no such folder; expected a folder that `helmbench submit` wrote")
    found = Findings(folder, set())
    submission: Submission | None = None
    try:
        problems, found.usable = files.check(folder)
        found.problems += problems
        submission = _submission(release, found)
        if submission is not None and declared.pinned(submission, release, found.problems):
            rows = {i: r for i, r in release.rows.items() if submission.dataset.tier in r.tiers}
            _replies(submission, rows, release, found)
            _judgement(submission, rows, release, found)
    except OSError as error:
        found.problems.append(Problem("unreadable", str(error.filename), f"can't be read ({error.strerror})"))
    problems = list(found.problems)
    state: State = "verified"
    if problems:
        state = "refused"
    elif submission and declared.offline(submission.judge):
        state = "demo"
    return Verified(
        str(folder), state, problems, list(found.flags), submission, found.scorecard, found.verdicts, found.replies
    )


def _submission(release: Release, found: Findings) -> Submission | None:
    if SUBMISSION not in found.usable:
        return None
    try:
        submission = files.read((found.folder / SUBMISSION).read_text("utf-8"), Submission)
    except UnicodeDecodeError as error:
        found.problems.append(Problem("unreadable", SUBMISSION, f"not UTF-8 ({error.reason} at byte {error.start})"))
        return None
    except UnreadableError as error:
        found.problems.append(Problem(error.kind, SUBMISSION, str(error)))
        return None
    found.problems += public.check(submission.model_dump(mode="json"), SUBMISSION)
    found.problems += declared.problems(submission, found.folder, release)
    found.flags += declared.flags(submission)
    return submission


def _replies(submission: Submission, rows: dict[str, Row], release: Release, found: Findings) -> None:
    """Reads the responses once: coverage, prompts, equal replies."""
    if RESPONSES not in found.usable:
        return
    repeats = submission.generation.repeats
    turns = repeats * sum(map(live_turns, rows.values()))
    requests = Requests(submission.generation.template, turns, found.problems)
    seen: Counter[tuple[str, int]] = Counter()
    kept: dict[tuple[str, int], Reply] = {}
    most = Bounds(repeats * len(rows) + SURPLUS, TEXT + turns * TURN_TEXT)
    for where, response in files.records(found.folder, RESPONSES, Response, most, found.problems):
        row = release.rows.get(response.id)
        problem = coverage.misfit(response, row, where)
        if problem or row is None:
            found.problems += [problem] if problem else []
            continue
        seen[response.id, response.repeat] += 1
        kept.setdefault((response.id, response.repeat), response.reply())
        requests.add(response, row, where)
    found.flags += requests.close()
    found.problems += coverage.check(seen, submission.dataset, repeats, release)
    found.replies = [kept[key] for key in sorted(kept)]
    found.flags += coverage.equal_replies(found.replies, release)
    found.flags += coverage.equal_repeats(found.replies, release)


def _judgement(submission: Submission, rows: dict[str, Row], release: Release, found: Findings) -> None:
    """Recomputes verdicts, and the scores of a whole run."""
    members, problems = judges.members(submission.judge, release)
    checks = submission.generation.repeats * sum(len(r.evaluation) for r in rows.values())
    given: Iterator[tuple[str, Verdict]] = iter(())
    if VERDICTS in found.usable:
        most = Bounds(checks + SURPLUS, files.LIMITS[VERDICTS])
        given = files.records(found.folder, VERDICTS, Verdict, most, found.problems)
    characters = sum(len(release.rows[r.id].evaluation) * len(visible(t)) for r in found.replies for t in r.turns)
    problems += judges.too_much(submission.judge, checks, characters)
    found.problems += problems
    if problems or not found.replies:
        for _ in given:  # what can't be compared is still read, to report unreadable lines
            pass
        return
    with tempfile.TemporaryDirectory() as home:
        try:
            verdicts = _recompute(Path(home), members, submission, checks, release, found)
        except (RunError, ValueError) as error:
            found.problems.append(Problem("judge", RESPONSES, f"can't be judged again ({error})"))
            return
    found.verdicts = public.public_verdicts(verdicts, found.replies, release.criteria)
    found.problems += recompute.compare_verdicts(given, found.verdicts, release)
    if found.scorecard is not None:
        found.problems += recompute.compare_scores(submission.scores, recompute.headline(found.scorecard))
        problems, flags = declared.unscored(found.scorecard, found.verdicts, release)
        found.problems += problems
        found.flags += flags


def _recompute(
    home: Path, members: Sequence[JudgeIdentity], submission: Submission, checks: int, release: Release, found: Findings
) -> list[Verdict]:
    """The recomputed verdicts, and the scorecard of a whole run. `home`: an empty folder."""
    judge, model, generation = submission.judge, submission.model, submission.generation
    answers, calibrations = _answers(home, members, submission, checks, found)
    agreement, problems = judges.agreement(members, calibrations, release, home)
    found.problems += problems
    answered = Model(
        name=f"{model.organization}/{model.name}", backend=generation.backend, arguments=generation.arguments
    )
    run = Run(found.folder, answered, submission.dataset.tier, found.replies, False)
    seats: list[Judge] = [(OfflineReader(),) if j.offline else readers(j, judge.repeats, answers) for j in members]
    if found.problems.kinds & {"missing_sample", "extra_sample", "repeated_sample"}:
        verdicts = decide(run, release, seats).verdicts  # the scores of a part mean nothing
    else:
        scored = score(run, release, seats, Known(agreement, references=references(release), people=judge.people))
        verdicts, found.scorecard = scored.verdicts, scored.scorecard
    problems, flags = answers.findings(judge)
    found.problems += problems
    found.flags += flags
    if agreement:
        found.problems += judges.misstated(judge, agreement)
    return verdicts


def _answers(
    home: Path, members: Sequence[JudgeIdentity], submission: Submission, checks: int, found: Findings
) -> tuple[judges.Replay, list[Calibration]]:
    """The answers of language models, written where the judge looks for them, and the calibrations."""
    models = sum(not j.offline for j in members)
    if not models:
        for name in sorted({ANSWERS, CALIBRATIONS} & found.usable):
            found.problems.append(Problem("extra_file", name, "is there although no language model judged"))
        return judges.Replay(home), []
    questions = checks * submission.judge.repeats * models
    read: Counter[str] = Counter()
    most = Bounds(questions * judges.ANSWERS_EACH + SURPLUS, TEXT + questions * ANSWER_TEXT)
    with (home / batch.LIVE).open("w", encoding="utf-8") as file:
        if ANSWERS in found.usable:
            for where, answer in files.records(found.folder, ANSWERS, Answer, most, found.problems):
                read[answer.custom_id] += 1
                line = jsonl.line(answer)
                if problem := judges.oversized(line, read[answer.custom_id], where):
                    found.problems.append(problem)
                else:
                    file.write(line)
    calibrations: list[Calibration] = []
    if CALIBRATIONS in found.usable:
        most = Bounds(JUDGES, JUDGES * files.LINE_BYTES)
        lines = files.records(found.folder, CALIBRATIONS, Calibration, most, found.problems)
        calibrations = [c for _, c in lines]
    return judges.Replay(home), calibrations
