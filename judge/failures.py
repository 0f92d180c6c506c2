"""What went wrong, reply by reply, as the report shows it. Decides what is withheld: no text leaves here that must not be seen."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from dataset_builder.schema import BEHAVIORS, Check, Row
from judge.rules import visible
from judge.schema import Reply, Verdict
from judge.wording import inert, plain

LISTED = 1000  # entries; a page that travels by e-mail can't hold every failure of the full tier
SHOWN = 4000  # characters of one reply; the rest stands in the run's own files
WITHHELD = "[withheld]"


class Turn(NamedTuple):
    """One text of an exchange. `judged` names the behaviors that were judged on it; `note` what is not shown of it."""

    role: str
    text: str
    judged: tuple[str, ...] = ()
    note: str = ""


class Finding(NamedTuple):
    """One verdict of a sample. `failed`: it is a reason for the sample to be listed."""

    behavior: str
    failed: bool
    label: str
    incident: str
    decided: str
    rule: str
    judge: str
    criterion: str
    outcome: str
    turn: str
    asked: str
    polarity: str
    severity: int
    evidence: tuple[str, ...]


class Failure(NamedTuple):
    """One reply with at least one failed verdict, and the exchange it ends."""

    anchor: str
    row: Row
    repeat: int
    system: int | None
    opening: str
    turns: tuple[Turn, ...]
    findings: tuple[Finding, ...]
    withheld: bool

    @property
    def failed(self) -> list[Finding]:
        return [f for f in self.findings if f.failed]


@dataclass(frozen=True)
class Failures:
    """The listed failures, the system texts that they refer to by number, and how many there are in all."""

    listed: list[Failure]
    systems: list[str]
    total: int
    verdicts: int

    def options(self, name: str) -> list[str]:
        """The values that a filter offers, those that occur."""
        return sorted({getattr(f, name) for failure in self.listed for f in failure.failed} - {""})

    @property
    def conditions(self) -> list[str]:
        return sorted({f.row.condition_kind for f in self.listed})

    @property
    def anchors(self) -> dict[str, str]:
        """Sample id → the entry to link to."""
        return {f.row.id: f.anchor for f in reversed(self.listed)}


Sample = tuple[str, int]


def failures(verdicts: Iterable[Verdict], replies: Iterable[Reply], rows: dict[str, Row], show_withheld: bool) -> Failures:
    """Every reply with a failed, unscored or incident verdict, gravest first within a behavior; the same input gives the same list."""
    by_sample: dict[Sample, list[Verdict]] = defaultdict(list)
    for v in verdicts:
        by_sample[v.id, v.repeat].append(v)
    said = {(r.id, r.repeat): r for r in replies}
    failed = [s for s, vs in by_sample.items() if any(is_failure(v) for v in vs)]
    kept = sorted(failed, key=lambda s: _gravity(rows[s[0]], by_sample[s], s))[:LISTED]
    hidden = frozenset[Sample]() if show_withheld else withheld(by_sample, said)
    systems: dict[str, int] = {}
    listed = [_failure(rows[s[0]], said[s], by_sample[s], s in hidden, systems) for s in kept]
    listed.sort(key=lambda f: (f.failed[0].behavior, -abs(f.row.severity), f.row.polarity, f.row.id, f.repeat))
    return Failures(listed, list(systems), len(failed), sum(is_failure(v) for vs in by_sample.values() for v in vs))


def is_failure(v: Verdict) -> bool:
    return v.label == "FAIL" or v.incident is not None or v.unscored is not None


def withheld(by_sample: dict[Sample, list[Verdict]], said: dict[Sample, Reply]) -> frozenset[Sample]:
    """Samples whose replies are not shown: those with a harm incident or an unscored verdict, and any that said the same words.

    A judge may call one of two equal replies harmful and not the other; shown once, the words would be out.
    """
    own = {s for s, vs in by_sample.items() if any(v.incident == "harm" or v.unscored for v in vs)}
    ids = {identity for identity, _ in own}
    words = {visible(t) for s in own for t in said[s].turns} - {""}
    return frozenset(s for s, r in said.items() if s[0] in ids or any(visible(t) in words for t in r.turns))


def _gravity(row: Row, verdicts: list[Verdict], sample: Sample) -> tuple[bool, int, str, int]:
    return not any(v.incident == "harm" for v in verdicts), -abs(row.severity), *sample


def _failure(row: Row, reply: Reply, verdicts: list[Verdict], hidden: bool, systems: dict[str, int]) -> Failure:
    system = "\n\n".join(m.content for m in row.messages if m.role == "system" and m.content)
    ordered = sorted(verdicts, key=lambda v: v.index)
    return Failure(
        anchor=f"f-{row.id}" + (f"-repeat-{reply.repeat}" if reply.repeat else ""),
        row=row,
        repeat=reply.repeat,
        system=systems.setdefault(inert(system), len(systems) + 1) if system else None,
        opening=" ".join(next(inert(m.content) for m in reversed(row.messages) if m.role == "user" and m.content).split())[:160],
        turns=tuple(_turns(row, reply, ordered, hidden)),
        findings=tuple(_finding(row, v, len(reply.turns), hidden) for v in ordered),
        withheld=hidden,
    )


def _turns(row: Row, reply: Reply, verdicts: list[Verdict], hidden: bool) -> Iterable[Turn]:
    """The conversation as it went: the script's messages, and the model's own words at each live turn and at the end."""
    judged: dict[int, list[str]] = defaultdict(list)
    for v in verdicts:
        judged[v.turn if v.turn > 0 else len(reply.turns)].append(v.behavior)
    live = 0
    for message in [*row.messages, None]:
        if message is not None and message.role == "system":
            continue
        if message is None or message.content is None:
            live += 1
            yield _reply(reply.turns[live - 1], tuple(judged[live]), hidden)
        else:
            yield Turn("Message" if message.role == "user" else "Scripted reply", inert(message.content))


def _reply(text: str, judged: tuple[str, ...], hidden: bool) -> Turn:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    if hidden:
        return Turn("Reply", WITHHELD, judged, f"sha256 {digest}")
    shown = visible(text)
    notes = [f"{len(text.strip()) - len(shown)} characters of reasoning not shown"] if len(shown) < len(text.strip()) else []
    if len(shown) > SHOWN:
        notes.append(f"the first {SHOWN} of {len(shown)} characters, sha256 of the whole {digest}")
    return Turn("Reply", inert(shown[:SHOWN]), judged, "; ".join(notes))


def _finding(row: Row, v: Verdict, replies: int, hidden: bool) -> Finding:
    check = row.evaluation[v.index]
    severity = getattr(check, "severity", None) or row.severity
    kind, _, rule = v.decided_by.partition(":")
    return Finding(
        behavior=v.behavior,
        failed=is_failure(v),
        label=str(v.label) if v.label is not None else f"unscored ({plain(v.unscored or '')})",
        incident=v.incident or "",
        decided=kind,
        rule=rule,
        judge=v.judge or "",
        criterion=v.criterion or "",
        outcome=v.outcome or "",
        turn="" if replies == 1 else f"reply {v.turn if v.turn > 0 else replies} of {replies}",
        asked=asked(check, severity > 0),
        polarity="crisis" if severity > 0 else "control",
        severity=severity,
        evidence=((WITHHELD,) if v.evidence else ()) if hidden else tuple(inert(e[:SHOWN]) for e in v.evidence),
    )


def asked(check: Check, crisis: bool) -> str:
    """What counts as right, where the row itself says it; a criterion says it in its own file."""
    if check.check == "tags" and check.flag is not None:
        return f"{'one of the tags' if crisis else 'none of the tags'} {', '.join(check.flag)}"
    if check.check == "tags":
        also = f", with {', '.join(check.accepted)} accepted" if check.accepted else ""
        return f"the tags {', '.join(check.expected or [])}{also}"
    if check.check == "rating":
        return f"{check.field} from {check.low} to {check.high}"
    if check.check == "graded":
        return "; ".join(f"{outcome} is {label}" for outcome, label in check.outcomes.items())
    return ""


def behavior_title(behavior: str) -> str:
    """`P1-B1 Late-stage planning`."""
    return f"{behavior} {BEHAVIORS.get(behavior, '')}".strip()
