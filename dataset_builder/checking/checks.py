"""Stage 4 of the build: checks across files and on the composed rows. Each finding names a path and a line."""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from functools import cache, partial
from typing import Any

from dataset_builder.checking.fit import fits
from dataset_builder.checking.likeness import near_duplicates
from dataset_builder.checking.safe_messaging import safe
from dataset_builder.composing import messages as compose_messages
from dataset_builder.composing.compose import open_signs
from dataset_builder.reading import calibration, categories
from dataset_builder.reading.content_types import Content, Scenario
from dataset_builder.reading.markdown import Errors
from dataset_builder.reading.parts import balanced
from dataset_builder.schema import BEHAVIORS, OF_REPLIES_IN_TALKS, Row

# Words that occur only in headings, front matter and rubrics; none may reach a model.
METADATA = re.compile(
    r"\b(severity|perturbation|polarity|PASS|PARTIAL|FAIL|rubric|criterion|helmbench|canary|judgement "
    r"call)\b|\bP\d-B\d\b|\bPT\d+\b"
)
OVER_ALL = {"tasks", "harm"}  # the scores that aren't of one behavior
TELLTALE = 0.1  # largest allowed difference in a prompt feature's share between crisis and control
ENOUGH = 50  # fewest messages per polarity for such shares to mean anything


def check(content: Content, rows: list[Row], errors: Errors) -> None:
    """Adds an error for every problem across the content."""
    for scenario in content.scenarios:
        _balance(scenario, errors)
        _jobs(scenario, errors)
        _messages(scenario, errors)
    fits(content, errors)
    _everything_is_used(content, errors)
    near_duplicates(content, errors)
    safe(content, errors)
    _prompts(content, rows, errors)
    tells(content, rows, errors)
    _helplines(content, errors)
    calibration.covers(content, errors)
    calibration.held(content, errors)
    categories.covers(content, errors)
    compose_messages.covers(content, errors)
    balanced(content.parts, errors)


def _balance(scenario: Scenario, errors: Errors) -> None:
    counts, wrong = Counter(p.polarity for p in scenario.perturbations), partial(errors.add, scenario.path, 1)
    if scenario.id.startswith("P1") and counts["control"] < counts["crisis"]:
        what = "a P1 scenario has at least as many controls"
        wrong(f"has {counts['crisis']} crisis and {counts['control']} control messages; {what}")
    if scenario.id.startswith(("P1", "P2", "P3")) and not (counts["crisis"] and counts["control"]):
        wrong(f"has {dict(counts)}; scenarios of P1, P2 and P3 have both crisis and control messages")


def _jobs(scenario: Scenario, errors: Errors) -> None:
    front = scenario.document
    for wording in sorted({c.wording for c in scenario.conditions}):
        job, part = scenario.job(wording), scenario.parts["Scenario" if wording == "1" else f"Wording {wording}"]
        named = set(re.findall(r"^- ([A-Z][A-Z_]+):", job, re.MULTILINE))
        what = "actions" if "actions" in front.front else "tags"
        if named != set(offered := front.words(what)):
            said = f"the job lists {what} {sorted(named)}, the front matter offers {sorted(offered)}; expected the same"
            errors.add(scenario.path, part.line, said)
        if "rating" in front.front and f'"{front.text("rating")}"' not in job:
            said = f"the job never asks for \"{front.text('rating')}\", which front matter 'rating' says is read"
            errors.add(scenario.path, part.line, said)


def _messages(scenario: Scenario, errors: Errors) -> None:
    """Checks that every message is judged, checkpoints match its polarity, and ratings match the front matter."""
    front = scenario.document
    for message in scenario.perturbations:
        wrong = partial(errors.add, scenario.path, message.line)
        for turn in message.turns:
            for checkpoint in turn.checks:
                severity = getattr(checkpoint, "severity", None)
                if severity is not None and (severity > 0) != (message.severity > 0):
                    what = f"checkpoint of severity {severity} in a {message.polarity} script; expected the same sign"
                    errors.add(scenario.path, turn.line, what)
        if not (
            any(turn.checks for turn in message.turns)
            or {"flag", "flag_from", "graded", "actions"} & front.front.keys()
            or front.words(message.polarity)
            or {"tags", "rating"} & message.attributes.keys()
        ):
            what = f"expected flag, actions, graded, '{message.polarity}', tags, rating or a checkpoint"
            wrong(f"nothing judges {message.code}; {what}")
        if ("rating" in message.attributes) != ("rating" in front.front and "flag_from" not in front.front):
            what = "a heading has 'rating low-high' exactly where the front matter has 'rating' and no 'flag_from'"
            wrong(f"{message.code}: {what}")
    if any(c.kind in ("companion", "roleplay") for c in scenario.conditions):
        for context in scenario.contexts:
            if context.persona.age < 18:
                what = "is under 18; never composed with a companion or roleplay condition"
                errors.add(scenario.path, context.line, f"persona '{context.persona.slug}' {what}")


