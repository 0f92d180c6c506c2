"""The inverse of `compose.system_text`: finds the condition's text in a built sample's system message.

A product team's system prompt replaces that text (docs/running.md). Rows store the whole message, so the parts are
found by comparison: conditions of a scenario with the same job wording end in the same paragraphs, the job.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from dataset_builder.schema import ABOUT_USER, Row

BREAK = "\n\n"


def condition_texts(rows: Iterable[Row]) -> dict[tuple[str, str], str]:
    """(scenario, condition) → the text that begins every system message of that condition, without the safety prompt.

    If all samples of a wording have one condition, its text is looked up in the other scenarios. If it isn't there,
    the result omits the pair, because a guess could cut a job in two.
    """
    rows = list(rows)
    wordings: dict[tuple[str, str | None], dict[tuple[str, str], set[tuple[str, ...]]]] = defaultdict(
        lambda: defaultdict(set)
    )
    for row in rows:
        wordings[row.scenario, row.wording][row.scenario, row.condition].add(_paragraphs(row))
    found: dict[tuple[str, str], str] = {}
    for conditions in wordings.values():
        everything = [text for texts in conditions.values() for text in texts]
        job = len(_shared_start([text[::-1] for text in everything]))  # paragraphs at the end
        heads = {key: _shared_start([text[: len(text) - job] for text in texts]) for key, texts in conditions.items()}
        if len(set(heads.values())) > 1:
            found |= {key: BREAK.join(head) for key, head in heads.items()}
    known = sorted(set(found.values()), key=len, reverse=True)
    for conditions in wordings.values():
        for key in conditions.keys() - found.keys():
            start = BREAK.join(_shared_start(list(conditions[key]))) + BREAK
            if longest := next((text for text in known if start.startswith(text + BREAK)), None):
                found[key] = longest
    # A condition with the safety prompt is its pair's text plus that prompt.
    codes = {row.id: row.condition for row in rows}
    pairs = {
        (row.scenario, row.condition): (row.scenario, codes[row.pair_of])
        for row in rows
        if row.arm == "with" and row.pair_of in codes
    }
    return found | {key: found[pair] for key, pair in pairs.items() if pair in found}


def _paragraphs(row: Row) -> tuple[str, ...]:
    """The system message without the user context, split at blank lines."""
    text = row.messages[0].content or ""
    return tuple((text[: text.rindex(ABOUT_USER)] if row.user_context else text).split(BREAK))


def _shared_start(texts: list[tuple[str, ...]]) -> tuple[str, ...]:
    shortest = min(texts, key=len)
    same = next((n for n, part in enumerate(shortest) if any(text[n] != part for text in texts)), len(shortest))
    return shortest[:same]
