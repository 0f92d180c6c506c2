"""Do the intervals hold? Simulated models whose true rates are planted, scored by the library, compared with the truth.

Usage: python tests/benchmarks/planted.py [--seeds 2000] [--jobs 2] [--design a lite detect b] [--icc 0.2 0.5 0.95]
[--kind rates floors groups curves levels]. Needs a built dataset.

Estimand: messages like these, this model, these settings. Every seed draws its messages anew from a population: a slot
of a scenario takes one of that scenario's real messages as a pattern (its severity, difficulty, conditions and
contexts, with replacement) and a new disposition z ~ N(0, 1) of the model towards it. Its samples pass with
    logit⁻¹(intercept + slope · |severity| + scenario + planted effect + σ z),
independently given z. σ is set so that two samples of a message correlate as the ICC says (on the pass/fail scale, not
the logit). Truth is the population's value under the library's weights, by quadrature over z; it uses the library for
weights, polarity and what a score is made of, and for no estimate. Anchors are 0: they are fixed, and stretch a score
and its interval alike. Nothing generalises to scenarios, contexts or conditions that aren't here.

Design a is this release's core tier; lite and detect are the tiers of these names.
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

from dataset_builder.release import Release, open_release  # noqa: E402
from dataset_builder.schema import Incident, Row, Tier  # noqa: E402
from judge.schema import Figure, Verdict  # noqa: E402
from judge.scoring import breakdown  # noqa: E402
from judge.scoring.anchors import Anchor  # noqa: E402
from judge.scoring.differences import difference, spreads  # noqa: E402
from judge.scoring.figures import HEADLINES, Scorer  # noqa: E402
from judge.scoring.parts import earns, raw  # noqa: E402
from judge.scoring.scorecard import floors, read_on  # noqa: E402
from judge.scoring.table import Read, Table, build  # noqa: E402

Array = NDArray[np.float64]
Design = Literal["a", "lite", "detect", "b", "b-p1"]
TIERS: dict[str, Tier] = {"a": "core", "lite": "lite", "detect": "detect"}  # of the designs that are this release
Check = Literal["tags", "actions", "graded", "rating", "criterion", "appropriateness"]
Label = Literal["PASS", "PARTIAL", "FAIL"]
LABELS: tuple[Label, ...] = get_args(Label)
ICCS = (0.2, 0.5, 0.95)
LEVELS = (0.6, 0.75, 0.9, 0.97)
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


# --- the population ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Population:
    """Every message that a slot could hold. Arrays have shape (n,), n entries (sample × check)."""

    rows: dict[str, Row]
    table: Table  # of every entry; only its weights, polarities and columns are used
    share: Array  # the chance that a seed holds the entry
    choices: list[NDArray[np.int64]]  # per slot: the message codes it may hold
    partial: NDArray[np.bool_]  # whether the entry's check knows PARTIAL
    scenario: Array  # the scenario's own shift, in logits
    release: Release
    verdicts: dict[tuple[int, int, Incident], Verdict] = field(default_factory=dict)

    @property
    def scoring(self) -> dict[str, Any]:
        return self.release.scoring

    @cached_property
    def zero(self) -> dict[str, Anchor]:
        return {code: Anchor(0.0 if earns(own) else 1.0, "") for code, own in self.scoring["scores"].items()}

    @cached_property
    def arms(self) -> NDArray[np.int64]:
        """(pairs, 2): entries with the safety prompt, and the same without it."""
        t = self.table
        place = {(r.id, int(k)): n for n, (r, k) in enumerate(zip(t.rows, t.index, strict=True))}
        return np.array(
            [(n, place[r.pair_of, int(t.index[n])]) for n, r in enumerate(t.rows) if r.arm == "with" and r.pair_of],
            dtype=np.int64,
        )

    def verdict(self, entry: int, label: int, incident: Incident) -> Verdict:
        """One verdict object per entry, label and incident of a failure, shared by all seeds."""
        if (found := self.verdicts.get((entry, label, incident))) is None:
            row, check = self.table.rows[entry], self.table.checks[entry]
            what = incident if LABELS[label] == "FAIL" else None
            found = _verdict(row, int(self.table.index[entry]), (check.check, check.behavior), LABELS[label], what)
            self.verdicts[entry, label, incident] = found
        return found


def _verdict(row: Row, index: int, of: tuple[Check, str], label: Label, incident: Incident | None = None) -> Verdict:
    check, behavior = of
    return Verdict.model_construct(
        id=row.id,
        repeat=0,
        index=index,
        check=check,
        behavior=behavior,
        turn=-1,
        label=label,
        unscored=None,
        incident=incident,
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
    """The population of a design, from a tier of the built dataset."""
    tier = TIERS.get(design, "core")
    release = open_release().of(tier)
    real: dict[tuple[str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in release.rows.values():
        if tier in row.tiers:
            real[row.scenario, row.polarity][row.message_key].append(row)
    slots = list(_release_slots(real)) if design in TIERS else list(_planned_slots(real, design))
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
    verdicts = [
        _verdict(r, k, (c.check, c.behavior), "PASS") for r in rows.values() for k, c in enumerate(r.evaluation)
    ]
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
                c.check == "criterion"
                or (c.check == "rating" and c.flag_from is None)
                or (c.check == "graded" and "PARTIAL" in c.outcomes.values())
                for c in table.checks
            ]
        ),
        scenario=np.array([shift[r.scenario] for r in table.rows]),
        release=release,
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


# --- the simulated model ----------------------------------------------------------------------------------------------


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
    """One planted truth. `plant`: what differs where, by name; of floors, the floor that is tried at `level`."""

    kind: Literal["rates", "floors", "groups", "curves", "levels"]
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
    read: Read  # what is expected to be read of every entry
    truth: dict[str, float]

    @property
    def expected(self) -> Array:
        return self.read.points


CROSSED, BETWEEN = ("persona", "suki"), ("register", "slang")


@lru_cache(maxsize=4)
def planted(cell: Cell) -> Planted:
    """The logits and truths of a cell."""
    p = population(cell.design)
    perfect = cell.kind == "floors" and cell.level in (0, 1)
    z = disposition(cell.icc, 0.5 if cell.kind == "curves" else 0.9 if perfect else cell.level)
    if cell.kind == "curves":
        eta = _curve_logits(p, z, cell)
        return _planted(p, z, eta, {"threshold": cell.threshold})
    if cell.kind == "floors":
        own = _of_floor(p, cell.plant)
        # Whoever does harm in 2 of 100 is fine in 98; everything else is perfect.
        level = 1 - cell.level if _floor_named(p, cell.plant)["kind"] == "harm" else cell.level
        return _planted(p, z, np.where(own & (level < 1), z.logit(level), 1e3), {})
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
    if cell.kind == "rates":
        arm = np.array([r.arm == "with" for r in p.table.rows])
        eta = _shifted(p, z, eta, arm, lambda made: _arm_truth(p, made.expected), -min(10.0, 400 * (1 - cell.level)))
    made = _planted(p, z, eta, {})
    made.truth.update(_rate_truths(p, made))
    return made


def _planted(p: Population, z: Disposition, eta: Array, truth: dict[str, float]) -> Planted:
    passed = z.rate(eta)
    half = np.where(p.partial, z.rate(eta + PARTIAL_GAP * z.stretch), passed)
    everyday = np.array([c.check == "criterion" for c in p.table.checks]) & ~p.table.crisis
    read = Read((passed + half) / 2, passed, np.where(everyday, half, passed), np.ones(len(passed)))  # none does harm
    return Planted(p, z, eta, read, truth)


def _floor_named(p: Population, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(f for f in p.scoring["floors"] if f["name"] == name)
    return found


def _of_floor(p: Population, name: str) -> NDArray[np.bool_]:
    """The entries that a floor is read on."""
    return read_on(_floor_named(p, name), p.table, p.scoring)


def levelled(cell: Cell, level: Array, z: Disposition) -> Planted:
    """A model that catches every entry at its own level, (n,)."""
    p = population(cell.design)
    eta = np.zeros(p.table.size)
    for own in np.unique(level).tolist():
        eta[level == own] = z.logit(own)
    return _planted(p, z, eta, {})


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


# --- truths: the population's values under the weights ----------------------------------------------------------------


def _average(p: Population, values: Array, mask: NDArray[np.bool_]) -> float:
    return float(np.average(values[mask], weights=(p.table.weight * p.share)[mask]))


def _rate_truths(p: Population, made: Planted) -> dict[str, float]:
    t = p.table
    own = t.under(["P1"]) & t.detects
    truth = {
        "sensitivity": _average(p, made.read.caught, own & t.crisis),
        "specificity": _average(p, made.read.caught, own & ~t.crisis),
        "severe sensitivity": _average(p, made.read.caught, own & t.crisis & (t.severity >= p.scoring["severe_from"])),
    }
    truth["informedness"] = truth["sensitivity"] + truth["specificity"] - 1
    settings, weight = p.scoring["scores"], t.weight * p.share
    values = {code: raw(code, t, made.read, p.scoring).value(weight) for code in settings}
    scores = {c: 100 * (v - (not earns(settings[c]))) for c, v in values.items() if v is not None}
    truth |= scores

    def total(codes: Sequence[str]) -> float:
        whole = sum(settings[c]["weight"] for c in codes if earns(settings[c])) or sum(
            settings[c]["weight"] for c in codes
        )
        return float(sum(settings[c]["weight"] * scores[c] for c in codes) / whole)

    counted = [c for c in scores if settings[c]["weight"]]
    truth["composite"] = total(counted)
    by_headline = {h: [c for c in counted if settings[c]["headline"] == h] for h in HEADLINES}
    truth |= {h: total(codes) for h, codes in by_headline.items() if codes}
    if any(r.arm == "with" for r in t.rows):
        truth["arms difference"] = _arm_truth(p, made.expected)
    return truth


def _arm_truth(p: Population, expected: Array) -> float:
    """The effect on P4-B1, whose difference is compared."""
    with_, without = p.arms[p.table.behavior.mask("P4-B1")[p.arms[:, 0]]].T
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


# --- one seed ---------------------------------------------------------------------------------------------------------


class Seen(NamedTuple):
    """What a seed showed: figures by name, and yes-or-no findings by name."""

    figures: dict[str, Figure]
    findings: dict[str, bool]


def scorer_of(made: Planted, seed: tuple[int, ...], floor: str = "") -> Scorer:
    """Messages drawn anew by the first number of `seed`, answered by the planted model, and scored. `floor`: only
    messages that it is read on; failing is then harm, where the floor is of harm.
    """
    p, rng, drawn = made.population, np.random.default_rng(seed), np.random.default_rng(seed[0])
    codes = np.array([c[k] for c, k in zip(p.choices, drawn.integers([len(c) for c in p.choices]), strict=True)])
    held = np.zeros(len(p.table.message.names), dtype=bool)
    held[codes] = True
    if floor:
        read_on = np.zeros(len(held), dtype=bool)
        read_on[p.table.message.codes[_of_floor(p, floor)]] = True
        held &= read_on
    entries = np.flatnonzero(held[p.table.message.codes])
    z = np.zeros(len(held))
    z[codes] = rng.standard_normal(len(codes))
    eta = made.eta[entries] + made.z.sigma * z[p.table.message.codes[entries]]
    u = rng.random(len(entries))
    passed, half = u < expit(eta), (u < expit(eta + PARTIAL_GAP * made.z.stretch)) & p.partial[entries]
    labels = np.where(passed, 0, np.where(half & (floor == ""), 1, 2))  # a chance of a floor is missed or not
    failing: tuple[Incident, Incident] = (
        ("harm", "harm") if floor and _floor_named(p, floor)["kind"] == "harm" else ("missed_crisis", "over_escalation")
    )
    given = zip(entries.tolist(), labels.tolist(), p.table.crisis[entries].tolist(), strict=True)
    verdicts = [p.verdict(e, k, failing[not c]) for e, k, c in given]
    return Scorer(build(p.rows, verdicts, p.scoring), p.scoring, p.zero)


def levels(icc: float, seed: int) -> int:
    """How many of ten models near the ceiling, caught at .90 to .99, a paired comparison tells apart: the longest chain
    in which each is surely better than the one before (Holm over all pairs).
    """
    planned = [Cell("levels", "a", icc, level) for level in np.linspace(0.90, 0.99, 10).tolist()]
    return chain_of([scorer_of(planted(cell), (seed, n)) for n, cell in enumerate(planned)])


def chain_of(scorers: list[Scorer]) -> int:
    """The longest chain of runs by the composite, each surely better than the one before (Holm over all pairs)."""
    runs = [scorer.total({c: scorer.made(c, scorer.table.read) for c in scorer.ran}) for scorer in scorers]
    pairs = [(i, j) for j in range(len(runs)) for i in range(j)]
    tests = {
        (i, j): difference(scorers[i], scorers[j], runs[i], runs[j], spreads(scorers[i], scorers[j], [runs[i]]))
        for i, j in pairs
    }
    sure = dict(zip(pairs, breakdown.holm([t.p_value for t in tests.values()], 0.05), strict=True))
    chain = [1] * len(runs)
    for i, j in pairs:
        if sure[i, j] and (tests[i, j].interval[0] or 0) > 0:
            chain[j] = max(chain[j], chain[i] + 1)
    return max(chain)


def observe(cell: Cell, seed: int) -> Seen:
    """One seed of one cell."""
    if cell.kind == "levels":
        return Seen({"levels": Figure(value=levels(cell.icc, seed))}, {})
    made = planted(cell)
    scorer = scorer_of(made, (seed, hash_of(cell)), cell.plant if cell.kind == "floors" else "")
    if cell.kind == "rates":
        scores, detection = scorer.scores(), scorer.detection()
        made_of = {c: s.made for c, s in scores.items()}
        figures = {c: s.card.score for c, s in scores.items()}
        figures |= {
            "sensitivity": detection.sensitivity,
            "specificity": detection.specificity,
            "severe sensitivity": detection.severe_sensitivity,
            "informedness": detection.informedness,
            "composite": scorer.made_figure(scorer.total(made_of)),
        }
        figures |= {h: scorer.made_figure(scorer.total(scorer.of_headline(h, made_of))) for h in HEADLINES}
        smallest = breakdown.smallest_differences(scorer, scores)
        figures |= {f"{SMALLEST}{name}": Figure(value=value) for name, value in smallest.items()}
        if arms := [a for a in breakdown.arms(scorer) if a.behavior == "P4-B1"]:
            figures["arms difference"] = arms[0].difference
        return Seen(figures, {})
    if cell.kind == "floors":
        floor = next(f for f in floors(scorer, "full") if f.name == cell.plant)
        return Seen({}, {"passed": floor.state == "passed", "breached": floor.state == "breached"})
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


# --- tables ----------------------------------------------------------------------------------------------------------

SMALLEST = "smallest difference of the "
SHOWN_CURVES = ("P1-B1", "P1-B4")
RATES = ("sensitivity", "specificity", "severe sensitivity", "informedness", "persona", "register")  # shown in points
SHOWN = ("composite", *HEADLINES, *RATES, "arms difference")  # and every behavior


@dataclass(frozen=True)
class Line:
    """How one figure did over the seeds of a cell."""

    figure: str
    truth: float
    mean: float  # the median of thresholds
    coverage: float
    width: float
    seeds: int  # with an interval


def lines(cell: Cell, seen: list[Seen]) -> list[Line]:
    """Coverage, bias and width of every figure with a known truth."""
    truth = planted(cell).truth
    found: list[Line] = []
    for name in dict.fromkeys(n for s in seen for n in s.figures):
        threshold = name.endswith("threshold")
        true = truth.get("threshold" if threshold else name)
        kept = [(f.value, f.low, f.high) for s in seen if (f := s.figures.get(name)) and f.low is not None]
        if true is None or not kept:
            continue
        value, low, high = np.array(kept, dtype=float).T
        covered = float(((low <= true) & (true <= high)).mean())
        center = float(np.median(value) if threshold else value.mean())
        found.append(Line(name, true, center, covered, float(np.median(high - low)), len(kept)))
    return found


def shares(seen: list[Seen]) -> dict[str, float]:
    names = dict.fromkeys(n for s in seen for n in s.findings)
    return {n: float(np.mean([s.findings.get(n, False) for s in seen])) for n in names}


def run(cell: Cell, seeds: int, pool: Any = None) -> list[Seen]:
    """Every seed of a cell, over the pool's processes if there is one."""
    if pool is None:
        return [observe(cell, s) for s in range(seeds)]
    planted(cell)
    return list(pool.starmap(observe, [(cell, s) for s in range(seeds)], chunksize=max(1, seeds // 8)))


def cells(kind: str, designs: list[Design], correlations: Sequence[float] = ICCS) -> list[Cell]:
    if kind == "rates":
        return [Cell("rates", d, i, level) for d in designs for i in correlations for level in LEVELS]
    if kind == "floors":
        rates = {"severe_sensitivity": (0.9, 0.8, 1.0), "specificity": (0.7, 1.0), "harm": (0.02, 0.03, 0.01, 0.0)}
        return [
            Cell("floors", "a", i, rate, floor["name"])
            for i in correlations
            for floor in open_release().scoring["floors"]
            for rate in rates[floor["kind"]]
        ]
    if kind == "levels":
        return [Cell("levels", "a", i) for i in correlations]
    if kind == "groups":
        plants = ("nothing", CROSSED[0], BETWEEN[0])
        return [Cell("groups", d, i, 0.8, plant) for d in designs for i in correlations for plant in plants]
    if "b" not in designs:
        return []
    plain = [Cell("curves", "b-p1", i, threshold=x) for i in correlations for x in THRESHOLDS]
    return plain + [Cell("curves", "b-p1", i, plant="inversion", threshold=3.0) for i in correlations]


def error(share: float, seeds: int) -> float:
    """1.96 Monte Carlo standard errors of a share, in points."""
    return 196 * float(np.sqrt(max(share * (1 - share), 0.25 / seeds) / seeds))


def show(cell: Cell, seen: list[Seen]) -> None:
    """Prints a cell's figures. Rows outside 93–97 % are marked."""
    level = cell.threshold if cell.kind == "curves" else 100 * cell.level if cell.kind == "floors" else cell.level
    head = f"{cell.design:5}{cell.icc:4.2f}{level:6.2f}  "
    if cell.kind == "levels":
        chains = [int(s.figures["levels"].value or 0) for s in seen]
        print(f"{head}levels told apart: mean {np.mean(chains):.1f}, median {np.median(chains):g}")
        return
    if cell.kind == "floors":
        passed, breached = (shares(seen)[name] for name in ("passed", "breached"))
        print(
            f"{head}{cell.plant:32}passed {100 * passed:5.1f} ±{error(passed, len(seen)):3.1f}"
            f"  breached {100 * breached:5.1f}"
        )
        return
    for name, figure, scale in (("composite", "composite", 1), ("detection", "informedness", 100)):
        # The difference to another run of the same model that is seen with 80 % power, printed and in truth.
        printed = [f.value for s in seen if (f := s.figures.get(SMALLEST + name)) and f.value is not None]
        values = [f.value for s in seen if (f := s.figures.get(figure)) and f.value is not None]
        if printed:
            needed = scale * float((1.96 + 0.84) * np.sqrt(2) * np.std(values, ddof=1))
            shown = float(np.median(printed))
            mark = "" if 0.9 <= shown / needed <= 1.15 else "  << outside 0.9 to 1.15"
            print(
                f"{head}{SMALLEST + name:42}printed {shown:.1f}, needed {needed:.1f}: ratio {shown / needed:.2f}{mark}"
            )
    for line in lines(cell, seen):
        if cell.kind == "curves" and line.figure.removesuffix(" threshold") not in SHOWN_CURVES:
            continue
        if cell.kind != "curves" and line.figure not in SHOWN and line.figure[:1] != "P":
            continue
        scale = 100 if line.figure in RATES else 1
        mark = "<< under 93 %" if line.coverage < 0.93 else ">> over 97 %" if line.coverage > 0.97 else ""
        few = f" ({line.seeds} seeds)" if line.seeds < len(seen) else ""
        print(
            f"{head}{cell.plant:10}{line.figure:32}{scale * line.truth:8.1f}{scale * (line.mean - line.truth):+8.2f}"
            f"{100 * line.coverage:8.1f} ±{error(line.coverage, line.seeds):4.1f}{scale * line.width:9.1f}  {mark}{few}"
        )
    for name, share in shares(seen).items():
        power = cell.plant == "inversion" or (cell.plant != "nothing" and name.startswith(cell.plant))
        if cell.plant != "nothing" and not power:
            continue
        what = "power" if power else "false discovery"
        bad = "<< over 5 %" if not power and 100 * share > 5 + error(share, len(seen)) else ""
        print(f"{head}{cell.plant:10}{name:48}{100 * share:8.1f} ±{error(share, len(seen)):4.1f}  {what}  {bad}")


HEADS = {
    "rates": "RATES, SCORES AND DIFFERENCES (points; level: the share caught; the safety prompt costs up to 10 points)",
    "floors": "FLOORS (% of seeds; level: the true rate, all else perfect; at most 5 may pass at the threshold)",
    "levels": "LEVELS (ten models caught at .90 to .99, paired by message)",
    "groups": "GROUPS (points; a gap of 20 points where planted: persona suki, crossed; register slang, between)",
    "curves": "CURVES (units of severity; level: the true threshold; medians; an inverted rung of 0.5 where named)",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--design", nargs="+", choices=[*TIERS, "b"], default=["a", "b"])
    parser.add_argument("--kind", nargs="+", choices=list(HEADS), default=list(HEADS))
    parser.add_argument("--icc", type=float, nargs="+", default=ICCS)
    args = parser.parse_args()
    started = time.perf_counter()
    for kind in args.kind:
        print(f"\n{HEADS[kind]}")
        columns = f"{'truth':>8}{'bias':>8}{'covered':>9} ±MC{'width':>10}"
        print(f"{'':5}{'ICC':>4}{'level':>6}  {'planted':10}{'figure':32}{columns}")
        for cell in cells(kind, args.design, args.icc):
            planted(cell)  # before the fork, so that every process has it
            with multiprocessing.get_context("fork").Pool(args.jobs) as pool:
                show(cell, run(cell, args.seeds, pool))
            sys.stdout.flush()
    print(
        f"\n{args.seeds} seeds per cell, {time.perf_counter() - started:.0f} s. 95 % is nominal. ±MC: 1.96 Monte Carlo "
        "standard errors. Bias: mean estimate minus truth. Width: median."
    )


if __name__ == "__main__":
    main()
