"""The samples that two runs answered differently: both replies, and the criterion with each one's verdict.

What must not be seen of a run's replies is seen of no other run's either (`judge.report.entries`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dataset_builder.schema import CriterionRow, Row
from helmbench_common.formats.inert import inert
from judge import wording
from judge.replies.schema import Reply
from judge.replies.script import live_turns
from judge.report.entries import Exchange, Finding, Key, Turn, exchange, withheld
from judge.schema import Verdict
from judge.scoring.compare import Comparison, SampleDifference, ScoredRun

SHARED = frozenset(("Severity", "Criterion", "Protocol", "Right answer"))  # details that both runs' verdicts have
OPENING = 160  # characters of a message in the line that opens its sample


class Side(NamedTuple):
    """How one run did in one check. `finding`: None where its reply isn't there; `own`: what only this verdict says."""

    run: str
    points: float
    finding: Finding | None

    @property
    def own(self) -> list[tuple[str, str]]:
        return [d for d in self.finding.details if d[0] not in SHARED] if self.finding else []


class Judged(NamedTuple):
    """A check in which two runs differ, the baseline's side first. `text`: of its criterion; `labels`: what it says of
    the labels that were given.
    """

    title: str
    name: str
    right: str
    text: str
    labels: list[str]
    sides: tuple[Side, Side]


class Step(NamedTuple):
    """A step of a conversation: what both were given, or what each said; None where its reply isn't there."""

    given: Turn | None
    said: tuple[Turn | None, Turn | None]


class Differing(NamedTuple):
    """A sample that two runs answered differently, in the repeat in which they differ most."""

    id: str
    opening: str
    facts: str
    system: str
    steps: list[Step]
    checks: list[Judged]


def side_by_side(
    c: Comparison,
    runs: Sequence[ScoredRun],
    replies: Sequence[Sequence[Reply]],
    rows: Mapping[str, Row],
    criteria: Mapping[str, CriterionRow],
) -> dict[str, list[Differing]]:
    """For every run after the baseline, by name, the samples that `c` lists, in its order. `replies`: each run's, in
    the order of `runs`; none where they aren't there.
    """
    known = _Replies(runs, replies)
    parts: dict[str, list[Differing]] = {}
    for name in c.runs[1:]:
        found: dict[str, list[SampleDifference]] = defaultdict(list)
        for s in c.samples:
            if s.run == name:
                found[s.id].append(s)
        parts[name] = [_differing(c.baseline, rows[i], own, known, criteria) for i, own in found.items()]
    return parts


class _Replies:
    """Every run's verdicts and replies by sample and repeat, and which may not be seen."""

    def __init__(self, runs: Sequence[ScoredRun], replies: Sequence[Sequence[Reply]]) -> None:
        self.verdicts: dict[str, dict[Key, list[Verdict]]] = {r.name: defaultdict(list) for r in runs}
        self.replies = {r.name: {(x.id, x.repeat): x for x in own} for r, own in zip(runs, replies, strict=True)}
        for run in runs:
            for v in run.verdicts:
                self.verdicts[run.name][v.id, v.repeat].append(v)
        self.worth: Mapping[Any, float] = runs[0].scorer.scoring["points"]
        there = [r.name for r in runs if self.replies[r.name]]

        def marked(of: Mapping[str, Mapping[Key, Any]]) -> dict[Key, Any]:
            return {(f"{n}\n{i}", repeat): x for n in there for (i, repeat), x in of[n].items()}

        # As if all were one run's: words that one run must not show, no other shows either.
        self._hidden = withheld(marked(self.verdicts), marked(self.replies))

    def repeat(self, a: str, b: str, identity: str) -> int:
        """The repeat in which two runs differ most on a sample."""
        both = sorted(r for i, r in self.verdicts[a] if i == identity and (i, r) in self.verdicts[b])
        return max(both, key=lambda r: (self._apart(a, b, (identity, r)), -r), default=0)

    def _apart(self, a: str, b: str, key: Key) -> float:
        sides = [{v.index: self.worth.get(v.label) for v in self.verdicts[n][key]} for n in (a, b)]
        pairs = [(x, sides[1].get(index)) for index, x in sides[0].items()]
        return sum(abs(x - y) for x, y in pairs if x is not None and y is not None)

    def exchange(self, name: str, row: Row, repeat: int) -> Exchange | None:
        """What a run said, None where its replies aren't there."""
        reply = self.replies[name].get((row.id, repeat))
        if reply is None:
            return None
        hidden = (f"{name}\n{row.id}", repeat) in self._hidden
        return exchange(row, reply, self.verdicts[name][row.id, repeat], hidden)


def _differing(
    base: str,
    row: Row,
    found: list[SampleDifference],
    replies: _Replies,
    criteria: Mapping[str, CriterionRow],
) -> Differing:
    name = found[0].run
    repeat = replies.repeat(base, name, row.id)
    sides = replies.exchange(base, row, repeat), replies.exchange(name, row, repeat)
    blank = exchange(row, Reply(id=row.id, repeat=repeat, turns=("",) * live_turns(row)), (), hidden=False)
    return Differing(
        id=row.id,
        opening=" ".join(next(t.text for t in reversed(blank.turns) if t.role == "Message").split())[:OPENING],
        facts=blank.facts,
        system="\n\n".join(inert(m.content) for m in row.messages if m.role == "system" and m.content),
        steps=_steps(blank, sides),
        checks=[_judged(row, d, base, sides, criteria) for d in found],
    )


def _steps(blank: Exchange, sides: tuple[Exchange | None, Exchange | None]) -> list[Step]:
    """The conversation once, both replies at each place where one stands."""
    turns = [side.turns if side else (None,) * len(blank.turns) for side in sides]
    return [
        Step(None, (a, b)) if given.role == "Reply" else Step(given, (None, None))
        for given, a, b in zip(blank.turns, *turns, strict=True)
    ]


def _judged(
    row: Row,
    d: SampleDifference,
    base: str,
    sides: tuple[Exchange | None, Exchange | None],
    criteria: Mapping[str, CriterionRow],
) -> Judged:
    found = [side.findings[d.index] if side else None for side in sides]
    criterion = criteria.get(d.criterion or "")
    text = inert(criterion.text) if criterion else ""
    details = [dict(f.details) for f in found if f]
    given = [d.get("Read as") or f.label for f, d in zip(filter(None, found), details, strict=True)]
    return Judged(
        title=criterion.title if criterion else wording.behavior_title(d.behavior),
        name=d.criterion or "",
        right=next((d.get("Right answer", "") for d in details), ""),
        text=text,
        labels=[line[2:] for line in text.splitlines() if any(line.startswith(f"- {label}") for label in given)],
        sides=(Side(base, d.baseline, found[0]), Side(d.run, d.value, found[1])),
    )
