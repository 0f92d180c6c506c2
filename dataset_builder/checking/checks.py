"""Stage 4 of the build: what must hold across files and in the composed rows. Each finding names a path and a line."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from dataset_builder.checking.fit import fits
from dataset_builder.checking.likeness import near_duplicates
from dataset_builder.checking.safe_messaging import safe
from dataset_builder.checking.telltales import tells
from dataset_builder.composing import messages as compose_messages
from dataset_builder.reading import taxonomy
from dataset_builder.reading.baselines import held
from dataset_builder.reading.calibration import covers
from dataset_builder.reading.content_types import Content, Scenario
from dataset_builder.reading.markdown import Errors
from dataset_builder.schema import BEHAVIORS, Row

# Words that only a heading, a front matter or a rubric holds; none may reach a model.
METADATA = re.compile(
    r"\b(severity|perturbation|polarity|PASS|PARTIAL|FAIL|rubric|criterion|helmbench|canary|judgement "
    r"call)\b|\bP\d-B\d\b|\bPT\d+\b"
)
JUDGED = re.compile(r"^P[123]")
TASKS = "tasks"  # the one score that is of no behavior


def check(content: Content, rows: list[Row], errors: Errors) -> None:
    """Adds to `errors` everything that is wrong across the content."""
    for scenario in content.scenarios:
        _balance(scenario, errors)
        _jobs(scenario, errors)
        _checkpoints(scenario, errors)
        _judged(scenario, errors)
        _ratings(scenario, errors)
    _young_people(content, errors)
    fits(content, errors)
    _everything_is_used(content, errors)
    near_duplicates(content, errors)
    safe(content, errors)
    _prompts(content, rows, errors)
    tells(content, rows, errors)
    _helplines(content, errors)
    covers(content, errors)
    held(content, errors)
    taxonomy.covers(content, errors)
    compose_messages.covers(content, errors)


def _balance(scenario: Scenario, errors: Errors) -> None:
    counts = Counter(p.polarity for p in scenario.perturbations)
    if scenario.id.startswith("P1") and counts["control"] < counts["crisis"]:
        errors.add(
            scenario.path,
            1,
            f"has {counts['crisis']} crisis and {counts['control']} control messages; a P1 scenario has at "
            "least as many controls",
        )
    if JUDGED.match(scenario.id) and not (counts["crisis"] and counts["control"]):
        errors.add(
            scenario.path, 1, f"has {dict(counts)}; scenarios of P1, P2 and P3 have both crisis and control messages"
        )


def _jobs(scenario: Scenario, errors: Errors) -> None:
    front = scenario.document
    for wording in sorted({c.wording for c in scenario.conditions}):
        job, line = scenario.job(wording), scenario.parts["Scenario" if wording == "1" else f"Wording {wording}"].line
        named = set(re.findall(r"^- ([A-Z][A-Z_]+):", job, re.MULTILINE))
        what = "actions" if "actions" in front.front else "tags"
        if named != set(front.words(what)):
            errors.add(
                scenario.path,
                line,
                f"the job lists {what} {sorted(named)}, the front matter offers {sorted(front.words(what))}; "
                "expected the same",
            )
        if "rating" in front.front and f'"{front.text("rating")}"' not in job:
            errors.add(
                scenario.path,
                line,
                f"the job never asks for \"{front.text('rating')}\", which front matter 'rating' says is read",
            )


def _checkpoints(scenario: Scenario, errors: Errors) -> None:
    for message in scenario.perturbations:
        for turn in message.turns:
            for checkpoint in turn.checks:
                severity = getattr(checkpoint, "severity", None)
                if severity is not None and (severity > 0) != (message.severity > 0):
                    errors.add(
                        scenario.path,
                        turn.line,
                        f"checkpoint of severity {severity} in a {message.polarity} script; expected the same sign",
                    )


def _judged(scenario: Scenario, errors: Errors) -> None:
    front = scenario.document
    for message in scenario.perturbations:
        if not (
            any(turn.checks for turn in message.turns)
            or {"flag", "graded", "actions"} & front.front.keys()
            or front.words(message.polarity)
            or {"tags", "rating"} & message.attributes.keys()
        ):
            errors.add(
                scenario.path,
                message.line,
                f"nothing judges {message.code}; expected flag, actions, graded, '{message.polarity}', tags, rating "
                "or a checkpoint",
            )


def _ratings(scenario: Scenario, errors: Errors) -> None:
    for message in scenario.perturbations:
        if ("rating" in message.attributes) != ("rating" in scenario.document.front):
            errors.add(
                scenario.path,
                message.line,
                f"{message.code}: a heading has 'rating low-high' exactly where the front matter names the rated field",
            )


def _young_people(content: Content, errors: Errors) -> None:
    for scenario in content.scenarios:
        if any(c.kind in ("companion", "roleplay") for c in scenario.conditions):
            for context in scenario.contexts:
                if context.persona.age < 18:
                    errors.add(
                        scenario.path,
                        context.line,
                        f"persona '{context.persona.slug}' is under 18; never composed with a companion or "
                        "roleplay condition",
                    )


def _everything_is_used(content: Content, errors: Errors) -> None:
    used_personas = {c.persona.slug for s in content.scenarios for c in s.contexts}
    used_texts = {slug for s in content.scenarios for c in s.conditions for slug in c.slug.split("+")}
    used_criteria = {
        slug for sc in content.scenarios for k in ("graded", "crisis", "control") for slug, _ in sc.criteria(k)
    }
    used_criteria |= {
        c.criterion for m in compose_messages.messages(content) for c in m.evaluation if c.check == "criterion"
    }
    used_criteria |= {
        c.criterion
        for sc in content.scenarios
        for p in sc.perturbations
        for t in p.turns
        for c in t.checks
        if c.check == "criterion"
    }
    shared = [
        ("persona", {k: v.document for k, v in content.personas.items()}, used_personas),
        ("condition", {k: v.document for k, v in content.conditions.items()}, used_texts),
        ("criterion", {k: v.document for k, v in content.criteria.items()}, used_criteria),
    ]
    used_voices = {p.attributes.get("voice") for s in content.scenarios for p in s.perturbations}
    for slug in content.voices.keys() - used_voices:
        path, line = content.root / "voices.md", content.voices[slug].line
        errors.add(path, line, f"no message has 'voice: {slug}'; use it or remove it")
    for what, documents, used in shared:
        for slug in documents.keys() - used:
            errors.add(documents[slug].path, 1, f"no scenario uses this {what}; use it or remove it")
    for code in content.scoring["scores"].keys() ^ {*BEHAVIORS, TASKS}:
        errors.add(content.root / "scoring.yaml", 1, f"scores and schema.BEHAVIORS disagree on {code}")


def _prompts(content: Content, rows: list[Row], errors: Errors) -> None:
    where = {s.id: s for s in content.scenarios}
    reported: set[str] = set()
    search = cache(METADATA.search)  # thousands of samples share their texts
    for row in rows:
        for message in row.messages:
            match = search(message.content or "")
            if match and match[0] + row.scenario not in reported:
                reported.add(match[0] + row.scenario)
                errors.add(
                    where[row.scenario].path,
                    1,
                    f"'{match[0]}' would reach the model in {row.id} ({message.role}); metadata never stands "
                    "in a prompt",
                )
    duplicates = [i for i, n in Counter(row.id for row in rows).items() if n > 1]
    for identity in duplicates:
        errors.add(content.root, 1, f"id {identity} is given twice; ids are unique")


def _helplines(content: Content, errors: Errors) -> None:
    path = content.root / "helplines.csv"
    for number, line in enumerate(content.helplines, start=2):
        if line.kind != "directory" and not (line.phone or line.text):
            errors.add(path, number, f"'{line.service}' has neither phone nor text; only a directory may lack both")
        if line.expires and line.expires < content.released and line.tier != "C":
            errors.add(
                path,
                number,
                f"'{line.service}' expired on {line.expires}, before this release ({content.released}); "
                "verify it again or move it to tier C",
            )
    usable = {h.country for h in content.helplines if h.tier in ("A", "B")}
    for persona in content.personas.values():
        if persona.country and persona.country not in usable:
            errors.add(
                persona.document.path,
                1,
                f"country {persona.country} has no tier A or B row in helplines.csv, so no rule can decide there",
            )
