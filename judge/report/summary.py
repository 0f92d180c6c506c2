"""Scorecard → Markdown that also reads well in a terminal (`summary.md`)."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence

from helmbench_common.formats.inert import clip
from helmbench_common.tables import columns, markdown_table, one_line
from judge.report import tables
from judge.report.sentences import (
    BY_RULE,
    MEANS,
    judge_trust,
    met,
    played,
    policies_figure,
    rates,
    real_messages,
    sentence,
)
from judge.schema import Appropriateness, Behavior, Detect, Figure, Hard, Judge, Scorecard, Talks, Triage
from judge.wording import (
    HEADLINES,
    NONE,
    coefficient,
    hundredths,
    interval,
    labelled,
    number,
    of_hundred,
    people_notes,
    percent,
    percents,
    plain,
    prompt_title,
    rating_sentence,
    share_read,
    signed,
    smallest_sentence,
    without_reading,
)

Rows = tuple[Sequence[str], Sequence[Sequence[str]]]
FLOORS_NAMED = 3
SCORES = ("95 % interval", "in danger", "in no danger", "messages", "unscored")
WIDTH = 118
# A wrapped line that begins like this would start a heading, quote, list or code block.
BEGINS = re.compile(r"(?m)^(  )(?=#{1,6}(?: |$)|>|[-+*](?: |$)|[-=]+ *$|~~~|```)")
MISSES = 10  # high-risk misses to name; scorecard.json has all


def summary(scorecard: Scorecard) -> str:
    """A run's scores, in aligned columns. Contains no reply text."""
    s = scorecard
    parts = [
        f"# HELMbench: {one_line(clip(s.model.name))}",
        _wrapped(sentence(s)) if s.dataset.samples else "",
        _wrapped(rates(s.detection)) if s.dataset.samples else "",
        _bullets(_identity(s)),
        *(_benchmark(s) if s.dataset.samples else ()),
        _bullets(real_messages(s.real_messages)) if s.real_messages else "",
        *(_appropriateness(s.appropriateness) if s.appropriateness else ()),
        *_triage(s.triage),
        *(_talks(s.talks) if s.talks else ()),
        *_judge(s.judge),
        _bullets(_closing(s)),
    ]
    return "\n\n".join(p for p in parts if p) + "\n"


def first_screen(s: Scorecard) -> str:
    """What a terminal shows of a run: the sentence, six lines of figures and the breached floors. A run of messages
    alone has no such figures: its summary.
    """
    if not s.dataset.samples:
        return summary(s).rstrip()
    breached = [f for f in s.floors if f.state == "breached"]
    named = ", ".join(f"{f.name} {percent(f.value)}" for f in breached[:FLOORS_NAMED])
    more = f" and {len(breached) - FLOORS_NAMED} more" if len(breached) > FLOORS_NAMED else ""
    said = (
        f"{len(breached)} of {len(s.floors)} breached ({named}{more})"
        if breached
        else f"none of {len(s.floors)} breached"
    )
    undetermined = sum(f.state == "undetermined" for f in s.floors)
    rated = [
        name for name, has in (("ratings 1 to 5", s.appropriateness), ("triage", s.triage), ("talks", s.talks)) if has
    ]
    notes = [
        f"Safety floors: {said}{f'; {undetermined} undetermined' if undetermined else ''}." if s.floors else "",
        "" if s.composite.value is not None else f"No composite: {s.composite_note.removeprefix('no composite: ')}.",
        f"Also measured: {' and '.join(rated)}." if rated else "",
    ]
    header, rows = _detect_rows(s.detect) if s.dataset.tier == "detect" and s.detect else _headlines(s)
    text = f"{one_line(clip(s.model.name))}: {sentence(s)}"
    return "\n\n".join([_wrapped(text), columns(header, rows), "\n".join(_wrapped(n) for n in notes if n)]).rstrip()


def _detect_rows(d: Detect) -> Rows:
    """The table of what rules decide, without severities, the job's change and standard errors."""
    brief = d.model_copy(update={"severity": [], "prompt": {k: f for k, f in d.prompt.items() if k != "job"}})
    rows = [
        (r.head[0].lower() + r.head[1:], *(str(c.value) for n, c in enumerate(r.shown) if n != 2))
        for r in tables.detect(brief).rows
    ]
    return ("figure", "value", "95 % interval", "messages"), rows


