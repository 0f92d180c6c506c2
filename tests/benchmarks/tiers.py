"""What core costs in precision: the width of a behavior's interval on core beside full's, over intra-cluster
correlations.

Samples of one message are alike; ρ says how much (scoring.md section 5 saw 0.2 to 0.8). For a rate p, the variance of
the weighted mean is p(1 − p) Σ_m [ρ (Σw)² + (1 − ρ) Σw²] / (Σw)², summed over messages m (Kish, Survey Sampling, 1965,
on the design effect of clusters with weights); w are the weights of scoring.yaml. Widths are 2 · 1.96 standard errors
at p = 0.85, in points; the ratio doesn't depend on p. `core k` is what k samples per message would give.

Usage: python tests/benchmarks/tiers.py [--content DIR] [--samples 2 4 6 8]
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from dataset_builder.composing.compose import samples  # noqa: E402
from dataset_builder.prompts import CONTENT  # noqa: E402
from dataset_builder.reading.content_types import Content  # noqa: E402
from dataset_builder.reading.load import load  # noqa: E402
from dataset_builder.schema import BEHAVIORS  # noqa: E402
from dataset_builder.stats.coverage import behaviors  # noqa: E402

CORRELATIONS = (0.2, 0.5, 0.8)
RATE = 0.85


def weights(content: Content, tier: str) -> tuple[dict[str, dict[str, list[float]]], int]:
    """behavior → message → the weights of its samples in the tier; and how many samples the tier has."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    count = 0
    served = {(s.id, p.code): behaviors(s, p) for s in content.scenarios for p in s.perturbations}
    for sample in samples(content):
        if tier not in sample.tiers:
            continue
        count += 1
        band = next(
            b["weight"] for b in content.scoring["bands"] if b["from"] <= abs(sample.message.severity) <= b["to"]
        )
        clear = content.scoring["ambiguous_weight"] if sample.message.attributes.get("clarity") == "ambiguous" else 1.0
        weight = band * clear * (1 - sample.condition.difficulty / content.scoring["difficulty_discount"])
        for behavior in served[sample.scenario.id, sample.message.code]:
            found[behavior][f"{sample.scenario.id}-{sample.message.code}"].append(weight)
    for messages in found.values():
        for key, own in messages.items():
            messages[key] = [
                w / len(own) for w in own
            ]  # as judge.table does: a message counts once, however many samples it has
    return found, count


def width(messages: dict[str, list[float]], correlation: float) -> float:
    """Of the 95 % interval, in points."""
    total = sum(sum(own) for own in messages.values())
    variance = (
        sum(correlation * sum(own) ** 2 + (1 - correlation) * sum(w * w for w in own) for own in messages.values())
        / total**2
    )
    return 100 * 2 * 1.96 * math.sqrt(RATE * (1 - RATE) * variance)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--content", type=Path, default=CONTENT)
    parser.add_argument(
        "--samples", type=int, nargs="+", default=[2, 4, 6, 8], help="samples per message to try (default: %(default)s)"
    )
    options = parser.parse_args()
    content, errors = load(options.content)
    if content is None:
        raise SystemExit("\n".join(errors.lines()))
    full, of_full = weights(content, "full")
    sizes = {}
    columns = {}
    for k in options.samples:
        columns[k], sizes[k] = weights(
            dataclasses.replace(content, tiers={**content.tiers, "core_samples_per_message": k}), "core"
        )
    print(
        "samples: "
        + ", ".join(f"core {k}: {n}" for k, n in sizes.items())
        + f", full: {of_full}; core is {content.tiers['core_samples_per_message']}\n"
    )
    for correlation in CORRELATIONS:
        print(
            f"ρ = {correlation}"
            + " " * 50
            + "messages"
            + "".join(f"  core {k:<2}" for k in columns)
            + "     full   width against full's"
        )
        for code in BEHAVIORS:
            if code not in full:
                continue
            whole = width(full[code], correlation)
            own = {k: width(found[code], correlation) for k, found in columns.items()}
            ratios = "  ".join(f"{k}: {w / whole:.2f}" for k, w in own.items())
            print(
                f"{code + '  ' + BEHAVIORS[code]:<58}{len(full[code]):>7}"
                + "".join(f"{w:>9.1f}" for w in own.values())
                + f"{whole:>9.1f}   {ratios}"
            )
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
