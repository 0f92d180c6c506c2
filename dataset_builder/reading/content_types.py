"""The authored files as types: personas, conditions, criteria and scenarios, together as `Content`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dataset_builder.prompts import Prompts
from dataset_builder.reading.markdown import Document, Part, words
from dataset_builder.reading.refused import Refused
from dataset_builder.schema import (
    Baseline,
    CalibrationRow,
    Category,
    Check,
    CrisisCategory,
    CriterionRow,
    Helpline,
    PartRow,
    ProtocolRow,
)  # fmt: skip

CONDITION_KINDS = ("assistant", "expert", "journal", "roleplay", "companion", "service", "school", "workplace",
                   "safety_prompt")  # fmt: skip
SILENT = "Text where nothing is said to the user"  # a safety prompt's heading, for jobs whose answer is JSON
SILENT_KEYS = {"tags", "rating", "actions"}  # front matter of a scenario whose whole answer is JSON
REGISTERS = ("standard", "slang", "emoji", "typos", "non_native", "code_switching", "cultural_idiom", "formal")
DISCLOSURES = ("with_method", "without_method", "ambiguous", "buried")
PERSUASIONS = ("authority", "fiction", "guilt", "flattery", "retraction", "urgency", "permission", "bargain",
               "insistence")  # fmt: skip


@dataclass(frozen=True)
class Persona:
    """An authored person, and their ladder: rung number → (severity, what the product remembers)."""

    document: Document
    slug: str
    age: int
    gender: str
    culture: str
    country: str | None
    population: str | None
    first_language: str | None
    profile: str
    voice: str  # how they write, for the authors of their messages; no model reads it
    rungs: dict[int, tuple[int, str]]

    @property
    def age_band(self) -> str:
        bands = ((18, "13-17"), (30, "18-29"), (50, "30-49"), (65, "50-64"), (200, "65+"))
        return next(name for limit, name in bands if self.age < limit)


@dataclass(frozen=True)
class Voice:
    """A writing style for authors of messages without a persona (`for: nobody`)."""

    slug: str
    age: int
    country: str
    first_language: str
    text: str
    line: int


def first_languages(hand: Persona | Voice) -> list[str]:
    """A writer's first languages: `English, Japanese` are two."""
    return words(re.sub(r" and ", ", ", hand.first_language or ""))


def english_alone(hand: Persona | Voice) -> bool:
    """Whether English, from any country, is the only first language."""
    languages = first_languages(hand)
    return bool(languages) and all(language.split()[-1] == "English" for language in languages)


@dataclass(frozen=True)
class ConditionText:
    """Shared system instructions: a product's persona, or a safety prompt added to one. `silent`: the prompt's wording
    for jobs without a reply to the user.
    """

    document: Document
    slug: str
    kind: str
    text: str
    silent: str | None


@dataclass(frozen=True)
class Condition:
    """A condition as used in a scenario. `pairs`: the same without the safety prompt; `wording`: the job's wording."""

    code: str
    slug: str
    difficulty: int
    kind: str
    text: str
    safety_prompt: str | None
    pairs: str | None
    wording: str
    line: int


@dataclass(frozen=True)
class Context:
    """A user context as used in a scenario: one rung of a persona's ladder."""

    code: str
    persona: Persona
    severity: int
    text: str
    line: int


@dataclass(frozen=True)
class Turn:
    """One turn of a script. `text`: None for a live turn, whose checkpoints are in `checks`."""

    role: str
    text: str | None
    checks: tuple[Check, ...]
    line: int


@dataclass(frozen=True)
class Perturbation:
    """A user's message, or a whole scripted conversation, with the attributes of its heading."""

    code: str
    severity: int
    turns: tuple[Turn, ...]
    attributes: dict[str, str]
    line: int

    @property
    def polarity(self) -> str:
        return "crisis" if self.severity > 0 else "control"

    @property
    def words(self) -> str:
        """The user's full text, for near-duplicate checks."""
        return "\n".join(t.text for t in self.turns if t.role == "user" and t.text)


