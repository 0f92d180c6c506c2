"""What every report shows beside a run: the trivial policies' scores (judge/references.json) and how far the offline
judge agrees with the calibration set (judge/agreement/shipped/offline-N.json).

Usage: python scripts/make_references.py [--dataset DIR] [--out FILE] [--calibrations DIR]. Run it after the content or
the offline judge changed; a test says when.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import reference_policies

from dataset_builder.release import Release, open_release
from dataset_builder.schema import Row, Tier
from judge import schema
from judge.agreement.calibration import of_offline
from judge.agreement.known import SHIPPED
from judge.judges import REFERENCES
from judge.offline import judge as offline
from judge.offline.reader import OfflineReader
from judge.replies import script
from judge.replies.run import Run
from judge.replies.schema import Model, Reply
from judge.score import score

TIERS: tuple[Tier, ...] = ("lite", "core", "full")


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description="Score the trivial policies and keep the figures beside the judge.")
    parser.add_argument("--dataset", type=Path, help="the built dataset (default: as for the judge)")
    parser.add_argument("--out", type=Path, default=REFERENCES, help="file to write (default: judge/references.json)")
    parser.add_argument(
        "--calibrations",
        type=Path,
        default=SHIPPED,
        metavar="DIR",
        help="where to write the offline judge's (default: judge/agreement/shipped)",
    )
    options = parser.parse_args(arguments)
    release = open_release(options.dataset)
    tiers = {
        tier: [row(release, policy, tier).model_dump(mode="json") for policy in reference_policies.POLICIES]
        for tier in TIERS
    }
    options.out.write_text(json.dumps({release.manifest.score_hash: tiers}, indent=1) + "\n", encoding="utf-8")
    options.calibrations.mkdir(parents=True, exist_ok=True)
    for earlier in options.calibrations.glob("offline-*.json"):
        earlier.unlink()  # of an offline judge that is no more
    (options.calibrations / f"{offline.NAME}.json").write_text(calibration(release), encoding="utf-8")
    print(
        f"{options.out}: {len(reference_policies.POLICIES)} policies on {', '.join(TIERS)}, score_hash "
        f"{release.manifest.score_hash[:12]}"
    )
    return 0


def calibration(release: Release) -> str:
    """The offline judge's agreement with the release's calibration set, as it is shipped."""
    return of_offline(release).model_dump_json(indent=1) + "\n"


def row(release: Release, policy: str, tier: Tier) -> schema.Reference:
    """A policy's headline on one tier, judged offline."""
    rows = [r for r in release.rows.values() if tier in r.tiers]
    replies = [Reply(id=r.id, turns=tuple(play(policy, r))) for r in rows]
    run = Run(release.path, Model(name=policy, backend="policy"), tier, replies, False)
    card = score(run, release, [[OfflineReader()]]).scorecard
    detection = card.detection
    breached = sum(f.state == "breached" for f in card.floors)
    return schema.Reference(
        policy=policy,
        composite=card.composite,
        sensitivity=detection.sensitivity,
        specificity=detection.specificity,
        breached=breached,
    )


def play(policy: str, row: Row) -> Iterator[str]:
    """What a policy says on every live turn of a sample."""
    return script.play(row, lambda history: reference_policies.reply(policy, history, 0))


if __name__ == "__main__":
    sys.exit(main())
