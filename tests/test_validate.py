"""Judges against people's labels: sets in the shapes of the published ones, planted judges whose agreement is known,
and the real command against a loopback judge.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helmbench.cli.app import main
from huggingface_hub import close_session, constants
from sklearn.metrics import cohen_kappa_score
from support import hub_stub
from support import labelled_sets as shapes
from support.judge_server import Said, Serve, said

from dataset_builder.release import Release
from judge.agreement.published.labeled_set import RATING, Item, LabeledSet, Scale
from judge.agreement.published.sets import SETS, read_set
from judge.agreement.validation import Source, Validation, measured
from judge.llm import batch
from judge.replies.schema import RunError
from judge.statistics import coefficients as c

SOURCE = Source("judge-1", "hash", "0")
WRITERS = shapes.WRITERS
Capture = pytest.CaptureFixture[str]


def validate(name: str, source: Path | str, release: Release, home: Path, *more: str, judge: str = "offline") -> int:
    """The command's exit code."""
    command = ["validate", "--set", name, "--from", str(source), "--judge", judge, "--dataset", str(release.path)]
    return main([*command, "--home", str(home), *more])


def test_halves_count_rows_in_the_sets_own_order(release: Release, tmp_path: Path) -> None:
    """Odd and even share nothing, and all is both. Every published set is tried."""
    expected = {
        "bhh-ratings": ("1 5", "0 2 4"),  # a clinician left out the reply of row 3
        "bhh-messages": ("1 3 5", "0 2 4"),
        "xstest": ("ab-v2-1 ab-v2-3 ba-v2-1 ba-v2-3", "ab-v2-0 ab-v2-2 ba-v2-0 ba-v2-2"),
        "psychosis": ("1 3 5 7 9 11", "0 2 4 6 8 10"),
        "vera-mh": (  # of c2, no more than one clinician finds a dimension relevant
            "c1/detects c1/guides c1/supportive c1/boundaries",
            "c0/detects c0/guides c0/supportive c0/boundaries",
        ),
        "counselbench": ("q0/y q1/y", "q0/x q1/x"),
        "cssrs": ("1", "0 2"),
        "feiwang856": (  # by prompt
            "1/ChatGPT/reachable-resource 1/Claude/reachable-resource",
            "0/ChatGPT/keeps-to-reality 0/Claude/keeps-to-reality 0/Gemini/keeps-to-reality",
        ),
        "mind-eval": ("1", "0"),
        "nami": ("p2--a", "p1--a p1--b"),  # by person
        "schizobench": ("a/s1/1/1 a/s1/1/2 b/s1/1/1 b/s1/1/2", "a/s0/1/1 a/s0/1/2 b/s0/1/1 b/s0/1/2"),  # by script
        "therapists": ("signs/a bot/1", "bridge/people/0"),  # by message
        "therapists-models": ("k2/m1/2", "k3/m1/3"),
    }
    assert set(expected) == set(WRITERS) == set(SETS)
    for name, (odd, even) in expected.items():
        own = shapes.published(name, tmp_path / name)
        found = [[i.id for i in read_set(own, None, rows, release).items] for rows in ("odd", "even", "all")]
        assert [" ".join(ids) for ids in found[:2]] == [odd, even], name
        assert sorted(found[2]) == sorted(found[0] + found[1]), name


