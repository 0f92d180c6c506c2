"""Who judged a submission: its members, their replayed answers, and whether their calibration allows them to judge."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dataset_builder.prompts import WORDINGS
from dataset_builder.release import Release
from judge import panel, schema
from judge.agreement import known as agreement_of
from judge.agreement.answers import JudgeLabel, ruled
from judge.agreement.calibration import Calibration, calibrate, calibration_hash
from judge.llm import batch
from judge.llm.answers import Parsed
from judge.llm.asking import Stored
from judge.llm.questions import JudgeRequest, prompt_hash
from judge.offline import judge as offline
from judge.replies.schema import RunError
from judge.verdicts import JudgeIdentity
from leaderboard.schema import (
    ANSWERS,
    CALIBRATIONS,
    LONG_NAME,
    LONG_NAMED,
    RESPONSES,
    SUBMISSION,
    Problem,
    SubmittedJudge,
)
from leaderboard.verify.coverage import STACKED
from leaderboard.verify.declared import offline as is_demo

TOLERANCE = 1e-9
ANSWER = 64 * 2**10  # characters of an answer: a label, three quotes and a reason
ANSWERS_EACH = 32  # lines that may answer one question: repeated deliveries, failures, unreadable answers
VERDICTS_MOST = 500_000  # verdicts that are recomputed, over all members and repeats
READ_MOST = 2**30  # characters that are judged, over all checks, members and repeats; a second judges about a million
READ, READ_EACH = 32 * 2**20, 32 * 2**10  # the same limit for any run, and for each verdict
WHERE = f"{SUBMISSION}: judge"


def members(judge: SubmittedJudge, release: Release) -> tuple[list[JudgeIdentity], list[Problem]]:
    """The judges behind a name, and what doesn't fit: another offline judge, another prompt, another panel."""
    wordings = {prompt_hash(release.prompts, w): w for w in WORDINGS}
    problems: list[Problem] = []
    found: list[JudgeIdentity] = []
    for own in judge.agreement[1:] or judge.agreement:
        if not LONG_NAME.fullmatch(own.judge):
            said = f"{ascii(own.judge)[:80]} isn't the name of a judge; expected {LONG_NAMED}"
            problems.append(Problem("judge", WHERE, said))
        elif own.prompt_hash is None and own.judge != offline.NAME:
            said = f"'{own.judge}' has no prompt hash; only the offline judge, {offline.NAME}, has none"
            problems.append(Problem("judge", WHERE, said))
        elif own.prompt_hash is not None and own.prompt_hash not in wordings:
            said = f"unknown prompt hash {own.prompt_hash[:24]} of '{own.judge}'; expected {', '.join(wordings)}"
            problems.append(Problem("judge_prompt", WHERE, said))
        else:
            found.append(JudgeIdentity(own.judge, own.prompt_hash, wordings.get(own.prompt_hash or "", WORDINGS[0])))
    names = [m.name for m in found]
    if len({name.casefold() for name in names}) < len(names):
        said = f"names a member of its panel twice, ignoring case: {', '.join(names)[:300]}"
        problems.append(Problem("judge", WHERE, said))
    whole = None if problems else panel.identity_of(found)
    if whole and (whole.name, whole.prompt_hash) != (judge.name, judge.prompt_hash):
        said = (
            f"is '{judge.name}' with prompt {judge.prompt_hash}, but its agreement is that of '{whole.name}' with "
            f"prompt {whole.prompt_hash}"
        )
        problems.append(Problem("judge", WHERE, said))
    return found, problems


