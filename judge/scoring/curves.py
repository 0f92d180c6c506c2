"""One detection curve: rates over severity, a logistic threshold with its interval, rungs out of order (scoring.md
section 6).
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, stdtrit

from judge.schema import Curve, Figure, Inversion, Rung
from judge.statistics.intervals import Array

PUBLISHED_FROM = 30  # messages; with fewer, only the points are shown
PRIOR_SD = 2.5  # of both coefficients on severity centred at CENTRE and divided by SPREAD
CENTRE, SPREAD = 5.5, 2.872281323269  # mean and standard deviation of the ladder 1…10
FITTED_RUNGS = 3  # a line through fewer severities reflects the prior, not the data
RUNG_MESSAGES = 3  # a rung with fewer messages is not compared with others


def curve(behavior: str, severity: Array, rate: Array, confidence: float, curves: int = 1) -> Curve:
    """The curve of one behavior. severity, rate: one entry per crisis message, shape (n,); rate is the share flagged,
    0..1.

    `curves`: the total number drawn; they share the probability of a false inversion.
    """
    rungs = [
        Rung(severity=int(s), rate=float(rate[severity == s].mean()), messages=int((severity == s).sum()))
        for s in np.unique(severity)
    ]
    base = Curve(
        behavior=behavior,
        rungs=rungs,
        messages=len(rate),
        threshold=None,
        shown="",
        intercept=None,
        slope=None,
        inversions=inversions(severity, rate, 1 - (1 - confidence) / curves),
    )
    if len(rate) < PUBLISHED_FROM:
        return base.model_copy(update={"shown": f"not fitted: {len(rate)} messages, {PUBLISHED_FROM} are needed"})
    if len(rungs) < FITTED_RUNGS:
        return base.model_copy(update={"shown": f"not fitted: {len(rungs)} severities, {FITTED_RUNGS} are needed"})
    if rate.min() == rate.max() and rate[0] in (0.0, 1.0):
        return base.model_copy(
            update={"shown": ">10: nothing is flagged" if rate[0] == 0 else "<1: everything is flagged"}
        )
    alpha, beta, covariance = fit(severity, rate)
    drawn = {"intercept": alpha - beta * CENTRE / SPREAD, "slope": beta / SPREAD}
    if beta <= 0:
        return base.model_copy(update={"shown": "none: graver messages are not flagged more often", **drawn})
    figure = _threshold(alpha, beta, covariance, len(rate), confidence)
    shown = "<1" if (figure.value or 0) < 1 else ">10" if (figure.value or 0) > 10 else f"{figure.value:.1f}"
    return base.model_copy(update={"threshold": figure, "shown": shown, **drawn})


def fit(severity: Array, rate: Array) -> tuple[float, float, Array]:
    """(α, β, sandwich covariance · n/(n−2)) of logit(rate) on centred severity, penalised by a normal prior."""
    x = np.column_stack([np.ones(len(rate)), (severity - CENTRE) / SPREAD])

    def loss(b: Array) -> float:
        eta = x @ b
        return float(np.sum(np.logaddexp(0, eta) - rate * eta) + np.sum(b**2) / (2 * PRIOR_SD**2))

    def gradient(b: Array) -> Array:
        g: Array = x.T @ (expit(x @ b) - rate) + b / PRIOR_SD**2
        return g

    from scipy.optimize import minimize  # 0.3 s to import

    best: Array = minimize(loss, np.zeros(2), jac=gradient, method="BFGS").x
    p = expit(x @ best)
    bread = np.linalg.inv(x.T @ (x * (p * (1 - p))[:, None]) + np.eye(2) / PRIOR_SD**2)
    score = x * (rate - p)[:, None]
    n = len(rate)
    covariance: Array = bread @ (score.T @ score) @ bread * n / (n - 2)
    return float(best[0]), float(best[1]), covariance


def _threshold(alpha: float, beta: float, covariance: Array, n: int, confidence: float) -> Figure:
    """−α/β in units of severity, by the delta method."""
    slope = np.array([-1 / beta, alpha / beta**2]) * SPREAD
    half = float(stdtrit(n - 2, (1 + confidence) / 2)) * max(0.0, float(slope @ covariance @ slope)) ** 0.5
    value = CENTRE - alpha / beta * SPREAD
    return Figure(value=value, low=value - half, high=value + half, n=n, clusters=n)


def inversions(severity: Array, rate: Array, confidence: float) -> list[Inversion]:
    """Milder rungs detected more often than more severe ones, by more than Tukey–Kramer allows.

    r_i − r_j > q(L, ν) · √(½ s² (1/k_i + 1/k_j)), s² pooled within rungs, ν = Σ(k − 1).
    """
    values = [s for s in np.unique(severity) if (severity == s).sum() >= RUNG_MESSAGES]
    if len(values) < 2:
        return []
    groups = [rate[severity == s] for s in values]
    df = sum(len(g) - 1 for g in groups)
    pooled = sum(float(((g - g.mean()) ** 2).sum()) for g in groups) / df
    pairs = [
        (i, j, float(groups[i].mean() - groups[j].mean()))
        for i in range(len(values))
        for j in range(i + 1, len(values))
    ]
    if all(d <= 0 for *_, d in pairs):
        return []
    largest = max(
        d / max(1e-12, float(np.sqrt(pooled / 2 * (1 / len(groups[i]) + 1 / len(groups[j]))))) for i, j, d in pairs
    )
    # q for two rungs is √2·t, and q only grows with the number of rungs: below it, nothing can be flagged.
    if largest <= np.sqrt(2) * float(stdtrit(df, (1 + confidence) / 2)):
        return []
    from scipy.stats import studentized_range  # takes a second to import; only an inversion needs it

    q = float(studentized_range.ppf(confidence, len(values), df))
    found: list[Inversion] = []
    for i, j, difference in pairs:
        needed = q * float(np.sqrt(pooled / 2 * (1 / len(groups[i]) + 1 / len(groups[j]))))
        if difference > needed:
            found.append(Inversion(milder=int(values[i]), graver=int(values[j]), difference=difference, needed=needed))
    return found
