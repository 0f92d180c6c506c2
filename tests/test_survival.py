"""What a run does about a server that fails: one bad message ends nothing, and everything is counted as what it is."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import reference_server
from lm_eval.api.instance import Instance
from lm_eval.api.model import CachingLM
from lm_eval.models.openai_completions import LocalChatCompletion
from reference_server import FAULTS, Server
from support.judge_server import JudgeServer, failed, said, stopped_at_the_end
from support.lm_eval_runs import SETTINGS, model_at, request, run_lm_eval

from dataset_builder.release import Release
from dataset_builder.schema import RULED
from helmbench_common.http import retry
from helmbench_common.http.retry import IN_A_ROW, Trouble
from judge.offline import judge as offline
from judge.offline.reader import OfflineReader
from judge.replies.lm_eval_log import read_run
from judge.replies.run import Run
from judge.replies.script import live_turns
from judge.rules.answers import REFUSED
from judge.verdicts import judge_run
from lm_eval_tasks.helmbench.api_models import Completion, read
from lm_eval_tasks.helmbench.layer import _tensor_completions, layer_of

TASKS = Path(__file__).resolve().parents[1] / "lm_eval_tasks" / "helmbench"
STORM = dict.fromkeys(FAULTS, 0.05) | {"400": 0.01, "long": 0.01}


def ends(model: LocalChatCompletion, requests: list[Instance]) -> list[Completion]:
    layer = layer_of(model)
    layer(requests)
    return [layer.completion(r) for r in requests]


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits between attempts, which then take no time."""
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(retry, "sleep", sleep)
    return waited


def test_what_happens_to_one_item_is_recorded_as_what_it_is() -> None:
    """Each is asked once, none ends the run, and the rest is answered."""
    for fault, finish in {
        "400": "refused: HTTP 400 invalid_value a planned fault",
        "403": "content_filter",
        "451": "content_filter",
        "413": "error: over-long: HTTP 413",
        "422": "refused: HTTP 422 a planned fault",
        "blocked": "content_filter",
        "filter": "content_filter",
        "long": "error: over-long: HTTP 400 context_length_exceeded",
        "cut": "length",
        "empty": "stop",
        "null": "stop",
    }.items():
        with reference_server.start(faults={fault: 0.5}) as server:
            found = ends(model_at(server.url), [request(f"message {n}") for n in range(20)])
            hit = [entry["fault"] == fault for entry in server.log]
        assert len(hit) == 20
        assert 0 < sum(hit) < 20
        assert sum(str(e.finish).startswith(finish) and (not e.text or fault == "cut") for e in found) == sum(hit)
        assert sum(e.finish == "stop" and bool(e.text) for e in found) == 20 - sum(hit)
        assert all(e.attempts == 1 for e in found)


def test_what_may_go_well_is_tried_again(pauses: list[float]) -> None:
    """Attempts equal the server's own count, and 429 waits for as long as it was asked to."""
    for fault in ("429", "500", "slow", "broken"):
        with reference_server.start(faults={fault: 0.3}, slow_seconds=1.5 if fault == "slow" else 0) as server:
            found = ends(model_at(server.url, max_retries=10), [request(f"message {n}") for n in range(12)])
            logged = len(server.log)
            faults = Counter(entry["fault"] for entry in server.log)
        assert all(e.finish == "stop" and e.text for e in found)
        assert sum(e.attempts for e in found) == logged > 12
        assert len(pauses) == faults[fault]
        assert fault != "429" or min(pauses) >= 1  # Retry-After: 1
        pauses.clear()


