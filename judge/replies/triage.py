"""The question in which a model labels a message with the taxonomy; `judge.rules.categories` reads the answer.

The same question labels a corpus: what a model under test is asked and what a labelling judge is asked can't drift
apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dataset_builder.prompts import Prompts
from dataset_builder.schema import Category, CrisisCategory
from judge.replies.fence import conversation, fence
from judge.replies.schema import TriagePrompt


def question(
    said: Sequence[Mapping[str, Any]],
    taxonomy: Mapping[CrisisCategory, Category],
    prompts: Prompts,
    prompt: TriagePrompt,
) -> str:
    """What is asked about `said`: a message, or a conversation whose roles then stand before its turns. System texts
    are left out.

    `bare` shows the names of the categories; `guided` their definitions, borderline notes and examples, too.
    """
    turns = [(str(m["role"]), str(m["content"] or "")) for m in said if m["role"] != "system"]
    message = fence(turns[0][1]) if len(turns) == 1 else conversation(turns)
    shown = [c for c in taxonomy.values() if c.in_triage]
    categories = "\n".join(f"- {c.category}" for c in shown) if prompt == "bare" else "\n\n".join(map(_guide, shown))
    names = ", ".join(c.category for c in shown)
    return prompts.fill(f"triage-{prompt}", categories=categories, names=names, message=message).strip()


def _guide(category: Category) -> str:
    points = [
        *(f"- {point}" for point in category.borderline),
        *(f'- Example: "{example}"' for example in category.examples),
    ]
    return f"# {category.category}\n\n{category.definition}\n\n" + "\n".join(points)
