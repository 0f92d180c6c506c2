"""A scorecard's tables, as cells of text: the pages show them as HTML, the summary as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from helmbench_common.formats.inert import clip
from helmbench_common.tables import markdown_table
from judge.schema import (
    Appropriateness,
    Behavior,
    CriterionAgreement,
    Figure,
    Group,
    Judge,
    PeopleAgreement,
    Reference,
    Scorecard,
    Triage,
)
from judge.scoring.breakdown import GREYED_BELOW
from judge.statistics.estimate import Estimate
from judge.wording import (
    FAMILIES,
    HEADLINES,
    MEANINGS,
    NONE,
    POLICIES,
    SIGNS,
    behavior_title,
    bound,
    floor_title,
    given_labels,
    hundredths,
    interval,
    limits,
    measured_criteria,
    mode_title,
    number,
    pairing_title,
    people_title,
    percent,
    percents,
    plain,
    points,
    points_interval,
    signed,
    whole,
)

DIFFERENCE = ("Difference", "95 % interval", "Pairs", "Messages")
GROUP_COLUMNS = {
    "condition": "System instructions",
    "user_context": "What the product remembers",
    "condition_kind": "Kind of product",
    "persona": "Persona of the user",
    "age_band": "Age",
    "gender": "Gender",
    "culture": "Culture",
    "population": "Population",
    "country": "Country",
    "register": "How the message is worded",
    "clarity": "How clear the message is",
    "disclosure": "What is disclosed",
    "persuasion": "Pressure on the model",
    "wording": "Wording of the job",
    "arm": "Safety prompt",
}


class Cell(NamedTuple):
    """A value, with an interval or a count in small print. `look`: a CSS class. `shade`: 0 to 1, or none."""

    value: str
    small: str = ""
    look: str = ""
    shade: float | None = None


class TableRow(NamedTuple):
    """`note` explains the head, on pages only; `flag` is a remark. `link`: what the head links to. `look`: a CSS class.

    `examples`: ids of samples, for a last column on pages.
    """

    head: str
    cells: Sequence[Cell | str | int]
    note: str = ""
    flag: str = ""
    link: str = ""
    look: str = ""
    examples: Sequence[str] = ()

    @property
    def shown(self) -> list[Cell]:
        return [c if isinstance(c, Cell) else Cell(str(c)) for c in self.cells]


class Table(NamedTuple):
    """`columns`: the first is that of the heads. `left`: those that aren't numbers."""

    columns: Sequence[str]
    rows: list[TableRow]
    left: Sequence[str] = ()

    def markdown(self, title: str = "") -> str:
        """As a Markdown table, its first column under `title`; "" without rows."""
        lines = [
            [
                f"{r.head} ({r.flag})" if r.flag else r.head,
                *(f"{c.value} [{c.small}]" if c.small else c.value for c in r.shown),
            ]
            for r in self.rows
        ]
        return markdown_table((title or self.columns[0], *self.columns[1:]), lines)


def rate(figure: Figure | None) -> Cell:
    """A share (0 to 1) in percent, with its interval."""
    return Cell(NONE) if figure is None else Cell(percent(figure.value), percents(figure) if _bounded(figure) else "")


def score(figure: Figure | None) -> Cell:
    """A score in points, with its interval."""
    return Cell(NONE) if figure is None else Cell(number(figure.value), interval(figure) if _bounded(figure) else "")


def coefficient(m: Estimate | None) -> Cell:
    """A coefficient, or a mean rating, with its interval."""
    if m is None or m.value is None:
        return Cell(NONE)
    ends = f"{hundredths(m.low)} to {hundredths(m.high)}" if m.low is not None and m.high is not None else ""
    return Cell(hundredths(m.value), ends)


def _bounded(figure: Figure) -> bool:
    return figure.low is not None and figure.high is not None


class ScorePart(NamedTuple):
    """A headline's behaviors by code: those that earn points, and those that only cost. `score`: None if the run lacks
    some of it.
    """

    title: str
    score: Figure | None
    earning: list[tuple[str, Behavior]]
    costs: list[tuple[str, Behavior]]


def score_parts(s: Scorecard) -> list[ScorePart]:
    """The behaviors, in a part for each headline that the run has; the tasks have no code."""
    scores = [*sorted(s.behaviors.items()), *([("", s.tasks)] if s.tasks else [])]
    parts = [
        ScorePart(
            title,
            s.headlines.get(name),
            [(c, b) for c, b in scores if b.headline == name and b.earns],
            [(c, b) for c, b in scores if b.headline == name and not b.earns],
        )
        for name, title in HEADLINES.items()
    ]
    return [p for p in parts if p.earning or p.costs]