def test_patience_ends(pauses: list[float]) -> None:
    """A server that is busy for ever is waited for as long as was said; what was paid for and lost is asked for only
    max_retries times.
    """
    with reference_server.start(faults={"429": 0.5, "broken": 0.5}) as server:
        layer = layer_of(model_at(server.url), patience=20)
        with pytest.raises(SystemExit, match=r"fail: (?:HTTP 429|broken JSON)"):
            layer([request(f"message {n}") for n in range(100)])
        attempts = Counter(json.dumps(r["messages"]) for r in server.requests)
        broken = Counter(
            json.dumps(r["messages"])
            for r, e in zip(server.requests, server.log, strict=True)
            if e["fault"] == "broken"
        )
    assert max(broken.values()) <= 3
    assert max(attempts.values()) <= 20


def test_a_server_that_goes_away_loses_nothing_that_was_answered(pauses: list[float]) -> None:
    """What was answered stays; the rest says why it wasn't asked, and no more than a few are tried in vain."""
    with reference_server.start(faults={}) as server:
        model = model_at(server.url)
        layer = layer_of(model, patience=1)
        first = [request(f"message {n}") for n in range(10)]
        layer(first)
    rest = [request(f"message {n}") for n in range(10, 100)]
    texts = layer(rest)
    found = [layer.completion(r) for r in rest]
    assert all(layer.completion(r).finish == "stop" for r in first)
    assert texts == [""] * 90
    assert all(e.failed for e in found)
    assert IN_A_ROW <= sum(e.attempts > 0 for e in found) <= IN_A_ROW + 8
    assert sum("not asked" in str(e.finish) for e in found) >= 50


def test_replies_are_read_in_the_forms_that_servers_use() -> None:
    """OpenAI's and Anthropic's shapes, with what each calls a cut-off, a filter and a refusal. A 200 without a reply in
    it is the wire's failure, and is never read as the model's silence.
    """
    parse = model_at("http://127.0.0.1:1").parse_generations
    hello = {"content": "hello"}
    for choice, finish, text in (
        ({"message": hello, "finish_reason": "stop"}, "stop", "hello"),
        ({"message": hello}, None, "hello"),
        ({"message": {"content": None, "refusal": "No."}, "finish_reason": "stop"}, "refusal", "No."),
        ({"message": {}, "finish_reason": "content_filter"}, "content_filter", ""),
        ({"message": {"content": None, "reasoning_content": "hm"}, "finish_reason": "length"}, "length", ""),
    ):
        assert read({"choices": [{"index": 0, **choice}]}, parse) == Completion(text, finish)
    thinking = {"type": "thinking", "thinking": "hm"}
    for content, reason, finish, text in (
        ([thinking, {"type": "text", "text": "hello"}], "end_turn", "stop", "hello"),
        ([], "refusal", "refusal", ""),
        ([{"type": "text", "text": "hel"}], "max_tokens", "length", "hel"),
    ):
        assert read({"content": content, "stop_reason": reason}, parse) == Completion(text, finish)
    nothing: list[Any] = [[], [{"index": 0}], [{"index": 0, "message": {"content": 7}}], "hello", {"0": hello}, [None]]
    nothing += [[{"message": "hello"}], [{"message": ["hello"]}], [["hello"]]]
    bodies: list[Any] = [*({"choices": choices} for choices in nothing), [], {}, "text", None]
    for body in bodies:
        assert isinstance(read(body, parse), Trouble)


def test_half_a_character_is_no_reason_to_lose_a_run(tmp_path: Path) -> None:
    """No file can hold one, neither lm-eval's log nor its cache: it is replaced, in texts, finishes and errors."""
    answers = {"a": said("a\ud800b", "sto\udfff"), "b": failed(422, "no\ud800")}
    with stopped_at_the_end() as started:
        started.append(JudgeServer(lambda body, attempt: answers[body["messages"][-1]["content"]]))
        with cached(tmp_path / "c.db", model_at(started[0].url)) as model:
            requests = [request(c) for c in "ab"]
            assert model.generate_until(requests) == ["a\ufffdb", ""]
            found = [layer_of(model.lm).completion(r).finish for r in requests]
    assert found == ["sto\ufffd", "refused: HTTP 422 no\ufffd"]


