"""Coverage of the content compared to the plan, and who wrote the messages: the figures of `helmbench stats`."""

from __future__ import annotations

import hashlib
import os
import statistics
from collections import Counter
from collections.abc import Iterable
from typing import Any, get_args

import numpy as np
from pydantic import BaseModel, Field

from dataset_builder.composing import messages as compose_messages
from dataset_builder.composing.compose import samples, watched
from dataset_builder.reading.calibration import rows_of
from dataset_builder.reading.content_types import (
    Content,
    Persona,
    Perturbation,
    Scenario,
    Voice,
    english_alone,
    first_languages,
)
from dataset_builder.reading.markdown import ContentRefusedError, Errors
from dataset_builder.schema import BEHAVIORS, Tier
from helmbench_common.tables import columns


class Reading(BaseModel):
    """The blind reader's severity of one message."""

    message: str
    authored: int = Field(ge=-10, le=10)
    read: int = Field(ge=-10, le=10)
    words_sha256: str
    was_ambiguous: bool = False


# The coverage plan in section 3 of the content guide: name → floor. A figure below its plan is always shown.
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
WRITERS = ("English alone", "another first language", "nobody in particular")
# The best result allowed without understanding a message (giveaway.py); chance is an AUC of 0.5 and an informedness of
# 0. Crises and controls can't use the same words throughout, so words keep some predictive power; least in P1, which
# tests understanding. A model that exceeds these ceilings does so by reading.
CEILINGS: dict[str, float] = {
    "words, all": 0.68,
    "words, P1": 0.65,
    **{f"words, {group}": 0.72 for group in ("P2", "P3", "P4", "P4-B1")},  # fewer messages, so less precise
    "naive Bayes, all": 0.68,
    "naive Bayes, P1": 0.68,
    "naive Bayes, P2": 0.76,
    "core with a product of its own": 0.3,
    "scenarios told apart by words": 5,  # of 59; an AUC of 25 messages has a standard error of .1
    "number of words": 0.56,
    "number of sentences": 0.56,
    "informedness, keyword": 0.25,
    "informedness, bag of words": 0.25,
}


def coverage(content: Content) -> dict[str, Any]:
    """Counts by plan line, behavior and tier. Messages are distinct perturbations; samples are dataset rows."""
    scenarios, severe = content.live, content.scoring["severe_from"]
    messages = [(s, p) for s in scenarios for p in s.perturbations]
    everything = list(samples(content))
    found = _of_content(content) | _of_scenarios(scenarios) | _of_messages(messages, severe)
    served, watch = {(s.id, p.code): behaviors(s, p) for s, p in messages}, content.scoring["watch"]
    asked: dict[str, dict[tuple[str, str], Perturbation]] = {behavior: {} for behavior in BEHAVIORS}
    by_behavior = Counter[str]()
    for x in everything:
        key = x.scenario.id, x.message.code
        for behavior in [watch["behavior"]] if watched(x.message, x.context, watch) else served[key]:
            by_behavior[behavior] += 1
            asked[behavior][key] = x.message
    table: dict[str, dict[str, int]] = {}
    for behavior, found_in in asked.items():
        own = list(found_in.values())
        table[behavior] = {
            "crisis": sum(p.polarity == "crisis" for p in own),
            "severe": sum(p.severity >= severe for p in own),
            "control": sum(p.polarity == "control" for p in own),
            "ambiguous": sum(p.attributes.get("clarity") == "ambiguous" for p in own),
            "samples": by_behavior[behavior],
        }
    return {
        "version": content.version,
        "readings": readings(content),
        "plan": {name: {"have": found[name], "plan": plan} for name, plan in PLAN.items()},
        "behaviors": table,
        "tiers": {tier: sum(tier in x.tiers for x in everything) for tier in get_args(Tier)},
        "polarity": dict(Counter(p.polarity for _, p in messages)),
        "registers": dict(Counter(p.attributes.get("register", "standard") for _, p in messages)),
        "categories": dict(Counter(s.category(p) for s, p in messages)),
        "standing alone": _alone(content),
        "voices": voices(content, messages),
        "median words": statistics.median(len(p.words.split()) for _, p in messages),
        "countries without an always-open line": without_line(content),
    }