def test_peoples_labels_are_read_in_our_words(release: Release, tmp_path: Path) -> None:
    """Names of categories, consensus and each clinician, words of a scale, a partial refusal that also answers."""

    def whole(name: str) -> LabeledSet:
        return read_set(shapes.published(name, tmp_path / name), None, "all", release)

    bhh = whole("bhh-messages").items
    assert bhh[1].labels == {"H1": "self_harm", "H2": "self_harm", "H3": "self_harm", "H4": "no_crisis"}
    assert bhh[0].said == ("My kettle hums in the key of 0.",)
    rated = whole("bhh-ratings").items[1]
    assert (rated.labels, rated.published) == ({"H1": "1", "H2": "2"}, {"gpt-4o-mini": "1"})
    assert rated.groups == ("self_harm", "any crisis")
    refused = {i.id: i for i in whole("xstest").items}
    assert (refused["ab-v2-0"].settled, refused["ab-v2-3"].settled) == ("refusal", "answer")
    assert refused["ab-v2-2"].labels == {"annotation_1": "refusal", "annotation_2": "answer"}
    assert (refused["ab-v2-2"].system, refused["ab-v2-2"].family) == ("ab", "v2-2")
    deluded = whole("psychosis").items[3]
    assert (deluded.reply, deluded.settled, deluded.family) == ("llama on a.", "FAIL", "a")
    assert (deluded.labels, deluded.published) == ({"human1": "FAIL", "human2": "PASS"}, {"kimi": "PASS"})
    vera = whole("vera-mh")
    assert vera.items[0].said == ("(turn 1) My bell is loose on c0.\n\n(turn 2) Done.",)
    assert vera.items[0].reply == "(turn 1) Tighten it.\n\n(turn 2) Good."
    assert vera.items[4].labels == {"r0": "FAIL", "r1": "FAIL"}
    assert "confirms: no criterion of ours; docs/judge-quality.md says why" in vera.notes
    bells = whole("counselbench").items[1]
    assert bells.labels == {"rating 1": "1", "rating 2": "1", "rating 3": "2"}
    assert (bells.said, bells.groups) == (("My bell\n\nWhy is bell q0\nso loud?",), ("y",))
    posts = whole("cssrs").items
    assert [(i.labels["coder"], i.groups) for i in posts[:2]] == [
        ("no_crisis", ("level 0",)),
        ("suicidal_ideation", ("level 3",)),
    ]
    sweden = whole("feiwang856").items
    assert (sweden[2].settled, sweden[2].labels, sweden[2].country) == (
        "FAIL",
        {"first": "FAIL", "second": "PASS"},
        "SE",
    )
    assert (sweden[3].settled, sweden[3].by, sweden[3].system) == ("FAIL", "reachable-resource", "ChatGPT")
    craft = whole("mind-eval")
    assert (craft.items[0].labels, craft.items[0].reply) == ({"p0": "4", "p1": "6"}, "Tighten it.")
    assert craft.scale.common(craft.items[0]) == "5"
    talk = whole("nami").items[2]  # ends with the person's words, which are left out
    assert (talk.said, talk.reply, talk.family) == (("My bell\nis loose.",), "Tighten it.", "p2")
    script = whole("schizobench").items[1]
    assert (script.said, script.reply, script.family) == (("Sign 0?", "A kettle, 0.", "Sign 1?"), "A kettle, 1.", "s0")
    people, bot = whole("therapists").items
    assert (people.labels, people.by) == ({"annotator": "FAIL"}, "withholds-the-means")
    assert (bot.labels, bot.said) == ({"annotator": "PASS"}, ("My kettle hums.", "It does.", "Why?"))
    models = whole("therapists-models").items
    assert [(i.labels, [*i.published.values()]) for i in models] == [({}, ["PASS"]), ({}, ["FAIL"])]


def spoiled(path: Path, row: int, **cells: str) -> None:
    """Writes these cells into one row of a CSV file."""
    with path.open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    rows[row] |= cells
    shapes.table(path, rows)


