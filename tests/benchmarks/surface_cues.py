"""Do words alone give a message's polarity away? Two readers without understanding, on P1's single messages.

1. A linear classifier on word and character n-grams and on length, trained on all other scenarios (leave one scenario
out).
2. The `keyword` policy, a word list such as an engineer writes in an afternoon.

Implicit messages are those of severity below 7; explicit ones are meant to be easier. Balanced accuracy is the mean of
the two recalls (0.5: the majority answer, or any constant one); informedness is sensitivity + specificity − 1.
Intervals: 95 %, percentiles over 2,000 resamples of whole scenarios.

Usage: python tests/benchmarks/surface_cues.py [--content DIR] [--scenarios N]. The limits are of all scenarios: where
only the first N are read, nothing is said about them.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import reference_policies  # noqa: E402

from dataset_builder.prompts import CONTENT  # noqa: E402
from dataset_builder.reading.load import load  # noqa: E402

SEVERE = 7
RESAMPLES = 2_000
CLASSIFIER_LIMIT, KEYWORD_LIMIT = 0.75, 0.35
TELLING = 12


class Messages(NamedTuple):
    """Arrays of shape (n,)."""

    text: NDArray[np.str_]
    scenario: NDArray[np.str_]
    severity: NDArray[np.int64]

    @property
    def crisis(self) -> NDArray[np.bool_]:
        return self.severity > 0


def messages(root: Path, first: int | None) -> Messages:
    content, errors = load(root)
    if content is None:
        raise SystemExit("\n".join(errors.lines()))
    read = [s for s in content.scenarios if s.id.startswith("P1") and s.kind == "scenario"][:first]
    found = [(p.words, s.id, p.severity) for s in read for p in s.perturbations]
    texts, scenarios, severities = zip(*found, strict=True)
    return Messages(np.array(texts), np.array(scenarios), np.array(severities))


def vectorizer() -> FeatureUnion:
    return FeatureUnion([
        ("words", TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)),
        ("characters", TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), min_df=3, sublinear_tf=True)),
    ])  # fmt: skip


def with_length(features: csr_matrix, texts: NDArray[np.str_]) -> csr_matrix:
    """Adds the logarithm of the length, and the share of capitals and of punctuation."""
    extra = [
        [
            np.log1p(len(t)) / 5,
            sum(map(str.isupper, t)) / len(t),
            sum(not c.isalnum() and not c.isspace() for c in t) / len(t),
        ]
        for t in texts
    ]
    return hstack([features, csr_matrix(np.array(extra))]).tocsr()


def left_out(found: Messages, train: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """What a classifier says of each message that has seen the `train` messages of all other scenarios: (n,), True for
    crisis.
    """
    said = np.zeros(len(found.text), dtype=bool)
    for scenario in np.unique(found.scenario):
        inside, outside = found.scenario == scenario, (found.scenario != scenario) & train
        vectors = vectorizer()
        fitted = with_length(vectors.fit_transform(found.text[outside]), found.text[outside])
        model = LogisticRegression(C=3.0, class_weight="balanced", max_iter=2000).fit(fitted, found.crisis[outside])
        said[inside] = model.predict(with_length(vectors.transform(found.text[inside]), found.text[inside]))
    return said


def telling(found: Messages, mask: NDArray[np.bool_]) -> tuple[list[str], list[str]]:
    """The words and word pairs that weigh most for crisis and for control, fitted on everything in `mask`."""
    words = TfidfVectorizer(ngram_range=(1, 2), min_df=3, sublinear_tf=True)
    model = LogisticRegression(C=3.0, class_weight="balanced", max_iter=2000).fit(
        words.fit_transform(found.text[mask]), found.crisis[mask]
    )
    order = np.argsort(model.coef_[0])
    names = words.get_feature_names_out()
    return list(names[order[::-1][:TELLING]]), list(names[order[:TELLING]])


def keyword(found: Messages) -> NDArray[np.bool_]:
    """Whether the keyword policy hands over, given the message alone."""
    return np.array(
        [
            reference_policies.reply("keyword", [{"role": "user", "content": t}], seed=0).startswith(
                reference_policies.HANDOFF[:40]
            )
            for t in found.text
        ]
    )


def recalls(said: NDArray[np.bool_], crisis: NDArray[np.bool_]) -> tuple[float, float]:
    return float(said[crisis].mean()), float((~said[~crisis]).mean())


def interval(
    found: Messages, said: NDArray[np.bool_], mask: NDArray[np.bool_], scale: float, shift: float
) -> tuple[float, float, float]:
    """scale · (sensitivity + specificity) + shift over `mask`, with its interval over resampled scenarios."""
    rng = np.random.default_rng(0)
    names, where = np.unique(found.scenario[mask], return_inverse=True)
    crisis, hit = found.crisis[mask], said[mask] == found.crisis[mask]
    counts = np.stack([np.bincount(where, w, len(names)) for w in (crisis, crisis & hit, ~crisis, ~crisis & hit)])
    drawn = counts[:, rng.integers(0, len(names), (RESAMPLES, len(names)))].sum(2)
    with np.errstate(invalid="ignore"):
        values = scale * (drawn[1] / drawn[0] + drawn[3] / drawn[2]) + shift
    value = scale * sum(recalls(said[mask], crisis)) + shift
    return value, float(np.nanpercentile(values, 2.5)), float(np.nanpercentile(values, 97.5))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--content", type=Path, default=CONTENT)
    parser.add_argument("--scenarios", type=int)
    options = parser.parse_args()
    found = messages(options.content, options.scenarios)
    implicit, explicit = ~found.crisis | (found.severity < SEVERE), ~found.crisis | (found.severity >= SEVERE)
    hits = keyword(found)
    trained_on_all, trained_on_implicit = left_out(found, np.ones_like(found.crisis)), left_out(found, implicit)
    failed = False
    print(
        f"{len(found.text)} messages of {len(np.unique(found.scenario))} P1 scenarios; controls are the same "
        "in both columns of figures"
    )
    for name, mask in (("implicit (severity < 7)", implicit), ("explicit (severity 7 to 10)", explicit)):
        crisis = found.crisis & mask
        majority = max(crisis.sum(), (mask & ~found.crisis).sum()) / mask.sum()
        print(
            f"\n{name}: {crisis.sum()} crisis, {(mask & ~found.crisis).sum()} control; majority answer "
            f"{majority:.2f} accurate, 0.50 balanced"
        )
        for what, said in (("trained on all", trained_on_all), ("trained on implicit ones", trained_on_implicit)):
            value, low, high = interval(found, said, mask, 0.5, 0.0)
            sensitivity, specificity = recalls(said[mask], found.crisis[mask])
            failed |= mask is implicit and value > CLASSIFIER_LIMIT
            print(
                f"  classifier {what:<26} balanced accuracy {value:.3f} [{low:.3f}, {high:.3f}]   recall "
                f"{sensitivity:.2f} crisis, {specificity:.2f} control"
            )
        value, low, high = interval(found, hits, mask, 1.0, -1.0)
        sensitivity, specificity = recalls(hits[mask], found.crisis[mask])
        failed |= mask is implicit and value > KEYWORD_LIMIT
        print(
            f"  {'keyword policy':<37} informedness      {value:.3f} [{low:.3f}, {high:.3f}]   recall "
            f"{sensitivity:.2f} crisis, {specificity:.2f} control"
        )
        for side, words in zip(("crisis", "control"), telling(found, mask), strict=True):
            print(f"  most telling for {side}: {', '.join(words)}")
    if options.scenarios is not None:
        return 0
    print(
        f"\nlimits on implicit messages: balanced accuracy {CLASSIFIER_LIMIT}, informedness {KEYWORD_LIMIT}: "
        f"{'passed over' if failed else 'held'}"
    )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
