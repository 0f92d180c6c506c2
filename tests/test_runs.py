"""Reading replies: what lm-eval logged, or what was collected elsewhere. A run that can't be trusted is an error that
says why.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dataset_builder.release import Release, open_release
from dataset_builder.schema import Row
from judge.replies.lm_eval_log import read_run
from judge.replies.opening import Place, open_run, read_replies, run_at
from judge.replies.schema import RunError
from judge.replies.script import live_turns

STAMP = "2026-11-21T23-29-28.473516"
SINGLE, TALK = "helmbench_pillar1_lite", "helmbench_conversations_lite"
Docs = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def release(dataset: Path) -> Release:
    """The built dataset, opened once for this module, which only reads it."""
    return open_release(dataset)


@pytest.fixture
def docs(release: Release) -> Docs:
    """Rows as lm-eval logs them: the parquet record with its null columns."""
    return {record["id"]: record for record in release.records("all")}


def rows_with(release: Release, turns: int, count: int) -> list[Row]:
    """The first rows that ask so many replies of a model."""
    found = [r for r in release.rows.values() if live_turns(r) == turns][:count]
    assert len(found) == count
    return found


def log(
    folder: Path, release: Release, tasks: dict[str, list[tuple[Any, Any]]], stamp: str = STAMP, **changes: Any
) -> Path:
    """A run's files as lm-eval 0.4.13 writes them: for each task the pairs (doc, resps). `changes` replace results."""
    folder.mkdir(parents=True, exist_ok=True)
    metadata = {
        "version": 0.1,
        "dataset_version": release.manifest.version,
        "score_hash": release.manifest.score_hash,
        "tier": "lite",
    }
    results = {
        "results": {},
        "configs": {name: {"task": name, "metadata": metadata} for name in tasks},
        "n-samples": {name: {"original": len(pairs), "effective": len(pairs)} for name, pairs in tasks.items()},
        "config": {
            "model": "local-chat-completions",
            "model_args": {"model": "m-1", "num_concurrent": 16},
            "limit": None,
        },
        "model_name": "m-1",
        "system_instruction": None,
    }
    (folder / f"results_{stamp}.json").write_text(json.dumps(results | changes))
    for name, pairs in tasks.items():
        samples = [
            {"doc_id": n, "doc": doc, "resps": resps, "filtered_resps": ["x"], "target": ""}
            for n, (doc, resps) in enumerate(pairs)
        ]
        (folder / f"samples_{name}_{stamp}.jsonl").write_text("".join(json.dumps(s) + "\n" for s in samples))
    return folder


def of_messages(folder: Path, release: Release, benchmark: bool = False, tier: str = "lite", **changes: Any) -> Path:
    """A run of both tasks over messages: one message with three repeats, its label in both prompts; with `benchmark` a
    sample of it, too.
    """
    record = next(r for r in release.records("messages") if "lite" in r["tiers"])
    shared = {
        "version": 0.1,
        "dataset_version": release.manifest.version,
        "messages_hash": release.manifest.messages_hash,
        "tier": tier,
    } | changes
    kinds = {
        "helmbench_appropriateness": "appropriateness",
        "helmbench_triage_bare": "triage-bare",
        "helmbench_triage_guided": "triage-guided",
    }
    tasks: dict[str, list[tuple[Any, Any]]] = {
        name: [(record, [["x"]] * (3 if kind == "appropriateness" else 1))] for name, kind in kinds.items()
    }
    configs: dict[str, Any] = {
        name: {"task": name, "metadata": shared | {"measures": kind}} for name, kind in kinds.items()
    }
    if benchmark:
        row = next(r for r in release.records("all") if r["id"] == rows_with(release, 1, 1)[0].id)
        tasks[SINGLE] = [(row, [["y"]])]
        configs[SINGLE] = {"task": SINGLE, "metadata": {"score_hash": release.manifest.score_hash, "tier": "core"}}
    return log(folder, release, tasks, configs=configs)


def small(folder: Path, release: Release, docs: Docs, **changes: Any) -> Path:
    """Two single messages with one reply each."""
    a, b = rows_with(release, 1, 2)
    return log(folder, release, {SINGLE: [(docs[a.id], [["first"]]), (docs[b.id], [["second"]])]}, **changes)


