"""Verdicts and scores made again from the replies, and where a submission says something else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

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


def compare_verdicts(given: Sequence[tuple[str, Verdict]], own: Sequence[Verdict], release: Release) -> list[Problem]:
    """Every verdict that isn't the recomputed one, which `own` has as they may be published. `given`: places and
    verdicts.
    """
    expected: dict[Key, Verdict] = {(v.id, v.repeat, v.index): v for v in own}
    seen: Counter[Key] = Counter()
    found: list[Problem] = []
    for where, v in given:
        key = (v.id, v.repeat, v.index)
        seen[key] += 1
        if seen[key] > 1:
            found.append(
                Problem("repeated_verdict", where, f"{shown(v.id)} repeat {v.repeat} check {v.index} stands again")
            )
        elif key in expected:
            found += _differences(v, expected[key], where)
        elif v.id not in release.rows:
            found.append(Problem("unknown_sample", where, f"{shown(v.id)} is no sample of the release"))
        elif v.index >= len(release.rows[v.id].evaluation):
            found.append(
                Problem(
                    "unknown_check",
                    where,
                    f"{v.id} has {len(release.rows[v.id].evaluation)} checks, and no check {v.index}",
                )
            )
        else:
            found.append(Problem("extra_verdict", where, f"{v.id} repeat {v.repeat} has a verdict and no reply"))
    for key in sorted(expected.keys() - seen.keys()):
        found.append(
            Problem("missing_verdict", VERDICTS, f"{key[0]} repeat {key[1]} has no verdict for check {key[2]}")
        )
    return found


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
