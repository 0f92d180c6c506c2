"""What the content covers, beside what the content guide plans: the figures of `helmbench stats`."""

from __future__ import annotations

import hashlib
import os
import statistics
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, Field

from dataset_builder.composing import messages as compose_messages
from dataset_builder.composing.compose import samples
from dataset_builder.reading.content_types import Content, Perturbation, Scenario
from dataset_builder.reading.markdown import ContentRefusedError, Errors
from dataset_builder.schema import BEHAVIORS
from dataset_builder.stats import hands
from helmbench_common import jsonl


class Reading(BaseModel):
    """What the blind reader said of one message."""

    message: str
    authored: int = Field(ge=-10, le=10)
    read: int = Field(ge=-10, le=10)
    words_sha256: str
    was_ambiguous: bool = False


Found = list[tuple[Scenario, Perturbation]]

# The coverage plan of content-guide section 3, as (name, floor). A figure below its plan is shown, never hidden.
PLAN = {
    "scenarios": 40,
    "distinct messages": 700,
    "of these, share of controls (%)": 50,
    "crisis conversations": 16,
    "control conversations": 8,
    "personas": 16,
    "age bands": 5,
    "populations": 8,
    "countries": 20,
    "conditions": 10,
    "kinds of condition": 4,
    "scenarios in two arms (safety prompt) in P1 and P2": 2,
    "jobs in two wordings": 2,
    "messages in a marked register": 60,
    "of these, controls": 20,
    "messages that persuade": 40,
    "P2 messages": 80,
    "P2 messages, severe": 30,
    "P3 messages": 60,
    "P4 messages": 120,
    **{f"P1-B{n} messages": floor for n, floor in enumerate((120, 100, 100, 60, 60, 60), start=1)},
    **{f"P1-B{n} messages, severe": 30 for n in (1, 2, 3)},
    "cases of the hard part": 300,
    "cases of the hard part, controls": 150,
    "families of the hard part": 8,
    "P1 scenarios with more crisis than controls (at most)": 0,
}
AT_MOST = " (at most)"
# The most that may be had without understanding a message (`dataset_builder.stats.giveaway`), where 0.5 is a coin's
# AUC and 0 its informedness. What is really a crisis can't be told in wholly other words, so words keep something; P1
# asks whether a model understands, so least there. One that clears these earns its figures by reading.
CEILINGS: dict[str, float] = {
    "words, all": 0.68,
    "words, P1": 0.65,
    **{f"words, {group}": 0.72 for group in ("P2", "P3", "P4", "P4-B1")},  # fewer messages, so less certain
    "scenarios told apart by words": 4,  # a small scenario is above 0.8 by chance now and then
    "number of words": 0.56,
    "number of sentences": 0.56,
    "informedness, keyword": 0.25,
    "informedness, bag of words": 0.25,
}


def coverage(content: Content) -> dict[str, Any]:
    """Counts by plan line, behavior and tier. Messages are distinct perturbations; samples are rows of the dataset."""
    scenarios = content.live
    messages = [(s, p) for s in scenarios for p in s.perturbations]
    everything = list(samples(content))
    found = _found(content, scenarios, messages)
    served = {(s.id, p.code): behaviors(s, p) for s, p in messages}
    by_behavior = Counter(behavior for x in everything for behavior in served[x.scenario.id, x.message.code])
    table: dict[str, dict[str, int]] = {}
    for behavior in BEHAVIORS:
        own = [(s, p) for s, p in messages if behavior in served[s.id, p.code]]
        table[behavior] = {
            "crisis": sum(p.polarity == "crisis" for _, p in own),
            "severe": sum(p.severity >= content.scoring["severe_from"] for _, p in own),
            "control": sum(p.polarity == "control" for _, p in own),
            "ambiguous": sum(p.attributes.get("clarity") == "ambiguous" for _, p in own),
            "samples": by_behavior[behavior],
        }
    return {
        "version": content.version,
        "readings": readings(content),
        "plan": {name: {"have": found[name], "plan": plan} for name, plan in PLAN.items()},
        "behaviors": table,
        "tiers": {tier: sum(tier in x.tiers for x in everything) for tier in ("lite", "core", "full")},
        "polarity": dict(Counter(p.polarity for _, p in messages)),
        "registers": dict(Counter(p.attributes.get("register", "standard") for _, p in messages)),
        "categories": dict(Counter(s.category(p) for s, p in messages)),
        "standing alone": _alone(content),
        "voices": hands.voices(content, messages),
        "median words": statistics.median(len(p.words.split()) for _, p in messages),
        "countries without an always-open line": without_line(content),
    }


def _alone(content: Content) -> dict[str, Any]:
    """The config `messages`: by category, tier, signal and probe, and the criteria that it is judged by."""
    found = compose_messages.messages(content)
    return {
        "messages": len(found),
        "lite": sum("lite" in m.tiers for m in found),
        "categories": dict(Counter(m.crisis_category for m in found)),
        "second categories": sum(m.crisis_category_2 is not None for m in found),
        "signals": dict(Counter(m.signal for m in found if m.signal)),
        "probes": len({m.probe for m in found if m.probe}),
        "told a country": sum(m.country is not None for m in found),
        "criteria": dict(
            sorted(Counter(c.criterion for m in found for c in m.evaluation if c.check == "criterion").items())
        ),
    }


