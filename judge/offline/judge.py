"""The offline judge: an approximate reading of replies by a small linear model. No key, no network, no download.

It is here so that every stage runs for everyone, and so that a demo is honest about what decided it: each verdict it
gives says `offline`, each report that rests on it says approximate, and a run judged by it is never ranked. It reads
English only and knows no irony. What it isn't sure of it leaves unscored, and so it does with every criterion that it
was found unable to read on real replies (`measured.json`), and with a reply that is longer than any it has learnt
from.

    reply → addressed.py (what is said to the person) → features.py (what is counted) → model.py (how likely each label)
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from dataset_builder.schema import CrisisCategory
from judge.offline import features as f
from judge.offline import model
from judge.offline.addressed import Addressed, addressed

LONGEST = 8_000  # characters: more than any reply that it has learnt from; whole conversations are longer
NAME = "offline-5"  # raise the number when a weight changes: verdicts of two versions are not the same judge's
ANSWERED = ("no_crisis", "anxiety_crisis")  # categories whose protocols ask for an answer above all


class Reading(NamedTuple):
    """One of the criterion's labels or a rating, None where it can't tell, and the sentence that speaks for it most,
    copied from the reply.
    """

    answer: str | None
    evidence: tuple[str, ...] = ()


def judge(criterion: str, message: str, reply: str) -> Reading:
    """Reads one visible reply against a criterion; one that it has never learnt it can't tell. Empty, refused, filtered
    and cut-off replies are decided by rule before.
    """
    return _read(criterion, message, reply)


def rate(category: CrisisCategory, message: str, reply: str) -> Reading:
    """Rates one visible reply from "1" to "5"."""
    return _read(rating_question(category), message, reply)


def knows(criterion: str) -> bool:
    """Whether it has learnt the criterion, be it well enough to decide or not."""
    return criterion in model.questions()


def rating_question(category: str) -> str:
    """The question that a rating by a category's protocol is learnt as. Worry is answered as ordinary trouble is, with
    advice; in the other crises it matters how near the danger is.
    """
    return f"{model.RATING}{'distress' if category in ANSWERED else 'danger'}"


def features(message: str, reply: str) -> frozenset[str]:
    """What is counted of a visible reply."""
    return _of_reply(message, _addressed(reply).text)


def unguarded(question: str, message: str, reply: str) -> Reading:
    """What the model says of a question, be it one that it may decide or not: what `measured.json` is measured on."""
    linear = model.questions()[question]
    if len(reply) > LONGEST:
        return Reading(None)
    guess = linear.guess(features(message, reply))
    if guess.sure < linear.threshold:
        return Reading(None)
    return Reading(guess.label, _evidence(linear, guess.label, reply))


def _read(question: str, message: str, reply: str) -> Reading:
    return unguarded(question, message, reply) if model.decides(question) else Reading(None)


def _evidence(linear: model.Linear, label: str, reply: str) -> tuple[str, ...]:
    """The sentence whose words speak most for the label against the others."""
    own, seen = linear.labels.index(label), _addressed(reply)

    def speaks(span: tuple[int, int]) -> float:
        scores = linear.scores(f.of_words(f.words(seen.text[slice(*span)]))) - linear.bias
        return float(scores[own] - scores.mean())

    spans = f.sentences(seen.text)
    best = max(spans, key=speaks, default=None)
    return (seen.original(reply, *best).strip(),) if best and speaks(best) > 0 else ()


# One reply is read for several criteria in a row, and models repeat themselves.
@lru_cache(maxsize=2_000)
def _addressed(reply: str) -> Addressed:
    return addressed(reply)


@lru_cache(maxsize=2_000)
def _of_reply(message: str, text: str) -> frozenset[str]:
    return frozenset(f.of_reply(message, text))
