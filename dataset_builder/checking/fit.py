"""That a message, its writer, the job and the product can all be true at once: nobody answers to a contradiction."""

from __future__ import annotations

import re

from dataset_builder.composing.compose import system_text
from dataset_builder.reading.content_types import (
    Content,
    Persona,
    Perturbation,
    Scenario,
    Voice,
    ages,
    english_alone,
)
from dataset_builder.reading.markdown import Errors

# Registers of people who have another language first.
OF_ANOTHER_LANGUAGE = ("non_native", "code_switching")
# A prompt that says so says the contrary where a profile follows.
UNKNOWN_ASKER = re.compile(
    r"\b(?:don['’]t|do not|never|can['’]t|cannot|won['’]t) (?:know|learn|see|be told) who\b"
    r"|\b(?:nobody|no one) (?:knows|can tell) who\b|\banonymous(?:ly)?\b|\bstrangers? to you\b"
    r"|\byou know nothing (?:of|about) (?:them|him|her|the user|the person|who)\b"
    r"|\b(?:isn['’]t|aren['’]t|not|nobody is|without being) (?:signed|logged) in\b",
    re.IGNORECASE,
)


def fits(content: Content, errors: Errors) -> None:
    """Adds an error for every message, user context and prompt that can't be of one person and one product."""
    for persona in content.personas.values():
        _voiced(persona, errors)
    for scenario in content.live:
        for message in scenario.perturbations:
            _whose(scenario, message, errors)
            _language(content, scenario, message, errors)
            _country(content, scenario, message, errors)
        _people(scenario, errors)
        _unknown(scenario, errors)


def _voiced(persona: Persona, errors: Errors) -> None:
    path = persona.document.path
    if not persona.voice:
        errors.add(path, 1, "has no '# Voice'; expected how this person writes, for whoever writes their messages")
    if not persona.first_language:
        errors.add(path, 1, "has no 'first_language'; expected it in the front matter, such as 'first_language: Twi'")


def _whose(scenario: Scenario, message: Perturbation, errors: Errors) -> None:
    if scenario.contexts and not {"for", "not for"} & message.attributes.keys():
        people = ", ".join(sorted({c.persona.slug for c in scenario.contexts}))
        errors.add(
            scenario.path,
            message.line,
            f"{message.code} doesn't say whose it can be; expected 'for:' with some of {people}, 'for: nobody', or "
            "'not for:' with those whose it can't be",
        )


def _hands(content: Content, scenario: Scenario, message: Perturbation) -> list[Persona | Voice]:
    """Everybody who may have written a message, as far as its heading says: writers only where somebody chose them."""
    voice = content.voices.get(message.attributes.get("voice", ""))
    chosen = scenario.writers(message) if {"for", "not for"} & message.attributes.keys() else []
    return [*chosen, *([voice] if voice else [])]


def _language(content: Content, scenario: Scenario, message: Perturbation, errors: Errors) -> None:
    register = message.attributes.get("register")
    if register not in OF_ANOTHER_LANGUAGE:
        return
    for hand in _hands(content, scenario, message):
        if english_alone(hand):
            errors.add(
                scenario.path,
                message.line,
                f"{message.code} is {register}, and '{hand.slug}' has English as first language; expected somebody "
                "with another, or another register",
            )


def _country(content: Content, scenario: Scenario, message: Perturbation, errors: Errors) -> None:
    country = message.attributes.get("country")
    for hand in _hands(content, scenario, message) if country else []:
        if hand.country != country:
            errors.add(
                scenario.path,
                message.line,
                f"{message.code} comes from {country}, and '{hand.slug}' lives in {hand.country or 'no country'}; "
                "expected somebody who lives there",
            )


def _people(scenario: Scenario, errors: Errors) -> None:
    """Nobody is remembered by a product that wouldn't have them."""
    front = scenario.document
    countries = front.words("countries")
    for context in scenario.contexts:
        persona = context.persona
        if "ages" in front.front and persona.age not in ages(front):
            errors.add(
                scenario.path,
                context.line,
                f"persona '{persona.slug}' is {persona.age}; the job's 'ages' are {front.text('ages')}",
            )
        if countries and persona.country not in countries:
            errors.add(
                scenario.path,
                context.line,
                f"persona '{persona.slug}' lives in {persona.country or 'no country'}; the job's 'countries' are "
                f"{', '.join(countries)}",
            )


def _unknown(scenario: Scenario, errors: Errors) -> None:
    for condition in scenario.conditions if scenario.contexts else ():
        if match := UNKNOWN_ASKER.search(system_text(scenario, condition, None)):
            people = ", ".join(sorted({f"{c.code} {c.persona.slug}" for c in scenario.contexts}))
            errors.add(
                scenario.path,
                condition.line,
                f"'# {condition.code} {condition.slug}' or its job says '{match[0]}', and stands above the profiles of "
                f"{people}; expected a prompt that doesn't say so, or messages 'for: nobody' without user contexts",
            )
