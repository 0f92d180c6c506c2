"""A scored run as a submission for the board.

Usage: python scripts/make_submission.py RUN_DIR --about about.yaml   [--out submissions] [--run NAME] [--dataset DIR]
[--calibration FILE …]
       python scripts/make_submission.py RUN_DIR --organization ORG --model NAME --revision REV --access open_weights
       --relation independent
           --contact-name NAME --contact-address ADDRESS --trained-on-benchmark no
Asks for nothing; what is missing is listed at once. Exit code 0: made and verified; 1: it can't be submitted, with
every reason.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from dataset_builder.release import REPOSITORY, ReleaseError, open_release
from leaderboard.submit.about import FIELDS, flag, gather
from leaderboard.submit.pack import Made, make
from leaderboard.verify.command import line
from replies.errors import RunError


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description="Pack a scored run as a submission, and verify it.")
    parser.add_argument(
        "run_dir",
        type=Path,
        metavar="RUN_DIR",
        help="the --output_path of an lm_eval run that `judge score` has scored",
    )
    parser.add_argument(
        "--about", type=Path, metavar="FILE", help="YAML with contact, model and declaration; flags go before it"
    )
    for field, what in FIELDS.items():
        parser.add_argument(flag(field), dest=field.rstrip("?"), metavar="TEXT", help=what)
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("submissions"),
        metavar="DIR",
        help="where submissions stand (default: ./submissions)",
    )
    parser.add_argument(
        "--run", metavar="NAME", help="the run's folder (default: the first twelve digits of its replies' sha256)"
    )
    parser.add_argument(
        "--calibration",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        help="what `judge calibrate` measured of a judge; repeatable",
    )
    parser.add_argument(
        "--date", default=datetime.now(UTC).date().isoformat(), help="the day of submission (default: today)"
    )
    parser.add_argument("--commit", default=_commit(), help="of the code that made the run (default: this checkout's)")
    parser.add_argument("--dataset", type=Path, metavar="DIR", help="the built dataset (default: as for `judge score`)")
    options = parser.parse_args(arguments)
    about, problems = gather(
        options.about, {field.rstrip("?"): getattr(options, field.rstrip("?")) for field in FIELDS}
    )
    if about is None:
        print("\n".join(problems), file=sys.stderr)
        return 1
    try:
        made = make(
            options.run_dir,
            open_release(options.dataset),
            about,
            options.out,
            options.date,
            options.commit,
            options.run,
            options.calibration,
        )
    except (RunError, ReleaseError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    print(summary(made))
    return 0


def summary(made: Made) -> str:
    """What was packed, what it came to, and what to do next."""
    sizes = [f"  {p.name:<16}{p.stat().st_size:>12,} bytes" for p in sorted(made.folder.iterdir())]
    public = (
        "submission.json, verdicts.jsonl and SHA256SUMS may be public; responses.zip holds every reply "
        "and is for verifiers only"
    )
    flags = [f"flag: {line(p)}" for p in made.verified.flags]
    return "\n".join(
        [
            f"{made.folder}: {made.verified.state}",
            *sizes,
            public,
            *made.notes,
            *flags,
            f"next: python -m judge verify {made.folder}",
        ]
    )


def _commit() -> str | None:
    if not (REPOSITORY / ".git").exists():
        return None
    done = subprocess.run(["git", "-C", str(REPOSITORY), "rev-parse", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or None


if __name__ == "__main__":
    sys.exit(main())
