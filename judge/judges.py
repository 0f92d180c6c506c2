"""Judges by name: the offline judge, or language models whose answers are in a run's folder; their agreement figures;
and the scores of the trivial policies that every report shows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from dataset_builder.prompts import PLAIN, RATE
from dataset_builder.release import Release
from dataset_builder.schema import Tier
from helmbench_common.hashing import digest
from judge.agreement import known as agreement_of
from judge.agreement.answers import offline_labels
from judge.agreement.calibration import agreement_over
from judge.llm import batch
from judge.llm.asking import Stored
from judge.llm.questions import prompt_hash
from judge.llm.reader import llm, readers
from judge.offline.reader import OfflineReader
from judge.replies.schema import RunError
from judge.schema import CriterionAgreement, Reference
from judge.score import Judge, Known
from judge.verdicts import JudgeIdentity

REFERENCES = Path(__file__).with_name("references.json")  # written by `make generated`; not part of any hash
LONGEST = 200  # bytes of a folder name; file systems allow 255


@dataclass(frozen=True)
class Given:
    """Files measured elsewhere; they take precedence over those in the run's folder. `calibrations`: written by
    `helmbench calibrate`; `validations`: written by `helmbench validate`, or its --home.
    """

    calibrations: Sequence[Path] = ()
    validations: Sequence[Path] = ()


NONE_GIVEN = Given()


@dataclass(frozen=True)
class Bench:
    """The judges of a run, and the questions that each has yet to be asked."""

    judges: tuple[Judge, ...]
    stored: tuple[Stored, ...]

    @property
    def identities(self) -> list[JudgeIdentity]:
        return [judge[0].identity for judge in self.judges]


def identities(names: Sequence[str], release: Release, wording: str = PLAIN) -> list[JudgeIdentity]:
    """Judges by name, each once, in order; reads no files."""
    return [OfflineReader().identity if n == "offline" else llm(release, n, wording) for n in dict.fromkeys(names)]


def scores_name(judges: Sequence[JudgeIdentity], repeats: int = 1) -> str:
    """The folder name for these judges' scores: their names, plus how language models are asked if that isn't the
    default: `a+b~judge-reason~x3`.
    """
    asked = [j for j in judges if not j.offline]
    ways = [*{j.wording for j in asked} - {PLAIN}, *([f"x{repeats}"] if asked and repeats > 1 else [])]
    name = "~".join(["+".join(batch.safe(j.name) for j in judges), *ways])
    return name if len(name.encode()) <= LONGEST else f"{name[: LONGEST // 4]}-{digest(name)[:12]}"


def bench(names: Sequence[str], home: Path, release: Release, wording: str = PLAIN, repeats: int = 1) -> Bench:
    """Each judge once, in order. `home`: the run's folder, which contains the models' answers.

    Raises:
        RunError: a judge without a folder of answers, or files that can't be read.
    """
    judges: list[Judge] = []
    stored: list[Stored] = []
    for name in dict.fromkeys(names):
        if name == "offline":
            judges.append((OfflineReader(),))
            continue
        where = batch.folder(home, name)
        if not where.is_dir():
            raise RunError(
                f"{where}: no such folder, so judge '{name}' has no answers; get them with `helmbench judge` or "
                "`helmbench requests`, or use --judge offline, or --judge openai with --base-url and --model"
            )
        stored.append(Stored(where))
        judges.append(readers(llm(release, name, wording), repeats, stored[-1]))
    return Bench(tuple(judges), tuple(stored))


def known(judges: Sequence[JudgeIdentity], home: Path, given: Given, release: Release, rated: bool) -> Known:
    """The agreement figures of these judges on this release. `home`: the run's folder; `rated`: whether replies are
    rated.

    Raises:
        RunError: a file that can't be read, or is of another judge.
    """
    agreement = agreement_of.stored(judges, home, given.calibrations, release)
    ratings = _ratings(judges, home, given.calibrations, release) if rated else []
    return Known(
        agreement, ratings, references(release), agreement_of.with_people(judges, home, given.validations, release)
    )


def _ratings(
    judges: Sequence[JudgeIdentity], home: Path, given: Sequence[Path], release: Release
) -> list[CriterionAgreement]:
    """Measures the offline judge's agreement on the spot, which is fast; reads a model's from its folder."""
    if not release.rating_calibration or len(judges) > 1:
        return []
    (judge,) = judges
    if judge.offline:
        labels = offline_labels(release, "rating", release.rating_calibration)
        overall, by_category = agreement_over(release, labels, "rating")
        return [overall, *by_category]
    folders = [batch.folder(home, judge.name), *(path.parent for path in given)]
    return agreement_of.of_ratings(replace(judge, prompt_hash=prompt_hash(release.prompts, RATE)), folders, release)


def references(release: Release) -> dict[Tier, list[Reference]]:
    """The trivial policies' scores on this release by tier; empty if references.json doesn't cover this build."""
    known = json.loads(REFERENCES.read_text(encoding="utf-8")) if REFERENCES.is_file() else {}
    own = known.get(release.manifest.score_hash, {})
    return {tier: [Reference.model_validate(row) for row in own[tier]] for tier in get_args(Tier) if tier in own}