def test_a_bad_row_is_named_by_its_query_and_number(release: Release, tmp_path: Path, capsys: Capture) -> None:
    """Exit 2, nothing measured; a bad row in the other half is not read. Rows of a query are counted from 1."""
    roots = {name: tmp_path / name for name in WRITERS}
    sets = {name: shapes.published(name, root) for name, root in roots.items()}
    shapes.bhh(roots["bhh-ratings"], scores=[[5, 5], [9, 2], [4, 4], [3, 3], [2, 2], [5, 0]])
    shapes.bhh(roots["bhh-messages"], votes=[["no_crisis"] * 4, ["rust"] * 4, *[["no_crisis"] * 4] * 4])
    spoiled(roots["xstest"] / "model_completions/xstest_v2_completions_ba.csv", 2, final_label="4_maybe")
    judges = roots["psychosis"] / "pipeline/src/data/judges"
    spoiled(judges / "human_consensus_2025-08-24.csv", 1, claude_criteria_2="yes")
    clinicians = roots["vera-mh"] / "publication_data/human_validation/clinician_judging"
    spoiled(clinicians / "Ratings.csv", 4, clinician_guides="Fine")
    spoiled(roots["counselbench"] / "counselbench_eval.csv", 7, overall_score="6")
    expected = {
        "bhh-ratings": [
            "query 'clinicians':2: 'H1' is '9'; expected one of 1, 2, 3, 4, 5",
            "query 'clinicians':6: 'H2' is '0'; expected one of 1, 2, 3, 4, 5",
        ],
        "bhh-messages": ["query 'people':2: 'H1' is 'rust'; expected one of "],
        "xstest": ["query 'completions':7: 'final_label' is '4_maybe'; expected one of refusal, answer"],
        "psychosis": ["query 'replies':6: 'consensus' is 'yes and 0'; expected one of FAIL, PASS"],
        "vera-mh": ["query 'conversations':6: 'people' is 'Fine'; expected one of FAIL, PARTIAL, PASS"],
        "counselbench": ["query 'answers':4: 'people' is '6'; expected one of 1, 2, 3, 4, 5"],
    }
    for name, lines in expected.items():
        assert validate(sets[name], roots[name], release, tmp_path / "home") == 2
        printed = capsys.readouterr()
        assert [line.startswith(told) for line, told in zip(printed.err.splitlines(), lines, strict=True)], printed.err
        assert (printed.out, (tmp_path / "home").exists()) == ("", False), name
    with pytest.raises(RunError, match=r"clinicians':2: .*"):
        read_set(sets["bhh-ratings"], None, "odd", release)


def test_missing_files_sets_and_cells_are_named(release: Release, tmp_path: Path) -> None:
    """A folder that isn't a checkout, an unknown set, one that wasn't fetched, no folder, and a row that is cut off."""
    for name in SETS:
        told = (
            r"No files found.*, in |has none of the set's files; expected a checkout of [\w./-]+ at commit [0-9a-f]{12}"
        )
        with pytest.raises(RunError, match=told):
            read_set(name, tmp_path, "all", release)
    with pytest.raises(RunError, match="nosuch: unknown set; expected one of bhh-messages, "):
        read_set("nosuch", tmp_path, "all", release)
    with pytest.raises(RunError, match="no such folder; expected a checkout of the set's repository, or a Hub dataset"):
        read_set("xstest", tmp_path / "nowhere", "all", release)
    own = shapes.published("psychosis", tmp_path)
    path = tmp_path / "pipeline/src/data/model_responses_to_base_scenarios_2025-08-07.csv"
    path.write_text("\n".join([*path.read_text(encoding="utf-8").splitlines()[:-1], "c"]) + "\n", encoding="utf-8")
    with pytest.raises(
        RunError, match=r"query 'replies': Binder Error: .*not found in FROM clause! Candidate bindings: .*, in "
    ):
        read_set(own, None, "all", release)


# --- your own set


def test_a_mapping_file_reads_your_own_set(release: Release, tmp_path: Path) -> None:
    """JSONL and CSV, the file's words for our labels, conversations, stars, categories and refusals; a row without a
    label is not an item.
    """

    def items(root: Path, rows: Any = "all", **changes: Any) -> tuple[Item, ...]:
        return read_set(str(shapes.own(root, **changes)), root, rows, release).items

    labels = [(i.id, i.labels["ana"], i.by) for i in items(tmp_path)]
    expected = ["PASS", "PARTIAL", "FAIL", "PASS", "FAIL"]
    assert labels == [(str(n), label, "answers-the-need") for n, label in enumerate(expected)]
    talk = {"text": None, "turns": "turns", "by": "cat", "labels": {"ana": "stars"}}
    rated = items(tmp_path, "odd", asks={"kind": "rating", "by": None}, fields=talk, values=None)
    assert [(i.labels["ana"], i.by, i.said) for i in rated] == [
        (n, "no_crisis", ("Hi.", "Hello.", "Loud?")) for n in ("2", "4", "1")
    ]
    rows = [{"n": k, "talk": json.dumps(["Hi.", "Hello.", f"Bell {k}?"]), "eve": w} for k, w in enumerate(["calm", ""])]
    shapes.table(tmp_path / "labels.csv", rows)
    calm = {"id": "n", "text": None, "turns": "talk", "reply": None, "labels": {"eve": "eve"}}
    table = {"path": "labels.csv", "values": {"calm": "no_crisis"}}
    (item,) = items(tmp_path, asks={"kind": "category", "by": None}, fields=calm, **table)
    assert (item.said, item.labels) == (("Hi.", "Hello.", "Bell 0?"), {"eve": "no_crisis"})
    words = {"fine": "answer", "bad": "refusal", "PARTIAL": "answer"}
    no = items(tmp_path, asks={"kind": "refusal", "by": None}, values=words)
    assert [i.labels["ben"] for i in no] == ["answer", "answer", "refusal", "answer", "refusal"]


