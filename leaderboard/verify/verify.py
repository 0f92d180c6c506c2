"""Whether a submission is what it says: its files, its samples and prompts, its judge, its verdicts and its scores, all
made again.

What this can't prove is that the model said what the log has (docs/publishing.md).
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from dataset_builder.release import Release
from helmbench_common import jsonl
from judge.agreement.calibration import Calibration
from judge.judges import references
from judge.llm import batch
from judge.replies.run import Run
from judge.replies.schema import Model, Reply, RunError
from judge.replies.script import live_turns
from judge.schema import Scorecard, Verdict
from judge.score import Known, decide, score
from judge.verdicts import JudgeIdentity
from leaderboard import archive, public
from leaderboard.archive import ANSWERS, CALIBRATIONS, RESPONSES, ArchiveError
from leaderboard.schema import (
    ARCHIVE,
    JUDGES,
    SUBMISSION,
    VERDICTS,
    Answer,
    Problem,
    Response,
    State,
    Submission,
    Verified,
)
from leaderboard.verify import bounds, coverage, declared, files, judged, recompute
from leaderboard.verify.findings import Problems
from leaderboard.verify.prompts import Prompts
from leaderboard.verify.reading import M, UnreadableError, read

ANSWERS_EACH = 10  # lines that may answer one question: repeated deliveries, failures, unreadable answers


class Most(NamedTuple):
    """How many lines of a member are read, and bytes."""

    lines: int
    size: int


@dataclass
class _Findings:
    """What has been found so far, and what could be read and made again."""

    problems: Problems = field(default_factory=Problems)
    flags: Problems = field(default_factory=Problems)
    replies: list[Reply] = field(default_factory=list[Reply])
    verdicts: list[Verdict] = field(default_factory=list[Verdict])
    scorecard: Scorecard | None = None


def verify(folder: Path, release: Release) -> Verified:
    """Checks everything that can be checked, and says all that is wrong. Nothing in the folder can raise.

    Raises:
        RunError: there is no such folder.
    """
    if not folder.is_dir():
        raise RunError(f"{folder}: no such folder; expected a submission, as `helmbench submit` writes it")
    found = _Findings()
    submission: Submission | None = None
    try:
        problems, usable = files.check(folder)
        found.problems += problems
        submission = _submission(folder, usable, release, found)
        if submission is not None and declared.pinned(submission, release, found.problems):
            _replies(folder, usable, submission, release, found)
            _judgement(folder, usable, submission, release, found)
    except OSError as error:
        found.problems.append(Problem("unreadable", str(error.filename), f"can't be opened or read ({error.strerror})"))
    problems = list(found.problems)
    state: State = (
        "refused" if problems else "demo" if submission and declared.offline(submission.judge) else "verified"
    )
    return Verified(
        str(folder), state, problems, list(found.flags), submission, found.scorecard, found.verdicts, found.replies
    )


def _submission(folder: Path, usable: set[str], release: Release, found: _Findings) -> Submission | None:
    if SUBMISSION not in usable:
        return None
    try:
        submission = read((folder / SUBMISSION).read_bytes(), Submission)
    except UnreadableError as error:
        found.problems.append(Problem(error.kind, SUBMISSION, str(error)))
        return None
    found.problems += public.check(submission.model_dump(mode="json"), SUBMISSION)
    found.problems += declared.problems(submission, folder, release)
    found.flags += declared.flags(submission)
    return submission


def _replies(folder: Path, usable: set[str], submission: Submission, release: Release, found: _Findings) -> None:
    """Reads the responses once: coverage, prompts, equal replies."""
    if ARCHIVE not in usable:
        return
    broken = archive.inspect(folder / ARCHIVE)
    found.problems += broken
    if broken:
        return
    prompts = Prompts(found.problems)
    rows = [r for r in release.rows.values() if submission.dataset.tier in r.tiers]
    repeats = submission.generation.repeats
    turns = repeats * sum(live_turns(row) for row in rows)
    held = bounds.Held(turns)
    seen: Counter[tuple[str, int]] = Counter()
    kept: dict[tuple[str, int], Reply] = {}
    most = Most(repeats * len(rows) + bounds.SURPLUS, bounds.UNPACKED + turns * bounds.TURN_EACH)
    for where, response in _read_lines(folder, RESPONSES, Response, most, found):
        row = release.rows.get(response.id)
        misfit = coverage.fits(response, row, where)
        if misfit or row is None:
            found.problems += [misfit] if misfit else []
            continue
        if beyond := held.add(response):
            found.problems.append(beyond)
            return
        found.problems += bounds.stacked(response.turns, where)
        seen[response.id, response.repeat] += 1
        kept.setdefault((response.id, response.repeat), response.reply())
        prompts.add(response, row, where)
    found.flags += prompts.close()
    found.problems += coverage.check(seen, submission.dataset, repeats, release)
    found.replies = [kept[key] for key in sorted(kept)]
    found.flags += coverage.alike(found.replies, release)
    found.flags += coverage.drawn_once(found.replies, release)


def _read_lines(folder: Path, member: str, model: type[M], most: Most, found: _Findings) -> Iterator[tuple[str, M]]:
    """The lines of a member that can be read, each with its place; the others are problems."""
    lines = archive.lines(folder / ARCHIVE, member, min(most.size, archive.MEMBER_BYTES))
    return _records(lines, f"{ARCHIVE}/{member}", model, most.lines, found)


def _records(
    lines: Iterable[tuple[int, bytes]], where: str, model: type[M], most: int, found: _Findings
) -> Iterator[tuple[str, M]]:
    broken = 0
    try:
        for number, line in lines:
            if broken > bounds.BROKEN:
                said = f"has more than {bounds.BROKEN:,} bytes of lines that can't be read; the rest was left"
                found.problems.append(Problem("unreadable_lines", where, said))
                return
            if number > most:
                found.problems.append(
                    Problem("too_many_lines", where, f"goes on after {most:,} lines; a run of this size has fewer")
                )
                return
            try:
                yield f"{where}:{number}", read(line, model)
            except UnreadableError as error:
                found.problems.append(Problem(error.kind, f"{where}:{number}", str(error)))
                broken += len(line)
    except ArchiveError as error:
        found.problems.append(error.problem)


def _judgement(folder: Path, usable: set[str], submission: Submission, release: Release, found: _Findings) -> None:
    """Makes verdicts and scores again. Scores only of a whole run: those of a part say nothing about it."""
    judges, problems = judged.members(submission.judge, release)
    found.problems += problems
    checks = _checks(submission, release)
    lines = files.lines(folder / VERDICTS) if VERDICTS in usable else ()
    given = _records(lines, VERDICTS, Verdict, checks + bounds.SURPLUS, found)
    beyond = bounds.too_much(submission.judge, checks, bounds.letters(found.replies, release))
    found.problems += beyond
    if problems or beyond or not found.replies or "stacked_marks" in found.problems.kinds:
        for _ in given:  # what can't be compared is still read, to say what is wrong with it
            pass
        return
    with tempfile.TemporaryDirectory() as home:
        try:
            verdicts = _again(folder, Path(home), judges, submission, release, found)
        except (RunError, ValueError) as error:
            found.problems.append(Problem("judge", ARCHIVE, f"can't be judged again ({error})"))
            return
    found.verdicts = public.public_verdicts(verdicts, found.replies)
    found.problems += recompute.compare_verdicts(given, found.verdicts, release)
    if found.scorecard is not None:
        found.problems += recompute.compare_scores(submission.scores, recompute.headline(found.scorecard))
        problems, flags = declared.unscored(found.scorecard, found.verdicts, release)
        found.problems += problems
        found.flags += flags


def _again(
    folder: Path,
    home: Path,
    judges: Sequence[JudgeIdentity],
    submission: Submission,
    release: Release,
    found: _Findings,
) -> list[Verdict]:
    """The verdicts as the release gives them, and the scorecard of a whole run. `home`: an empty folder to work in."""
    answers, calibrations = _answers(folder, home, judges, submission, release, found)
    agreement, problems = judged.agreement(judges, calibrations, release, home)
    found.problems += problems
    run, seats = _run(folder, submission, found.replies), judged.seats(judges, submission.judge.repeats, answers)
    if found.problems.kinds & {"missing_sample", "extra_sample", "repeated_sample"}:
        verdicts = decide(run, release, seats).verdicts
    else:
        scored = score(
            run, release, seats, Known(agreement, references=references(release), people=submission.judge.people)
        )
        verdicts, found.scorecard = scored.verdicts, scored.scorecard
    found.problems += declared.answered(submission.judge, answers)
    problems, flags = answers.told()
    found.problems += problems
    found.flags += flags
    if agreement:
        found.problems += judged.counted(submission.judge, agreement)
        found.problems += declared.allowed(submission.judge, agreement[0])
    return verdicts


def _run(folder: Path, submission: Submission, replies: list[Reply]) -> Run:
    model, generation = submission.model, submission.generation
    name = f"{model.organization}/{model.name}"
    answered = Model(name=name, backend=generation.backend, arguments=generation.arguments)
    return Run(folder, answered, submission.dataset.tier, replies, False)


def _answers(
    folder: Path,
    home: Path,
    judges: Sequence[JudgeIdentity],
    submission: Submission,
    release: Release,
    found: _Findings,
) -> tuple[judged.Replayed, list[Calibration]]:
    """What language models answered, put where the judge looks for it, and what was measured of them."""
    held = archive.names(folder / ARCHIVE)
    models = sum(not j.offline for j in judges)
    if not models:  # the offline judge answers nothing that has to be kept
        if surplus := held & {ANSWERS, CALIBRATIONS}:
            what = f"holds {', '.join(sorted(surplus))}, though no language model judged"
            found.problems.append(Problem("extra_member", ARCHIVE, what))
        return judged.Replayed(home), []
    questions = _checks(submission, release) * submission.judge.repeats * models
    asked = bounds.Asked(questions)
    most = Most(questions * ANSWERS_EACH + bounds.SURPLUS, bounds.UNPACKED + questions * bounds.ANSWER_EACH)
    with (home / batch.LIVE).open("w", encoding="utf-8") as file:
        for where, answer in _read_lines(folder, ANSWERS, Answer, most, found) if ANSWERS in held else ():
            beyond = asked.add(answer, where)
            found.problems += beyond
            if not beyond:
                file.write(jsonl.line(answer))
    most = Most(JUDGES, JUDGES * archive.LINE_BYTES)
    read = _read_lines(folder, CALIBRATIONS, Calibration, most, found) if CALIBRATIONS in held else ()
    return judged.Replayed(home), [c for _, c in read]


def _checks(submission: Submission, release: Release) -> int:
    """How many verdicts a whole run has."""
    tier = submission.dataset.tier
    return sum(len(r.evaluation) for r in release.rows.values() if tier in r.tiers) * submission.generation.repeats