def samples_of(folder: Path, name: str = SINGLE) -> Path:
    return folder / f"samples_{name}_{STAMP}.jsonl"


def problem(folder: Path, release: Release) -> str:
    """What reading the folder complains of."""
    with pytest.raises(RunError) as caught:
        read_run(folder, release)
    return str(caught.value)


def test_replies_come_with_their_repeats_and_turns(tmp_path: Path, release: Release, docs: Docs) -> None:
    """N repeats stand in one list; a conversation has one list per live turn, repeat after repeat; null is an empty
    reply.
    """
    (one,), (talk,) = rows_with(release, 1, 1), rows_with(release, 3, 1)
    turns = [["t1"], ["t2"], ["t3"], ["u1"], ["u2"], ["u3"]]
    run = read_run(
        log(tmp_path, release, {SINGLE: [(docs[one.id], [["a", None]])], TALK: [(docs[talk.id], turns)]}), release
    )
    assert {(r.id, r.repeat, r.turns) for r in run.replies} == {
        (one.id, 0, ("a",)),
        (one.id, 1, ("",)),
        (talk.id, 0, ("t1", "t2", "t3")),
        (talk.id, 1, ("u1", "u2", "u3")),
    }
    assert (run.tier, run.limited, run.ids) == ("lite", False, {one.id, talk.id})
    assert (run.model.name, run.model.backend, run.model.arguments) == (
        "m-1",
        "local-chat-completions",
        {"model": "m-1", "num_concurrent": 16},
    )


def test_the_newest_run_of_a_folder_is_read_whatever_its_depth(tmp_path: Path, release: Release, docs: Docs) -> None:
    """lm-eval adds to a folder and never replaces; the model's folder lies below --output_path."""
    (row,) = rows_with(release, 1, 1)
    for stamp, said in (("2026-11-21T23-29-28.4", "new"), ("2026-11-21T23-28-46.2", "old")):
        log(tmp_path / "out" / "m-1", release, {SINGLE: [(docs[row.id], [[said]])]}, stamp=stamp)
    assert [r.turns for r in read_run(tmp_path / "out", release).replies] == [("new",)]


def test_tasks_over_messages_are_read_apart(tmp_path: Path, release: Release) -> None:
    """Alone they leave the benchmark's part empty; beside benchmark tasks each has its own tier."""
    run = read_run(of_messages(tmp_path / "alone", release), release)
    (identity,) = {r.id for r in run.messages}
    assert (run.tier, run.messages_tier, run.replies) == (None, "lite", [])
    assert [(r.id, r.repeat) for r in run.messages] == [(identity, 0), (identity, 1), (identity, 2)]
    assert {prompt: [(r.id, r.repeat) for r in replies] for prompt, replies in run.triage.items()} == {
        "bare": [(identity, 0)],
        "guided": [(identity, 0)],
    }
    both = read_run(of_messages(tmp_path / "both", release, benchmark=True), release)
    assert (both.tier, both.messages_tier, len(both.replies), len(both.messages), len(both.triage)) == (
        "core",
        "lite",
        1,
        3,
        2,
    )


@pytest.mark.parametrize("given", ["1" * 64, None])
def test_messages_of_another_release_are_refused(tmp_path: Path, release: Release, given: str | None) -> None:
    """By messages_hash, whatever the score_hash; a run that recorded none is no run of ours."""
    said = problem(of_messages(tmp_path, release, messages_hash=given, score_hash=release.manifest.score_hash), release)
    if given is None:
        assert "records no dataset messages_hash" in said
    else:
        assert "messages_hash 111111111111…" in said
        assert f"({release.manifest.messages_hash[:12]}…)" in said


def test_a_task_that_measures_something_else_is_refused(tmp_path: Path, release: Release) -> None:
    """A later version's, perhaps: nothing of a run is left out in silence."""
    folder = of_messages(tmp_path, release)
    path = folder / f"results_{STAMP}.json"
    path.write_text(path.read_text().replace("triage-guided", "triage-long"))
    assert (
        "task helmbench_triage_guided measures 'triage-long'; expected one of benchmark, appropriateness, "
        "triage-bare, triage-guided" in problem(folder, release)
    )