@dataclass(frozen=True)
class Scenario:
    """One scenario file, parsed and with its references resolved."""

    document: Document
    id: str
    kind: str
    parts: dict[str, Part]
    conditions: tuple[Condition, ...]
    contexts: tuple[Context, ...]
    perturbations: tuple[Perturbation, ...]

    @property
    def path(self) -> Path:
        return self.document.path

    @property
    def withdrawn(self) -> bool:
        return "withdrawn" in self.document.front

    @property
    def family(self) -> str | None:
        """Why its cases are hard; None outside the hard part."""
        return self.document.text("family") or None

    @property
    def behavior(self) -> str:
        return self.id.rsplit("-", 1)[0]

    def job(self, wording: str) -> str:
        """The job's text for the model: `# Scenario`, or the `# Wording N` that a condition names."""
        return self.prose("Scenario" if wording == "1" else f"Wording {wording}")

    def writers(self, message: Perturbation) -> list[Persona]:
        """A message's possible writers: the personas in `for`, or all except those in `not for`, or all; none for
        `for: nobody`.
        """
        people = list({c.persona.slug: c.persona for c in self.contexts}.values())
        for key, wanted in (("for", True), ("not for", False)):
            if key in message.attributes:
                named = words(message.attributes[key])
                return [p for p in people if (p.slug in named) == wanted]
        return people

    def criteria(self, key: str) -> list[tuple[str, str]]:
        """(criterion, behavior) pairs under `graded`, `crisis` or `control`; behavior defaults to the file's."""
        pairs = [(*entry.split(), self.behavior) for entry in self.document.words(key)]
        return [(pair[0], pair[1]) for pair in pairs]

    def category(self, message: Perturbation) -> str:
        """The message's crisis category, else the scenario's; no_crisis for a control."""
        if message.severity < 0:
            return "no_crisis"
        return message.attributes.get("crisis_category", self.document.text("crisis_category"))

    def second_category(self, message: Perturbation) -> str | None:
        """A crisis's second category, if it has one."""
        own = message.attributes.get("crisis_category_2") or self.document.text("crisis_category_2")
        return (own or None) if message.severity > 0 else None

    def prose(self, name: str) -> str:
        return self.parts[name].text if name in self.parts else ""


def ages(document: Document) -> range:
    """The ages in a scenario's `ages: 14-19`; empty if they can't be read."""
    match = re.fullmatch(r"([0-9]{1,3})-([0-9]{1,3})", document.text("ages"))
    return range(int(match[1]), int(match[2]) + 1) if match else range(0)


@dataclass(frozen=True)
class Criterion:
    """A criterion file. `gradings` (graded kind) maps mild, graver, control → outcome → label."""

    document: Document
    row: CriterionRow
    gradings: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])


@dataclass(frozen=True)
class PartFile:
    """A part's file. `voice`: the name of its voice."""

    document: Document
    row: PartRow
    voice: str


@dataclass(frozen=True)
class Content:
    """Everything under `content/`."""

    root: Path
    version: str
    released: str
    canary: str
    tiers: dict[str, Any]
    scoring: dict[str, Any]
    baselines: dict[str, Baseline]
    personas: dict[str, Persona]
    voices: dict[str, Voice]
    conditions: dict[str, ConditionText]
    criteria: dict[str, Criterion]
    scenarios: tuple[Scenario, ...]
    helplines: tuple[Helpline, ...]
    calibration: tuple[CalibrationRow, ...]
    taxonomy: dict[CrisisCategory, Category]
    protocols: dict[CrisisCategory, ProtocolRow]
    rating_calibration: tuple[CalibrationRow, ...]
    refused: Refused
    prompts: Prompts
    parts: tuple[PartFile, ...] = ()
    talk_criteria: tuple[CriterionRow, ...] = ()
    additions: str | None = None  # a sentence about its private additions; None: the published content

    @property
    def live(self) -> list[Scenario]:
        """The scenarios that aren't withdrawn."""
        return [s for s in self.scenarios if not s.withdrawn]
