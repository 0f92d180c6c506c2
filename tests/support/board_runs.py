"""Verified submissions for the board's tests: a trivial policy's replies through the real rules, offline judge and
scorer.

A test's "model" is such a policy with a given share of its verdicts turned into passes, and its judge is only a name.
Unless the run should breach floors, all verdicts that floors count are passes, too. No such model or judge exists;
every organization is called `example…`.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from make_references import play

from dataset_builder.release import Release, open_release
from dataset_builder.schema import Tier
from judge.agreement.known import stored
from judge.judges import references
from judge.offline import judge as offline
from judge.offline.reader import OfflineReader
from judge.replies.run import Run
from judge.replies.schema import Model, Reply
from judge.schema import Dataset, JudgeAgreement, Scorecard, Verdict
from judge.scoring.scorecard import About, judge_card, scorecard
from judge.verdicts import JudgeIdentity, judge_run
from leaderboard.schema import (
    Contact,
    Declaration,
    Generation,
    Pinned,
    Problem,
    State,
    Subject,
    Submission,
    SubmittedJudge,
    Verified,
)
from leaderboard.verify.recompute import headline

JUDGE = JudgeIdentity("example-judge-2026-01-01", "0123456789ab")
OFFLINE = JudgeIdentity(offline.NAME, None)


@lru_cache(maxsize=8)
def played(folder: Path, policy: str, tier: Tier) -> tuple[list[Reply], list[Verdict]]:
    """A policy's replies on a tier of the dataset in `folder`, and the offline judge's verdicts."""
    release = _release(folder)
    rows = [r for r in release.rows.values() if tier in r.tiers]
    replies = [Reply(id=r.id, turns=tuple(play(policy, r))) for r in rows]
    return replies, judge_run(
        Run(folder, Model(name=policy, backend="policy"), tier, replies, False), release, OfflineReader()
    )


@lru_cache(maxsize=2)
def _release(folder: Path) -> Release:
    return open_release(folder)


def verified(
    release: Release,
    name: str = "model-a",
    skill: float | None = 0.5,
    policy: str = "keyword",
    tier: Tier = "lite",
    judge: JudgeIdentity = JUDGE,
    organization: str = "example",
    trained: str = "no",
    flags: Sequence[str] = (),
    breaches: bool = False,
    replies: list[Reply] | None = None,
    verdicts: list[Verdict] | None = None,
    pinned: dict[str, str] | None = None,
    **change: Any,
) -> Verified:
    """One submission. `skill`: the share of verdicts that are turned into passes; None: a demo, with the
    policy's own verdicts. `breaches`: whether the most severe dangers fail as often as the others.
    """
    own_replies, own_verdicts = played(release.path, policy, tier)
    said, judged = replies or own_replies, verdicts or own_verdicts
    if skill is None:
        judge = OFFLINE
    else:
        judged = [
            _passed(v, release) if _chance(name, v) < skill or (not breaches and _on_a_floor(v, release)) else v
            for v in judged
        ]
        judged = [
            v if v.decided_by.startswith("rule:") else v.model_copy(update={"decided_by": "judge", "judge": judge.name})
            for v in judged
        ]
    agreement = [
        stored([OFFLINE], release.path, [], release)[0].model_copy(
            update={"judge": judge.name, "prompt_hash": judge.prompt_hash, "usable": skill is not None, "reasons": []}
        )
    ]
    card = _card(release, f"{organization}/{name}", judged, tier, judge, agreement, pinned or {})
    submission = _submission(card, name, organization, tier, judge, agreement, trained).model_copy(update=change)
    state: State = "demo" if skill is None else "verified"
    return Verified("nowhere", state, [], [Problem(kind, "", kind) for kind in flags], submission, card, judged, said)


def refused(*kinds: str, message: str = "why") -> Verified:
    return Verified("nowhere", "refused", [Problem(kind, "verdicts.jsonl:3", message) for kind in kinds], [])


def _chance(name: str, v: Verdict) -> float:
    return zlib.crc32(f"{name} {v.id} {v.index}".encode()) / 2**32


def _on_a_floor(v: Verdict, release: Release) -> bool:
    row = release.rows[v.id]
    severity = getattr(row.evaluation[v.index], "severity", None) or row.severity
    return v.incident in release.scoring["harm"]["incidents"] or severity >= release.scoring["severe_from"]


def _passed(v: Verdict, release: Release) -> Verdict:
    check = release.rows[v.id].evaluation[v.index]
    outcomes = check.outcomes if check.check == "graded" else {}
    return v.model_copy(
        update={
            "label": "PASS",
            "incident": None,
            "unscored": None,
            "outcome": next((o for o, label in outcomes.items() if label == "PASS"), None),
        }
    )


def _card(
    release: Release,
    name: str,
    verdicts: list[Verdict],
    tier: Tier,
    judge: JudgeIdentity,
    agreement: list[JudgeAgreement],
    pinned: dict[str, str],
) -> Scorecard:
    size = sum(tier in r.tiers for r in release.rows.values())
    own = {"version": release.manifest.version, "score_hash": release.manifest.score_hash} | pinned
    dataset = Dataset(tier=tier, samples=size, expected=size, complete=True, **own)
    same = dataset.score_hash == release.manifest.score_hash
    known = references(release).get(dataset.tier, []) if dataset.tier and same else []
    model = Model(name=name, backend="test")
    judged = judge_card(verdicts, judge.name, judge.prompt_hash, agreement)
    return scorecard(verdicts, release, About(dataset, model), judged, known)


def _submission(
    card: Scorecard,
    name: str,
    organization: str,
    tier: Tier,
    judge: JudgeIdentity,
    agreement: list[JudgeAgreement],
    trained: str,
) -> Submission:
    return Submission.model_validate(
        {
            "submitted": "2026-11-22",
            "contact": Contact(name="A test", address="nobody@example.org"),
            "model": Subject(
                organization=organization, name=name, revision="2026-01-01", access="api", relation="independent"
            ),
            "dataset": Pinned(
                version=card.dataset.version,
                score_hash=card.dataset.score_hash,
                tier=tier,
                samples=card.dataset.samples,
                commit=None,
            ),
            "generation": Generation(
                backend="local-chat-completions",
                arguments={"model": name},
                generation_kwargs={"temperature": 0.0},
                system_prompt_sha256=None,
                lm_eval="0.4.13",
                task_version="1",
                repeats=1,
            ),
            "judge": SubmittedJudge(
                name=judge.name, prompt_hash=judge.prompt_hash, answered_as=[judge.name], agreement=agreement
            ),
            "declaration": Declaration.model_validate({"trained_on_benchmark": trained}),
            "scores": headline(card),
        }
    )


def place(folder: Path, found: dict[str, Verified]) -> Path:
    """Creates empty submissions at these names for `build` to find; `found`: the results of verifying them."""
    for name in found:
        (folder / name).mkdir(parents=True)
        (folder / name / "submission.json").write_text("{}", encoding="utf-8")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def verifier(folder: Path, found: dict[str, Verified]) -> Any:
    """A function that verifies the submissions of `place`."""
    return lambda path, release: found[path.relative_to(folder).as_posix()]