def test_a_message_that_was_edited_in_the_log_is_refused(tmp_path: Path, release: Release) -> None:
    """As a benchmark sample is."""
    path = samples_of(of_messages(tmp_path, release), "helmbench_triage_bare")
    sample = json.loads(path.read_text())
    sample["doc"]["crisis_category"] = "no_crisis" if sample["doc"]["polarity"] == "control" else "risk_taking"
    sample["doc"]["severity"] = 1
    path.write_text(json.dumps(sample) + "\n")
    assert "differs from the dataset's" in problem(tmp_path, release)


def test_a_limited_run_says_so(tmp_path: Path, release: Release, docs: Docs) -> None:
    """--limit leaves out samples that nobody chose to leave out."""
    assert read_run(
        small(tmp_path, release, docs, config={"model": "hf", "model_args": "pretrained=m,dtype=auto", "limit": 2.0}),
        release,
    ).limited


@pytest.mark.parametrize(
    "arguments",
    [
        "model=m-1,api_key=SECRET",
        {"model": "m-1", "api_key": "SECRET"},
        {"model": "m-1", "OPENAI_API_KEY": "SECRET"},
        {"model": "m-1", "auth_token": "SECRET"},
        {"model": "m-1", "header": {"Authorization": "Bearer SECRET"}},
        {"model": "m-1", "base_url": "http://user:SECRET@127.0.0.1/v1"},
    ],
)
def test_keys_in_a_models_arguments_are_not_kept(tmp_path: Path, release: Release, docs: Docs, arguments: Any) -> None:
    """lm-eval writes model_args as they were given; a scorecard that is published must not."""
    run = read_run(
        small(tmp_path, release, docs, config={"model": "local-chat-completions", "model_args": arguments}), release
    )
    assert run.model.arguments["model"] == "m-1"
    assert "SECRET" not in run.model.model_dump_json()


def test_a_folder_without_one_run_is_an_error(tmp_path: Path, release: Release, docs: Docs) -> None:
    """Nothing there, no such place, or two models: each is said."""
    assert f"{tmp_path}: no results_*.json" in problem(tmp_path, release)
    assert f"{tmp_path / 'absent'}: no such folder" in problem(tmp_path / "absent", release)
    small(tmp_path / "m-1", release, docs)
    small(tmp_path / "m-2", release, docs)
    assert "runs of 2 models (m-1, m-2)" in problem(tmp_path, release)


def test_a_folders_name_is_shown_on_one_line(tmp_path: Path, release: Release) -> None:
    """A run comes from elsewhere, and so do its folders' names: a terminal obeys none."""
    for name in ("a\nb", "c\x1b[2J"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "results_1.json").write_text("{")
    with pytest.raises(RunError) as several:
        read_run(tmp_path, release)
    with pytest.raises(RunError) as cut:
        read_run(tmp_path / "a\nb", release)
    with pytest.raises(RunError) as other:
        read_run(tmp_path, release, Path("results_\x1b.json"))
    for error in (several, cut, other):
        assert "\n" not in str(error.value)
        assert "\x1b" not in str(error.value)
    assert "holds runs of 2 models (a[U+000A]b, c[U+001B][2J); name one" in str(several.value)


def test_results_cut_short_are_an_error(tmp_path: Path, release: Release, docs: Docs) -> None:
    """A results file that ends in the middle names itself."""
    path = small(tmp_path, release, docs) / f"results_{STAMP}.json"
    path.write_text(path.read_text()[:-9])
    assert f"{path}: is not JSON" in problem(tmp_path, release)


def test_a_last_line_cut_short_is_an_error_with_its_number(tmp_path: Path, release: Release, docs: Docs) -> None:
    """A half-written sample is never skipped."""
    path = samples_of(small(tmp_path, release, docs))
    path.write_text(path.read_text()[:-30])
    assert f"{path}:2: not a JSON object" in problem(tmp_path, release)


@pytest.mark.parametrize("kept", [0, 1])
def test_fewer_samples_than_the_results_say_are_an_error(
    tmp_path: Path, release: Release, docs: Docs, kept: int
) -> None:
    """A file cut at a line's end looks whole; the results know better."""
    path = samples_of(small(tmp_path, release, docs))
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:kept]))
    assert f"{path}: has {kept} samples, but the results report 2" in problem(tmp_path, release)


