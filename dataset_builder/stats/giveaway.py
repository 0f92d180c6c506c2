"""What reveals a message's polarity without understanding it: the figures of `helmbench stats --giveaway`.

The messages are those of all live scenarios and conversations, with all user turns. Cross-validation keeps a scenario
in one fold, so classifiers can learn how our crisis messages read but not what a scenario is about. An AUC of 0.5 is
chance. A figure above its ceiling (`coverage.CEILINGS`) is always shown.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.feature_selection import VarianceThreshold
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from dataset_builder.composing.compose import samples
from dataset_builder.reading.content_types import Content
from dataset_builder.stats import surface
from dataset_builder.stats.coverage import CEILINGS
from helmbench_common.tables import columns

GROUPS = ("all", "P1", "P2", "P3", "P4", "P4-B1")
FOLDS = 10  # of scenarios
LARGE = 10  # fewest messages for a per-scenario AUC
TOLD = 0.8  # above this AUC, a scenario's crises and controls count as told apart
TELLING = 10
WORDS = {"ngram_range": (1, 2)}  # words and pairs of words
CHARACTERS = {"analyzer": "char_wb", "ngram_range": (3, 5)}
PHRASES = {"ngram_range": (1, 3), "binary": True}  # up to three words, for naive Bayes
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Names = NDArray[np.str_]


@dataclass(frozen=True)
class Messages:
    """One entry per message. `tagged`: in P1, in a job that flags with a tag; `alarmed`: has a word in ALARM."""

    texts: list[str]
    scenario: Names
    crisis: Bools
    tagged: Bools
    alarmed: Bools


def messages(content: Content) -> Messages:
    """All messages of live scenarios, in content order."""
    found = [(s, p) for s in content.live for p in s.perturbations]
    said = [[t.text for t in p.turns if t.role == "user" and t.text] for _, p in found]
    return Messages(
        [p.words for _, p in found],
        np.array([s.id for s, _ in found]),
        np.array([p.severity > 0 for _, p in found]),
        np.array([s.id.startswith("P1") and "flag" in s.document.front for s, _ in found]),
        np.array([bool(surface.matches(surface.ALARM, texts)) for texts in said]),
    )


def giveaway(content: Content) -> dict[str, Any]:
    """{messages, crisis, left_out, scenarios, features, policies, telling, ceilings}.

    `left_out`: kind of score → group → AUC; `scenarios`: the same for those with LARGE messages or more and both
    polarities; `features`: each alone, in its more predictive direction; `policies`: informedness on P1 tags;
    `ceilings`: name → {have, at most}. A figure that can't be computed is null.
    """
    found = messages(content)
    numbers = surface.matrix(found.texts)
    scores = {
        "words": by_terms(found.texts, WORDS, found.crisis, found.scenario),
        "characters": by_terms(found.texts, CHARACTERS, found.crisis, found.scenario),
        "naive Bayes": by_counts(found.texts, found.crisis, found.scenario),
        "surface": _left_out(make_pipeline(StandardScaler(), _model()), numbers, found.crisis, found.scenario),
    }
    groups = {g: np.char.startswith(found.scenario, "" if g == "all" else g) for g in GROUPS}
    scenarios: dict[str, Any] = {}
    for name in np.unique(found.scenario):
        own = found.scenario == name
        if own.sum() >= LARGE and len(np.unique(found.crisis[own])) == 2:
            scenarios[str(name)] = {what: auc(found.crisis[own], score[own]) for what, score in scores.items()}
    features: dict[str, dict[str, float | None]] = {}
    for n, name in enumerate(surface.FEATURES):
        aucs = {g: auc(found.crisis[own], numbers[own, n]) for g, own in groups.items()}
        features[name] = {g: value if value is None else round(max(value, 1 - value), 3) for g, value in aucs.items()}
    own, over = found.tagged, gate(found.crisis, scores["words"], found.scenario)
    crisis, control = telling(found.texts, found.crisis)
    figures: dict[str, Any] = {
        "messages": len(found.texts),
        "crisis": int(found.crisis.sum()),
        "left_out": {
            name: {g: auc(found.crisis[own], score[own]) for g, own in groups.items()} for name, score in scores.items()
        },
        "scenarios": scenarios,
        "features": features,
        "policies": {
            "messages": int(own.sum()),
            "keyword": informedness(found.crisis[own], found.alarmed[own]),
            "bag of words": informedness(found.crisis[own], over[own]),
        },
        "telling": {"crisis": crisis, "control": control},
    }
    have: dict[str, float | None] = {
        **{f"{what}, {g}": own[g] for what, own in figures["left_out"].items() for g in GROUPS},
        "core with a product of its own": _own_product(content),
        "scenarios told apart by words": len(_told_apart(scenarios, "words")) if scenarios else None,
        **{f"number of {name}": features[name]["all"] for name in ("words", "sentences")},
        **{f"informedness, {name}": figures["policies"][name] for name in ("keyword", "bag of words")},
    }
    return figures | {"ceilings": {name: {"have": have[name], "at most": most} for name, most in CEILINGS.items()}}


def _own_product(content: Content) -> float | None:
    """The share of core samples whose product prompt no other scenario has, so that it says which one is asked."""
    users: dict[str, set[str]] = defaultdict(set)
    products = [(s.scenario.job(s.condition.wording), s.scenario.id) for s in samples(content) if "core" in s.tiers]
    if len({scenario for _, scenario in products}) < 2:
        return None
    for product, scenario in products:
        users[product].add(scenario)
    return round(sum(len(users[product]) == 1 for product, _ in products) / len(products), 3)


def by_terms(texts: list[str], kind: dict[str, Any], crisis: Bools, scenario: Names) -> Floats:
    """A left-out score per message, by TF-IDF of WORDS or CHARACTERS; nan without both polarities to train on."""
    # Count terms once, which saves most of the time. The threshold drops terms that only the left-out scenarios have,
    # so the weights equal those of a vectorizer fitted on the others.
    weights = make_pipeline(VarianceThreshold(), TfidfTransformer(sublinear_tf=True), _model())
    return _left_out(weights, CountVectorizer(**kind).fit_transform(texts), crisis, scenario)


def by_counts(texts: list[str], crisis: Bools, scenario: Names) -> Floats:
    """A left-out score per message, the log odds of naive Bayes on PHRASES: many weak hints add up there."""
    found = _left_out(
        MultinomialNB(), CountVectorizer(**PHRASES).fit_transform(texts), crisis, scenario, "predict_log_proba"
    )
    return found if found.ndim == 1 else found[:, 1] - found[:, 0]


def _left_out(model: Any, features: Any, crisis: Bools, scenario: Names, kind: str = "decision_function") -> Floats:
    """Decision values, or what another method of the model gives. Not standardized per scenario: that would hide a
    scenario whose messages all read as a crisis, which also gives it away.
    """
    if any(len(np.unique(crisis[scenario != own])) < 2 for own in np.unique(scenario)):
        return np.full(len(crisis), np.nan)
    with threadpool_limits(1):  # the fits are small, and threads waiting for a busy core take many times as long
        scores: Floats = cross_val_predict(
            model,
            features,
            crisis,
            groups=scenario,
            cv=GroupKFold(min(FOLDS, len(np.unique(scenario)))),
            method=kind,
        )
    return scores


def _model() -> Any:
    return LogisticRegression(C=1.0, class_weight="balanced", max_iter=1000)


def auc(crisis: Bools, scores: Floats) -> float | None:
    """The share of (crisis, control) pairs in which the crisis scores higher, ties as half; None without pairs."""
    known = ~np.isnan(scores)
    if len(np.unique(crisis[known])) < 2:
        return None
    return round(float(roc_auc_score(crisis[known], scores[known])), 3)


def gate(crisis: Bools, scores: Floats, scenario: Names) -> Bools:
    """The messages that a bag of words flags, at the best threshold for all other scenarios.

    Those scores are left-out ones too: a model's training messages would set the threshold far too high.
    """
    over = np.zeros(len(crisis), dtype=bool)
    for own in np.unique(scenario):
        inside = scenario == own
        outside = ~inside & ~np.isnan(scores)
        if len(np.unique(crisis[outside])) == 2:
            false, true, thresholds = roc_curve(crisis[outside], scores[outside])
            over[inside] = scores[inside] >= thresholds[np.argmax(true - false)]
    return over


def informedness(crisis: Bools, over: Bools) -> float | None:
    """Sensitivity + specificity − 1: 0 for a policy that reads nothing, 1 if always right; None without both."""
    if len(np.unique(crisis)) < 2:
        return None
    return round(float(over[crisis].mean() - over[~crisis].mean()), 3)


def telling(texts: list[str], crisis: Bools) -> tuple[list[str], list[str]]:
    """The TELLING strongest terms for crisis and for control, in a fit on all messages; empty without both."""
    if len(np.unique(crisis)) < 2:
        return [], []
    vectors = CountVectorizer(**WORDS)
    weights = TfidfTransformer(sublinear_tf=True).fit_transform(vectors.fit_transform(texts))
    order = np.argsort(_model().fit(weights, crisis).coef_[0], kind="stable")
    names = [str(name) for name in vectors.get_feature_names_out()[order]]
    return names[::-1][:TELLING], names[:TELLING]


def _told_apart(scenarios: dict[str, Any], what: str) -> dict[str, float]:
    """The scenarios whose AUC by `what` is above TOLD, highest first."""
    found = {name: own[what] for name, own in scenarios.items() if (own[what] or 0) > TOLD}
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def table(figures: dict[str, Any]) -> str:
    """The same figures as text."""
    ceilings = figures["ceilings"]
    measured = {name: pair for name, pair in ceilings.items() if pair["have"] is not None}
    over = {name for name, pair in measured.items() if pair["have"] > pair["at most"]}
    missing = "" if len(measured) == len(ceilings) else f"; {len(measured)} of {len(ceilings)} could be computed"
    rows = [
        [name, _number(pair["have"]), str(pair["at most"]), "over" if name in over else ""]
        for name, pair in ceilings.items()
    ]
    lines = [
        f"what reveals polarity without understanding: {figures['messages']} messages, {figures['crisis']} of a crisis",
        "",
        columns(["", "have", "at most", ""], rows),
        f"{len(over)} of {len(ceilings)} ceilings are exceeded{missing}",
        f"informedness on tags: {figures['policies']['messages']} messages of P1; chance is 0, as 0.5 is for an AUC",
    ]
    for title, what in (
        (f"AUC, {FOLDS} folds of scenarios", "left_out"),
        ("AUC of one feature, either way", "features"),
    ):
        aucs = [[name, *(_number(own[g]) for g in GROUPS)] for name, own in figures[what].items()]
        lines += ["", columns([title, *GROUPS], aucs)]
    lines.append("")
    for what in ("words", "characters"):
        told = ", ".join(f"{name} {value:.2f}" for name, value in _told_apart(figures["scenarios"], what).items())
        lines.append(f"above {TOLD} by {what}, of {len(figures['scenarios'])} scenarios: {told or 'none'}")
    lines += [f"words that push to {side}: {', '.join(words)}" for side, words in figures["telling"].items()]
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value}" if isinstance(value, int) else f"{value:.3f}"