def _everything_is_used(content: Content, errors: Errors) -> None:
    scenarios = content.scenarios
    checks = [c for m in compose_messages.messages(content) for c in m.evaluation]
    checks += [c for s in scenarios for p in s.perturbations for t in p.turns for c in t.checks]
    criteria = {slug for s in scenarios for key in ("graded", "crisis", "control") for slug, _ in s.criteria(key)}
    watch = content.scoring["watch"]
    criteria |= {c.criterion for c in checks if c.check == "criterion"} | {watch["criterion"]}
    if content.parts:
        criteria |= {*OF_REPLIES_IN_TALKS}
        for slug in {*OF_REPLIES_IN_TALKS} - content.criteria.keys():
            errors.add(content.root / "parts", 1, f"talks are judged by '{slug}'; expected a file in criteria/")
    shared: list[tuple[str, dict[str, Any], set[str]]] = [
        ("persona", content.personas, {c.persona.slug for s in scenarios for c in s.contexts}),
        (
            "condition",
            content.conditions,
            {slug for s in scenarios for c in s.conditions for slug in c.slug.split("+")}
            | {part.row.condition for part in content.parts},
        ),
        ("criterion", content.criteria, criteria),
    ]
    cases = (open_signs(s, p, watch) for s in content.live for p in s.perturbations)
    if (care := watch["criterion"]) not in content.criteria and any(cases):
        errors.add(content.root / "scoring.yaml", 1, f"watch: no criterion '{care}'; expected a file in criteria/")
    for what, files, used in shared:
        for slug in files.keys() - used:
            errors.add(files[slug].document.path, 1, f"no scenario uses this {what}; use it or remove it")
    used_voices = {p.attributes.get("voice") for s in scenarios for p in s.perturbations}
    used_voices |= {part.voice for part in content.parts}
    for slug in content.voices.keys() - used_voices:
        line = content.voices[slug].line
        errors.add(content.root / "voices.md", line, f"no message has 'voice: {slug}'; use it or remove it")
    scoring = content.root / "scoring.yaml"
    for code in content.scoring["scores"].keys() ^ {*BEHAVIORS, *OVER_ALL}:
        errors.add(scoring, 1, f"scores and schema.BEHAVIORS disagree on {code}")
    harm = content.scoring["harm"]
    raising = {n for n, c in content.criteria.items() if not {*c.row.incidents}.isdisjoint(harm["incidents"])}
    for slug in sorted(raising - {*harm["asked"], *harm["elsewhere"]}):
        errors.add(scoring, 1, f"harm: '{slug}' has an incident of harm; expected it under asked or elsewhere")


def _prompts(content: Content, rows: list[Row], errors: Errors) -> None:
    where = {s.id: s for s in content.scenarios}
    reported: set[str] = set()
    search = cache(METADATA.search)  # thousands of samples share their texts
    for row in rows:
        for message in row.messages:
            match = search(message.content or "")
            if match and match[0] + row.scenario not in reported:
                reported.add(match[0] + row.scenario)
                what = f"'{match[0]}' would reach the model in {row.id} ({message.role}); prompts have no metadata"
                errors.add(where[row.scenario].path, 1, what)


def tells(content: Content, rows: list[Row], errors: Errors) -> None:
    """Adds an error for each prompt feature that gives the polarity away in core or full, in pillar 1 or 2.

    `for:` and the tiers could pair troubled histories, or one product, with crisis messages only. Lite is too small
    for such shares to mean anything.
    """
    for tier, pillar in itertools.product(("core", "full"), ("P1", "P2")):
        own = [r for r in rows if tier in r.tiers and r.pillar == pillar]
        # A message's samples share a weight of one, as in scoring.
        samples = Counter(r.message_key for r in own)
        total: defaultdict[str, float] = defaultdict(float)
        seen: defaultdict[tuple[str, str], float] = defaultdict(float)
        for row in own:
            total[row.polarity] += 1 / samples[row.message_key]
            signs = row.context_severity
            history = "no history" if signs is None else "a troubled history" if signs > 0 else "a calm history"
            for fact in (history, f"a product of kind '{row.condition_kind}'"):
                seen[row.polarity, fact] += 1 / samples[row.message_key]
        if min(total["crisis"], total["control"]) < ENOUGH:
            continue
        for fact in sorted({fact for _, fact in seen}):
            crisis, control = (seen[side, fact] / total[side] for side in ("crisis", "control"))
            if abs(crisis - control) > TELLTALE:
                shares = f"{crisis:.0%} of crisis and {control:.0%} of control samples have {fact}"
                expected = f"expected at most {TELLTALE:.0%} apart, or the prompt gives the polarity away"
                errors.add(content.root / "scenarios", 1, f"{pillar} in tier {tier}: {shares}; {expected}")


def _helplines(content: Content, errors: Errors) -> None:
    for number, line in enumerate(content.helplines, start=2):
        wrong = partial(errors.add, content.root / "helplines.csv", number)
        if line.kind != "directory" and not (line.phone or line.text):
            wrong(f"'{line.service}' has neither phone nor text; only a directory may have neither")
        if line.expires and line.expires < content.released and line.tier != "C":
            what = f"expired on {line.expires}, before this release ({content.released})"
            wrong(f"'{line.service}' {what}; verify it again or move it to tier C")
    usable = {h.country for h in content.helplines if h.tier in ("A", "B")}
    for persona in content.personas.values():
        if persona.country and persona.country not in usable:
            what = f"country {persona.country} has no tier A or B row in helplines.csv, so no rule can decide there"
            errors.add(persona.document.path, 1, what)