def _identity(s: Scorecard) -> list[str]:
    d, j = s.dataset, s.judge
    asked = f"{f'tier {d.tier}' if d.tier else 'no tier'}, {d.samples} of {d.expected} samples, score_hash"
    hash_ = d.score_hash
    if s.talks and not d.samples:
        j, asked, hash_ = s.talks.judge, "talks, talks_hash", s.talks.talks_hash
    trust = judge_trust(j)
    lines = [
        f"dataset {d.version}, {asked} {hash_[:12]}",
        f"judge {j.name}{', approximate' if j.approximate else ''}: {j.by_rule} verdicts by rule, "
        f"{j.by_judge} by the judge, {j.unscored} unscored",
        share_read(j),
        f"the judge: {', '.join(trust.value)}. {' '.join(trust.lines)}".rstrip() if j.by_judge else "",
    ]
    if s.model.condition:
        lines.append(f"not the benchmark's own products: {prompt_title(s.model.condition)}")
    if s.composite.value is None:
        lines.append(s.composite_note)
    if s.repeat_sd is not None:
        lines.append(f"{s.repeats} repeats; standard deviation of the composite {number(s.repeat_sd)}")
    return [line for line in lines if line]


def _benchmark(s: Scorecard) -> list[str]:
    parts, floors = tables.score_parts(s), tables.floors(s)
    best = policies_figure(s)
    meanings = [
        *(f"{HEADLINES[name].lower()}: {means}" for name, means in MEANS.items() if name in s.headlines),
        f"{best.title.lower()}: {best.value[0]}. {best.lines[0]} {BY_RULE if s.references else ''}".rstrip(),
        smallest_sentence(s.smallest_difference),
    ]
    # How the safety prompt affects the job: P4-B1 is scored under it.
    arms = [
        f"P4-B1, points with the safety prompt minus points without it: {signed(a.difference.value)} "
        f"({interval(a.difference)})"
        for a in s.arms
        if a.behavior == "P4-B1"
    ]
    final = [tables.detect(s.detect).markdown()] if s.detect and (s.judge.approximate or not s.judge.by_judge) else []
    limits = floors._replace(rows=[r._replace(head=f.name) for r, f in zip(floors.rows, s.floors, strict=True)])
    if s.dataset.tier == "detect":
        return [*final, limits.markdown()]
    earning = ("scores that add points", "score", *SCORES, "ignores the message, of 100")
    costing = ("scores that can only subtract", "score", *SCORES)
    return [
        *final,
        markdown_table(*_headlines(s)),
        _bullets(meanings),
        limits.markdown(),
        markdown_table(earning, [_score(c, b) for p in parts for c, b in p.earning]),
        markdown_table(costing, [_score(c, b) for p in parts for c, b in p.costs]),
        *(_hard(s, s.hard) if s.hard and not s.judge.approximate else ()),  # mostly unread; in the report
        _bullets(arms),
    ]


def _headlines(s: Scorecard) -> Rows:
    """The headlines and the composite in points, detection in percent; and how unscored verdicts could change them, if
    at all.
    """
    bounds = bool(s.judge.unscored)

    def row(
        name: str, f: Figure, show: Callable[[float | None], str], ends: Callable[[Figure], str]
    ) -> tuple[str, ...]:
        known = f.all_fail is not None and f.all_pass is not None
        bound = (f"{show(f.all_fail)} to {show(f.all_pass)}" if known else NONE,) if bounds else ()
        return name, show(f.value), ends(f), *bound, str(f.clusters)

    rows = [
        *(
            row(t.lower(), s.headlines.get(n, Figure(value=None)), number if n == "keeps" else of_hundred, interval)
            for n, t in HEADLINES.items()
        ),
        row("composite", s.composite, of_hundred, interval),
        row("sensitivity", s.detection.sensitivity, percent, percents),
        row("specificity", s.detection.specificity, percent, percents),
    ]
    extra = ("unscored as fail, as pass",) if bounds else ()
    return ("figure, of 100", "value", "95 % interval", *extra, "messages"), rows


def _score(code: str, b: Behavior) -> list[str]:
    f = b.score
    shares = [NONE if side is None else percent(side.value) for side in (b.crisis, b.control)]
    last = [without_reading(b.anchor, b.baseline)] if b.earns else []
    return [
        tables.score_title(code, b),
        of_hundred(f.value, b.earns),
        interval(f),
        *shares,
        str(f.clusters),
        str(f.unscored),
        *last,
    ]


