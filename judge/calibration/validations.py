"""How far judges agree with people's labels: the shape of what `helmbench validate` measured, and what of it stands
beside a run; of the offline judge the shipped figures.

Nothing is carried over from another judge. Of another question, or the same in another version of the dataset, only
that it was asked is said, and no figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from dataset_builder.prompts import RATE
from dataset_builder.release import Release
from dataset_builder.schema import Strict
from judge.calibration.known import SHIPPED, read_measured
from judge.llm import batch
from judge.llm.category_question import offered
from judge.llm.questions import prompt_hash
from judge.replies.errors import RunError
from judge.schema import JudgeName, LabelKind, LabelledRows, PeopleAgreement, PeopleCoarse, SetName
from judge.statistics.estimate import Estimate
from judge.verdicts import JudgeIdentity

FOLDER = "validation"  # in a judge's folder: one file for each set and half of it


class Figures(Strict):
    """Agreement on some items. `decided`: those that the judge gave a label. `kappa`: the judge with the people's
    common label; `raters`: with each of them; `people`: among themselves; `published`: other judges with the common
    label.
    """

    items: int
    decided: int
    kappa: Estimate
    raters: dict[str, Estimate]
    people: Estimate
    published: dict[str, Estimate]

    @property
    def unscored(self) -> float:
        """The share that the judge left unscored, 0 to 1."""
        return 1 - self.decided / self.items if self.items else 0.0


class ClassFigures(Strict):
    """One label. `people`, `judge`: how often each gave it, on items that have both. `recall`: of the items that people
    gave it, the share that the judge did; `precision`: the reverse.
    """

    people: int
    judge: int
    recall: Estimate
    precision: Estimate


class Table(Strict):
    """Rows the people's common label, columns the judge's, in the order of `labels`; `unscored` by the people's."""

    labels: list[str]
    table: list[list[int]]
    unscored: list[int]


class PassFigures(Strict):
    """One independent pass of the judge: what it decided, and its agreement with the people's common label."""

    decided: int
    kappa: Estimate


class Validation(Figures):
    """One judge against a set of people's labels. It holds no text.

    `asked`: hashes of the criteria, protocols or taxonomy that it was asked by, by name. `statistic`, `reference`,
    `among`: what `kappa` is, with which common label, and what `people` is. Every figure is of the judge's first pass;
    `passes` has each, and `between` is κ between them, the mean over pairs; null with one. `coarse`: the same on fewer
    labels, as crisis or not. `groups`: by category, dimension or model. `answers`: how often the judge gave each label
    of its own. `widest`: the items of the widest disagreements, by id.
    """

    format: Literal["helmbench-validation-1"] = "helmbench-validation-1"
    set: SetName
    rows: LabelledRows
    kind: LabelKind
    judge: JudgeName
    prompt_hash: str | None = Field(max_length=64)
    dataset: str = Field(max_length=64)
    asked: dict[str, str]
    statistic: Literal["Cohen's κ, quadratic", "Cohen's κ"]
    reference: Literal["mean", "settled", "majority"]
    among: Literal["Cohen's κ, mean over pairs", "Fleiss' κ"]
    per_class: dict[str, ClassFigures]
    confusion: Table
    coarse: Figures | None
    groups: dict[str, Figures]
    answers: dict[str, int]
    widest: list[str]
    passes: list[PassFigures] = Field(min_length=1)
    between: Estimate | None
    notes: list[str]


def place(home: Path, judge: str, offline: bool) -> Path:
    """Where a judge's validations stand below `home`.

    Raises:
        RunError: as `judge.llm.batch.own_place`.
    """
    return batch.own_place(home, (home / "offline" if offline else batch.folder(home, judge)) / FOLDER)


def read(path: Path) -> Validation:
    """A file that `helmbench validate` wrote.

    Raises:
        RunError: it is none.
    """
    return read_measured(path, Validation, "validate")


