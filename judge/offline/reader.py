"""Adapts the offline judge, its labels and ratings, to the judge interface of `judge.verdicts`."""

from __future__ import annotations

from typing import Literal

from dataset_builder.release import Release
from dataset_builder.schema import AppropriatenessCheck
from judge.offline import judge as offline
from judge.replies.script import visible
from judge.replies.talks import DANGER_FROM, IN_PART, NO_DANGER, WHOLE
from judge.verdicts import Case, Given, JudgeIdentity


class OfflineReader:
    """A linear model is deterministic, so it has one repeat; it has no prompt."""

    identity = JudgeIdentity(offline.NAME, None)
    decides_as: Literal["offline", "judge"] = "offline"

    def asked_with(self, case: Case, release: Release) -> str | None:
        return None

    def read(self, case: Case, release: Release) -> Given:
        """Its approximate reading, unscored if unsure."""
        if isinstance(case.check, AppropriatenessCheck):
            return _given(offline.rate(case.check.protocol, case.asked, visible(case.text)))
        if case.check.turn == WHOLE:
            return _whole(case, release)
        return _given(offline.judge(case.read_check.criterion, case.asked, visible(case.text)))


def _given(reading: offline.Reading) -> Given:
    return Given(reading.answer, reading.evidence, None if reading.answer else "cannot_tell")


def _whole(case: Case, release: Release) -> Given:
    """It can't read a talk. Where the danger shows, it takes from the part."""
    if case.read_check.criterion != IN_PART:
        return Given(None, unscored="cannot_tell")
    shows = release.parts[case.row.id].shows
    return Given(f"{DANGER_FROM}{min(shows, len(case.reply.turns))}" if shows else NO_DANGER)
