"""Verdicts and scores made again from the replies, and where a submission says something else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dataset_builder.release import Release
from judge.report.entries import WITHHELD
from judge.schema import Scorecard, Verdict
from leaderboard.schema import SUBMISSION, VERDICTS, Problem, Scores
from leaderboard.verify.coverage import shown
from leaderboard.verify.judged import differences

Key = tuple[str, int, int]
# What is compared of a verdict: its field, and the word for a difference there.
FIELDS = {
    "label": "changed_verdict",
    "outcome": "changed_verdict",
    "unscored": "changed_verdict",
    "incident": "changed_incident",
    "votes": "changed_votes",
}
OTHERS = ("check", "behavior", "turn", "criterion", "decided_by", "judge", "prompt_hash", "criterion_hash")


def headline(card: Scorecard) -> Scores:
    """The figures of a scorecard that a submission states."""
    return Scores(
        composite=card.composite,
        headlines=card.headlines,
        behaviors={name: behavior.score for name, behavior in card.behaviors.items()},
        tasks=card.tasks.score if card.tasks else None,
        sensitivity=card.detection.sensitivity,
        specificity=card.detection.specificity,
        floors=card.floors,
    )


def compare_scores(given: Scores, own: Scores) -> list[Problem]:
    """Every number of the headline that isn't the recomputed one."""
    found: list[Problem] = []
    for what in differences(given.model_dump(), own.model_dump(), "scores"):
        path = what.partition(" ")[0]
        last = path.rpartition(".")[2]
        kind = (
            "changed_interval"
            if last in ("low", "high")
            else "changed_count"
            if last in ("n", "clusters", "unscored", "messages")
            else "changed_score"
        )
        found.append(
            Problem(
                "changed_floor" if path.startswith("scores.floors") else kind,
                f"{SUBMISSION}: {path}",
                what.partition(" ")[2],
            )
        )
    return found


def compare_verdicts(
    given: Iterable[tuple[str, Verdict]], own: Sequence[Verdict], release: Release
) -> Iterator[Problem]:
    """Every verdict that isn't the recomputed one, which `own` has as they may be published. `given`: places and
    verdicts, read once and not kept.
    """
    expected: dict[Key, Verdict] = {(v.id, v.repeat, v.index): v for v in own}
    seen: set[Key] = set()
    for where, v in given:
        key = (v.id, v.repeat, v.index)
        if key not in expected:
            yield _unexpected(v, where, release)
        elif key in seen:
            said = f"{v.id} repeat {v.repeat} check {v.index} stands again"
            yield Problem("repeated_verdict", where, said)
        else:
            seen.add(key)
            yield from _differences(v, expected[key], where)
    for key in sorted(expected.keys() - seen):
        said = f"{key[0]} repeat {key[1]} has no verdict for check {key[2]}"
        yield Problem("missing_verdict", VERDICTS, said)


def _unexpected(v: Verdict, where: str, release: Release) -> Problem:
    """A verdict for which there is nothing to judge."""
    if v.id not in release.rows:
        return Problem("unknown_sample", where, f"{shown(v.id)} is no sample of the release")
    if v.index >= (checks := len(release.rows[v.id].evaluation)):
        return Problem("unknown_check", where, f"{v.id} has {checks} checks, and no check {v.index}")
    return Problem("extra_verdict", where, f"{v.id} repeat {v.repeat} has a verdict and no reply")


def _differences(given: Verdict, own: Verdict, where: str) -> list[Problem]:
    if given == own:
        return []
    at = f"{own.id} repeat {own.repeat} check {own.index}"
    by = f" ({own.decided_by})"
    found: dict[str, Problem] = {}
    for name, kind in [*FIELDS.items(), *((name, "changed_verdict") for name in OTHERS)]:
        theirs, ours = getattr(given, name), getattr(own, name)
        if theirs != ours and kind not in found:
            if kind == "changed_verdict" and own.decided_by.startswith("rule:"):
                kind = "rule_verdict"
            # Votes quote replies, which may be such as nobody should read in a message.
            said = "are others" if name == "votes" else f"is {shown(str(theirs))}, the reply gives {shown(str(ours))}"
            found.setdefault(kind, Problem(kind, where, f"{at}: {name} {said}{by}"))
    if given.evidence != own.evidence:
        withheld = own.evidence == (WITHHELD,)
        what = "quotes a reply that must be withheld" if withheld else "its evidence is not what the reply gives"
        found["evidence"] = Problem("not_withheld" if withheld else "changed_evidence", where, f"{at}: {what}{by}")
    return list(found.values())