def too_much(judge: SubmittedJudge, checks: int, characters: int) -> Iterator[Problem]:
    """More judging than the verifier does. `checks`: of the whole run; `characters`: of replies, once per check."""
    votes = sum(1 if m.prompt_hash is None else judge.repeats for m in judge.agreement[1:] or judge.agreement)
    if votes * checks > VERDICTS_MOST:
        said = f"has {votes} votes on each of {checks:,} checks; at most {VERDICTS_MOST:,} verdicts are recomputed"
        yield Problem("too_many_votes", WHERE, said)
    if votes * characters > (most := min(READ_MOST, READ + votes * checks * READ_EACH)):
        said = f"{characters:,} characters to judge {votes} times; expected at most {most:,} for a run of this size"
        yield Problem("too_much_text", RESPONSES, said)


def oversized(line: str, number: int, where: str) -> Problem | None:
    """Why an answer isn't replayed. `number`: how many answers to its question were read, with this one."""
    if number > ANSWERS_EACH:
        return Problem("too_many_answers", where, f"more than {ANSWERS_EACH} answers to one question")
    if len(line) > ANSWER:
        return Problem("long_answer", where, f"more than {ANSWER:,} characters; expected a label and quotes")
    if STACKED.search(line):
        return Problem("too_much_text", where, "an answer with long runs of combining marks")
    return None


class Replay(Stored):
    """The logged answers of language models. `different`: questions with two readable answers that differ;
    `same_id`: those whose differing answers have the same id, which no server returns.
    """

    def __init__(self, where: Path) -> None:
        super().__init__(where)
        self.different: set[str] = set()
        self.same_id: set[str] = set()

    def __call__(self, request: JudgeRequest) -> batch.Answer:
        labels: dict[str | int, str | None] = {}
        for number, record in enumerate(self._replies.of(request.custom_id)):
            found = batch.read([record], request).answer
            if isinstance(found, Parsed) and found.label is not None:
                identity = number if record.get("id") is None else str(record["id"])
                if labels.get(identity, found.label) != found.label:
                    self.same_id.add(request.custom_id)
                labels.setdefault(identity, found.label)
        if len(set(labels.values())) > 1:
            self.different.add(request.custom_id)
        return super().__call__(request)

    def findings(self, judge: SubmittedJudge) -> tuple[list[Problem], list[Problem]]:
        """Problems and flags, once every question was asked: contradicting answers, other questions or models."""
        problems: list[Problem] = []
        flags: list[Problem] = []
        if self.same_id:
            said = f"{len(self.same_id)} questions have two different answers with the same id"
            problems.append(Problem("contradictory_answers", ANSWERS, said))
        elif self.different:
            said = f"{len(self.different)} questions have two different answers; the first readable one counts"
            flags.append(Problem("two_answers", ANSWERS, said))
        if surplus := self.surplus():
            said = f"{surplus} answers are to questions that this run doesn't ask this judge"
            problems.append(Problem("extra_answers", ANSWERS, said))
        if sorted(judge.answered_as) != (models := sorted(self.models)):
            said = f"is {', '.join(judge.answered_as)}; the answers are by {', '.join(models) or 'no model'}"
            problems.append(Problem("answered_as", f"{WHERE}.answered_as", said[:500]))
        return problems, flags


def agreement(
    judges: Sequence[JudgeIdentity], calibrations: Iterable[Calibration], release: Release, home: Path
) -> tuple[list[schema.JudgeAgreement], list[Problem]]:
    """The members' agreement, recomputed from their labels of the calibration set. `home`: an empty folder."""
    problems: list[Problem] = []
    paths, measured = list[Path](), set[str]()
    for number, calibration in enumerate(calibrations):
        own = next((j for j in judges if j.name == calibration.judge and not j.offline), None)
        if own is None:
            said = f"measures '{calibration.judge}', which isn't a judge of this submission"
            problems.append(Problem("calibration", CALIBRATIONS, said))
            continue
        if own.name in measured:
            problems.append(Problem("calibration", CALIBRATIONS, f"measures '{own.name}' twice"))
        measured.add(own.name)
        problems += _recomputed(calibration, own, release)
        paths.append(home / f"calibration-{number}.json")
        paths[-1].write_text(calibration.model_dump_json(), encoding="utf-8")
    try:
        return agreement_of.stored(judges, home, paths, release), problems
    except (RunError, ValueError) as error:
        return [], [*problems, Problem("calibration", CALIBRATIONS, f"can't be read ({error})")]