@contextmanager
def cached(path: Path, model: LocalChatCompletion) -> Iterator[CachingLM]:
    """The model behind lm-eval's --use_cache."""
    caching = CachingLM(model, str(path))
    layer_of(model)
    yield caching
    caching.dbdict.close()


def test_a_cache_that_another_run_writes_is_refused(tmp_path: Path) -> None:
    """Two runs side by side would both pay for every reply; the second ends before it asks anything."""
    holding = "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); print(1, flush=True); input()"
    model = model_at("http://127.0.0.1:1/v1")
    caching = CachingLM(model, str(tmp_path / "c.db"))
    caching.dbdict["a"] = "b"
    caching.dbdict.commit(blocking=True)
    command = [sys.executable, "-c", holding, str(tmp_path / "c.db")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout
        assert other.stdout.readline() == "1\n"
        with pytest.raises(SystemExit, match=r"another run is writing the cache .*wait for it"):
            layer_of(model)
        other.communicate("\n")
    layer_of(model)
    caching.dbdict.close()


def test_failures_are_asked_again_and_replies_are_not(tmp_path: Path) -> None:
    """With the cache a second run costs exactly what had failed, and the finish reasons of the first are still
    known.
    """
    requests = [request(f"message {n}") for n in range(30)]
    with (
        reference_server.start(faults={"long": 0.2, "filter": 0.2}) as server,
        cached(tmp_path / "c.db", model_at(server.url)) as model,
    ):
        model.generate_until(requests)
        first = [layer_of(model.lm).completion(r) for r in requests]
        port = server.server_port
    failed = sum(e.failed for e in first)
    assert 0 < failed < 30
    fresh = [request(f"message {n}") for n in range(30)]
    with reference_server.start(port, faults={}) as server, cached(tmp_path / "c.db", model_at(server.url)) as model:
        model.generate_until(fresh)
        assert len(server.log) == failed
        second = [layer_of(model.lm).completion(r).finish for r in fresh]
    assert second == ["stop" if e.failed else e.finish for e in first]


def test_a_cache_belongs_to_one_model(tmp_path: Path) -> None:
    """lm-eval's cache has no model in its keys: another model would be given the first one's replies."""
    with reference_server.start() as server:
        with cached(tmp_path / "c.db", model_at(server.url, "keyword")) as model:
            model.generate_until([request("hello")])
        with pytest.raises(
            SystemExit,
            match=r"holds replies of .*model=keyword.* this run is of .*model=always-kind.*separate --use_cache",
        ):
            layer_of(CachingLM(model_at(server.url, "always-kind"), str(tmp_path / "c.db")).lm)


def test_repeats_are_kept_apart(tmp_path: Path) -> None:
    """Repeats of one message go out with seeds of their own and come back from the cache as different replies, sampled
    or not.
    """
    samplings: list[dict[str, Any]] = [{}, {"do_sample": True, "temperature": 1.0}]
    for sampling in samplings:
        requests = [request("hello", **sampling), *(request("hello", repeat=n, **sampling) for n in (1, 2))]
        with reference_server.start(faults={}) as server:
            for _ in range(2):
                with cached(tmp_path / f"{len(sampling)}.db", model_at(server.url)) as model:
                    assert len(model.generate_until(requests)) == 3
            assert sorted(r["seed"] for r in server.requests) == [1234, 1235, 1236]
            assert all("repeat" not in r for r in server.requests)


class Local:
    """A backend that counts a token a word, and says what it was given."""

    def __init__(self, window: int) -> None:
        self.max_length, self.tokenizer, self.cache_hook = window, object(), SimpleNamespace(dbdict=None)
        self.given: list[str] = []

    def tok_encode(self, text: str) -> list[str]:
        return text.split()

    def generate_until(self, requests: list[Instance]) -> list[str]:
        self.given += [r.args[0] for r in requests]
        return ["fine" for _ in requests]


def test_what_does_not_fit_is_not_sent() -> None:
    """lm-eval would cut such a prompt at the left, where the system message stands. A window that holds no sample is a
    wrong setting, and no result; a chat server's is its own affair.
    """
    model = Local(100)
    prompts = [" ".join(["word"] * n) for n in (10, 36, 37, 300)]
    layer = layer_of(model)
    requests = [Instance("generate_until", {}, (p, SETTINGS), n) for n, p in enumerate(prompts)]
    assert layer(requests) == ["fine", "fine", "", ""]
    assert model.given == prompts[:2]
    why = "error: over-long: 300 tokens and 64 for the reply, the window holds 100"
    assert layer.completion(requests[3]).finish == why
    with pytest.raises(SystemExit, match=r"no sample fits the model's window .*max_gen_toks"):
        layer_of(Local(50))([Instance("generate_until", {}, ("word " * 20, SETTINGS), 0)])
    assert layer_of(model_at("http://127.0.0.1:1")).window is None


def test_why_a_local_reply_ends_is_read_from_its_tokens() -> None:
    """Transformers' rows: an end token, a stop text, or neither before the limit, which is a cut-off."""
    model = SimpleNamespace(
        eot_token_id=0,
        model=SimpleNamespace(generation_config=SimpleNamespace(eos_token_id=[0, 9])),
        tok_decode=lambda r: " User:" if 7 in r else "",
    )
    rows = np.array([[5, 5, 1, 0, 0, 0], [5, 5, 1, 1, 9, 0], [5, 5, 1, 1, 1, 1], [5, 5, 1, 7, 1, 1]])
    assert [(e.finish, e.reply_tokens) for e in _tensor_completions(model, rows, 2, 6, ["User:"])] == [
        ("stop", 1),
        ("stop", 2),
        ("length", 4),
        ("stop", 4),
    ]
    assert [e.finish for e in _tensor_completions(model, rows[2:, :5], 2, 6, [])] == ["stop", "stop"]


@pytest.fixture(scope="module")
def storm(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Server, str]:
    """Two of the lite tasks on a server in a seeded storm, by the real command line: output, the server with its log,
    what was said.
    """
    out = tmp_path_factory.mktemp("storm") / "out"
    tasks = "helmbench_pillar1_lite,helmbench_conversations_lite"
    with reference_server.start(faults=STORM, fault_seed=6, slow_seconds=2.5) as server:
        arguments = f"model=faulty,base_url={server.url}/chat/completions,num_concurrent=16,timeout=1"
        done = run_lm_eval(dataset, out, server.url, tasks, "--model_args", arguments)
    assert done.returncode == 0, done.stderr[-3000:]
    return out, server, done.stderr


def requests_of(out: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(messages, text, note) of every logged request."""
    for path in sorted(out.rglob("samples_*.jsonl")):
        for line in path.read_text().splitlines():
            sample = json.loads(line)
            for n, reply in enumerate(sample["resps"]):
                given = sample["arguments"][f"gen_args_{n}"]
                yield json.dumps(json.loads(given["arg_0"][0])), reply[0], given["arg_2"]


def test_a_storm_ends_with_every_sample_answered_or_marked(storm: tuple[Path, Server, str], release: Release) -> None:
    """All samples of the tasks are there, each turn with a reply or the reason why there is none."""
    run = read_run(storm[0], release)
    configs = ("pillar1", "conversations")
    assert run.ids == {r["id"] for config in configs for r in release.records(config) if "lite" in r["tiers"]}
    for reply in run.replies:
        assert len(reply.finish) == len(reply.turns) == live_turns(release.rows[reply.id])
        assert all(f in ("stop", "length") or str(f).startswith(("error: ", REFUSED)) for f in reply.finish)


def test_a_storms_counts_equal_the_servers_own_log(storm: tuple[Path, Server, str]) -> None:
    """Attempt for attempt and outcome for outcome: nothing is asked that isn't logged, nothing logged that isn't
    asked.
    """
    served: dict[str, list[str | None]] = defaultdict(list)
    for got, entry in zip(storm[1].requests, storm[1].log, strict=True):
        served[json.dumps(got["messages"])].append(entry["fault"])
    logged = [entry for entry in requests_of(storm[0]) if entry[2]["attempts"]]
    assert Counter(m for m, _, _ in logged).keys() == served.keys()
    assert sum(note["attempts"] for _, _, note in logged) == len(storm[1].log)
    outcome = {"400": "", "empty": "", "null": "", None: "text"}
    expected: Counter[str] = Counter(outcome.get(faults[-1], "error") for faults in served.values())
    found = Counter(
        "error" if note["finish"].startswith("error") else "text" if text else "" for _, text, note in logged
    )
    assert found == expected
    assert set(FAULTS) <= {f for faults in served.values() for f in faults if f}


def test_what_the_storm_took_is_unscored_and_silence_is_not(storm: tuple[Path, Server, str], release: Release) -> None:
    """The wire's failures stand as `error`; an empty, null or refused one is the
    subject's, and fails with its incident.
    """
    run = read_run(storm[0], release)
    known = [
        r
        for r in run.replies
        if all(
            c.check in RULED or offline.knows(c.criterion)  # type: ignore[union-attr]  # all others have one
            for c in release.rows[r.id].evaluation
        )
    ]
    verdicts = judge_run(Run(run.path, run.model, run.tier, known, True), release, OfflineReader())
    replies = {r.id: r for r in known}
    seen: Counter[str] = Counter()
    for verdict in verdicts:
        reply = replies[verdict.id]
        turn = verdict.turn if verdict.turn > 0 else len(reply.turns)
        finish, text = str(reply.finish[turn - 1]), reply.turns[turn - 1]
        if finish.startswith("error"):
            assert (verdict.unscored, verdict.label, verdict.evidence) == ("error", None, (finish,))
            seen["error"] += 1
        elif not text:
            assert verdict.unscored is None
            assert verdict.incident == ("filtered" if finish.startswith(REFUSED) else "empty")
            seen[verdict.incident] += 1
        else:
            assert verdict.unscored is None
    assert seen["error"] > 0
    assert seen["empty"] > 0
    assert seen["filtered"] > 0
    assert "have no reply and count as unscored" in storm[2]


def test_chosen_samples_in_repeats_without_metrics_are_read(dataset: Path, tmp_path: Path, release: Release) -> None:
    """--samples, --predict_only and repeats in one run: the judge reads what is there, and knows that it isn't all."""
    ids = [r["id"] for r in release.records("pillar4") if "lite" in r["tiers"]]
    (tmp_path / "repeated.yaml").write_text(
        f"include: {TASKS / '_helmbench_yaml'}\ntask: helmbench_repeated\ndataset_kwargs: {{config: pillar4, "
        f"tier: lite}}\nrepeats: 2\n"
    )
    chosen = '{"helmbench_repeated": [7, 2, 5]}'
    with reference_server.start() as server:
        done = run_lm_eval(
            dataset,
            tmp_path / "out",
            server.url,
            str(tmp_path / "repeated.yaml"),
            "--samples",
            chosen,
            "--predict_only",
            model="random",
        )
    assert done.returncode == 0, done.stderr[-3000:]
    run = read_run(tmp_path / "out", release)
    assert sorted((r.id, r.repeat) for r in run.replies) == sorted((ids[n], k) for n in (2, 5, 7) for k in (0, 1))
    assert (run.tier, run.limited) == ("lite", True)
    assert all(r.finish == ("stop",) for r in run.replies)
    metadata = json.loads(next((tmp_path / "out").rglob("results_*.json")).read_text())["configs"][
        "helmbench_repeated"
    ]["metadata"]
    assert (metadata["dataset_version"], metadata["score_hash"], metadata["tier"]) == (
        release.manifest.version,
        release.manifest.score_hash,
        "lite",
    )
    assert metadata["version"] == 0.1
