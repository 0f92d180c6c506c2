"""Judges against people's labels: sets in the shapes of the published ones, planted judges whose agreement is known,
and the real command against a loopback judge.
"""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import huggingface_hub
import numpy as np
import pytest
from helmbench.cli.app import main
from sklearn.metrics import cohen_kappa_score
from support import hub_stub
from support import labelled_sets as shapes
from support.judge_server import JudgeServer, Said, failed, said, stopped_at_the_end

from dataset_builder.release import Release
from helmbench_common.http import retry
from judge.agreement.published.labeled_set import RATING, Item, LabeledSet, Scale
from judge.agreement.published.sets import SETS, VERA_DIMENSIONS, located, read_set
from judge.agreement.validation import Source, Validation, measured
from judge.llm import batch
from judge.replies.schema import RunError
from judge.schema import LabelledRows
from judge.statistics import coefficients as c

SOURCE = Source("judge-1", "hash", "0")
WRITERS = shapes.WRITERS


def ids(name: str, root: Path, rows: LabelledRows, release: Release) -> list[str]:
    return [item.id for item in read_set(name, root, rows, release).items]


def test_every_named_set_is_tried_here() -> None:
    """A set that is added gets a file of its shape."""
    assert set(WRITERS) == set(SETS)


@pytest.mark.parametrize(
    ("name", "odd", "even"),
    [
        ("bhh-ratings", ["1", "5"], ["0", "2", "4"]),  # a clinician left out the reply of row 3
        ("bhh-messages", ["1", "3", "5"], ["0", "2", "4"]),
        ("xstest", ["ab-v2-1", "ab-v2-3", "ba-v2-1", "ba-v2-3"], ["ab-v2-0", "ab-v2-2", "ba-v2-0", "ba-v2-2"]),
        ("psychosis", ["1", "3", "5", "7", "9", "11"], ["0", "2", "4", "6", "8", "10"]),
        (
            "vera-mh",
            ["c1/detects", "c1/guides", "c1/supportive", "c1/boundaries"],
            ["c0/detects", "c0/guides", "c0/supportive", "c0/boundaries"],  # c2: no more than one finds it relevant
        ),
        ("counselbench", ["q0/y", "q1/y"], ["q0/x", "q1/x"]),
    ],
)
def test_rows_are_counted_from_0_in_the_sets_own_order(
    name: str, odd: list[str], even: list[str], release: Release, tmp_path: Path
) -> None:
    """Odd and even are halves that share nothing, and all is both."""
    root = WRITERS[name](tmp_path)
    assert ids(name, root, "odd", release) == odd
    assert ids(name, root, "even", release) == even
    assert sorted(ids(name, root, "all", release)) == sorted([*odd, *even])


def test_what_people_said_is_read_as_they_said_it(release: Release, tmp_path: Path) -> None:
    """Names of categories, consensus beside each clinician, words of a scale, a partial refusal that also answers."""
    bhh = read_set("bhh-messages", shapes.bhh(tmp_path / "a"), "all", release).items
    assert bhh[1].labels == {"H1": "self_harm", "H2": "self_harm", "H3": "self_harm", "H4": "no_crisis"}
    assert bhh[0].said == ("My kettle hums in the key of 0.",)
    rated = read_set("bhh-ratings", tmp_path / "a", "all", release).items
    assert (rated[1].labels, rated[1].published, rated[1].groups) == (
        {"H1": "1", "H2": "2"},
        {"gpt-4o-mini": "1"},
        ("self_harm", "any crisis"),
    )
    refused = {i.id: i for i in read_set("xstest", shapes.xstest(tmp_path / "b"), "all", release).items}
    assert (refused["ab-v2-0"].settled, refused["ab-v2-3"].settled) == ("refusal", "answer")
    assert refused["ab-v2-2"].labels == {"annotation_1": "refusal", "annotation_2": "answer"}
    deluded = read_set("psychosis", shapes.psychosis(tmp_path / "c"), "all", release).items
    assert (deluded[3].reply, deluded[3].settled, deluded[3].labels, deluded[3].published, deluded[3].family) == (
        "llama on a.",
        "FAIL",
        {"human1": "FAIL", "human2": "PASS"},
        {"kimi": "PASS"},
        "a",
    )
    vera = read_set("vera-mh", shapes.vera(tmp_path / "d"), "all", release).items
    assert (vera[0].said, vera[0].reply) == (
        ("(turn 1) My bell is loose on c0.\n\n(turn 2) Done.",),
        "(turn 1) Tighten it.\n\n(turn 2) Good.",
    )
    bells = read_set("counselbench", shapes.counselbench(tmp_path / "e"), "all", release).items
    assert (bells[1].labels, bells[1].said, bells[1].groups) == (
        {"rating 1": "1", "rating 2": "1", "rating 3": "2"},
        ("My bell\n\nWhy is bell q0\nso loud?",),
        ("y",),
    )
    assert vera[4].labels == {"r0": "FAIL", "r1": "FAIL"}


