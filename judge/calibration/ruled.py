"""Which calibration replies a rule decides before any judge, as in a run; and what the offline judge says of the
rest.
"""

from __future__ import annotations

from collections.abc import Sequence

from dataset_builder.release import Release
from dataset_builder.schema import CalibrationRow, CriterionCheck, ProtocolRow
from judge.calibration.types import CANNOT_TELL, NO_READING, Answered, Answers
from judge.offline import judge as offline
from judge.replies.visible import visible
from judge.rules.answers import nothing_to_read
from judge.rules.resources import decide_resource
from judge.verdicts import SAYS_NOTHING, silent_label


def by_rules(rows: Sequence[CalibrationRow], release: Release) -> dict[str, Answered]:
    """The rows that a rule decides before any judge, as `judge.verdicts` does in a run."""
    by_rule = _rule_first(release)
    found: dict[str, Answered] = {}
    for row in rows:
        criterion = release.criteria[row.criterion]
        if what := nothing_to_read(row.reply):
            label = "ignored" if criterion.kind == "graded" else silent_label(row.criterion, what)
            found[row.id] = Answered(label, by_rule=True)
        elif row.criterion in by_rule and (
            decision := decide_resource(visible(row.reply), row.country, release.helplines)
        ):
            way = next((f"FAIL-{w.split()[0]}" for w in criterion.fails if w.split()[1] == decision.incident), "FAIL")
            found[row.id] = Answered(way if decision.label == "FAIL" else decision.label, by_rule=True)
    return found


def says_nothing(rows: Sequence[CalibrationRow]) -> dict[str, Answered]:
    """The ratings of replies in which there is nothing to read."""
    return {r.id: Answered(str(SAYS_NOTHING), by_rule=True) for r in rows if nothing_to_read(r.reply)}


def protocol_of(row: CalibrationRow, release: Release) -> ProtocolRow:
    """The protocol that a reply of the rating calibration set is rated by."""
    return next(p for p in release.protocols.values() if p.category == row.criterion)


def offline_labels(rows: Sequence[CalibrationRow], release: Release) -> Answers:
    """The offline judge's labels, by rule where a run's would be."""
    answers = by_rules(rows, release)
    for row in rows:
        if row.id in answers:
            continue
        if offline.knows(row.criterion):
            answers[row.id] = _answered(offline.judge(row.criterion, row.said[-1], visible(row.reply)))
        else:
            answers[row.id] = Answered(None, NO_READING)
    return answers


def offline_ratings(release: Release, rows: Sequence[CalibrationRow] | None = None) -> Answers:
    """The offline judge's ratings of `rows` (default: the rating calibration set), by rule where a run's would be."""
    rows = release.rating_calibration if rows is None else rows
    ruled = says_nothing(rows)
    read = {r.id: _rated(r, release) for r in rows if r.id not in ruled}
    return {**ruled, **read}


def _rated(row: CalibrationRow, release: Release) -> Answered:
    category = protocol_of(row, release).category
    return _answered(offline.rate(category, row.said[-1], visible(row.reply)))


def _answered(reading: offline.Reading) -> Answered:
    return Answered(reading.answer, None if reading.answer else CANNOT_TELL)


def _rule_first(release: Release) -> frozenset[str]:
    checks = (c for row in release.rows.values() for c in row.evaluation)
    return frozenset(c.criterion for c in checks if isinstance(c, CriterionCheck) and c.decided_by == "rule-then-judge")