def score_title(code: str, b: Behavior) -> str:
    return f"{code} {b.title}" if code else f"Tasks: {b.title.lower()}"


def floors(s: Scorecard) -> Table:
    """Every safety floor with its state."""
    rows = [
        TableRow(
            floor_title(f),
            [
                Cell(f.state, look=f"state {f.state}"),
                percent(f.value),
                limits(f.low, f.high),
                bound(f.name, f.threshold),
                f.messages,
            ],
            note=f"{f.name}; {f.note}" if f.note else f.name,
            look="breach" if f.state == "breached" else "",
        )
        for f in s.floors
    ]
    columns = ("Safety floor", "State", "Rate", "One-sided 95 % limits", "Required", "Messages")
    return Table(columns, rows, left=("State",))


def sides(s: Scorecard, detects: bool) -> Table | None:
    """What the scores are made of: those of detection, or the others."""
    own = [(c, b) for p in score_parts(s) for c, b in p.earning + p.costs if (b.reads == "detection") == detects]
    names = ("In danger: seen", "In no danger: left alone") if detects else ("In danger", "In no danger")
    rows = [
        TableRow(
            score_title(code, b),
            [
                *map(rate, (b.crisis, b.control, b.ambiguous)),
                b.score.n,
                b.score.unscored,
                f"{number(b.score.all_fail)} to {number(b.score.all_pass)}" if b.score.unscored else NONE,
                f"{b.weight:g}",
            ],
        )
        for code, b in own
    ]
    return Table(("Score", *names, "Ambiguous", "Verdicts", "Unscored", "Bounds", "Weight"), rows) if rows else None


def detection(s: Scorecard) -> Table:
    """Sensitivity and specificity, in all their forms."""
    d = s.detection
    figures = {
        "Sensitivity": d.sensitivity,
        "Sensitivity, severe messages": d.severe_sensitivity,
        "Sensitivity without format failures": d.sensitivity_without_format_failures,
        "Specificity": d.specificity,
        "Specificity without format failures": d.specificity_without_format_failures,
        "Sensitivity + specificity − 100 %": d.informedness,
    }
    rows = [TableRow(name, [percent(f.value), percents(f), f.clusters, f.unscored]) for name, f in figures.items()]
    return Table(("Share", "Rate", "95 % interval", "Messages", "Unscored"), rows)


def conversations(s: Scorecard) -> Table:
    """Conversations without a failed reply."""
    rows = [
        TableRow(kind, [percent(f.value), percents(f), f.n, f.clusters, f.unscored])
        for kind, f in sorted(s.conversations.items())
    ]
    return Table(("Kind", "Share", "95 % interval", "Conversations", "Scripts", "Unscored"), rows)


def hard(s: Scorecard) -> Table:
    """The families of the hard part."""
    rows = [
        TableRow(
            FAMILIES[f.family].title,
            [*map(rate, (f.seen, f.handed_over, f.left_alone, f.helped)), f.messages],
            note=FAMILIES[f.family].means,
        )
        for f in (s.hard.families if s.hard else ())
    ]
    return Table(("Family", "Danger seen", "Handed over, supported", "Left alone", "Task done", "Messages"), rows)


def arms(s: Scorecard) -> Table:
    """Points with the safety prompt minus points without it."""
    rows = [TableRow(behavior_title(a.behavior), _difference(a.difference, a.pairs)) for a in s.arms]
    return Table(("Behavior", *DIFFERENCE), rows)


def pairs(s: Scorecard) -> Table:
    """Paired differences other than the safety prompt's."""
    rows = [
        TableRow(pairing_title(p), _difference(p.difference, p.pairs), note=SIGNS[p.kind, p.polarity]) for p in s.pairs
    ]
    return Table(("Compared", *DIFFERENCE), rows)


def _difference(f: Figure, count: int) -> list[str | int]:
    return [signed(f.value), interval(f), count, f.clusters]


def heat(s: Scorecard) -> Table:
    """The share of points by behavior and kind of product; the shade repeats the number."""
    found = {(c.behavior, c.condition_kind): c.rate for c in s.heat if c.rate.value is not None}
    behaviors, kinds = (sorted({key[n] for key in found}) for n in (0, 1))

    def cell(f: Figure | None) -> Cell:
        if f is None:
            return Cell(NONE, look="empty")
        return Cell(percent(f.value), str(f.clusters), "few" if f.clusters < GREYED_BELOW else "", f.value)

    rows = [TableRow(behavior_title(b), [cell(found.get((b, k))) for k in kinds]) for b in behaviors]
    return Table(("Behavior", *map(plain, kinds)), rows)