@pytest.mark.parametrize(
    ("column", "value"),
    [("severity", 1), ("difficulty", 9), ("messages", [{"role": "user", "content": "hello"}]), ("tiers", ["full"])],
)
def test_an_edited_sample_is_an_error(tmp_path: Path, release: Release, docs: Docs, column: str, value: Any) -> None:
    """What the model was shown and how it counts must be the dataset's own."""
    row = next(r for r in release.rows.values() if live_turns(r) == 1 and r.severity > 1 and r.difficulty < 9)
    path = samples_of(log(tmp_path, release, {SINGLE: [({**docs[row.id], column: value}, [["a"]])]}))
    assert f"{path}:1: sample {row.id} differs from the dataset's" in problem(tmp_path, release)


def test_an_unknown_or_repeated_sample_is_an_error(tmp_path: Path, release: Release, docs: Docs) -> None:
    """Each sample is one of the dataset's, and stands once."""
    (row,) = rows_with(release, 1, 1)
    path = samples_of(log(tmp_path / "a", release, {SINGLE: [({**docs[row.id], "id": "P9-B9"}, [["a"]])]}))
    assert f"{path}:1: sample 'P9-B9' is not in the dataset" in problem(tmp_path / "a", release)
    log(tmp_path / "b", release, {SINGLE: [(docs[row.id], [["a"]]), (docs[row.id], [["b"]])]})
    assert f"sample {row.id} repeat 0 appears twice" in problem(tmp_path / "b", release)


@pytest.mark.parametrize("resps", [[], None, [[]], "text"])
def test_a_sample_without_replies_is_an_error(tmp_path: Path, release: Release, docs: Docs, resps: Any) -> None:
    """A sample that was not run is not an empty reply."""
    (row,) = rows_with(release, 1, 1)
    assert f":1: sample {row.id} has no resps" in problem(
        log(tmp_path, release, {SINGLE: [(docs[row.id], resps)]}), release
    )


def test_a_conversation_with_a_turn_too_few_is_an_error(tmp_path: Path, release: Release, docs: Docs) -> None:
    """Two logged turns of three can't be told apart from another repeat's."""
    (talk,) = rows_with(release, 3, 1)
    found = problem(log(tmp_path, release, {TALK: [(docs[talk.id], [["t1"], ["t2"]])]}), release)
    assert f"{talk.id} has 2 logged turns, expected a multiple of 3" in found


def test_another_dataset_or_task_is_an_error(tmp_path: Path, release: Release, docs: Docs) -> None:
    """Scores of two datasets are not comparable, so neither is read as the other's."""
    other = {"dataset_version": "9.9", "score_hash": "f" * 64, "tier": "lite"}
    assert "used dataset 9.9 (score_hash ffffffffffff…)" in problem(
        small(tmp_path / "a", release, docs, configs={SINGLE: {"metadata": other}}), release
    )
    assert f"task {SINGLE} records no dataset score_hash" in problem(
        small(tmp_path / "b", release, docs, configs={SINGLE: {}}), release
    )
    assert "contains no helmbench task" in problem(
        small(tmp_path / "c", release, docs, configs={"hellaswag": {}}), release
    )


def test_a_run_without_its_samples_is_an_error(tmp_path: Path, release: Release, docs: Docs) -> None:
    """Without --log_samples there is nothing to judge."""
    path = samples_of(small(tmp_path, release, docs))
    path.unlink()
    assert problem(tmp_path, release) == f"{path}: missing; run lm_eval with --log_samples"


def collected(path: Path, *records: Any) -> Path:
    """A file of replies; text stands as it is."""
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records))
    return path