def _recomputed(calibration: Calibration, identity: JudgeIdentity, release: Release) -> Iterator[Problem]:
    """Why a calibration doesn't count: another release or judge, or figures that don't follow from its labels."""
    by_rule = ruled(release, "criterion", release.calibration)
    said = _unfit(calibration, identity, by_rule, release)
    if said is None and (wrong := _miscounted(calibration, identity, by_rule, release)):
        said = f"its figures don't follow from its labels: {'; '.join(wrong[:3])}"
    if said:
        yield Problem("calibration", f"{CALIBRATIONS}: {calibration.judge}", said)


def _unfit(
    calibration: Calibration, identity: JudgeIdentity, ruled: Mapping[str, JudgeLabel], release: Release
) -> str | None:
    if calibration.calibration_hash != (expected := calibration_hash(release)):
        return (
            f"was measured on another calibration set ({calibration.calibration_hash[:24]}; the release's is "
            f"{expected}); calibrate again"
        )
    if calibration.prompt_hash != identity.prompt_hash:
        return f"was measured with prompt {calibration.prompt_hash}; the run was judged with {identity.prompt_hash}"
    rows = {r.id: r for r in release.calibration}
    if calibration.labels.keys() != rows.keys():
        return f"its {len(calibration.labels)} labels aren't those of the {len(rows)} calibration replies"
    for i, label in calibration.labels.items():
        known = (ruled[i].label,) if i in ruled else (*release.criteria[rows[i].criterion].labels, None)
        if label not in known:
            return f"labels {i} {str(label)[:40]!r}; expected one of {known}"
    return None


def _miscounted(
    calibration: Calibration, identity: JudgeIdentity, ruled: Mapping[str, JudgeLabel], release: Release
) -> list[str]:
    answers = {
        i: ruled.get(i) or JudgeLabel(label, None if label else "unparsable") for i, label in calibration.labels.items()
    }
    own = calibrate(release, identity, [answers])
    # Who labeled the calibration set is up to the release: the page warns of labels by language models with it.
    facts = {"readers", "agreed", "by_language_models", "overall", "criteria"}
    return differences(calibration.model_dump(include=facts), own.model_dump(include=facts), "calibration")


def differences(given: Any, own: Any, path: str) -> list[str]:
    """Where two plain values differ, with both values; numbers within TOLERANCE are equal."""
    if isinstance(given, dict) and isinstance(own, dict):
        return [
            d
            for key in sorted(given.keys() | own.keys())
            for d in differences(given.get(key), own.get(key), f"{path}.{key}")
        ]
    if isinstance(given, list) and isinstance(own, list) and len(given) == len(own):
        return [d for n, (a, b) in enumerate(zip(given, own, strict=True)) for d in differences(a, b, f"{path}.{n}")]
    if type(given) in (int, float) and type(own) in (int, float):
        close = math.isclose(given, own, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        return [] if close else [f"{path} is {given}, recomputed {own}"]
    return [] if given == own else [f"{path} is {str(given)[:80]!r}, recomputed {str(own)[:80]!r}"]


def misstated(judge: SubmittedJudge, expected: Sequence[schema.JudgeAgreement]) -> Iterator[Problem]:
    """Where the declared agreement isn't the recomputed one, and a judge that isn't allowed to judge."""
    wrong = differences([a.model_dump() for a in judge.agreement], [a.model_dump() for a in expected], "agreement")
    if wrong:
        yield Problem("agreement", WHERE, f"doesn't follow from the calibration: {'; '.join(wrong[:3])}")
    if not expected[0].usable and not is_demo(judge):
        said = f"'{judge.name}' may not judge a submission: {'; '.join(expected[0].reasons) or expected[0].note}"
        yield Problem("judge_not_allowed", WHERE, said)