def _found(content: Content, scenarios: list[Scenario], messages: Found) -> dict[str, int]:
    """What there is, by plan line."""
    everything = (
        _of_content(content) | _of_scenarios(scenarios) | _of_messages(messages, content.scoring["severe_from"])
    )
    return {line: everything[line] for line in PLAN}


def _of_content(content: Content) -> dict[str, int]:
    people = content.personas.values()
    return {
        "personas": len(people),
        "age bands": len({p.age_band for p in people}),
        "populations": len({p.population for p in people if p.population}),
        "countries": len({p.country for p in people if p.country}),
        "conditions": sum(c.kind != "safety_prompt" for c in content.conditions.values()),
        "kinds of condition": len({c.kind for c in content.conditions.values()} - {"safety_prompt"}),
    }


def _of_scenarios(scenarios: list[Scenario]) -> dict[str, int]:
    return {
        "scenarios": len(scenarios),
        "scenarios in two arms (safety prompt) in P1 and P2": sum(
            s.id[:2] in ("P1", "P2") and any(c.pairs for c in s.conditions) for s in scenarios
        ),
        "families of the hard part": len({s.family for s in scenarios if s.family}),
        "jobs in two wordings": sum(len({c.wording for c in s.conditions}) > 1 for s in scenarios),
        "P1 scenarios with more crisis than controls (at most)": sum(
            s.id.startswith("P1")
            and s.kind == "scenario"
            and 2 * sum(p.polarity == "control" for p in s.perturbations) < len(s.perturbations)
            for s in scenarios
        ),
    }


def _of_messages(messages: Found, severe: int) -> dict[str, int]:
    """`severe`: the severity from which a message is."""

    def many(keep: Callable[[Scenario, Perturbation], bool]) -> int:
        return sum(keep(s, p) for s, p in messages)

    def under(start: str, least: int = -10) -> int:
        return many(lambda s, p: s.id.startswith(start) and p.severity >= least)

    marked = [p for _, p in messages if p.attributes.get("register", "standard") != "standard"]
    controls = many(lambda _, p: p.polarity == "control")
    return {
        "distinct messages": len(messages),
        "of these, share of controls (%)": round(100 * controls / max(1, len(messages))),
        "crisis conversations": many(lambda s, p: s.kind == "conversation" and p.polarity == "crisis"),
        "control conversations": many(lambda s, p: s.kind == "conversation" and p.polarity == "control"),
        "messages in a marked register": len(marked),
        "of these, controls": sum(p.polarity == "control" for p in marked),
        "cases of the hard part": many(lambda s, _: s.family is not None),
        "cases of the hard part, controls": many(lambda s, p: s.family is not None and p.polarity == "control"),
        "messages that persuade": many(lambda _, p: "persuasion" in p.attributes),
        **{f"{pillar} messages": under(pillar) for pillar in ("P2", "P3", "P4")},
        "P2 messages, severe": under("P2", severe),
        **{f"P1-B{n} messages": under(f"P1-B{n}-") for n in range(1, 7)},
        **{f"P1-B{n} messages, severe": under(f"P1-B{n}-", severe) for n in (1, 2, 3)},
    }


def behaviors(scenario: Scenario, message: Perturbation) -> set[str]:
    """The behaviors that a message is scored for."""
    named = {b for key in ("graded", message.polarity) for _, b in scenario.criteria(key)}
    checked = {c.behavior for turn in message.turns for c in turn.checks}
    ruled = (
        {scenario.behavior}
        if {"flag", "actions"} & scenario.document.front.keys() or {"tags", "rating"} & message.attributes.keys()
        else set()
    )
    return named | checked | ruled


def without_line(content: Content) -> list[str]:
    """Countries of personas where no always-open line of tier A or B is known; the emergency service or a directory is
    right there.
    """
    lines = {
        h.country for h in content.helplines if h.always_open and h.tier in ("A", "B") and h.kind == "suicide_line"
    }
    return sorted({p.country for p in content.personas.values() if p.country} - lines)


def readings(content: Content) -> dict[str, Any]:
    """Agreement of the frozen blind reading with the authored severities: Cohen's κ on polarity, quadratic κ on bands.

    P3 is left out of both: severity there says how much harm an error would do, not how near a crisis is.
    """
    path = content.root / "readings" / "first.jsonl"
    if not os.path.lexists(path):
        return {}
    first = {r.message: r for r in _frozen(path)}
    words = {f"{s.id}-{p.code}": p for s in content.scenarios for p in s.perturbations}
    pairs = [(r.authored, r.read) for r in first.values() if not r.message.startswith("P3")]
    if not pairs:
        return {}
    bands = np.array([[_band(content, severity) for severity in pair] for pair in pairs])
    changed = {
        m
        for m, r in first.items()
        if m not in words or hashlib.sha256(words[m].words.encode()).hexdigest()[:16] != r.words_sha256
    }
    return {
        "messages read": len(first),
        "messages not read": len(words.keys() - first.keys()),
        "compared": len(pairs),
        "kappa on crisis or control": kappa((bands > 0).astype(int)),
        "quadratic kappa on bands": kappa(bands, power=2),
        "rewritten or dropped since": len(changed),
        "moved to ambiguous since": sum(
            m in words and words[m].attributes.get("clarity") == "ambiguous" and not r.was_ambiguous
            for m, r in first.items()
        ),
    }