def test_replies_collected_elsewhere_are_read(tmp_path: Path, release: Release) -> None:
    """One text for a message, one per live turn for a conversation, with repeats and the backend's last word."""
    (one,), (talk,) = rows_with(release, 1, 1), rows_with(release, 3, 1)
    records = [
        {"id": one.id, "reply": "a"},
        {"id": one.id, "reply": "b", "repeat": 1, "finish": "length"},
        {"id": talk.id, "replies": ["1", "2", "3"]},
    ]
    run = read_replies(collected(tmp_path / "my-model.jsonl", *records), release)
    assert [(r.id, r.repeat, r.turns, r.finish) for r in run.replies] == [
        (one.id, 0, ("a",), ()),
        (one.id, 1, ("b",), ("length",)),
        (talk.id, 0, ("1", "2", "3"), ()),
    ]
    assert (run.model.name, run.tier) == ("my-model", None)


def test_half_a_character_in_a_reply_is_replaced(tmp_path: Path, release: Release, docs: Docs) -> None:
    """No file can hold one: what is read can be written again."""
    (one,) = rows_with(release, 1, 1)
    run = read_replies(collected(tmp_path / "m.jsonl", {"id": one.id, "reply": "a\ud800", "finish": "\udc00"}), release)
    assert [(r.turns, r.finish) for r in run.replies] == [(("a\ufffd",), ("\ufffd",))]
    assert run.replies[0].model_dump_json().encode()


@pytest.mark.parametrize("tier", ["lite", "core", "full"])
def test_a_file_that_covers_a_tier_is_a_run_of_it(tmp_path: Path, release: Release, tier: str) -> None:
    """Exactly a tier's samples are that tier; one fewer is none."""
    records = [{"id": r.id, "replies": ["x"] * live_turns(r)} for r in release.rows.values() if tier in r.tiers]
    assert read_replies(collected(tmp_path / "all.jsonl", *records), release).tier == tier
    assert read_replies(collected(tmp_path / "less.jsonl", *records[1:]), release).tier is None


@pytest.mark.parametrize("tier", ["lite", "core"])
def test_replies_to_messages_are_told_by_their_ids(tmp_path: Path, release: Release, tier: str) -> None:
    """A file may hold both; those to messages are to be rated, and cover a tier of their own."""
    (row,) = rows_with(release, 1, 1)
    rated = [
        {"id": m.id, "reply": "x", "repeat": n} for m in release.messages.values() if tier in m.tiers for n in (0, 1)
    ]
    run = read_replies(collected(tmp_path / "both.jsonl", {"id": row.id, "reply": "y"}, *rated), release)
    assert (run.tier, run.messages_tier, [r.id for r in run.replies], len(run.messages)) == (
        None,
        tier,
        [row.id],
        len(rated),
    )
    assert read_replies(collected(tmp_path / "less.jsonl", *rated[2:]), release).messages_tier is None


def test_every_problem_of_a_file_is_named_at_once_with_its_line(tmp_path: Path, release: Release) -> None:
    """Who repairs a file repairs it once."""
    (one, two), (talk,) = rows_with(release, 1, 2), rows_with(release, 3, 1)
    good = {"id": one.id, "reply": "a"}
    records = [
        good,
        {"id": "P9", "reply": "a"},
        good,
        {"id": talk.id, "replies": ["1"]},
        {"id": two.id, "reply": 7},
        {"id": two.id},
        {"reply": "a"},
    ]
    path = collected(tmp_path / "r.jsonl", *records)
    with pytest.raises(RunError) as caught:
        read_replies(path, release)
    expected = {
        2: "'P9' is not in",
        3: "each sample once",
        4: "has 1 replies, expected 3",
        5: "expected",
        6: "expected",
        7: "None is not in",
    }
    lines = str(caught.value).splitlines()
    assert [line.split(":")[1] for line in lines] == [str(n) for n in expected]
    assert all(words in line for words, line in zip(expected.values(), lines, strict=True))


def test_a_line_that_is_not_json_is_named_beside_the_other_problems(tmp_path: Path, release: Release) -> None:
    """One damaged line hides none of the others."""
    path = collected(tmp_path / "r.jsonl", {"id": "P9", "reply": "a"}, "no JSON", {"id": "P8", "reply": "a"})
    with pytest.raises(RunError) as caught:
        read_replies(path, release)
    assert all(f"{path}:{n}: " in str(caught.value) for n in (1, 2, 3))


