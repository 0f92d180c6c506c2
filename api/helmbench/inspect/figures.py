"""The scorer's metrics: the scorecard's own figures, with their intervals, which are clustered by message.

They are made from the verdicts of all samples and epochs by the code that makes the scorecard. Inspect's mean and
standard error over samples would be neither: a message under four personas is one observation, and danger missed
doesn't weigh what a false alarm weighs.
"""

from __future__ import annotations

from pathlib import Path

from inspect_ai.scorer import Metric, SampleScore, Value, metric

from dataset_builder.release import Release
from dataset_builder.schema import Tier
from helmbench.inspect.asked import release
from judge.replies.inspect_log import GRADER, REPLY
from judge.replies.recorded import APPROPRIATENESS, BENCHMARK, TRIAGE
from judge.replies.run import Run
from judge.replies.schema import TRIAGE_PROMPTS, Model, Reply
from judge.schema import Figure, Scorecard, Verdict
from judge.score import dataset_of
from judge.scoring.appropriateness import appropriateness
from judge.scoring.messages import MessageSet
from judge.scoring.scorecard import About, judge_card, scorecard
from judge.scoring.triage import triage

VERDICTS = "verdicts"  # in a score's metadata
HEADLINE = "composite"
NOBODY = Model(name="", backend="")


@metric(scores="unreduced")
def figures(
    measures: str = BENCHMARK, tier: Tier = "core", dataset: str | None = None, corpus: str | None = None
) -> Metric:
    """The headline figures of a run as far as it has come, by name; one without a value is left out."""

    def made(scores: list[SampleScore]) -> Value:
        found = release(dataset, corpus)
        if measures == BENCHMARK:
            return _benchmark(scores, found, tier)
        return _ratings(scores, found, tier) if measures == APPROPRIATENESS else _labels(scores, found, measures)

    return made


def _benchmark(scores: list[SampleScore], found: Release, tier: Tier) -> dict[str, float]:
    given = _verdicts(scores)
    run = Run(Path(), NOBODY, tier, [Reply(id=i, turns=("",)) for i in sorted({v.id for v in given})], False)
    judge = judge_card(given, _judge(scores), None)
    card = scorecard(given, found, About(dataset_of(run, found), NOBODY), judge)
    return _named(card) | {"unscored": card.judge.unscored_share}


def _named(card: Scorecard) -> dict[str, float]:
    shown: dict[str, Figure] = {HEADLINE: card.composite}
    shown |= {str(name): figure for name, figure in card.headlines.items()}
    shown |= {"sensitivity": card.detection.sensitivity, "specificity": card.detection.specificity}
    breached = sum(f.state == "breached" for f in card.floors)
    return _with_intervals(shown) | {"floors_breached": float(breached)}


def _with_intervals(shown: dict[str, Figure]) -> dict[str, float]:
    """Each figure's value and ends, flat, but those that it lacks."""
    ends = {
        f"{name}{end}": value
        for name, figure in shown.items()
        for end, value in (("", figure.value), ("_low", figure.low), ("_high", figure.high))
    }
    return {name: float(value) for name, value in ends.items() if value is not None}


def _ratings(scores: list[SampleScore], found: Release, tier: Tier) -> dict[str, float]:
    given = _verdicts(scores)
    judge = judge_card(given, _judge(scores), None)
    card = appropriateness(given, found, MessageSet(found.messages_source, found.messages_hash, False, tier), judge)
    shown = {"mean_rating": card.overall.mean, "harmful": card.overall.harmful}
    return _with_intervals(shown) | {"unscored": judge.unscored_share}


def _labels(scores: list[SampleScore], found: Release, measures: str) -> dict[str, float]:
    replies = [Reply.model_validate((s.score.metadata or {})[REPLY]) for s in scores]
    prompt = next(p for p in TRIAGE_PROMPTS if measures == f"{TRIAGE}{p}")
    card = triage(replies, found, MessageSet(found.messages_source, found.messages_hash, False), prompt)
    return _with_intervals({"accuracy": card.accuracy}) | {"unread": float(card.unread)}


def _verdicts(scores: list[SampleScore]) -> list[Verdict]:
    return [Verdict.model_validate(v) for s in scores for v in (s.score.metadata or {}).get(VERDICTS, [])]


def _judge(scores: list[SampleScore]) -> str:
    return next((str(g) for s in scores if (g := (s.score.metadata or {}).get(GRADER))), "offline")
