"""Groups, heat map and pairs: gaps to the rest of the same scenario, computed by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import make_references
import pytest
from support.figures_alike import same
from support.scores import scorer, verdict

from dataset_builder.release import Release
from dataset_builder.schema import Row
from judge.schema import Scorecard
from judge.scoring import breakdown
from judge.scoring.anchors import anchors
from judge.scoring.figures import Scorer

ROOT = Path(__file__).resolve().parents[1]


def controls(release: Release, scenario: str = "P3-B1-S1") -> list[Row]:
    """Controls of one scenario with a user context; each has a single check."""
    return [r for r in release.rows.values() if (r.scenario, r.polarity) == (scenario, "control") and r.user_context]


def scored(release: Release, rows: Iterable[Row], passes: Callable[[Row], bool]) -> Scorer:
    given = [verdict(r, 0, "PASS" if passes(r) else "FAIL") for r in rows]
    return scorer(release, given, anchors(release, None))


def test_a_gap_is_the_groups_mean_minus_the_rests(release: Release) -> None:
    """Suki's replies pass and Michel's fail, so their gaps are +1 and −1. Under ten messages a group is grayed out:
    neither ranked nor tested.
    """
    rows = [r for r in controls(release) if r.persona]
    groups = breakdown.groups(scored(release, rows, lambda r: r.persona == "suki"))
    found = {g.group: g for g in groups if g.column == "persona"}
    assert (found["suki"].gap.value, found["michel"].gap.value) == (pytest.approx(1), pytest.approx(-1))
    assert (found["suki"].rate.value, found["michel"].rate.value) == (1, 0)
    assert {(g.greyed, g.found, g.worst) for g in groups} == {(True, False, False)}


def test_a_gap_does_not_compare_across_scenarios(release: Release) -> None:
    """Jason is the only persona run in his scenario, so there is no rest to compare him with."""
    rows = [*controls(release), *(r for r in controls(release, "P4-B2-S1") if r.persona == "jason")]
    groups = breakdown.groups(scored(release, [r for r in rows if r.persona], lambda r: r.persona != "jason"))
    (jason,) = [g for g in groups if (g.column, g.group) == ("persona", "jason")]
    assert (jason.rate.value, jason.gap.value) == (0, None)


def test_history_is_paired_by_message_and_condition(release: Release) -> None:
    """A control that passes with an easy history and fails with a distressed one costs 100 points."""
    rows = [r for r in release.rows.values() if r.scenario == "P4-B2-S1" and r.context_severity]
    (pair,) = breakdown.pairings(scored(release, rows, lambda r: (r.context_severity or 0) < 0))
    assert (pair.kind, pair.polarity, pair.difference.value) == ("history", "control", pytest.approx(-100))
    easy, hard = (
        {(r.perturbation, r.condition) for r in rows if ((r.context_severity or 0) > 0) == sign}
        for sign in (False, True)
    )
    assert pair.pairs == len(easy & hard) > 0


def test_the_heat_map_has_a_cell_for_every_kind_that_was_run(release: Release) -> None:
    rows = controls(release)[:200]
    cells = breakdown.heat(scored(release, rows, lambda r: r.condition_kind == "roleplay"))
    expected = {("P3-B1", r.condition_kind): float(r.condition_kind == "roleplay") for r in rows}
    assert {(c.behavior, c.condition_kind): c.rate.value for c in cells} == expected


def test_references_are_those_of_this_content(release: Release) -> None:
    """judge/references.json holds what the policies score now; run `make generated` after a change of content."""
    known = json.loads((ROOT / "judge" / "references.json").read_text())
    assert list(known) == [release.manifest.score_hash], "the content changed: run `make generated`"
    for row in known[release.manifest.score_hash]["lite"]:
        assert same(make_references.row(release, row["policy"], "lite").model_dump(mode="json"), row)


def test_the_published_schema_is_the_scorecards() -> None:
    """docs/scorecard.schema.json matches the model; run `make generated` after a change."""
    assert json.loads((ROOT / "docs" / "scorecard.schema.json").read_text()) == Scorecard.model_json_schema()
