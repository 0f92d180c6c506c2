"""What words and surface give away: that the figures find what is planted and nothing else, and that the shipped
messages keep under the ceilings.
"""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline

from dataset_builder.reading.content_types import Content, Turn
from dataset_builder.stats import giveaway
from dataset_builder.stats.coverage import CEILINGS

SCENARIOS = [f"{behavior}-S{n}" for behavior in ("P1-B1", "P2-B1", "P3-B1", "P4-B1") for n in (1, 2, 3, 4, 5)]
WORDS = [a + b for a in ("bar", "mel", "tor", "sin", "gul", "pev") for b in ("ken", "dor", "lim", "sta", "wun", "fip")]
PLANTED = "lantern"
Said = list[tuple[str, str, bool]]  # scenario, text, whether it is a crisis


def noise(many: int = 20) -> Said:
    """Messages of ten drawn words each, `many` a scenario, every second one labelled a crisis: nothing to be found."""
    draw = random.Random(7)
    return [(s, " ".join(draw.choices(WORDS, k=10)), n % 2 == 0) for s in SCENARIOS for n in range(many)]


def made(shipped: Content, said: Said) -> Content:
    """Content of these messages and no others."""
    template = next(s for s in shipped.scenarios if s.kind == "scenario" and "flag" in s.document.front)
    one = template.perturbations[0]
    names = list(dict.fromkeys(scenario for scenario, _, _ in said))
    return replace(
        shipped,
        scenarios=tuple(
            replace(
                template,
                id=name,
                perturbations=tuple(
                    replace(one, code=f"PT{n}", severity=5 if crisis else -5, turns=(Turn("user", text, (), 1),))
                    for n, (scenario, text, crisis) in enumerate(said, 1)
                    if scenario == name
                ),
            )
            for name in names
        ),
    )


def arrays(said: Said) -> tuple[list[str], giveaway.Bools, giveaway.Names]:
    return [t for _, t, _ in said], np.array([c for _, _, c in said]), np.array([s for s, _, _ in said])


def test_the_shipped_messages_keep_under_their_ceilings(shipped: Content) -> None:
    """Without understanding, our crises can't be told from our controls; `stats --giveaway` shows what does."""
    found = giveaway.giveaway(shipped)["ceilings"]
    assert found.keys() == CEILINGS.keys()
    assert {name: f for name, f in found.items() if f["have"] is None or f["have"] > f["at most"]} == {}


def test_a_planted_word_is_found_and_named(shipped: Content) -> None:
    """A word that all crises have tells nearly every pair apart, by words, characters and a gate, and leads the list;
    drawn words beside it cost a few pairs.
    """
    said = [(s, f"{text} {PLANTED}" if crisis else text, crisis) for s, text, crisis in noise()]
    found = giveaway.giveaway(made(shipped, said))
    assert min(found["left_out"]["words"].values()) > 0.95
    assert min(found["left_out"]["characters"].values()) > 0.95
    assert (found["policies"]["messages"], found["policies"]["keyword"]) == (100, 0)
    assert found["policies"]["bag of words"] > 0.85
    assert found["telling"]["crisis"][0] == PLANTED
    assert PLANTED not in found["telling"]["control"]
    assert found["ceilings"]["scenarios told apart by words"] == {"have": 20, "at most": 5}
    assert re.search(r"scenarios told apart by words +20 +5 +over", giveaway.table(found))


def test_drawn_labels_give_nothing_away(shipped: Content) -> None:
    """Where nothing is to be found, everything is near a coin's 0.5 and a policy's 0; the limits are four standard
    errors of 400 messages. Twice the words in crises: their number tells all apart, and that of sentences nothing.
    """
    found = giveaway.giveaway(made(shipped, noise()))
    assert [name for name, own in found["left_out"].items() if abs(own["all"] - 0.5) > 0.12] == []
    assert [name for name, own in found["features"].items() if own["all"] > 0.62] == []
    assert abs(found["policies"]["bag of words"]) < 0.4
    assert found["policies"]["keyword"] == 0
    longer = [(s, f"{text} {text}" if crisis else text, crisis) for s, text, crisis in noise()]
    found = giveaway.giveaway(made(shipped, longer))
    assert (found["features"]["words"]["all"], found["features"]["sentences"]["all"]) == (1.0, 0.5)
    assert found["left_out"]["surface"]["all"] == 1.0


