"""Checks that a message, its writer, the job and the product are consistent; no model should answer a contradiction."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from dataset_builder.composing.compose import system_text
from dataset_builder.reading.content_types import Content, Persona, Perturbation, Scenario, Voice, ages, english_alone
from dataset_builder.reading.markdown import Errors, Wrong

# Registers of people whose first language isn't English.
OF_ANOTHER_LANGUAGE = ("non_native", "code_switching")
# Prompts that contradict a user profile.
UNKNOWN_ASKER = re.compile(
    r"\b(?:don['’]t|do not|never|can['’]t|cannot|won['’]t) (?:know|learn|see|be told) who\b"
    r"|\b(?:nobody|no one) (?:knows|can tell) who\b|\banonymous(?:ly)?\b|\bstrangers? to you\b"
    r"|\byou know nothing (?:of|about) (?:them|him|her|the user|the person|who)\b"
    r"|\b(?:isn['’]t|aren['’]t|not|nobody is|without being) (?:signed|logged) in\b",
    re.IGNORECASE,
)


def fits(content: Content, errors: Errors) -> None:
    """Adds an error for every message, user context and prompt that can't belong to one person and one product."""
    for persona in content.personas.values():
        wrong = partial(errors.add, persona.document.path, 1)
        if not persona.voice:
            wrong("has no '# Voice'; expected how this person writes, for authors of their messages")
        if not persona.first_language:
            wrong("has no 'first_language'; expected it in the front matter, such as 'first_language: Twi'")
    for scenario in content.live:
        for message in scenario.perturbations:
            _writers(content, scenario, message, partial(errors.add, scenario.path, message.line))
        _people(scenario, errors.at(scenario.path))


def _writers(content: Content, scenario: Scenario, message: Perturbation, wrong: Callable[[str], None]) -> None:
    """Checks that every possible writer in a message's heading has the message's language and country."""
    attributes, code = message.attributes, message.code
    named = {"for", "not for"} & attributes.keys()
    if scenario.contexts and not named:
        people = ", ".join(sorted({c.persona.slug for c in scenario.contexts}))
        expected = f"'for:' with some of {people}, 'for: nobody', or 'not for:' with those whose it can't be"
        wrong(f"{code} doesn't say whose it can be; expected {expected}")
    voice = content.voices.get(attributes.get("voice", ""))
    register, country = attributes.get("register"), attributes.get("country")
    writers: list[Persona | Voice] = [*(scenario.writers(message) if named else []), *([voice] if voice else [])]
    for writer in writers:
        if register in OF_ANOTHER_LANGUAGE and english_alone(writer):
            what = f"{code} is {register}, and '{writer.slug}' has English as first language"
            wrong(f"{what}; expected somebody with another, or another register")
        if country and writer.country != country:
            what = f"{code} comes from {country}, and '{writer.slug}' lives in {writer.country or 'no country'}"
            wrong(f"{what}; expected somebody who lives there")


def _people(scenario: Scenario, wrong: Wrong) -> None:
    """Checks that the personas fit the job's ages and countries, and that no prompt says the user is unknown."""
    front = scenario.document
    countries = front.words("countries")
    for context in scenario.contexts:
        who, home = f"persona '{context.persona.slug}'", context.persona.country
        if "ages" in front.front and context.persona.age not in ages(front):
            wrong(context.line, f"{who} is {context.persona.age}; the job's 'ages' are {front.text('ages')}")
        if countries and home not in countries:
            lives = f"{who} lives in {home or 'no country'}"
            wrong(context.line, f"{lives}; the job's 'countries' are {', '.join(countries)}")
    for condition in scenario.conditions if scenario.contexts else ():
        if match := UNKNOWN_ASKER.search(system_text(scenario, condition, None)):
            people = ", ".join(sorted({f"{c.code} {c.persona.slug}" for c in scenario.contexts}))
            what = (
                f"'# {condition.code} {condition.slug}' or its job says '{match[0]}', before the profiles of {people}"
            )
            expected = "a prompt that doesn't say so, or messages 'for: nobody' without user contexts"
            wrong(condition.line, f"{what}; expected {expected}")
