"""Stage 3 of the build: scenario × condition (× user context) × perturbation → rows, spread over the tiers.

The full cross product is thousands of near-copies; precision comes from distinct messages. So `core` takes a balanced
fraction: every message appears, and within each polarity of a scenario, a diagonal walk over the cells (condition,
user context) visits every pair once before any twice. `lite` takes a few messages from each scenario, spread evenly
over its severities, with the first of their core cells. Arms stay together: a message with the safety prompt also
appears under the same condition without it.

A control by someone whose history has open warning signs is a case of its own (scoring.yaml, `watch`): the message
alone is harmless, and the whole isn't. Each such message has one in core, and its scenario's checks don't apply.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

from dataset_builder.reading.content_types import Condition, Content, Context, Perturbation, Scenario
from dataset_builder.reading.load_scenario import criterion_check
from dataset_builder.reading.markdown import words
from dataset_builder.schema import ABOUT_USER, CHECK, RULED, Check, Message, Row, Tier

PERSON = ("population", "age_band", "gender", "culture")  # a row's persona fields, besides name and country
Cell = tuple[str, str | None]  # codes of a condition and of a user context


class Sample(NamedTuple):
    """One cell of a scenario with one message, and its tiers: a row in short form."""

    scenario: Scenario
    condition: Condition
    context: Context | None
    message: Perturbation
    tiers: list[Tier]


def compose(content: Content) -> list[Row]:
    """All rows, sorted by id."""
    return sorted((_row(content, sample) for sample in samples(content)), key=lambda row: row.id)


def samples(content: Content) -> Iterator[Sample]:
    """Every sample of every live scenario; deterministic."""
    for scenario in content.live:
        yield from _of(scenario, content.tiers, content.scoring["watch"])


def _of(scenario: Scenario, tiers: dict[str, Any], watch: dict[str, Any]) -> Iterator[Sample]:
    arms = units(scenario.conditions)
    few = tiers["lite_messages_per_hard_scenario" if scenario.family else "lite_messages_per_scenario"]
    quick = lite_messages(scenario, few)
    ruled = bool({*RULED} & scenario.document.front.keys())
    wanted = tiers["core_samples_per_hard_message"].get(scenario.family, tiers["core_samples_per_message"])
    cases, cases_shown = 0, False  # with open warning signs; lite has one of a scenario
    for polarity in ("crisis", "control"):
        messages = [(p, fitting(scenario, p, watch)) for p in scenario.perturbations if p.polarity == polarity]
        # Keep messages with the same contexts together on the diagonal, or it loses its balance.
        order = list(dict.fromkeys(contexts_key(contexts) for _, contexts in messages))
        messages.sort(key=lambda m: order.index(contexts_key(m[1])))
        position = 0
        for message, contexts in messages:
            core: set[Cell] = set()
            taken = 0
            while len(core) < wanted and taken < len(arms) * len(contexts):
                core |= diagonal(arms, contexts, position + taken)
                taken += 1
            # Nested by construction: lite is the first part of core.
            lite = diagonal(arms, contexts, position) if message.code in quick else set()
            position += taken
            for condition, context in itertools.product(scenario.conditions, contexts):
                cell = (condition.code, context.code if context else None)
                inside: list[Tier] = (
                    ["lite", "core", "full"] if cell in lite else ["core", "full"] if cell in core else ["full"]
                )
                if ruled and cell in core:
                    inside.insert(0, "detect")
                yield Sample(scenario, condition, context, message, inside)
            signs = open_signs(scenario, message, watch)
            if not signs:
                continue
            once: list[Tier] = (
                ["lite", "core", "full"] if message.code in quick and not cases_shown else ["core", "full"]
            )
            case = diagonal(arms, signs, cases)
            cases += 1
            cases_shown |= message.code in quick
            for condition, context in itertools.product(scenario.conditions, signs):
                inside = once if (condition.code, context.code) in case else ["full"]
                yield Sample(scenario, condition, context, message, inside)


def lite_messages(scenario: Scenario, count: int) -> set[str]:
    """Codes of `count` messages, half from each polarity if both exist, evenly spaced over the severities."""
    sides = [
        sorted((p.severity, p.code) for p in scenario.perturbations if p.polarity == side)
        for side in ("crisis", "control")
    ]
    share = count // sum(bool(side) for side in sides)
    chosen: set[str] = set()
    for side in sides:
        wanted = min(share, len(side))
        chosen |= {side[(2 * n + 1) * len(side) // (2 * wanted)][1] for n in range(wanted)}
    return chosen


def contexts_key(contexts: tuple[Context | None, ...]) -> tuple[str | None, ...]:
    return tuple(c.code if c else None for c in contexts)


def fitting(scenario: Scenario, message: Perturbation, watch: dict[str, Any]) -> tuple[Context | None, ...]:
    """The user contexts that a message can have: those of its writers, or none (`for: nobody`).

    A letter to grown-up children can't come from a 22-year-old: a contradictory prompt would measure confusion. And a
    control never follows a history with open warning signs: the whole case is then no control. Nor does a crisis of
    pillar 1, where the history would give the label away.
    """
    contexts = _of_writers(scenario, message)
    if message.severity < 0 or scenario.behavior.startswith("P1"):
        contexts = [c for c in contexts if c.severity < watch["from"]]
    return tuple(contexts) or (None,)


def watched(message: Perturbation, context: Context | None, watch: dict[str, Any]) -> bool:
    """Whether a control follows a history with open warning signs."""
    return message.severity < 0 and context is not None and bool(context.severity >= watch["from"])


def open_signs(scenario: Scenario, message: Perturbation, watch: dict[str, Any]) -> tuple[Context, ...]:
    """The histories with open warning signs that a control answered in free text can follow; the gravest are left out,
    since the person is in danger then, whatever the message.
    """
    if {*RULED} & (scenario.document.front.keys() | message.attributes.keys()):
        return ()
    contexts = _of_writers(scenario, message)
    return tuple(c for c in contexts if watched(message, c, watch) and c.severity <= watch["to"])


def _of_writers(scenario: Scenario, message: Perturbation) -> list[Context]:
    writers = {persona.slug for persona in scenario.writers(message)}
    return [c for c in scenario.contexts if c.persona.slug in writers]


def units(conditions: tuple[Condition, ...]) -> list[tuple[Condition, ...]]:
    """Conditions that are selected together: one condition, or its two arms with and without the safety prompt."""
    with_prompt = {c.pairs: c for c in conditions if c.pairs}
    return [(c, with_prompt[c.code]) if c.code in with_prompt else (c,) for c in conditions if not c.pairs]


def diagonal(arms: list[tuple[Condition, ...]], contexts: tuple[Context | None, ...], k: int) -> set[Cell]:
    """Step k of a walk over (unit, user context): any len(arms)·len(contexts) consecutive steps visit each once."""
    lap, place = divmod(k, len(arms))
    context = contexts[(place + lap) % len(contexts)]
    return {(condition.code, context.code if context else None) for condition in arms[place]}


def _row(content: Content, sample: Sample) -> Row:
    scenario, condition, context, message, tiers = sample
    codes = [scenario.id, condition.code, *([context.code] if context else []), message.code]
    attributes = message.attributes
    is_pair = any(c.pairs == condition.code for c in scenario.conditions)
    # Without a user context, the message itself may name the user's country.
    where = context.persona.country if context else attributes.get("country")
    row = {
        "id": "-".join(codes),
        "pillar": scenario.id.split("-")[0],
        "behavior": scenario.behavior,
        "scenario": scenario.id,
        "job": scenario.document.text("job"),
        "condition": condition.code,
        "user_context": context.code if context else None,
        "perturbation": message.code,
        "tiers": tiers,
        "messages": [Message(role="system", content=system_text(scenario, condition, context)), *_turns(message)],
        "evaluation": _evaluation(content, scenario, message, context),
        "polarity": message.polarity,
        "severity": message.severity,
        "context_severity": context.severity if context else None,
        "difficulty": condition.difficulty,
        "arm": "with" if condition.safety_prompt else "without" if is_pair else "none",
        "pair_of": "-".join([scenario.id, condition.pairs, *codes[2:]])
        if condition.pairs
        else attributes.get("pair_of"),
        "crisis_category": scenario.category(message),
        "crisis_category_2": scenario.second_category(message),
        "clarity": attributes.get("clarity", "clear"),
        "register": attributes.get("register", "standard"),
        "language": scenario.document.text("language", "en"),
        "disclosure": attributes.get("disclosure"),
        "persuasion": attributes.get("persuasion"),
        "wording": condition.wording if len({c.wording for c in scenario.conditions}) > 1 else None,
        "condition_kind": condition.kind,
        "country": where,
        "family": scenario.family,
        "canary": content.canary,
    }
    return Row.model_validate(
        row
        | {name: getattr(context.persona, name) if context else None for name in PERSON}
        | {"persona": context.persona.slug if context else None}
    )


def system_text(scenario: Scenario, condition: Condition, context: Context | None) -> str:
    """The product's system message: persona, safety prompt, job, and what it remembers of the user."""
    blocks = [condition.text, condition.safety_prompt, scenario.job(condition.wording)]
    return "\n\n".join(filter(None, blocks)) + (ABOUT_USER + context.text if context else "")