def _frozen(path: Path) -> list[Reading]:
    """Raises: ContentRefusedError: not readable as such, every line at once."""
    errors = Errors()

    def bad(number: int, why: ValueError) -> None:
        field, what = jsonl.first_problem(why)
        errors.add(path, number, f"'{field}': {what}")

    try:
        found = [r for _, r in jsonl.models(path, Reading, bad, strict=True)]
    except OSError as error:
        errors.add(path, 1, f"can't be read ({error.strerror}); expected a reading a line")
    if errors.found:
        raise ContentRefusedError(*errors.lines())
    return found


def kappa(pairs: Any, power: int = 0) -> float:
    """Cohen's κ of two readings, (n, 2) whole numbers from 0; weights |i − j|^power (0: any difference counts alike).

    A dozen lines of our own because `stats` answers in under a second, which scikit-learn's import alone takes; the
    tests hold it equal to scikit-learn's.
    """
    size = int(pairs.max()) + 1
    seen = np.zeros((size, size))
    np.add.at(seen, (pairs[:, 0], pairs[:, 1]), 1 / len(pairs))
    apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    cost = (apart > 0).astype(float) if power == 0 else apart.astype(float) ** power
    chance = float((cost * np.outer(seen.sum(1), seen.sum(0))).sum())
    return 1 - float((cost * seen).sum()) / chance if chance else 1.0


def _band(content: Content, severity: int) -> int:
    return next((b["weight"] for b in content.scoring["bands"] if b["from"] <= severity <= b["to"]), 0)


def short(name: str, have: int, plan: int) -> int:
    """By how much a plan line falls short."""
    return max(0, have - plan if name.endswith(AT_MOST) else plan - have)


def table(figures: dict[str, Any]) -> str:
    """The same figures as aligned text."""
    lines = [f"HELMbench content {figures['version']}", "", *_plan(figures["plan"]), ""]
    columns = ("crisis", "severe", "control", "ambiguous", "samples")
    lines.append(f"{'behavior':<56}" + "".join(f"{c:>10}" for c in columns))
    for code, counts in figures["behaviors"].items():
        missing_row = "" if counts["samples"] else "   nothing yet"
        lines.append(
            f"{code + '  ' + BEHAVIORS[code]:<56}" + "".join(f"{counts[c]:>10}" for c in columns) + missing_row
        )
    lines += [
        "",
        f"samples by tier: {_counts(figures['tiers'].items())}",
        "messages: "
        + ", ".join(f"{n} {p}" for p, n in figures["polarity"].items())
        + f"; median {figures['median words']:.0f} words",
        *(f"{what}: {_counts(sorted(figures[what].items()))}" for what in ("registers", "categories")),
    ]
    lines += hands.lines(figures["voices"])
    alone = figures["standing alone"]
    lines.append(
        f"messages that stand alone: {alone['messages']}, {alone['lite']} of them in lite; "
        f"{alone['told a country']} with a country, {alone['probes']} probes"
    )
    lines += [f"  {what}: {_counts(sorted(alone[what].items()))}" for what in ("categories", "signals", "criteria")]
    lines.append(
        "no always-open line of tier A or B is known in: "
        + (", ".join(figures["countries without an always-open line"]) or "none of them")
    )
    return "\n".join([*lines, *_read(figures["readings"])])


def _plan(plan: dict[str, dict[str, int]]) -> list[str]:
    missing = {name: short(name, pair["have"], pair["plan"]) for name, pair in plan.items()}
    unmet = sum(map(bool, missing.values()))
    return [
        f"{'plan':<56}{'have':>6}{'plan':>6}",
        *(
            f"{name:<56}{pair['have']:>6}{pair['plan']:>6}" + (f"   {missing[name]} short" if missing[name] else "")
            for name, pair in plan.items()
        ),
        f"{unmet} of {len(plan)} lines fall short" if unmet else f"all {len(plan)} lines are met",
    ]


def _counts(pairs: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{name} {n}" for name, n in pairs)


def _read(read: dict[str, Any]) -> list[str]:
    if not read:
        return []
    return [
        f"blind second reading, by a language model: {read['messages read']} messages read, "
        f"{read['messages not read']} not",
        f"  κ {read['kappa on crisis or control']:.2f} on crisis or control, quadratic κ "
        f"{read['quadratic kappa on bands']:.2f} on bands (P3 apart)",
        f"  since then {read['rewritten or dropped since']} rewritten or dropped, "
        f"{read['moved to ambiguous since']} moved to ambiguous",
    ]
