"""A run's judges: their agreement with the calibration sets and with people, for scorecards and reports. The offline
judge's figures are shipped; a model's are next to its answers.

Figures of another judge, prompt or criterion version are never carried over: what doesn't match is listed as not
measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from dataset_builder.prompts import RATE
from dataset_builder.release import Release
from helmbench_common import jsonl
from helmbench_common.formats.plain_file import read_bytes
from helmbench_common.formats.refused import FormatError
from judge import panel
from judge.agreement.answers import JudgeLabel
from judge.agreement.calibration import (
    Calibration,
    agreement_over,
    calibration_hash,
    criterion_hash,
    unmeasured,
    why_unusable,
)
from judge.agreement.validation import Validation, asked_by, place
from judge.llm import batch
from judge.llm.questions import CATEGORY, prompt_hash
from judge.replies.schema import RunError
from judge.schema import CriterionAgreement, JudgeAgreement, PeopleAgreement, PeopleFigures, PeopleSet
from judge.statistics.estimate import Estimate
from judge.verdicts import JudgeIdentity
from judge.wording import calibration_caveat

Figures = TypeVar("Figures", Calibration, Validation)
FILE = "calibration.json"
RATING_FILE = "rating_calibration.json"
SHIPPED = Path(__file__).with_name("shipped")
RUN_CALIBRATE = "not measured: run `helmbench calibrate`"
CHANGED = "its text or its calibration replies have changed since this judge was measured"


def read(path: Path, shape: type[Figures], command: str = "calibrate") -> Figures:
    """Reads a file that a command wrote."""
    try:
        return shape.model_validate_json(read_bytes(path, f"a file written by `helmbench {command}`"))
    except FormatError as error:
        raise RunError(str(error)) from None
    except ValidationError as error:
        why = ": ".join(jsonl.first_problem(error))
        raise RunError(f"{path}: {why}; expected a file written by `helmbench {command}`") from None


def _named(paths: Iterable[Path], shape: type[Figures], command: str, judges: Sequence[JudgeIdentity]) -> list[Figures]:
    """The figures in files that the user named, each of a judge of this run."""
    found = [read(path, shape, command) for path in paths]
    names = [j.name for j in judges]
    for path, own in zip(paths, found, strict=True):
        if own.judge not in names:
            raise RunError(f"{path}: {command}s '{own.judge}'; expected a judge of this run: {', '.join(names)}")
    return found


def stored(
    judges: Sequence[JudgeIdentity], home: Path, given: Sequence[Path], release: Release
) -> list[JudgeAgreement]:
    """One entry per judge; the panel's comes first if there are several judges.

    `given` files take precedence over `calibration.json` next to a model's answers in `home`, the run's folder.
    """
    named = _named(given, Calibration, "calibrate", judges)
    found = [next((c for c in named if c.judge == j.name), None) or _beside(j, home) for j in judges]
    own = [of_judge(j, calibration, release) for j, calibration in zip(judges, found, strict=True)]
    if len(judges) == 1:
        return own
    return [_of_panel(panel.identity_of(judges), [f for f in found if f], own, release), *own]


def _beside(judge: JudgeIdentity, home: Path) -> Calibration | None:
    path = SHIPPED / f"{judge.name}.json" if judge.offline else batch.folder(home, judge.name) / FILE
    found = read(path, Calibration) if path.is_file() else None
    return found if found and found.judge == judge.name else None  # two models' names may map to one folder


def of_judge(identity: JudgeIdentity, calibration: Calibration | None, release: Release) -> JudgeAgreement:
    """A judge's measured agreement with this release's calibration set."""
    if calibration is None:
        return _entry(identity, RUN_CALIBRATE, release)
    if calibration.prompt_hash != identity.prompt_hash:
        note = f"not measured with this prompt, only with {calibration.prompt_hash}: run `helmbench calibrate`"
        return _entry(identity, note, release)
    before = {a.criterion: a for a in calibration.criteria}
    criteria = []
    for name, key in _keys(release):
        own = before.get(name)
        changed = CHANGED if own else f"{RUN_CALIBRATE} again"
        criteria.append(own if own and own.hash == key else unmeasured(name, key, changed))
    c, overall = calibration, calibration.overall
    note = calibration_caveat(overall.replies, c.agreed, c.readers, c.by_language_models, c.judge)
    return _entry(identity, note, release, c.readers, (overall, criteria))


def _of_panel(
    identity: JudgeIdentity, members: Sequence[Calibration], own: Sequence[JudgeAgreement], release: Release
) -> JudgeAgreement:
    """A panel's agreement, from its members' labels of the same replies."""
    if len(members) < len(own) or not all(a.measured for a in own):
        missing = ", ".join(a.judge for a in own if not a.measured)
        return _entry(identity, f"{RUN_CALIBRATE} for {missing}", release)
    if any(m.labels.keys() != {r.id for r in release.calibration} for m in members):
        note = "not measured: its members were measured on other replies; run `helmbench calibrate` for each"
        return _entry(identity, note, release)
    labels: dict[str, JudgeLabel] = {}
    for row in release.calibration:
        criterion = release.criteria[row.criterion]
        ways = [way.split()[0] for way in criterion.fails]
        label = panel.majority([m.labels[row.id] for m in members], panel.worst_first(criterion, row.polarity), ways)
        labels[row.id] = JudgeLabel(label, None if label else "unscored")
    return _entry(identity, own[0].note, release, own[0].readers, agreement_over(release, labels))


def _keys(release: Release) -> list[tuple[str, str]]:
    """Every criterion with its hash."""
    return [(name, criterion_hash(own, release.calibration)) for name, own in sorted(release.criteria.items())]


def _entry(
    identity: JudgeIdentity,
    note: str,
    release: Release,
    readers: int = 0,
    measured: tuple[CriterionAgreement, list[CriterionAgreement]] | None = None,
) -> JudgeAgreement:
    """`measured`: the agreement over all replies and by criterion; None: not measured, for the reason in `note`."""
    overall, criteria = measured or (None, [unmeasured(name, key, note) for name, key in _keys(release)])
    reasons = why_unusable(identity, overall, criteria, release) if overall else [note]
    return JudgeAgreement(
        judge=identity.name,
        prompt_hash=identity.prompt_hash,
        measured=overall is not None,
        note=note,
        calibration_hash=overall.hash if overall else None,
        readers=readers,
        overall=overall,
        criteria=criteria,
        usable=not reasons,
        reasons=reasons,
    )


def of_ratings(identity: JudgeIdentity, folders: Iterable[Path], release: Release) -> list[CriterionAgreement]:
    """The rating agreement that `helmbench calibrate` wrote to one of these folders for this model, prompt and set, or
    an empty list.
    """
    expected = (identity.name, identity.prompt_hash, calibration_hash(release, "rating"))
    for path in (folder / RATING_FILE for folder in folders):
        if path.is_file():
            found = read(path, Calibration)
            if (found.judge, found.prompt_hash, found.calibration_hash) == expected:
                return [found.overall, *found.criteria]
    return []


def with_people(
    judges: Sequence[JudgeIdentity], home: Path, given: Sequence[Path], release: Release
) -> list[PeopleAgreement]:
    """Each judge's validations, by set; a judge without an entry is not validated.

    `given`: files, or folders passed to `helmbench validate` as --home. They take precedence over validations in
    `home`, the run's folder, and over the shipped ones. The first one for each set and half is used.
    """
    files = _named([path for path in given if not path.is_dir()], Validation, "validate", judges)
    for folder in filter(Path.is_dir, given):
        found = [v for j in judges for v in _below(folder, j)]
        if not found:
            names = ", ".join(j.name for j in judges)
            raise RunError(f"{folder}: no validation of {names}; expected a --home of `helmbench validate`")
        files += found
    entries = []
    for judge in judges:
        shipped = _below(SHIPPED, judge) if judge.offline else ()
        own: dict[tuple[str, str], Validation] = {}
        for validation in (*files, *_below(home, judge), *shipped):
            if validation.judge == judge.name:  # two models' names may map to one folder
                own.setdefault((validation.set, validation.rows), validation)
        entries += [entry(own[key], _other_question(own[key], judge, release)) for key in sorted(own)]
    return entries


def _below(home: Path, judge: JudgeIdentity) -> Iterator[Validation]:
    for path in sorted(place(home, judge.name, judge.offline).glob("*.json")):
        yield read(path, Validation, "validate")


def entry(v: Validation, reason: str | None = None) -> PeopleAgreement:
    """A validation as it appears in a scorecard; `reason`: why the judge's figures don't apply to this run."""
    given = v.model_dump(include=set(PeopleSet.model_fields))
    if reason:
        given |= {"decided": 0, "kappa": Estimate(value=None, reason=reason), "between": None}
    elif v.coarse:
        given["coarse"] = v.coarse.model_dump(include=set(PeopleFigures.model_fields))
    return PeopleAgreement(**given, passes=len(v.passes), reason=reason)


def _other_question(v: Validation, identity: JudgeIdentity, release: Release) -> str | None:
    """The reason why a validation used another question than this run, or None."""
    if identity.offline:
        return None  # its name identifies its version
    prompts = {
        "criterion": identity.prompt_hash,
        "rating": prompt_hash(release.prompts, RATE),
        "category": prompt_hash(release.prompts, CATEGORY),
        "refusal": None,
    }
    own = asked_by(v.kind, v.asked, release)
    changed = [name for name, key in v.asked.items() if own.get(name) != key]
    if v.prompt_hash != prompts[v.kind]:
        why = f"prompt {v.prompt_hash}, here {prompts[v.kind]}"
    elif v.dataset != release.manifest.version:
        why = f"dataset {v.dataset}, here {release.manifest.version}"
    elif changed:
        why = f"the text of {', '.join(changed[:3])}{' …' if len(changed) > 3 else ''} has changed"
    else:
        return None
    return f"measured with another question ({why}): run `helmbench validate` again"