def _turns(message: Perturbation) -> list[Message]:
    # lm-eval generates the last reply anyway, so only the live turns before it are in the messages.
    turns = message.turns[:-1] if message.turns[-1].role == "assistant" else message.turns
    return [Message.model_validate({"role": t.role, "content": t.text}) for t in turns]


def _evaluation(content: Content, scenario: Scenario, message: Perturbation, context: Context | None) -> list[Check]:
    watch = content.scoring["watch"]
    if watched(message, context, watch):
        return [criterion_check(watch["criterion"], watch["behavior"])]
    front, behavior = scenario.document, scenario.behavior
    checks: list[Check] = [check for turn in message.turns for check in turn.checks]
    tags: dict[str, object] = {"check": "tags", "behavior": behavior, "offered": front.words("tags")}
    if "flag" in front.front:
        checks.append(CHECK.validate_python(tags | {"flag": front.words("flag")}))
    elif "tags" in message.attributes:
        accepted = words(message.attributes.get("accepted", ""))
        right = {"expected": words(message.attributes["tags"]), "accepted": accepted}
        checks.append(CHECK.validate_python(tags | right))
    if "actions" in front.front:
        named = {key: words(message.attributes.get(key, "")) for key in ("does", "waits")}
        offers = {"offered": front.words("actions"), "words": front.text("words"), "hand": front.text("hand")}
        checks.append(CHECK.validate_python({"check": "actions", "behavior": behavior} | offers | named))
    rating: dict[str, object] = {"check": "rating", "behavior": behavior, "field": front.text("rating")}
    if "flag_from" in front.front:
        first = int(front.text("flag_from"))
        low, high = (first, 10) if message.polarity == "crisis" else (1, first - 1)
        checks.append(CHECK.validate_python(rating | {"low": low, "high": high, "flag_from": first}))
    elif "rating" in message.attributes:
        low, high = map(int, message.attributes["rating"].split("-"))
        checks.append(CHECK.validate_python(rating | {"low": low, "high": high}))
    mild = message.severity <= content.scoring["bands"][0]["to"]
    grade = "control" if message.severity < 0 else "mild" if mild else "graver"
    for slug, serves in scenario.criteria("graded"):
        outcomes = content.criteria[slug].gradings[grade]
        graded = {"check": "graded", "behavior": serves, "criterion": slug, "outcomes": outcomes}
        checks.append(CHECK.validate_python(graded))
    # A rule can check a number but not whether the user is able to call it.
    judged = "reach" in message.attributes
    checks += [
        criterion_check(slug, serves, by_rule=not judged) for slug, serves in scenario.criteria(message.polarity)
    ]
    return checks
