"""The condition's part of a system message, found again in what was built from it."""

from __future__ import annotations

from dataset_builder.composing.condition_text import condition_texts
from dataset_builder.reading.content_types import Content
from dataset_builder.release import Release


def test_every_conditions_text_is_found_as_it_was_authored(release: Release, shipped: Content) -> None:
    """For every condition of every scenario, what rows share is the authored text, to the byte: no job is cut, no
    safety prompt taken along.
    """
    authored = {(s.id, c.code): c.text for s in shipped.live for c in s.conditions}
    assert condition_texts(release.rows.values()) == authored


def test_a_lone_condition_is_not_guessed(release: Release) -> None:
    """One condition, seen nowhere else, can't be told from the job that follows it: it is left out, and the task then
    refuses.
    """
    rows = [r for r in release.rows.values() if (r.scenario, r.condition) == ("P1-B1-S1", "C1")]
    assert rows
    assert condition_texts(rows) == {}
