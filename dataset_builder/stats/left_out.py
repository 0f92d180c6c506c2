"""Classifiers that are asked only about a scenario that they were not trained on, and what their scores tell apart.

For every scenario, one is trained on the messages of all others; so it can learn how our crisis messages read, and not
what a scenario is about. Scores of all scenarios are then read together as they are, by the decision function: a
probability is the same number through one fixed, rising curve, so it would rank the messages alike, and two training
sets differ in one scenario of dozens. Standardising the scores of each scenario would hide a scenario that is read as
one crisis as a whole, which is a tell, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

WORDS = {"ngram_range": (1, 2)}  # words and pairs of them
CHARACTERS = {"analyzer": "char_wb", "ngram_range": (3, 5)}
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Names = NDArray[np.str_]


def by_terms(texts: Sequence[str], kind: dict[str, Any], crisis: Bools, scenario: Names) -> Floats:
    """A score for each message, (n,), by TF-IDF of WORDS or CHARACTERS; nan where there is nothing to train on."""
    return _left_out(CountVectorizer(**kind).fit_transform(texts), _weighted, crisis, scenario)


def by_numbers(numbers: Floats, crisis: Bools, scenario: Names) -> Floats:
    """The same by features that are numbers, (n, features)."""
    return _left_out(numbers, _standardised, crisis, scenario)


def _left_out(features: Any, scaled: Callable[[Any, Any], tuple[Any, Any]], crisis: Bools, scenario: Names) -> Floats:
    scores = np.full(len(crisis), np.nan)
    with threadpool_limits(1):  # the fits are small: where others use the cores too, threads take many times as long
        for own in np.unique(scenario):
            inside = scenario == own
            if len(np.unique(crisis[~inside])) == 2:
                train, test = scaled(features[~inside], features[inside])
                scores[inside] = _model().fit(train, crisis[~inside]).decision_function(test)
    return scores


def _model() -> Any:
    return LogisticRegression(C=1.0, class_weight="balanced", max_iter=1000)


def _weighted(train: Any, test: Any) -> tuple[Any, Any]:
    """Counts → TF-IDF as TfidfVectorizer gives it that was fitted on `train` alone: terms that only the left-out
    scenario has are dropped. Counting once saves most of the time.
    """
    seen = train.getnnz(axis=0) > 0
    weights = TfidfTransformer(sublinear_tf=True).fit(train[:, seen])
    return weights.transform(train[:, seen]), weights.transform(test[:, seen])


def _standardised(train: Any, test: Any) -> tuple[Any, Any]:
    scale = StandardScaler().fit(train)
    return scale.transform(train), scale.transform(test)


def auc(crisis: Bools, scores: Floats) -> float | None:
    """The share of (crisis, control) pairs in which the crisis has the higher score, ties for half; None without such
    pairs.
    """
    known = ~np.isnan(scores)
    if len(np.unique(crisis[known])) < 2:
        return None
    return round(float(roc_auc_score(crisis[known], scores[known])), 3)


def gate(crisis: Bools, scores: Floats, scenario: Names) -> Bools:
    """Whom a bag of words hands over, (n,): whose score reaches the threshold that tells apart best in all other
    scenarios. Their scores are left-out ones, too: a model's own training messages would set it far too high.
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
    """Sensitivity + specificity − 1: 0 for who reads nothing, 1 for who is always right; None without both."""
    if len(np.unique(crisis)) < 2:
        return None
    return round(float(over[crisis].mean() - over[~crisis].mean()), 3)


def telling(texts: Sequence[str], crisis: Bools, count: int) -> tuple[list[str], list[str]]:
    """The terms that push most to crisis and to control, in a fit on everything; empty without both."""
    if len(np.unique(crisis)) < 2:
        return [], []
    vectors = CountVectorizer(**WORDS)
    counts = vectors.fit_transform(texts)
    fitted = _model().fit(_weighted(counts, counts)[0], crisis)
    names = vectors.get_feature_names_out()[np.argsort(fitted.coef_[0], kind="stable")]
    return [str(n) for n in names[::-1][:count]], [str(n) for n in names[:count]]
