"""An audit's figures for people: text for a terminal, and a self-contained page for the product team.

The page holds words of conversations only if it is asked to, masked and folded in.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from dataset_builder.release import Release
from helmbench_common.pages import inlined
from helmbench_common.tables import Cell, Table, TableRow
from judge.audit.logs import Talks
from judge.audit.passes import Found
from judge.audit.schema import Audit, Share
from judge.report.page import TEMPLATES as REPORT
from judge.report.page import environment_over
from judge.report.sentences import LargeFigure
from judge.statistics.estimate import Estimate
from judge.wording import NONE, limits, number, percent, plain

TEMPLATES = Path(__file__).with_name("templates")
LISTED = 200  # conversations on the page; conversations.jsonl has all
BY_CRITERION = ("Criterion", "Replies that fail", "If unscored pass or fail", "Replies", "Unscored", "Labels")
BY_VALUE = ("Conversations", "In danger per 10,000", "In danger", "Replies to danger that fail")
UNNAMED = "not named"  # the category of a danger that the word list found


class Line(NamedTuple):
    """A conversation in the list. `turns`: role and masked text up to the judged reply; empty unless asked for."""

    where: str
    category: str
    turn: int
    labels: list[tuple[str, str]]
    turns: list[tuple[str, str]]


def of_10_000(e: Estimate) -> Cell:
    return Cell(number(e.value), "" if e.low is None or e.high is None else f"{number(e.low)} to {number(e.high)}")


def in_percent(e: Estimate) -> Cell:
    return Cell(percent(e.value), "" if e.low is None else limits(e.low, e.high))


def categories(a: Audit) -> Table:
    rows = [TableRow(plain(name), [of_10_000(e), _count(e)]) for name, e in a.categories.items()]
    rows = [TableRow("in danger", [of_10_000(a.per_10k), a.counts.danger]), *rows]
    return Table(("Category", "Per 10,000 conversations", "Conversations"), rows)


def _count(e: Estimate) -> int:
    return round((e.value or 0) * e.n / 10_000)


def handling(a: Audit) -> Table:
    rows = [_share(a.failing), *(_share(share) for share in a.handling.values())]
    return Table(BY_CRITERION, rows, left=("Labels",))


def _share(share: Share) -> TableRow:
    labels = ", ".join(f"{n} {label}" for label, n in share.labels.items())
    bounds = limits(share.lowest, share.highest) if share.unscored else ""
    return TableRow(share.title, [in_percent(share.failing), bounds, share.replies, share.unscored, labels or NONE])


def alarmed(a: Audit) -> Table:
    """Of the sample, with the rate that it gives for all conversations."""
    own = _share(a.alarmed.answers)
    row = TableRow("Alarmed without reason", [of_10_000(a.alarmed.per_10k), *own.cells])
    return Table(("People not in danger", "Per 10,000 conversations", *BY_CRITERION[1:]), [row], left=("Labels",))


def groups(a: Audit) -> dict[str, Table]:
    """A table for each field."""
    return {
        title: Table(
            (title, *BY_VALUE),
            [
                TableRow(value, [g.conversations, of_10_000(g.per_10k), g.danger, in_percent(g.failing)])
                for value, g in values.items()
            ],
        )
        for title, values in a.by.items()
    }


def warnings(a: Audit) -> list[str]:
    """What to know before reading the figures, the most important first."""
    c = a.counts
    found = a.words and (
        f"The word list finds {percent(a.words.found.value)} ({limits(a.words.found.low, a.words.found.high)}) of the "
        "benchmark's messages in danger, and takes "
        f"{percent(a.words.false_alarms.value)} of its ordinary ones for danger. What it doesn't find is not counted, "
        "and it names no category. A language model as judge (--judge) finds more."
    )
    lacking = a.alarmed.answers.replies and a.alarmed.answers.unscored / a.alarmed.answers.replies > 0.5
    return [
        said
        for said in (
            found,
            "The intervals hold chance alone, not the judge's own errors: where danger is rare, a few false "
            "findings in a hundred outnumber the true ones. Read the conversations found, and measure the judge "
            "with helmbench validate.",
            lacking and "The judge can't read most of the replies in the sample, so alarm without reason is open.",
            c.broken and f"Broken lines, left out: {c.broken:,} of {c.lines:,}.",
            c.silent and f"Conversations without a user's words, left out: {c.silent:,}.",
            c.unread and f"Conversations that could not be judged, and are in no rate: {c.unread:,}.",
            c.unanswered and f"Conversations without a reply: {c.unanswered:,}.",
            c.unmet and f"Conversations in danger without a reply after the danger shows: {c.unmet:,} of {c.danger:,}.",
        )
        if said
    ]


def summary(a: Audit) -> str:
    """The figures as aligned text."""
    tables = [categories(a), handling(a), alarmed(a), *groups(a).values()]
    head = f"{a.counts.conversations:,} conversations, judge {a.judge}; 95 % intervals in parentheses"
    first, *others = warnings(a)
    return "\n\n".join([head, first, *(table.text() for table in tables), "\n".join(others)])


def page(a: Audit, talks: Talks, found: Found, release: Release, show_text: bool) -> str:
    """The page. `show_text`: whether it holds the words of the conversations that it lists."""

    def gravity(n: int) -> int:
        """The severity of the criteria that a reply fails, and half of those it partly meets."""
        given = ((release.criteria[c].severity, label.label or "") for c, label in found.labels[n].items())
        return sum(2 * s if label.startswith("FAIL") else s * (label == "PARTIAL") for s, label in given)

    def line(n: int) -> Line:
        talk, danger, reply = talks[n], found.danger.get(n), found.replies[n]
        told = talk.turns[: 2 * reply.turn] if show_text else ()
        return Line(
            " · ".join(filter(None, (talk.id, f"{talk.file}:{talk.line}"))),
            plain(danger.category or UNNAMED) if danger else "not in danger",
            reply.turn,
            [(release.criteria[c].title, label.label or "unscored") for c, label in found.labels[n].items()],
            [("Reply" if place % 2 else "Message", text) for place, text in enumerate(told)],
        )

    worst = sorted((n for n in found.replies if gravity(n)), key=lambda n: (-gravity(n), n))
    return (
        environment_over(TEMPLATES)
        .get_template("audit.html")
        .render(
            a=a,
            figures=_large(a),
            warnings=warnings(a),
            categories=categories(a),
            handling=handling(a),
            alarmed=alarmed(a),
            groups=groups(a),
            lines=[line(n) for n in worst[:LISTED]],
            left=len(worst[LISTED:]),
            show_text=show_text,
            **inlined(REPORT / "report.css", TEMPLATES / "audit.css"),
        )
    )


def _large(a: Audit) -> list[LargeFigure]:
    def large(title: str, e: Estimate, cell: Cell, rest: str) -> LargeFigure:
        known = f"Between {cell.small}." if cell.small else "None could be judged."
        return LargeFigure(title, (str(cell.value),), (known, rest), "" if e.value is not None else "none")

    sample, by = a.alarmed.answers, "the word list" if a.words else a.judge
    return [
        large(
            "In danger, per 10,000 conversations",
            a.per_10k,
            of_10_000(a.per_10k),
            f"{a.counts.danger:,} of {a.counts.conversations:,}, found by {by}.",
        ),
        large(
            "Replies to danger that fail",
            a.failing.failing,
            in_percent(a.failing.failing),
            f"{a.failing.replies:,} replies, by at least one criterion; {a.failing.unscored:,} are open.",
        ),
        large(
            "Alarmed without reason, per 10,000",
            a.alarmed.per_10k,
            of_10_000(a.alarmed.per_10k),
            f"From {sample.replies:,} replies of {a.alarmed.population:,} conversations not in danger; "
            f"{sample.unscored:,} are unscored.",
        ),
    ]
