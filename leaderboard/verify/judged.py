"""Who judged a submission: its members, their answers replayed, and whether their calibration allows it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dataset_builder.prompts import WORDINGS
from dataset_builder.release import Release
from judge import panel, schema
from judge.agreement import known as agreement_of
from judge.agreement.answers import JudgeLabel, by_rules
from judge.agreement.calibration import Calibration, calibrate, calibration_hash
from judge.llm import batch
from judge.llm.answers import Parsed
from judge.llm.asking import Stored
from judge.llm.questions import JudgeRequest, prompt_hash
from judge.llm.reader import readers
from judge.offline import judge as offline
from judge.offline.reader import OfflineReader
from judge.replies.schema import RunError
from judge.score import Judge
from judge.verdicts import JudgeIdentity
from leaderboard.archive import CALIBRATIONS
from leaderboard.schema import ARCHIVE, SUBMISSION, Problem, SubmittedJudge

TOLERANCE = 1e-9
WHERE = f"{SUBMISSION}: judge"


def members(judge: SubmittedJudge, release: Release) -> tuple[list[JudgeIdentity], list[Problem]]:
    """The judges behind a name, and what doesn't fit: an offline judge that is no more, a prompt that isn't the
    release's, another panel.
    """
    wordings = {prompt_hash(release.prompts, w): w for w in WORDINGS}
    own = judge.agreement[1:] or judge.agreement
    problems = [Problem(kind, WHERE, said) for a in own for kind, said in _no_judge(a, list(wordings))]
    found = [
        JudgeIdentity(a.judge, a.prompt_hash, wordings.get(a.prompt_hash or "", WORDINGS[0]))
        for a in own
        if not any(_no_judge(a, list(wordings)))
    ]
    if len({m.name for m in found}) < len(found):
        problems.append(Problem("judge", WHERE, "names a member of its panel twice"))
    if (
        not problems
        and (whole := panel.identity_of(found))
        and (whole.name, whole.prompt_hash) != (judge.name, judge.prompt_hash)
    ):
        problems.append(
            Problem(
                "judge",
                WHERE,
                f"is '{judge.name}' with prompt {judge.prompt_hash}; its agreement is that of '{whole.name}' "
                f"with {whole.prompt_hash}",
            )
        )
    return found, problems


class Replayed(Stored):
    """What language models answered, as a submission has it. `twice`: questions with two readable answers that say
    different things; `one_id`: those of them whose answers stand under one id, which no server gives.
    """

    def __init__(self, where: Path) -> None:
        super().__init__(where)
        self.twice: set[str] = set()
        self.one_id: set[str] = set()

    def __call__(self, request: JudgeRequest) -> batch.Answer:
        labels: dict[str | int, str | None] = {}
        for number, record in enumerate(self._replies.of(request.custom_id)):
            found = batch.read([record], request).answer
            if isinstance(found, Parsed) and found.label is not None:
                identity = number if record.get("id") is None else str(record["id"])
                if labels.get(identity, found.label) != found.label:
                    self.one_id.add(request.custom_id)
                labels.setdefault(identity, found.label)
        if len(set(labels.values())) > 1:
            self.twice.add(request.custom_id)
        return super().__call__(request)

    def told(self) -> tuple[list[Problem], list[Problem]]:
        """Problems and flags, to be called when every question has been put."""
        if self.one_id:
            said = f"{len(self.one_id)} questions have two answers under one id that say different things"
            return [Problem("contradictory_answers", ARCHIVE, said)], []
        if self.twice:
            said = f"{len(self.twice)} questions were answered in two ways; the first answer that can be read counts"
            return [], [Problem("two_answers", ARCHIVE, said)]
        return [], []


def seats(judges: Sequence[JudgeIdentity], repeats: int, answers: Stored) -> list[Judge]:
    """The judges as they sat for the run. `answers`: what language models are replayed from."""
    return [(OfflineReader(),) if j.offline else readers(j, repeats, answers) for j in judges]


def _no_judge(own: schema.JudgeAgreement, wordings: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Why nobody judges under this name: kind and message of a problem."""
    if own.prompt_hash is None and own.judge != offline.NAME:
        said = f"'{own.judge}' has no prompt hash, as the offline judge has none; that one is {offline.NAME}"
        yield "judge", said
    elif own.prompt_hash is not None and own.prompt_hash not in wordings:
        said = f"prompt hash {own.prompt_hash[:24]} of '{own.judge}' is of no wording; expected {', '.join(wordings)}"
        yield "judge_prompt", said