@pytest.mark.parametrize("kind", [giveaway.WORDS, giveaway.CHARACTERS], ids=["words", "characters"])
def test_a_scenario_is_scored_by_what_the_others_say(kind: dict[str, Any]) -> None:
    """Counting terms once for all folds gives what scikit-learn's own pipeline gives, fitted without the fold. So
    neither a scenario's labels nor a word of its own move its scores.
    """
    texts, crisis, scenario = arrays(noise(10))
    own = np.zeros(len(texts), dtype=bool)
    own[next(test for _, test in GroupKFold(10).split(texts, groups=scenario) if "P4-B1-S2" in scenario[test])] = True
    plain = make_pipeline(
        TfidfVectorizer(sublinear_tf=True, **kind), LogisticRegression(C=1.0, class_weight="balanced", max_iter=1000)
    )
    plain.fit([t for t, o in zip(texts, own, strict=True) if not o], crisis[~own])
    expected = plain.decision_function([t for t, o in zip(texts, own, strict=True) if o])
    assert giveaway.by_terms(texts, kind, crisis, scenario)[own] == pytest.approx(expected, abs=1e-6)


def test_a_gate_takes_its_threshold_from_the_others() -> None:
    """Scenario a is told apart at 3, b and c at 1. Outside a, 1 is best: all of a is over it. Outside b, so in a and c,
    3 is best (2/3 against 1 − 2/3): nothing in b reaches it, and nothing in c.
    """
    scores = np.array([2, 2, 3, 3, 0, 1, 0, 1], dtype=float)
    crisis = np.array([False, False, True, True, False, True, False, True])
    scenario = np.array(list("aaaabbcc"))
    over = giveaway.gate(crisis, scores, scenario)
    assert over.tolist() == [True, True, True, True, False, False, False, False]
    assert giveaway.informedness(crisis, over) == pytest.approx(2 / 4 - 2 / 4)


def test_informedness_and_auc_by_hand() -> None:
    """Two of three crises and one of two controls over: 2/3 − 1/2. Of 3·2 pairs, four are right and one is a tie."""
    crisis = np.array([True, True, True, False, False])
    assert giveaway.informedness(crisis, np.array([True, True, False, True, False])) == round(2 / 3 - 1 / 2, 3)
    assert giveaway.auc(crisis, np.array([3.0, 2.0, 0.5, 2.0, 1.0])) == round((4 - 1 + 0.5) / 6, 3)
    assert giveaway.auc(crisis, np.array([3.0, 2.0, 2.5, np.nan, np.nan])) is None


def test_where_there_is_nothing_to_train_on_figures_are_null(shipped: Content) -> None:
    """One scenario can't be left out; the table shows that nothing was measured and counts no ceiling as passed."""
    content = made(shipped, [m for m in noise() if m[0] == "P1-B1-S1"])
    found = giveaway.giveaway(content)
    assert giveaway.giveaway(content) == found
    assert found["left_out"]["words"] == dict.fromkeys(giveaway.GROUPS)
    assert found["ceilings"]["words, all"] == {"have": None, "at most": 0.68}
    assert re.search(r"words, all +– +0.68\n", giveaway.table(found))


def test_withdrawn_scenarios_are_not_read(shipped: Content) -> None:
    """They are in no figure."""
    content = made(shipped, noise(1))
    first = content.scenarios[0]
    gone = replace(first, document=replace(first.document, front={**first.document.front, "withdrawn": "2026-01-01"}))
    found = giveaway.messages(replace(content, scenarios=(gone, *content.scenarios[1:])))
    assert (len(found.texts), first.id in found.scenario) == (19, False)
