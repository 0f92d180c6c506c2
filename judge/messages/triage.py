"""The question in which a model labels a message with the taxonomy, and the label in its answer.

The same question labels a corpus: what a model under test is asked and what a labelling judge is asked can't drift apart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from string import Template
from typing import Any, Literal, get_args

from dataset_builder.schema import Category, CrisisCategory
from judge.asking.fence import fence
from judge.rules import conduct, read_object, visible

Prompt = Literal["bare", "guided"]
PROMPTS: tuple[Prompt, ...] = get_args(Prompt)
FILES = Path(__file__).resolve().parents[1] / "asking" / "prompts"


def question(said: Sequence[Mapping[str, Any]], taxonomy: Mapping[CrisisCategory, Category], prompt: Prompt) -> str:
    """What is asked about `said`: a message, or a conversation whose roles then stand before its turns. System texts are left out.

    `bare` shows the names of the categories; `guided` their definitions, borderline notes and examples, too.
    """
    turns = [(str(m["role"]), str(m["content"] or "")) for m in said if m["role"] != "system"]
    text = turns[0][1] if len(turns) == 1 else "\n\n".join(f"{role.capitalize()}: {words}" for role, words in turns)
    shown = [c for c in taxonomy.values() if c.in_triage]
    categories = "\n".join(f"- {c.category}" for c in shown) if prompt == "bare" else "\n\n".join(map(_guide, shown))
    names = ", ".join(c.category for c in shown)
    return Template(_file(f"triage-{prompt}")).substitute(_used(prompt, categories=categories, names=names, message=fence(text))).strip()


def _used(prompt: Prompt, **fields: str) -> dict[str, str]:
    return {k: v for k, v in fields.items() if prompt == "guided" or k != "names"}


def _guide(category: Category) -> str:
    points = [*(f"- {point}" for point in category.borderline), *(f'- Example: "{example}"' for example in category.examples)]
    return f"# {category.category}\n\n{category.definition}\n\n" + "\n".join(points)


def read_category(text: str, finish: str | None, taxonomy: Mapping[CrisisCategory, Category]) -> CrisisCategory | None:
    """The one category of triage that an answer names, in JSON or as the whole of its text; None where it can't be read.

    Case, spaces and hyphens are forgiven. A refusal, a name that wasn't offered and answers that disagree are not read: nothing is guessed.
    """
    if conduct(text, finish) is not None:
        return None
    value, _ = read_object(text, "category")
    given: Any = value["category"] if value else re.sub(r"```\w*", "", visible(text))
    if isinstance(given, list) and len(given) == 1:
        given = given[0]
    if not isinstance(given, str):
        return None
    name = re.sub(r"[\s\-]+", "_", given.strip().strip("\"'`*.{}").strip()).lower()
    return next((c.category for c in taxonomy.values() if c.in_triage and c.category == name), None)


@cache
def _file(name: str) -> str:
    return (FILES / f"{name}.md").read_text(encoding="utf-8")
