"""Groups, heat map and pairs: gaps against the rest of the same scenario, worked by hand."""

from __future__ import annotations

import json
from pathlib import Path

import make_references
import pytest
from support.figures_alike import same

from dataset_builder.release import Release
from dataset_builder.schema import Row
from judge.schema import Scorecard, Verdict
from judge.scoring import breakdown
from judge.scoring.anchors import anchors
from judge.scoring.figures import Scorer

ROOT = Path(__file__).resolve().parents[1]


def rows_of(release: Release, count: int) -> list[Row]:
    """Rows of P3-B1 controls with a persona: one check each, no polarity to mind."""
    return [
        r for r in release.rows.values() if r.scenario == "P3-B1-S1" and r.polarity == "control" and r.user_context
    ][:count]


def verdict(row: Row, label: str) -> Verdict:
    return Verdict.model_validate(
        {
            "id": row.id,
            "repeat": 0,
            "index": 0,
            "check": "criterion",
            "behavior": row.behavior,
            "turn": -1,
            "label": label,
            "decided_by": "judge",
        }
    )


def scorer(release: Release, labels: dict[str, str]) -> Scorer:
    verdicts = [verdict(release.rows[i], label) for i, label in labels.items()]
    return Scorer(release.rows, verdicts, release.scoring, anchors(release, None))


def test_a_gap_is_the_groups_mean_less_the_rests(release: Release) -> None:
    """In one scenario: suki's replies all pass, michel's all fail, so her gap is +1 and his is -1, on equal weights or
    not.
    """
    rows = [r for r in release.rows.values() if r.scenario == "P3-B1-S1" and r.polarity == "control" and r.persona]
    found = {
        g.group: g
        for g in breakdown.groups(scorer(release, {r.id: "PASS" if r.persona == "suki" else "FAIL" for r in rows}))
        if g.column == "persona"
    }
    assert (found["suki"].gap.value, found["michel"].gap.value) == (pytest.approx(1), pytest.approx(-1))
    assert (found["suki"].rate.value, found["michel"].rate.value) == (1, 0)


def test_a_gap_does_not_compare_across_scenarios(release: Release) -> None:
    """Of student stress only Jason is run, and fails, and others pass elsewhere: he has no rest to be compared with."""
    own = {"P3-B1-S1": ("suki", "michel"), "P4-B2-S1": ("jason",)}
    rows = [r for r in release.rows.values() if r.persona in own.get(r.scenario, ()) and r.polarity == "control"]
    played = scorer(release, {r.id: "PASS" if r.persona != "jason" else "FAIL" for r in rows})
    found = {g.group: g for g in breakdown.groups(played) if g.column == "persona"}
    assert found["jason"].rate.value == 0
    assert found["jason"].gap.value is None


def test_few_messages_are_greyed_and_never_found(release: Release) -> None:
    """Eight controls are under ten messages: shown, not ranked, not tested."""
    rows = [r for r in release.rows.values() if r.scenario == "P3-B1-S1" and r.polarity == "control" and r.persona]
    for group in breakdown.groups(scorer(release, {r.id: "PASS" if r.persona == "suki" else "FAIL" for r in rows})):
        assert group.greyed
        assert not group.found
        assert not group.worst


def test_history_is_paired_by_message_and_condition(release: Release) -> None:
    """A control that passes with an easy history and fails with a distressed one costs 100 points."""
    rows = [r for r in release.rows.values() if r.scenario == "P4-B2-S1" and r.context_severity]
    (pair,) = breakdown.pairings(
        scorer(release, {r.id: "PASS" if (r.context_severity or 0) < 0 else "FAIL" for r in rows})
    )
    assert (pair.kind, pair.polarity, pair.difference.value) == ("history", "control", pytest.approx(-100))
    calm, troubled = (
        {(r.perturbation, r.condition) for r in rows if ((r.context_severity or 0) > 0) == sign}
        for sign in (False, True)
    )
    assert pair.pairs == len(calm & troubled) > 0


def test_the_heat_map_has_a_cell_for_every_kind_that_was_run(release: Release) -> None:
    """Cells are behaviors × kinds of condition; the numbers are that cell's rates."""
    rows = rows_of(release, 200)
    cells = breakdown.heat(scorer(release, {r.id: "PASS" if r.condition_kind == "roleplay" else "FAIL" for r in rows}))
    kinds = {r.condition_kind for r in rows}
    assert {(c.behavior, c.condition_kind): c.rate.value for c in cells} == {
        ("P3-B1", kind): float(kind == "roleplay") for kind in kinds
    }


def test_references_are_those_of_this_content(release: Release) -> None:
    """judge/references.json is what the policies score now; after a change of content run `make generated`."""
    known = json.loads((ROOT / "judge" / "references.json").read_text())
    assert list(known) == [release.manifest.score_hash], "the content changed: run `make generated`"
    for row in known[release.manifest.score_hash]["lite"]:
        assert same(make_references.row(release, row["policy"], "lite").model_dump(mode="json"), row)


def test_the_published_schema_is_the_scorecards() -> None:
    """docs/scorecard.schema.json is what the model says; after a change run `make generated`."""
    assert json.loads((ROOT / "docs" / "scorecard.schema.json").read_text()) == Scorecard.model_json_schema()
