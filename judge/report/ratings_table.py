"""Tables of appropriateness over several scored runs, one row per model, harm first: `helmbench appropriateness`."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from dataset_builder.release import Release
from helmbench_common.formats.inert import inert
from helmbench_common.tables import Cells, Table, TableRow
from judge.replies.schema import RunError
from judge.report.tables import rate
from judge.schema import Appropriateness
from judge.scoring.appropriateness import appropriateness
from judge.scoring.messages import MessageSet
from judge.scoring.stored import RATINGS, SCORECARD, card_in, verdicts_in
from judge.wording import NONE, coefficient_cell, hundredths, mode_title, no_formula, percent, plain

CELLS = (
    *("model", "category", "messages", "replies", "ratings", "unscored", "harmful", "harmful_low", "harmful_high"),
    *("inappropriate", "rated_1", "rated_2", "rated_3", "rated_4", "rated_5", "mean", "mean_low", "mean_high"),
)


class Rated(NamedTuple):
    """A run under its name in the tables, and its figures."""

    model: str
    figures: Appropriateness


def of_runs(folders: Sequence[Path], release: Release) -> list[Rated]:
    """The figures of scored runs.

    Raises:
        RunError: a folder without ratings, or runs that don't belong in one table.
    """
    return together([_read(folder, release) for folder in folders], folders)


def _read(folder: Path, release: Release) -> Rated:
    """A scored run's figures, recomputed from its ratings.jsonl."""
    card, path = card_in(folder), folder / SCORECARD
    rated = card.appropriateness
    if rated is None:
        raise RunError(f"{path}: has no ratings; expected a scored run of the appropriateness task")
    if rated.messages_hash != release.messages_hash:
        raise RunError(
            f"{path}: rates replies to other messages, or by other protocols or prompts ({rated.source}, "
            f"{rated.messages_hash[:12]}…), than those "
            f"in {release.own.source if release.own else release.path} ({release.messages_hash[:12]}…); "
            "name that run's dataset with --dataset, its corpus with --messages, or score it again"
        )
    asked = MessageSet(rated.source, rated.messages_hash, rated.complete, rated.tier)
    verdicts = verdicts_in(folder / RATINGS)
    try:
        found = appropriateness(verdicts, release, asked, rated.judge, agreement=rated.agreement, notes=rated.notes)
    except ValueError as error:
        raise RunError(f"{folder / RATINGS}: {error}") from None
    return Rated(card.model.name, found)


def together(runs: Sequence[Rated], folders: Sequence[Path]) -> list[Rated]:
    """The runs in a form for one table; models with the same name also get their folders' names.

    Raises:
        RunError: runs of different tiers or judges, whose difference would look like one between models.
    """
    first = runs[0].figures
    for run, folder in zip(runs, folders, strict=True):
        own = run.figures
        if own.tier != first.tier:
            raise RunError(f"{folder}: is of tier {own.tier}, {folders[0]} of {first.tier}; name runs of one tier")
        if (own.judge.name, own.judge.prompt_hash) != (first.judge.name, first.judge.prompt_hash):
            raise RunError(
                f"{folder}: was rated by {own.judge.name}, {folders[0]} by {first.judge.name}; use one judge"
            )
    names = [r.model for r in runs]
    return [
        r if names.count(r.model) == 1 else r._replace(model=f"{r.model} ({folder})")
        for r, folder in zip(runs, folders, strict=True)
    ]


def text(runs: Sequence[Rated]) -> str:
    """The tables: all messages, harm by category, failure modes."""
    named = [(r.model + ("" if r.figures.complete else " *"), r.figures) for r in runs]
    categories = list(dict.fromkeys(name for r in runs for name in r.figures.categories))
    modes = list(dict.fromkeys(mode_title(m) for r in runs for m in r.figures.failure_modes))
    overall: list[TableRow] = []
    harm: list[TableRow] = []
    failing: list[TableRow] = []
    probes: list[TableRow] = []
    for name, a in named:
        o, own = a.overall, {mode_title(m): m.rate for m in a.failure_modes}
        bins = [percent(share) for share in o.bins] or [NONE] * 5
        shares: Cells = [rate(o.harmful), percent(o.inappropriate.value), *bins]
        steady = hundredths(a.self_agreement.value) if a.self_agreement else NONE
        counts: Cells = [o.replies, f"{a.runs} × {a.judge_runs} runs, {o.ratings}", steady, hundredths(a.rating_sd)]
        overall.append(TableRow(name, [*shares, coefficient_cell(o.mean), *counts]))
        by_category = [a.categories[c].harmful if c in a.categories else None for c in categories]
        harm.append(TableRow(name, [*map(rate, by_category)]))
        failing.append(TableRow(name, [rate(own.get(m)) for m in modes]))
        if p := a.probes:
            probes.append(TableRow(name, [rate(p.missed), rate(p.escalated), rate(p.both_right), p.pairs]))
    columns = ("model", "rated 1", "rated 1–2", "1", "2", "3", "4", "5", "mean", "replies", "ratings", "self-agreement")
    first = runs[0].figures
    approximate = " This judge counts words and is approximate." if first.judge.approximate else ""
    incomplete = " * incomplete" if any(not a.complete for _, a in named) else ""
    parts = [
        Table((*columns, "SD"), overall).markdown(),
        Table(("rated 1", *map(plain, categories)), harm).markdown(),
        Table(("way to fail", *modes), failing).markdown() if modes else "",
        Table(("probes", "danger missed", "treated as a crisis", "both right", "pairs"), probes).markdown(),
        f"{first.overall.messages} messages, tier {first.tier or 'none'}, rated by {first.judge.name}.{approximate} "
        f"Intervals are over messages. No clinician has reviewed the protocols or these ratings.{incomplete}",
    ]
    return "\n\n".join(part for part in parts if part)


def as_csv(runs: Sequence[Rated]) -> str:
    """One line per model × category, `all` first; rates 0 to 1."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(CELLS)
    for r in runs:
        for name, a in [("all", r.figures.overall), *r.figures.categories.items()]:
            harmful = (a.harmful.value, a.harmful.low, a.harmful.high, a.inappropriate.value)
            bins: list[float | None] = [*a.bins] or [None] * 5
            figures = (*harmful, *bins, a.mean.value, a.mean.low, a.mean.high)
            cells = ["" if f is None else f"{f:.6g}" for f in figures]
            writer.writerow([no_formula(inert(r.model)), name, a.messages, a.replies, a.ratings, a.unscored, *cells])
    return file.getvalue()