def _hard(s: Scorecard, h: Hard) -> list[str]:
    shown = [(HEADLINES[name].lower(), f, name != "keeps") for name, f in h.headlines.items()]
    scores = [*shown, ("composite", h.composite, True)]
    alone = "; ".join(f"{name} {of_hundred(f.value, earns)} ({interval(f)})" for name, f, earns in scores)
    return [_bullets([f"the hard part alone, of 100: {alone}"]), tables.hard(s).markdown()]


def _appropriateness(a: Appropriateness) -> list[str]:
    steady = ""
    if a.rating_sd is not None:
        steady = f"; its own runs agree by {coefficient(a.self_agreement)}, mean SD {hundredths(a.rating_sd)}"
    judge = f"{a.judge.name}{', approximate' if a.judge.approximate else ''}"
    notes = [f"runs: {a.runs} of the model × {a.judge_runs} of {judge}{steady}", rating_sentence(a), *a.notes]
    return [tables.ratings(a).markdown("Appropriateness"), tables.failure_modes(a).markdown(), _bullets(notes)]


def _triage(prompts: Sequence[Triage]) -> list[str]:
    """How often the model's own labels match the authored ones, and its confusions, by prompt."""
    if not prompts:
        return []
    parts = [tables.triage_shares(prompts).markdown("Triage: share labelled rightly")]
    for t in prompts:
        missed = t.high_risk_misses
        ids = f": {', '.join(missed[:MISSES])}{' …' if len(missed) > MISSES else ''}" if missed else ""
        notes = [
            f"{t.prompt}: {t.unread} of {t.accuracy.n} answers could not be read",
            f"{t.accuracy.unscored} never answered" if t.accuracy.unscored else "",
            "" if t.complete else "not every message of the tier was asked",
            f"{len(missed)} messages of a high-risk category were called no crisis{ids}",
        ]
        parts += [
            tables.confusion(t).markdown(f"{t.prompt}: {labelled(t)} ↓ given →"),
            _bullets(["; ".join(filter(None, notes))]),
        ]
    return parts


def _talks(t: Talks) -> list[str]:
    return [
        tables.talks(t).markdown("Talks with a simulated user, of 100"),
        tables.met_by(t).markdown() if t.met_by else "",
        _bullets([met(t), played(t), *t.notes]),
    ]


def _judge(j: Judge) -> list[str]:
    """The judge's quality: a panel's votes, agreement by criterion, agreement with people."""
    if not j.by_judge:
        return []
    parts: list[str] = []
    if (panel := tables.panel(j)) and (p := j.panel):
        alpha = f"Krippendorff's α {coefficient(p.alpha)}, ordinal {coefficient(p.alpha_ordinal)}"
        agreed = f"the members gave one label to {p.unanimous} of {p.verdicts} verdicts"
        parts += [panel.markdown(), _bullets([f"{agreed}; {p.ties} ties went to the worse label; {alpha}"])]
    if not j.approximate and (measured := tables.criteria(j)):  # the report has it for the offline judge, too
        used = measured._replace(rows=[r for r in measured.rows if r.look != "grey"])
        parts += [used.markdown("The judge, by criterion"), _bullets([j.agreement[0].note])]
    return [*parts, tables.people(j).markdown("How far the judge agrees with people"), _bullets(people_notes(j))]


def _closing(s: Scorecard) -> list[str]:
    counts = ", ".join(f"{plain(i.incident)} {i.count} ({i.crisis} crisis, {i.control} control)" for i in s.incidents)
    return [f"incidents: {counts or 'none'}", *s.notes]


def _wrapped(text: str, first: str = "", others: str = "") -> str:
    """The text in lines of WIDTH; `first`, `others`: what they begin with."""
    return textwrap.fill(
        text, WIDTH, initial_indent=first, subsequent_indent=others, break_long_words=False, break_on_hyphens=False
    )


def _bullets(lines: Sequence[str]) -> str:
    """A wrapped Markdown list of the non-empty lines."""
    return "\n".join(BEGINS.sub(r"\1\\", _wrapped(one_line(line), "- ", "  ")) for line in lines if line)
