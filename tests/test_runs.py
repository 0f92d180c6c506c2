"""Reading replies: lm-eval's logs, or replies collected elsewhere. A run that can't be trusted is an error."""

from __future__ import annotations

import json
import os
import shutil
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
RESULTS = f"results_{STAMP}.json"
SINGLE, TALK = "helmbench_pillar1_lite", "helmbench_conversations_lite"
Docs = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def release(dataset: Path) -> Release:
    """The built dataset, opened once for this module, which only reads it."""
    return open_release(dataset)


@pytest.fixture(scope="module")
def docs(release: Release) -> Docs:
    """Rows as lm-eval logs them: the parquet record with its null columns."""
    return {record["id"]: record for record in release.records("all")}


def rows_with(release: Release, turns: int, count: int = 1) -> list[Row]:
    """The first rows that ask a model for so many replies."""
    found = [r for r in release.rows.values() if live_turns(r) == turns][:count]
    assert len(found) == count
    return found


def log(
    folder: Path, release: Release, tasks: dict[str, list[tuple[Any, Any]]], stamp: str = STAMP, **changes: Any
) -> Path:
    """A run's files as lm-eval 0.4.13 writes them: for each task the pairs (doc, resps). `changes` replace results."""
    folder.mkdir(parents=True, exist_ok=True)
    manifest = release.manifest
    metadata = {"version": 0.1, "dataset_version": manifest.version, "score_hash": manifest.score_hash, "tier": "lite"}
    arguments = {"model": "m-1", "num_concurrent": 16}
    results = {
        "results": {},
        "configs": {name: {"task": name, "metadata": metadata} for name in tasks},
        "n-samples": {name: {"original": len(pairs), "effective": len(pairs)} for name, pairs in tasks.items()},
        "config": {"model": "local-chat-completions", "model_args": arguments, "limit": None},
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


def of_messages(folder: Path, release: Release, benchmark: bool = False, **changes: Any) -> Path:
    """A run of both tasks over messages: one message with three repeats, its label in both prompts; with `benchmark` a
    sample of it, too.
    """
    record = next(r for r in release.records("messages") if "lite" in r["tiers"])
    manifest = release.manifest
    shared = {"dataset_version": manifest.version, "messages_hash": manifest.messages_hash, "tier": "lite"} | changes
    tasks: dict[str, list[tuple[Any, Any]]] = {}
    configs: dict[str, Any] = {}
    for kind in ("appropriateness", "triage-bare", "triage-guided"):
        name = f"helmbench_{kind.replace('-', '_')}"
        tasks[name] = [(record, [["x"]] * (3 if kind == "appropriateness" else 1))]
        configs[name] = {"task": name, "metadata": shared | {"measures": kind}}
    if benchmark:
        row = next(r for r in release.records("all") if r["id"] == rows_with(release, 1)[0].id)
        tasks[SINGLE] = [(row, [["y"]])]
        configs[SINGLE] = {"task": SINGLE, "metadata": {"score_hash": manifest.score_hash, "tier": "core"}}
    return log(folder, release, tasks, configs=configs)


def small(folder: Path, release: Release, docs: Docs, **changes: Any) -> Path:
    """Two single messages with one reply each."""
    a, b = rows_with(release, 1, 2)
    return log(folder, release, {SINGLE: [(docs[a.id], [["first"]]), (docs[b.id], [["second"]])]}, **changes)


def samples_of(folder: Path, name: str = SINGLE) -> Path:
    return folder / f"samples_{name}_{STAMP}.jsonl"


def problem(read: Callable[[], object]) -> str:
    """The error of reading; empty if there is none."""
    try:
        read()
    except RunError as error:
        return str(error)
    return ""


def wrong(cases: dict[str, str], found: Callable[[str], str]) -> dict[str, str]:
    """The cases whose error isn't as expected, with what was found."""
    return {name: said for name, words in cases.items() if words not in (said := found(name)) or not said}


def test_replies_come_with_their_repeats_and_turns(tmp_path: Path, release: Release, docs: Docs) -> None:
    """N repeats are in one list; a conversation has one list per live turn, repeat after repeat; null is an empty
    reply.
    """
    (one,), (talk,) = rows_with(release, 1), rows_with(release, 3)
    turns = [["t1"], ["t2"], ["t3"], ["u1"], ["u2"], ["u3"]]
    tasks: dict[str, list[tuple[Any, Any]]] = {SINGLE: [(docs[one.id], [["a", None]])], TALK: [(docs[talk.id], turns)]}
    run = read_run(log(tmp_path, release, tasks), release)
    assert {(r.id, r.repeat, r.turns) for r in run.replies} == {
        (one.id, 0, ("a",)),
        (one.id, 1, ("",)),
        (talk.id, 0, ("t1", "t2", "t3")),
        (talk.id, 1, ("u1", "u2", "u3")),
    }
    assert (run.tier, run.limited, run.ids) == ("lite", False, {one.id, talk.id})
    assert (run.model.name, run.model.backend) == ("m-1", "local-chat-completions")
    assert run.model.arguments == {"model": "m-1", "num_concurrent": 16}
    limited = {"config": {"model": "hf", "model_args": "pretrained=m,dtype=auto", "limit": 2.0}}
    assert read_run(small(tmp_path / "limited", release, docs, **limited), release).limited


def test_the_newest_run_of_a_folder_is_read_whatever_its_depth(tmp_path: Path, release: Release, docs: Docs) -> None:
    """lm-eval adds to a folder and never replaces; the model's folder is below --output_path."""
    (row,) = rows_with(release, 1)
    for stamp, said in (("2026-11-21T23-29-28.4", "new"), ("2026-11-21T23-28-46.2", "old")):
        log(tmp_path / "out" / "m-1", release, {SINGLE: [(docs[row.id], [[said]])]}, stamp=stamp)
    assert [r.turns for r in read_run(tmp_path / "out", release).replies] == [("new",)]


def test_tasks_over_messages_are_read_apart(tmp_path: Path, release: Release) -> None:
    """Alone they leave the benchmark's part empty; with benchmark tasks each has its own tier."""
    run = read_run(of_messages(tmp_path / "alone", release), release)
    (identity,) = {r.id for r in run.messages}
    assert (run.tier, run.messages_tier, run.replies) == (None, "lite", [])
    assert [(r.id, r.repeat) for r in run.messages] == [(identity, 0), (identity, 1), (identity, 2)]
    triage = {prompt: [(r.id, r.repeat) for r in replies] for prompt, replies in run.triage.items()}
    assert triage == {"bare": [(identity, 0)], "guided": [(identity, 0)]}
    both = read_run(of_messages(tmp_path / "both", release, benchmark=True), release)
    assert (both.tier, both.messages_tier) == ("core", "lite")
    assert (len(both.replies), len(both.messages), len(both.triage)) == (1, 3, 2)


def test_runs_over_messages_of_another_kind_are_refused(tmp_path: Path, release: Release) -> None:
    """Another release's, without a hash, of a later kind of task, or with an edited message."""
    for n, (given, words) in enumerate((("1" * 64, "messages_hash 111111111111…"), (None, "no dataset messages_hash"))):
        folder = of_messages(tmp_path / str(n), release, messages_hash=given, score_hash=release.manifest.score_hash)
        assert words in problem(lambda folder=folder: read_run(folder, release))  # type: ignore[misc]
    later = of_messages(tmp_path / "later", release) / RESULTS
    later.write_text(later.read_text().replace("triage-guided", "triage-long"))
    assert (
        "task helmbench_triage_guided measures 'triage-long'; expected one of benchmark, appropriateness, talks, "
        "triage-bare, triage-guided" in problem(lambda: read_run(later.parent, release))
    )
    path = samples_of(of_messages(tmp_path / "edited", release), "helmbench_triage_bare")
    sample = json.loads(path.read_text())
    sample["doc"] |= {"severity": 1, "crisis_category": "risk_taking"}
    path.write_text(json.dumps(sample) + "\n")
    assert "differs from the dataset's" in problem(lambda: read_run(path.parent, release))


def test_keys_in_a_models_arguments_are_not_kept(tmp_path: Path, release: Release, docs: Docs) -> None:
    """lm-eval writes model_args as they were given; a published scorecard must not."""
    for n, arguments in enumerate(
        (
            "model=m-1,api_key=SECRET",
            {"model": "m-1", "OPENAI_API_KEY": "SECRET"},
            {"model": "m-1", "auth_token": "SECRET"},
            {"model": "m-1", "header": {"Authorization": "Bearer SECRET"}},
            {"model": "m-1", "base_url": "http://user:SECRET@127.0.0.1/v1"},
        )
    ):
        config = {"model": "local-chat-completions", "model_args": arguments}
        run = read_run(small(tmp_path / str(n), release, docs, config=config), release)
        assert run.model.arguments["model"] == "m-1"
        assert "SECRET" not in run.model.model_dump_json(), arguments


def test_a_folder_without_one_run_is_an_error(tmp_path: Path, release: Release, docs: Docs) -> None:
    """Nothing there, no such folder, two models, or a ring of links; names are shown on one line, whatever they hold,
    and another results file may be chosen.
    """
    assert f"{tmp_path}: no results_*.json" in problem(lambda: read_run(tmp_path, release))
    assert f"{tmp_path / 'absent'}: no such folder" in problem(lambda: read_run(tmp_path / "absent", release))
    ring = small(tmp_path / "m-1", release, docs) / "results_2027.json"
    small(tmp_path / "m-2", release, docs)
    assert "runs of 2 models (m-1, m-2)" in problem(lambda: read_run(tmp_path, release))
    ring.symlink_to(ring.name)
    assert read_run(ring.parent, release, Path(RESULTS)).replies
    assert ring.name in problem(lambda: read_run(ring.parent, release))
    for name in ("a\nb", "c\x1b[2J"):
        (tmp_path / "other" / name).mkdir(parents=True)
        (tmp_path / "other" / name / "results_1.json").write_text("{")
    several = problem(lambda: read_run(tmp_path / "other", release))
    cut = problem(lambda: read_run(tmp_path / "other" / "a\nb", release))
    absent = problem(lambda: read_run(tmp_path / "other", release, Path("results_\x1b.json")))
    assert not {"\n", "\x1b"} & {*several, *cut, *absent}
    assert "holds runs of 2 models (a[U+000A]b, c[U+001B][2J); name one" in several


def test_damaged_logs_name_the_file_and_line(tmp_path: Path, release: Release, docs: Docs) -> None:
    """Files that were cut, or that something else replaced; a pipe isn't waited for."""
    whole = small(tmp_path / "whole", release, docs)

    def changed(name: str) -> str:
        folder = Path(shutil.copytree(whole, tmp_path / name))
        results, samples = folder / RESULTS, samples_of(folder)
        what, _, how = name.partition(": ")
        path = results if what == "results" else samples
        text = path.read_text()
        if how in ("cut", "no line", "one line"):
            path.write_text({"cut": text[:-30], "no line": "", "one line": text.splitlines(keepends=True)[0]}[how])
        else:
            path.unlink()
        if how == "folder":
            path.mkdir()
        elif how == "pipe":
            os.mkfifo(path)
        elif how == "device":
            path.symlink_to("/dev/zero")
        elif how in ("deep", "digits"):
            path.write_text("[" * 100_000 if how == "deep" else '{"doc": ' + "9" * 5000 + "}")
        elif how == "no UTF-8":
            path.write_bytes(b"\xff\xfe")
        return problem(lambda: read_run(folder, release)).replace(str(folder), "")

    same = {
        f"{w}: {h}": "is a folder" if h == "folder" else "is not a regular file"
        for w in ("results", "samples")
        for h in ("folder", "pipe", "device")
    }
    same |= {f"{w}: {h}": "" for w in ("results", "samples") for h in ("deep", "digits", "no UTF-8")}
    cases = same | {
        "results: cut": f"/{RESULTS}: is not JSON",
        "samples: cut": ".jsonl:2: not a JSON object",
        "samples: no line": "has 0 samples, but the results report 2",
        "samples: one line": "has 1 samples, but the results report 2",
        "samples: gone": ".jsonl: missing; run lm_eval with --log_samples",
    }
    assert wrong(cases, changed) == {}


def test_results_of_another_shape_name_the_field(release: Release, docs: Docs, tmp_path: Path) -> None:
    """Values that lm-eval or our tasks never write."""
    counts = {"original": 2, "effective": "two"}
    metadata = {"dataset_version": "9.9", "score_hash": "f" * 64, "tier": "lite"}
    changes: dict[str, dict[str, Any]] = {
        "configs: Input should be a valid dictionary": {"configs": []},
        f"configs.{SINGLE}: Input should be a valid dictionary": {"configs": {SINGLE: "x"}},
        f"n-samples.{SINGLE}: Input should be a valid dictionary": {"n-samples": {SINGLE: 3}},
        f"n-samples.{SINGLE}.effective: Input should be": {"n-samples": {SINGLE: counts}},
        "config: Input should be a valid dictionary": {"config": "x"},
        "config.model: Input should be a valid string": {"config": {"model": ["x"]}},
        "model_name: Input should be a valid string": {"model_name": {"a": 1}},
        "system_instruction: Input should be a valid string": {"system_instruction": [1]},
        "used dataset 9.9 (score_hash ffffffffffff…)": {"configs": {SINGLE: {"metadata": metadata}}},
        f"task {SINGLE} records no dataset score_hash": {"configs": {SINGLE: {}}},
        "contains no helmbench task": {"configs": {"hellaswag": {}}},
    }
    own = {"score_hash": release.manifest.score_hash, "tier": "lite"}
    for field, value in {"tier": "huge", "score_hash": 7, "measures": {}, "condition": "calm.txt"}.items():
        changes[f"records a {field} that it can't have"] = {"configs": {SINGLE: {"metadata": own | {field: value}}}}
    changes["records no tier"] = {"configs": {SINGLE: {"metadata": own | {"tier": None}}}}
    changes["records a line that it can't have"] = {"configs": {SINGLE: {"metadata": [1]}}}

    def changed(words: str) -> str:
        folder = small(tmp_path / str([*changes].index(words)), release, docs, **changes[words])
        return problem(lambda: read_run(folder, release))

    assert wrong({words: words for words in changes}, changed) == {}


def test_samples_that_are_not_the_datasets_are_refused(tmp_path: Path, release: Release, docs: Docs) -> None:
    """What the model was shown and how it counts must be the dataset's; each sample occurs once, with replies."""
    row = next(r for r in release.rows.values() if live_turns(r) == 1 and r.severity > 1 and r.difficulty < 9)
    (talk,), doc = rows_with(release, 3), docs[row.id]
    hello = [{"role": "user", "content": "hello"}]
    edits: list[dict[str, Any]] = [{"severity": 1}, {"difficulty": 9}, {"messages": hello}, {"tiers": ["full"]}]
    edits += [{"messages": "x"}, {"evaluation": [[1]]}, {"unknown": 1}, {"messages": [[], {}]}]
    strangers: list[Any] = [[], "x", 7, {"id": ["P1"]}, {"id": {}}]
    nothing: list[Any] = [[], None, [[]], "text"]
    cases: list[tuple[list[tuple[Any, Any]], str]] = [
        *(([(doc | edit, [["a"]])], f":1: sample {row.id} differs from the dataset's") for edit in edits),
        *(([(own, [["ok"]])], " is not in the dataset") for own in strangers),
        ([({**doc, "id": "P9-B9"}, [["a"]])], ":1: sample 'P9-B9' is not in the dataset"),
        ([(doc, [["a"]]), (doc, [["b"]])], f"sample {row.id} repeat 0 appears twice"),
        *(([(doc, resps)], f":1: sample {row.id} has no resps") for resps in nothing),
        ([(docs[talk.id], [["t1"], ["t2"]])], f"{talk.id} has 2 logged turns, expected a multiple of 3"),
    ]
    found = []
    for n, (pairs, words) in enumerate(cases):
        folder = log(tmp_path / str(n), release, {SINGLE: pairs})
        if words not in (said := problem(lambda folder=folder: read_run(folder, release))):  # type: ignore[misc]
            found.append((words, said))
    assert found == []


def collected(path: Path, *records: Any) -> Path:
    """A file of replies; text is written as it is."""
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records))
    return path


