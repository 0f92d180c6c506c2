"""Adapts the offline judge, its labels and ratings, to the judge interface of `judge.verdicts`."""

from __future__ import annotations

from typing import Literal

from dataset_builder.release import Release
from dataset_builder.schema import AppropriatenessCheck
from judge.offline import judge as offline
from judge.replies.script import visible
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
        return _given(offline.judge(case.read_check.criterion, case.asked, visible(case.text)))


def _given(reading: offline.Reading) -> Given:
    return Given(reading.answer, reading.evidence, None if reading.answer else "cannot_tell")
