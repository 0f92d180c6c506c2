"""(run, release, judges) → Scored: the only place where judging and scoring meet. Pure: no file, clock, network,
option.

The command, the verifier, the references and every runner call it with judges that they construct: `judges` builds them
from names and folders, the verifier from a submission's archive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from dataset_builder.release import Release
from dataset_builder.schema import Tier
from judge import panel, schema
from judge.replies.run import Run
from judge.replies.schema import TRIAGE_PROMPTS, RunError
from judge.replies.script import unknown_reasoning
from judge.schema import Scorecard, Verdict
from judge.scoring.appropriateness import appropriateness
from judge.scoring.messages import MessageSet
from judge.scoring.scorecard import About, judge_card, scorecard
from judge.scoring.talks import talks
from judge.scoring.triage import triage
from judge.verdicts import JudgeIdentity, Reader, judge_messages, judge_run, judge_talks

Judge = Sequence[Reader]  # one judge: how it reads, in each of its repeats


class Known(NamedTuple):
    """Figures from outside the run. `agreement`: each judge with the calibration set, for a panel the panel first;
    `ratings`: a single judge with the rating calibration set; `people`: each judge with human labels, by set;
    `references`: the trivial policies' scores, by tier.
    """

    agreement: Sequence[schema.JudgeAgreement] = ()
    ratings: Sequence[schema.CriterionAgreement] = ()
    references: Mapping[Tier, Sequence[schema.Reference]] = MappingProxyType({})
    people: Sequence[schema.PeopleAgreement] = ()


NOTHING = Known()


class Scored(NamedTuple):
    """A run's scorecard and the verdicts behind it: on the benchmark's samples, on standalone messages, and
    on talks.
    """

    scorecard: Scorecard
    verdicts: list[Verdict]
    ratings: list[Verdict]
    talks: Sequence[Verdict] = ()


class Decided(NamedTuple):
    """One verdict per check, from a rule or a judge; the panel's card if there are several judges or repeats."""

    verdicts: list[Verdict]
    identity: JudgeIdentity
    panel: schema.Panel | None


def score(run: Run, release: Release, judges: Sequence[Judge], known: Known = NOTHING) -> Scored:
    """Judges every reply of a run and scores the verdicts.

    Raises:
        RunError: replies to samples or messages that are not of the run's tier.
        ValueError: no judge.
    """
    release = release.of(run.tier)
    dataset = dataset_of(run, release)
    decided = decide(run, release, judges)
    card = judge_card(
        decided.verdicts,
        decided.identity.name,
        decided.identity.prompt_hash,
        known.agreement,
        decided.panel,
        known.people,
    )
    references = known.references.get(dataset.tier, ()) if dataset.tier else ()
    scored = scorecard(decided.verdicts, release, About(dataset, run.model), card, references)
    if note := unknown_reasoning(turn for reply in run.replies for turn in reply.turns):
        scored.notes.append(note)
    rated = decide(run, release, judges, judge_messages) if run.messages else None
    talked = decide(run, release, judges, judge_talks) if run.talks else None
    alone = {
        "appropriateness": _rated(run, release, rated, known) if rated else None,
        "triage": _triage(run, release),
        "talks": _talks(run, release, talked) if talked else None,
        "real_messages": release.own.about if release.own and (run.messages or run.triage) else None,
    }
    verdicts = [own.verdicts if own else [] for own in (decided, rated, talked)]
    return Scored(scored.model_copy(update=alone), *verdicts)


def decide(
    run: Run,
    release: Release,
    judges: Sequence[Judge],
    judging: Callable[[Run, Release, Reader], list[Verdict]] = judge_run,
) -> Decided:
    """Combines the verdicts of all judges; a single judge asked once keeps its own. `judging`: which replies."""
    members = [panel.Member(j[0].identity, [judging(run, release, reader) for reader in j]) for j in judges]
    if len(members) == 1 and len(members[0].repeats) == 1:
        return Decided(members[0].repeats[0], members[0].identity, None)
    verdicts, card = panel.combine(members, release)
    return Decided(verdicts, panel.identity_of([m.identity for m in members]), card)


def source_of(run: Run) -> schema.Source:
    """The replies of a run, as a scorecard names them."""
    return schema.Source(file=run.file.name, samples=run.samples, sha256=run.sha256)


def dataset_of(run: Run, release: Release) -> schema.Dataset:
    """Which samples of the release were run.

    Raises:
        RunError: samples that are not of the run's tier.
    """
    expected = {r.id for r in release.rows.values() if run.tier is None or run.tier in r.tiers}
    if unexpected := run.ids - expected:
        raise RunError(f"{run.path}: {len(unexpected)} samples are not of tier {run.tier}, such as {min(unexpected)}")
    manifest = release.manifest
    return schema.Dataset(
        version=manifest.version,
        score_hash=manifest.score_hash,
        tier=run.tier,
        samples=len(run.ids),
        expected=len(expected),
        complete=run.ids == expected and not run.limited,
    )


def _rated(run: Run, release: Release, decided: Decided, known: Known) -> schema.Appropriateness:
    """The figures of a run's ratings (docs/scoring.md section 6)."""
    expected = {m.id for m in release.messages.values() if run.messages_tier is None or run.messages_tier in m.tiers}
    given = {r.id for r in run.messages}
    if unexpected := given - expected:
        raise RunError(
            f"{run.path}: {len(unexpected)} messages are not of tier {run.messages_tier}, such as {min(unexpected)}"
        )
    judge = judge_card(decided.verdicts, decided.identity.name, decided.identity.prompt_hash, panel=decided.panel)
    complete = given == expected and judge.lost_share <= release.scoring["unscored_limit"]
    tier = None if release.own else run.messages_tier  # a corpus has samples instead of tiers
    alone = decided.panel is None or len(decided.panel.members) == 1
    return appropriateness(
        decided.verdicts,
        release,
        MessageSet(release.messages_source, release.messages_hash, complete, tier),
        judge,
        agreement=known.ratings if alone else (),
        notes=_notes(judge, len(given), len(expected)),
    )


def _talks(run: Run, release: Release, decided: Decided) -> schema.Talks:
    judge = judge_card(decided.verdicts, decided.identity.name, decided.identity.prompt_hash, panel=decided.panel)
    return talks(run.talks, decided.verdicts, release, judge)


def _notes(judge: schema.Judge, given: int, expected: int) -> list[str]:
    notes = ["No clinician has reviewed the protocols or these ratings."]
    if judge.approximate:
        notes.append(
            "The offline judge rated: it counts words and is approximate. Such ratings show that the "
            "pipeline runs, not how good replies are."
        )
    if given < expected:
        notes.append(f"{given} of {expected} messages were run.")
    return notes


def _triage(run: Run, release: Release) -> list[schema.Triage]:
    """The figures for the labels that the run's model gave, one entry per prompt."""
    whole = {m.id for m in release.messages.values() if run.messages_tier in m.tiers}
    found = []
    for prompt in TRIAGE_PROMPTS:
        if own := run.triage.get(prompt):
            asked = MessageSet(release.messages_source, release.messages_hash, {r.id for r in own} == whole)
            found.append(triage(own, release, asked, prompt))
    return found
