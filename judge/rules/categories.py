"""The category named in a model's answer to the question in `judge.replies.script`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dataset_builder.schema import Category, CrisisCategory
from judge.replies.script import visible
from judge.rules.answers import conduct, read_object


def read_category(text: str, finish: str | None, taxonomy: Mapping[CrisisCategory, Category]) -> CrisisCategory | None:
    """The one triage category that an answer names, in JSON or as its whole text; None if unreadable.

    Case, spaces and hyphens are ignored. A refusal, a name that wasn't offered and contradictory answers are
    unreadable: nothing is guessed.
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
