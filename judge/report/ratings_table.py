"""The paper's tables (seed 003) over several scored runs, one row per model, harm first: `helmbench
appropriateness`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dataset_builder.release import Release
from helmbench_common.formats.inert import inert
from helmbench_common.tables import markdown_table
from judge.replies.schema import RunError
from judge.schema import Appropriate, Appropriateness, Figure
from judge.scoring.appropriateness import appropriateness
from judge.scoring.messages import Asked
from judge.scoring.stored import RATINGS, SCORECARD, card_in, verdicts_in
from judge.wording import NONE, hundredths, mode_title, no_formula, percent, percents, plain

HEAD = (
    *("model", "rated 1", "95 % interval", "rated 1–2", "1", "2", "3", "4", "5", "mean", "95 % interval", "replies"),
    *("ratings", "self-agreement", "SD"),
)
CELLS = (
    *("model", "category", "messages", "replies", "ratings", "unscored", "harmful", "harmful_low", "harmful_high"),
    *("inappropriate", "rated_1", "rated_2", "rated_3", "rated_4", "rated_5", "mean", "mean_low", "mean_high"),
)


class Rated(NamedTuple):
    """A run as the tables name it, and its figures."""

    model: str
    figures: Appropriateness


def read(folder: Path, release: Release) -> Rated:
    """A scored run's figures, made anew from its ratings.jsonl.

    Raises:
        RunError: a file that is missing or damaged, or ratings of other messages than the release's.
    """
    card, path = card_in(folder), folder / SCORECARD
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
            verdicts_in(folder / RATINGS),
            release,
            Asked(rated.source, rated.messages_hash, rated.complete, rated.tier),
            rated.judge,
            agreement=rated.agreement,
            notes=rated.notes,
        )
    except ValueError as error:
        raise RunError(f"{folder / RATINGS}: {error}") from None
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


def of_runs(folders: Sequence[Path], release: Release) -> list[Rated]:
    """The figures of scored runs.

    Raises:
        RunError: a folder without ratings, or runs that one table would mix up.
    """
    return together([read(folder, release) for folder in folders], folders)


def plain_values(runs: Sequence[Rated]) -> dict[str, Any]:
    """Every figure by model, ready for JSON."""
    return {r.model: r.figures.model_dump(mode="json") for r in runs}


def text(runs: Sequence[Rated]) -> str:
    """The tables: all messages, harm by category, ways to fail."""
    named = [(r.model + ("" if r.figures.complete else " *"), r.figures) for r in runs]
    categories = list(dict.fromkeys(name for r in runs for name in r.figures.categories))
    modes = list(dict.fromkeys(mode_title(m) for r in runs for m in r.figures.failure_modes))
    first = runs[0].figures
    approximate = " This judge counts words and is approximate." if first.judge.approximate else ""
    lines = [
        markdown_table(HEAD, [_overall(name, a) for name, a in named]),
        markdown_table(
            ("rated 1", *map(plain, categories)),
            [(name, *(_harmful(a.categories.get(c)) for c in categories)) for name, a in named],
        ),
        markdown_table(("way to fail", *modes), [(name, *(_mode(a, m) for m in modes)) for name, a in named])
        if modes
        else "",
        markdown_table(
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
    writer.writerow(CELLS)
    for r in runs:
        for name, a in [("all", r.figures.overall), *r.figures.categories.items()]:
            writer.writerow([no_formula(inert(r.model)), name, *_cells(a)])
    return file.getvalue()


def _cells(a: Appropriate) -> list[str]:
    """One category's counts and figures, as far as there are any."""
    bins: list[float | None] = [*a.bins] or [None] * 5
    harmful, mean = a.harmful, a.mean
    figures = (harmful.value, harmful.low, harmful.high, a.inappropriate.value, *bins, mean.value, mean.low, mean.high)
    counts = (a.messages, a.replies, a.ratings, a.unscored)
    return [*map(str, counts), *("" if f is None else f"{f:.6g}" for f in figures)]


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
