"""A scorecard's tables, as text cells: the pages show them as HTML, the summary as Markdown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from dataset_builder.schema import BEHAVIORS
from helmbench_common.formats.inert import clip
from helmbench_common.tables import Cell, Cells, Table, TableRow
from judge import wording
from judge.schema import (
    Appropriateness,
    Behavior,
    CriterionAgreement,
    Detect,
    Figure,
    Group,
    Judge,
    Reference,
    Scorecard,
    Talks,
    Triage,
)
from judge.scoring.breakdown import GREYED_BELOW
from judge.statistics.estimate import Estimate
from judge.wording import NONE, coefficient_cell, interval, number, of_hundred, percent, percents, plain, signed

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


def rate(f: Figure | None) -> Cell:
    """A share (0 to 1) in percent, with its interval."""
    return Cell(NONE) if f is None else Cell(percent(f.value), "" if f.low is None else percents(f))


def score(f: Figure | None, earns: bool = True) -> Cell:
    """A score in points, with its interval."""
    return Cell(NONE) if f is None else Cell(of_hundred(f.value, earns), "" if f.low is None else interval(f))


class ScorePart(NamedTuple):
    """A headline's behaviors by code: those that earn points, and those that only cost. `score`: None if the run
    doesn't have all of them.
    """

    title: str
    score: Figure | None
    earning: list[tuple[str, Behavior]]
    costs: list[tuple[str, Behavior]]


def score_parts(s: Scorecard) -> list[ScorePart]:
    """The scores, in one part for each headline in the run."""
    parts: list[ScorePart] = []
    for name, title in wording.HEADLINES.items():
        own = [(c, b) for c, b in s.scores.items() if b.headline == name]
        earning, costs = ([(c, b) for c, b in own if b.earns is earns] for earns in (True, False))
        parts += [ScorePart(title, s.headlines.get(name), earning, costs)] if own else []
    return parts


def score_title(code: str, b: Behavior) -> str:
    return f"{code} {b.title}" if code in BEHAVIORS else b.title


def floors(s: Scorecard) -> Table:
    """Every safety floor with its state."""
    rows: list[TableRow] = []
    for f in s.floors:
        figures = percent(f.value), wording.limits(f.low, f.high), wording.bound(f.name, f.threshold)
        note, look = f"{f.name}; {f.note}" if f.note else f.name, "breach" if f.state == "breached" else ""
        cells: Cells = [Cell(f.state, look=f"state {f.state}"), *figures, f.messages]
        rows.append(TableRow(wording.floor_title(f), cells, note, look=look))
    columns = ("Safety floor", "State", "Rate", "One-sided 95 % limits", "Required", "Messages")
    return Table(columns, rows, left=("State",))


def detect(d: Detect) -> Table:
    """What rules alone decide: detection, the job, and what a safety prompt changes."""
    whole, rows = d.detection, list[TableRow]()
    rates: list[tuple[str, Figure | None, str]] = [
        ("Sensitivity", whole.sensitivity, "sensitivity"),
        *((f"Sensitivity, severity {b.low} to {b.high}", b.sensitivity, "") for b in d.severity),
        ("Specificity", whole.specificity, "specificity"),
        ("Sensitivity + specificity − 100 %", whole.informedness, "informedness"),
        ("The job, where no tag means danger", d.job, "job"),
    ]
    for name, f, error in rates:
        if f is not None:
            spread = percent(d.stderr.get(error)) if error else NONE
            rows.append(TableRow(name, [percent(f.value), percents(f), spread, f.clusters]))
    for name, f in d.prompt.items():
        points: Cells = [signed(f.value), interval(f), number(d.stderr.get(f"prompt_{name}")), f.clusters]
        rows.append(TableRow(f"A safety prompt changes {name} by", points, "points"))
    return Table(("Decided by rules alone", "Value", "95 % interval", "Standard error", "Messages"), rows)


def sides(s: Scorecard, detects: bool) -> Table:
    """The sides of the scores: those of detection, or the others."""
    rows: list[TableRow] = []
    for code, b in [both for p in score_parts(s) for both in p.earning + p.costs]:
        if (b.reads == "detection") == detects:
            f, shares = b.score, map(rate, (b.crisis, b.control, b.ambiguous))
            bounds = f"{number(f.all_fail)} to {number(f.all_pass)}" if f.unscored else NONE
            rows.append(TableRow(score_title(code, b), [*shares, f.n, f.unscored, bounds, f"{b.weight:g}"]))
    names = ("In danger: seen", "In no danger: left alone") if detects else ("In danger", "In no danger")
    return Table(("Score", *names, "Ambiguous", "Verdicts", "Unscored", "Bounds", "Weight"), rows)


def detection(s: Scorecard) -> Table:
    """Sensitivity and specificity in all variants."""
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
    """Conversations without failed replies."""
    kinds = sorted(s.conversations.items())
    rows = [TableRow(kind, [percent(f.value), percents(f), f.n, f.clusters, f.unscored]) for kind, f in kinds]
    return Table(("Kind", "Share", "95 % interval", "Conversations", "Scripts", "Unscored"), rows)


def hard(s: Scorecard) -> Table:
    """The families of the hard part."""
    rows: list[TableRow] = []
    for f in s.hard.families if s.hard else ():
        family, rates = wording.FAMILIES[f.family], map(rate, (f.seen, f.handed_over, f.left_alone, f.helped))
        rows.append(TableRow(family.title, [*rates, f.messages], family.means))
    return Table(("Family", "Danger seen", "Handed over, supported", "Left alone", "Task done", "Messages"), rows)


def arms(s: Scorecard) -> Table:
    """Points with the safety prompt minus points without it."""
    rows = [TableRow(wording.behavior_title(a.behavior), _difference(a.difference, a.pairs)) for a in s.arms]
    return Table(("Behavior", *DIFFERENCE), rows)


def pairs(s: Scorecard) -> Table:
    """Paired differences other than for the safety prompt."""
    known = [(p, wording.SIGNS[p.kind, p.polarity]) for p in s.pairs]
    rows = [TableRow(wording.pairing_title(p), _difference(p.difference, p.pairs), sign) for p, sign in known]
    return Table(("Compared", *DIFFERENCE), rows)


def _difference(f: Figure, count: int) -> list[str | int]:
    return [wording.signed(f.value), interval(f), count, f.clusters]


def heat(s: Scorecard) -> Table:
    """The share of points by behavior and kind of product; the shade shows the same number."""
    found = {(c.behavior, c.condition_kind): c.rate for c in s.heat if c.rate.value is not None}
    behaviors, kinds = (sorted({key[n] for key in found}) for n in (0, 1))

    def cell(f: Figure | None) -> Cell:
        if f is None:
            return Cell(NONE, look="empty")
        return Cell(percent(f.value), str(f.clusters), "few" if f.clusters < GREYED_BELOW else "", f.value)

    rows = [TableRow(wording.behavior_title(b), [cell(found.get((b, k))) for k in kinds]) for b in behaviors]
    return Table(("Behavior", *map(plain, kinds)), rows)


def incidents(s: Scorecard) -> Table:
    """The frequency of each kind of failure."""
    rows: list[TableRow] = []
    for i in s.incidents:
        cells: Cells = [i.count, i.crisis, i.control, wording.whole(i.worst_severity)]
        meaning = wording.MEANINGS[i.incident]
        rows.append(TableRow(plain(i.incident), cells, meaning, link="#failures", examples=i.samples))
    return Table(("Incident", "Verdicts", "Crisis", "Control", "Gravest severity"), rows)


class GroupColumn(NamedTuple):
    """The groups of one dataset column. `ranked`: by gap, lowest first, then those too small to rank."""

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
        rows: list[TableRow] = []
        for g in self.ranked:
            gap, share = (
                (wording.points(g.gap.value), wording.points_interval(g.gap)),
                (percent(g.rate.value), percents(g.rate)),
            )
            note = "few messages, not ranked" if g.greyed else "lowest gap" if g.worst else ""
            flag, look = "stands out after Holm’s correction" if g.found else "", "grey" if g.greyed else ""
            rows.append(TableRow(plain(g.group), [*gap, *share, g.rate.clusters], note, flag, look=look))
        return Table(("Group", "Gap", "95 % interval of the gap", "Rate", "95 % interval", "Messages"), rows)


def groups(s: Scorecard) -> list[GroupColumn]:
    """The groups, by column."""

    def rank(g: Group) -> tuple[bool, bool, bool, float]:
        return g.greyed, not g.worst, g.gap.value is None, 0.0 if g.greyed else g.gap.value or 0.0

    columns = groupby(s.groups, key=lambda g: g.column)
    return [GroupColumn(GROUP_COLUMNS.get(c, plain(c)), sorted(own, key=rank)) for c, own in columns]


def beside_policies(s: Scorecard) -> list[tuple[Reference, bool]]:
    """This run among the trivial policies, best composite first; the flag marks the run."""
    own = Reference(
        policy=s.model.name,
        composite=s.composite,
        sensitivity=s.detection.sensitivity,
        specificity=s.detection.specificity,
        breached=sum(f.state == "breached" for f in s.floors),
    )
    both = [(own, True), *((r, False) for r in s.references)]
    return sorted(both, key=lambda b: (b[0].composite.value is None, -(b[0].composite.value or 0), not b[1]))


def policies(among: Iterable[tuple[Reference, bool]]) -> Table:
    """The same as a table, numbered as in the plot."""
    rows: list[TableRow] = []
    for n, (r, own) in enumerate(among, start=1):
        cells: Cells = [n, score(r.composite), rate(r.sensitivity), rate(r.specificity), r.breached]
        note = "this run" if own else wording.POLICIES.get(r.policy, "")
        rows.append(TableRow(clip(r.policy, 60), cells, note, look="own" if own else ""))
    return Table(("Name", "No.", "Composite", "Sensitivity", "Specificity", "Floors breached"), rows)


def criteria(judge: Judge, on_page: Collection[str | None] = ()) -> Table | None:
    """The judge's agreement with the calibration set, by criterion; None if not measured. `on_page`: criteria whose
    text is available as a link target.
    """
    whole = judge.agreement[0] if judge.agreement else None
    if whole is None or whole.overall is None or not whole.measured:
        return None

    def row(a: CriterionAgreement, verdicts: int) -> TableRow:
        counts = {"agreed": a.kappa_agreed.n, "unscored": a.unscored}
        replies = Cell(a.replies or NONE, "; ".join(f"{n} {what}" for what, n in counts.items() if n))
        figures = map(coefficient_cell, (a.kappa, a.kappa_agreed, a.raw, a.bias, a.fail_recall))
        flag = a.reason or ("too low for a submission" if a.too_low else "")
        link, look = f"#criterion-{a.criterion}" if a.criterion in on_page else "", "" if verdicts else "grey"
        return TableRow(a.criterion or "All criteria", [verdicts, replies, *figures], flag=flag, link=link, look=look)

    rows = [row(a, n) for a, n in wording.measured_criteria(judge)]
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
    """The judge's agreement with human labels, by set, next to the agreement between people."""
    coarse = any(p.coarse for p in judge.people)
    rows: list[TableRow] = []
    for p in judge.people:
        left = percent(1 - p.decided / p.items) if p.items and not p.reason else NONE
        figures: list[Estimate | None] = [p.kappa, p.people]
        if coarse:
            figures += [p.coarse.kappa, p.coarse.people] if p.coarse else [None, None]
        cells: Cells = [clip(p.judge, 60), p.items, left, *map(coefficient_cell, figures)]
        flag = clip(p.reason) if p.reason else ""
        rows.append(TableRow(wording.people_title(p), cells, flag=flag, look="grey" if flag else ""))
    fewer = ("κ on fewer labels", "People on fewer labels") if coarse else ()
    columns = ("Set", "Judge", "Items", "Left unscored", "κ with people", "People among themselves", *fewer)
    return Table(columns, rows, left=("Judge",))