def carried(
    judges: Sequence[JudgeIdentity], home: Path, given: Sequence[Path], release: Release
) -> list[PeopleAgreement]:
    """What is known of each judge, by set; a judge without an entry is not validated.

    `given`: files, or folders that `helmbench validate` had as its --home; before what stands in `home`, the run's
    folder, and before the offline judge's shipped figures. The first of one set and half counts.

    Raises:
        RunError: a file that can't be read, or is of a judge that isn't asked; a folder without any of these judges.
    """
    named = {path: read(path) for path in given if not path.is_dir()}
    files, known = list(named.values()), [j.name for j in judges]
    for path, validation in named.items():
        if validation.judge not in known:
            raise RunError(
                f"{path}: validates '{validation.judge}', which doesn't judge here; expected one of {', '.join(known)}"
            )
    for folder in (p for p in given if p.is_dir()):
        found = [v for j in judges for v in _below(folder, j)]
        if not found:
            raise RunError(
                f"{folder}: holds no validation of {', '.join(known)}; expected a home of `helmbench validate`"
            )
        files += found
    return [own for j in judges for own in _of_judge(j, [*files, *_below(home, j), *_shipped(j)], release)]


def _below(home: Path, judge: JudgeIdentity) -> Iterator[Validation]:
    for path in sorted(place(home, judge.name, judge.offline).glob("*.json")):
        yield read(path)


def _shipped(judge: JudgeIdentity) -> Iterator[Validation]:
    return _below(SHIPPED, judge) if judge.offline else iter(())


def _of_judge(identity: JudgeIdentity, found: Sequence[Validation], release: Release) -> list[PeopleAgreement]:
    # Two models' names may come to one folder, and an offline judge that is no more has left its figures in another's.
    own: dict[tuple[str, str], Validation] = {}
    for validation in found:
        if validation.judge == identity.name:
            own.setdefault((validation.set, validation.rows), validation)
    return [entry(own[key], _another(own[key], identity, release)) for key in sorted(own)]


def entry(v: Validation, reason: str | None = None) -> PeopleAgreement:
    """A validation as a scorecard holds it; `reason`: why the judge's figures say nothing of this run."""
    none = Estimate(value=None, reason=reason)
    coarse = v.coarse and PeopleCoarse(
        items=v.coarse.items, decided=v.coarse.decided, kappa=v.coarse.kappa, people=v.coarse.people
    )
    return PeopleAgreement(
        judge=v.judge,
        set=v.set,
        rows=v.rows,
        kind=v.kind,
        prompt_hash=v.prompt_hash,
        dataset=v.dataset,
        items=v.items,
        decided=0 if reason else v.decided,
        statistic=v.statistic,
        kappa=none if reason else v.kappa,
        people=v.people,
        coarse=None if reason else coarse,
        passes=len(v.passes),
        between=None if reason else v.between,
        reason=reason,
    )


def asked_by(kind: LabelKind, names: Iterable[str], release: Release) -> dict[str, str]:
    """What the question of a set rests on beside its prompt: criteria or protocols `names`, or the taxonomy, each with
    its hash; what the release lacks is left out. Nothing for a rule.
    """
    if kind == "category":
        return {"taxonomy": offered(release).taxonomy_hash[:16]}
    known: dict[str, str] = {}
    if kind == "criterion":
        known = {name: row.criterion_hash for name, row in release.criteria.items()}
    elif kind == "rating":
        known = {str(row.category): row.protocol_hash for row in release.protocols.values()}
    return {name: known[name] for name in sorted(set(names)) if name in known}


def _another(v: Validation, identity: JudgeIdentity, release: Release) -> str | None:
    """Why a validation is of another question than this run's; None where it isn't."""
    if identity.offline:
        return None  # nothing was asked: what it reads by goes with its name
    prompts = {
        "criterion": identity.prompt_hash,
        "rating": prompt_hash(release.prompts, RATE),
        "category": offered(release).prompt_hash,
        "refusal": None,
    }
    own = asked_by(v.kind, v.asked, release)
    changed = [name for name, key in v.asked.items() if own.get(name) != key]
    if v.prompt_hash != prompts[v.kind]:
        why = f"prompt {v.prompt_hash}, here {prompts[v.kind]}"
    elif v.dataset != release.manifest.version:
        why = f"dataset {v.dataset}, here {release.manifest.version}"
    elif changed:
        why = f"{', '.join(changed[:3])}{' …' if len(changed) > 3 else ''} reads otherwise here"
    else:
        return None
    return f"of another question ({why}): run `helmbench validate` again"
