"""Gates on scored runs, which fail closed: what shuts one, and when too little was answered for any to be open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

from judge.schema import Figure, FloorState, Judge, Scorecard

Gate = Literal["regression", "floor", "undetermined", "unscored"]
GATES: tuple[Gate, ...] = get_args(Gate)
ANSWERED: Literal["answered"] = "answered"  # what no gate is open without
STATES: dict[Gate, tuple[FloorState, str]] = {
    "floor": ("breached", "breaches"),
    "undetermined": ("undetermined", "leaves undetermined"),
}
NOTHING = "nothing was answered, or nothing of it could be scored"


def gates_of(words: Iterable[str]) -> tuple[Gate, ...]:
    """The gates that are named, each once, by one or several (`a,b`) in a word.

    Raises:
        ValueError: no such gate.
    """
    named = [name.strip() for word in words for name in word.split(",")]
    if unknown := sorted({*named} - {*GATES}):
        raise ValueError(f"--fail-on: unknown gate '{unknown[0]}'; expected one or more of {', '.join(GATES)}")
    return tuple(g for g in GATES if g in named)


def shut(card: Scorecard, gate: Gate, limit: float) -> str:
    """Why a run's own card shuts a gate, in words, or empty; a regression is between two runs and shuts none here.

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


def too_little(card: Scorecard, scoring: Mapping[str, Any]) -> str:
    """Why a run says too little for any gate to be open, in words; empty where it says enough."""
    return lost(card.judge, scoring["unscored_limit"])


def lost(judge: Judge, limit: float) -> str:
    """Why so little of what a judge was given has a label that nothing rests on it, in words; empty where enough has.

    What it left because it couldn't tell isn't lost, unless that is all there is: the gate `unscored` counts it.
    """
    if not judge.verdicts or judge.unscored == judge.verdicts:
        return NOTHING
    return _lost("verdicts", judge.lost_share, limit)


def lost_share(labels: Figure, limit: float) -> str:
    """The same of labels that the model itself gave, where one that never came is unscored."""
    return NOTHING if labels.unscored == labels.n else _lost("labels", labels.unscored / labels.n, limit)


def _lost(what: str, share: float, limit: float) -> str:
    said = f"{share:.1%} of its {what} are lost to missing, refused or unreadable answers; at most {limit:.0%} may be"
    return said if share > limit else ""
