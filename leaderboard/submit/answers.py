"""The judges of a packed run and the language models' answers: the files that let others judge the run again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from dataset_builder.release import Release
from helmbench_common import jsonl
from helmbench_common.http.bodies import error_code
from judge import schema
from judge.agreement import known as agreement_of
from judge.agreement.calibration import Calibration
from judge.llm import batch
from judge.llm.reader import questions
from judge.replies.opening import home_for
from judge.replies.run import Run
from judge.replies.schema import RunError
from judge.scoring.stored import judged_by
from judge.verdicts import JudgeIdentity
from leaderboard.schema import ANSWERS, CALIBRATIONS, Answer, SubmittedJudge
from leaderboard.verify import judges as judging


def pack(
    run: Run, card: schema.Judge, release: Release, given: Sequence[Path]
) -> tuple[SubmittedJudge, dict[str, list[bytes]]]:
    """The judge of a scored run, and lines by file name; none if only the offline judge judged. `given`: calibration
    files, which override those next to the judges' replies.

    Raises:
        RunError: a judge that this code doesn't have, or files that can't be read.
    """
    *_, repeats = judged_by(card)
    judge = SubmittedJudge(
        name=card.name,
        prompt_hash=card.prompt_hash,
        answered_as=[],
        agreement=card.agreement,
        people=card.people,
        repeats=repeats,
    )
    judges, problems = judging.members(judge, release)
    if problems:
        raise RunError("\n".join(f"{run.path}: {p.message}; score it again" for p in problems))
    models = [j for j in judges if not j.offline]
    if not models:
        return judge, {}
    answers = [a for j in models for a in _answers(run, release, j, repeats)]
    names = sorted({name for a in answers if (name := batch.answered_by(a.model_dump())) is not None})
    files = {ANSWERS: _lines(answers), CALIBRATIONS: _lines(_calibrations(models, home_for(run), given))}
    return judge.model_copy(update={"answered_as": names}), files


def _lines(records: Sequence[BaseModel]) -> list[bytes]:
    return [jsonl.line(r).encode() for r in records]


def _calibrations(models: Sequence[JudgeIdentity], home: Path, given: Sequence[Path]) -> list[Calibration]:
    known = {c.judge: c for c in (agreement_of.read(path, Calibration) for path in given)}
    for judge in models:
        path = batch.folder(home, judge.name) / agreement_of.FILE
        if judge.name not in known and path.is_file():
            known[judge.name] = agreement_of.read(path, Calibration)
    return [known[j.name] for j in models if j.name in known]


def _answers(run: Run, release: Release, judge: JudgeIdentity, repeats: int) -> Iterator[Answer]:
    """Every line that answers a question about this run, in the order of the questions."""
    replies = batch.Replies(batch.folder(home_for(run), judge.name))
    seen: set[str] = set()
    for repeat in range(repeats):
        for question in questions(run, release, replace(judge, repeat=repeat)):
            if question.custom_id not in seen:
                seen.add(question.custom_id)
                yield from (_answer(record) for record in replies.of(question.custom_id))


def _answer(record: dict[str, Any]) -> Answer:
    """Only the fields of a line that `batch.read` needs: others, which servers add, may contain a key."""
    response = record.get("response")
    body = response.get("body") if isinstance(response, dict) else None
    kept = batch.trim(body)
    if kept:
        del kept["usage"]
    codes = [c for c in (error_code(body), error_code(record)) if c]
    failed = bool(record.get("error")) or not isinstance(response, dict) or "content_filter" in codes
    status = response.get("status_code", 200) if isinstance(response, dict) else None
    return Answer(
        id=record["id"] if isinstance(record.get("id"), str) else None,
        custom_id=record["custom_id"],
        response={"status_code": status, "body": kept} if isinstance(status, int) else None,
        error={"code": "content_filter" if "content_filter" in codes else next(iter(codes), None)} if failed else None,
    )
