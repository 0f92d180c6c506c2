"""The hard part by itself: what the scores would be on its cases alone, and where each family costs (scoring.md
section 6).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from dataset_builder.schema import Family, Tier
from judge import schema
from judge.schema import Figure, Verdict
from judge.scoring.anchors import Basis, anchors
from judge.scoring.figures import HEADLINES, Scorer
from judge.scoring.parts import helping
from judge.scoring.table import Mask

FAMILIES: tuple[Family, ...] = get_args(Family)


def hard(verdicts: Sequence[Verdict], basis: Basis, tier: Tier | None) -> schema.Hard | None:
    """The hard part of a run; None where it has none. Zero is what a program gets there that reads nothing."""
    own = [v for v in verdicts if basis.rows[v.id].family]
    if not own:
        return None
    scorer = Scorer(basis.rows, own, basis.scoring, anchors(basis, tier, hard=True))
    made = {code: scorer.made(code, scorer.table.read) for code in scorer.ran}
    needed = {
        c.behavior for r in basis.rows.values() if r.family and (not tier or tier in r.tiers) for c in r.evaluation
    }
    headlines = {name: scorer.of_headline(name, made) for name in HEADLINES}
    return schema.Hard(
        composite=scorer.made_figure(scorer.total(made)) if needed <= made.keys() else Figure(value=None),
        headlines={name: scorer.made_figure(scorer.total(own)) for name, own in headlines.items() if own},
        families=[_family(scorer, family) for family in FAMILIES if _mask(scorer, family).any()],
    )


def _mask(scorer: Scorer, family: Family) -> Mask:
    return scorer.table.family.mask(family)


def _family(scorer: Scorer, family: Family) -> schema.FamilyFigures:
    t = scorer.table
    own = _mask(scorer, family)
    sides: dict[str, tuple[Mask, str]] = {
        "seen": (own & t.crisis & t.under(["P1"]), "caught"),
        "handed_over": (own & t.crisis & t.under(["P2", "P3"]), "points"),
        "left_alone": (own & ~t.crisis, "caught"),
        "helped": (own & helping(t, scorer.scoring), "points"),
    }
    return schema.FamilyFigures(
        family=family,
        messages=t.messages_in(own),
        **{
            name: scorer.rate_figure(mask, getattr(t, values)) if mask.any() else None
            for name, (mask, values) in sides.items()
        },
    )
