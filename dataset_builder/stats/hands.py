"""Who wrote the messages, as far as the content says: how many voices, of which countries and languages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dataset_builder.reading.content_types import (
    Content,
    Persona,
    Perturbation,
    Scenario,
    Voice,
    english_alone,
    first_languages,
)

SHARES = ("English alone", "another first language", "nobody in particular")


def voices(content: Content, messages: Iterable[tuple[Scenario, Perturbation]]) -> dict[str, Any]:
    """Voices, their countries and first languages, and the share of messages (%) by whose hand may have written them.

    A message of several people counts for each in part; empty where nobody has a voice or a language yet.
    """
    remembered = [p for p in content.personas.values() if p.voice or p.first_language]
    hands: list[Persona | Voice] = [*remembered, *content.voices.values()]
    if not hands:
        return {}
    return {
        "personas": sum(bool(p.voice) for p in remembered),
        "others": len(content.voices),
        "countries": len({hand.country for hand in hands if hand.country}),
        "first languages": len({language for hand in hands for language in first_languages(hand)}),
        "messages by first language (%)": _shares(content, list(messages)),
    }


def _shares(content: Content, messages: list[tuple[Scenario, Perturbation]]) -> dict[str, float]:
    counts = dict.fromkeys(SHARES, 0.0)
    for scenario, message in messages:
        hands: list[Persona | Voice] = [p for p in scenario.writers(message) if p.first_language]
        if named := content.voices.get(message.attributes.get("voice", "")):
            hands = [named]
        for hand in hands:
            counts[SHARES[0] if english_alone(hand) else SHARES[1]] += 1 / len(hands)
        counts[SHARES[2]] += not hands
    return {name: round(100 * count / max(1, len(messages)), 1) for name, count in counts.items()}


def lines(figures: dict[str, Any]) -> list[str]:
    """The same as text; nothing where there is nothing to say."""
    if not figures:
        return []
    shares = figures["messages by first language (%)"]
    return [
        f"voices: {figures['personas']} personas and {figures['others']} others, of {figures['countries']} countries "
        f"and {figures['first languages']} first languages",
        "  messages by first language: " + ", ".join(f"{share:.0f} % {name}" for name, share in shares.items()),
    ]
