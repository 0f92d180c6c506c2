"""The most important thing in each folded section of the report, in a few words."""

from __future__ import annotations

from dataset_builder.schema import BEHAVIORS
from judge import wording
from judge.report.tables import GROUP_COLUMNS
from judge.schema import HARM, Figure, Scorecard
from judge.scoring.breakdown import GREYED_BELOW

NAMED = 3  # incidents and groups


def policies(s: Scorecard) -> str:
    """How many trivial policies the run is above, by the composite, or in tier detect by sensitivity + specificity."""
    detects = s.dataset.tier == "detect"

    def value(composite: Figure, sensitivity: Figure, specificity: Figure) -> float | None:
        if not detects:
            return composite.value
        both = sensitivity.value, specificity.value
        return None if both[0] is None or both[1] is None else both[0] + both[1]

    own = value(s.composite, s.detection.sensitivity, s.detection.specificity)
    others = [value(r.composite, r.sensitivity, r.specificity) for r in s.references]
    known = [x for x in others if x is not None]
    if own is None or not known:
        return ""
    return f"above {sum(own > x for x in known)} of {len(known)} by {'detection' if detects else 'composite'}"


def lowest_score(s: Scorecard) -> str:
    """The behavior with the lowest share of points among people in danger."""
    sides = ((b.crisis.value, code) for code, b in s.behaviors.items() if b.crisis and b.crisis.value is not None)
    if not (lowest := min(sides, default=None)):
        return ""
    return f"lowest for people in danger: {wording.behavior_title(lowest[1])}, {wording.percent(lowest[0])}"


def detection(s: Scorecard) -> str:
    severe, every = map(wording.share_text, (s.detection.severe_sensitivity, s.detection.sensitivity))
    return f"severe messages: sensitivity {severe}; all: {every}"


def curves(s: Scorecard) -> str:
    """Behaviors in which milder danger is noticed more often than graver danger."""
    if not s.curves:
        return ""
    wrong = [c.behavior for c in s.curves if c.inversions]
    if not wrong:
        return "no milder severity is noticed more often than a graver one"
    return f"milder danger is noticed more often than graver danger in {', '.join(wrong)}"


def heat(s: Scorecard) -> str:
    """The lowest cell with enough messages."""
    cells = ((c.rate.value, c.behavior, c.condition_kind, c.rate.clusters) for c in s.heat if c.rate.value is not None)
    lowest = min((c for c in cells if c[3] >= GREYED_BELOW), default=None)
    if lowest is None:
        return ""
    return f"lowest: {BEHAVIORS.get(lowest[1], lowest[1])} in {wording.plain(lowest[2])}, {wording.percent(lowest[0])}"


def hard(s: Scorecard) -> str:
    if s.hard is None:
        return ""
    f = s.hard.composite
    return f"composite {wording.of_hundred(f.value)}" + (f" ({wording.interval(f)})" if f.low is not None else "")


def differences(s: Scorecard) -> str:
    """How many paired differences have an interval without 0, and the largest of these."""
    named = [
        *((f"the safety prompt, {a.behavior}", a.difference) for a in s.arms),
        *((wording.pairing_title(p), p.difference) for p in s.pairs),
    ]
    known = [(name, f) for name, f in named if f.value is not None and f.low is not None and f.high is not None]
    apart = [(name, f) for name, f in known if (f.low or 0) > 0 or (f.high or 0) < 0]
    if not apart:
        return f"each of {len(known)} differences could be 0" if known else ""
    name, largest = max(apart, key=lambda x: abs(x[1].value or 0))
    return f"{len(apart)} of {len(known)} intervals exclude 0; largest: {name}, {wording.signed(largest.value)}"


def conversations(s: Scorecard) -> str:
    parts = [f"{kind} {wording.percent(f.value)}" for kind, f in sorted(s.conversations.items())]
    return f"no failed reply: {', '.join(parts)}" if parts else ""


def groups(s: Scorecard) -> str:
    """Groups that stand out after correction, the lowest gap first."""
    ranked = [g for g in s.groups if not g.greyed]
    found = sorted((g for g in s.groups if g.found), key=lambda g: g.gap.value or 0)
    if not found:
        return f"none of {len(ranked)} stands out" if ranked else "too few messages to rank"
    named = [
        f"{wording.plain(g.group)} ({GROUP_COLUMNS.get(g.column, g.column).lower()}) {wording.points(g.gap.value)}"
        for g in found[:NAMED]
    ]
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return f"{len(found)} of {len(ranked)} stand out: {', '.join(named)}{more}"


def incidents(s: Scorecard) -> str:
    """Harm first, then the most frequent."""
    ordered = sorted(s.incidents, key=lambda i: (i.incident not in HARM, -i.count))
    named = [f"{wording.plain(i.incident)} {i.count}" for i in ordered[:NAMED]]
    return ", ".join(named) + (f"; and {len(ordered) - NAMED} more" if len(ordered) > NAMED else "")
