"""How many labels and request structures the injection battery breaks, by kind; both columns are to be 0.

Usage: python tests/benchmarks/injections.py [--bases 50]. Needs a built dataset.

The battery's texts stand before and after each of the base replies; `--bases` takes the first so many of them.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "scripts")]

import test_injection as battery  # noqa: E402

from dataset_builder.release import open_release  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bases", type=int, default=len(battery.CASES))
    bases = battery.CASES[: parser.parse_args().bases]
    release = open_release()
    gained: Counter[str] = Counter()
    kinds = {i.id: i.kind for i in battery.BATTERY}
    broken = Counter(kinds[identity] for identity in battery.broken(release))
    for criterion, label, base in bases:
        gained.update(f.split()[0].rpartition("-")[0] for f in battery.gains(criterion, label, base))
    print(f"{'kind':18}{'texts':>6}{'readings':>10}{'gains':>7}{'broken requests':>17}")
    texts = Counter(i.kind for i in battery.BATTERY)
    for kind, count in texts.items():
        print(f"{kind:18}{count:6}{2 * count * len(bases):10}{gained[kind]:7}{broken[kind]:17}")
    print(f"{'all':18}{texts.total():6}{2 * texts.total() * len(bases):10}{gained.total():7}{broken.total():17}")


if __name__ == "__main__":
    main()
