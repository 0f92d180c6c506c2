"""docs/scoring.md is the specification that the code cites: its sections exist, its constants are scoring.yaml's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from judge.scoring import breakdown, curves
from judge.statistics.intervals import Clusters, wilson

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "scoring.md").read_text(encoding="utf-8")
SCORING: dict[str, Any] = yaml.safe_load((ROOT / "dataset_builder" / "content" / "scoring.yaml").read_text("utf-8"))
SECTIONS = {int(n): body for n, body in re.findall(r"(?ms)^## (\d)\. (.*?)(?=^## |\Z)", TEXT)}
FOLDERS = ("dataset_builder", "corpora", "replies", "judge", "lm_eval_tasks", "leaderboard", "scripts", "tests")
CITED = re.compile(r"scoring\.md(?:,| sections?) (\d)(?:(,| and| to) (\d)(?:(?:,| and) (\d))?)?(?![\d.]*\d)")


def cited(path: Path) -> set[int]:
    """The sections that a file names, over the ends of its lines."""
    found: set[int] = set()
    for first, word, second, third in CITED.findall(re.sub(r"\s+", " ", path.read_text(encoding="utf-8"))):
        found |= set(range(int(first), int(second) + 1)) if word == " to" else {int(first)}
        found |= {int(n) for n in (second, third) if n}
    return found


CITING = {
    str(p.relative_to(ROOT)): sections
    for folder in FOLDERS
    for p in sorted((ROOT / folder).rglob("*"))
    if p.suffix in (".py", ".yaml") and p.name != Path(__file__).name and (sections := cited(p))
}


def test_the_code_cites_sections() -> None:
    """Citations over a line's end and of several sections are seen."""
    assert CITING["judge/scoring/figures.py"] == {2, 3, 4, 5}
    assert CITING["judge/scoring/safety.py"] == {3, 4, 6}
    assert CITING["dataset_builder/content/scoring.yaml"] == {2, 5, 7}


@pytest.mark.parametrize("path", CITING)
def test_every_section_that_is_cited_exists(path: str) -> None:
    """Whoever follows a docstring's citation finds the section."""
    assert CITING[path] <= SECTIONS.keys()


def test_weights_are_those_of_scoring_yaml() -> None:
    """Every behavior's weight in order, and each pillar's sum; the points, bands and the two discounts."""
    for pillar in ("P1", "P2", "P3", "P4"):
        own = [w for b, w in sorted(SCORING["composite"].items()) if b.startswith(pillar)]
        assert f"| {pillar} | {', '.join(map(str, own))} | {sum(own)} |" in SECTIONS[4]
    assert "Weights add up to 100" in SECTIONS[4]
    assert sum(SCORING["composite"].values()) == 100
    low, middle, high = ((b["weight"], b["from"], b["to"]) for b in SCORING["bands"])
    stated = f"{low[0]} for a severity of {low[1]} to {low[2]}, {middle[0]} for {middle[1]} to {middle[2]}"
    assert f"{stated} and {high[0]} for {high[1]} to {high[2]}" in SECTIONS[2]
    assert f"(1 − difficulty / {SCORING['difficulty_discount']})" in SECTIONS[2]
    assert "half of that for an `ambiguous` message" in SECTIONS[2]
    assert SCORING["ambiguous_weight"] == 0.5
    assert "worth 1, 0.5 and 0 points" in SECTIONS[1]
    assert SCORING["points"] == {"PASS": 1.0, "PARTIAL": 0.5, "FAIL": 0.0}


def test_the_anchored_share_is_that_of_scoring_yaml() -> None:
    """How much of the composite has no anchor at the best constant."""
    other = sum(w for b, w in SCORING["composite"].items() if not b.startswith("P1"))
    assert f"{other} of 100 points of the composite, are plain means" in re.sub(r"\s+", " ", SECTIONS[3])


def test_floors_are_those_of_scoring_yaml() -> None:
    """Each floor's line names its behaviors and its threshold."""
    lines = [line for line in SECTIONS[4].splitlines() if line.startswith("| ")]
    for floor in SCORING["floors"]:
        behaviors = [] if floor["kind"] == "harm" else floor["behaviors"]  # harm is counted over all pillars
        word = "most" if floor["kind"] == "harm" else "least"
        own = [line for line in lines if line.endswith(f"at {word} {floor['threshold']:.2f} |")]
        assert [line for line in own if all(b in line for b in behaviors)], floor["name"]
        if floor["kind"] == "severe_sensitivity":
            assert any(f"severity {SCORING['severe_from']} and above" in line for line in own)
    assert f"and {SCORING['floor_messages']} or more messages" in SECTIONS[4]


def test_thresholds_are_those_of_scoring_yaml() -> None:
    """The unscored limit, the pooled messages, the confidence, and what a judge must reach."""
    unscored = f"{SCORING['unscored_limit']:.0%}".replace("%", " %")
    assert f"Above {unscored} unscored a scorecard is incomplete" in SECTIONS[1]
    pooled = SCORING["pooled_messages"]
    assert f"(k·D_own + {pooled}·D_pool) / (k + {pooled})" in SECTIONS[5]
    assert f"with t of df + {pooled}" in SECTIONS[5]
    assert f"counts as {pooled} more messages" in SECTIONS[5]
    confidence = f"{SCORING['confidence']:.0%}".replace("%", " %")
    assert f"Intervals are two-sided at {confidence}" in SECTIONS[5]
    assert f"one-sided {confidence} limits" in SECTIONS[4]
    stated = (
        f"at least {SCORING['judge_kappa']}, no criterion's *upper* limit is below {SCORING['judge_criterion_kappa']}"
    )
    assert stated in SECTIONS[7]
    assert f"at most {unscored} of its labels are unscored" in re.sub(r"\s+", " ", SECTIONS[7])


def test_constants_of_the_code_are_its_own() -> None:
    """What is no weight or threshold stands in the code, and here."""
    assert f"Groups under {breakdown.GREYED_BELOW} messages are greyed" in SECTIONS[6]
    assert f"Fitted from {curves.PUBLISHED_FROM} messages and {curves.FITTED_RUNGS} severities on" in SECTIONS[6]
    assert f"(SD {curves.PRIOR_SD} on" in SECTIONS[6]
    assert f"with {curves.RUNG_MESSAGES} or more messages on either rung" in SECTIONS[6]
    assert "Under two messages there is no interval." in SECTIONS[5]
    one = Clusters(*(np.ones(1) for _ in range(5)))
    assert wilson(one, None, SCORING["pooled_messages"]) == (1, None, None)