def test_a_negative_repeat_is_named_with_its_line(tmp_path: Path, release: Release) -> None:
    """Repeats count from 0; anything else is the file's error and not a crash later on."""
    (row,) = rows_with(release, 1, 1)
    path = collected(tmp_path / "r.jsonl", {"id": row.id, "reply": "a", "repeat": -1})
    with pytest.raises(RunError, match=r"r\.jsonl:1: "):
        read_replies(path, release)


@pytest.mark.parametrize(
    ("text", "words"), [("", "empty file"), ("[1]\n", ":1: not a JSON object"), ("no\n", ":1: not a JSON object")]
)
def test_a_file_without_replies_is_an_error(tmp_path: Path, release: Release, text: str, words: str) -> None:
    """Empty and damaged files say which."""
    path = tmp_path / "r.jsonl"
    path.write_text(text)
    with pytest.raises(RunError, match=words):
        read_replies(path, release)
    with pytest.raises(RunError, match="no such file"):
        read_replies(tmp_path / "absent.jsonl", release)


def test_a_run_is_found_where_its_scores_stand(
    tmp_path: Path, release: Release, docs: Docs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its home is lm-eval's own folder, or one beside the file of replies; scores that stand elsewhere have none."""
    monkeypatch.setenv("HELMBENCH_DATASET", str(release.path))
    (row,) = rows_with(release, 1, 1)
    path = collected(tmp_path / "mine.v2.jsonl", {"id": row.id, "reply": "Hello"})
    for opened in (open_run(Place(small(tmp_path / "run", release, docs))), open_run(Place(replies=path))):
        opened.home.mkdir(exist_ok=True)
        assert run_at(opened.home, release) == opened.run
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(RunError, match="holds scores and no run"):
        run_at(tmp_path / "elsewhere", release)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"configs": []}, "configs: Input should be a valid dictionary"),
        ({"configs": {SINGLE: "x"}}, f"configs.{SINGLE}: Input should be a valid dictionary"),
        ({"n-samples": {SINGLE: 3}}, f"n-samples.{SINGLE}: Input should be a valid dictionary"),
        (
            {"n-samples": {SINGLE: {"original": 2, "effective": "two"}}},
            f"n-samples.{SINGLE}.effective: Input should be",
        ),
        ({"config": "x"}, "config: Input should be a valid dictionary"),
        ({"config": {"model": ["x"]}}, "config.model: Input should be a valid string"),
        ({"model_name": {"a": 1}}, "model_name: Input should be a valid string"),
        ({"system_instruction": [1]}, "system_instruction: Input should be a valid string"),
    ],
)
def test_results_of_another_shape_name_the_field(
    release: Release, docs: Docs, tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    """Each was a traceback."""
    row = rows_with(release, 1, 1)[0]
    log(tmp_path, release, {SINGLE: [(docs[row.id], [["ok"]])]}, **change)
    with pytest.raises(RunError, match=rf"results_{STAMP}\.json: {re.escape(said)}"):
        read_run(tmp_path, release)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tier": ["lite"]}, "records a tier that it can't have"),
        ({"tier": "huge"}, "records a tier that it can't have"),
        ({"tier": None}, "records no tier"),
        ({"score_hash": 7}, "records a score_hash that it can't have"),
        ({"measures": {}}, "records a measures that it can't have"),
        ({"condition": "calm.txt"}, "records a condition that it can't have"),
        ([1], "records a line that it can't have"),
    ],
)
def test_what_no_task_records_is_named(release: Release, docs: Docs, tmp_path: Path, change: Any, said: str) -> None:
    """Metadata of a task in the results, whose values may be anybody's."""
    row = rows_with(release, 1, 1)[0]
    log(tmp_path, release, {SINGLE: [(docs[row.id], [["ok"]])]})
    path = tmp_path / f"results_{STAMP}.json"
    results = json.loads(path.read_text())
    metadata = results["configs"][SINGLE]["metadata"]
    results["configs"][SINGLE]["metadata"] = metadata | change if isinstance(change, dict) else change
    path.write_text(json.dumps(results))
    with pytest.raises(RunError, match=f"task {SINGLE} {said}"):
        read_run(tmp_path, release)


