"""How many replies a second the offline judge reads on one core, beside scikit-learn over the same weights.

    python tests/benchmarks/offline_judge.py [--replies 5000] [--seed 1]

Every reply is another text, so that no cache answers: sentences of the replies that it was trained on are drawn at
random, in lengths from a line to a page, over all questions in turn. The plain alternative counts the same features
and multiplies them by the same weights with scikit-learn's DictVectorizer and a matrix; it must come to the same label
wherever the judge doesn't abstain.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.feature_extraction import DictVectorizer

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from helmbench_common.jsonl import objects  # noqa: E402
from judge.offline import judge as offline  # noqa: E402
from judge.offline import model  # noqa: E402

LENGTHS = ((1, 3), (4, 10), (10, 20), (20, 40))  # sentences in a reply: curt, short, usual, a page
Case = tuple[str, str, str]  # question, message, reply


def drawn(count: int, seed: int) -> list[Case]:
    """Cases, each reply another text."""
    draw = random.Random(seed)
    rows = [row for p in sorted((ROOT / "judge/offline/training").glob("*.jsonl")) for _, row in objects(p)]
    said = [s for row in rows for s in re.split(r"(?<=[.!?])\s+", row["reply"]) if s]
    questions = sorted(model.questions())
    return [
        (
            questions[n % len(questions)],
            draw.choice(rows)["said"][-1],
            f"{' '.join(draw.choices(said, k=draw.randint(*draw.choice(LENGTHS))))} ({n})",
        )
        for n in range(count)
    ]


def timed(read: Callable[[Case], object], cases: list[Case]) -> tuple[float, list[object]]:
    """Seconds of one core, whatever else the machine does, and what was read."""
    start = time.process_time()
    found = [read(case) for case in cases]
    return time.process_time() - start, found


def plainly() -> Callable[[Case], object]:
    """The same decision by scikit-learn's table of features and one product of matrices."""
    tables = {}
    for name, linear in model.questions().items():
        table = DictVectorizer().fit([dict.fromkeys(linear.weights, 1.0)])
        tables[name] = (table, np.array([linear.weights[f] for f in table.get_feature_names_out()]))

    def read(case: Case) -> object:
        question, message, reply = case
        linear, (table, weights) = model.questions()[question], tables[question]
        scores = linear.bias + table.transform([dict.fromkeys(offline.features(message, reply), 1.0)]) @ weights
        shares = np.exp(scores[0] - scores[0].max())
        shares /= shares.sum()
        names = [model.verdict(label) for label in linear.labels]
        sums = {name: sum(s for s, own in zip(shares, names, strict=True) if own == name) for name in names}
        best = max(sums, key=lambda name: sums[name])
        if len(reply) > offline.LONGEST or sums[best] < linear.threshold:
            return None
        return max((s, label) for s, label, n in zip(shares, linear.labels, names, strict=True) if n == best)[1]

    return read


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--replies", type=int, default=5_000)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    cases = drawn(given.replies, given.seed)
    length = sorted(len(reply) for _, _, reply in cases)
    print(
        f"{len(cases)} replies, all different; characters: median {length[len(length) // 2]}, 90 % "
        f"{length[9 * len(length) // 10]}, longest {length[-1]}"
    )
    offline.unguarded(*cases[0])
    seconds, found = timed(lambda case: offline.unguarded(*case).answer, cases)
    offline.features.cache_clear()
    plain_seconds, plain_found = timed(plainly(), cases)
    same = sum(a in (None, b) for a, b in zip(found, plain_found, strict=True))
    print(f"offline judge ({offline.NAME})   {len(cases) / seconds:8.0f} replies/s, with the sentence it rests on")
    print(f"scikit-learn's table       {len(cases) / plain_seconds:8.0f} replies/s   ({same} of {len(cases)} the same)")


if __name__ == "__main__":
    main()
