"""Where a submission's verdicts and scores differ from the recomputed ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dataset_builder.release import Release
from helmbench_common.formats.refused import shown
from judge.report.entries import WITHHELD
from judge.schema import Scorecard, Verdict
from leaderboard.schema import SUBMISSION, VERDICTS, Problem, Scores
from leaderboard.verify.judges import differences

Key = tuple[str, int, int]
# Fields of a verdict that are compared, and the kind of a difference.
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
        harm=card.harm.score if card.harm else None,
        sensitivity=card.detection.sensitivity,
        specificity=card.detection.specificity,
        floors=card.floors,
    )


def compare_scores(given: Scores, own: Scores) -> list[Problem]:
    """Every figure that isn't the recomputed one."""
    found = (what.partition(" ") for what in differences(given.model_dump(), own.model_dump(), "scores"))
    return [Problem("changed_score", f"{SUBMISSION}: {path}", said) for path, _, said in found]


def compare_verdicts(
    given: Iterable[tuple[str, Verdict]], own: Sequence[Verdict], release: Release
) -> Iterator[Problem]:
    """Every verdict that isn't the recomputed one. `given`: (file:line, verdict), read once and not kept; `own`: the
    recomputed verdicts as they may be published.
    """
    expected: dict[Key, Verdict] = {(v.id, v.repeat, v.index): v for v in own}
    seen: set[Key] = set()
    for where, v in given:
        key = (v.id, v.repeat, v.index)
        if key not in expected:
            yield _unexpected(v, where, release)
        elif key in seen:
            said = f"{v.id} repeat {v.repeat} check {v.index} appears again"
            yield Problem("repeated_verdict", where, said)
        else:
            seen.add(key)
            yield from _differences(v, expected[key], where)
    for key in sorted(expected.keys() - seen):
        said = f"{key[0]} repeat {key[1]} has no verdict for check {key[2]}"
        yield Problem("missing_verdict", VERDICTS, said)


def _unexpected(v: Verdict, where: str, release: Release) -> Problem:
    """A verdict on something that isn't in the run."""
    if v.id not in release.rows:
        return Problem("unknown_sample", where, f"{shown(v.id)[:80]} isn't a sample of the release")
    if v.index >= (checks := len(release.rows[v.id].evaluation)):
        return Problem("unknown_check", where, f"{v.id} has {checks} checks; there is no check {v.index}")
    return Problem("extra_verdict", where, f"{v.id} repeat {v.repeat} has a verdict but no reply")


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
            # Votes quote replies, which may be harmful.
            theirs, ours = shown(str(theirs))[:80], shown(str(ours))[:80]
            said = "differ" if name == "votes" else f"is {theirs}, recomputed {ours}"
            found.setdefault(kind, Problem(kind, where, f"{at}: {name} {said}{by}"))
    if given.evidence != own.evidence:
        withheld = own.evidence == (WITHHELD,)
        what = "quotes a reply that must be withheld" if withheld else "its evidence isn't the recomputed one"
        found["evidence"] = Problem("not_withheld" if withheld else "changed_evidence", where, f"{at}: {what}{by}")
    return list(found.values())