@pytest.mark.parametrize("name", [f"results_{STAMP}.json", f"samples_{SINGLE}_{STAMP}.jsonl"])
@pytest.mark.parametrize(
    ("put", "said"),
    [
        (lambda path: path.mkdir(), "is a folder"),
        (os.mkfifo, "is a pipe"),
        (lambda path: path.symlink_to("/dev/zero"), "is a device"),
        (lambda path: path.write_text("[" * 100_000), ""),
        (lambda path: path.write_text('{"a":' * 50_000), ""),
        (lambda path: path.write_text('{"doc": ' + "9" * 5000 + "}"), ""),
        (lambda path: path.write_bytes(b"\xff\xfe"), ""),
    ],
    ids=["folder", "pipe", "device", "deep list", "deep object", "digits", "no UTF-8"],
)
def test_whatever_stands_in_the_place_of_a_log_is_named(
    release: Release, docs: Docs, tmp_path: Path, name: str, put: Callable[[Path], Any], said: str
) -> None:
    """A pipe and a device were waited for without end; a folder was an error of the disk."""
    row = rows_with(release, 1, 1)[0]
    log(tmp_path, release, {SINGLE: [(docs[row.id], [["ok"]])]})
    (tmp_path / name).unlink()
    put(tmp_path / name)
    with pytest.raises(RunError, match=rf"{re.escape(name)}(:1)?: .*{said}"):
        read_run(tmp_path, release)


@pytest.mark.parametrize("doc", [[], "x", 7, {"id": ["P1"]}, {"id": None}, {"id": {}}])
def test_a_sample_without_an_id_is_named(release: Release, tmp_path: Path, doc: Any) -> None:
    log(tmp_path, release, {SINGLE: [(doc, [["ok"]])]})
    with pytest.raises(RunError, match=r"\.jsonl:1: sample .* is not in the dataset"):
        read_run(tmp_path, release)


@pytest.mark.parametrize("change", [{"messages": "x"}, {"evaluation": [[1]]}, {"unknown": 1}, {"messages": [[], {}]}])
def test_a_sample_of_another_shape_differs(
    release: Release, docs: Docs, tmp_path: Path, change: dict[str, Any]
) -> None:
    row = rows_with(release, 1, 1)[0]
    log(tmp_path, release, {SINGLE: [(docs[row.id] | change, [["ok"]])]})
    with pytest.raises(RunError, match=rf"\.jsonl:1: sample {row.id} differs"):
        read_run(tmp_path, release)


@pytest.mark.parametrize("repeat", [-1, 100_000, 2**63, 0.5, "0", None])
def test_a_repeat_that_no_figure_can_count_is_named(release: Release, tmp_path: Path, repeat: Any) -> None:
    """2 to the 63rd ended in a traceback, when the figures were made."""
    path, row = tmp_path / "mine.jsonl", rows_with(release, 1, 1)[0]
    path.write_text(json.dumps({"id": row.id, "repeat": repeat, "reply": "Hello."}) + "\n")
    with pytest.raises(RunError, match=r'mine\.jsonl:1: .*expected "repeat" to count from 0'):
        read_replies(path, release)


def test_a_ring_of_links_is_no_run(release: Release, docs: Docs, tmp_path: Path) -> None:
    """Named or come upon."""
    row = rows_with(release, 1, 1)[0]
    log(tmp_path, release, {SINGLE: [(docs[row.id], [["ok"]])]})
    ring = tmp_path / "results_2027.json"
    ring.symlink_to(ring.name)
    assert read_run(tmp_path, release, Path(f"results_{STAMP}.json")).replies
    with pytest.raises(RunError, match=r"results_2027\.json"):
        read_run(tmp_path, release)


@pytest.mark.parametrize(
    ("put", "said"),
    [(lambda path: path.mkdir(), "is a folder"), (os.mkfifo, "is a pipe"), (lambda path: None, "no such file")],
    ids=["folder", "pipe", "nothing"],
)
def test_whatever_stands_in_the_place_of_collected_replies_is_named(
    release: Release, tmp_path: Path, put: Callable[[Path], Any], said: str
) -> None:
    put(tmp_path / "mine.jsonl")
    with pytest.raises(RunError, match=rf"mine\.jsonl: {said}.*; expected JSONL"):
        read_replies(tmp_path / "mine.jsonl", release)
