"""Where a run's scores are, and verdicts without replies, for tests of figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from dataset_builder.release import Release
from dataset_builder.schema import Incident, Label, Row
from judge.schema import Verdict
from judge.scoring.anchors import Anchor
from judge.scoring.figures import Scorer
from judge.scoring.table import build


def scores(home: Path) -> Path:
    """The scores folder in the home of a run that one judge has scored."""
    (found,) = (home / "scores").iterdir()
    return found


def verdict(row: Row, index: int, label: Label | None, incident: Incident | None = None) -> Verdict:
    """A verdict on one check of a row; without a label it is unscored."""
    check = row.evaluation[index]
    return Verdict.model_construct(
        id=row.id, repeat=0, index=index, check=check.check, behavior=check.behavior, turn=-1, label=label,
        unscored=None if label else "error", incident=incident, decided_by="rule:test",
    )  # fmt: skip


def verdicts(rows: Mapping[str, Row], label: Label = "PASS") -> list[Verdict]:
    """The same label on every check of every row; a failure on a control is a false alarm."""
    incident: Incident | None = "over_escalation" if label == "FAIL" else None
    return [verdict(row, k, label, incident) for row in rows.values() for k in range(len(row.evaluation))]


def scorer(release: Release, given: Sequence[Verdict], anchors: Mapping[str, Anchor]) -> Scorer:
    """The figures of verdicts on a release's rows."""
    return Scorer(build(release.rows, given, release.scoring), release.scoring, anchors)
