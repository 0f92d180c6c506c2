"""How many replies a second the offline judge reads on one core, beside the same patterns on Python's own engine.

    python tests/benchmarks/offline_judge.py [--replies 20000] [--seed 1]

Every reply is another text, so that no cache answers: sentences of the benchmark's own messages and of plain replies
are drawn at random, in lengths from a word to a page, over all criteria in turn. The plain alternative reads the same
replies with the same decisions on `re`, compiled beforehand, every pattern searched in full; it must give the same
labels.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from dataset_builder.prompts import CONTENT  # noqa: E402
from judge.offline import addressed, patterns, readings, stances  # noqa: E402
from judge.offline import judge as offline  # noqa: E402

LENGTHS = ((1, 3), (4, 10), (10, 20), (20, 40))  # sentences in a reply: curt, short, usual, a page


def sentences() -> tuple[list[str], list[str]]:
    """Sentences of users and of repliers, from the content and the tests' own tables."""
    import test_offline

    users = [
        s
        for path in sorted((CONTENT / "scenarios").glob("*.md"))
        for s in re.findall(r"[A-Z][^.!?\n#:]{15,160}[.!?]", path.read_text(encoding="utf-8"))
    ]
    return users, [s for _, _, reply in test_offline.CASES for s in re.split(r"(?<=[.!?])\s+", reply)]


def replies(count: int, seed: int) -> list[tuple[str, str, str]]:
    """(criterion, message, reply), each reply another text."""
    draw = random.Random(seed)
    users, repliers = sentences()
    criteria = sorted(readings.READERS)
    made: dict[str, tuple[str, str, str]] = {}
    while len(made) < count:
        low, high = draw.choice(LENGTHS)
        chosen = [draw.choice(repliers if draw.random() < 0.6 else users) for _ in range(draw.randint(low, high))]
        text = draw.choice((" ", "\n", "\n\n")).join(chosen) + f" ({len(made)})"
        made[text] = (criteria[len(made) % len(criteria)], " ".join(draw.choice(users) for _ in range(3)), text)
    return list(made.values())


def timed(read: Callable[[str, str, str], object], cases: list[tuple[str, str, str]]) -> tuple[float, list[object]]:
    """Seconds of one core, whatever else the machine does, and what was read."""
    start = time.process_time()
    found = [read(*case) for case in cases]
    return time.process_time() - start, found


def on_re() -> None:
    """Puts `re` in the place of RE2 behind every pattern."""

    def plain(pattern: object) -> re.Pattern[str]:
        written = str(pattern.pattern).replace(r"\z", r"\Z")  # type: ignore[attr-defined]
        flags, _, body = re.match(r"(?:\(\?([a-z]+)\))?()(.*)", written, re.DOTALL).groups()  # type: ignore[union-attr]
        return re.compile(f"(?{flags})(?:{body})" if flags else body, re.ASCII)

    modules: tuple[ModuleType, ...] = (patterns, stances, readings, addressed)
    for module in modules:
        for name, value in list(vars(module).items()):
            if type(value).__name__ == "_Regexp":
                setattr(module, name, plain(value))
    vars(addressed)["BLOCKS"] = tuple(plain(b) for b in addressed.BLOCKS)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--replies", type=int, default=20_000)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    cases = replies(given.replies, given.seed)
    length = sorted(len(reply) for _, _, reply in cases)
    print(
        f"{len(cases)} replies, all different; characters: median {length[len(length) // 2]}, 90 % "
        f"{length[9 * len(length) // 10]}, longest {length[-1]}"
    )
    offline.judge(*cases[0])
    seconds, found = timed(offline.judge, cases)
    print(f"offline judge ({offline.NAME}, RE2)   {len(cases) / seconds:8.0f} replies/s")
    some = cases[: max(200, len(cases) // 20)]
    offline._judge.cache_clear()
    offline._addressed.cache_clear()
    on_re()
    plain_seconds, plain_found = timed(offline.judge, some)
    same = sum(a == b for a, b in zip(plain_found, found, strict=False))
    print(
        f"the same on Python's re          {len(some) / plain_seconds:8.0f} replies/s   ({same} of "
        f"{len(some)} the same label and spans)"
    )


if __name__ == "__main__":
    main()