def agreement(
    judges: Sequence[JudgeIdentity], calibrations: Iterable[Calibration], release: Release, home: Path
) -> tuple[list[schema.JudgeAgreement], list[Problem]]:
    """The members' agreement, recomputed from what each said of every calibration reply. `home`: an empty folder to
    work in.
    """
    problems: list[Problem] = []
    paths, measured = list[Path](), set[str]()
    for number, calibration in enumerate(calibrations):
        own = next((j for j in judges if j.name == calibration.judge and not j.offline), None)
        if own is None:
            problems.append(
                Problem("calibration", CALIBRATIONS, f"measures '{calibration.judge}', which doesn't judge here")
            )
            continue
        if own.name in measured:
            problems.append(Problem("calibration", CALIBRATIONS, f"measures '{own.name}' twice; expected it once"))
        measured.add(own.name)
        problems += _recomputed(calibration, own, release)
        paths.append(home / f"calibration-{number}.json")
        paths[-1].write_text(calibration.model_dump_json(), encoding="utf-8")
    try:
        return agreement_of.stored(judges, home, paths, release), problems
    except (RunError, ValueError) as error:
        return [], [*problems, Problem("calibration", CALIBRATIONS, f"can't be read ({error})")]


def _recomputed(calibration: Calibration, identity: JudgeIdentity, release: Release) -> list[Problem]:
    """Why a calibration can't count: not of this release and judge, or figures that its own labels don't give."""
    ruled = by_rules(release.calibration, release)
    said = _unfit(calibration, identity, release) or _unknown_label(calibration, ruled, release)
    if said is None and (wrong := _miscounted(calibration, identity, ruled, release)):
        said = f"its figures are not those of its own labels: {'; '.join(wrong[:3])}"
    return [Problem("calibration", f"{CALIBRATIONS}: {calibration.judge}", said)] if said else []


def _unfit(calibration: Calibration, identity: JudgeIdentity, release: Release) -> str | None:
    if calibration.calibration_hash != (expected := calibration_hash(release)):
        return (
            f"was measured on another calibration set ({calibration.calibration_hash[:24]}, the "
            f"release's is {expected}); calibrate again"
        )
    if calibration.prompt_hash != identity.prompt_hash:
        return f"was measured with prompt {calibration.prompt_hash}, the run was judged with {identity.prompt_hash}"
    if calibration.labels.keys() != (rows := {r.id for r in release.calibration}):
        return f"has {len(calibration.labels)} labels that are not those of the {len(rows)} calibration replies"
    return None


def _unknown_label(calibration: Calibration, ruled: Mapping[str, JudgeLabel], release: Release) -> str | None:
    rows = {r.id: r for r in release.calibration}
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
    # Who labelled the calibration set is the release's to say: the page warns of labels by language models with it.
    facts = {"readers", "agreed", "by_language_models"}
    wrong = differences(calibration.model_dump(include=facts), own.model_dump(include=facts), "calibration set")
    pairs = [
        ("overall", calibration.overall, own.overall),
        *((str(b.criterion), a, b) for a, b in zip(calibration.criteria, own.criteria, strict=False)),
    ]
    wrong += [what for name, a, b in pairs for what in differences(a.model_dump(), b.model_dump(), name)]
    return [*wrong, "criteria"] if len(calibration.criteria) != len(own.criteria) else wrong


def differences(given: Any, own: Any, path: str) -> list[str]:
    """Where two plain values differ, each with both values; numbers within TOLERANCE are equal."""
    if isinstance(given, dict) and isinstance(own, dict):
        return [
            d
            for key in sorted(given.keys() | own.keys())
            for d in differences(given.get(key), own.get(key), f"{path}.{key}")
        ]
    if isinstance(given, list) and isinstance(own, list) and len(given) == len(own):
        return [d for n, (a, b) in enumerate(zip(given, own, strict=True)) for d in differences(a, b, f"{path}.{n}")]
    if _numbers(given, own):
        return (
            []
            if math.isclose(given, own, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
            else [f"{path} is {given}, recomputed {own}"]
        )
    return [] if given == own else [f"{path} is {str(given)[:80]!r}, recomputed {str(own)[:80]!r}"]


def _numbers(*values: Any) -> bool:
    return all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)


def counted(judge: SubmittedJudge, expected: Sequence[schema.JudgeAgreement]) -> list[Problem]:
    """Where the submission's agreement is not the recomputed one."""
    wrong = differences([a.model_dump() for a in judge.agreement], [a.model_dump() for a in expected], "agreement")
    return (
        [Problem("agreement", WHERE, f"its agreement is not what its calibration gives: {'; '.join(wrong[:3])}")]
        if wrong
        else []
    )
