"""Judges by name: the offline judge, or language models whose answers stand in a run's folder; and what is known of
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dataset_builder.prompts import PLAIN, RATE
from dataset_builder.release import Release
from helmbench_common.hashing import digest
from judge.agreement import known as agreement_of
from judge.agreement.answers import offline_labels
from judge.agreement.calibration import rating_agreement
from judge.llm import batch
from judge.llm.asking import Stored
from judge.llm.questions import prompt_hash
from judge.llm.reader import llm, readers
from judge.offline.reader import OfflineReader
from judge.references import references
from judge.replies.schema import RunError
from judge.schema import RatingAgreement
from judge.score import Judge, Known
from judge.verdicts import JudgeIdentity

LONGEST = 200  # bytes of a folder's name; disks take 255


@dataclass(frozen=True)
class Given:
    """Files that were measured elsewhere, before those in the run's folder. `calibrations`: as `helmbench calibrate`
    wrote them; `validations`: as `helmbench validate` did, or its --home.
    """

    calibrations: Sequence[Path] = ()
    validations: Sequence[Path] = ()


NONE_GIVEN = Given()


@dataclass(frozen=True)
class Bench:
    """The judges of a run, and what each of them has not been asked yet."""

    judges: tuple[Judge, ...]
    stored: tuple[Stored, ...]

    @property
    def identities(self) -> list[JudgeIdentity]:
        return [judge[0].identity for judge in self.judges]


def identities(names: Sequence[str], release: Release, wording: str = PLAIN) -> list[JudgeIdentity]:
    """Judges by their names, each once, in the order of its first naming; nobody is looked for."""
    return [OfflineReader().identity if n == "offline" else llm(release, n, wording) for n in dict.fromkeys(names)]


def scores_name(judges: Sequence[JudgeIdentity], repeats: int = 1) -> str:
    """What the folder of these judges' scores is called: their names, and how language models are asked where that is
    another way than the usual: `a+b~judge-reason~x3`.
    """
    asked = [j for j in judges if not j.offline]
    ways = [*{j.wording for j in asked} - {PLAIN}, *([f"x{repeats}"] if asked and repeats > 1 else [])]
    name = "~".join(["+".join(batch.safe(j.name) for j in judges), *ways])
    return name if len(name.encode()) <= LONGEST else f"{name[: LONGEST // 4]}-{digest(name)[:12]}"


def bench(names: Sequence[str], home: Path, release: Release, wording: str = PLAIN, repeats: int = 1) -> Bench:
    """Each judge once, in the order of its first naming. `home`: the folder of the run, where models' answers stand.

    Raises:
        RunError: nothing is known of a judge, or its files can't be read.
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
                f"{where}: no such folder; --judge is offline, openai with --base-url and --model, or a model that "
                f"`helmbench run` or `helmbench requests` was given, not '{name}'"
            )
        stored.append(Stored(where))
        judges.append(readers(llm(release, name, wording), repeats, stored[-1]))
    return Bench(tuple(judges), tuple(stored))


def known(judges: Sequence[JudgeIdentity], home: Path, given: Given, release: Release, rated: bool) -> Known:
    """What stands beside a run of these judges. `home`: its folder; `rated`: whether it has replies to be rated.

    Raises:
        RunError: a file that can't be read, or is of a judge that isn't asked.
    """
    agreement = agreement_of.stored(judges, home, given.calibrations, release)
    ratings = _ratings(judges, home, given.calibrations, release) if rated else []
    return Known(
        agreement, ratings, references(release), agreement_of.with_people(judges, home, given.validations, release)
    )


def _ratings(
    judges: Sequence[JudgeIdentity], home: Path, given: Sequence[Path], release: Release
) -> list[RatingAgreement]:
    """The offline judge's agreement is measured here and now, which takes no time; a model's stands in its folder."""
    if not release.rating_calibration or len(judges) > 1:
        return []
    (judge,) = judges
    if judge.offline:
        return rating_agreement(release, offline_labels(release, "rating", release.rating_calibration))
    folders = [batch.folder(home, judge.name), *(path.parent for path in given)]
    return agreement_of.of_ratings(replace(judge, prompt_hash=prompt_hash(release.prompts, RATE)), folders, release)
