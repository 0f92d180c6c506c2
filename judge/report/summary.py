"""Scorecard → a page of plain text for the terminal, which is Markdown too (`summary.md`)."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence

from helmbench_common.formats.inert import clip
from helmbench_common.tables import markdown_table, one_line
from judge.report.first import BY_RULE, MEANS, policies_said, score_parts, sentence, trusted
from judge.schema import (
    Appropriate,
    Appropriateness,
    Behavior,
    CriterionAgreement,
    Figure,
    Hard,
    Judge,
    PeopleAgreement,
    Scorecard,
    Triage,
)
from judge.wording import (
    FAMILIES,
    HEADLINES,
    NONE,
    bound,
    coefficient,
    given_labels,
    hundredths,
    interval,
    limits,
    lost,
    lost_interval,
    measured_criteria,
    mode_title,
    number,
    people_notes,
    people_title,
    percent,
    percents,
    plain,
    rating_sentence,
    share_read,
    signed,
    smallest_sentence,
    without_reading,
)

EARNING = (
    *("what earns", "score", "95 % interval", "in danger", "in none", "messages", "unscored"),
    "best without reading, of 100",
)
COSTS = ("what only costs", "lost", "95 % interval", "in danger", "in none", "messages", "unscored")
HARD_RATES = ("by family", "danger seen", "handed over, supported", "left alone", "task done", "messages")
RATED = (
    *("appropriateness", "rated 1", "95 % interval", "rated 1–2", "2", "3", "4", "5", "mean", "messages", "ratings"),
    "unscored",
)
JUDGED = (
    *("the judge, by criterion", "verdicts", "replies", "κ", "κ, agreed replies", "raw", "bias", "recall of FAIL"),
)
PEOPLE = (
    *("how far this judge agrees with people", "judge", "items", "left unscored", "κ with people"),
    *("people among themselves", "κ on fewer labels", "people"),
)
WIDTH = 118
# What makes a line in the middle of a paragraph something else, where it was only wrapped.
BEGINS = re.compile(r"(?m)^(  )(?=#{1,6}(?: |$)|>|[-+*](?: |$)|[-=]+ *$|~~~|```)")
MISSES = 10  # high-risk misses that are named; scorecard.json has all


def summary(scorecard: Scorecard) -> str:
    """What a run scored, in aligned columns. Holds no reply text."""
    s = scorecard
    parts = [
        f"# HELMbench: {one_line(clip(s.model.name))}",
        _filled(sentence(s)) if s.dataset.samples else "",
        "\n".join(_bullet(line) for line in _identity(s)),
        *(_benchmark(s) if s.dataset.samples else ()),
        *(_appropriateness(s.appropriateness) if s.appropriateness else ()),
        *_triage(s.triage),
        *_judge(s),
        "\n".join(_bullet(line) for line in _closing(s)),
    ]
    return "\n\n".join(p for p in parts if p) + "\n"


def _benchmark(s: Scorecard) -> list[str]:
    """Headline, floors and scores; a run over messages that stand alone has none of them."""
    parts = score_parts(s)
    bounds = ("unscored as fail, as pass",) if s.judge.unscored else ()
    smallest = smallest_sentence(s.smallest_difference)
    return [
        markdown_table(("figure, of 100", "value", "95 % interval", *bounds, "messages"), _headline(s)),
        "\n".join(_bullet(f"{name}: {means}") for name, means in (*_meanings(s), _policies(s))),
        _bullet(smallest) if smallest else "",
        markdown_table(("floor", "rate", "95 % limits", "asked for", "messages", "state"), _floors(s)),
        markdown_table(EARNING, [_earning(c, b) for p in parts for c, b in p.earning]),
        markdown_table(COSTS, [_cost(c, b) for p in parts for c, b in p.costs]),
        *(_hard(s.hard) if s.hard else ()),
        "\n".join(_bullet(line) for line in _arms(s)),
    ]


def _meanings(s: Scorecard) -> list[tuple[str, str]]:
    """What 0 and 100 are, of each headline that the run has."""
    return [(HEADLINES[name].lower(), means) for name, means in MEANS.items() if name in s.headlines]


def _policies(s: Scorecard) -> tuple[str, str]:
    """The best of the trivial policies, and who judged them."""
    said = policies_said(s)
    return said.title.lower(), f"{said.value[0]}. {said.lines[0]} {BY_RULE if s.references else ''}".rstrip()


def _arms(s: Scorecard) -> list[str]:
    """What the safety prompt does to the job: P4-B1 is scored under it, and this is the difference that it makes."""
    return [
        f"P4-B1, points with the safety prompt less points without it: {signed(a.difference.value)} "
        f"({interval(a.difference)})"
        for a in s.arms
        if a.behavior == "P4-B1"
    ]


def _identity(s: Scorecard) -> list[str]:
    d, j = s.dataset, s.judge
    tier = f"tier {d.tier}" if d.tier else "no tier"
    lines = [
        f"dataset {d.version}, {tier}, {d.samples} of {d.expected} samples, score_hash {d.score_hash[:12]}",
        f"judge {j.name}{', approximate' if j.approximate else ''}: {j.by_rule} verdicts by rule, "
        f"{j.by_judge} by the judge, {j.unscored} unscored",
    ]
    if read := share_read(j):
        lines.append(read)
    if j.by_judge:
        said = trusted(j)
        lines.append(f"the judge: {', '.join(said.value)}. {' '.join(said.lines)}".rstrip())
    if s.model.condition:
        lines.append(
            f"not comparable with other runs: {clip(s.model.condition.file)} "
            f"({s.model.condition.sha256[:12]}) stood in the place of every condition"
        )
    if s.composite.value is None:
        lines.append(s.composite_note)
    if s.repeat_sd is not None:
        lines.append(f"{s.repeats} repeats; standard deviation of the composite {number(s.repeat_sd)}")
    return lines


def _headline(s: Scorecard) -> list[tuple[str, ...]]:
    """The three figures and the composite, in points, and detection in percent."""
    points = [
        *((HEADLINES[n].lower(), s.headlines.get(n, Figure(value=None))) for n in HEADLINES),
        ("composite", s.composite),
    ]
    rates = [("sensitivity", s.detection.sensitivity), ("specificity", s.detection.specificity)]
    return [
        *(_figure(name, f, number, interval, bool(s.judge.unscored)) for name, f in points),
        *(_figure(name, f, percent, percents, bool(s.judge.unscored)) for name, f in rates),
    ]


def _figure(
    name: str, f: Figure, show: Callable[[float | None], str], ends: Callable[[Figure], str], bounds: bool
) -> tuple[str, ...]:
    """A line of the headline; `bounds`: the figure if every unscored verdict were a fail, and if every one were a
    pass.
    """
    known = f.all_fail is not None and f.all_pass is not None
    bound = (f"{show(f.all_fail)} to {show(f.all_pass)}" if known else NONE,) if bounds else ()
    return name, show(f.value), ends(f), *bound, str(f.clusters)


def _floors(s: Scorecard) -> list[tuple[str, ...]]:
    return [
        (f.name, percent(f.value), limits(f.low, f.high), bound(f.name, f.threshold), str(f.messages), f.state)
        for f in s.floors
    ]


def _earning(code: str, b: Behavior) -> tuple[str, ...]:
    best = without_reading(b.anchor, b.baseline)
    return (
        _name(code, b),
        number(b.score.value),
        interval(b.score),
        _rate(b.crisis),
        _rate(b.control),
        *_counts(b),
        best,
    )


def _hard(h: Hard) -> list[str]:
    """The hard part by itself: its scores, and where each family costs."""
    scores = [*((HEADLINES[name].lower(), f) for name, f in h.headlines.items()), ("composite", h.composite)]
    rates = [(f.seen, f.handed_over, f.left_alone, f.helped) for f in h.families]
    alone = "; ".join(f"{name} {number(f.value)} ({interval(f)})" for name, f in scores)
    return [
        _bullet(f"the hard part alone, of 100: {alone}"),
        markdown_table(
            HARD_RATES,
            [
                (FAMILIES[f.family].title, *(_rate(r) for r in own), str(f.messages))
                for f, own in zip(h.families, rates, strict=True)
            ],
        ),
    ]


def _cost(code: str, b: Behavior) -> tuple[str, ...]:
    return _name(code, b), lost(b.score.value), lost_interval(b.score), _rate(b.crisis), _rate(b.control), *_counts(b)


def _name(code: str, b: Behavior) -> str:
    return f"{code} {b.title}" if code else f"tasks: {b.title.lower()}"


def _counts(b: Behavior) -> tuple[str, str]:
    return str(b.score.clusters), str(b.score.unscored)


def _appropriateness(a: Appropriateness) -> list[str]:
    """Ratings of replies to messages that stand alone: harm first, the mean last."""
    rows = [_rated("all messages", a.overall), *(_rated(plain(name), own) for name, own in a.categories.items())]
    failing = [
        (mode_title(m), percent(m.rate.value), percents(m.rate), str(m.rate.n), str(m.rate.clusters))
        for m in a.failure_modes
    ]
    if a.probes:
        named = (
            ("danger missed", a.probes.missed),
            ("treated as a crisis without one", a.probes.escalated),
            ("both halves right", a.probes.both_right),
        )
        failing += [(f"probes: {name}", percent(f.value), percents(f), str(f.n), str(f.clusters)) for name, f in named]
    judge = f"{a.judge.name}{', approximate' if a.judge.approximate else ''}"
    steady = (
        ""
        if a.rating_sd is None
        else f"; its own runs agree by {coefficient(a.self_agreement)}, mean SD {hundredths(a.rating_sd)}"
    )
    notes = [
        f"{a.runs} runs of the model × {a.judge_runs} of {judge}{steady}",
        rating_sentence(a),
        *a.notes,
    ]
    return [
        markdown_table(RATED, rows),
        markdown_table(("way to fail", "share", "95 % interval", "replies", "messages"), failing),
        "\n".join(_bullet(note) for note in notes if note),
    ]


def _rated(name: str, a: Appropriate) -> tuple[str, ...]:
    shares = [percent(share) for share in a.bins[1:]] or [NONE] * 4
    return (
        name,
        percent(a.harmful.value),
        percents(a.harmful),
        percent(a.inappropriate.value),
        *shares,
        hundredths(a.mean.value),
        *map(str, (a.messages, a.ratings, a.unscored)),
    )


def _triage(prompts: Sequence[Triage]) -> list[str]:
    """How often the model's own labels are the authored ones, with names only and with definitions; then what it took
    for what, by prompt.
    """
    if not prompts:
        return []
    names = list(dict.fromkeys(name for t in prompts for name in t.recall))
    figures = [("all messages", *(_labelled(t.accuracy) for t in prompts), str(prompts[0].accuracy.clusters))]
    figures += [
        (
            plain(n),
            *(_labelled(t.recall.get(n)) for t in prompts),
            str(max(t.recall[n].clusters for t in prompts if n in t.recall)),
        )
        for n in names
    ]
    figures.append(("Cohen's κ", *(coefficient(t.kappa) for t in prompts), ""))
    parts = [markdown_table(("triage: share labelled rightly", *(t.prompt for t in prompts), "messages"), figures)]
    for t in prompts:
        given = given_labels(t)
        table = [(plain(a), *(str(row.get(g, 0)) for g in given)) for a, row in t.confusion.items()]
        parts += [markdown_table((f"{t.prompt}: authored ↓ given →", *map(plain, given)), table), _bullet(_misses(t))]
    return parts


def _labelled(figure: Figure | None) -> str:
    return NONE if figure is None or figure.value is None else f"{percent(figure.value)} [{percents(figure)}]"


def _misses(t: Triage) -> str:
    """What a reader must know of one prompt's labels, the gravest misses first."""
    partial = "" if t.complete else "; not every message of the tier was asked"
    lost = f"; {t.accuracy.unscored} never answered" if t.accuracy.unscored else ""
    missed = f"{len(t.high_risk_misses)} messages of a high-risk category were called no crisis"
    named = (
        f": {', '.join(t.high_risk_misses[:MISSES])}{' …' if len(t.high_risk_misses) > MISSES else ''}"
        if t.high_risk_misses
        else ""
    )
    return f"{t.prompt}: {t.unread} of {t.accuracy.n} answers could not be read{lost}{partial}; {missed}{named}"


