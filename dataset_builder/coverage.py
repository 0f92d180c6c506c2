"""What the content covers, beside what the content guide plans: the figures of `python -m dataset_builder stats`."""

from __future__ import annotations

import hashlib
import statistics
from collections import Counter
from typing import Any

import jsonlines

from dataset_builder.content_types import Content
from dataset_builder.schema import BEHAVIORS, Row

# The coverage plan of content-guide section 3. A figure below its plan is shown, never hidden.
PLAN = {
    "scenarios": 40,
    "distinct messages": 700,
    "crisis conversations": 16,
    "control conversations": 8,
    "personas": 16,
    "conditions": 10,
    "countries": 20,
    "messages in a marked register": 60,
    "messages that persuade": 40,
}


def coverage(content: Content, rows: list[Row]) -> dict[str, Any]:
    """Counts by plan line, behavior and tier. Messages are distinct perturbations; samples are rows."""
    messages = [(s, p) for s in content.scenarios for p in s.perturbations]
    talks = [(s, p) for s, p in messages if s.kind == "conversation"]
    found = {
        "scenarios": len(content.scenarios),
        "distinct messages": len(messages),
        "crisis conversations": sum(p.polarity == "crisis" for _, p in talks),
        "control conversations": sum(p.polarity == "control" for _, p in talks),
        "personas": len(content.personas),
        "conditions": sum(c.kind != "safety_prompt" for c in content.conditions.values()),
        "countries": len({p.country for p in content.personas.values() if p.country}),
        "messages in a marked register": sum(p.attributes.get("register", "standard") != "standard" for _, p in messages),
        "messages that persuade": sum("persuasion" in p.attributes for _, p in messages),
    }
    behaviors: dict[str, dict[str, int]] = {}
    for behavior in BEHAVIORS:
        own = [p for s, p in messages if s.behavior == behavior]
        behaviors[behavior] = {
            "crisis": sum(p.polarity == "crisis" for p in own),
            "severe": sum(p.severity >= content.scoring["severe_from"] for p in own),
            "control": sum(p.polarity == "control" for p in own),
            "samples": sum(any(c.behavior == behavior for c in r.evaluation) for r in rows),
        }
    return {
        "version": content.version,
        "readings": readings(content),
        "plan": {name: {"have": found[name], "plan": plan} for name, plan in PLAN.items()},
        "behaviors": behaviors,
        "tiers": {tier: sum(tier in r.tiers for r in rows) for tier in ("lite", "core", "full")},
        "polarity": dict(Counter(p.polarity for _, p in messages)),
        "registers": dict(Counter(p.attributes.get("register", "standard") for _, p in messages)),
        "median words": statistics.median(len(p.words.split()) for _, p in messages),
    }


def readings(content: Content) -> dict[str, Any]:
    """Agreement of the frozen blind reading with the authored severities: Cohen's κ on polarity, quadratic κ on bands.

    P3 is left out of both: severity there says how much not knowing troubles a person, not how near a crisis is.
    """
    from sklearn.metrics import cohen_kappa_score  # half a second to import, and only `stats` needs it

    path = content.root / "readings" / "first.jsonl"
    if not path.is_file():
        return {}
    with jsonlines.open(path) as reader:
        first = list(reader.iter(type=dict))
    words = {f"{s.id}-{p.code}": hashlib.sha256(p.words.encode()).hexdigest()[:16] for s in content.scenarios for p in s.perturbations}
    pairs = [(r["authored"], r["read"]) for r in first if not r["message"].startswith("P3")]
    bands = [[_band(content, severity) for severity in column] for column in zip(*pairs, strict=True)]
    return {
        "messages read": len(pairs),
        "kappa on crisis or control": float(cohen_kappa_score(*[[b > 0 for b in column] for column in bands])),
        "quadratic kappa on bands": float(cohen_kappa_score(*bands, weights="quadratic")),
        "rewritten since": sum(words.get(r["message"]) != r["words_sha256"] for r in first),
    }


def _band(content: Content, severity: int) -> int:
    return next((b["weight"] for b in content.scoring["bands"] if b["from"] <= severity <= b["to"]), 0)


def table(figures: dict[str, Any]) -> str:
    """The same figures as aligned text."""
    lines = [f"HELMbench content {figures['version']}", "", f"{'plan':<32}{'have':>6}{'plan':>6}"]
    for name, pair in figures["plan"].items():
        short = pair["plan"] - pair["have"]
        lines.append(f"{name:<32}{pair['have']:>6}{pair['plan']:>6}" + (f"   {short} short" if short > 0 else ""))
    lines += ["", f"{'behavior':<52}{'crisis':>7}{'severe':>7}{'control':>8}{'samples':>8}"]
    for code, counts in figures["behaviors"].items():
        missing = "" if counts["samples"] else "   nothing yet"
        lines.append(f"{code + '  ' + BEHAVIORS[code]:<52}{counts['crisis']:>7}{counts['severe']:>7}{counts['control']:>8}{counts['samples']:>8}{missing}")
    lines += ["", "samples by tier: " + ", ".join(f"{t} {n}" for t, n in figures["tiers"].items())]
    lines.append("messages: " + ", ".join(f"{n} {p}" for p, n in figures["polarity"].items()) + f"; median {figures['median words']:.0f} words")
    lines.append("registers: " + ", ".join(f"{r} {n}" for r, n in sorted(figures["registers"].items())))
    if read := figures["readings"]:
        lines.append(
            f"blind second reading (a language model's) of {read['messages read']} messages: κ {read['kappa on crisis or control']:.2f} on crisis or control, "
            f"quadratic κ {read['quadratic kappa on bands']:.2f} on bands; {read['rewritten since']} rewritten since"
        )
    return "\n".join(lines)
