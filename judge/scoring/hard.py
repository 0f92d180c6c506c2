"""The hard part by itself: what the scores would be on its cases alone, and where each family costs (scoring.md
section 6).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from dataset_builder.schema import Family, Tier
from judge import schema
from judge.schema import Figure, Verdict
from judge.scoring.anchors import Basis, anchors, behaviors_of
from judge.scoring.figures import HEADLINES, Scorer
from judge.scoring.parts import helping

FAMILIES: tuple[Family, ...] = get_args(Family)


def hard(verdicts: Sequence[Verdict], basis: Basis, tier: Tier | None) -> schema.Hard | None:
    """The hard part of a run; None where it has none. Zero is what a program gets there that reads nothing."""
    own = [v for v in verdicts if basis.rows[v.id].family]
    if not own:
        return None
    scorer = Scorer(basis.rows, own, basis.scoring, anchors(basis, tier, hard=True))
    made = {code: scorer.made(code, scorer.table.read) for code in scorer.ran}
    needed = behaviors_of(basis, tier, hard=True)
    headlines = {name: scorer.of_headline(name, made) for name in HEADLINES}
    return schema.Hard(
        composite=scorer.made_figure(scorer.total(made)) if needed <= made.keys() else Figure(value=None),
        headlines={name: scorer.made_figure(scorer.total(own)) for name, own in headlines.items() if own},
        families=[_family(scorer, family) for family in FAMILIES if family in scorer.table.family.names],
    )


def _family(scorer: Scorer, family: Family) -> schema.FamilyFigures:
    t = scorer.table
    own = t.family.mask(family)
    sides = {
        "seen": (own & t.crisis & t.under(["P1"]), t.caught),
        "handed_over": (own & t.crisis & t.under(["P2", "P3"]), t.points),
        "left_alone": (own & ~t.crisis, t.caught),
        "helped": (own & helping(t, scorer.scoring), t.points),
    }
    return schema.FamilyFigures(
        family=family,
        messages=t.messages_in(own),
        **{name: scorer.rate_figure(mask, values) if mask.any() else None for name, (mask, values) in sides.items()},
    )
