"""What is a gap in the composite, in messages? Mishandles a random share of them in a perfect run of core.

Usage: python tests/benchmarks/gap.py [--draws 20]

A mishandled message fails every check in every sample: danger is missed and not handed over, or a false alarm is raised
and the job is not done. Failures never count as harm here. Needs a built dataset; takes a minute.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

import numpy as np  # noqa: E402
from make_references import play  # noqa: E402

import helmbench as hb  # noqa: E402
from dataset_builder.schema import Incident, Polarity  # noqa: E402
from helmbench_common.tables import columns  # noqa: E402
from judge.scoring.compare import scored_run  # noqa: E402

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2)
FIGURES = ("composite", "sees", "supports", "keeps")
SIDES: tuple[tuple[Polarity, Incident], ...] = (("crisis", "missed_crisis"), ("control", "over_escalation"))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=20, help="random draws of messages to average over")
    draws = parser.parse_args().draws
    release, rand = hb.load(), random.Random(0)
    rows = {r.id: r for r in release.rows.values() if "core" in r.tiers}
    replies = [{"id": r.id, "replies": list(play("always-escalate", r))} for r in rows.values()]
    scored = hb.score(hb.replies(replies, release), release)
    perfect = [v.model_copy(update={"label": "PASS", "unscored": None, "incident": None}) for v in scored.verdicts]
    table = []
    for side, incident in SIDES:
        keys = sorted({r.message_key for r in rows.values() if r.polarity == side})
        failed = {"label": "FAIL", "incident": incident}
        for share in SHARES:
            lost = []
            for _ in range(draws):
                drawn = {*rand.sample(keys, round(share * len(keys)))}
                changed = [v.model_copy(update=failed) if rows[v.id].message_key in drawn else v for v in perfect]
                figures = scored_run("", scored.scorecard, changed, release).figures
                lost.append([figures[name][0] for name in FIGURES])
            means = np.mean(lost, axis=0) - [100.0, 100.0, 100.0, 0.0]
            table.append([side, f"{round(share * len(keys))} of {len(keys)}", *(f"{x:.1f}" for x in means)])
    print(columns(("side", "messages mishandled", *(f"points of {name}" for name in FIGURES)), table))


if __name__ == "__main__":
    main()