def test_a_bad_mapping_or_row_is_named(release: Release, tmp_path: Path, capsys: Capture) -> None:
    """Exit 2, with the file, the line where there is one, and what was expected; bad rows all together."""
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"fields": {"text": None}}, ["bells.yaml:1: 'sources.0.fields': expected either `text`"]),
        ({"fields": {"reply": None}}, [f"labels.jsonl:{n}: 'q' ends without a reply; expected" for n in range(1, 6)]),
        ({"asks": {"by": "rings"}}, ["bells.yaml: asks.by is 'rings'; expected one of "]),
        ({"asks": {"kind": "rating", "by": None}}, ["bells.yaml: nothing says what judges a row; expected `by`"]),
        ({"asks": {"kind": "rating", "by": "outside_taxonomy"}}, ["bells.yaml: asks.by is 'outside_taxonomy'"]),
        ({"asks": {"kind": "rating", "question": {"title": "a", "text": "b"}}}, ["bells.yaml:1: 'asks': `question`"]),
        ({"path": "gone.jsonl"}, ["gone.jsonl:1: source 'rows' can't be read"]),
        (
            {"fields": {"id": "name", "reply": "answer"}},
            ["labels.jsonl:1: the row has no field 'answer', 'name', which the"],
        ),
        ({"fields": {"id": "a"}}, ["bells.yaml: several rows have the id 'Quite loud.'; expected a different one"]),
        (
            {"values": {"fine": "PASS"}},
            [
                "labels.jsonl:3: 'ana' is 'bad'; expected one of FAIL, PARTIAL, PASS",
                "labels.jsonl:5: 'ana' is 'bad'; expected one of FAIL, PARTIAL, PASS",
            ],
        ),
        ({"fields": {"text": None, "turns": "q"}}, [f"labels.jsonl:{n}: field 'q' is text" for n in range(1, 6)]),
        ({"fields": {"conversation": "cat"}}, ["bells.yaml: source 'rows' has `conversation`, which only"]),
        ({"colour": "red"}, ["bells.yaml:1: 'sources.0.colour': unknown key; see docs/own-data.md for the keys"]),
    ]
    for changes, told in cases:
        assert validate(str(shapes.own(tmp_path, **changes)), tmp_path, release, tmp_path / "home") == 2
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == len(told), lines
        assert all(words in line for words, line in zip(told, lines, strict=True)), lines
    (tmp_path / "bad.yaml").write_text("name: bells\nsources: [\n", encoding="utf-8")
    with pytest.raises(RunError, match=r"bad\.yaml:3: invalid YAML"):
        read_set(str(tmp_path / "bad.yaml"), tmp_path, "all", release)


# --- measuring


def rated(pairs: list[tuple[str, str]]) -> LabeledSet:
    """Replies that two people rated."""
    items = [Item(str(n), ("?",), {"ana": a, "ben": b}, "!", "no_crisis") for n, (a, b) in enumerate(pairs)]
    return LabeledSet("stars", "all", "rating", RATING, tuple(items))


def numbered(labels: list[Any]) -> dict[str, Any]:
    return {str(n): label for n, label in enumerate(labels)}


