"""What the facts of a case cost: tokens of a judge's questions about a run, beside the same questions without facts.

Usage: python tests/benchmarks/facts.py [--tier core]. Needs a built dataset.

Every question that a run of the tier could put to a judge, with replies of the length that `stats --cost` expects. The
case is what no prefix cache holds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from dataset_builder.release import Release, open_release  # noqa: E402
from dataset_builder.schema import Sample  # noqa: E402
from dataset_builder.stats.cost import BYTES_PER_TOKEN, ESTIMATE, PROSE, counter  # noqa: E402
from judge.llm.questions import build  # noqa: E402
from judge.replies.script import live_turns  # noqa: E402

REPLY = "x" * BYTES_PER_TOKEN * PROSE
CASE = "\n# Case\n"


def questions(release: Release, tier: str) -> Iterator[tuple[str, str]]:
    """The text of each question, with the facts and without."""
    for row in release.rows.values():
        if tier not in row.tiers:
            continue
        # The same sample without what only a row of the benchmark knows: it has no facts.
        plain = Sample.model_validate({name: getattr(row, name) for name in Sample.model_fields})
        turns = (REPLY,) * live_turns(row)
        for check in row.evaluation:
            if check.check == "graded" or check.check == "criterion":
                told, bare = (build(sample, check, turns, release, "judge").body for sample in (row, plain))
                yield told["messages"][0]["content"], bare["messages"][0]["content"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tier", choices=("lite", "core", "full"), default="core")
    tier, count = parser.parse_args().tier, counter(None)
    found = list(questions(open_release(), tier))
    told, bare, case = (
        np.array([count(text) for text in texts])
        for texts in ((t for t, _ in found), (b for _, b in found), (t.partition(CASE)[2] for t, _ in found))
    )
    print(f"{len(found):,} questions of tier {tier}; tokens by {ESTIMATE}")
    print(f"{'':15}{'mean':>8}{'p95':>8}")
    for name, tokens in (("with facts", told), ("without facts", bare), ("the facts", told - bare)):
        print(f"{name:15}{tokens.mean():8.0f}{np.percentile(tokens, 95):8.0f}")
    added = (told - bare).sum()
    print(f"the facts are {added / case.sum():.1%} of the cases and {added / told.sum():.1%} of the questions")


if __name__ == "__main__":
    main()