def _judge(s: Scorecard) -> list[str]:
    """What is known of the judge's agreement, by criterion, and of a panel's members."""
    j = s.judge
    parts: list[str] = []
    if j.panel is not None:
        p, known = j.panel, {a.judge: coefficient(a.overall.kappa) for a in j.agreement if a.overall}
        members = [
            (
                m.judge,
                *map(str, (m.repeats, m.given, m.unscored, m.dissents)),
                coefficient(m.self_agreement),
                known.get(m.judge, "not measured"),
            )
            for m in p.members
        ]
        alpha = f"Krippendorff's α {coefficient(p.alpha)}, ordinal {coefficient(p.alpha_ordinal)}"
        parts.append(
            markdown_table(("member", "repeats", "labels", "unscored", "dissents", "self-agreement", "κ"), members)
        )
        parts.append(
            _bullet(
                f"the members gave one label to {p.unanimous} of {p.verdicts} verdicts; {p.ties} ties went "
                f"to the worse label; {alpha}"
            )
        )
    whole = j.agreement[0] if j.agreement else None
    if whole is not None and whole.overall is not None:
        rows = [_agreement(a, n) for a, n in measured_criteria(j) if n]
        parts += [
            markdown_table(JUDGED, [*rows, _agreement(whole.overall, sum(j.by_criterion.values()))]),
            _bullet(whole.note),
        ]
    return [*parts, *_people(j)]