def _alone(content: Content) -> dict[str, Any]:
    """The config `messages`: by category, tier, signal and probe, and the criteria for judging it."""
    found = compose_messages.messages(content)
    criteria = Counter(c.criterion for m in found for c in m.evaluation if c.check == "criterion")
    return {
        "messages": len(found),
        "lite": sum("lite" in m.tiers for m in found),
        "categories": dict(Counter(m.crisis_category for m in found)),
        "second categories": sum(m.crisis_category_2 is not None for m in found),
        "signals": dict(Counter(m.signal for m in found if m.signal)),
        "probes": len({m.probe for m in found if m.probe}),
        "told a country": sum(m.country is not None for m in found),
        "criteria": dict(sorted(criteria.items())),
    }


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
    p1 = [[p.polarity for p in s.perturbations] for s in scenarios if s.id[:2] == "P1" and s.kind == "scenario"]
    return {
        "scenarios": len(scenarios),
        "scenarios in two arms (safety prompt) in P1 and P2": sum(
            s.id[:2] in ("P1", "P2") and any(c.pairs for c in s.conditions) for s in scenarios
        ),
        "families of the hard part": len({s.family for s in scenarios if s.family}),
        "jobs in two wordings": sum(len({c.wording for c in s.conditions}) > 1 for s in scenarios),
        "P1 scenarios with more crisis than controls (at most)": sum(2 * p.count("control") < len(p) for p in p1),
    }


def _of_messages(messages: list[tuple[Scenario, Perturbation]], severe: int) -> dict[str, int]:
    """`severe`: the lowest severity of a severe message."""

    def under(start: str, least: int = -10) -> int:
        return sum(s.id.startswith(start) and p.severity >= least for s, p in messages)

    polarity = Counter((s.kind, p.polarity) for s, p in messages)
    controls = sum(p.polarity == "control" for _, p in messages)
    marked = [p for _, p in messages if p.attributes.get("register", "standard") != "standard"]
    hard = [p for s, p in messages if s.family is not None]
    return {
        "distinct messages": len(messages),
        "of these, share of controls (%)": round(100 * controls / max(1, len(messages))),
        "crisis conversations": polarity["conversation", "crisis"],
        "control conversations": polarity["conversation", "control"],
        "messages in a marked register": len(marked),
        "of these, controls": sum(p.polarity == "control" for p in marked),
        "cases of the hard part": len(hard),
        "cases of the hard part, controls": sum(p.polarity == "control" for p in hard),
        "messages that persuade": sum("persuasion" in p.attributes for _, p in messages),
        **{f"{pillar} messages": under(pillar) for pillar in ("P2", "P3", "P4")},
        "P2 messages, severe": under("P2", severe),
        **{f"P1-B{n} messages": under(f"P1-B{n}-") for n in range(1, 7)},
        **{f"P1-B{n} messages, severe": under(f"P1-B{n}-", severe) for n in (1, 2, 3)},
    }


def voices(content: Content, messages: Iterable[tuple[Scenario, Perturbation]]) -> dict[str, Any]:
    """Voices, their countries and first languages, and the share of messages (%) by the writer's first language.

    A message with several possible writers is split among them; empty if no persona has a voice or a language yet.
    """
    remembered = [p for p in content.personas.values() if p.voice or p.first_language]
    everybody: list[Persona | Voice] = [*remembered, *content.voices.values()]
    if not everybody:
        return {}
    counts, total = dict.fromkeys(WRITERS, 0.0), 0
    for scenario, message in messages:
        writers: list[Persona | Voice] = [p for p in scenario.writers(message) if p.first_language]
        if named := content.voices.get(message.attributes.get("voice", "")):
            writers = [named]
        for writer in writers:
            counts[WRITERS[0] if english_alone(writer) else WRITERS[1]] += 1 / len(writers)
        counts[WRITERS[2]] += not writers
        total += 1
    return {
        "personas": sum(bool(p.voice) for p in remembered),
        "others": len(content.voices),
        "countries": len({one.country for one in everybody if one.country}),
        "first languages": len({language for one in everybody for language in first_languages(one)}),
        "messages by first language (%)": {w: round(100 * n / max(1, total), 1) for w, n in counts.items()},
    }


def behaviors(scenario: Scenario, message: Perturbation) -> set[str]:
    """The behaviors that a message counts toward."""
    named = {b for key in ("graded", message.polarity) for _, b in scenario.criteria(key)}
    checked = {c.behavior for turn in message.turns for c in turn.checks}
    front, own = scenario.document.front.keys(), message.attributes.keys()
    ruled = {scenario.behavior} if {"flag", "flag_from", "actions"} & front or {"tags", "rating"} & own else set()
    return named | checked | ruled


def without_line(content: Content) -> list[str]:
    """Countries of personas without a known always-open line of tier A or B; there, the emergency service or a
    directory is the right answer.
    """
    lines = {
        h.country for h in content.helplines if h.always_open and h.tier in ("A", "B") and h.kind == "suicide_line"
    }
    return sorted({p.country for p in content.personas.values() if p.country} - lines)


