"""The offline judge at the table: its readings of criteria and its ratings, as `judge.verdicts` asks for them."""

from __future__ import annotations

from typing import Literal

from dataset_builder.release import Release
from dataset_builder.schema import AppropriatenessCheck
from judge.offline import judge as offline
from judge.offline import rating
from judge.verdicts import Case, Given, JudgeIdentity
from replies.visible import visible

IDENTITY = JudgeIdentity(offline.NAME, None)


class OfflineReader:
    """Word patterns repeat themselves, so it has one repeat and no prompt."""

    identity = IDENTITY
    decides_as: Literal["offline", "judge"] = "offline"

    def asked_with(self, case: Case, release: Release) -> str | None:
        return None

    def read(self, case: Case, release: Release) -> Given:
        """Its approximate reading.

        Raises:
            ValueError: it has no reading for the criterion.
        """
        if isinstance(case.check, AppropriatenessCheck):
            protocol = case.check.protocol
            rated = rating.rate(protocol, case.asked, visible(case.text), case.row.country, release.helplines)
            return Given(rated.answer, rated.evidence)
        criterion = case.read_check.criterion
        if not offline.knows(criterion):
            raise ValueError(
                f"the offline judge has no reading for criterion '{criterion}' ({case.row.id}); use --judge openai"
            )
        reading = offline.judge(criterion, case.asked, visible(case.text))
        return Given(reading.answer, reading.evidence)
