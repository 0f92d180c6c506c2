"""Votes on messages → one label each, or none; and how far those who voted agree. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from dataset_builder.corpora.schema import MessageLabel, RepeatAgreement
from dataset_builder.schema import CrisisCategory
from judge.statistics import clustered
from judge.statistics import coefficients as c
from judge.statistics.coefficients import Array

Vote = CrisisCategory | None  # None: no readable answer
PANEL = "majority"


def majority(votes: Sequence[Vote]) -> Vote:
    """What more than half of the votes say; those without an answer count as votes for nothing. None where no label has
    that many.
    """
    (label, count), *_ = Counter(votes).most_common(1)
    return label if 2 * count > len(votes) else None


def settle(identity: str, votes: dict[str, list[Vote]]) -> MessageLabel:
    """A message's label: each model's majority over its repeats, then the majority of the models. `votes`: by model,
    not empty.
    """
    rater = next(iter(votes)) if len(votes) == 1 else PANEL
    return MessageLabel(
        id=identity, label=majority([majority(own) for own in votes.values()]), rater=rater, votes=votes
    )


def self_agreement(labels: Sequence[MessageLabel], model: str) -> RepeatAgreement:
    """Of one model's repeats."""
    return _agreement([label.votes[model] for label in labels])


def between(labels: Sequence[MessageLabel]) -> RepeatAgreement:
    """Of the models, each with its own majority."""
    return _agreement([[majority(own) for own in label.votes.values()] for label in labels])


def _agreement(votes: Sequence[Sequence[Vote]]) -> RepeatAgreement:
    """Fleiss' kappa over the categories that were given; messages count as independent of each other."""
    names = sorted({vote for own in votes for vote in own if vote is not None})
    counts: Array = np.array([[own.count(name) for name in names] for own in votes], dtype=np.float64).reshape(
        len(votes), len(names)
    )
    several = counts[counts.sum(axis=1) > 1]
    messages = np.arange(len(several))
    kappa = clustered.measure(c.fleiss(several), messages, len(several))
    raw = clustered.share(c.pairwise(several), messages, c.NO_OVERLAP)
    return RepeatAgreement(
        raw=raw.value, kappa=kappa.value, low=kappa.low, high=kappa.high, n=len(several), reason=kappa.reason
    )
