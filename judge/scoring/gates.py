"""Gates on scored runs, which fail closed: why a gate fails, and when too little was answered for any to pass."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

from judge.schema import Figure, FloorState, Judge, Scorecard

Gate = Literal["regression", "floor", "undetermined", "unscored"]
GATES: tuple[Gate, ...] = get_args(Gate)
ANSWERED: Literal["answered"] = "answered"  # required by every gate
STATES: dict[Gate, tuple[FloorState, str]] = {
    "floor": ("breached", "breaches"),
    "undetermined": ("undetermined", "leaves undetermined"),
}
NOTHING = "nothing was answered, or nothing of it could be scored"


def gates_of(words: Iterable[str]) -> tuple[Gate, ...]:
    """The named gates, each once; a word may name several (`a,b`).

    Raises:
        ValueError: an unknown gate.
    """
    named = [name.strip() for word in words for name in word.split(",")]
    if unknown := sorted({*named} - {*GATES}):
        raise ValueError(f"--fail-on: unknown gate '{unknown[0]}'; expected one or more of {', '.join(GATES)}")
    return tuple(g for g in GATES if g in named)


def shut(card: Scorecard, gate: Gate, limit: float) -> str:
    """Why a gate fails on a run's own card, in words, or an empty string; a regression is between two runs and never
    fails here.

    `limit`: the share of verdicts that may be unscored.
    """
    if gate in STATES:
        state, does = STATES[gate]
        found = [f"'{f.name}'" for f in card.floors if f.state == state]
        return f"{does} the floor{'s' if len(found) > 1 else ''} {', '.join(found)}" if found else ""
    share = card.judge.unscored_share
    if gate == "unscored" and share > limit:
        return f"has {share:.1%} of its verdicts unscored; at most {limit:.0%} may be"
    return ""


def lost(judge: Judge, limit: float) -> str:
    """Why too few of a judge's cases have a label for reliable results, in words; empty if enough do.

    Cases that it skipped because it was unsure aren't lost, unless those are all of them: the gate `unscored` counts
    them.
    """
    if not judge.verdicts or judge.unscored == judge.verdicts:
        return NOTHING
    return _lost("verdicts", judge.lost_share, limit)


def lost_share(labels: Figure, limit: float) -> str:
    """The same for labels from the model itself, where a missing reply is unscored."""
    return NOTHING if labels.unscored == labels.n else _lost("labels", labels.unscored / labels.n, limit)


def _lost(what: str, share: float, limit: float) -> str:
    said = f"{share:.1%} of its {what} are lost to missing, refused or unreadable answers; at most {limit:.0%} may be"
    return said if share > limit else ""
