"""What a rule measures on a message, by hand; and the file of real messages: figures of every feature, and no text."""

from __future__ import annotations

import csv
import json
import subprocess
from pathlib import Path
from typing import Any

import measure_real_messages
import pytest
import yaml

from dataset_builder.prompts import CONTENT
from dataset_builder.reading.load import load
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


@pytest.mark.parametrize(
    ("text", "habits"),
    [
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
    ],
)
def test_habits_by_hand(text: str, habits: set[str]) -> None:
    """Each habit where it is, and not where something only looks like it."""
    found = features(text)
    assert {name for name in SHARES if found[name]} == habits


@pytest.mark.parametrize("text", ["", " \n ", "…", "\U0001f642"])
def test_a_message_without_words_has_figures(text: str) -> None:
    """No word, no sentence, and nothing is divided by nothing."""
    assert matrix([text])[0, :3].tolist() == [0, 0, 0]


def test_a_distribution_by_hand() -> None:
    """Quartiles of 1, 2, 3, 4 and 5 words; one of five has a question mark. Nothing is measured of no messages."""
    found = distribution(["a?", "a b", "a b c", "a b c d", "a b c d e"])
    assert (found["messages"], found["words"], found["question mark"]) == (5, [2.0, 3.0, 4.0], 20.0)
    assert list(found) == ["messages", *FEATURES]
    assert distribution([]) == {}


def test_the_file_holds_figures_and_no_text() -> None:
    """Every set has every feature of today as numbers; words stand only in where it is from and what a row is."""
    for one in real_messages.known_sets():
        assert list(one) == ["set", "source", "commit", "date", "licence", "rows", "figures"]
        assert max(len(one[name]) for name in ("set", "source", "commit", "date", "licence", "rows")) < 140
        assert list(one["figures"]) == ["messages", *FEATURES]
        assert all(isinstance(n, int | float) for n in one["figures"].values() if not isinstance(n, list))
        assert all(len(own) == 3 and own == sorted(own) for own in map(one["figures"].get, NUMBERS))
        assert all(0 <= one["figures"][name] <= 100 for name in SHARES)


def test_sources_are_those_of_the_script() -> None:
    """A set that the script reads stands in the file, under the same name and licence, and no other."""
    assert [(one["set"], one["licence"]) for one in real_messages.known_sets()] == [
        (source.name, source.licence) for source in measure_real_messages.SOURCES
    ]


def test_ours_stand_beside_them() -> None:
    """By polarity and in lite, counted from the content's single messages; one column a set, all lines as long."""
    content, errors = load(CONTENT)
    assert content, errors.lines()
    found = real_messages.next_to_real(content)
    single = [p for s in content.scenarios if s.kind == "scenario" for p in s.perturbations]
    assert found["ours"]["crisis"]["messages"] == sum(p.severity > 0 for p in single)
    assert found["ours"]["control"]["messages"] == sum(p.severity < 0 for p in single)
    _, *lines = real_messages.table(found).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[0].split() == ["crisis", "control", "lite", *(one["set"] for one in real_messages.known_sets())]


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    """A checkout of each set, with rows of ours in it."""
    for source in measure_real_messages.SOURCES:
        folder = tmp_path / "sets" / source.repository.rpartition("/")[2]
        folder.mkdir(parents=True)
        for name, column in {
            "data/20200325_counsel_chat.csv": "questionText",
            "data/training-set.csv": "selftext",
            "banking_data/train.csv": "text",
            "banking_data/test.csv": "text",
        }.items():
            _write_csv(folder / name, column, ["Where is it?", "Where is it?", "[removed]", "", "It left."])
        for person in ("H1", "H2"):
            rows = [{"inputs": f"row {n}", "label": "no_crisis"} for n in range(4)]
            _write_json(folder / f"data/human_label/{person}_labels.json", rows)
        for words in (
            ["init", "-q"],
            ["add", "."],
            ["-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "x"],
        ):
            subprocess.run(["git", "-C", str(folder), *words], check=True)
    return tmp_path / "sets"


def _write_csv(path: Path, column: str, texts: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([["id", column], *(["1", text] for text in texts)])


def _write_json(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows), encoding="utf-8")


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


def test_a_missing_set_writes_nothing(tmp_path: Path) -> None:
    """The error names the set and its repository."""
    out = tmp_path / "figures.yaml"
    with pytest.raises(RunError, match="counsel-chat: can't be read"):
        measure_real_messages.main(tmp_path, out)
    assert not out.exists()
