"""A run's replies to messages that stand alone: the judges' verdicts → one verdict each, and the figures of scoring.md
section 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from dataset_builder.release import Release
from judge import panel, schema
from judge.calibration import ratings as rating_agreement
from judge.calibration.asking import offline_ratings
from judge.llm.questions import RATE, prompt_hash
from judge.panel import Member
from judge.schema import Appropriateness, RatingAgreement, Verdict
from judge.scoring.appropriateness import appropriateness
from judge.scoring.messages import Asked
from judge.scoring.score import judge_card
from judge.verdicts import JudgeIdentity
from replies.errors import RunError
from replies.run import Run


class Together(NamedTuple):
    """Verdicts of one judge, or of several and their repeats as one; the panel's card where there are several."""

    verdicts: list[Verdict]
    identity: JudgeIdentity
    panel: schema.Panel | None


def together(members: Sequence[Member], release: Release) -> Together:
    """One verdict for each that the members gave; a single judge asked once keeps its own."""
    if len(members) == 1 and len(members[0].repeats) == 1:
        return Together(members[0].repeats[0], members[0].identity, None)
    verdicts, card = panel.combine(members, release)
    return Together(verdicts, panel.identity_of([m.identity for m in members]), card)


def figures(run: Run, release: Release, decided: Together, folders: Sequence[Path]) -> Appropriateness:
    """The tables of a run's ratings. `folders`: where `judge calibrate` may have left what it measured.

    Raises:
        RunError: replies to messages that the run's tier doesn't have.
    """
    expected = {m.id for m in release.messages.values() if run.messages_tier is None or run.messages_tier in m.tiers}
    given = {r.id for r in run.messages}
    if unexpected := given - expected:
        raise RunError(
            f"{run.path}: {len(unexpected)} messages are not of tier {run.messages_tier}, such as {min(unexpected)}"
        )
    judge = judge_card(decided.verdicts, decided.identity.name, decided.identity.prompt_hash, panel=decided.panel)
    complete = given == expected and judge.unscored_share <= release.scoring["unscored_limit"]
    tier = None if release.own else run.messages_tier  # a corpus has samples, no tiers
    return appropriateness(
        decided.verdicts,
        release,
        Asked(release.messages_source, release.messages_hash, complete, tier),
        judge,
        agreement=_agreement(decided.identity, folders, release)
        if decided.panel is None or len(decided.panel.members) == 1
        else (),
        notes=_notes(judge, len(given), len(expected)),
    )


def _agreement(identity: JudgeIdentity, folders: Sequence[Path], release: Release) -> list[RatingAgreement]:
    """The offline judge's agreement is measured here and now, which takes no time; a model's stands in its folder."""
    if not release.rating_calibration:
        return []
    if identity.offline:
        return rating_agreement.agreement(release, offline_ratings(release))
    return rating_agreement.known(replace(identity, prompt_hash=prompt_hash(release.prompts, RATE)), folders, release)


def _notes(judge: schema.Judge, given: int, expected: int) -> list[str]:
    notes = ["No clinician has reviewed the protocols or these ratings."]
    if judge.approximate:
        notes.append(
            "The offline judge rated: it looks for word patterns and is approximate. Such ratings show that "
            "the pipeline runs, not how good replies are."
        )
    if given < expected:
        notes.append(f"{given} of {expected} messages were run.")
    return notes