def panel(judge: Judge) -> Table | None:
    """The members of a panel; None if there is no panel."""
    if judge.panel is None:
        return None
    known = {a.judge: coefficient_cell(a.overall.kappa) for a in reversed(judge.agreement) if a.overall}
    rows: list[TableRow] = []
    for m in judge.panel.members:
        dissents = Cell(m.dissents, percent(m.dissents / m.given) if m.given else "")
        agreement = coefficient_cell(m.self_agreement), known.get(m.judge, "not measured")
        cells: Cells = [m.repeats, m.given, m.unscored, dissents, *agreement]
        rows.append(TableRow(clip(m.judge, 60), cells, flag="word counts" if m.approximate else ""))
    columns = ("Repeats", "Labels", "Unscored", "Dissents", "Self-agreement", "κ on the calibration set")
    return Table(("Member", *columns), rows)


def ratings(a: Appropriateness) -> Table:
    """Ratings of replies to standalone messages, over all and by category: harm first."""
    rows: list[TableRow] = []
    for name, o in (("All", a.overall), *((plain(n), o) for n, o in a.categories.items())):
        shares = [rate(o.harmful), rate(o.inappropriate), *(map(percent, o.bins[1:]) if o.bins else [NONE] * 4)]
        rows.append(TableRow(name, [*shares, coefficient_cell(o.mean), o.messages, o.ratings, o.unscored]))
    columns = ("Rated 1", "Rated 1 or 2", "2", "3", "4", "5", "Mean", "Messages", "Ratings", "Unscored")
    return Table(("Category", *columns), rows)


