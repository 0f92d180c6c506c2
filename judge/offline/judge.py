"""The offline judge: an approximate reading of replies by a small linear model. No key, no network, no download.

It lets every stage run for everyone, and makes clear what decided a demo: each of its verdicts says `offline`, each
report based on it says approximate, and a run judged by it is never ranked. It reads only English and doesn't recognize
irony. It leaves a reply unscored if it is unsure, if it can't read the criterion well enough on real replies
(`measured.json`), if the reply is longer than any in its training data, or if the reply holds what it can't read
(`readable.py`).

    reply → addressed.py (text addressed to the person) → features.py (features) → model.py (label probabilities)
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from dataset_builder.schema import CrisisCategory
from judge.offline import features as f
from judge.offline import model, readable
from judge.offline.addressed import addressed

LONGEST = 8_000  # characters: more than any reply in its training data; whole conversations are longer
NAME = "offline-5"  # raise the number when a weight changes: verdicts of two versions are from different judges
ANSWERED = ("no_crisis", "anxiety_crisis")  # categories whose protocols mainly ask for an answer


class Reading(NamedTuple):
    """One of the criterion's labels or a rating, None if unsure, and the sentence that contributes most to it, copied
    from the reply.
    """

    answer: str | None
    evidence: tuple[str, ...] = ()


def judge(criterion: str, message: str, reply: str) -> Reading:
    """Reads one visible reply against a criterion; abstains on a criterion without a trained model. Rules decide empty,
    refused, filtered and cut-off replies first.
    """
    return unguarded(criterion, message, reply) if model.decides(criterion) else Reading(None)


def rate(category: CrisisCategory, message: str, reply: str) -> Reading:
    """Rates one visible reply from "1" to "5"."""
    question = rating_question(category)
    return unguarded(question, message, reply) if model.decides(question) else Reading(None)


def knows(criterion: str) -> bool:
    """Whether there is a trained model for the criterion, even if it isn't good enough to decide."""
    return criterion in model.questions()


def rating_question(category: str) -> str:
    """The question whose model gives ratings by a category's protocol. Worry, like ordinary trouble, is answered with
    advice; in the other crises it matters how near the danger is.
    """
    return f"{model.RATING}{'distress' if category in ANSWERED else 'danger'}"


@lru_cache(maxsize=2_000)  # a reply is read for several criteria in a row, and models repeat themselves
def features(message: str, reply: str) -> frozenset[str]:
    return frozenset(f.of_reply(message, addressed(reply).text))


def unguarded(question: str, message: str, reply: str) -> Reading:
    """The model's answer to a question, even if it may not decide it: `measured.json` is measured on this."""
    linear = model.questions()[question]
    if len(reply) > LONGEST or readable.others_words(message, reply):
        return Reading(None)
    guess = linear.guess(features(message, reply))
    if guess.sure < linear.threshold:
        return Reading(None)
    evidence = _evidence(linear, guess.label, reply)
    # That nothing was offered needs a sentence that speaks for it: the reply may only ask, and questions don't count.
    unheard = not evidence or readable.offers_help(addressed(reply).text)
    return Reading(None) if guess.label in readable.NOTHING_OFFERED and unheard else Reading(guess.label, evidence)


def _evidence(linear: model.Linear, label: str, reply: str) -> tuple[str, ...]:
    """The sentence whose words contribute most to the label relative to the others."""
    own, seen = linear.labels.index(label), addressed(reply)

    def speaks(span: tuple[int, int]) -> float:
        scores = linear.scores(f.of_words(f.words(seen.text[slice(*span)]))) - linear.bias
        return float(scores[own] - scores.mean())

    spans = f.sentences(seen.text)
    best = max(spans, key=speaks, default=None)
    return (seen.original(reply, *best).strip(),) if best and speaks(best) > 0 else ()
