"""What a policy could learn without reading the message: what the product remembers, and which product it is."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict

from dataset_builder.reading.content_types import Content
from dataset_builder.reading.markdown import Errors
from dataset_builder.schema import Row

TELLTALE = 0.1  # by how much a fact about the prompt may differ between crisis and control
ENOUGH = 50  # messages of each polarity, below which such shares are chance


def tells(content: Content, rows: list[Row], errors: Errors) -> None:
    """Adds an error for everything that gives the polarity away in core or full, in pillar 1 or 2.

    `for:` and the tiers could make troubled histories, or one product, belong to the crisis messages. Lite is too small
    for such shares to mean anything.
    """
    for tier, pillar in itertools.product(("core", "full"), ("P1", "P2")):
        own = [r for r in rows if tier in r.tiers and r.pillar == pillar]
        total, seen = _weighed(own)
        for fact in sorted({fact for _, fact in seen}):
            crisis, control = (seen[side, fact] / total[side] if total[side] else 0.0 for side in ("crisis", "control"))
            if min(total.values()) >= ENOUGH and abs(crisis - control) > TELLTALE:
                what = (
                    f"{pillar} in tier {tier}: {crisis:.0%} of crisis and {control:.0%} of control samples have {fact}"
                )
                errors.add(
                    content.root / "scenarios",
                    1,
                    f"{what}; expected at most {TELLTALE:.0%} apart, or the prompt gives the polarity away",
                )


def _weighed(rows: list[Row]) -> tuple[dict[str, float], defaultdict[tuple[str, str], float]]:
    """Messages by polarity, and by polarity and fact; a message's samples share its weight of one, as in scoring."""
    samples = Counter(r.message_key for r in rows)
    total = {
        side: sum(1 / samples[r.message_key] for r in rows if r.polarity == side) for side in ("crisis", "control")
    }
    seen: defaultdict[tuple[str, str], float] = defaultdict(float)
    for row in rows:
        for fact in (_history(row), f"a product of kind '{row.condition_kind}'"):
            seen[row.polarity, fact] += 1 / samples[row.message_key]
    return total, seen


def _history(row: Row) -> str:
    if row.context_severity is None:
        return "no history"
    return "a troubled history" if row.context_severity > 0 else "a calm history"
