"""Fuzzes the commands for as long as you like: `python tests/fuzz/longer.py --minutes 30 [--only content]`.

Targets take turns. Each defect is told once, and kept in a folder with its input, output and command;
exit code 1 if there is any. `--again FOLDER` runs the command of such a folder on its input once more.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[n]) for n in (1, 2)] + [
    str(Path(__file__).resolve().parents[2] / "scripts")
]

from fuzz import rooms, targets  # noqa: E402
from fuzz.mutations import Change, changes  # noqa: E402
from hypothesis import HealthCheck, Phase, given, seed, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

TURN = 12  # examples of a target until the next one's turn
UNBOUND = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck), "phases": [Phase.generate]}


class Tally:
    """What came of a target so far."""

    def __init__(self, target: rooms.Target, template: Path, worker: rooms.Worker) -> None:
        self.target, self.template, self.worker = target, template, worker
        self.examples, self.seconds = 0, 0.0
        self.found: dict[tuple[str, str], tuple[rooms.Defect, int, Path]] = {}

    def turn(self, number: int, home: Path, kept: Path, until: float) -> None:
        """One turn's examples, drawn by the turn's number."""

        @seed(f"{self.target.name} {number}")
        @settings(max_examples=TURN, **UNBOUND)  # type: ignore[arg-type]
        @given(changes(), st.integers(0, 999))
        def examples(made: list[Change], choice: int) -> None:
            if time.monotonic() < until:
                self._one(made, choice, home, kept)

        started = time.monotonic()
        examples()
        self.seconds += time.monotonic() - started

    def _one(self, made: list[Change], choice: int, home: Path, kept: Path) -> None:
        defect = rooms.attempt(self.target, self.template, home, self.worker, made, choice)
        self.examples += 1
        if defect is None:
            return
        key = (defect.kind, defect.why)
        known = self.found.get(key)
        if known is None:
            place = rooms.saved(defect, self.target, home, kept, made)
            print(f"  {self.target.name}: {defect.kind}: {defect.why}\n    {defect.command}\n    {place}", flush=True)
            self.found[key] = (defect, 1, place)
        else:
            self.found[key] = (known[0], known[1] + 1, known[2])


def fuzz(names: list[str], minutes: float, kept: Path, start: int) -> int:
    """Turns of these targets until the time is up; how many defects there were."""
    ground = Path(tempfile.mkdtemp(prefix="helmbench-fuzz-"))
    try:
        print(f"laying the ground for {', '.join(names)}", flush=True)
        targets.lay(ground / "ground", names)
        with rooms.Worker() as worker:
            found = targets.targets(ground / "ground")
            tallies = [Tally(found[name], ground / name, worker) for name in names]
            for tally in tallies:
                rooms.furnish(tally.target, tally.template)
                rooms.warm(tally.target, tally.template, ground / "home", worker)
            before = rooms.tree(ground / "ground")
            _turns(tallies, time.monotonic() + 60 * minutes, start, ground / "home", kept)
            assert rooms.tree(ground / "ground") == before, "a command changed what stands outside its room"
    finally:
        shutil.rmtree(ground, ignore_errors=True)
    return _told(tallies)


def _turns(tallies: list[Tally], until: float, number: int, home: Path, kept: Path) -> None:
    while time.monotonic() < until:
        for tally in tallies:
            tally.turn(number, home, kept, until)
            print(f"  {tally.target.name}: {tally.examples} examples", flush=True)
        number += 1
        done, defects = sum(t.examples for t in tallies), sum(len(t.found) for t in tallies)
        left = max(0.0, until - time.monotonic()) / 60
        print(f"{done} examples, {defects} defects, {left:.0f} minutes left", flush=True)


def _told(tallies: list[Tally]) -> int:
    print(f"\n{'target':<12} {'owner':<9} {'examples':>8} {'minutes':>8} {'defects':>8}")
    for t in tallies:
        print(f"{t.target.name:<12} {t.target.owner:<9} {t.examples:>8} {t.seconds / 60:>8.1f} {len(t.found):>8}")
        for defect, often, place in t.found.values():
            print(f"    {often} × {defect.kind} (exit code {defect.ended.code}): {defect.why}\n      {place}")
    examples, seconds = sum(t.examples for t in tallies), sum(t.seconds for t in tallies)
    defects = sum(len(t.found) for t in tallies)
    print(f"{'in all':<12} {'':<9} {examples:>8} {seconds / 60:>8.1f} {defects:>8}")
    return defects


def again(folder: Path) -> None:
    """Runs a kept defect's command on its input."""
    said = json.loads((folder / "defect.json").read_text())
    with tempfile.TemporaryDirectory(prefix="helmbench-fuzz-") as place, rooms.Worker() as worker:
        targets.lay(Path(place, "ground"), [said["target"]])
        home = Path(place, "home")
        shutil.copytree(folder, home, symlinks=True)
        print(f"$ {said['command']}", flush=True)
        ended = worker.run(shlex.split(said["command"])[1:], home)
        print(f"{ended.stdout}{ended.stderr}exit code {ended.code}, {ended.cpu:.1f} s of its own")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long (default: 30)")
    parser.add_argument("--only", action="append", choices=targets.NAMES, help="this target only; repeatable")
    parser.add_argument("--kept", type=Path, default=Path("defects"), help="where defects are kept (default: defects)")
    parser.add_argument("--seed", type=int, default=0, help="which examples; equal seeds give equal ones (default: 0)")
    parser.add_argument("--again", type=Path, metavar="FOLDER", help="run a kept defect once more, and nothing else")
    asked = parser.parse_args()
    if asked.again:
        again(asked.again)
        return 0
    return 1 if fuzz(asked.only or [*targets.NAMES], asked.minutes, asked.kept, asked.seed) else 0


if __name__ == "__main__":
    sys.exit(main())
