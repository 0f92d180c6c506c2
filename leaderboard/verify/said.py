"""What verifying came to, as text for a terminal and as plain values."""

from __future__ import annotations

from typing import Any

from judge.schema import Scorecard
from judge.wording import coefficient, people_title
from leaderboard.public import hidden
from leaderboard.schema import Problem, Verified

MEANING = {
    "verified": "everything that can be made again is what it says",
    "demo": "everything that can be made again is what it says; the offline judge read it, so it is shown "
    "apart and never ranked",
    "refused": "not what it says, or not such as the board takes",
}


def text(verified: Verified) -> str:
    """The report of one submission for a terminal, where nothing foreign can move the cursor."""
    lines = [f"{verified.path}: {verified.state}: {MEANING[verified.state]}"]
    if verified.submission and verified.scorecard:
        model, pinned, composite = verified.submission.model, verified.submission.dataset, verified.scorecard.composite
        value = "no composite" if composite.value is None else f"composite {composite.value:.1f}"
        lines.append(
            f"  {model.organization}/{model.name}, {pinned.version} {pinned.tier}, judge "
            f"{verified.submission.judge.name}, {value}"
        )
        lines += [f"  declared, not made again: {told}" for told in _declared(verified.scorecard)]
    lines += [f"  {line(p)}" for p in verified.problems]
    lines += [f"  flag: {line(p)}" for p in verified.flags]
    return "\n".join(_inert(one) for one in lines)


def _declared(card: Scorecard) -> list[str]:
    """The judge's agreement with people, by set."""
    return [
        f"{p.judge} with people on {people_title(p)}: κ {coefficient(p.kappa)}, people {coefficient(p.people)}"
        for p in card.judge.people
    ]


def _inert(text: str) -> str:
    return "".join("\ufffd" if hidden(c) else c for c in text)


def line(problem: Problem) -> str:
    """`kind: where: message`."""
    return ": ".join(part for part in (problem.kind, problem.where, problem.message) if part)


def record(verified: Verified) -> dict[str, Any]:
    """What was found as plain values, without a reply or a verdict, and as inert as the text."""
    return {
        "path": _inert(verified.path),
        "state": verified.state,
        "problems": [_fields(p) for p in verified.problems],
        "flags": [_fields(p) for p in verified.flags],
        "composite": verified.scorecard.composite.model_dump() if verified.scorecard else None,
    }


def _fields(problem: Problem) -> dict[str, str]:
    return {name: _inert(value) for name, value in vars(problem).items()}
