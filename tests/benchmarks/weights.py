"""What the weights of scoring.yaml make of imagined models, and how ranks change under other weights.

- *Imagined models*: right everywhere except as their line says; their composite on a tier.
- *Ranks*: 40 seeded models, each with its own rates by behavior and polarity, are ranked with one price at half and at
  twice what it is: of a miss, of a headline, of every score of 10 points or more. Kendall's tau with today's order;
  `moved` is the largest change of rank.

Usage: python tests/benchmarks/weights.py [--dataset DIR] [--tier core]
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import kendalltau, rankdata

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.scores import scorer, verdicts  # noqa: E402

from dataset_builder.release import Release, open_release  # noqa: E402
from dataset_builder.schema import Tier  # noqa: E402
from helmbench_common.tables import columns  # noqa: E402
from judge.scoring.anchors import anchors, baseline_reads  # noqa: E402
from judge.scoring.figures import Scorer  # noqa: E402
from judge.scoring.table import Read  # noqa: E402

MODELS, LISTED = 40, 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", type=Path)
    parser.add_argument("--tier", choices=["lite", "core", "full"], default="core")
    args = parser.parse_args()
    release = open_release(args.dataset)
    own = perfect(release, args.tier)
    print(columns(("a model that", "composite"), [(name, f"{composite(own, r):.1f}") for name, r in imagined(own)]))
    for name in ("job", "refusal"):
        print(f"{name} for everyone: {composite(own, baseline_reads(own.table, release)[name]):.1f}")
    models = [drawn(own, seed) for seed in range(MODELS)]
    today = [composite(own, m) for m in models]
    lines: list[tuple[str, ...]] = []
    for name, scoring in others(release.scoring):
        changed = Scorer(own.table, scoring, own.anchors)
        then = [composite(changed, m) for m in models]
        moved = np.abs(rankdata(today) - rankdata(then)).max()
        lines.append((name, f"{kendalltau(today, then).statistic:.3f}", f"{moved:.0f}"))
    print()
    print(columns((f"ranks of {MODELS} models", "tau", "moved"), lines))


def perfect(release: Release, tier: Tier) -> Scorer:
    rows = {r.id: r for r in release.rows.values() if tier in r.tiers}
    return scorer(release, verdicts(rows), anchors(release, tier))


def composite(own: Scorer, read: Read) -> float:
    value = own.value(own.total({code: own.made(code, read) for code in own.ran}))
    return float("nan") if value is None else value


def read_of(own: Scorer, wrong: Any, harm: Any = 0.0) -> Read:
    """A model with these chances to be wrong, and to do harm, at every entry."""
    right = np.ones(own.table.size) - wrong
    return Read(right, right, right, np.ones(own.table.size) - harm)


def imagined(own: Scorer) -> Iterator[tuple[str, Read]]:
    t = own.table
    free = t.kind.mask("criterion") | t.kind.mask("graded")
    means = t.criterion.mask("withholds-the-means") & t.crisis
    late = t.under(["P1-B5", "P1-B6"])
    yield "is perfect", read_of(own, 0.0)
    yield "misses 10 % of the dangers of P1", read_of(own, 0.1 * (t.crisis & t.detects))
    yield "alarms 10 % of all controls", read_of(own, 0.1 * ~t.crisis)
    yield "misses 12 % everywhere", read_of(own, 0.12 * t.crisis)
    yield "misses 5 % and alarms 10 %", read_of(own, np.where(t.crisis, 0.05, 0.1))
    yield "fails where means are asked for, giving none", read_of(own, means)
    yield "gives them all", read_of(own, means, means)
    yield "misses all free-text dangers of P1-B5 and P1-B6", read_of(own, late & t.crisis & free)
    yield "misses every danger in free replies of P1", read_of(own, t.detects & t.crisis & free)
    yield "misses every danger in tags and actions", read_of(own, t.detects & t.crisis & ~free)
    yield "is wrong everywhere, and harms", read_of(own, 1.0, 1.0)


def drawn(own: Scorer, seed: int) -> Read:
    """A model that is wrong in 2 to 25 % of a score's dangers and controls, each by its own rate, and harms in up to
    3 %.
    """
    t, chance = own.table, np.random.default_rng(seed)
    rates = chance.uniform(0.02, 0.25, (len(t.behavior.names), 2))
    return read_of(own, rates[t.behavior.codes, t.crisis.astype(int)], chance.uniform(0, 0.03) * t.crisis)


def others(scoring: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for factor, called in ((0.5, "half"), (2.0, "twice")):
        changed = copy.deepcopy(dict(scoring))
        changed["miss"] = max(1.0, factor * scoring["miss"])
        yield f"a miss at {changed['miss']:g} false alarms", changed
        for side in ("sees", "supports", "keeps"):
            changed = copy.deepcopy(dict(scoring))
            for code, score in changed["scores"].items():
                score["weight"] *= factor if score["headline"] == side and code != "harm" else 1
            yield f"{side} at {called}", changed
        for code, score in scoring["scores"].items():
            if score["weight"] >= LISTED:
                changed = copy.deepcopy(dict(scoring))
                changed["scores"][code]["weight"] = factor * score["weight"]
                yield f"{code} at {called}", changed


if __name__ == "__main__":
    main()
