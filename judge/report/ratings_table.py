"""`judge appropriateness RUN …`: the paper's tables (seed 003) over several scored runs, one row per model, harm first.

Usage: python -m judge appropriateness RUN [RUN …] [--json FILE] [--csv FILE]
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from corpora.labelled import on_corpus
from dataset_builder.files import write_whole
from dataset_builder.release import Release, open_release
from judge.report.summary import columns
from judge.schema import Appropriate, Appropriateness, Figure, Scorecard
from judge.scoring import ratings
from judge.scoring.appropriateness import appropriateness
from judge.scoring.messages import Asked
from judge.wording import NONE, hundredths, mode_title, no_formula, percent, percents, plain
from replies.errors import RunError

HEAD = (
    "model",
    "rated 1",
    "95 % interval",
    "rated 1–2",
    "1",
    "2",
    "3",
    "4",
    "5",
    "mean",
    "95 % interval",
    "replies",
    "ratings",
    "self-agreement",
    "SD",
)
CSV_HEAD = (
    *("model", "category", "messages", "replies", "ratings", "unscored"),
    *("harmful", "harmful_low", "harmful_high", "inappropriate"),
    *(f"rated_{n}" for n in range(1, 6)),
    *("mean", "mean_low", "mean_high"),
)


class Rated(NamedTuple):
    """A run as the tables name it, and its figures."""

    model: str
    figures: Appropriateness


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `judge appropriateness`."""
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a folder that `judge score` has written to")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure as JSON, by model")
    parser.add_argument(
        "--csv", type=Path, metavar="FILE", help="also write one line per model × category, rates 0 to 1"
    )
    parser.add_argument("--dataset", type=Path, metavar="DIR", help="the built dataset (default: as for `judge score`)")
    parser.add_argument(
        "--messages", type=Path, metavar="FOLDER", help="the labelled corpus that the runs were made on"
    )


def run(options: argparse.Namespace) -> int:
    """Does what `judge appropriateness` says; returns the exit code.

    Raises:
        ReleaseError, RunError: bad input, or runs that one table would mix up. OSError: the disk.
    """
    release = open_release(options.dataset)
    if options.messages:
        release = on_corpus(release, options.messages)
    found = together([read(folder, release) for folder in options.runs], options.runs)
    sys.stdout.write(text(found) + "\n")
    if options.json:
        write_whole(
            options.json,
            json.dumps({r.model: r.figures.model_dump(mode="json") for r in found}, indent=1, ensure_ascii=False)
            + "\n",
        )
    if options.csv:
        write_whole(options.csv, as_csv(found))
    return 0


def read(folder: Path, release: Release) -> Rated:
    """A scored run's figures, made anew from its ratings.jsonl.

    Raises:
        RunError: a file that is missing or damaged, or ratings of other messages than the release's.
    """
    path = folder / "scorecard.json"
    if not path.is_file():
        raise RunError(f"{path}: missing; run `python -m judge score {folder}` first")
    try:
        card = Scorecard.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise RunError(f"{path}: {error.errors()[0]['msg']}; score the run again") from None
    rated = card.appropriateness
    if rated is None:
        raise RunError(f"{path}: holds no ratings; expected a run of the appropriateness task, scored")
    if rated.messages_hash != release.messages_hash:
        raise RunError(
            f"{path}: rates replies to other messages, or by other protocols or prompts ({rated.source}, "
            f"{rated.messages_hash[:12]}…), than those "
            f"in {release.own.source if release.own else release.path} ({release.messages_hash[:12]}…); "
            "name that run's dataset with --dataset, its corpus with --messages, or score it again"
        )
    try:
        found = appropriateness(
            ratings.read(folder / ratings.FILE),
            release,
            Asked(rated.source, rated.messages_hash, rated.complete, rated.tier),
            rated.judge,
            agreement=rated.agreement,
            notes=rated.notes,
        )
    except ValueError as error:
        raise RunError(f"{folder / ratings.FILE}: {error}") from None
    return Rated(card.model.name, found)


