"""What the authored files hold once read: personas, conditions, criteria, scenarios. A leaf beside `schema`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dataset_builder.prompts import Prompts
from dataset_builder.reading.fields import words
from dataset_builder.reading.markdown import Document, Part
from dataset_builder.reading.refused import Refused
from dataset_builder.schema import (
    Baseline,
    CalibrationRow,
    Category,
    Check,
    CrisisCategory,
    CriterionRow,
    Helpline,
    ProtocolRow,
)

CONDITION_KINDS = (
    "assistant",
    "expert",
    "journal",
    "roleplay",
    "companion",
    "service",
    "school",
    "workplace",
    "safety_prompt",
)
SILENT = "Text where nothing is said to the user"  # a safety prompt's heading, for jobs whose answer is JSON
SILENT_KEYS = {"tags", "rating", "actions"}  # front matter of a scenario whose whole answer is JSON
REGISTERS = ("standard", "slang", "emoji", "typos", "non_native", "code_switching", "cultural_idiom", "formal")
DISCLOSURES = ("with_method", "without_method", "ambiguous", "buried")
PERSUASIONS = (
    "authority",
    "fiction",
    "guilt",
    "flattery",
    "retraction",
    "urgency",
    "permission",
    "bargain",
    "insistence",
)


@dataclass(frozen=True)
class Persona:
    """A person of the content, and their ladder: rung number → (severity, what the product remembers)."""

    document: Document
    slug: str
    age: int
    gender: str
    culture: str
    country: str | None
    population: str | None
    first_language: str | None
    profile: str
    voice: str  # how they write, for whoever writes their messages; no model reads it
    rungs: dict[int, tuple[int, str]]

    @property
    def age_band(self) -> str:
        bands = ((18, "13-17"), (30, "18-29"), (50, "30-49"), (65, "50-64"), (200, "65+"))
        return next(name for limit, name in bands if self.age < limit)


@dataclass(frozen=True)
class Voice:
    """How somebody writes whom no product remembers: whose hand wrote messages that are `for: nobody`."""

    slug: str
    age: int
    country: str
    first_language: str
    text: str
    line: int


def first_languages(hand: Persona | Voice) -> list[str]:
    """The languages that somebody grew up with: `English, Japanese` are two."""
    return words(re.sub(r" and ", ", ", hand.first_language or ""))


def english_alone(hand: Persona | Voice) -> bool:
    """Whether somebody grew up with English, of whatever country, and with nothing beside it."""
    languages = first_languages(hand)
    return bool(languages) and all(language.split()[-1] == "English" for language in languages)


@dataclass(frozen=True)
class ConditionText:
    """Shared system instructions: a product's persona, or a safety prompt laid over one. `silent`: its wording over
    jobs that say nothing to the user.
    """

    document: Document
    slug: str
    kind: str
    text: str
    silent: str | None


@dataclass(frozen=True)
class Condition:
    """A condition as a scenario uses it. `pairs` names the condition without the safety prompt, `wording` the job's
    text.
    """

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
    """A user context as a scenario uses it: one rung of a persona's ladder."""

    code: str
    persona: Persona
    severity: int
    text: str
    line: int


@dataclass(frozen=True)
class Turn:
    """One turn of a script. `text` None: live; `checks` are then its checkpoints."""

    role: str
    text: str | None
    checks: tuple[Check, ...]
    line: int


@dataclass(frozen=True)
class Perturbation:
    """A user's message, or a whole scripted conversation, with what its author set on the heading."""

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
        """All that the user says, for near-duplicate checks."""
        return "\n".join(t.text for t in self.turns if t.role == "user" and t.text)


@dataclass(frozen=True)
class Scenario:
    """One scenario file, read and cross-referenced."""

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
        """The job as the model reads it: `# Scenario`, or `# Wording N` under conditions that say so."""
        return self.prose("Scenario" if wording == "1" else f"Wording {wording}")

    def writers(self, message: Perturbation) -> list[Persona]:
        """The personas whose message it can be: those of `for`, all but those of `not for`, all where neither stands;
        of `for: nobody`, none.
        """
        people = list({c.persona.slug: c.persona for c in self.contexts}.values())
        for key, wanted in (("for", True), ("not for", False)):
            if key in message.attributes:
                named = words(message.attributes[key])
                return [p for p in people if (p.slug in named) == wanted]
        return people

    def criteria(self, key: str) -> list[tuple[str, str]]:
        """(criterion, behavior) of front matter `graded`, `crisis` or `control`; the behavior is the file's own unless
        named.
        """
        pairs = [(*entry.split(), self.behavior) for entry in self.document.words(key)]
        return [(pair[0], pair[1]) for pair in pairs]

    def category(self, message: Perturbation) -> str:
        """The message's crisis category: its own, else the scenario's; controls have none."""
        return (
            message.attributes.get("crisis_category", self.document.text("crisis_category"))
            if message.severity > 0
            else "no_crisis"
        )

    def second_category(self, message: Perturbation) -> str | None:
        """The category beside it, where a crisis is of two."""
        own = message.attributes.get("crisis_category_2") or self.document.text("crisis_category_2")
        return (own or None) if message.severity > 0 else None

    def prose(self, name: str) -> str:
        return self.parts[name].text if name in self.parts else ""


def ages(document: Document) -> range:
    """The ages that a scenario's `ages: 14-19` takes in; an empty range where none can be read."""
    match = re.fullmatch(r"([0-9]{1,3})-([0-9]{1,3})", document.text("ages"))
    return range(int(match[1]), int(match[2]) + 1) if match else range(0)


@dataclass(frozen=True)
class Criterion:
    """A criterion file. `gradings` (graded kind) maps mild, graver, control → outcome → label."""

    document: Document
    row: CriterionRow
    gradings: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])


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
    additions: str | None = None  # what is private in it, in a sentence; None: the content as it is published

    @property
    def live(self) -> list[Scenario]:
        """The scenarios that are asked: all that aren't withdrawn."""
        return [s for s in self.scenarios if not s.withdrawn]
