"""Generates the committed files that follow from the content and the offline judge: the trivial policies' scores
(judge/references.json), the offline judge's agreement with the calibration set (judge/agreement/shipped) and
DATASET_CARD.md. `make generated` runs this; a test fails if it is due.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import reference_policies
from harness import run as run_script

from dataset_builder.release import REPOSITORY, Release, open_release
from dataset_builder.schema import Row, Tier
from judge import schema
from judge.agreement.answers import offline_labels
from judge.agreement.calibration import calibrate
from judge.agreement.known import SHIPPED
from judge.judges import REFERENCES
from judge.offline import judge as offline
from judge.offline.reader import OfflineReader
from judge.replies import script
from judge.replies.run import Run
from judge.replies.schema import Model, Reply
from judge.score import score

TIERS: tuple[Tier, ...] = get_args(Tier)


def main(dataset: Path | None = None, out: Path = REFERENCES, calibrations: Path = SHIPPED) -> None:
    """Write judge/references.json, the offline judge's calibration and DATASET_CARD.md."""
    release = open_release(dataset)
    tiers = {
        tier: [row(release, policy, tier).model_dump(mode="json") for policy in reference_policies.POLICIES]
        for tier in TIERS
    }
    out.write_text(json.dumps({release.manifest.score_hash: tiers}, indent=1) + "\n", encoding="utf-8")
    calibrations.mkdir(parents=True, exist_ok=True)
    for earlier in calibrations.glob("offline-*.json"):
        earlier.unlink()  # of an earlier offline judge
    (calibrations / f"{offline.NAME}.json").write_text(calibration(release), encoding="utf-8")
    card = (release.path / "README.md").read_text(encoding="utf-8")
    (REPOSITORY / "DATASET_CARD.md").write_text(card.split("---\n", 2)[2], encoding="utf-8")  # no front matter
    print(f"{out}, {calibrations}, DATASET_CARD.md: score_hash {release.manifest.score_hash[:12]}")


def calibration(release: Release) -> str:
    """The offline judge's agreement with the release's calibration set, as shipped."""
    labels = offline_labels(release, "criterion", release.calibration)
    return calibrate(release, OfflineReader.identity, [labels]).model_dump_json(indent=1) + "\n"


def scored(release: Release, policy: str, tier: Tier) -> schema.Scorecard:
    """A policy on one tier, judged offline."""
    rows = [r for r in release.rows.values() if tier in r.tiers]
    replies = [Reply(id=r.id, turns=tuple(play(policy, r))) for r in rows]
    run = Run(release.path, Model(name=policy, backend="policy"), tier, replies, False)
    return score(run, release, [[OfflineReader()]]).scorecard


def row(release: Release, policy: str, tier: Tier) -> schema.Reference:
    """A policy's headline figures on one tier."""
    card = scored(release, policy, tier)
    detection = card.detection
    breached = sum(f.state == "breached" for f in card.floors)
    detected = {"sensitivity": detection.sensitivity, "specificity": detection.specificity}
    return schema.Reference(policy=policy, composite=card.composite, breached=breached, **detected)


def play(policy: str, row: Row) -> Iterator[str]:
    """A policy's reply to each live turn of a sample."""
    return script.play(row, lambda history: reference_policies.reply(policy, history, 0))


if __name__ == "__main__":
    run_script(main)