def failure_modes(a: Appropriateness) -> Table:
    """The frequency of each failure mode; for a probe, of both halves."""
    rows: list[TableRow] = []
    for m in a.failure_modes:
        cells: Cells = [rate(m.rate), m.rate.n, m.rate.clusters]
        rows.append(TableRow(wording.mode_title(m), cells, wording.MEANINGS[m.incident], examples=m.samples))
    if p := a.probes:
        halves = {
            "danger missed": p.missed,
            "treated as a crisis without one": p.escalated,
            "both halves right": p.both_right,
        }
        for name, f in halves.items():
            rows.append(TableRow(f"Probes: {name}", [rate(f), f.n, f.clusters], f"{p.pairs} pairs"))
    return Table(("Way to fail", "Share", "Replies", "Messages"), rows)


def triage_shares(prompts: Sequence[Triage]) -> Table:
    """The share of messages that the model labels as authored, by category and prompt."""
    rows = [TableRow("All messages", [*(rate(t.accuracy) for t in prompts), prompts[0].accuracy.clusters])]
    for name in dict.fromkeys(name for t in prompts for name in t.recall):
        own = [t.recall.get(name) for t in prompts]
        rows.append(TableRow(plain(name), [*map(rate, own), max(f.clusters for f in own if f)]))
    for level in sorted({level for t in prompts for level in t.severity}):
        by_level = [t.severity.get(level) for t in prompts]
        rows.append(TableRow(f"Severity {level}", [*map(rate, by_level), max(f.clusters for f in by_level if f)]))
    rows.append(TableRow("Cohen’s κ", [*(coefficient_cell(t.kappa) for t in prompts), prompts[0].kappa.n]))
    return Table(("Category", *(t.prompt for t in prompts), "Messages"), rows)