def test_replies_collected_elsewhere_are_read(tmp_path: Path, release: Release) -> None:
    """One text for a message, one per live turn for a conversation, with repeats and finish reasons. Unpaired
    surrogates, which no file can hold, are replaced.
    """
    (one,), (talk,) = rows_with(release, 1), rows_with(release, 3)
    records = [
        {"id": one.id, "reply": "a\ud800"},
        {"id": one.id, "reply": "b", "repeat": 1, "finish": "length\udc00"},
        {"id": talk.id, "replies": ["1", "2", "3"], "finish": ["stop", None, "stop"]},
    ]
    run = read_replies(collected(tmp_path / "my-model.jsonl", *records), release)
    assert [(r.id, r.repeat, r.turns, r.finish) for r in run.replies] == [
        (one.id, 0, ("a\ufffd",), ()),
        (one.id, 1, ("b",), ("length\ufffd",)),
        (talk.id, 0, ("1", "2", "3"), ("stop", None, "stop")),
    ]
    assert (run.model.name, run.tier) == ("my-model", None)


def test_a_file_that_covers_a_tier_is_a_run_of_it(tmp_path: Path, release: Release) -> None:
    """Exactly a tier's samples are that tier; one fewer is none. The same goes for messages, which may be mixed in."""
    for tier in ("lite", "core", "full"):
        records = [{"id": r.id, "replies": ["x"] * live_turns(r)} for r in release.rows.values() if tier in r.tiers]
        assert read_replies(collected(tmp_path / "all.jsonl", *records), release).tier == tier
        assert read_replies(collected(tmp_path / "less.jsonl", *records[1:]), release).tier is None
    (row,) = rows_with(release, 1)
    lite = [m.id for m in release.messages.values() if "lite" in m.tiers]
    rated = [{"id": i, "reply": "x", "repeat": n} for i in lite for n in (0, 1)]
    run = read_replies(collected(tmp_path / "both.jsonl", {"id": row.id, "reply": "y"}, *rated), release)
    assert (run.tier, run.messages_tier) == (None, "lite")
    assert ([r.id for r in run.replies], len(run.messages)) == ([row.id], len(rated))
    assert read_replies(collected(tmp_path / "less.jsonl", *rated[2:]), release).messages_tier is None


