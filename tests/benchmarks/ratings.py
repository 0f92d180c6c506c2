"""How long the paper's tables take: 91,980 ratings, five models × 2,044 messages × 3 runs × 3
judge runs, next to pandas.

Usage: python tests/benchmarks/ratings.py [--models 5] [--messages 2044]. Needs a built dataset.

Messages are the release's under new ids; ratings are drawn with a seed, one in a hundred unscored. Each reply also has
the verdicts of its criteria, as `helmbench score` writes them, so the files hold more lines than ratings.
Ours is what `helmbench appropriateness` does: read and check each line, shares, bins and means with their intervals, by
category and over all, ways to fail, the judge's self-agreement, and the printed table. The alternative reads lines with
`json` and takes shares, bins and means by pandas' groupby, without intervals or anything else. The last line says
whether both give the same numbers.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from dataset_builder.release import Release, open_release  # noqa: E402
from dataset_builder.schema import CriterionRow, UserMessage  # noqa: E402

RUNS = JUDGE_RUNS = 3
UNSCORED = 0.01
Table = dict[str, dict[str, list[float]]]  # model → category → share rated 1, share rated 1 or 2, five bins, mean


class Basis(NamedTuple):
    """What is counted on, as a release has it."""

    messages: Mapping[str, UserMessage]
    criteria: Mapping[str, CriterionRow]
    scoring: Mapping[str, Any]


def synthetic(release: Release, wanted: int) -> dict[str, UserMessage]:
    """So many messages: the release's, again and again under new ids."""
    real = list(release.messages.values())
    made = (real[n % len(real)].model_copy(update={"id": f"{real[n % len(real)].id}-{n}"}) for n in range(wanted))
    return {m.id: m for m in made}


def write(release: Release, messages: dict[str, UserMessage], path: Path, seed: int) -> None:
    """A ratings.jsonl as `helmbench score` leaves it, of a model whose replies get better with the seed."""
    from judge.schema import Verdict

    rng = np.random.default_rng(seed)
    share = np.array([0.06, 0.05, 0.09, 0.2, 0.6]) ** (1 - 0.1 * seed)
    ratings = rng.choice(5, p=share / share.sum(), size=(len(messages), RUNS, JUDGE_RUNS)) + 1
    ratings[rng.random(ratings.shape) < UNSCORED] = 0
    failed = rng.random((len(messages), RUNS, 8)) < 0.1

    def verdict(n: int, m: UserMessage, repeat: int, index: int) -> Verdict:
        check = m.evaluation[index]
        own: dict[str, Any] = {"id": m.id, "repeat": repeat, "index": index, "check": check.check, "turn": -1}
        own |= {"behavior": check.behavior, "decided_by": "panel", "judge": "judge-1", "prompt_hash": "0" * 16}
        if check.check == "appropriateness":
            given = [int(r) or None for r in ratings[n, repeat]]
            heard = sorted(filter(None, given))
            scores = [{"label": r, "unscored": None if r else "unparsable"} for r in given]
            own |= {"votes": [{"judge": "judge-1", "repeat": k, **score} for k, score in enumerate(scores)]}
            label = heard[(len(heard) - 1) // 2] if len(heard) > 1 else None
            own |= {"label": label, "unscored": None if label else "unparsable"}
        elif check.check == "criterion":
            fails, fail = release.criteria[check.criterion].fails, bool(failed[n, repeat, index])
            way = fails[0].split()[1] if fails else "missed_crisis"
            own |= {"criterion": check.criterion, "label": "FAIL" if fail else "PASS"}
            own |= {"incident": way if fail else None}
        return Verdict.model_validate(own)

    with path.open("w", encoding="utf-8") as file:
        for n, m in enumerate(messages.values()):
            for repeat in range(RUNS):
                file.writelines(
                    verdict(n, m, repeat, index).model_dump_json() + "\n" for index in range(len(m.evaluation))
                )


def ours(release: Release, messages: dict[str, UserMessage], paths: list[Path]) -> Table:
    """Every table, printed ones included; the numbers that the alternative has, too."""
    from judge.report.ratings_table import Rated, text, together
    from judge.schema import Appropriate
    from judge.scoring.appropriateness import appropriateness
    from judge.scoring.messages import MessageSet
    from judge.scoring.scorecard import judge_card
    from judge.scoring.stored import verdicts_in

    found = []
    for path in paths:
        verdicts = verdicts_in(path)
        judge = judge_card(verdicts, "judge-1", "0123456789abcdef")
        basis = Basis(messages, release.criteria, release.scoring)
        card = appropriateness(verdicts, basis, MessageSet("synthetic", "0", True), judge)
        found.append(Rated(path.stem, card))
    assert text(together(found, paths))

    def numbers(a: Appropriate) -> list[float]:
        return [a.harmful.value or 0.0, a.inappropriate.value or 0.0, *a.bins, a.mean.value or 0.0]

    return {
        r.model: {"all": numbers(r.figures.overall), **{str(c): numbers(a) for c, a in r.figures.categories.items()}}
        for r in found
    }


def alternative(_: Release, messages: dict[str, UserMessage], paths: list[Path]) -> Table:
    """The same numbers by pandas."""
    import pandas as pd

    table: Table = {}
    for path in paths:
        rows = []
        for line in path.open(encoding="utf-8"):
            v = json.loads(line)
            if v["check"] == "appropriateness":
                rows += [(messages[v["id"]].crisis_category, x["label"]) for x in v["votes"]]
        frame = pd.DataFrame(rows, columns=["category", "rating"]).dropna()
        groups = {"all": frame, **dict(iter(frame.groupby("category")))}
        table[path.stem] = {
            str(name): [
                float((g["rating"] == 1).mean()),
                float((g["rating"] <= 2).mean()),
                *(float((g["rating"] == n).mean()) for n in range(1, 6)),
                float(g["rating"].mean()),
            ]
            for name, g in groups.items()
        }
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=5)
    parser.add_argument("--messages", type=int, default=2044)
    args = parser.parse_args()
    release = open_release()
    messages = synthetic(release, args.messages)
    tables, used = [], []
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"model-{n}.jsonl" for n in range(args.models)]
        for n, path in enumerate(paths):
            write(release, messages, path, n)
        lines = sum(sum(1 for _ in path.open("rb")) for path in paths)
        print(f"{args.models * args.messages * RUNS * JUDGE_RUNS:,} ratings in {lines:,} lines of {args.models} files")
        print(f"{'':8}{'CPU s':>9}")
        for name, take in (("ours", ours), ("pandas", alternative)):
            take(release, messages, paths[:1])  # imports
            started = time.process_time()
            tables.append(take(release, messages, paths))
            used.append(time.process_time() - started)
            print(f"{name:8}{used[-1]:9.1f}", flush=True)
    a, b = tables
    same = a.keys() == b.keys() and all(
        a[m].keys() == b[m].keys() and all(np.allclose(a[m][c], b[m][c], rtol=0, atol=1e-12) for c in a[m]) for m in a
    )
    print(f"CPU time: {used[0] / used[1]:.2f} × pandas")
    print("the tables are equal" if same else "the tables DIFFER")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