def confusion(t: Triage) -> Table:
    """How often each category was labeled as each other one."""
    given = wording.given_labels(t)
    rows: list[TableRow] = []
    for name, row in t.confusion.items():
        looks = ["found" if g == name else "" if row.get(g) else "empty" for g in given]
        cells = [Cell(row.get(g, 0), look=look) for g, look in zip(given, looks, strict=True)]
        rows.append(TableRow(plain(name), cells))
    return Table((f"{wording.labelled(t).capitalize()} ↓ given →", *map(plain, given)), rows)


def talks(t: Talks) -> Table:
    """Figures of talks, crises and controls side by side."""
    rows = [TableRow(wording.TALKS["met"], [_points(t.met), NONE])]
    for name, sides in t.criteria.items():
        rows.append(
            TableRow(wording.TALK_CRITERIA[name], [_points(sides.get("crisis")), _points(sides.get("control"))])
        )
    if t.withheld:
        rows.append(TableRow(wording.TALKS["withheld"], [_points(t.withheld), NONE]))
    if t.reachable:
        rows.append(TableRow(wording.TALKS["reachable"], [_points(t.reachable), NONE]))
    rows.append(TableRow("Talks with a reply that alarms", [NONE, _points(t.alarmed)]))
    rows.append(TableRow("… in the last third of the talk", [NONE, _points(t.alarmed_late)]))
    drift = [_points(t.drift.get("crisis")), _points(t.drift.get("control"))]
    rows.append(TableRow("Drift: last third of replies minus first", drift))
    return Table(("Figure, of 100", "Crises", "Controls"), rows)


def met_by(t: Talks) -> Table:
    """The share of talks in which the danger is met, by reply, 1 being the one to the message that shows it."""
    rows = [TableRow(str(n), [_points(m)]) for n, m in enumerate(t.met_by, start=1)]
    return Table(("By the reply", "Danger met, of 100"), rows)


def _points(m: Estimate | None) -> Cell:
    """A share or mean from 0 to 1, or a difference, of 100."""
    if m is None or m.value is None:
        return Cell(NONE)
    value, low, high = ("" if x is None else f"{round(100 * x)}".replace("-", "−") for x in (m.value, m.low, m.high))
    return Cell(value, f"{low} to {high}" if low else "")
