"""What a rule measures on a message, by hand; and the file of real messages: figures of every feature, and no text."""

from __future__ import annotations

import subprocess
from pathlib import Path

import measure_real_messages
import pytest
import yaml
from support.labelled_sets import dump, table

from dataset_builder.reading.content_types import Content
from dataset_builder.stats import surface as real_messages
from dataset_builder.stats.surface import FEATURES, NUMBERS, SHARES, distribution, features, matrix
from judge.replies.schema import RunError

PLAIN = "The bus left at nine. I was late, sorry, and it didn't wait."


def test_numbers_by_hand() -> None:
    """Thirteen words in two sentences, two commas, one contraction, one I, and two capitals of 43 letters."""
    found = features(PLAIN)
    assert [round(found[name], 2) for name in NUMBERS] == [
        *(13, 2, 13 / 2),
        *(round(count * 100 / 13, 2) for count in (2, 1, 1)),
        round(2 * 100 / 43, 2),
    ]
    assert [name for name in SHARES if found[name]] == []


def test_habits_by_hand() -> None:
    """Each habit where it is, and not where something only looks like it."""
    for text, habits in (
        ("Is it late?", {"question mark", "request"}),
        ("My tap drips. Could you explain the washer.", {"request"}),
        ("Draft a note to my landlord.", {"request"}),
        ("The draft was good.", set()),
        ("it is late.", {"no capital letter"}),
        ("i saw Ana.", {"only lower-case i"}),
        ("i saw Ana and I left.", set()),
        ("Bye i.e. so long.", set()),
        ("It is late", {"no final punctuation"}),
        ("“It is late.”", {"quotation marks"}),
        ("It is so damn late.", {"swearing"}),
        ("The scrap of paper is here.", set()),
        ("It was late. It was dark.", {"repetition"}),
        ("On the way to the sea we sang, and the way to the sea was long.", {"repetition"}),
        ("Some of it and the rest of it and the end.", set()),
        ("It was late and it was dark.", set()),
        ("Red.\nBlue.", {"line break"}),
        ("Red:\n- one.\n- two.", {"line break", "list"}),
        ("Room 12.", {"digits"}),
        ("Good!", {"exclamation mark"}),
        ("Good \U0001f642.", {"emoji"}),
    ):
        found = features(text)
        assert {name for name in SHARES if found[name]} == habits, text


def test_a_distribution_by_hand() -> None:
    """Quartiles of 1, 2, 3, 4 and 5 words; one of five has a question mark. Nothing is measured of no messages."""
    found = distribution(["a?", "a b", "a b c", "a b c d", "a b c d e"])
    assert (found["messages"], found["words"], found["question mark"]) == (5, [2.0, 3.0, 4.0], 20.0)
    assert list(found) == ["messages", *FEATURES]
    assert distribution([]) == {}
    assert matrix(["", " \n ", "…"])[:, :3].tolist() == [[0, 0, 0]] * 3


def test_the_file_holds_figures_and_no_text() -> None:
    """Every set of the script has every feature as numbers; words say only where it is from and what a row is."""
    sets = real_messages.known_sets()
    assert [one["set"] for one in sets] == [*measure_real_messages.READ]
    for one in sets:
        assert list(one) == ["set", "source", "commit", "date", "licence", "rows", "figures"]
        assert max(len(one[name]) for name in ("set", "source", "commit", "date", "licence", "rows")) < 140
        assert list(one["figures"]) == ["messages", *FEATURES]
        assert all(len(own) == 3 and own == sorted(own) for own in map(one["figures"].get, NUMBERS))
        assert all(0 <= one["figures"][name] <= 100 for name in SHARES)


def test_ours_stand_beside_them(shipped: Content) -> None:
    """By polarity and in lite, counted from the content's single messages; one column a set, all lines as long."""
    found = real_messages.next_to_real(shipped)
    single = [p for s in shipped.scenarios if s.kind == "scenario" for p in s.perturbations]
    assert found["ours"]["crisis"]["messages"] == sum(p.severity > 0 for p in single)
    assert found["ours"]["control"]["messages"] == sum(p.severity < 0 for p in single)
    _, *lines = real_messages.table(found).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[0].split() == ["crisis", "control", "lite", *(one["set"] for one in real_messages.known_sets())]


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    """A checkout of each set, with rows of ours in it."""
    for one in real_messages.known_sets():
        folder = tmp_path / "sets" / one["source"].rpartition("/")[2]
        for name, column in {
            "data/20200325_counsel_chat.csv": "questionText",
            "data/training-set.csv": "selftext",
            "banking_data/train.csv": "text",
            "banking_data/test.csv": "text",
        }.items():
            table(
                folder / name,
                [{"id": "1", column: x} for x in ("Where is it?", "Where is it?", "[removed]", "", "It left.")],
            )
        for person in ("H1", "H2"):
            rows = [{"inputs": f"row {n}", "label": "no_crisis"} for n in range(4)]
            dump(folder / f"data/human_label/{person}_labels.json", rows)
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        for words in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "x"]):
            subprocess.run(["git", "-C", str(folder), *words], check=True)
    return tmp_path / "sets"


def test_the_script_counts_each_text_once_and_keeps_none(sets: Path, tmp_path: Path) -> None:
    """Copies, removed posts and empty rows aren't counted; of the labelled messages only the odd rows are."""
    out = tmp_path / "figures.yaml"
    measure_real_messages.main(sets, out)
    text = out.read_text(encoding="utf-8")
    found = {one["set"]: one["figures"] for one in yaml.safe_load(text)}
    assert {name: own["messages"] for name, own in found.items()} == dict.fromkeys(found, 2)
    assert found["banking77"]["question mark"] == 50.0
    assert found["bhh-odd"]["digits"] == 100.0
    assert "Where is it" not in text
    with pytest.raises(RunError, match="counsel-chat: can't be read"):
        measure_real_messages.main(tmp_path, tmp_path / "none.yaml")
    assert not (tmp_path / "none.yaml").exists()
