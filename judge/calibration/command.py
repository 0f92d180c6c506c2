"""`judge calibrate`: how far a judge agrees with the calibration set or with people's labels, and whether it may judge
a submission.

Usage: python -m judge calibrate --judge offline
       python -m judge calibrate --model NAME … --base-url URL   [--repeats 3] [--wording judge,judge-b,judge-reason]
       [--out FILE]
       python -m judge calibrate --judge offline --model NAME … --labels FILE …   [--cases SOURCE]
Asking is resumed where it stopped; without --base-url it reads what any engine has answered.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dataset_builder.release import Release, open_release
from judge.calibration import ratings as rating_agreement
from judge.calibration.asking import Examined, examine_all, measured
from judge.calibration.known import FILE
from judge.calibration.text import text
from judge.llm import batch
from judge.llm.questions import PLAIN, WORDINGS
from replies.errors import RunError

REPEATS = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `judge calibrate`; those of the endpoint are added by the command line, which has them for
    other commands too.
    """
    parser.add_argument(
        "--judge", action="append", default=[], metavar="NAME", help="offline, or a model as with --model; repeatable"
    )
    parser.add_argument("--model", action="append", default=[], metavar="NAME", help="a judge's model name; repeatable")
    parser.add_argument(
        "--repeats",
        type=int,
        default=REPEATS,
        metavar="N",
        help="ask every question of the first wording so often (default: %(default)s)",
    )
    parser.add_argument(
        "--wording",
        type=_wordings,
        default=WORDINGS,
        metavar="A,B,…",
        help="wordings of the question; the first is calibrated, the others are compared with it (default: "
        f"{','.join(WORDINGS)})",
    )
    parser.add_argument(
        "--labels",
        nargs="+",
        type=Path,
        default=[],
        metavar="FILE",
        help="people's labels, one rater or more: measure against these, and choose",
    )
    parser.add_argument(
        "--cases",
        type=Path,
        default=Path("calibration"),
        metavar="SOURCE",
        help="with --labels: the replies that they label, as for `annotate`",
    )
    parser.add_argument(
        "--home",
        type=Path,
        default=Path("calibration"),
        metavar="DIR",
        help="where answers are kept (default: ./calibration)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help=f"where to write the figures (default: HOME/judge/MODEL/{FILE}; one judge only)",
    )
    parser.add_argument("--dataset", type=Path, metavar="DIR", help="the built dataset (default: as for `judge score`)")


def run(options: argparse.Namespace) -> int:
    """Does what `judge calibrate` says; returns the exit code.

    Raises:
        RunError, ValueError: bad input, or questions without an answer where there is nobody to ask. EngineError,
            BudgetError: as `judge run`.
    """
    names = list(dict.fromkeys([*options.judge, *options.model]))
    if not names:
        raise RunError("judge calibrate: name a judge with --judge offline or --model NAME")
    if options.repeats < 1:
        raise ValueError("--repeats: expected 1 or more")
    if options.out and len(names) > 1:
        raise RunError("judge calibrate: --out is for a single judge; several write below --home")
    release = open_release(options.dataset)
    if options.labels:
        from judge.people.choose import against_people

        sys.stdout.write(against_people(release, names, options) + "\n")
        return 0
    if not release.calibration:
        raise RunError(
            f"{release.path}: this dataset has no calibration set; measure against people's labels with --labels"
        )
    for name in names:
        labels, rated = examine_all(release, name, options, tuple(options.wording))
        found = measured(release, labels)
        path: Path = options.out or batch.folder(options.home, found.judge) / FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found.model_dump_json(indent=1) + "\n", encoding="utf-8")
        sys.stdout.write(f"{text(found, release)}\n{path}\n")
        if release.rating_calibration:
            _ratings(release, rated, path.parent)
    return 0


def _ratings(release: Release, judge: Examined, where: Path) -> None:
    found = rating_agreement.measured(release, judge.identity, judge.repeats)
    path = where / rating_agreement.FILE
    path.write_text(found.model_dump_json(indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"\n{rating_agreement.text(found)}\n{path}\n")


def _wordings(given: str) -> tuple[str, ...]:
    """`judge,judge-b,judge-reason`, or their short names a, b and reason."""
    short = {"a": PLAIN, "b": "judge-b", "reason": "judge-reason"}
    names = tuple(dict.fromkeys(short.get(name.strip(), name.strip()) for name in given.split(",")))
    if unknown := [n for n in names if n not in WORDINGS]:
        raise argparse.ArgumentTypeError(
            f"{unknown[0]!r} is no wording; expected some of {', '.join([*short, *WORDINGS])}"
        )
    return names
