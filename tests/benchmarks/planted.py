"""Do the intervals hold? Simulated models whose true rates are planted, scored by the library, compared with the truth.

Usage: python tests/benchmarks/planted.py [--seeds 2000] [--jobs 2] [--design a b] [--kind rates groups curves] [--icc
0.2 0.5 0.8]. Needs a built dataset.

Estimand: messages like these, this model, these settings. Every seed draws its messages anew from a population: a slot
of a scenario takes one of that scenario's real messages as a pattern (its severity, difficulty, conditions and
contexts, with replacement) and a new disposition z ~ N(0, 1) of the model towards it. Its samples pass with
    logit⁻¹(intercept + slope · |severity| + scenario + planted effect + σ z),
independently given z. σ is set so that two samples of a message correlate as the ICC says (on the pass/fail scale, not
the logit). Truth is the population's value under the library's weights, by quadrature over z; it uses the library for
weights and polarity, and for no estimate. Nothing generalises to scenarios, contexts or conditions that aren't here.

Design a is this release's core tier: P1-B1 12 crisis and 13 control messages, P1-B3 11/11, P2-B3 9/8, P3-B1 10/8, P4-B1
5/9 (with and without a safety prompt), P4-B2 12 controls, 4 conversations.
Design b is the planned library: P1-B1…B6 120/100/100/60/60/60, P2 80, P3 60, P4 120 messages, in scenarios of about 20,
synthesised from the real rows; its P1 crisis messages stand on a ladder of severities 1…10.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from scipy.optimize import brentq  # noqa: E402
from scipy.special import expit, ndtri  # noqa: E402

from dataset_builder.release import open_release  # noqa: E402
from dataset_builder.schema import Row  # noqa: E402
from judge.schema import Figure, Verdict  # noqa: E402
from judge.scoring import breakdown  # noqa: E402
from judge.scoring.figures import Scorer  # noqa: E402
from judge.scoring.table import Table, build  # noqa: E402

Array = NDArray[np.float64]
Design = Literal["a", "b", "b-p1"]
Check = Literal["tags", "graded", "rating", "criterion", "appropriateness"]
Label = Literal["PASS", "PARTIAL", "FAIL"]
LABELS: tuple[Label, ...] = get_args(Label)
ICCS = (0.2, 0.5, 0.8)
LEVELS = (0.7, 0.9, 0.95)
THRESHOLDS = (3.0, 5.0, 7.0)
CURVE_SLOPE = 0.8  # of the population's logit, per unit of severity
INVERTED = 8  # the rung that is planted 0.5 below the one before it
PARTIAL_GAP = 1.0  # logits between passing and at least half passing
# Behavior of the real rows that a planned behavior is synthesised from, its messages, and its number of scenarios.
PLANNED = {
    "P1-B1": ("P1-B1", 120, 6),
    "P1-B2": ("P1-B1", 100, 5),
    "P1-B3": ("P1-B3", 100, 5),
    "P1-B4": ("P1-B3", 60, 3),
    "P1-B5": ("P1-B1", 60, 3),
    "P1-B6": ("P1-B1", 60, 3),
    "P2-B1": ("P2-B1", 20, 1),
    "P2-B3": ("P2-B3", 60, 3),
    "P3-B1": ("P3-B1", 60, 3),
    "P4-B1": ("P4-B1", 60, 3),
    "P4-B2": ("P4-B2", 60, 3),
}


# --- the population
# ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Population:
    """Every message that a slot could hold. Arrays have shape (n,), n entries (sample × check)."""

    rows: dict[str, Row]
    table: Table  # of every entry; only its weights, polarities and columns are used
    share: Array  # the chance that a seed holds the entry
    choices: list[NDArray[np.int64]]  # per slot: the message codes it may hold
    partial: NDArray[np.bool_]  # whether the entry's check knows PARTIAL
    scenario: Array  # the scenario's own shift, in logits
    scoring: dict[str, Any]
    verdicts: dict[tuple[int, int], Verdict] = field(default_factory=dict)

    @cached_property
    def arms(self) -> NDArray[np.int64]:
        """(pairs, 2): entries with the safety prompt, and the same without it."""
        t = self.table
        place = {(r.id, int(k)): n for n, (r, k) in enumerate(zip(t.rows, t.index, strict=True))}
        return np.array(
            [(n, place[r.pair_of, int(t.index[n])]) for n, r in enumerate(t.rows) if r.arm == "with" and r.pair_of],
            dtype=np.int64,
        )

    def verdict(self, entry: int, label: int) -> Verdict:
        """One verdict object per entry and label, shared by all seeds."""
        if (found := self.verdicts.get((entry, label))) is None:
            row, check = self.table.rows[entry], self.table.checks[entry]
            found = _verdict(row, int(self.table.index[entry]), check.check, check.behavior, LABELS[label])
            self.verdicts[entry, label] = found
        return found


def _verdict(row: Row, index: int, check: Check, behavior: str, label: Label) -> Verdict:
    return Verdict.model_construct(
        id=row.id,
        repeat=0,
        index=index,
        check=check,
        behavior=behavior,
        turn=-1,
        label=label,
        unscored=None,
        incident=None,
        decided_by="rule:planted",
    )


class Slot(NamedTuple):
    """A place for one message: the scenario it stands in, its polarity and number, and the patterns it may take."""

    behavior: str
    scenario: str
    polarity: str
    number: int
    patterns: list[tuple[list[Row], int | None]]  # a real message's rows, and a severity in place of its own


@lru_cache(maxsize=3)
def population(design: Design) -> Population:
    """The population of a design, from the core tier of the built dataset."""
    release = open_release()
    real: dict[tuple[str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in release.rows.values():
        if "core" in row.tiers:
            real[row.scenario, row.polarity][row.message_key].append(row)
    slots = list(_release_slots(real)) if design == "a" else list(_planned_slots(real, design))
    rows: dict[str, Row] = {}
    chance: dict[str, float] = {}
    keys: list[list[str]] = []
    for slot in slots:
        keys.append([])
        for n, (pattern, severity) in enumerate(slot.patterns):
            made = _message(pattern, slot, n, severity)
            keys[-1].append(made[0].message_key)
            chance[made[0].message_key] = 1 / len(slot.patterns)
            rows.update({r.id: r for r in made})
    verdicts = [_verdict(r, k, c.check, c.behavior, "PASS") for r in rows.values() for k, c in enumerate(r.evaluation)]
    table = build(rows, verdicts, release.scoring)
    code = {name: n for n, name in enumerate(table.message.names)}
    scenarios = sorted({r.scenario for r in table.rows})
    shift = {s: ((n % 3) - 1) * 0.4 if len(scenarios) > 10 else 0.0 for n, s in enumerate(scenarios)}
    return Population(
        rows=rows,
        table=table,
        share=np.array([chance[r.message_key] for r in table.rows]),
        choices=[np.array([code[k] for k in ks]) for ks in keys],
        partial=np.array(
            [
                c.check in ("criterion", "rating") or (c.check == "graded" and "PARTIAL" in c.outcomes.values())
                for c in table.checks
            ]
        ),
        scenario=np.array([shift[r.scenario] for r in table.rows]),
        scoring=release.scoring,
    )


def _release_slots(real: dict[tuple[str, str], dict[str, list[Row]]]) -> Iterator[Slot]:
    for (scenario, polarity), messages in real.items():
        for n in range(len(messages)):
            yield Slot(scenario[:5], scenario, polarity, n, [(m, None) for m in messages.values()])


def _planned_slots(real: dict[tuple[str, str], dict[str, list[Row]]], design: Design) -> Iterator[Slot]:
    for behavior, (source, count, scenarios) in PLANNED.items():
        if design == "b-p1" and not behavior.startswith("P1"):
            continue
        sides = [p for p in ("crisis", "control") if (f"{source}-S1", p) in real]
        for polarity in sides:
            messages = list(real[f"{source}-S1", polarity].values())
            patterns: list[tuple[list[Row], int | None]] = [(m, None) for m in messages]
            if behavior.startswith("P1") and polarity == "crisis":
                patterns = [(messages[n % len(messages)], 1 + n % 10) for n in range(20)]
            for n in range(count // len(sides)):
                yield Slot(behavior, f"{behavior}-S{1 + n % scenarios}", polarity, n, patterns)


def _message(pattern: list[Row], slot: Slot, number: int, severity: int | None) -> list[Row]:
    """The pattern's rows as a new message of the slot's scenario."""
    old = pattern[0].perturbation
    code = f"PT{slot.polarity[:2]}{slot.number}x{number}"
    names = {r.id: r.id.replace(pattern[0].scenario, slot.scenario).removesuffix(old) + code for r in pattern}
    source = pattern[0].behavior
    return [
        r.model_copy(
            update={
                "id": names[r.id],
                "pillar": slot.behavior[:2],
                "behavior": slot.behavior,
                "scenario": slot.scenario,
                "perturbation": code,
                "severity": severity or r.severity,
                "pair_of": names.get(r.pair_of or ""),
                "evaluation": [
                    c.model_copy(update={"behavior": slot.behavior}) if c.behavior == source else c
                    for c in r.evaluation
                ],
            }
        )
        for r in pattern
    ]


# --- the simulated model
# ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Disposition:
    """σ of z, and mean pass rates over z."""

    sigma: float
    grid: Array
    rates: Array

    @property
    def stretch(self) -> float:
        """How much steeper a slope must be given z than over the population (Zeger's approximation)."""
        return float(np.sqrt(1 + 0.346 * self.sigma**2))

    def rate(self, eta: Array) -> Array:
        return np.interp(eta, self.grid, self.rates)

    def logit(self, rate: float) -> float:
        """The η whose mean rate is `rate`."""
        return float(np.interp(rate, self.rates, self.grid))


@lru_cache(maxsize=32)
def disposition(icc: float, level: float) -> Disposition:
    """The σ at which two samples of a message correlate by `icc` where the mean rate is `level`."""
    z = ndtri((np.arange(2001) + 0.5) / 2001)
    sigma = float(brentq(lambda s: _correlation(s, level, z) - icc, 0.01, 60.0, xtol=1e-4))
    grid = np.linspace(-40 - 4 * sigma, 40 + 4 * sigma, 4001)
    rates = np.array([expit(g + sigma * z).mean() for g in grid])
    return Disposition(sigma, grid, rates)


def _correlation(sigma: float, level: float, z: Array) -> float:
    bound = 20 + 6 * sigma
    mu = brentq(lambda m: float(expit(m + sigma * z).mean()) - level, -bound, bound)
    return float(expit(mu + sigma * z).var() / (level * (1 - level)))


@dataclass(frozen=True)
class Cell:
    """One planted truth. `plant`: what differs where, by name."""

    kind: Literal["rates", "groups", "curves"]
    design: Design
    icc: float
    level: float = 0.9
    plant: str = "nothing"
    threshold: float = 5.0


@dataclass(frozen=True)
class Planted:
    """A cell's logits per entry, and what follows from them."""

    population: Population
    z: Disposition
    eta: Array
    expected: Array  # points
    flagged: Array  # the chance of PASS
    truth: dict[str, float]


CROSSED, BETWEEN = ("persona", "suki"), ("register", "slang")


@lru_cache(maxsize=4)
def planted(cell: Cell) -> Planted:
    """The logits and truths of a cell."""
    p = population(cell.design)
    z = disposition(cell.icc, 0.5 if cell.kind == "curves" else cell.level)
    if cell.kind == "curves":
        eta = _curve_logits(p, z, cell)
        return _planted(p, z, eta, {"threshold": cell.threshold})
    if cell.kind == "groups":
        eta = _level_logits(p, z, cell.level, 0.0)
        inside = {name: p.table.column(name).mask(value) for name, value in (CROSSED, BETWEEN)}
        if cell.plant != "nothing":
            eta = _shifted(
                p,
                z,
                eta,
                inside[cell.plant],
                lambda made: _gap_truth(p, made.expected, cell.plant, inside[cell.plant]),
                -0.2,
            )
        made = _planted(p, z, eta, {})
        made.truth.update({name: _gap_truth(p, made.expected, name, mask) for name, mask in inside.items()})
        return made
    eta = _level_logits(p, z, cell.level, 0.25)
    arm = np.array([r.arm == "with" for r in p.table.rows])
    eta = _shifted(p, z, eta, arm, lambda made: _arm_truth(p, made.expected), -10.0)
    made = _planted(p, z, eta, {})
    made.truth.update(_rate_truths(p, made))
    return made


def _planted(p: Population, z: Disposition, eta: Array, truth: dict[str, float]) -> Planted:
    flagged = z.rate(eta)
    expected = np.where(p.partial, (flagged + z.rate(eta + PARTIAL_GAP * z.stretch)) / 2, flagged)
    return Planted(p, z, eta, expected, flagged, truth)


def _level_logits(p: Population, z: Disposition, level: float, slope: float) -> Array:
    """Logits at which P1's crisis, P1's controls and the rest are each caught at `level`, graver messages more
    often.
    """
    t = p.table
    shape = z.stretch * (slope * np.abs(t.severity) + (p.scenario if slope else 0.0))
    detection = t.under(["P1"])
    eta = np.zeros(t.size)
    for part in (detection & t.crisis, detection & ~t.crisis, ~detection):
        if part.any():
            w = (t.weight * p.share)[part]
            low, high = z.grid[0] - shape[part].min(), z.grid[-1] - shape[part].max()
            eta[part] = shape[part] + brentq(
                lambda m, part=part, w=w: float(np.average(z.rate(m + shape[part]), weights=w)) - level, low, high
            )
    return eta


def _shifted(
    p: Population, z: Disposition, eta: Array, mask: NDArray[np.bool_], truth: Callable[[Planted], float], wanted: float
) -> Array:
    """`eta` with one shift on `mask`, such that `truth` is as wanted."""
    if not mask.any():
        return eta
    shift: float = brentq(
        lambda d: truth(_planted(p, z, eta + d * mask, {})) - wanted, -30.0 * z.stretch, 0.0, xtol=1e-4
    )
    return eta + mask * shift


def _curve_logits(p: Population, z: Disposition, cell: Cell) -> Array:
    t = p.table
    rate = expit(CURVE_SLOPE * (np.arange(11) - cell.threshold))
    if cell.plant == "inversion":
        rate[INVERTED] = rate[INVERTED - 1] - 0.5
    by_severity = np.array([z.logit(float(r)) for r in rate])
    return np.where(t.crisis, by_severity[np.clip(t.severity, 0, 10)], z.logit(0.9))


# --- truths: the population's values under the weights
# ---------------------------------------------------------------------


def _average(p: Population, values: Array, mask: NDArray[np.bool_]) -> float:
    return float(np.average(values[mask], weights=(p.table.weight * p.share)[mask]))


def _rate_truths(p: Population, made: Planted) -> dict[str, float]:
    t = p.table
    own = t.under(["P1"]) & t.detects
    truth = {
        "sensitivity": _average(p, made.flagged, own & t.crisis),
        "specificity": _average(p, made.flagged, own & ~t.crisis),
        "severe sensitivity": _average(p, made.flagged, own & t.crisis & (t.severity >= p.scoring["severe_from"])),
    }
    truth["informedness"] = truth["sensitivity"] + truth["specificity"] - 1
    for code in t.behavior.names:
        mask = t.behavior.mask(code)
        crisis, control = mask & t.crisis, mask & ~t.crisis
        if code.startswith("P1"):
            best = max((_average(p, c, crisis) + _average(p, c, control)) / 2 for c in t.constants.T)
            truth[code] = (
                100
                * ((_average(p, made.expected, crisis) + _average(p, made.expected, control)) / 2 - best)
                / (1 - best)
            )
        else:
            truth[code] = 100 * _average(p, made.expected, mask)
    weights = p.scoring["composite"]
    truth["composite"] = sum(weights[c] * truth[c] for c in t.behavior.names) / sum(
        weights[c] for c in t.behavior.names
    )
    if any(r.arm == "with" for r in t.rows):
        truth["arms difference"] = _arm_truth(p, made.expected)
    return truth


def _arm_truth(p: Population, expected: Array) -> float:
    with_, without = p.arms.T
    return 100 * float(np.average(expected[with_] - expected[without], weights=(p.table.weight * p.share)[with_]))


def _gap_truth(p: Population, expected: Array, column: str, inside: NDArray[np.bool_]) -> float:
    """The group's mean less the rest's in every scenario × behavior × polarity, weighted as the group is."""
    t = p.table
    outside = (t.column(column).codes >= 0) & ~inside
    cell = t.stratum.codes * len(t.behavior.names) + t.behavior.codes
    w = t.weight * p.share
    size = int(cell.max()) + 1
    den = [np.bincount(cell[m], w[m], size) for m in (inside, outside)]
    num = [np.bincount(cell[m], (w * expected)[m], size) for m in (inside, outside)]
    both = (den[0] > 0) & (den[1] > 0)
    gaps = num[0][both] / den[0][both] - num[1][both] / den[1][both]
    return float(np.average(gaps, weights=den[0][both]))


# --- one seed
# ----------------------------------------------------------------------------------------------------------------


class Seen(NamedTuple):
    """What a seed showed: figures by name, and yes-or-no findings by name."""

    figures: dict[str, Figure]
    findings: dict[str, bool]


def scorer_of(made: Planted, seed: tuple[int, ...]) -> Scorer:
    """Messages drawn anew, answered by the planted model, and scored."""
    p, rng = made.population, np.random.default_rng(seed)
    codes = np.array([c[k] for c, k in zip(p.choices, rng.integers([len(c) for c in p.choices]), strict=True)])
    held = np.zeros(len(p.table.message.names), dtype=bool)
    held[codes] = True
    entries = np.flatnonzero(held[p.table.message.codes])
    z = np.zeros(len(held))
    z[codes] = rng.standard_normal(len(codes))
    eta = made.eta[entries] + made.z.sigma * z[p.table.message.codes[entries]]
    u = rng.random(len(entries))
    passed, half = u < expit(eta), (u < expit(eta + PARTIAL_GAP * made.z.stretch)) & p.partial[entries]
    labels = np.where(passed, 0, np.where(half, 1, 2))
    return Scorer(p.rows, [p.verdict(e, k) for e, k in zip(entries.tolist(), labels.tolist(), strict=True)], p.scoring)


def observe(cell: Cell, seed: int) -> Seen:
    """One seed of one cell."""
    made = planted(cell)
    scorer = scorer_of(made, (seed, hash_of(cell)))
    if cell.kind == "rates":
        behaviors, detection = scorer.behaviors(), scorer.detection()
        figures = {c: b.card.score for c, b in behaviors.items()}
        figures |= {
            "sensitivity": detection.sensitivity,
            "specificity": detection.specificity,
            "severe sensitivity": detection.severe_sensitivity,
            "informedness": detection.informedness,
            "composite": scorer.weighted(behaviors),
        }
        if arms := breakdown.arms(scorer):
            figures["arms difference"] = arms[0].difference  # P4-B1 alone has arms
        return Seen(figures, {})
    if cell.kind == "groups":
        groups = breakdown.groups(scorer)
        named = {g.column: g for g in groups if (g.column, g.group) in (CROSSED, BETWEEN)}
        found = {"any group found": any(g.found for g in groups)} | {f"{c} found": g.found for c, g in named.items()}
        return Seen({c: g.gap for c, g in named.items()}, found)
    curves = breakdown.curves(scorer)
    figures = {f"{c.behavior} threshold": c.threshold or Figure(value=None) for c in curves}
    findings = {"any inversion, 6 curves": any(c.inversions for c in curves)}
    for c in curves:
        if c.behavior in SHOWN_CURVES:
            kept = [i for i in c.inversions if cell.plant == "nothing" or i.graver == INVERTED]
            findings[f"{c.behavior} inversion"] = bool(kept)
    return Seen(figures, findings)


def hash_of(cell: Cell) -> int:
    """Another stream of random numbers for every cell; Python's own hash of text differs between processes."""
    return zlib.crc32(repr(cell).encode())


# --- tables
# ------------------------------------------------------------------------------------------------------------------

SHOWN_CURVES = ("P1-B1", "P1-B4")
SHOWN = (
    "sensitivity",
    "specificity",
    "severe sensitivity",
    "informedness",
    "P1-B1",
    "P1-B3",
    "P2-B3",
    "P4-B2",
    "composite",
    "arms difference",
)
WORDS = {
    "P1-B1": "P1-B1 score (tags)",
    "P1-B3": "P1-B3 score (graded)",
    "P2-B3": "P2-B3 score (mean)",
    "P4-B2": "P4-B2 score (mean)",
    "persona": "gap of persona suki (crossed)",
    "register": "gap of register slang (between)",
    "persona found": "persona suki found",
    "register found": "register slang found",
}


@dataclass(frozen=True)
class Line:
    """How one figure did over the seeds of a cell."""

    cell: Cell
    figure: str
    truth: float
    mean: float
    coverage: float
    error: float
    width: float
    seeds: int  # with an interval
    below: float  # share of intervals wholly below the truth
    above: float


def lines(cell: Cell, seen: list[Seen]) -> list[Line]:
    """Coverage, bias and width of every figure with a known truth."""
    truth = planted(cell).truth
    found: list[Line] = []
    for name in dict.fromkeys(n for s in seen for n in s.figures):
        if (true := truth.get("threshold" if name.endswith("threshold") else name)) is None:
            continue
        kept = [(f.value, f.low, f.high) for s in seen if (f := s.figures.get(name)) and f.low is not None]
        if not kept:
            continue
        value, low, high = np.array(kept, dtype=float).T
        covered = float(((low <= true) & (true <= high)).mean())
        error = float(np.sqrt(max(covered * (1 - covered), 1 / len(kept) / 4) / len(kept)))
        centre = float(np.median(value)) if name.endswith("threshold") else float(value.mean())
        found.append(
            Line(
                cell,
                name,
                true,
                centre,
                covered,
                error,
                float(np.median(high - low)),
                len(kept),
                float((high < true).mean()),
                float((low > true).mean()),
            )
        )
    return found


def shares(seen: list[Seen]) -> dict[str, float]:
    names = dict.fromkeys(n for s in seen for n in s.findings)
    return {n: float(np.mean([s.findings.get(n, False) for s in seen])) for n in names}


def run(cell: Cell, seeds: int, pool: Any = None) -> list[Seen]:
    """Every seed of a cell, over the pool's processes where there is one."""
    if pool is None:
        return [observe(cell, s) for s in range(seeds)]
    planted(cell)
    return list(pool.starmap(observe, [(cell, s) for s in range(seeds)], chunksize=max(1, seeds // 8)))


def cells(kind: str, designs: list[Design], correlations: Sequence[float] = ICCS) -> list[Cell]:
    if kind == "rates":
        return [Cell("rates", d, i, level) for d in designs for i in correlations for level in LEVELS]
    if kind == "groups":
        return [
            Cell("groups", d, i, 0.8, plant)
            for d in designs
            for i in correlations
            for plant in ("nothing", CROSSED[0], BETWEEN[0])
        ]
    if "b" not in designs:
        return []
    plain = [Cell("curves", "b-p1", i, threshold=x) for i in correlations for x in THRESHOLDS]
    return plain + [Cell("curves", "b-p1", i, plant="inversion", threshold=3.0) for i in correlations]


# Why a figure falls outside, where that is known; the first whose name begins so.
UNDER = {
    "P1-B3": "the best constant reply is estimated from the same messages",
    "composite": "lopsided near 100, and it sums behaviors of few messages",
    "arms": "few messages change, always in one direction",
    "informedness": "two lopsided limits combined",
}
OVER = {
    "severe": "few messages, so the pooled design effect stands in for their own",
    "P4-B2": "few messages, so the pooled design effect stands in for their own",
    "register": "two or three messages a cell, so t has few degrees of freedom",
}


def mark(line: Line) -> str:
    """Says plainly that a row is outside 93–97 %, and why where that is known."""
    if 0.93 <= line.coverage <= 0.97:
        return ""
    side = (
        f"<< UNDER 93 % ({line.below:.0%} too low, {line.above:.0%} too high)"
        if line.coverage < 0.93
        else ">> over 97 %, wider than need be"
    )
    why = next((w for name, w in (UNDER if line.coverage < 0.93 else OVER).items() if line.figure.startswith(name)), "")
    return f"{side}: {why}" if why else side


def show(cell: Cell, seen: list[Seen]) -> None:
    for line in lines(cell, seen):
        if cell.kind == "rates" and line.figure not in SHOWN:
            continue
        if cell.kind == "curves" and line.figure.split()[0] not in SHOWN_CURVES:
            continue
        scale = (
            100
            if line.figure
            in ("sensitivity", "specificity", "severe sensitivity", "informedness", "persona", "register")
            else 1
        )
        name = WORDS.get(line.figure, line.figure)
        few = f" ({line.seeds} seeds)" if line.seeds < len(seen) else ""
        print(
            f"{cell.design:5}{cell.icc:4.1f}{cell.level if cell.kind != 'curves' else cell.threshold:6.2f}  "
            f"{cell.plant:10}{name:32}{scale * line.truth:8.1f}"
            f"{scale * (line.mean - line.truth):+8.2f}{100 * line.coverage:8.1f} "
            f"±{196 * line.error:4.1f}{scale * line.width:9.1f}  {mark(line)}{few}"
        )
    for name, share in shares(seen).items():
        error = 196 * np.sqrt(max(share * (1 - share), 0.25 / len(seen)) / len(seen))
        planted_here = cell.plant == "inversion" or (cell.plant != "nothing" and name.startswith(cell.plant))
        if cell.plant != "nothing" and not planted_here:
            continue
        what = "power" if planted_here else "false discovery"
        bad = "<< over 5 %" if not planted_here and share > 0.05 + error / 100 else ""
        print(
            f"{cell.design:5}{cell.icc:4.1f}{cell.level if cell.kind != 'curves' else cell.threshold:6.2f}  "
            f"{cell.plant:10}{WORDS.get(name, name):32}"
            f"{'':16}{100 * share:8.1f} ±{error:4.1f}  {what}  {bad}"
        )


HEADS = {
    "rates": "RATES, SCORES AND DIFFERENCES (points; level: the planted share caught; the safety prompt "
    "costs 10 points)",
    "groups": "GROUPS (points; a gap of 20 points is planted where named; level 0.80)",
    "curves": "CURVES (units of severity; level: the true threshold; median instead of mean; an inverted "
    "rung of 0.5 where named)",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--design", nargs="+", choices=["a", "b"], default=["a", "b"])
    parser.add_argument("--kind", nargs="+", choices=list(HEADS), default=list(HEADS))
    parser.add_argument("--icc", type=float, nargs="+", choices=ICCS, default=ICCS)
    args = parser.parse_args()
    started = time.perf_counter()
    context = multiprocessing.get_context("fork")
    for kind in args.kind:
        print(f"\n{HEADS[kind]}")
        print(
            f"{'':5}{'ICC':>4}{'level':>6}  {'planted':10}{'figure':32}{'truth':>8}{'bias':>8}{'covered':>9} "
            f"±MC {'width':>9}",
            flush=True,
        )
        for cell in cells(kind, args.design, args.icc):
            planted(cell)  # before the fork, so that every process has it
            if args.jobs > 1:
                with context.Pool(args.jobs) as pool:
                    seen = run(cell, args.seeds, pool)
            else:
                seen = run(cell, args.seeds)
            show(cell, seen)
            sys.stdout.flush()
    print(
        f"\n{args.seeds} seeds per cell, {time.perf_counter() - started:.0f} s. 95 % is nominal, and rows "
        "outside 93–97 % are marked."
    )
    print("±MC: 1.96 Monte Carlo standard errors. Bias: mean estimate less truth. Width: median.")


if __name__ == "__main__":
    main()