def _people(j: Judge) -> list[str]:
    """How far the judge agrees with people, by set, with their own agreement beside it; or that nobody knows."""
    notes = [_bullet(note) for note in people_notes(j)]
    wide = len(PEOPLE) if any(p.coarse for p in j.people) else len(PEOPLE) - 2
    return [markdown_table(PEOPLE[:wide], [_set(p)[:wide] for p in j.people]), *notes]


def _set(p: PeopleAgreement) -> tuple[str, ...]:
    if p.reason:
        return people_title(p), p.judge, str(p.items), NONE, p.reason, coefficient(p.people), NONE, NONE
    coarse = (p.coarse.kappa, p.coarse.people) if p.coarse else (None, None)
    left = percent(1 - p.decided / p.items) if p.items else NONE
    return people_title(p), p.judge, str(p.items), left, *(coefficient(m) for m in (p.kappa, p.people, *coarse))


def _agreement(a: CriterionAgreement, verdicts: int) -> tuple[str, ...]:
    name = a.criterion or "all criteria"
    if a.reason:
        return name, str(verdicts), "0", *[NONE] * 4, a.reason
    return (
        name,
        str(verdicts),
        str(a.kappa.n),
        *(coefficient(m) for m in (a.kappa, a.kappa_agreed, a.raw, a.bias, a.fail_recall)),
    )


def _rate(figure: Figure | None) -> str:
    return NONE if figure is None else percent(figure.value)


def _closing(s: Scorecard) -> list[str]:
    counts = ", ".join(f"{plain(i.incident)} {i.count} ({i.crisis} crisis, {i.control} control)" for i in s.incidents)
    return [f"incidents: {counts or 'none'}", *s.notes]


def _filled(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def _bullet(text: str) -> str:
    lines = textwrap.fill(
        one_line(text),
        WIDTH,
        initial_indent="- ",
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return BEGINS.sub(r"\1\\", lines)
