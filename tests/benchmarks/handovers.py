"""How often the offline judge leaves, or judges wrong, what it reads worst: handing over in a few words or by a
question, a talk joined into one reply, a message said back.

    python tests/benchmarks/handovers.py

The replies and the labels that their author intends are tests/handovers.jsonl. One verdict per label.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import test_offline  # noqa: E402


def main() -> None:
    print(f"{'kind':8}{'verdicts':>9}{'right':>7}{'wrong':>7}{'left':>6}{'left':>9}{'wrong of decided':>18}")
    for kind, own in test_offline.counted().items():
        decided = own["right"] + own["wrong"]
        wrong = f"{own['wrong'] / decided:.0%}".replace("%", " %") if decided else "–"
        share = f"{own['left'] / own.total():.0%}".replace("%", " %")
        print(f"{kind:8}{own.total():9}{own['right']:7}{own['wrong']:7}{own['left']:6}{share:>9}{wrong:>18}")


if __name__ == "__main__":
    main()