def together(runs: Sequence[Rated], folders: Sequence[Path]) -> list[Rated]:
    """The runs as one table may show them; models that share a name are told apart by their folders.

    Raises:
        RunError: runs of different tiers or judges, whose difference would be read as one of models.
    """
    first = runs[0].figures
    for own, folder in zip(runs, folders, strict=True):
        if own.figures.tier != first.tier:
            raise RunError(
                f"{folder}: is of tier {own.figures.tier}, {folders[0]} of {first.tier}; name runs of one tier"
            )
        if (own.figures.judge.name, own.figures.judge.prompt_hash) != (first.judge.name, first.judge.prompt_hash):
            raise RunError(
                f"{folder}: was rated by {own.figures.judge.name}, {folders[0]} by {first.judge.name}; score "
                "them with one judge"
            )
    names = [r.model for r in runs]
    return [
        r if names.count(r.model) == 1 else r._replace(model=f"{r.model} ({folder})")
        for r, folder in zip(runs, folders, strict=True)
    ]


def text(runs: Sequence[Rated]) -> str:
    """The tables: all messages, harm by category, ways to fail."""
    named = [(r.model + ("" if r.figures.complete else " *"), r.figures) for r in runs]
    categories = list(dict.fromkeys(name for r in runs for name in r.figures.categories))
    modes = list(dict.fromkeys(mode_title(m) for r in runs for m in r.figures.failure_modes))
    first = runs[0].figures
    approximate = " This judge looks for word patterns and is approximate." if first.judge.approximate else ""
    lines = [
        columns(HEAD, [_overall(name, a) for name, a in named]),
        columns(
            ("rated 1", *map(plain, categories)),
            [(name, *(_harmful(a.categories.get(c)) for c in categories)) for name, a in named],
        ),
        columns(("way to fail", *modes), [(name, *(_mode(a, m) for m in modes)) for name, a in named]) if modes else "",
        columns(
            ("probes", "danger missed", "treated as a crisis", "both right", "pairs"),
            [_probes(name, a) for name, a in named if a.probes],
        ),
        f"{first.overall.messages} messages, tier {first.tier or 'none'}, rated by "
        f"{first.judge.name}.{approximate} Intervals are of messages. "
        "No clinician has reviewed the protocols or these ratings."
        + (" * incomplete" if any(not a.complete for _, a in named) else ""),
    ]
    return "\n\n".join(line for line in lines if line)


def as_csv(runs: Sequence[Rated]) -> str:
    """One line per model × category, `all` first; rates 0 to 1."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(CSV_HEAD)
    for r in runs:
        for name, a in [("all", r.figures.overall), *r.figures.categories.items()]:
            figures = ("" if c is None else f"{c:.6g}" for c in _cells(a))
            writer.writerow([no_formula(r.model), name, a.messages, a.replies, a.ratings, a.unscored, *figures])
    return file.getvalue()


def _cells(a: Appropriate) -> tuple[float | None, ...]:
    bins: list[float | None] = [*a.bins] or [None] * 5
    h, m = a.harmful, a.mean
    return h.value, h.low, h.high, a.inappropriate.value, *bins, m.value, m.low, m.high


def _overall(name: str, a: Appropriateness) -> tuple[str, ...]:
    o = a.overall
    mean = NONE if o.mean.low is None else f"{hundredths(o.mean.low)} to {hundredths(o.mean.high)}"
    shares = [percent(share) for share in o.bins] or [NONE] * 5
    steady = NONE if a.self_agreement is None else hundredths(a.self_agreement.value)
    counts = f"{a.runs} × {a.judge_runs} runs, {o.ratings}"
    rates = (percent(o.harmful.value), percents(o.harmful), percent(o.inappropriate.value))
    return (
        name,
        *rates,
        *shares,
        hundredths(o.mean.value),
        mean,
        str(o.replies),
        counts,
        steady,
        hundredths(a.rating_sd),
    )


def _harmful(a: Appropriate | None) -> str:
    return NONE if a is None else _with_interval(a.harmful)


def _mode(a: Appropriateness, title: str) -> str:
    return next((_with_interval(m.rate) for m in a.failure_modes if mode_title(m) == title), NONE)


def _probes(name: str, a: Appropriateness) -> tuple[str, ...]:
    if a.probes is None:
        return name, NONE, NONE, NONE, "0"
    return name, *map(_with_interval, (a.probes.missed, a.probes.escalated, a.probes.both_right)), str(a.probes.pairs)


def _with_interval(f: Figure) -> str:
    return percent(f.value) + ("" if f.low is None else f" [{percents(f)}]")