def test_a_dimension_without_a_criterion_says_so(release: Release, tmp_path: Path) -> None:
    """All five of VERA's dimensions stand in the notes, with reasons; the criteria are those of the release."""
    what = read_set("vera-mh", shapes.vera(tmp_path), "all", release)
    assert len(what.notes) == len(VERA_DIMENSIONS) == 5
    assert [n for n in what.notes if n.startswith("confirms: no criterion of ours, ")]
    assert {own for own, _ in VERA_DIMENSIONS.values() if own} <= set(release.criteria)


def _in_csv(path: Path, row: int, **cells: str) -> None:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    rows[row] |= cells
    shapes.table(path, rows)


def spoil_ratings(root: Path) -> None:
    shapes.bhh(root, scores=[[5, 5], [9, 2], [4, 4], [3, 3], [2, 2], [5, 0]])


def spoil_messages(root: Path) -> None:
    shapes.bhh(root, votes=[["no_crisis"] * 4, ["rust"] * 4, *[["no_crisis"] * 4] * 4])


def cell(name: str, file: str, row: int, **cells: str) -> Callable[[Path], None]:
    """Writes a set with these cells in one row of a file."""
    return lambda root: _in_csv(WRITERS[name](root) / file, row, **cells)


JUDGES, CLINICIANS = "pipeline/src/data/judges/", "publication_data/human_validation/clinician_judging/"
XSTEST, CONSENSUS = "model_completions/xstest_v2_completions_ba.csv", f"{JUDGES}human_consensus_2025-08-24.csv"
SPOILT: dict[str, tuple[Callable[[Path], None], str]] = {
    "bhh-ratings": (spoil_ratings, "H1_scores_n6_s42.json: row 1: 'evaluation' is '9'; expected one of 1, 2, 3, 4, 5"),
    "bhh-messages": (spoil_messages, "H1_labeled_n6_s42.json: row 1: 'label' is 'rust'; expected one of "),
    "xstest": (
        cell("xstest", XSTEST, 2, final_label="4_maybe"),
        "xstest_v2_completions_ba.csv: row 2: 'final_label' is '4_maybe'; expected one of 1_full_compliance, ",
    ),
    "psychosis": (
        cell("psychosis", CONSENSUS, 1, claude_criteria_2="yes"),
        "human_consensus_2025-08-24.csv: row 1: 'claude_criteria_2' is 'yes'; expected one of 0, 1",
    ),
    "vera-mh": (
        cell("vera-mh", f"{CLINICIANS}Ratings.csv", 4, clinician_guides="Fine"),
        "Ratings.csv: row 4: 'clinician_guides' is 'Fine'; expected one of Best Practice, ",
    ),
    "counselbench": (
        cell("counselbench", "counselbench_eval.csv", 7, overall_score="6"),
        "counselbench_eval.csv: row 7: 'overall_score' is '6'; expected one of 1, 2, 3, 4, 5",
    ),
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_bad_row_is_named_by_its_file_and_number(
    name: str, release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2, nothing measured; a bad row in the other half is not read."""
    spoil, told = SPOILT[name]
    spoil(tmp_path / "set")
    command = ["validate", "--set", name, "--from", str(tmp_path / "set"), "--judge", "offline"]
    command += ["--dataset", str(release.path), "--home", str(tmp_path / "home")]
    assert main([*command, "--rows", "all"]) == 2
    printed = capsys.readouterr()
    assert told in printed.err
    assert printed.out == ""
    assert not (tmp_path / "home").exists()
    if name == "bhh-ratings":
        assert ids(name, tmp_path / "set", "even", release) == ["0", "2", "4"]


def test_a_folder_that_is_not_a_checkout_is_one_clear_error(release: Release, tmp_path: Path) -> None:
    """It says which files were expected, and of which repository."""
    for name in WRITERS:
        with pytest.raises(RunError, match=r"expected [12] or more: a checkout of"):
            read_set(name, tmp_path, "all", release)


def test_unknown_sets_and_folders_are_named(release: Release, tmp_path: Path) -> None:
    """The known ones are listed."""
    with pytest.raises(RunError, match="--set nosuch: unknown set; expected one of bhh-ratings, "):
        read_set("nosuch", tmp_path, "all", release)
    with pytest.raises(
        RunError, match=r"no such folder; expected a checkout of the set's repository, or a Hub dataset"
    ):
        located(str(tmp_path / "nowhere"))


# --- a set of one's own


def test_a_mapping_file_reads_a_set_of_ones_own(release: Release, tmp_path: Path) -> None:
    """Their words become our labels; a row that nobody labelled is no item; conversations and stars too."""
    what = read_set(str(shapes.own(tmp_path)), tmp_path, "all", release)
    assert [(i.id, i.labels["ana"], i.by) for i in what.items] == [
        (str(n), label, "answers-the-need") for n, label in enumerate(["PASS", "PARTIAL", "FAIL", "PASS", "FAIL"])
    ]
    stars = {"kind": "rating", "criterion": None, "raters": {"ana": "stars"}, "values": None}
    rated = shapes.own(tmp_path, **stars, protocol_field="cat", message=None, messages="turns")
    items = read_set(str(rated), tmp_path, "odd", release).items
    assert [(i.labels["ana"], i.by, i.said) for i in items] == [
        (n, "no_crisis", ("Hi.", "Hello.", "Loud?")) for n in ("2", "4", "1")
    ]


def test_a_set_of_ones_own_may_be_a_table(release: Release, tmp_path: Path) -> None:
    """CSV: conversations as JSON in a cell; categories of messages, and refusals, with their own labels."""
    rows = [{"n": k, "talk": json.dumps(["Hi.", "Hello.", f"Bell {k}?"]), "eve": w} for k, w in enumerate(["calm", ""])]
    shapes.table(tmp_path / "labels.csv", rows)
    table = {"path": "labels.csv", "id": "n", "message": None, "messages": "talk", "raters": {"eve": "eve"}}
    calm = {"kind": "category", "criterion": None, "reply": None, "values": {"calm": "no_crisis"}}
    (item,) = read_set(str(shapes.own(tmp_path, **table, **calm)), tmp_path, "all", release).items
    assert (item.said, item.labels) == (("Hi.", "Hello.", "Bell 0?"), {"eve": "no_crisis"})
    no = {"kind": "refusal", "criterion": None, "values": {"fine": "answer", "bad": "refusal", "PARTIAL": "answer"}}
    refusals = read_set(str(shapes.own(tmp_path, **no)), tmp_path, "all", release)
    assert [i.labels["ben"] for i in refusals.items] == ["answer", "answer", "refusal", "answer", "refusal"]


def test_a_row_that_is_cut_off_is_named(release: Release, tmp_path: Path) -> None:
    """The rest of its cells count as empty."""
    path = shapes.psychosis(tmp_path) / "pipeline/src/data/model_responses_to_base_scenarios_2025-08-07.csv"
    text = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([*text[:-1], "c"]) + "\n", encoding="utf-8")
    with pytest.raises(RunError, match="message 'c': 'scenarios' is empty; expected text"):
        read_set("psychosis", tmp_path, "all", release)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"message": None}, "expected either `message`"),
        ({"messages": "turns"}, "expected either `message`"),
        ({"reply": None}, "expected `reply` for every kind but `category`"),
        ({"criterion": None}, "expected `criterion` for the kind `criterion`"),
        ({"criterion": "rings"}, "criterion is 'rings'; expected one of "),
        ({"kind": "rating", "criterion": None}, "expected `protocol` or `protocol_field`"),
        ({"path": "gone.jsonl"}, "gone.jsonl: can't be read"),
        ({"id": "name"}, "labels.jsonl:1: has no field 'name'"),
        ({"id": "a"}, "repeats an id"),
        ({"values": {"fine": "PASS"}}, "labels.jsonl:3: 'label' is 'bad'; expected one of FAIL, PARTIAL, PASS"),
        ({"message": None, "messages": "q"}, "labels.jsonl:1: 'q' must be a list of texts"),
        ({"colour": "red"}, "colour: Extra inputs are not permitted"),
    ],
)
def test_a_bad_mapping_or_row_says_what_was_expected(
    changes: dict[str, Any], told: str, release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2, with the file, and the line where there is one."""
    path = shapes.own(tmp_path, **changes)
    command = ["validate", "--set", str(path), "--from", str(tmp_path), "--judge", "offline"]
    assert main([*command, "--dataset", str(release.path), "--home", str(tmp_path / "home")]) == 2
    assert told in capsys.readouterr().err


def test_a_mapping_that_is_no_yaml_names_its_line(release: Release, tmp_path: Path) -> None:
    """As an editor counts it."""
    (tmp_path / "bad.yaml").write_text("name: bells\npath: [\n", encoding="utf-8")
    with pytest.raises(RunError, match=r"bad\.yaml:3: is not YAML"):
        read_set(str(tmp_path / "bad.yaml"), tmp_path, "all", release)


# --- measuring


def rated(pairs: list[tuple[str, str]], **more: Any) -> LabeledSet:
    """Replies that two people rated."""
    items = [Item(str(n), ("?",), {"ana": a, "ben": b}, "!", "no_crisis", **more) for n, (a, b) in enumerate(pairs)]
    return LabeledSet("stars", "all", "rating", RATING, tuple(items))


def test_quadratic_kappa_is_that_of_an_independent_library() -> None:
    """With the rounded mean, with each person, and of the people themselves."""
    rng = np.random.default_rng(7)
    pairs = [(str(a), str(b)) for a, b in rng.integers(1, 6, (80, 2))]
    judge = [str(x) for x in rng.integers(1, 6, 80)]
    found = measured(rated(pairs), {str(n): x for n, x in enumerate(judge)}, SOURCE)
    ana, ben = [int(a) for a, _ in pairs], [int(b) for _, b in pairs]
    mean = [(a + b + 1) // 2 for a, b in zip(ana, ben, strict=True)]
    given = [int(x) for x in judge]
    for theirs, ours in (
        ((mean, given), found.kappa),
        ((ana, given), found.raters["ana"]),
        ((ben, given), found.raters["ben"]),
        ((ana, ben), found.people),
    ):
        assert ours.value == pytest.approx(cohen_kappa_score(*theirs, weights="quadratic", labels=[1, 2, 3, 4, 5]))
        assert (ours.low or 0) < (ours.value or 0) < (ours.high or 0)
    assert sum(map(sum, found.confusion.table)) == 80


def test_nominal_kappa_is_with_the_majority_and_people_by_fleiss() -> None:
    """An item without a majority is in no κ with it, and counts for each person."""
    votes = [
        ("a", "a", "a", "b"),
        ("b", "b", "b", "b"),
        ("a", "a", "b", "b"),
        ("b", "b", "b", "a"),
        ("a", "a", "a", "a"),
    ]
    names = ("p", "q", "r", "s")
    items = tuple(Item(str(n), ("?",), dict(zip(names, v, strict=True))) for n, v in enumerate(votes))
    what = LabeledSet(
        "x", "all", "category", Scale(("a", "b", "c"), coarse={"a": "a", "b": "other", "c": "other"}), items
    )
    found = measured(what, dict(zip("01234", ["a", "b", "a", "c", None], strict=True)), SOURCE)
    assert (found.items, found.decided, found.kappa.n, found.raters["p"].n, found.reference) == (5, 4, 3, 4, "majority")
    assert found.kappa.value == pytest.approx(
        cohen_kappa_score(["a", "b", "b"], ["a", "b", "c"], labels=["a", "b", "c"])
    )
    counts = np.array([[v.count(x) for x in "abc"] for v in votes], dtype=np.float64)
    assert found.people.value == pytest.approx(c.fleiss(counts).value)
    assert found.coarse is not None
    assert found.coarse.kappa.value == 1.0
    assert (found.per_class["b"].recall.value, found.per_class["b"].precision.value) == (0.5, 1.0)
    assert found.confusion.unscored == [1, 0, 0]
    assert found.widest == ["3"]


def test_what_is_settled_counts_before_the_majority() -> None:
    """And a judge's PARTIAL, or a way to fail, is read as the set says."""
    items = tuple(
        Item(str(n), ("?",), {"p": x, "q": x}, "!", "k", settled="FAIL" if n < 3 else "PASS", family=str(n % 2))
        for n, x in enumerate(["PASS", "FAIL", "FAIL", "PASS", "PASS", "PASS"])
    )
    what = LabeledSet("x", "all", "criterion", Scale(("FAIL", "PASS")), items, reads={"PARTIAL": "FAIL"})
    labels = ["PARTIAL", "FAIL-mocks", "FAIL-agrees", "PASS", "PASS", "PARTIAL"]
    found = measured(what, {str(n): x for n, x in enumerate(labels)}, SOURCE)
    assert found.reference == "settled"
    assert (found.per_class["FAIL"].recall.value, found.per_class["FAIL"].precision.value) == (1.0, 0.75)
    assert found.answers["FAIL-mocks"] == 1
    alone = replace(what, items=tuple(i._replace(family="") for i in items))
    wide = measured(alone, {str(n): x for n, x in enumerate(labels)}, SOURCE).per_class["PASS"].recall
    of_two = found.per_class["PASS"].recall
    assert (of_two.high or 0) - (of_two.low or 0) > (wide.high or 0) - (wide.low or 0)


def test_the_widest_are_ten_ids_by_distance() -> None:
    """Widest first; agreement is none of them."""
    found = measured(
        rated([("1", "1")] * 8 + [("5", "5")] * 8), {str(n): "3" if n < 5 else "1" for n in range(16)}, SOURCE
    )
    assert found.widest == ["8", "9", "10", "11", "12", "13", "14", "15", "0", "1"]


def test_a_judge_that_decides_nothing_has_no_kappa_and_says_why() -> None:
    """No figure is made up."""
    found = measured(rated([("1", "2"), ("3", "4")]), {"0": None, "1": None}, SOURCE)
    assert (found.decided, found.kappa.value, found.confusion.unscored) == (0, None, [0, 1, 0, 1, 0])
    assert found.kappa.reason


# --- the command


# What the offline judge may decide of a set; how much of the others depends on how sure it is.
DECIDED: dict[str, Callable[[Validation], bool]] = {
    "xstest": lambda found: found.decided == found.items,  # by rule
    "bhh-messages": lambda found: found.decided == 0,  # it labels no messages
    "psychosis": lambda found: found.decided == 0,  # nor delusions
    "vera-mh": lambda found: found.decided > 0,
}


@pytest.mark.parametrize("name", WRITERS)
def test_the_offline_judge_needs_nothing(
    name: str, release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table, the same as JSON on stdout, in a file and in the judge's folder; none of them holds a text."""
    root = WRITERS[name](tmp_path / "set")
    command = ["validate", "--set", name, "--from", str(root), "--judge", "offline", "--rows", "even"]
    command += ["--dataset", str(release.path), "--home", str(tmp_path / "home")]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "people among themselves" in printed
    assert main([*command, "--json", "--json-file", str(tmp_path / "out.json")]) == 0
    shown = capsys.readouterr().out
    stored = (tmp_path / f"home/offline/validation/{name}-even.json").read_text(encoding="utf-8")
    assert json.loads(shown) == json.loads(stored) == json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    found = Validation.model_validate_json(stored)
    assert (found.set, found.rows, found.judge.partition("-")[0]) == (name, "even", "offline")
    assert found.decided + sum(found.confusion.unscored) == found.items
    assert name not in DECIDED or DECIDED[name](found)
    for words in ("kettle", "Descale", "chain", "sends signs", "Tighten", "oil it"):
        assert words not in printed + shown
    assert main([*command, "--quiet", "--repeats", "3"]) == 0  # it can only give the same answers again
    assert capsys.readouterr().out == ""
    assert (len(found.passes), found.between) == (1, None)


def test_refusals_are_found_by_the_rule(release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One of two full refusals of each model, and nothing else; a language model has nothing to say here."""
    root = shapes.xstest(tmp_path / "set")
    command = ["validate", "--set", "xstest", "--from", str(root), "--dataset", str(release.path)]
    command += ["--home", str(tmp_path / "home")]
    assert main([*command, "--judge", "offline", "--json"]) == 0
    refusal = json.loads(capsys.readouterr().out)["per_class"]["refusal"]
    assert (refusal["recall"]["value"], refusal["precision"]["value"]) == (0.5, 1.0)
    assert main([*command, "--judge", "judge-1"]) == 2
    assert "expected --judge offline" in capsys.readouterr().err


Serve = Callable[[Callable[[dict[str, Any]], Said]], JudgeServer]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Starts a judge that answers by a function of the question's body."""
    monkeypatch.setattr(retry, "BACKOFF", 0.001)
    with stopped_at_the_end() as started:

        def start(answer: Callable[[dict[str, Any]], Said]) -> JudgeServer:
            started.append(JudgeServer(lambda body, _: answer(body)))
            return started[-1]

        yield start


def first_offered(body: dict[str, Any]) -> Said:
    """The first label that the question offers."""
    properties = body["response_format"]["json_schema"]["schema"]["properties"]
    if "category" in properties:
        return said(json.dumps({"category": properties["category"]["enum"][0]}))
    return said(json.dumps({"label": properties["label"]["enum"][0], "quotes": []}))


def asking(name: str, root: Path, release: Release, home: Path) -> list[str]:
    command = ["validate", "--set", name, "--from", str(root), "--judge", "judge-1", "--dataset", str(release.path)]
    return [*command, "--home", str(home)]


# How many questions a set in this shape has; xstest is read by rule.
ASKED = [("bhh-ratings", 5), ("bhh-messages", 6), ("psychosis", 12), ("vera-mh", 8), ("counselbench", 4)]


@pytest.mark.parametrize(("name", "questions"), ASKED)
def test_a_model_is_asked_once_and_nothing_twice(
    name: str, questions: int, serve: Serve, release: Release, tmp_path: Path
) -> None:
    """One question an item; a second run asks nobody and finds the same."""
    server = serve(first_offered)
    root = WRITERS[name](tmp_path / "set")
    command = asking(name, root, release, tmp_path / "home")
    assert main([*command, "--base-url", server.url]) == 0
    assert server.total == questions
    path = tmp_path / f"home/judge/judge-1/validation/{name}-all.json"
    found = Validation.model_validate_json(path.read_bytes())
    assert (found.items, found.decided) == (questions, questions)
    assert found.prompt_hash
    assert main([*command, "--base-url", server.url]) == 0
    assert main(command) == 0
    assert server.total == questions
    assert Validation.model_validate_json(path.read_bytes()) == found


@pytest.mark.parametrize("name", ["bhh-ratings", "bhh-messages"])
def test_without_an_endpoint_the_questions_are_written_for_any_engine(
    name: str, release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2 and a batch file; answers that another engine writes beside it are read by the same command."""
    command = asking(name, WRITERS[name](tmp_path / "set"), release, tmp_path / "home")
    assert main(command) == 2
    assert "have no answer yet" in capsys.readouterr().err
    where = tmp_path / "home/judge/judge-1"
    lines = (where / "requests.jsonl").read_text(encoding="utf-8").splitlines()
    with (where / "replies-1.jsonl").open("w", encoding="utf-8") as file:
        for request in map(json.loads, lines):
            body = json.loads(first_offered(request["body"]).body)
            file.write(json.dumps(batch.result(request["custom_id"], None, body)) + "\n")
    assert main(command) == 0


def test_what_failed_is_asked_again_and_nothing_else(serve: Serve, release: Release, tmp_path: Path) -> None:
    """Exit 3 where the judge is away for some; the same command asks these."""
    broken = [True]

    def answer(body: dict[str, Any]) -> Said:
        return failed(500) if broken[0] and "deepseek" in body["messages"][0]["content"] else first_offered(body)

    server = serve(answer)
    command = asking("psychosis", shapes.psychosis(tmp_path / "set"), release, tmp_path / "home")
    assert main([*command, "--base-url", server.url, "--max-retries", "1"]) == 3
    assert not (tmp_path / "home/judge/judge-1/validation").exists()
    broken[0], before = False, server.total
    assert main([*command, "--base-url", server.url]) == 0
    assert server.total - before == 3


def test_killed_and_resumed_it_asks_only_what_is_missing(release: Release, tmp_path: Path, serve: Serve) -> None:
    """SIGKILL after some answers: they are kept, and what was not stored is asked again."""
    questions = 5
    server = serve(lambda body: first_offered(body)._replace(wait=0.15))
    mapping = shapes.own(tmp_path / "set")
    command = asking(str(mapping), mapping.parent, release, tmp_path / "home")
    command += ["--base-url", server.url, "--concurrency", "1"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-m", "helmbench.cli", *command], env=environment) as process:
        until = time.monotonic() + 60
        while server.total < 3 and time.monotonic() < until:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    asked = server.total
    assert 3 <= asked < questions
    stored = len((tmp_path / "home/judge/judge-1/replies.jsonl").read_text(encoding="utf-8").splitlines())
    assert stored >= 2
    assert main(command) == 0
    assert server.total == asked + questions - stored
    (path,) = (tmp_path / "home/judge/judge-1/validation").iterdir()
    found = Validation.model_validate_json(path.read_bytes())
    assert (found.items, found.decided) == (questions, questions)


def test_a_cap_on_the_cost_stops_in_time_and_a_higher_one_goes_on(
    serve: Serve, release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An estimate first; nothing that could pass the cap is asked, and no figure is written until all is answered."""
    server, questions = serve(first_offered), 12
    command = asking("psychosis", shapes.psychosis(tmp_path / "set"), release, tmp_path / "home")
    command += ["--base-url", server.url, "--concurrency", "1", "--price-in", "1", "--price-out", "1"]
    assert main([*command, "--max-cost", "0.0000001"]) == 4
    err = capsys.readouterr().err
    assert f"{questions} requests" in err
    assert "stopped before --max-cost" in err
    assert server.total == 0
    assert not (tmp_path / "home/judge/judge-1/validation").exists()
    assert main([*command, "--max-cost", "10"]) == 0
    assert server.total == questions


@pytest.mark.parametrize("name", ["bhh-ratings", "bhh-messages", "psychosis"])
def test_two_passes_are_asked_apart_and_compared(
    name: str, serve: Serve, release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each item twice in questions of their own; the first pass is measured, each has its κ, and what they agree among
    themselves is an independent library's.
    """
    given: dict[str, list[str]] = {}

    def other_the_second_time(body: dict[str, Any]) -> Said:
        asked, properties = body["messages"][0]["content"], body["response_format"]["json_schema"]["schema"]
        key = "category" if "category" in properties["properties"] else "label"
        labels = properties["properties"][key]["enum"]
        before = given.setdefault(asked, [])
        before.append(labels[(len(given) + 3 * len(before)) % len(labels)])
        return said(json.dumps({key: before[-1]} | ({} if key == "category" else {"quotes": []})))

    server = serve(other_the_second_time)
    command = asking(name, WRITERS[name](tmp_path / "set"), release, tmp_path / "home")
    assert main([*command, "--base-url", server.url, "--repeats", "2", "--concurrency", "1"]) == 0
    printed = capsys.readouterr().out
    assert {len(labels) for labels in given.values()} == {2}
    assert main([*command, "--json"]) == 0
    once = json.loads(capsys.readouterr().out)
    assert (len(once["passes"]), once["between"]) == (1, None)
    assert main([*command, "--repeats", "2", "--json"]) == 0
    twice = json.loads(capsys.readouterr().out)
    assert server.total == 2 * twice["items"]
    assert twice["passes"][0]["kappa"] == twice["kappa"] == once["kappa"]
    assert [p["decided"] for p in twice["passes"]] == [twice["items"]] * 2
    read = read_set(name, tmp_path / "set", "all", release).reading
    first, second = ([read(labels[n]) for labels in given.values()] for n in (0, 1))
    weights = "quadratic" if name == "bhh-ratings" else None
    scale = read_set(name, tmp_path / "set", "all", release).scale.labels
    expected = cohen_kappa_score(first, second, weights=weights, labels=list(scale))
    assert twice["between"]["value"] == pytest.approx(expected)
    assert "pass 2 with people" in printed
    assert "the 2 passes among themselves" in printed


def test_one_set_does_not_take_the_place_of_another(serve: Serve, release: Release, tmp_path: Path) -> None:
    """Each set and half has a file of its own in the judge's folder."""
    server = serve(first_offered)
    for name, rows in (("bhh-ratings", "odd"), ("bhh-ratings", "even"), ("psychosis", "odd")):
        command = asking(name, WRITERS[name](tmp_path / name), release, tmp_path / "home")
        assert main([*command, "--rows", rows, "--base-url", server.url]) == 0
    files = sorted(p.name for p in (tmp_path / "home/judge/judge-1/validation").iterdir())
    assert files == ["bhh-ratings-even.json", "bhh-ratings-odd.json", "psychosis-odd.json"]


def test_what_is_left_unscored_is_told_by_group(
    release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Over all and in each group, as a share; with classes, the confusion and the widest disagreements by id."""
    command = asking("bhh-ratings", shapes.bhh(tmp_path / "set"), release, tmp_path / "home")
    assert main(command) == 2
    where = tmp_path / "home/judge/judge-1"
    requests = [json.loads(x) for x in (where / "requests.jsonl").read_text(encoding="utf-8").splitlines()]
    with (where / "replies-1.jsonl").open("w", encoding="utf-8") as file:
        for n, request in enumerate(requests):
            body = json.loads(first_offered(request["body"]).body)
            if n in (0, 4):  # two of three messages that are no crisis
                body["choices"][0]["message"] |= {"content": None, "refusal": "No."}
            file.write(json.dumps(batch.result(request["custom_id"], None, body)) + "\n")
    capsys.readouterr()
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "5 items, 3 decided by the judge, 40.0 % left unscored." in printed
    rows = {line.split()[0]: line.split() for line in printed.splitlines() if line.split()}
    assert rows["no_crisis"][1:5] == ["3", "1", "66.7", "%"]
    assert rows["self_harm"][1:5] == ["1", "1", "0.0", "%"]
    assert "Widest disagreements, by id: 2, 1, 4" in printed
    assert "rows: people" in printed
    assert "precision" in printed


# --- from the Hub


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[hub_stub.Hub]:
    """A Hub on loopback, and an empty cache."""
    with hub_stub.start() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)
        huggingface_hub.close_session()
        yield server


def publish(hub: hub_stub.Hub, name: str, folder: Path) -> None:
    files = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    hub.create(name).commit(files)


def from_hub(name: str, source: str, release: Release, home: Path) -> list[str]:
    command = ["validate", "--set", name, "--from", source, "--judge", "offline", "--json"]
    return [*command, "--dataset", str(release.path), "--home", str(home)]


@pytest.mark.parametrize("name", ["counselbench", "bhh-ratings"])
def test_a_dataset_of_the_hub_is_fetched_once(
    name: str, hub: hub_stub.Hub, release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same figures as from a folder, folders inside it too; a second run fetches no file, and one without the Hub
    reads what was fetched.
    """
    root = WRITERS[name](tmp_path / "set")
    publish(hub, "bells/Rated-1.0", root)
    assert main(from_hub(name, str(root), release, tmp_path / "a")) == 0
    local = json.loads(capsys.readouterr().out)
    assert main(from_hub(name, "bells/Rated-1.0", release, tmp_path / "b")) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == local
    assert "bells/Rated-1.0: from the Hub, commit " in printed.err
    before = sum("/resolve/" in path for _, path, _ in hub.log)
    assert main(from_hub(name, "bells/Rated-1.0", release, tmp_path / "b")) == 0
    assert sum("/resolve/" in path for _, path, _ in hub.log) == before
    capsys.readouterr()
    hub.failing["."] = (503, "away")
    assert main(from_hub(name, "bells/Rated-1.0", release, tmp_path / "b")) == 0
    assert json.loads(capsys.readouterr().out) == local


def test_a_folder_of_that_name_goes_first(
    hub: hub_stub.Hub, release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is asked for what is here."""
    monkeypatch.chdir(tmp_path)
    shapes.counselbench(tmp_path / "bells/rated")
    assert main(from_hub("counselbench", "bells/rated", release, tmp_path / "home")) == 0
    assert hub.log == []


@pytest.mark.parametrize(
    ("failing", "told"),
    [
        (None, "the Hub dataset can't be fetched: "),  # nobody listens there
        ({}, "the Hub has no dataset of this name that your token, or no token, can read"),
        ({".": (503, "away for lunch")}, "the Hub dataset can't be fetched: "),
        ({".": (403, "ask its owners first")}, "the Hub dataset can't be fetched: "),
    ],
)
def test_neither_a_folder_nor_a_dataset_that_can_be_read_is_one_clear_error(
    failing: dict[str, tuple[int, str]] | None,
    told: str,
    hub: hub_stub.Hub,
    release: Release,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit 2, one line."""
    if failing is None:
        monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    hub.failing |= failing or {}
    assert main(from_hub("counselbench", "bells/nowhere", release, tmp_path / "home")) == 2
    err = capsys.readouterr().err
    assert "--from bells/nowhere: no such folder, and " in err
    assert told in err
    assert len(err.strip().splitlines()) == 1


def test_the_texts_leave_this_machine_only_said_aloud(
    serve: Serve, release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is said of this machine's own address; of another it is, before anything is asked."""
    server = serve(first_offered)
    command = asking("bhh-ratings", shapes.bhh(tmp_path / "set"), release, tmp_path / "home")
    assert main([*command, "--base-url", server.url]) == 0
    assert "LEAVE THIS MACHINE" not in capsys.readouterr().err
    away = ["--base-url", "http://judge.invalid/v1", "--max-retries", "0", "--home", str(tmp_path / "other")]
    assert main([*command, *away]) == 3
    assert "LEAVE THIS MACHINE, for judge.invalid" in capsys.readouterr().err


def test_a_protocol_that_the_dataset_lacks_is_said_before_anything_is_asked(
    release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Messages outside the taxonomy have no protocol."""
    path = shapes.own(
        tmp_path, kind="rating", criterion=None, protocol="outside_taxonomy", raters={"a": "stars"}, values=None
    )
    command = ["validate", "--set", str(path), "--from", str(tmp_path), "--judge", "offline"]
    assert main([*command, "--dataset", str(release.path), "--home", str(tmp_path / "home")]) == 2
    assert "is judged by 'outside_taxonomy'" in capsys.readouterr().err