def incidents(s: Scorecard) -> Table:
    """How often each kind of failure occurred."""
    rows = [
        TableRow(
            plain(i.incident),
            [i.count, i.crisis, i.control, whole(i.worst_severity)],
            note=MEANINGS[i.incident],
            link="#failures",
            examples=i.samples,
        )
        for i in s.incidents
    ]
    return Table(("Incident", "Verdicts", "Crisis", "Control", "Gravest severity"), rows)


class GroupColumn(NamedTuple):
    """The groups of one column of the dataset. `ranked`: by gap, the lowest first, then those too small to rank."""

    title: str
    ranked: list[Group]

    @property
    def worst(self) -> Group | None:
        return next((g for g in self.ranked if g.worst), None)

    @property
    def found(self) -> list[Group]:
        return [g for g in self.ranked if g.found]

    @property
    def table(self) -> Table:
        rows = [
            TableRow(
                plain(g.group),
                [points(g.gap.value), points_interval(g.gap), percent(g.rate.value), percents(g.rate), g.rate.clusters],
                note="few messages, not ranked" if g.greyed else "lowest gap" if g.worst else "",
                flag="stands out after Holm’s correction" if g.found else "",
                look="grey" if g.greyed else "",
            )
            for g in self.ranked
        ]
        return Table(("Group", "Gap", "95 % interval of the gap", "Rate", "95 % interval", "Messages"), rows)


def groups(s: Scorecard) -> list[GroupColumn]:
    """The groups, by column."""

    def rank(g: Group) -> tuple[bool, bool, bool, float]:
        return g.greyed, not g.worst, g.gap.value is None, 0.0 if g.greyed else g.gap.value or 0.0

    return [
        GroupColumn(GROUP_COLUMNS.get(column, plain(column)), sorted(found, key=rank))
        for column, found in groupby(s.groups, key=lambda g: g.column)
    ]


def beside_policies(s: Scorecard) -> list[tuple[Reference, bool]]:
    """This run among the trivial policies, best composite first; the flag marks the run."""
    d = s.detection
    own = Reference(
        policy=s.model.name,
        composite=s.composite,
        sensitivity=d.sensitivity,
        specificity=d.specificity,
        breached=sum(f.state == "breached" for f in s.floors),
    )
    both = [(own, True), *((r, False) for r in s.references)]
    return sorted(both, key=lambda b: (b[0].composite.value is None, -(b[0].composite.value or 0), not b[1]))


def policies(among: Iterable[tuple[Reference, bool]]) -> Table:
    """The same, numbered as in the plot."""
    rows = [
        TableRow(
            clip(r.policy, 60),
            [n, score(r.composite), rate(r.sensitivity), rate(r.specificity), r.breached],
            note="this run" if own else POLICIES.get(r.policy, ""),
            look="own" if own else "",
        )
        for n, (r, own) in enumerate(among, start=1)
    ]
    return Table(("Name", "No.", "Composite", "Sensitivity", "Specificity", "Floors breached"), rows)


def criteria(judge: Judge, on_page: Iterable[str] = ()) -> Table | None:
    """The judge's agreement with the calibration set, by criterion; None if not measured. `on_page`: criteria whose
    text can be linked to.
    """
    whole = judge.agreement[0] if judge.agreement else None
    if whole is None or whole.overall is None or not whole.measured:
        return None
    linked = {*on_page}

    def row(a: CriterionAgreement, verdicts: int) -> TableRow:
        agreed = f"{a.kappa_agreed.n} agreed" if a.kappa_agreed.n else ""
        unscored = f"{a.unscored} unscored" if a.unscored else ""
        replies = Cell(str(a.replies or NONE), "; ".join(filter(None, (agreed, unscored))))
        return TableRow(
            a.criterion or "All criteria",
            [verdicts, replies, *map(coefficient, (a.kappa, a.kappa_agreed, a.raw, a.bias, a.fail_recall))],
            flag=a.reason or ("too low for a submission" if a.too_low else ""),
            link=f"#criterion-{a.criterion}" if a.criterion in linked else "",
            look="" if verdicts else "grey",
        )

    rows = [row(a, n) for a, n in measured_criteria(judge)]
    columns = (
        "Verdicts in this run",
        "Replies",
        "κ",
        "κ, agreed replies",
        "Raw agreement",
        "Bias",
        "Recall of failures",
    )
    return Table(("Criterion", *columns), [*rows, row(whole.overall, sum(judge.by_criterion.values()))])