def test_every_problem_of_a_file_is_named_at_once_with_its_line(tmp_path: Path, release: Release) -> None:
    """Damaged lines, unknown ids, wrong numbers of turns, repeats and finish reasons that can't be."""
    (one, two), (talk,) = rows_with(release, 1, 2), rows_with(release, 3)
    good: dict[str, Any] = {"id": one.id, "reply": "a"}
    number = 'expected "repeat" to count from 0'
    cases: list[tuple[Any, str]] = [
        ({"id": "P9", "reply": "a"}, "'P9' is not in"),
        ("no JSON", "not a JSON object"),
        ("[1]", "not a JSON object"),
        (good, "each sample once"),
        ({"id": talk.id, "replies": ["1"]}, "has 1 replies, expected 3"),
        ({"id": two.id, "reply": 7}, 'expected "reply": text'),
        ({"id": two.id}, 'expected "reply": text'),
        ({"reply": "a"}, "None is not in"),
        *((good | {"repeat": repeat}, number) for repeat in (-1, 100_000, 2**63, 0.5, "0", None)),
        *((good | {"repeat": 5, "finish": f}, 'expected "finish"') for f in (1, ["a", "b"], [1])),
    ]
    path = collected(tmp_path / "r.jsonl", good, *(record for record, _ in cases))
    lines = problem(lambda: read_replies(path, release)).splitlines()
    assert sorted(int(line.split(":")[1]) for line in lines) == [*range(2, 2 + len(cases))]
    by_line = {int(line.split(":")[1]): line for line in lines}
    assert [(n, words, by_line[n]) for n, (_, words) in enumerate(cases, 2) if words not in by_line[n]] == []


