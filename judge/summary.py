"""Scorecard → a page of plain text for the terminal, which is Markdown too (`summary.md`)."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from judge.schema import Figure, Scorecard
from judge.wording import NONE, bound, inert, interval, limits, number, percent, percents, plain, smallest_sentence

WIDTH = 118


def summary(scorecard: Scorecard) -> str:
    """What a run scored, in aligned columns. Holds no reply text."""
    s = scorecard
    parts = [
        f"# HELMbench: {_cell(s.model.name)}",
        "\n".join(_bullet(line) for line in _identity(s)),
        _table(("", "composite", "sensitivity", "specificity"), _headline(s)),
        _bullet(smallest) if (smallest := smallest_sentence(s.smallest_difference)) else "",
        _table(("floor", "rate", "95 % limits", "asked for", "messages", "state"), _floors(s), left=(0, 5)),
        _table(("behavior", "score", "95 % interval", "crisis", "control", "messages", "unscored"), _behaviors(s)),
        "\n".join(_bullet(line) for line in _closing(s)),
    ]
    return "\n\n".join(p for p in parts if p) + "\n"


def _identity(s: Scorecard) -> list[str]:
    d, j = s.dataset, s.judge
    tier = f"tier {d.tier}" if d.tier else "no tier"
    lines = [
        f"dataset {_cell(d.version)}, {tier}, {d.samples} of {d.expected} samples, score_hash {_cell(d.score_hash[:12])}",
        f"judge {_cell(j.name)}{', approximate' if j.approximate else ''}: {j.by_rule} verdicts by rule, {j.by_judge} by the judge, {j.unscored} unscored",
    ]
    if s.composite.value is None:
        lines.append(_cell(s.composite_note))
    if s.repeat_sd is not None:
        lines.append(f"{s.repeats} repeats; standard deviation of the composite {number(s.repeat_sd)}")
    return lines


def _headline(s: Scorecard) -> list[tuple[str, ...]]:
    sensitivity, specificity = s.detection.sensitivity, s.detection.specificity
    return [
        ("value", number(s.composite.value), percent(sensitivity.value), percent(specificity.value)),
        ("95 % interval", interval(s.composite), percents(sensitivity), percents(specificity)),
        ("messages", *(str(f.clusters) for f in (s.composite, sensitivity, specificity))),
    ]


def _floors(s: Scorecard) -> list[tuple[str, ...]]:
    return [(f.name, percent(f.value), limits(f.low, f.high), bound(f.name, f.threshold), str(f.messages), f.state) for f in s.floors]


def _behaviors(s: Scorecard) -> list[tuple[str, ...]]:
    return [
        (f"{code} {b.title}", number(b.score.value), interval(b.score), _rate(b.crisis), _rate(b.control), str(b.score.clusters), str(b.score.unscored))
        for code, b in sorted(s.behaviors.items())
    ]


def _rate(figure: Figure | None) -> str:
    return NONE if figure is None else percent(figure.value)


def _closing(s: Scorecard) -> list[str]:
    counts = ", ".join(f"{plain(i.incident)} {i.count} ({i.crisis} crisis, {i.control} control)" for i in s.incidents)
    return [f"incidents: {counts or 'none'}", *(_cell(n) for n in s.notes)]


def _bullet(text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent="- ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _cell(text: str) -> str:
    """One line that can't end a table cell or steer a terminal."""
    return " ".join(inert(text).replace("|", "\\|").split())


def _table(head: Sequence[str], rows: list[tuple[str, ...]], left: tuple[int, ...] = (0,)) -> str:
    """A Markdown table whose columns line up as text; numbers stand to the right."""
    if not rows:
        return ""
    lines = [tuple(head), *(tuple(_cell(c) for c in row) for row in rows)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(head))]
    shown = ["| " + " | ".join(c.ljust(w) if n in left else c.rjust(w) for n, (c, w) in enumerate(zip(line, widths, strict=True))) + " |" for line in lines]
    rule = "|" + "|".join(f":{'-' * (w + 1)}" if n in left else f"{'-' * (w + 1)}:" for n, w in enumerate(widths)) + "|"
    return "\n".join([shown[0], rule, *shown[1:]])
