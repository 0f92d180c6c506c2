"""What is known of a judge's agreement, for scorecards and reports: the shipped file of the offline judge,
`calibration.json` of another.

Nothing is carried over from another judge, another prompt, or another version of a criterion: what doesn't match is
listed as not measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from dataset_builder.release import Release
from helmbench_common.formats.plain_file import read_bytes
from helmbench_common.formats.refused import FormatError
from judge import panel
from judge.calibration.labels import agreement_over, shut_out
from judge.calibration.types import Answered, Calibration, blank, criterion_hash
from judge.llm import batch
from judge.replies.errors import RunError
from judge.schema import CriterionAgreement, JudgeAgreement
from judge.verdicts import JudgeIdentity
from judge.wording import calibration_caveat

M = TypeVar("M", bound=BaseModel)
FILE = "calibration.json"
SHIPPED = Path(__file__).with_name("shipped")
CHANGED = "its text or its calibration replies are others than those that this judge was measured on"


def read(path: Path) -> Calibration:
    """A file that `helmbench calibrate` wrote.

    Raises:
        RunError: it is none.
    """
    return read_measured(path, Calibration, "calibrate")


def read_measured(path: Path, shape: type[M], command: str) -> M:
    """A file of this shape, named as the shape is, that a command wrote.

    Raises:
        RunError: it is none.
    """
    try:
        return shape.model_validate_json(read_bytes(path, f"what `helmbench {command}` writes"))
    except FormatError as error:
        raise RunError(str(error)) from None
    except ValidationError as error:
        why = error.errors()[0]["msg"]
        raise RunError(
            f"{path}: can't be read as a {shape.__name__.lower()} ({why}); expected what `helmbench {command}` writes"
        ) from None


def stored(
    judges: Sequence[JudgeIdentity], home: Path, given: Sequence[Path], release: Release
) -> list[JudgeAgreement]:
    """One entry per judge, before them a panel's own where there are several.

    `given` files come first, then `calibration.json` beside a model's replies in `home`, the run's folder.

    Raises:
        RunError: a given file that can't be read, or is of a judge that isn't asked.
    """
    files = {path: read(path) for path in given}
    known = [j.name for j in judges]
    for path, calibration in files.items():
        if calibration.judge not in known:
            raise RunError(
                f"{path}: measures '{calibration.judge}', which doesn't judge here; expected one of {', '.join(known)}"
            )
    found = [_find(j, home, list(files.values())) for j in judges]
    own = [of_judge(j, calibration, release) for j, calibration in zip(judges, found, strict=True)]
    return (
        own if len(judges) == 1 else [of_panel(panel.identity_of(judges), [f for f in found if f], own, release), *own]
    )


def of_judge(identity: JudgeIdentity, calibration: Calibration | None, release: Release) -> JudgeAgreement:
    """A judge's measured agreement with this release's calibration set."""
    if calibration is None:
        return _unmeasured(identity, "not measured: run `helmbench calibrate`", release)
    if calibration.prompt_hash != identity.prompt_hash:
        return _unmeasured(
            identity,
            f"not measured with this prompt, only with {calibration.prompt_hash}: run `helmbench calibrate`",
            release,
        )
    before = {a.criterion: a for a in calibration.criteria}
    criteria: list[CriterionAgreement] = []
    for name in sorted(release.criteria):
        key, own = criterion_hash(release.criteria[name], release.calibration), before.get(name)
        criteria.append(
            own
            if own and own.hash == key
            else blank(name, key, CHANGED if own else "not measured: run `helmbench calibrate` again")
        )
    reasons = shut_out(identity, calibration.overall, criteria, release)
    return JudgeAgreement(
        judge=identity.name,
        prompt_hash=identity.prompt_hash,
        measured=True,
        note=calibration_caveat(
            calibration.overall.replies,
            calibration.agreed,
            calibration.readers,
            calibration.by_language_models,
            calibration.judge,
        ),
        calibration_hash=calibration.calibration_hash,
        readers=calibration.readers,
        overall=calibration.overall,
        criteria=criteria,
        usable=not reasons,
        reasons=reasons,
    )


def of_panel(
    identity: JudgeIdentity, members: Sequence[Calibration], own: Sequence[JudgeAgreement], release: Release
) -> JudgeAgreement:
    """A panel's agreement, from what its members said of the same replies: no question is asked again."""
    if len(members) < len(own) or not all(a.measured for a in own):
        return _unmeasured(
            identity,
            f"not measured: run `helmbench calibrate` for {', '.join(a.judge for a in own if not a.measured)}",
            release,
        )
    rows = release.calibration
    if any(set(m.labels) != {r.id for r in rows} for m in members):
        return _unmeasured(
            identity,
            "not measured: its members were measured on other replies; run `helmbench calibrate` for each",
            release,
        )
    overall, criteria = agreement_over(release, _panels(members, release))
    reasons = shut_out(identity, overall, criteria, release)
    first = own[0]
    return JudgeAgreement(
        judge=identity.name,
        prompt_hash=identity.prompt_hash,
        measured=True,
        note=first.note,
        calibration_hash=overall.hash,
        readers=first.readers,
        overall=overall,
        criteria=criteria,
        usable=not reasons,
        reasons=reasons,
    )


def _panels(members: Sequence[Calibration], release: Release) -> dict[str, Answered]:
    """What a panel says of every calibration reply."""
    answers: dict[str, Answered] = {}
    for row in release.calibration:
        criterion = release.criteria[row.criterion]
        ways = [way.split()[0] for way in criterion.fails]
        label = panel.majority([m.labels[row.id] for m in members], panel.worst_first(criterion, row.polarity), ways)
        answers[row.id] = Answered(label, None if label else "unscored")
    return answers


def _find(identity: JudgeIdentity, home: Path, given: Sequence[Calibration]) -> Calibration | None:
    for calibration in given:
        if calibration.judge == identity.name:
            return calibration
    if identity.offline:
        shipped = SHIPPED / f"{identity.name}.json"
        return read(shipped) if shipped.is_file() else None
    beside = batch.folder(home, identity.name) / FILE
    found = read(beside) if beside.is_file() else None
    return found if found and found.judge == identity.name else None  # two models' names may come to one folder


def _unmeasured(identity: JudgeIdentity, note: str, release: Release) -> JudgeAgreement:
    criteria = [
        blank(name, criterion_hash(release.criteria[name], release.calibration), note)
        for name in sorted(release.criteria)
    ]
    return JudgeAgreement(
        judge=identity.name,
        prompt_hash=identity.prompt_hash,
        measured=False,
        note=note,
        criteria=criteria,
        reasons=[note],
    )
