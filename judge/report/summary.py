"""Scorecard → a page of plain text for the terminal, which is Markdown too (`summary.md`)."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from judge.report.wording import NONE, bound, coefficient, inert, interval, limits, measured_criteria, number, percent, percents, plain, smallest_sentence
from judge.schema import CriterionAgreement, Figure, Scorecard

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
        *_judge(s),
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
    if s.model.condition:
        lines.append(f"not comparable with other runs: {_cell(s.model.condition.file)} ({s.model.condition.sha256[:12]}) stood in the place of every condition")
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


def _judge(s: Scorecard) -> list[str]:
    """What is known of the judge's agreement, by criterion, and of a panel's members."""
    j = s.judge
    parts: list[str] = []
    if j.panel is not None:
        p, known = j.panel, {a.judge: coefficient(a.overall.kappa) for a in j.agreement if a.overall}
        members = [
            (m.judge, *map(str, (m.repeats, m.given, m.unscored, m.dissents)), coefficient(m.self_agreement), known.get(m.judge, "not measured"))
            for m in p.members
        ]
        alpha = f"Krippendorff's α {coefficient(p.alpha)}, ordinal {coefficient(p.alpha_ordinal)}"
        parts.append(_table(("member", "repeats", "labels", "unscored", "dissents", "self-agreement", "κ"), members))
        parts.append(_bullet(f"the members gave one label to {p.unanimous} of {p.verdicts} verdicts; {p.ties} ties went to the worse label; {alpha}"))
    whole = j.agreement[0] if j.agreement else None
    if whole is not None and whole.overall is not None:
        rows = [_agreement(a, n) for a, n in measured_criteria(j) if n]
        head = ("the judge, by criterion", "verdicts", "replies", "κ", "κ, agreed replies", "raw", "bias", "recall of FAIL")
        parts += [_table(head, [*rows, _agreement(whole.overall, j.by_judge)]), _bullet(whole.note)]
    return parts


def _agreement(a: CriterionAgreement, verdicts: int) -> tuple[str, ...]:
    name = a.criterion or "all criteria"
    if a.reason:
        return name, str(verdicts), "0", *[NONE] * 4, a.reason
    return name, str(verdicts), str(a.kappa.n), *(coefficient(m) for m in (a.kappa, a.kappa_agreed, a.raw, a.bias, a.fail_recall))


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


def _table(head: Sequence[str], rows: Sequence[tuple[str, ...]], left: tuple[int, ...] = (0,)) -> str:
    """A Markdown table whose columns line up as text; numbers stand to the right."""
    if not rows:
        return ""
    lines = [tuple(head), *(tuple(_cell(c) for c in row) for row in rows)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(head))]
    shown = ["| " + " | ".join(c.ljust(w) if n in left else c.rjust(w) for n, (c, w) in enumerate(zip(line, widths, strict=True))) + " |" for line in lines]
    rule = "|" + "|".join(f":{'-' * (w + 1)}" if n in left else f"{'-' * (w + 1)}:" for n, w in enumerate(widths)) + "|"
    return "\n".join([shown[0], rule, *shown[1:]])