def test_quadratic_kappa_equals_scikit_learns() -> None:
    """With the rounded mean, with each person, and of the people themselves. Without a judge's label κ is null and says
    why; the widest disagreements are ten ids by distance.
    """
    rng = np.random.default_rng(7)
    ana, ben, given = (rng.integers(1, 6, 80).tolist() for _ in range(3))
    pairs = [(str(a), str(b)) for a, b in zip(ana, ben, strict=True)]
    found = measured(rated(pairs), [numbered([str(x) for x in given])], SOURCE)
    mean = [(a + b + 1) // 2 for a, b in zip(ana, ben, strict=True)]
    for theirs, ours in (
        ((mean, given), found.kappa),
        ((ana, given), found.raters["ana"]),
        ((ben, given), found.raters["ben"]),
        ((ana, ben), found.people),
    ):
        assert ours.value == pytest.approx(cohen_kappa_score(*theirs, weights="quadratic", labels=[1, 2, 3, 4, 5]))
        assert (ours.low or 0) < (ours.value or 0) < (ours.high or 0)
    assert sum(map(sum, found.confusion.table)) == 80
    found = measured(rated([("1", "2"), ("3", "4")]), [numbered([None, None])], SOURCE)
    assert (found.decided, found.kappa.value, found.confusion.unscored) == (0, None, [0, 1, 0, 1, 0])
    assert found.kappa.reason
    pairs = [("1", "1")] * 8 + [("5", "5")] * 8
    found = measured(rated(pairs), [numbered(["3" if n < 5 else "1" for n in range(16)])], SOURCE)
    assert found.widest == ["8", "9", "10", "11", "12", "13", "14", "15", "0", "1"]


def test_nominal_kappa_is_with_the_majority_and_people_by_fleiss() -> None:
    """An item without a majority is in no κ with it, and counts for each person."""
    votes = ["aaab", "bbbb", "aabb", "bbba", "aaaa"]
    items = tuple(Item(str(n), ("?",), dict(zip("pqrs", v, strict=True))) for n, v in enumerate(votes))
    scale = Scale(("a", "b", "c"), coarse={"a": "a", "b": "other", "c": "other"})
    found = measured(LabeledSet("x", "all", "category", scale, items), [numbered(["a", "b", "a", "c", None])], SOURCE)
    assert (found.items, found.decided, found.kappa.n, found.raters["p"].n, found.reference) == (5, 4, 3, 4, "majority")
    expected = cohen_kappa_score(["a", "b", "b"], ["a", "b", "c"], labels=["a", "b", "c"])
    assert found.kappa.value == pytest.approx(expected)
    counts = np.array([[v.count(x) for x in "abc"] for v in votes], dtype=np.float64)
    assert found.people.value == pytest.approx(c.fleiss(counts).value)
    assert found.coarse is not None
    assert found.coarse.kappa.value == 1.0
    assert (found.per_class["b"].recall.value, found.per_class["b"].precision.value) == (0.5, 1.0)
    assert (found.confusion.unscored, found.widest) == ([1, 0, 0], ["3"])


def test_the_settled_label_counts_before_the_majority() -> None:
    """A judge's PARTIAL, or a way to fail, is read as the set says; items of one family are one observation."""
    people = ["PASS", "FAIL", "FAIL", "PASS", "PASS", "PASS"]
    items = tuple(
        Item(str(n), ("?",), {"p": x, "q": x}, "!", "k", settled="FAIL" if n < 3 else "PASS", family=str(n % 2))
        for n, x in enumerate(people)
    )
    what = LabeledSet("x", "all", "criterion", Scale(("FAIL", "PASS")), items, reads={"PARTIAL": "FAIL"})
    labels = numbered(["PARTIAL", "FAIL-mocks", "FAIL-agrees", "PASS", "PASS", "PARTIAL"])
    found = measured(what, [labels], SOURCE)
    assert (found.reference, found.answers["FAIL-mocks"]) == ("settled", 1)
    assert (found.per_class["FAIL"].recall.value, found.per_class["FAIL"].precision.value) == (1.0, 0.75)
    alone = what._replace(items=tuple(i._replace(family="") for i in items))
    wide, narrow = (own.per_class["PASS"].recall for own in (found, measured(alone, [labels], SOURCE)))
    assert (wide.high or 0) - (wide.low or 0) > (narrow.high or 0) - (narrow.low or 0)


# --- the command


def test_the_offline_judge_needs_nothing(release: Release, tmp_path: Path, capsys: Capture) -> None:
    """The table, the same as JSON in a file and in the judge's folder; none of them holds a text."""
    # What it may decide of a set; how much of the others depends on how sure it is.
    decided: dict[str, Callable[[Validation], bool]] = {
        "xstest": lambda found: found.decided == found.items,  # by rule
        "bhh-messages": lambda found: found.decided == 0,  # it labels no messages
        "psychosis": lambda found: found.decided == 0,  # nor delusions
        "vera-mh": lambda found: found.decided > 0,
    }
    for name in WRITERS:
        root, home, file = tmp_path / name, tmp_path / "home", tmp_path / "out.json"
        own = shapes.published(name, root)
        if name in ("nami", "schizobench", "therapists-models"):
            assert validate(own, root, release, home) == 2
            assert f"{name}: no person labeled it; `helmbench read`" in capsys.readouterr().err
            continue
        assert validate(own, root, release, home, "--rows", "even", "--json-file", str(file)) == 0
        printed = capsys.readouterr().out
        assert "people among themselves" in printed
        stored = (home / f"offline/validation/{name}-even.json").read_text(encoding="utf-8")
        assert json.loads(stored) == json.loads(file.read_bytes())
        found = Validation.model_validate_json(stored)
        assert (found.set, found.rows, found.judge.partition("-")[0]) == (name, "even", "offline")
        assert found.decided + sum(found.confusion.unscored) == found.items
        assert name not in decided or decided[name](found), name
        texts = ("kettle", "Descale", "chain", "sends signs", "Tighten", "oil it", "Bell", "Oil it")
        assert not [words for words in texts if words in printed + stored]
    # It can only give the same answers again.
    root, stored = tmp_path / "vera-mh", (home / "offline/validation/vera-mh-even.json").read_text(encoding="utf-8")
    again = ["--rows", "even", "--json", "--repeats", "3"]
    assert validate(str(root / "vera-mh.yaml"), root, release, home, *again) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(stored)
    # By the rule one of two full refusals of each model, and nothing else; a language model isn't asked.
    root = tmp_path / "xstest"
    assert validate(str(root / "xstest.yaml"), root, release, home, "--json") == 0
    refusal = json.loads(capsys.readouterr().out)["per_class"]["refusal"]
    assert (refusal["recall"]["value"], refusal["precision"]["value"]) == (0.5, 1.0)
    assert validate(str(root / "xstest.yaml"), root, release, home, judge="judge-1") == 2
    assert "expected --judge offline" in capsys.readouterr().err


def test_answers_of_another_engine_are_read(release: Release, tmp_path: Path, capsys: Capture) -> None:
    """Exit 2 and a batch file; with replies next to it the same command measures. What is left unscored is reported
    over all and by group, as a share.
    """
    root, where = tmp_path / "set", tmp_path / "home/judge/judge-1"
    own = shapes.published("bhh-ratings", root)
    assert validate(own, root, release, tmp_path / "home", judge="judge-1") == 2
    assert "have no answer yet" in capsys.readouterr().err
    lines = []
    for n, line in enumerate((where / "requests.jsonl").read_text(encoding="utf-8").splitlines()):
        request = json.loads(line)
        body = json.loads(said(json.dumps({"label": "1", "quotes": []})).body)
        if n in (0, 4):  # two of three messages, no crisis
            body["choices"][0]["message"] |= {"content": None, "refusal": "No."}
        lines.append(json.dumps(batch.result(request["custom_id"], None, body)) + "\n")
    (where / "replies-1.jsonl").write_text("".join(lines), encoding="utf-8")
    assert validate(own, root, release, tmp_path / "home", judge="judge-1") == 0
    printed = capsys.readouterr().out
    assert "5 items, 3 decided by the judge, 40.0 % left unscored." in printed
    rows = {line.split()[0]: line.split() for line in printed.splitlines() if line.split()}
    assert rows["no_crisis"][1:5] == ["3", "1", "66.7", "%"]
    assert rows["self_harm"][1:5] == ["1", "1", "0.0", "%"]
    assert "Widest disagreements, by id: 2, 1, 4" in printed


def test_a_model_is_asked_each_question_once_in_each_pass(
    serve: Serve, release: Release, tmp_path: Path, capsys: Capture
) -> None:
    """A second run asks nothing; after a warning where the texts leave this machine. The first pass is measured, each
    has its κ, and what they agree among themselves equals scikit-learn's.
    """
    for name, count in {"bhh-ratings": 5, "bhh-messages": 6, "psychosis": 12, "vera-mh": 8, "counselbench": 4}.items():
        given: dict[str, list[str]] = {}

        def other_the_second_time(body: dict[str, Any], _: int, given: dict[str, list[str]] = given) -> Said:
            asked, properties = body["messages"][0]["content"], body["response_format"]["json_schema"]["schema"]
            key = "category" if "category" in properties["properties"] else "label"
            labels = properties["properties"][key]["enum"]
            before = given.setdefault(asked, [])
            before.append(labels[(len(given) + 3 * len(before)) % len(labels)])
            return said(json.dumps({key: before[-1]} | ({} if key == "category" else {"quotes": []})))

        server, root, home = serve(other_the_second_time), tmp_path / name, tmp_path / "home"
        own = shapes.published(name, root)
        asking = ["--base-url", server.url, "--concurrency", "1"]
        assert validate(own, root, release, home, *asking, judge="judge-1") == 0
        path = home / f"judge/judge-1/validation/{name}-all.json"
        once = json.loads(path.read_bytes())
        assert (server.total, once["items"], once["decided"]) == (count, count, count)
        assert validate(own, root, release, home, *asking, "--repeats", "2", judge="judge-1") == 0
        out, err = capsys.readouterr()
        assert "LEAVE THIS MACHINE" not in err
        twice = json.loads(path.read_bytes())
        assert server.total == 2 * count
        assert {**once, "passes": 0, "between": 0} == {**twice, "passes": 0, "between": 0}
        what = read_set(own, root, "all", release)
        first, second = ([what.reading(labels[n]) for labels in given.values()] for n in (0, 1))
        weights = "quadratic" if what.scale.numbers else None
        expected = cohen_kappa_score(first, second, weights=weights, labels=list(what.scale.labels))
        assert twice["between"]["value"] == pytest.approx(expected, nan_ok=True), name
        assert "pass 2 with people" in out
        assert "the 2 passes among themselves" in out
    away = ["--base-url", "http://judge.invalid/v1", "--max-retries", "0"]
    assert validate(own, root, release, tmp_path / "b", *away, judge="judge-1") == 3
    assert "LEAVE THIS MACHINE, for judge.invalid" in capsys.readouterr().err


# --- from the Hub


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[hub_stub.Hub]:
    """A Hub on loopback, and an empty cache."""
    with hub_stub.start() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        close_session()
        yield server


def test_a_dataset_of_the_hub_is_fetched_once(
    hub: hub_stub.Hub, release: Release, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same figures as from a folder; a second run fetches no file, and one without the Hub reads what was fetched.
    A folder of that name goes first.
    """
    root = tmp_path / "set"
    own = shapes.published("bhh-ratings", root)
    files = {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}
    hub.create("bells/Rated-1.0").commit(files)

    def figures(source: str) -> Any:
        assert validate(own, source, release, tmp_path / "home", "--json") == 0
        return capsys.readouterr()

    local, fetched = figures(str(root)), figures("bells/Rated-1.0")
    assert json.loads(fetched.out) == json.loads(local.out)
    assert "bells/Rated-1.0: from the Hub, commit " in fetched.err
    before = sum("/resolve/" in path for _, path, _ in hub.log)
    assert figures("bells/Rated-1.0").out == fetched.out
    assert sum("/resolve/" in path for _, path, _ in hub.log) == before
    hub.failing["."] = (503, "away")
    assert figures("bells/Rated-1.0").out == fetched.out
    monkeypatch.chdir(tmp_path)
    shapes.bhh(tmp_path / "bells/rated")
    requests = len(hub.log)
    assert figures("bells/rated").out == local.out
    assert len(hub.log) == requests


def test_neither_a_folder_nor_a_hub_dataset(
    hub: hub_stub.Hub, release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """Exit 2, one line: no such dataset, a Hub that forbids, and no Hub at all."""
    cases: list[tuple[dict[str, tuple[int, str]] | None, str]] = [
        ({}, "the Hub has no dataset of this name that your token, or no token, can read"),
        ({".": (403, "ask its owners first")}, "the Hub dataset can't be fetched: "),
        (None, "the Hub dataset can't be fetched: "),
    ]
    for failing, told in cases:
        hub.failing.clear()
        hub.failing |= failing or {}
        if failing is None:
            monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
        assert validate("counselbench", "bells/nowhere", release, tmp_path / "home") == 2
        err = capsys.readouterr().err
        assert "--from bells/nowhere: no such folder, and " in err
        assert told in err
        assert len(err.strip().splitlines()) == 1
