"""What gives a message's polarity away to who doesn't understand it: the figures of `helmbench stats --giveaway`.

Read are the messages of all scenarios that aren't withdrawn, scripts among them, by all that the user says. An AUC of
0.5 is a coin's. A figure over its ceiling (`dataset_builder.stats.coverage.CEILINGS`) is shown, never hidden.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dataset_builder.reading.content_types import Content
from dataset_builder.stats import left_out, surface
from dataset_builder.stats.alarm_words import ALARM, matches
from dataset_builder.stats.coverage import CEILINGS
from dataset_builder.stats.left_out import Bools, Floats, Names

GROUPS = ("all", "P1", "P2", "P3", "P4", "P4-B1")
LARGE = 10  # messages from which a scenario has an AUC of its own
TOLD = 0.8  # an AUC above it says that a scenario is told apart
TELLING = 10
WIDTH = 34


@dataclass(frozen=True)
class Messages:
    """Messages of n rows each. `tagged`: of P1, in a job that flags with a tag; `alarmed`: has one of the words of
    `dataset_builder.stats.alarm_words`.
    """

    texts: list[str]
    scenario: Names
    crisis: Bools
    tagged: Bools
    alarmed: Bools


def messages(content: Content) -> Messages:
    """All messages of scenarios that aren't withdrawn, in the content's order."""
    found = [(s, p) for s in content.live for p in s.perturbations]
    said = [[t.text for t in p.turns if t.role == "user" and t.text] for _, p in found]
    return Messages(
        [p.words for _, p in found],
        np.array([s.id for s, _ in found]),
        np.array([p.severity > 0 for _, p in found]),
        np.array([s.id.startswith("P1") and "flag" in s.document.front for s, _ in found]),
        np.array([bool(matches(ALARM, texts)) for texts in said]),
    )


def giveaway(content: Content) -> dict[str, Any]:
    """{messages, crisis, left_out, scenarios, features, policies, telling, ceilings}.

    `left_out`: words, characters, surface → group → AUC; `scenarios`: those of LARGE messages or more with both
    polarities → the same by scenario; `features`: each alone, in whichever direction tells more; `policies`:
    informedness on tags of P1; `ceilings`: name → {have, at most}. A figure that can't be had is null.
    """
    found = messages(content)
    numbers = surface.matrix(found.texts)
    scores = {
        "words": left_out.by_terms(found.texts, left_out.WORDS, found.crisis, found.scenario),
        "characters": left_out.by_terms(found.texts, left_out.CHARACTERS, found.crisis, found.scenario),
        "surface": left_out.by_numbers(numbers, found.crisis, found.scenario),
    }
    crisis, control = left_out.telling(found.texts, found.crisis, TELLING)
    figures = {
        "messages": len(found.texts),
        "crisis": int(found.crisis.sum()),
        "left_out": {name: _by_group(found, own) for name, own in scores.items()},
        "scenarios": _by_scenario(found, scores),
        "features": {name: _either_way(_by_group(found, numbers[:, n])) for n, name in enumerate(surface.FEATURES)},
        "policies": _policies(found, scores["words"]),
        "telling": {"crisis": crisis, "control": control},
    }
    have = _have(figures)
    return figures | {"ceilings": {name: {"have": have[name], "at most": most} for name, most in CEILINGS.items()}}


def _by_group(found: Messages, scores: Floats) -> dict[str, float | None]:
    kept = {g: np.char.startswith(found.scenario, "" if g == "all" else g) for g in GROUPS}
    return {g: left_out.auc(found.crisis[own], scores[own]) for g, own in kept.items()}


def _either_way(aucs: dict[str, float | None]) -> dict[str, float | None]:
    return {g: value if value is None else round(max(value, 1 - value), 3) for g, value in aucs.items()}


def _by_scenario(found: Messages, scores: dict[str, Floats]) -> dict[str, dict[str, float | None]]:
    kept = {name: found.scenario == name for name in np.unique(found.scenario)}
    return {
        str(name): {what: left_out.auc(found.crisis[own], score[own]) for what, score in scores.items()}
        for name, own in kept.items()
        if own.sum() >= LARGE and len(np.unique(found.crisis[own])) == 2
    }


def _policies(found: Messages, words: Floats) -> dict[str, float | None]:
    """`words`: the left-out scores."""
    own = found.tagged
    over = left_out.gate(found.crisis, words, found.scenario)
    return {
        "messages": int(own.sum()),
        "keyword": left_out.informedness(found.crisis[own], found.alarmed[own]),
        "bag of words": left_out.informedness(found.crisis[own], over[own]),
    }


def _have(figures: dict[str, Any]) -> dict[str, float | None]:
    """Every figure that may have a ceiling, by the ceiling's name."""
    return {
        **{f"words, {group}": value for group, value in figures["left_out"]["words"].items()},
        "scenarios told apart by words": len(told_apart(figures, "words")) if figures["scenarios"] else None,
        **{f"number of {name}": figures["features"][name]["all"] for name in ("words", "sentences")},
        **{f"informedness, {name}": figures["policies"][name] for name in ("keyword", "bag of words")},
    }


def told_apart(figures: dict[str, Any], what: str) -> dict[str, float]:
    """The scenarios whose AUC is above TOLD, the highest first; `what`: words, characters or surface."""
    found = {name: own[what] for name, own in figures["scenarios"].items() if (own[what] or 0) > TOLD}
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def table(figures: dict[str, Any]) -> str:
    """The same figures as aligned text."""
    lines = [
        f"what gives polarity away to who understands nothing: {figures['messages']} messages, "
        f"{figures['crisis']} of a crisis",
        "",
        *_ceilings(figures["ceilings"]),
        f"informedness on tags: {figures['policies']['messages']} messages of P1; chance is 0, as 0.5 is an AUC's",
        "",
        f"{'AUC, each scenario left out':<{WIDTH}}" + "".join(f"{g:>8}" for g in GROUPS),
        *(_row(name, own) for name, own in figures["left_out"].items()),
        f"{'AUC of one feature, either way':<{WIDTH}}" + "".join(f"{g:>8}" for g in GROUPS),
        *(_row(name, own) for name, own in figures["features"].items()),
        "",
    ]
    for what in ("words", "characters"):
        told = ", ".join(f"{name} {value:.2f}" for name, value in told_apart(figures, what).items())
        lines.append(f"above {TOLD} by {what}, of {len(figures['scenarios'])} scenarios: {told or 'none'}")
    lines += [f"words that push to {side}: {', '.join(words)}" for side, words in figures["telling"].items()]
    return "\n".join(lines)


def _row(name: str, own: dict[str, float | None]) -> str:
    return f"{name:<{WIDTH}}" + "".join(f"{_number(own[g]):>8}" for g in GROUPS)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value}" if isinstance(value, int) else f"{value:.3f}"


def _ceilings(ceilings: dict[str, dict[str, Any]]) -> list[str]:
    measured = {name: pair for name, pair in ceilings.items() if pair["have"] is not None}
    over = {name for name, pair in measured.items() if pair["have"] > pair["at most"]}
    missing = "" if len(measured) == len(ceilings) else f"; {len(measured)} of {len(ceilings)} could be measured"
    return [
        f"{'':<{WIDTH}}{'have':>8}{'at most':>9}",
        *(
            f"{name:<{WIDTH}}{_number(pair['have']):>8}{pair['at most']:>9}" + ("   over" if name in over else "")
            for name, pair in ceilings.items()
        ),
        f"{len(over)} of {len(ceilings)} ceilings are passed{missing}",
    ]