def readings(content: Content) -> dict[str, Any]:
    """Agreement of the frozen blind reading with the authored severities: Cohen's κ on polarity, quadratic κ on bands.

    Excludes P3, where severity is how much harm an error would do, not how near a crisis is.

    Raises:
        ContentRefusedError: the file of readings has bad lines.
    """
    path = content.root / "readings" / "first.jsonl"
    if not os.path.lexists(path):
        return {}
    errors = Errors()
    first = {r.message: r for _, r in rows_of(path, Reading, "reading", errors)}
    if errors.found:
        raise ContentRefusedError(*errors.lines(), count=len(errors.found))
    words = {f"{s.id}-{p.code}": p for s in content.scenarios for p in s.perturbations}
    pairs = [(r.authored, r.read) for r in first.values() if not r.message.startswith("P3")]
    if not pairs:
        return {}
    weights = content.scoring["bands"]
    bands = np.array(
        [[next((b["weight"] for b in weights if b["from"] <= s <= b["to"]), 0) for s in pair] for pair in pairs]
    )
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


def kappa(pairs: Any, power: int = 0) -> float:
    """Cohen's κ of two readings, (n, 2) integers from 0; weights |i − j|^power (0: all differences count the same).

    Implemented here because importing scikit-learn takes as long as `stats` itself, a second; a test compares both.
    """
    size = int(pairs.max()) + 1
    seen = np.zeros((size, size))
    np.add.at(seen, (pairs[:, 0], pairs[:, 1]), 1 / len(pairs))
    apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    cost = (apart > 0).astype(float) if power == 0 else apart.astype(float) ** power
    chance = float((cost * np.outer(seen.sum(1), seen.sum(0))).sum())
    return 1 - float((cost * seen).sum()) / chance if chance else 1.0


def table(figures: dict[str, Any]) -> str:
    """The same figures as text."""
    missing = {
        name: max(0, (pair["plan"] - pair["have"]) * (-1 if name.endswith("(at most)") else 1))
        for name, pair in figures["plan"].items()
    }
    unmet = sum(map(bool, missing.values()))
    plan = [
        [name, str(pair["have"]), str(pair["plan"]), f"{missing[name]} short" if missing[name] else ""]
        for name, pair in figures["plan"].items()
    ]
    counted = ("crisis", "severe", "control", "ambiguous", "samples")
    behavior = [
        [f"{code}  {BEHAVIORS[code]}", *(str(counts[c]) for c in counted), "" if counts["samples"] else "nothing yet"]
        for code, counts in figures["behaviors"].items()
    ]
    polarity = ", ".join(f"{n} {p}" for p, n in figures["polarity"].items())
    alone, people, read = figures["standing alone"], figures["voices"], figures["readings"]
    lines = [
        f"HELMbench content {figures['version']}",
        "",
        columns(["plan", "have", "plan", ""], plan),
        f"{unmet} of {len(plan)} lines fall short" if unmet else f"all {len(plan)} lines are met",
        "",
        columns(["behavior", *counted, ""], behavior),
        "",
        f"samples by tier: {_counts(figures['tiers'].items())}",
        f"messages: {polarity}; median {figures['median words']:.0f} words",
        *(f"{what}: {_counts(sorted(figures[what].items()))}" for what in ("registers", "categories")),
    ]
    if people:
        shares = people["messages by first language (%)"]
        lines += [
            f"voices: {people['personas']} personas and {people['others']} others, of {people['countries']} countries "
            f"and {people['first languages']} first languages",
            "  messages by first language: " + ", ".join(f"{share:.0f} % {name}" for name, share in shares.items()),
        ]
    lines += [
        f"messages that stand alone: {alone['messages']}, {alone['lite']} of them in lite; {alone['told a country']} "
        f"with a country, {alone['probes']} probes",
        *(f"  {what}: {_counts(sorted(alone[what].items()))}" for what in ("categories", "signals", "criteria")),
        "countries without a known always-open line of tier A or B: "
        + (", ".join(figures["countries without an always-open line"]) or "none"),
    ]
    if read:
        lines += [
            f"blind second reading, by a language model: {read['messages read']} messages read, "
            f"{read['messages not read']} not",
            f"  κ {read['kappa on crisis or control']:.2f} on crisis or control, quadratic κ "
            f"{read['quadratic kappa on bands']:.2f} on bands (without P3)",
            f"  since then {read['rewritten or dropped since']} rewritten or dropped, "
            f"{read['moved to ambiguous since']} moved to ambiguous",
        ]
    return "\n".join(lines)


def _counts(pairs: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{name} {n}" for name, n in pairs)