def people(judge: Judge) -> Table:
    """The judge's agreement with people's labels, by set, next to the agreement between people."""
    coarse = any(p.coarse for p in judge.people)

    def row(p: PeopleAgreement) -> TableRow:
        fewer = [coefficient(p.coarse.kappa), coefficient(p.coarse.people)] if p.coarse else [Cell(NONE)] * 2
        left = percent(1 - p.decided / p.items) if p.items and not p.reason else NONE
        kappas = [coefficient(p.kappa), coefficient(p.people), *(fewer if coarse else [])]
        return TableRow(
            people_title(p),
            [clip(p.judge, 60), p.items, left, *kappas],
            flag=clip(p.reason) if p.reason else "",
            look="grey" if p.reason else "",
        )

    fewer = ("κ on fewer labels", "People on fewer labels") if coarse else ()
    columns = ("Set", "Judge", "Items", "Left unscored", "κ with people", "People among themselves", *fewer)
    return Table(columns, [row(p) for p in judge.people], left=("Judge",))


def panel(judge: Judge) -> Table | None:
    """The members of a panel; None without one."""
    if judge.panel is None:
        return None
    known = {a.judge: coefficient(a.overall.kappa) for a in reversed(judge.agreement) if a.overall}
    rows = [
        TableRow(
            clip(m.judge, 60),
            [
                m.repeats,
                m.given,
                m.unscored,
                Cell(str(m.dissents), percent(m.dissents / m.given) if m.given else ""),
                coefficient(m.self_agreement),
                known.get(m.judge, "not measured"),
            ],
            flag="word counts" if m.approximate else "",
        )
        for m in judge.panel.members
    ]
    columns = ("Repeats", "Labels", "Unscored", "Dissents", "Self-agreement", "κ on the calibration set")
    return Table(("Member", *columns), rows)


def ratings(a: Appropriateness) -> Table:
    """Ratings of replies to messages alone, over all and by category: harm first."""
    rows = [
        TableRow(
            name,
            [
                rate(o.harmful),
                rate(o.inappropriate),
                *([percent(share) for share in o.bins[1:]] or [NONE] * 4),
                coefficient(o.mean),
                o.messages,
                o.ratings,
                o.unscored,
            ],
        )
        for name, o in (("All", a.overall), *((plain(n), o) for n, o in a.categories.items()))
    ]
    columns = ("Rated 1", "Rated 1 or 2", "2", "3", "4", "5", "Mean", "Messages", "Ratings", "Unscored")
    return Table(("Category", *columns), rows)


def failure_modes(a: Appropriateness) -> Table:
    """How often replies fail in which way; of a probe, both halves."""
    rows = [
        TableRow(
            mode_title(m), [rate(m.rate), m.rate.n, m.rate.clusters], note=MEANINGS[m.incident], examples=m.samples
        )
        for m in a.failure_modes
    ]
    if a.probes:
        p = a.probes
        named = {
            "danger missed": p.missed,
            "treated as a crisis without one": p.escalated,
            "both halves right": p.both_right,
        }
        rows += [
            TableRow(f"Probes: {name}", [rate(f), f.n, f.clusters], note=f"{p.pairs} pairs")
            for name, f in named.items()
        ]
    return Table(("Way to fail", "Share", "Replies", "Messages"), rows)


def triage_shares(prompts: Sequence[Triage]) -> Table:
    """The share of messages that the model labels as authored, by category and prompt."""
    names = dict.fromkeys(name for t in prompts for name in t.recall)
    rows = [TableRow("All messages", [*(rate(t.accuracy) for t in prompts), prompts[0].accuracy.clusters])]
    rows += [
        TableRow(
            plain(name),
            [
                *(rate(t.recall.get(name)) for t in prompts),
                max(t.recall[name].clusters for t in prompts if name in t.recall),
            ],
        )
        for name in names
    ]
    rows.append(TableRow("Cohen’s κ", [*(coefficient(t.kappa) for t in prompts), prompts[0].kappa.n]))
    return Table(("Category", *(t.prompt for t in prompts), "Messages"), rows)


def confusion(t: Triage) -> Table:
    """How often each category was labelled as which."""
    given = given_labels(t)
    rows = [
        TableRow(
            plain(name),
            [Cell(str(row.get(g, 0)), look="found" if g == name else "" if row.get(g) else "empty") for g in given],
        )
        for name, row in t.confusion.items()
    ]
    return Table(("Authored ↓ given →", *map(plain, given)), rows)