def test_a_file_without_replies_is_an_error(tmp_path: Path, release: Release) -> None:
    """Empty, absent, a folder, or a pipe."""
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")
    words = {"folder": "is a folder", "pipe": "is not a regular file", "absent": "no such file", "empty": "empty file"}
    for name, why in words.items():
        said = problem(lambda name=name: read_replies(tmp_path / f"{name}.jsonl", release))  # type: ignore[misc]
        assert f"{name}.jsonl: {why}" in said
        assert "; expected JSONL" in said or name == "empty"


def test_a_run_is_found_by_the_folder_of_its_scores(
    tmp_path: Path, release: Release, docs: Docs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its home is lm-eval's own folder, or one beside the file of replies; a folder of scores elsewhere has none."""
    monkeypatch.setenv("HELMBENCH_DATASET", str(release.path))
    (row,) = rows_with(release, 1)
    path = collected(tmp_path / "mine.v2.jsonl", {"id": row.id, "reply": "Hello"})
    for opened in (open_run(Place(small(tmp_path / "run", release, docs))), open_run(Place(replies=path))):
        opened.home.mkdir(exist_ok=True)
        assert run_at(opened.home, release) == opened.run
    (tmp_path / "elsewhere").mkdir()
    assert "holds scores and no run" in problem(lambda: run_at(tmp_path / "elsewhere", release))
